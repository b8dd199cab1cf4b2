"""Numbers and promises as a person reads them."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from core.budget import Budget, Spend
from core.draws import Laplace
from core.k_cover.rounds import CountRows
from core.one_cluster.found import Result
from core.plan import Plan
from pipelines.answers.one_cluster import certified, promises, unpromised
from pipelines.answers.text import beside, in_share, kept_rows, key_text, number, on_grid, the_domain
from pipelines.errors import JobError
from pipelines.plan import check_spend, grouped
from pipelines.quantities import Amount
from pipelines.tasks import TASKS
from tests.pipelines.report.pictured import release_of


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (1.0, "1"),
        (1e-9, "1e-9"),
        (13.3333, "13.33"),
        (9999.7, "10,000"),
        (-9999.7, "-10,000"),
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


@pytest.mark.parametrize(
    ("ranks", "said"), [(1, "10,000 rows"), (5_000, "10,000 rows"), (5_001, "10,000,000 rows")]
)
def test_an_error_of_a_rank_is_related_to_so_many_rows_that_it_is_at_most_half(ranks, said):
    sentence = in_share(ranks, "rows")
    assert f"Among {said}, for example" in sentence
    assert f" {number(ranks / (100 if ranks <= 5_000 else 100_000), 2)}% " in sentence


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


_TARGET = {"target": 5003, "k": 3, "coverage": None}
_BOXES = {"lower": [-7.0, 2.0], "upper": [3.0, 12.0]}
_RANK = "of the value is within 11 of the wanted one. Among 10,000 rows, for example, at most 0.11% of them"
SAID: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, str]]]] = {
    "one_cluster": (
        {"params": _TARGET},
        {
            "missing": (11, "at least 4,992 of them."),
            "radius_factor": (13.0, "at most 13 times"),
            "resolution": (17.0, ", or 17 if that is larger"),
            "count_error": (19, "The count is within 19 of"),
        },
    ),
    "k_cover": (
        {"params": _TARGET},
        {
            "missing": (11, "at least 4,992 of them."),
            "radius_factor": (13.0, "at most 13 times"),
            "resolution": (17.0, ", or 17 if that is larger"),
            "count_error": (19, "The count of each ball is within 19 of"),
            "rows_error": (23, "The number of all rows is within 23 of"),
        },
    ),
    "histogram": (
        {},
        {
            "cell_error": (11, "Every released count is within 11 of"),
            "released_from": (13, "Every cell with at least 13 rows"),
            "standard_error": (17.0, "The standard error of a count is 17."),
        },
    ),
    "cdf": (
        {},
        {
            "kolmogorov_records": (11, "Every cumulative count is within 11 of"),
            "range_error": (13, "The count of every range is within 13 of"),
            "range_standard_error": (17.0, "of a random range is 17 before"),
        },
    ),
    "ranges": (
        {},
        {
            "cell_error": (11, "The count of every cell is within 11 of"),
            "standard_error": (13.0, "of the count of a cell is 13 before"),
        },
    ),
    "quantiles": (
        {},
        {
            "rank_error": (11, "The rank of every quantile is within 11 of the wanted one, on all data."),
            "typical_rank_error": (13.0, "the standard error of a rank is about 13 rows."),
        },
    ),
    "interior_point": ({}, {"records_needed": (11, "With at least 11 rows")}),
    "threshold": (
        {},
        {
            "errors": (11, "mislabels at most 11 rows"),
            "records_needed": (13, "For at least 13 rows"),
            "alpha": (0.17, "these are at most 17% of the rows"),
        },
    ),
    **dict.fromkeys(
        ("k_means", "k_median"),
        (
            {},
            {
                "count_error": (11, "The count of every center is within 11 of"),
                "smallest_group": (13, "the center of a group of 13 rows"),
            },
        ),
    ),
    **dict.fromkeys(
        ("median", "minimum"),
        (
            {},
            {
                "rank_error": (11, _RANK),
                "typical_rank_error": (13.0, "the standard error of the rank is about 13 rows."),
            },
        ),
    ),
    "bounds": (
        {"params": {"outside": 0.19}},
        {"records_outside": (11, "At most 19% of the rows and 11 rows")},
    ),
    **dict.fromkeys(("triangles", "mst_cost"), ({}, {"error": (11.0, "The value is within 11 of")})),
    "statistics": (
        {"domain": _BOXES},
        {
            "count_error": (11, "The number of rows is within 11 of"),
            "units_error": (13, "The number of units is within 13 of"),
            "sum_error": (17.0, "The sum of x is within 119 of"),
            "mean_error": (
                19.0,
                "The mean of x differs from the truth, with values rounded to the step and moved to the "
                "bounds, by at most 95",
            ),
            "found_from": (23, "A group with at least 23 rows"),
            "rank_error": (29, "Each quantile is within 29 rows of its rank"),
            "extreme_error": (31, "Each minimum or maximum is within 31 rows of the end"),
        },
    ),
    "sample_and_aggregate": (
        {"params": {"blocks": 103, "stable_fraction": 0.8}},
        {
            "errors": ((11.0,), "D plus 11 of that point"),
            "spread_factor": (13.0, "the value is within 13 D"),
            "mean_errors": ((17.0,), "The value is within 17 of the mean of the 103 answers."),
            "radius_blocks": (19, "At least 63 of the 103 answers lie within the radius."),
            "failed_error": (23, "without an answer is off by at most 23."),
        },
    ),
}
"""What is changed in a release of each task, and in which words it says each promise."""

UNSAID = {"leftover", "failed_most"}
"""They say nothing of how far off an answer may be."""


@pytest.mark.parametrize("task", TASKS)
def test_every_promise_is_in_a_sentence_of_its_own_figure(task):
    """Each has another figure, so no sentence has that of another promise, half or twice of it."""
    (changed, said), (made, _) = SAID[task], release_of(f"{task}-0")
    answers = TASKS[task].answers
    fields = {field.name for field in dataclasses.fields(answers.Promises)}
    figures = {**made["accuracy"]["promises"], **{name: figure for name, (figure, _) in said.items()}}
    told = {
        **made,
        **{key: {**made[key], **values} for key, values in changed.items()},
        "accuracy": {**made["accuracy"], "promises": figures},
    }
    text = " ".join([*answers.promises(told), str(answers.unpromised(told))])
    assert {name: words for name, (_, words) in said.items() if text.count(words) != 1} == {}, text
    assert fields - set(said) <= UNSAID and set(said) <= fields
    if task == "statistics":
        assert "The sum of y is within 204 of" in text


@pytest.mark.parametrize(("low", "high"), [(0.0, 5.0), (0.0, 4.0), (1.0, 5.0), (1.0, 4.0)])
def test_an_interval_is_the_whole_domain_at_both_ends_alone(low, high):
    domain = {"columns": ["x"], "lower": [0.0], "upper": [5.0], "step": 1.0}
    assert bool(the_domain({"domain": domain}, low, high)) == ((low, high) == (0.0, 5.0))


@pytest.mark.parametrize(
    ("keep", "contributions", "kept"),
    [("one", None, True), (None, {"groups": 1}, True), ("last", None, False), (None, None, False)],
)
def test_rows_are_kept_at_random_by_one_of_each_unit_and_by_contributions(keep, contributions, kept):
    said = {"privacy": {"unit": "who", "keep": keep}, "contributions": contributions}
    assert kept_rows(said) is kept
    assert not kept_rows({"privacy": {"unit": None, "keep": "one"}})


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
