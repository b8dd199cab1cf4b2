"""Print a ledger as text."""

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.answers.text import SECRET_PAIRS, hides, number

_PIPED = 1000
"""Width of a table that goes to a file or a program: its lines are not folded."""


def show_charges(ledger: Mapping[str, Any], console: Console) -> None:
    """Print a described ledger: the remaining budget, then every charge.

    Args:
        ledger: as `pipelines.ledger.ledger.describe_ledger` returns it.
        console: where it is printed.
    """
    unit = f" A unit is all rows with one value of {ledger['unit']}." if ledger["unit"] else ""
    policy = ledger.get("policy")
    hidden = hides(ledger["neighbors"], ledger["unit"]) if policy is None else SECRET_PAIRS
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
    half = " (the other half of delta pays for the composition)" if ledger["order"] is not None else ""
    console.print(Text(f"Left: {_pair(ledger['left'], ledger['left_delta'])}", "bold"), f"{half}.", sep="")
    if not ledger["charges"]:
        console.print("There are no charges yet.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("charged at", "run", "task", "epsilon", "delta", "counted", "neighbors", "released"):
        numeric = header in ("epsilon", "delta", "counted")
        table.add_column(header, justify="right" if numeric else "left", overflow="fold")
    for entry in ledger["charges"]:
        table.add_row(
            entry["at"],
            entry["run_id"],
            entry["task"],
            number(entry["epsilon"]),
            number(entry["delta"]),
            _amount(entry["counted"]),
            entry["neighbors"],
            "yes" if entry["release"] else "not yet",
        )
    if not console.is_terminal:
        console.width = _PIPED
    console.print(table)
    console.print("counted: what the run adds to the spent epsilon.")


def _pair(epsilon: float | None, delta: float | None) -> str:
    return f"epsilon {_amount(epsilon)}, delta {_amount(delta)}"


def _amount(value: float | None) -> str:
    """Return an amount as text; None where the charges exceed delta."""
    return "unknown" if value is None else number(value, 6)
