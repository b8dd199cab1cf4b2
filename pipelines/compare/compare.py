"""Compare two jobs, two releases or two groups: what they ask for, what is planned, and what came out.

A change of a figure is larger than noise explains if hardly any two releases of the same rows differ so much:

- By standard errors s and t the limit is z sqrt(s^2 + t^2). For m such figures z is ln(m / 0.05) / sqrt(2),
  which is above 2. A sum of two Laplace variables exceeds z standard deviations with probability at most
  exp(-sqrt(2) z) from z = 1.7 on, and so does a normal variable. So by noise alone no figure exceeds its
  limit, with probability 95%.
- By promised bounds the limit is their sum, and intervals must not meet. By noise alone that happens only
  where a promise of one of the releases fails.

Where each run draws anew which rows of a unit count (`keep: one`, or contributions), that changes figures,
too; see `pipelines.compare.estimates.drawn_anew`. Counts allow for it. Of other figures it is not known.

Two groups of one release have noise of their own each, so the same limits hold for the difference of their
figures. Both are those of the rows that this run kept. The limits are for two groups that are named without
a look at their figures: among many, the highest and the lowest differ by more.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from pipelines.answers.text import number
from pipelines.compare.estimates import Estimate, Value, estimates, most_of_unit
from pipelines.errors import JobError
from pipelines.job.job import load_job
from pipelines.job.questions import QUESTIONS
from pipelines.joint_plan import planned_as
from pipelines.joint_release import answers_of, read_answer_rows
from pipelines.plan import grouped
from pipelines.release import RELEASE, as_the_run_wrote_it, parse_release, read_rows
from pipelines.storage.locate import absolute, open_file, open_folder

_CHANCE = 0.05

_MOST = 40
"""Most changes that a terminal shows."""

_ALLOWED = f"give a job file, a {RELEASE} or the folder of a release"

_ALLOWED_GROUPS = f"give a {RELEASE} or the folder of a release"

_SHOWN = 5
"""Groups that an error names."""

_EQUAL_GROUPS = (
    "If both groups had the same true figures none would, except with a probability of 5%, or where a "
    "promise of A or B fails. This holds for two groups that were named without a look at their figures. It "
    "is about the rows of the data: what other rows of such groups would be like, noise does not tell."
)
_KEPT = (
    " The figures are those of the rows that count of each unit, which may be a smaller part of one group "
    "than of the other."
)

_ASKED = ("task", "rows", "domain", "group_by", "contributions", "params")
_ALIKE = (
    "privacy.epsilon",
    "privacy.delta",
    "privacy.neighbors",
    "params.method",
    "params.failure",
    "params.parts",
)
"""What two jobs that ask for the same of the same rows may differ in."""

_BUDGET = ("epsilon", "delta", "neighbors", "unit", "count", "keep", "order", "policy")


@dataclass(frozen=True)
class Side:
    """A job or a release.

    Args:
        path: where it is.
        asked: what each question asks for, by dotted key; a job of one question has it by an empty name.
        planned: what was planned for each question, by what it is.
        figures: of each question; None for a job.
        drawn: whether, in any question, each run draws anew which rows of a unit count.
        group: the key of the only group whose figures are compared, or None.
    """

    path: str
    asked: Mapping[str, Mapping[str, Any]]
    planned: Mapping[str, Mapping[str, Any]]
    figures: Mapping[str, Sequence[Estimate]] | None = None
    drawn: bool = False
    group: str | None = None

    @classmethod
    def of(
        cls,
        path: str,
        questions: Mapping[str, Mapping[str, Any]],
        figures: Mapping[str, Sequence[Estimate]] | None = None,
    ) -> "Side":
        """Return a side; `questions` has the plan or the answer of each question as values."""
        asked = {name: _asked(described) for name, described in questions.items()}
        drawn = any(most_of_unit(each) is not None for each in questions.values())
        return cls(path, asked, {name: _planned(each) for name, each in questions.items()}, figures, drawn)


@dataclass(frozen=True)
class Change:
    """A figure in two releases.

    Args:
        name: of the figure, after the name of the question.
        before: its value in the first.
        after: its value in the second.
        limit: the largest change that noise explains; None where no such limit is known.
        larger: whether the change is larger than noise explains; None where that is not known.
    """

    name: str
    before: Value
    after: Value
    limit: float | None
    larger: bool | None


def read_sides(a: str, b: str | None, groups: tuple[str, str] | None) -> tuple[Side, Side]:
    """Return what is compared: two jobs or releases, or one group of each of two releases, or of one.

    Args:
        a: where the first one is.
        b: where the second one is; None with groups of one release.
        groups: their keys as answers show them, or None.

    Raises:
        JobError: one of these is not there.
    """
    if groups is None:
        if b is None:
            raise JobError("B is missing: give a second job or release, or --groups with two groups of A.")
        return read_side(a), read_side(b)
    alone = b is None or _place(a) == _place(b)
    if alone and groups[0] == groups[1]:
        raise JobError(f"--groups has {groups[0]} twice: give two groups of {a}, or a second release.")
    one = read_side(a, of_kept=alone)
    other = one if b is None else read_side(b, of_kept=alone)
    return _of_group(one, groups[0]), _of_group(other, groups[1])


def _place(path: str) -> str:
    """Return the folder of a release."""
    return absolute(path).removesuffix(f"/{RELEASE}").rstrip("/")


def _of_group(side: Side, key: str) -> Side:
    """Return a side with the figures of one group."""
    if side.figures is None:
        raise JobError(f"{side.path} is a job, and --groups compares groups of releases: {_ALLOWED_GROUPS}.")
    keys = dict.fromkeys(
        each.group for its in side.figures.values() for each in its if each.group is not None
    )
    if key not in keys:
        some = ", ".join(list(keys)[:_SHOWN])
        there = f"it has {len(keys):,}, such as {some}" if keys else "none of its figures is that of a group"
        raise JobError(f"--groups: {side.path} has no group {key}; {there}.")
    figures = {
        name: [replace(each, group=None) for each in its if each.group == key]
        for name, its in side.figures.items()
    }
    return replace(side, figures=figures, group=key)


def read_side(path: str, of_kept: bool = False) -> Side:
    """Return the job or the release at `path`: a job file, a release.json, or the folder of a release.

    Args:
        path: where it is.
        of_kept: see `estimates`.

    Raises:
        JobError: it is neither, or the job cannot be planned.
    """
    folder = open_folder(_place(path))
    data = folder.read(RELEASE)
    if data is None:
        if os.path.isdir(path):
            raise JobError(f"{path} has no {RELEASE}, so it is not a release: {_ALLOWED}.")
        place, name = open_file(path)
        if place.size(name) is None:
            raise JobError(
                f"There is neither a job file {path} nor a release {folder.locate(RELEASE)}: {_ALLOWED}."
            )
        try:
            described = planned_as(load_job(path))[1]
        except JobError as error:  # which of the two it is about
            raise JobError(*(text if path in text else f"{path}: {text}" for text in error.args)) from None
        return Side.of(path, described.get(QUESTIONS) or {"": described})
    release = parse_release(data, folder.locate(RELEASE))
    with as_the_run_wrote_it(folder.locate(RELEASE)):
        if release["task"] != QUESTIONS:
            return Side.of(path, {"": release}, {"": estimates(release, read_rows(folder, release), of_kept)})
        answers, rows = answers_of(release), read_answer_rows(folder, release)
        figures = {name: estimates(one, rows[name], of_kept) for name, one in answers.items()}
        return Side.of(path, answers, figures)


def compare(one: Side, other: Side) -> dict[str, Any]:
    """Return the differences of two sides as JSON values: `job`, `plan`, and of releases `answers`."""
    found: dict[str, Any] = {"a": one.path, "b": other.path, "job": [], "plan": []}
    if one.group is not None:
        found["groups"] = [one.group, other.group]
    alike = True
    for name in dict.fromkeys((*one.asked, *other.asked)):
        if name not in one.asked or name not in other.asked:
            there = ["asked" if name in side.asked else "absent" for side in (one, other)]
            found["job"].append({"name": name, "a": there[0], "b": there[1]})
            continue
        a, b = one.asked[name], other.asked[name]
        found["job"] += _differences(name, a, b)
        alike = alike and all(a.get(key) == b.get(key) for key in {*a, *b} if key not in _ALIKE)
        found["plan"] += _differences(name, one.planned[name], other.planned[name])
    if one.figures is None or other.figures is None:
        return found
    with as_the_run_wrote_it(f"{one.path} or {other.path}"):
        changes, alone = _changes(one.figures, other.figures)
    return {
        **found,
        "answers": [vars(change) for change in changes],
        "only_a": alone[0],
        "only_b": alone[1],
        "larger": sum(change.larger is True for change in changes),
        "drawn_anew": one.drawn or other.drawn,
        "alike": alike,
    }


def _asked(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a job asks for, by dotted key; null is a key that is left out."""
    privacy = {key: described["privacy"].get(key) for key in _BUDGET}
    return _flat({**{key: described.get(key) for key in _ASKED}, "privacy": privacy})


