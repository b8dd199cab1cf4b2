"""Describe a ledger: as JSON values, and as text."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from core.budget import Budget
from core.privacy_filter import filter_delta, filter_spend
from pipelines.answers.text import SECRET_PAIRS, hides, number
from pipelines.ledger.ledger import Ledger

HEADERS = ("charged at", "run", "task", "epsilon", "delta", "counted", "neighbors", "released")
HALF = " (the other half of delta pays for the composition)"
"""What is said of the delta that is left under a Rényi filter."""
_NUMERIC = ("epsilon", "delta", "counted")


def describe_ledger(ledger: Ledger) -> dict[str, Any]:
    """Return the ledger as JSON values, with the spent and the remaining budget.

    `counted` of a charge is what it adds to the spent epsilon. `spent_delta` and `left_delta` are None where
    the charges exceed delta, and so are `spent` and `left`.
    """
    spent, budget = ledger.spent(), Budget(ledger.epsilon, ledger.delta)
    charges = [entry.charge(ledger.neighbors) for entry in ledger.charges]
    delta, most = filter_delta(charges, budget, ledger.order)
    fits = math.isfinite(spent.epsilon)
    described = json.loads(ledger.model_dump_json(by_alias=True))
    for entry, charge in zip(described["charges"], charges, strict=True):
        counted = filter_spend([charge], budget, ledger.order).epsilon
        entry["counted"] = counted if math.isfinite(counted) else None
    return {
        **described,
        "spent": spent.epsilon if fits else None,
        "left": max(0.0, ledger.epsilon - spent.epsilon) if fits else None,
        "spent_delta": delta if fits else None,
        "left_delta": max(0.0, most - delta) if fits else None,
        "accountant": spent.accountant,
    }


def show_charges(ledger: Mapping[str, Any], console: Console) -> None:
    """Print a described ledger: the remaining budget, then every charge.

    Args:
        ledger: as `describe_ledger` returns it, with what `look_ahead` returns.
        console: where it is printed.
    """
    unit = f" A unit is all rows with one value of {ledger['unit']}." if ledger["unit"] else ""
    policy = ledger.get("policy")
    hidden = (
        hides(ledger["neighbors"], ledger["unit"], ledger.get("count")) if policy is None else SECRET_PAIRS
    )
    console.print(f"Hides {hidden}.{unit}")
    if policy is not None:
        absent = () if policy["policy"]["constraints"] else ("semantics",)
        given = [f"{key} {value}" for key, value in policy["policy"].items() if value and key not in absent]
        console.print(f"The policy is {', '.join(given)} on the columns {', '.join(policy['columns'])}.")
    console.print(
        f"In all: epsilon {number(ledger['epsilon'])}, delta {number(ledger['delta'])}, composed by "
        f"{ledger['accountant']}."
    )
    console.print(f"Spent: {_pair(ledger['spent'], ledger['spent_delta'])}.")
    half = "" if ledger["order"] is None else HALF
    console.print(Text(f"Left: {_pair(ledger['left'], ledger['left_delta'])}", "bold"), f"{half}.", sep="")
    if "fits" in ledger:
        console.print(ledger["fits"]["says"])
    if not ledger["charges"]:
        console.print("There are no charges yet.")
        return
    console.out("\n", *_aligned(HEADERS, rows_of(ledger)), sep="", highlight=False)
    console.print("counted: what the run adds to the spent epsilon.")


def rows_of(ledger: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the cells of each charge below `HEADERS`."""
    return [
        (
            entry["at"],
            entry["run_id"],
            entry["task"],
            number(entry["epsilon"]),
            number(entry["delta"]),
            _amount(entry["counted"]),
            entry["neighbors"],
            "yes" if entry["release"] else "not yet",
        )
        for entry in ledger["charges"]
    ]


def _aligned(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table. Rich takes minutes to lay out tens of thousands of rows."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, ["-" * width for width in widths], *rows):
        cells = (
            f"{cell:>{width}}" if header in _NUMERIC else f"{cell:<{width}}"
            for header, cell, width in zip(headers, row, widths, strict=True)
        )
        yield f"{'  '.join(cells).rstrip()}\n"


def _pair(epsilon: float | None, delta: float | None) -> str:
    return f"epsilon {_amount(epsilon)}, delta {_amount(delta)}"


def _amount(value: float | None) -> str:
    """Return an amount as text; None where the charges exceed delta."""
    return "unknown" if value is None else number(value, 6)
