"""What other bounds on contributions would cost: noise, and what they leave out of made-up units."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from core.left_out import left_out
from core.plan import Plan
from pipelines.answers.text import number
from pipelines.dates import as_text
from pipelines.errors import JobError
from pipelines.job.contributions import UnitContributions
from pipelines.job.groups import GroupedJob
from pipelines.tasks import TASKS

_SAYS = (
    "Left out: shares of all pairs of a unit and one of its groups, and of all rows, if units are as "
    "guessed. The first figure is for units that differ by chance alone, the second one where a few have "
    "most. The guess is made without the rows, and the truth may lie outside of both."
)


def describe_bounds(job: Any, plan: Plan, plan_one: Callable[[Any], Plan]) -> dict[str, Any]:
    """Return as JSON values what the bounds of a job and some others cost; empty without a guess.

    Nothing here follows from rows: the plans are public, and so is the guess.

    Args:
        job: the job.
        plan: its plan, or that of each of its groups.
        plan_one: plans the same job with other bounds.
    """
    bounds = job.contributions if isinstance(job, GroupedJob) else None
    if bounds is None or bounds.guess is None:
        return {}
    guess, tried, functions = bounds.guess.build(), [], TASKS[job.task].subsamples
    bounded = replace(guess, rows=1.0) if functions else guess  # a function gets all rows of a group
    for other in (bounds, *_others(job, bounds)):
        try:
            planned = plan if other is bounds else plan_one(job.model_copy(update={"contributions": other}))
        except JobError:  # no plan has these bounds
            continue
        chosen = planned.chosen
        tried.append(
            {
                "groups": other.groups,
                "rows": None if functions else other.rows,
                "error": None if chosen is None else chosen.errors[planned.method],
                "promises": dict(as_text(TASKS[job.task].promises, planned.promises, job.grid.times)),
                "left_out": asdict(left_out(bounded, other.build())),
            }
        )
    return {"bounds": {"guess": asdict(guess), "tried": tried, "says": _SAYS}}


def _others(job: GroupedJob, bounds: UnitContributions) -> Iterator[UnitContributions]:
    """Yield half and double of each bound, where a job may have them."""
    for field in ("groups", "rows"):
        value = getattr(bounds, field)
        for other in filter(None, (value // 2, 2 * value)):  # half of 1 is none
            changed = bounds.model_copy(update={field: other})
            try:
                job.model_copy(update={"contributions": changed}).check_records()
            except ValueError:
                continue
            yield changed


def show_bounds(plan: Mapping[str, Any], console: Console) -> None:
    """Print the bounds of a described plan, if it has some: those of the job first."""
    if "bounds" in plan:
        console.print("Bounds of contributions", style="bold")
        console.print(_table(plan["bounds"]["tried"]), crop=False)
        console.print(plan["bounds"]["says"])


def _table(tried: Sequence[Mapping[str, Any]]) -> Table:
    names = [
        name for name in tried[0]["promises"] if any(each["promises"][name] is not None for each in tried)
    ]
    headers = ("groups", "rows", "units left out", "rows left out", "error", *names)
    rows = []
    for each in tried:
        lost = each["left_out"]
        shown = (_shown(each["promises"][name]) for name in names)
        kept = "all" if each["rows"] is None else f"{each['rows']:,}"
        left = (_range(lost["units"]), _range(lost["rows"]))
        rows.append((f"{each['groups']:,}", kept, *left, _shown(each["error"]), *shown))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header, cells in zip(headers, zip(*rows, strict=True), strict=True):
        name = header.replace("_", " ")
        widest = max(map(len, (*cells, *name.split())))  # part of a number looks like another one
        table.add_column(name, justify="right", min_width=max(widest, 9 * ("left out" in name)))
    for row in rows:
        table.add_row(*row)
    return table


def _range(shares: Any) -> str:
    digits = 0 if max(shares) >= 0.01 else 2
    low, high = (f"{100 * share:.{digits}f}" for share in shares)
    return f"{low}%" if low == high else f"{low} to {high}%"


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return number(value) if isinstance(value, int | float) else value or "none"
