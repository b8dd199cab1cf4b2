"""Compare two jobs, two releases or two groups: what they ask for, what is planned, and what came out.

A change of a figure is larger than noise explains if hardly any two releases of the same rows differ so much:

- By standard errors s and t the limit is z sqrt(s^2 + t^2). For m such figures z is ln(m / 0.05) / sqrt(2),
  which is above 2. A sum of two Laplace variables exceeds z standard deviations with probability at most
  exp(-sqrt(2) z) from z = 1.7 on, and so does a normal variable. So by noise alone no figure exceeds its
  limit, with probability 95%.
- Noise is whole numbers. Where its standard deviation is near 1 or below, single steps are many deviations.
  So a limit is at least what one discrete Laplace variable of the deviation of both exceeds with probability
  0.05 / m; below 1, of a moment 0.05 / (3 m), because it may have three draws, each of which is mostly 0.
- By promised bounds the limit is their sum, and intervals must not meet. By noise alone that happens only
  where a promise of one of the releases fails.

Where each run draws anew which rows of a unit count (`keep: one`, or contributions), that changes figures,
too; see `pipelines.compare.estimate.drawn_anew`. Counts allow for it. Of other figures it is not known.

With `sampled` the rows of both sides are taken for independent samples, and errors are from the figures of
all people of whom they are samples; see `pipelines.compare.estimate.sampled`.

Two groups of one release have noise of their own each, so the same limits hold for the difference of their
figures. Both are those of the rows that this run kept. The limits are for two groups that are named without
a look at their figures: among many, the highest and the lowest differ by more.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from core.mechanisms.tails import largest_of
from pipelines.answers.answer import Rows
from pipelines.answers.text import number
from pipelines.compare.estimate import KEPT, RUNS, SAMPLED, Estimate, Value, most_of_unit
from pipelines.compare.estimates import estimates, groups_of
from pipelines.errors import JobError
from pipelines.job.job import load_job
from pipelines.job.questions import QUESTIONS
from pipelines.joint_plan import planned_as
from pipelines.joint_release import answers_of, read_answer_rows
from pipelines.plan import grouped
from pipelines.release import RELEASE, as_the_run_wrote_it, parse_release, read_rows
from pipelines.storage.locate import absolute, open_file, open_folder

_CHANCE = 0.05

_DRAWS = 3
"""Most draws of noise that a moment is made of: numbers of rows, sums and sums of squares."""

_ALLOWED = f"give a job file, a {RELEASE} or the folder of a release"

_ALLOWED_GROUPS = f"give a {RELEASE} or the folder of a release"

_SHOWN = 5
"""Groups that an error names."""

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
        groups: keys of the groups of each question, where those of one are asked for.
        group: the key of the only group whose figures are compared, or None.
        sampled: whether errors are from the figures of all people of whom the rows are a sample.
    """

    path: str
    asked: Mapping[str, Mapping[str, Any]]
    planned: Mapping[str, Mapping[str, Any]]
    figures: Mapping[str, Sequence[Estimate]] | None = None
    drawn: bool = False
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    group: str | None = None
    sampled: bool = False

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


def read_sides(
    a: str, b: str | None, groups: tuple[str, str] | None, sampled: bool = False
) -> tuple[Side, Side]:
    """Return what is compared: two jobs or releases, or one group of each of two releases, or of one.

    Args:
        a: where the first one is.
        b: where the second one is; None with groups of one release.
        groups: their keys as answers show them, or None.
        sampled: whether the rows of each are taken for an independent sample.

    Raises:
        JobError: one of these is not there, or a job is taken for a sample.
    """
    if groups is None:
        if b is None:
            raise JobError("B is missing: give a second job or release, or --groups with two groups of A.")
        if not sampled:
            return read_side(a), read_side(b)
        sides = read_side(a, SAMPLED), read_side(b, SAMPLED)
        for side in sides:
            if side.figures is None:
                raise JobError(f"{side.path} is a job, and --sampled compares releases: {_ALLOWED_GROUPS}.")
        return sides
    alone = b is None or _place(a) == _place(b)
    if alone and groups[0] == groups[1]:
        raise JobError(f"--groups has {groups[0]} twice: give two groups of {a}, or a second release.")
    of = SAMPLED if sampled else KEPT if alone else RUNS
    one = read_side(a, of, by_group=True)
    other = one if b is None else read_side(b, of, by_group=True)
    return _of_group(one, groups[0]), _of_group(other, groups[1])


