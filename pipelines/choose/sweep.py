"""Plan a job at several values of one key, and compare what is promised with what is typical.

Where rows are made up as well, what is typical is measured: the median of the errors of some runs, with a
band that holds 8 in 10 of them. Else it is stated by the plan, for those promises that have such a figure.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.nearest import meant, nearest
from pipelines.errors import JobError, quoted
from pipelines.figures import TYPICAL, Question, find_question, plan_raw
from pipelines.job.keys import Key, keys_of_task
from pipelines.job.questions import QUESTIONS
from pipelines.job.text import set_key
from pipelines.simulation.made_up import MadeUp

POINTS = 13
"""Values at which a job is planned."""

_RANGE = re.compile(r"([\w.-]+)=([^=]+?)\.\.([^=]+)")
_WIDE = 3.0
"""A range is cut into equal ratios if its end is so many times its beginning."""


@dataclass(frozen=True)
class Swept:
    """A range of values of a key.

    Args:
        key: the dotted key.
        values: ascending.
    """

    key: str
    values: Sequence[float]

    @property
    def wide(self) -> bool:
        """Whether its values are in equal ratios, and not in equal distances."""
        return self.values[0] > 0 and self.values[-1] >= _WIDE * self.values[0]


@dataclass(frozen=True)
class Figure:
    """A promise at one value.

    Args:
        promised: its value; None where nothing is promised.
        typical: how large the error is as a rule; None where that is not known.
        low: of the errors in runs on made-up rows, 1 in 10 is below this; None without such runs.
        high: and 1 in 10 is above this.
    """

    promised: float | None
    typical: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def shown(self) -> list[float]:
        """All of them that are known and finite."""
        every = (self.promised, self.typical, self.low, self.high)
        return [value for value in every if value is not None and math.isfinite(value)]


@dataclass(frozen=True)
class Point:
    """A plan at one value.

    Args:
        value: of the key.
        methods: the method of each question.
        figures: the promises by name.
        refused: why there is no plan; None where there is one.
    """

    value: float
    methods: Sequence[str] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    refused: str | None = None


@dataclass(frozen=True)
class Curve:
    """What a sweep gave.

    Args:
        swept: the values.
        points: a plan for each.
        drawn: the promises that are drawn, at least one.
        failures: the probability with which each of them may fail.
        texts: for each of them, a planned question, which knows how to show it.
        made_up: the rows on which errors were measured; None where they were not.
    """

    swept: Swept
    points: Sequence[Point]
    drawn: Sequence[str]
    failures: Mapping[str, float]
    texts: Mapping[str, Question]
    made_up: MadeUp | None = None

    def text(self, name: str, value: float | None) -> str:
        """Return a figure of a promise as text."""
        if value is not None and math.isinf(value):
            return "not found"
        return self.texts[name].shown(name, value)


def parse_sweep(text: str, raw: Mapping[str, Any]) -> Swept:
    """Return what a text such as `privacy.epsilon=0.1..3` asks for.

    Raises:
        JobError: it is not KEY=LOW..HIGH, or the key has no numbers.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise JobError(f"--sweep {quoted(text)}: give KEY=LOW..HIGH, such as privacy.epsilon=0.1..3.")
    key, whole = match[1], _is_whole(match[1], raw)
    try:
        low, high = float(match[2]), float(match[3])
    except ValueError:
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        raise JobError(
            f"--sweep {quoted(text)}: {match[2]} and {match[3]} must be two numbers, the lower one first."
        )
    wide = Swept(key, (low, high)).wide
    spread = np.geomspace(low, high, POINTS) if wide else np.linspace(low, high, POINTS)
    if whole:
        return Swept(key, sorted({round(value) for value in spread.tolist()}))
    between = [float(f"{value:.3g}") for value in spread.tolist()[1:-1]]
    return Swept(key, sorted({low, *between, high}))


def _is_whole(name: str, raw: Mapping[str, Any]) -> bool:
    """Return whether a key has whole numbers.

    Raises:
        JobError: it is unknown, or has no numbers.
    """
    own, task = name, raw.get("task")
    asked = raw.get(QUESTIONS)
    if isinstance(asked, Mapping) and name.startswith(f"{QUESTIONS}."):
        fitting = [str(each) for each in asked if name.startswith(f"{QUESTIONS}.{each}.")]
        question = max(fitting, key=len, default="")  # a name may have dots
        own, its = name.removeprefix(f"{QUESTIONS}.{question}."), asked.get(question)
        task = its.get("task") if isinstance(its, Mapping) else None
    numbers = {"number": False, "whole number": True}
    known = {
        key.name: numbers[kind]
        for key in _every(keys_of_task("histogram" if task is None else str(task)))
        for kind in key.kind.split(" or ")[:1]
        if kind in numbers
    }
    if own not in known:
        close = meant(nearest(own, known))
        raise JobError(f"--sweep {name}{close}: its keys are those that have numbers, {', '.join(known)}.")
    return known[own]


def _every(keys: Sequence[Key]) -> list[Key]:
    return [each for key in keys for each in (key, *_every(key.parts))]


def sweep(
    raw: Mapping[str, Any], swept: Swept, promise: str | None = None, made_up: MadeUp | None = None
) -> Curve:
    """Plan a job at every value.

    Args:
        raw: the job as a mapping.
        swept: the key and its values.
        promise: the promise to draw; by default all that have a value somewhere.
        made_up: rows to measure errors on; None for none.

    Raises:
        JobError: the job cannot be planned at any of the values, or has no such promise.
    """
    points, planned, refusal = [], [], None
    for value in swept.values:
        try:
            found = plan_raw(set_key(raw, swept.key, value))
            points.append(Point(value, [each.plan.method for each in found], _figures(found, made_up)))
            planned.append(found)
        except JobError as error:
            refusal = refusal or error
            points.append(Point(value, refused=str(error).partition("\n")[0]))
    if not planned:
        raise refusal or JobError("nothing was planned.")
    last = planned[-1]
    named = dict.fromkeys(name for point in points for name in point.figures)
    shown = [point for point in points if point.figures]
    known = [name for name in named if any(point.figures[name].shown for point in shown)]
    if promise is not None:
        find_question(last, promise)
        known = [promise] if promise in known else []
    if not known:
        what = "nothing is" if promise is None else f"{promise} is not"
        raise JobError(f"--sweep {swept.key}: {what} promised at any of these values.")
    texts = {name: find_question(last, name) for name in known}
    failures = {name: question.failure for name, question in texts.items()}
    return Curve(swept, points, known, failures, texts, made_up)


def _figures(planned: Sequence[Question], made_up: MadeUp | None) -> dict[str, Figure]:
    """Return the promises of all questions, each with what is typical."""
    found: dict[str, Figure] = {}
    for question in planned:
        values = question.figures()
        stated = {question.named(name): values.get(question.named(of)) for name, of in TYPICAL.items()}
        beside = {question.named(name) for name in TYPICAL.values()}
        found |= {
            name: Figure(value, stated.get(name)) for name, value in values.items() if name not in beside
        }
        if made_up is not None:
            from pipelines.simulation.simulate import simulate  # needs the measures of all tasks

            for each in simulate(question, made_up).figures:
                name = question.named(each.promise)
                scale = (values[name] or 1.0) if each.each_axis else 1.0
                low, middle, high = (scale * value for value in (each.least, each.median, each.most))
                found[name] = Figure(values[name], middle, low, high)
    return found
