"""Print a ledger as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from pipelines.answers.text import SECRET_PAIRS, hides, number

_NUMERIC = ("epsilon", "delta", "counted")


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
    headers = ("charged at", "run", "task", "epsilon", "delta", "counted", "neighbors", "released")
    rows = [
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
    console.out("\n", *_aligned(headers, rows), sep="", highlight=False)
    console.print("counted: what the run adds to the spent epsilon.")


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
