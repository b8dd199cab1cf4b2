"""What a terminal shows of a comparison."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from pipelines.answers.text import number

_MOST = 40
"""Most changes that a terminal shows."""

_EQUAL_GROUPS = (
    "If both groups had the same true figures none would, except with a probability of 5%, or where a "
    "promise of A or B fails. This holds for two groups that were named without a look at their figures. It "
    "is about the rows of the data: what other rows of such groups would be like, noise does not tell."
)
_SAMPLES = (
    "If both were independent samples of people with the same figures none would, except with a probability "
    "of about 5%. This holds where it was not chosen by a look at their figures what is compared."
)
_WIDEST = (
    " For {} no variance was released, so it is taken to be as large as the bounds allow: with `variance` "
    "among the measures the limit would mostly be far smaller."
)
_KEPT = (
    " The figures are those of the rows that count of each unit, which may be a smaller part of one group "
    "than of the other."
)


def show_comparison(found: Mapping[str, Any], console: Console) -> None:
    """Print what `compare` returned."""
    groups = found.get("groups", [])
    for name, group in zip_longest("AB", groups):
        which = "" if group is None else f", group {group}"
        console.print(f"{name}: {found[name.lower()]}{which}", soft_wrap=True)
    of_one = len(groups) == 2 and found["a"] == found["b"]
    same = {"job": "The jobs ask for the same.", "plan": "The plans are the same."}
    for section, alike in () if of_one else same.items():
        if found[section]:
            console.print(_table(section, found[section]))
        else:
            console.print(alike)
    if "answers" not in found:
        return
    if found["answers"]:
        console.print(_answers(found))
    console.print(_verdict(found))


def _table(section: str, differences: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in (section, "A", "B"):
        table.add_column(header)
    for each in differences[:_MOST]:
        table.add_row(each["name"], _text(each["a"]), _text(each["b"]))
    if len(differences) > _MOST:
        table.add_row(f"and {len(differences) - _MOST:,} more", "", "")
    return table


def _answers(found: Mapping[str, Any]) -> Table:
    changes: Sequence[Mapping[str, Any]] = found["answers"]
    both = " and sampling" if found["sampled"] else ""
    most = f"noise{both} explain{'' if both else 's'} up to"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("answer", "A", "B", "change", most, f"beyond noise{both}"):
        table.add_column(header, justify="left" if header == "answer" else "right")
    ordered = sorted(changes, key=lambda change: change["larger"] is not True)
    for each in ordered[:_MOST]:
        a, b, limit = each["before"], each["after"], each["limit"]
        change = "" if isinstance(a, str) or isinstance(b, str) else number(b - a)
        larger = {True: "yes", False: "no", None: "not known"}[each["larger"]]
        explained = "intervals" if limit is None and each["larger"] is not None else _text(limit)
        table.add_row(each["name"], _text(a), _text(b), change, explained, larger)
    if len(changes) > _MOST:
        table.add_row(f"and {len(changes) - _MOST:,} more", *[""] * 5)
    return table


def _verdict(found: Mapping[str, Any]) -> str:
    known = sum(change["larger"] is not None for change in found["answers"])
    if not known:
        return "No figure that both have comes with an error, so it is not known what noise explains."
    alone = [f"{found[f'only_{side}']:,} only in {side.upper()}" for side in "ab" if found[f"only_{side}"]]
    more = f" Figures {' and '.join(alone)} are not compared." if alone else ""
    drawn = " Each run draws anew which rows of a unit count: counts allow for it, of others it is not known."
    near = [each["name"] for each in found["answers"] if each["larger"] is False]
    wide = [name for name in near if name in found["without_variance"]]
    widest = _WIDEST.format(", ".join(wide[:3]) + (", ..." if len(wide) > 3 else "")) if wide else ""
    groups = found.get("groups", [""])
    verb = "changed" if len(set(groups)) == 1 and not found["sampled"] else "differ"
    explain = "noise and sampling explain" if found["sampled"] else "noise explains"
    changed = f"{found['larger']:,} of {known:,} figures {verb} by more than {explain}."
    if known < len(found["answers"]):
        changed += f" Of {len(found['answers']) - known:,} more it is not known."
    if not found["alike"]:
        other = "But the jobs ask for different things, so figures of the same rows may differ, too."
        return f"{changed} {other}{widest}{more}"
    if found["sampled"]:
        return f"{changed} {_SAMPLES}{widest}{more}"
    if len(set(groups)) == 2:
        kept = _KEPT if found["drawn_anew"] else ""
        return f"{changed} {_EQUAL_GROUPS}{kept}{more}"
    return (
        f"{changed} On the same rows none does, except with a probability of 5%, or where a promise of A or "
        f"B fails.{drawn if found['drawn_anew'] else ''}{more}"
    )


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return number(value) if isinstance(value, int | float) else str(value)