def _planned(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was planned: the method, what is spent and promised, and the noise of each draw."""
    noise: dict[str, Any] = {}
    for draw, times in grouped(described["mechanisms"]):
        name = f"noise of {draw['round']}, {draw['mechanism']}"
        text = f"{number(draw['scale'])}{f' × {times}' if times > 1 else ''}"
        noise[name] = f"{noise[name]}; {text}" if name in noise else text
    promises = {f"promised {key}": value for key, value in described["accuracy"]["promises"].items()}
    spent = {key: described["privacy"][key] for key in ("spent", "accountant")}
    return {"method": described["method"], **spent, **promises, **noise}


def _flat(value: Any, above: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {} if value is None or value in ([], {}) else {above: value}
    return {
        name: item
        for key, inner in value.items()
        for name, item in _flat(inner, f"{above}.{key}".lstrip(".")).items()
    }


def _differences(question: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in dict.fromkeys((*a, *b)):
        if a.get(key) != b.get(key):
            name = f"{question}: {key}" if question else key
            yield {"name": name, "a": a.get(key), "b": b.get(key)}


def _changes(
    one: Mapping[str, Sequence[Estimate]], other: Mapping[str, Sequence[Estimate]]
) -> tuple[list[Change], tuple[int, int]]:
    """Return the changes of all figures that both have, and how many only one of them has."""
    first, second = _named(one), _named(other)
    both = [name for name in first if name in second]
    by_errors = sum(first[name].error is not None and second[name].error is not None for name in both)
    changes = [_change(name, first[name], second[name], by_errors) for name in both]
    return changes, (len(first) - len(both), len(second) - len(both))


def _named(figures: Mapping[str, Sequence[Estimate]]) -> dict[str, Estimate]:
    return {
        f"{question}: {each.label}" if question else each.label: each
        for question, its in figures.items()
        for each in its
    }


def _change(name: str, a: Estimate, b: Estimate, figures: int) -> Change:
    """Return a change, and whether it is larger than noise explains; see the module."""
    if a.interval is not None and b.interval is not None:
        (low, high), (other_low, other_high) = a.interval, b.interval
        if type(low) is type(other_low) or not (isinstance(low, str) or isinstance(other_low, str)):
            apart: bool = high < other_low or other_high < low  # type: ignore[operator]
            return Change(name, a.value, b.value, None, apart)
    limit = _limit(a, b, figures)
    if limit is None or isinstance(a.value, str) or isinstance(b.value, str):
        return Change(name, a.value, b.value, None, None)
    return Change(name, a.value, b.value, limit, abs(b.value - a.value) > limit)


def _limit(a: Estimate, b: Estimate, figures: int) -> float | None:
    if a.error is not None and b.error is not None:
        errors = math.log(max(1, figures) / _CHANCE) / math.sqrt(2)
        return errors * math.hypot(a.error, b.error)
    if a.bound is not None and b.bound is not None:
        return float(a.bound + b.bound)
    return None


def show_comparison(found: Mapping[str, Any], console: Console) -> None:
    """Print what `compare` returned."""
    groups = found.get("groups", [])
    for name, group in zip_longest("AB", groups):
        which = "" if group is None else f", group {group}"
        console.print(f"{name}: {found[name.lower()]}{which}", soft_wrap=True)
    for section, same in (("job", "The jobs ask for the same."), ("plan", "The plans are the same.")):
        if found[section]:
            console.print(_table(section, found[section]))
        else:
            console.print(same)
    if "answers" not in found:
        return
    if found["answers"]:
        console.print(_answers(found["answers"]))
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


def _answers(changes: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("answer", "A", "B", "change", "noise explains up to", "larger"):
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
    groups = found.get("groups", [""])
    verb = "changed" if len(set(groups)) == 1 else "differ"
    changed = f"{found['larger']:,} of {known:,} figures {verb} by more than noise explains."
    if not found["alike"]:
        other = "But the jobs ask for different things, so figures of the same rows may differ, too."
        return f"{changed} {other}{more}"
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
