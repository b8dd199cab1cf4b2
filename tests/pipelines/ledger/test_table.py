"""A ledger as text: every charge on a line of its own, however many there are."""

import io
import time
from datetime import UTC, datetime

from rich.console import Console

from pipelines.ledger.content import Entry, Ledger
from pipelines.ledger.table import describe_ledger, show_charges


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
