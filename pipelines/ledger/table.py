"""Print a ledger as text."""

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.answers.text import SECRET_PAIRS, hides, number


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
        f"Epsilon {number(ledger['epsilon'])} and delta {number(ledger['delta'])} in all; spent "
        f"{number(ledger['spent'], 6)} by {ledger['accountant']};",
        Text.assemble((f"left {number(ledger['left'], 6)}", "bold"), "."),
    )
    if not ledger["charges"]:
        console.print("There are no charges yet.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("charged at", "run", "task", "epsilon", "delta", "neighbors", "released"):
        table.add_column(header, justify="right" if header in ("epsilon", "delta") else "left")
    for entry in ledger["charges"]:
        table.add_row(
            entry["at"],
            entry["run_id"],
            entry["task"],
            number(entry["epsilon"]),
            number(entry["delta"]),
            entry["neighbors"],
            "yes" if entry["release"] else "not yet",
        )
    console.print(table)