def _place(path: str) -> str:
    """Return the folder of a release."""
    return absolute(path).removesuffix(f"/{RELEASE}").rstrip("/")


def _of_group(side: Side, key: str) -> Side:
    """Return a side with the figures of one group."""
    if side.figures is None:
        raise JobError(f"{side.path} is a job, and --groups compares groups of releases: {_ALLOWED_GROUPS}.")
    counted = [Counter(keys) for keys in side.groups.values()]
    every = dict.fromkeys(chain.from_iterable(counted))
    if key not in every:
        some = ", ".join(json.dumps(each, ensure_ascii=False) for each in list(every)[:_SHOWN])
        there = f"it has {len(every):,}, such as {some}" if every else "it has no groups"
        raise JobError(f'--groups: {side.path} has no group "{key}"; {there}.')
    if max(keys[key] for keys in counted) > 1:
        raise JobError(f'--groups: "{key}" is the text of several groups of {side.path}: name others.')
    figures = {
        name: [replace(each, group=None) for each in its if each.group == key]
        for name, its in side.figures.items()
    }
    return replace(side, figures=figures, group=key)


def read_side(path: str, of: str = RUNS, by_group: bool = False) -> Side:
    """Return the job or the release at `path`: a job file, a release.json, or the folder of a release.

    Args:
        path: where it is.
        of: what errors are from; see `estimates`.
        by_group: whether groups are asked for.

    Raises:
        JobError: it is neither, the job cannot be planned, or not all groups can be read.
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
        if by_group and release.get("table"):
            raise JobError(
                f"--groups: the table of {path} is in parts, of which only the largest groups are read here."
            )
        answers: Mapping[str, Any] = {"": release}
        rows: Mapping[str, Rows] = {}
        if release["task"] == QUESTIONS:
            answers, rows = answers_of(release), read_answer_rows(folder, release)
        else:
            rows = {"": read_rows(folder, release)}
        figures = {name: estimates(one, rows[name], of) for name, one in answers.items()}
        side = Side.of(path, answers, figures)
        keys = {name: groups_of(one, rows[name]) for name, one in answers.items()} if by_group else {}
        return replace(side, groups=keys, sampled=of == SAMPLED)


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
        "sampled": one.sampled,
        "without_variance": _without_variance(one.figures, other.figures),
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


def _without_variance(*sides: Mapping[str, Sequence[Estimate]]) -> list[str]:
    """Return the figures of which some side's error would be smaller with a released variance."""
    named = [_named(side) for side in sides]
    return [name for name in named[0] if any(name in side and side[name].widest for side in named)]


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
        chance, deviation = _CHANCE / max(1, figures), math.hypot(a.error, b.error)
        limit = -math.log(chance) / math.sqrt(2) * deviation
        one = max(each.one or 0.0 for each in (a, b))
        if not one or not deviation:
            return limit
        draws = 1 if a.counts or deviation >= one else _DRAWS
        return max(limit, one * _whole(deviation / one, chance / draws))
    if a.bound is not None and b.bound is not None:
        return float(a.bound + b.bound)
    return None


def _whole(deviation: float, chance: float) -> int:
    """Return what discrete Laplace noise of this standard deviation exceeds with at most this chance.

    Noise of scale s has the variance V = 2 a / (1 - a)^2, where a = exp(-1 / s).
    """
    square = deviation**2
    return largest_of(1, 1 / math.log1p((1 + math.sqrt(2 * square + 1)) / square), chance)
