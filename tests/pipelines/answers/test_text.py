"""Numbers and promises as a person reads them."""

import numpy as np
import pytest

from core.budget import Budget, Spend
from core.draws import Laplace
from core.k_cover.rounds import CountRows
from core.one_cluster.found import Result
from core.plan import Plan
from pipelines.answers.one_cluster import certified, promises, unpromised
from pipelines.answers.text import beside, key_text, number, on_grid
from pipelines.errors import JobError
from pipelines.plan import check_spend, grouped
from pipelines.quantities import Amount


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (1.0, "1"),
        (1e-9, "1e-9"),
        (13.3333, "13.33"),
        (1e6, "1,000,000"),
        (-84.36, "-84.36"),
        (1e300, "1e+300"),
    ],
)
def test_numbers(value, said):
    assert number(value) == said


@pytest.mark.parametrize(
    ("value", "step", "said"), [(4.5, 0.01, "4.50"), (1234.4, 1, "1,234"), (51.48000004, 1e-3, "51.480")]
)
def test_values_have_the_decimals_of_the_step(value, step, said):
    assert on_grid(value, step) == said


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (98.6755, 93.4, "98.7"),
        (12345.6789, 0.0123, "12,345.6789"),
        (7.0, 3.29, "7"),
        (-0.3, 1000.0, "0"),
        (-12.345, 0.5, "-12.345"),
        (-12.3456789, 12.0, "-12.3"),
        (Amount(98.6755, "kWh", 0.01), 93.4, "98.7 kWh"),
        (331204.0, 329.0, "331,204"),
        (59656059.4, 1010.0, "59,656,059"),
        (0.1 + 0.2, 1e-30, "0.3"),
        (1.23456789, None, "1.23457"),
        (1.23456789, 0.0, "1.23457"),
        (1.5e300, 1.0, "1.5e+300"),
    ],
)
def test_a_number_has_the_decimals_of_its_error(value, error, said):
    assert beside(value, error) == said


def release(**said):
    return {
        "params": {"target": 500},
        "accuracy": {"failure": 0.1, "promises": said, "smallest_target": 1336},
    }


def test_promises_that_are_made_are_said():
    full = release(missing=120, radius_factor=11.3, resolution=0.01, count_error=75)
    text = " ".join(promises(full))
    assert "at least 380 of them" in text
    assert "11.3 times" in text
    assert "within 75" in text
    assert unpromised(full) is None


def test_promises_that_are_not_made_are_said_too():
    none = release(missing=None, radius_factor=None, resolution=None, count_error=75)
    assert promises(none) == ["The count is within 75 of the truth."]
    assert "1,336" in str(unpromised(none))


@pytest.mark.parametrize("held", [0.5, 3.0])
def test_the_spend_is_recomputed_from_what_the_rounds_draw(held):
    rounds = (CountRows(Laplace.of("count", held, 1)),)
    plan = Plan("m", rounds, None, Spend(0.5), {}, 0.1)
    if held < 1:
        check_spend(plan, Budget(1.0, 1e-6))
    else:
        with pytest.raises(JobError, match=r"privacy\.epsilon is 1\.0"):
            check_spend(plan, Budget(1.0, 1e-6))


def test_equal_draws_are_shown_once():
    a, b = {"round": "r", "scale": 1.0}, {"round": "r", "scale": 2.0}
    assert grouped([a, b, a, a]) == [(a, 3), (b, 1)]


def test_a_certificate_is_told_where_a_release_has_one():
    said = {"accuracy": {"failure": 0.1}}
    (fact,) = certified(Result((0.0,), 1.0, 1500, 1462), said)
    assert (fact.name, fact.lines, fact.note) == ("at least", ("1,462 rows",), "with probability 90%")
    assert certified(Result((0.0,), 1.0, 1500), said) == ()


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (["Berlin", 3, True], "Berlin, 3, true"),
        ([np.bool_(False), np.datetime64("2013-01-31")], "false, 2013-01-31"),
        (["", "  ", "a "], '"", "  ", "a "'),
        (["\x1b[31m\n", "\u202eb"], r'"\u001b[31m\n", \u202eb'),
    ],
)
def test_keys_can_be_told_apart(key, said):
    assert key_text(key) == said
