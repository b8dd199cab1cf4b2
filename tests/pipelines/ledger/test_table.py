"""A ledger as text: every charge on a line of its own, however many there are."""

import io
import time
from datetime import UTC, datetime

import pytest
from rich.console import Console

from core.budget import Budget
from core.privacy_filter import best_order
from pipelines.answers.text import SECRET_PAIRS, hides
from pipelines.ledger.content import Entry, Ledger
from pipelines.ledger.table import HEADERS, describe_ledger, rows_of, show_charges


def ledger(charges: int, epsilon: float = 0.25, delta: float = 0.0) -> Ledger:
    made = Ledger(epsilon=1e5, delta=1e-5).identified()
    entries = (
        Entry(
            run_id=f"run-{number:06}",
            job="0" * 64,
            task="median",
            output="/out",
            at=datetime(2026, 11, 22, tzinfo=UTC),
            neighbors="add_or_remove_one",
            epsilon=epsilon,
            delta=delta,
            draws=((epsilon, delta, 0.0),),
            ledger=made.id,
        )
        for number in range(charges)
    )
    return made.model_copy(update={"charges": tuple(entries)})


def shown(described: dict) -> list[str]:
    console = Console(file=io.StringIO(), width=40)
    show_charges(described, console)
    return console.file.getvalue().splitlines()


def test_many_charges_are_shown_in_seconds() -> None:
    """Of processor time; laid out by Rich, 5,000 rows took more than ten."""
    described = describe_ledger(ledger(5000))
    began = time.process_time()
    lines = shown(described)
    assert time.process_time() - began < 4
    rows = [line for line in lines if "run-" in line]
    assert len(rows) == 5000
    assert (
        rows[-1]
        == "2026-11-22T00:00:00Z  run-004999  median     0.25      0     0.25  add_or_remove_one  not yet"
    )


def test_a_ledger_whose_delta_is_overspent_is_shown() -> None:
    lines = shown(describe_ledger(ledger(2, delta=9e-6)))
    assert any(line.startswith("Left: epsilon unknown") for line in lines)


@pytest.mark.parametrize(("composes", "parts"), [(False, 1), (True, 2)])
def test_what_is_counted_and_left_adds_up_to_the_whole(composes: bool, parts: int) -> None:
    """Under a filter that composes draws, half of delta is for them, and a run counts as its draws do."""
    made = ledger(3, epsilon=0.5, delta=1e-6)
    order = best_order(Budget(4.0, 1e-5)) if composes else None
    described = describe_ledger(made.model_copy(update={"epsilon": 4.0, "order": order}))
    counted = [entry["counted"] for entry in described["charges"]]
    assert sum(counted) == pytest.approx(described["spent"])
    assert (counted[0] == 0.5) == (not composes)
    assert described["left"] == pytest.approx(4.0 - described["spent"])
    assert described["spent_delta"] == pytest.approx(3e-6)
    assert described["left_delta"] + described["spent_delta"] == pytest.approx(1e-5 / parts)


def test_a_run_is_released_where_its_charge_says_so() -> None:
    """Its output has an id before there is a release."""
    made = ledger(2)
    charged, released = (entry.model_copy(update={"output_id": "0" * 32}) for entry in made.charges)
    released = released.model_copy(update={"release": "0" * 64})
    rows = rows_of(describe_ledger(made.model_copy(update={"charges": (charged, released)})))
    assert [row[-1] for row in rows] == ["not yet", "yes"]


def test_a_charge_beyond_all_of_delta_has_no_share() -> None:
    described = describe_ledger(ledger(1, delta=2e-5))
    assert (described["charges"][0]["counted"], described["left"], described["spent"]) == (None, None, None)
    (row,) = rows_of(described)
    assert row[HEADERS.index("counted")] == "unknown"


@pytest.mark.parametrize("unit", [None, "who"])
def test_what_a_ledger_promises_is_shown(unit: str | None) -> None:
    made = ledger(1).model_copy(update={"unit": unit, "neighbors": "replace_one"})
    described = {**describe_ledger(made), "fits": {"runs": 1, "says": "One run of this job fits."}}
    said = " ".join(" ".join(shown(described)).split())
    assert f"Hides {hides('replace_one', unit)}." in said and "One run of this job fits." in said
    assert ("A unit is all rows with one value of who." in said) == (unit is not None)
    (row,) = rows_of(described)
    assert row[HEADERS.index("neighbors")] == "add_or_remove_one"  # of the run, which counts twice here
    assert row[HEADERS.index("counted")] == "0.5"


SHOWN = {
    "neighbors": "replace_one",
    "unit": None,
    "epsilon": 7.5,
    "delta": 3e-5,
    "accountant": "basic",
    "order": None,
    "spent": 1.2345,
    "spent_delta": 2e-6,
    "left": 6.2655,
    "left_delta": 1e-6,
    "charges": [
        {
            "at": "2026-11-22T00:00:00Z",
            "run_id": "a",
            "task": "cdf",
            "epsilon": 0.5,
            "delta": 1e-7,
            "counted": 1.2345,
            "neighbors": "replace_one",
            "release": None,
        }
    ],
}
TEXT = """\
In all: epsilon 7.5, delta 3e-5, composed by basic.
Spent: epsilon 1.2345, delta 2e-6.
Left: epsilon 6.2655, delta 1e-6.

charged at            run  task  epsilon  delta  counted  neighbors    released
--------------------  ---  ----  -------  -----  -------  -----------  --------
2026-11-22T00:00:00Z  a    cdf       0.5   1e-7   1.2345  replace_one  not yet

counted: what the run adds to the spent epsilon.
"""


@pytest.mark.parametrize("count", [None, "n"])
def test_every_figure_stands_where_it_is_said_to_stand(count: str | None) -> None:
    """They are all different here."""
    console = Console(file=io.StringIO(), width=200)
    show_charges({**SHOWN, "count": count}, console)
    assert console.file.getvalue() == f"Hides {hides('replace_one', None, count)}.\n{TEXT}"


def test_half_of_delta_is_for_the_composition_where_draws_are_composed() -> None:
    for order in (None, 3.0):
        said = " ".join(" ".join(shown({**SHOWN, "order": order})).split())
        assert ("(the other half of delta pays for the composition)." in said) == (order is not None)


@pytest.mark.parametrize("constraints", [[], [{"count": 3}]])
def test_the_policy_of_a_ledger_is_shown(constraints: list) -> None:
    """What neighbors are under known counts is said where there are some."""
    policy = {"distance": 0.25, "graph": None, "constraints": constraints, "semantics": "literal"}
    told = {**SHOWN, "policy": {"columns": ["x", "y"], "policy": policy}}
    hidden, given, *_ = " ".join(" ".join(shown(told)).split()).split(". ")
    assert hidden == f"Hides {SECRET_PAIRS}"
    more = ", constraints [{'count': 3}], semantics literal" if constraints else ""
    assert given == f"The policy is distance 0.25{more} on the columns x, y"


def test_nothing_is_left_of_a_ledger_that_somebody_made_smaller() -> None:
    described = describe_ledger(ledger(3, delta=1e-6).model_copy(update={"epsilon": 0.5, "delta": 2.9e-6}))
    assert (described["spent"], described["left"], described["left_delta"]) == (None, None, None)
    described = describe_ledger(ledger(3, delta=1e-6).model_copy(update={"epsilon": 0.5}))
    assert (described["spent"], described["left"]) == (0.75, 0.0)
