"""Find the smallest value of a key of a job at which a promise is as good as is asked.

Plans are made from public parameters alone, so a search over them reads no row and spends nothing.

A promise of one method gets better as epsilon grows, but that of a plan does not always: where `method` is
auto, methods are compared by a figure that may be another one than the promise, so the chosen method may
change to one that promises less. So there are two searches. Call a value *possible* where some method
promises what is asked for, and *enough* where the chosen one does.

1. The smallest possible value. What one method promises is nearly monotone in epsilon, so bisection finds it;
   values that are 1, 2, 4, 8, ... and 3, 6, 9, ... up to 48 places below it are tried, too, and if one of
   them is possible, the search begins there again. In a target or a number of blocks a promise may be good
   in a certain range alone. There every fourth value is tried in ascending order up to a possible one, and
   then those before it.
2. From there on every value is tried, up to the first one that is enough.

Values are those of a list in which each is at most 5% above the one before it, or 1 above it for whole
numbers. So the value that is found is at most 5% above the smallest real one, or is the smallest whole
number up to 40. A range of good values below bad ones may be missed, if it has fewer than three values or
is more than 48 places below a good one.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from core.nearest import meant, nearest
from pipelines.answers.text import number
from pipelines.errors import JobError
from pipelines.figures import UNITS, Question, find_question, plan_raw
from pipelines.job.text import set_key
from pipelines.tasks import TASKS

_EPSILON = "privacy.epsilon"
_SOLVED: Mapping[str, tuple[float, float, bool]] = {
    _EPSILON: (1e-6, 100, False),
    "params.target": (1, 10**9, True),
    "params.blocks": (3, 10_000, True),
}
"""Keys that can be solved for: the smallest and the largest value that is tried, and whether it is whole."""

_STRIDE = 4
_MANTISSAS = [
    *(1 + 0.05 * i for i in range(20)),
    *(2 + 0.1 * i for i in range(30)),
    *(5 + 0.2 * i for i in range(25)),
]


@dataclass(frozen=True)
class Solved:
    """The smallest value that is enough.

    Args:
        key: the key of the job.
        value: its value.
        promise: name of the promise.
        most: what the promise was to be at most.
        promised: what it is at the value.
        says: all of it in a sentence.
    """

    key: str
    value: float
    promise: str
    most: float
    promised: float
    says: str


def solve(raw: Mapping[str, Any], key: str, promise: str, most: str) -> tuple[dict[str, Any], Solved]:
    """Return a job with the smallest value of `key` at which `promise` is at most `most`, and that value.

    Args:
        raw: the job as a mapping. It may have no value of the key yet.
        key: a dotted key, `privacy.epsilon`, `params.target` or `params.blocks`; in a job of several
            questions `questions.NAME.params.target`.
        promise: the name of a promise; in a job of several questions `NAME.rank_error`.
        most: the largest value that it may have, as text: a number, or a duration where it is a distance
            between dates.

    Raises:
        JobError: the job cannot be planned at any value, the key or the promise is unknown, or no value is
            enough.
    """
    values = _values(key)
    refusals: list[JobError] = []

    @cache
    def planned(place: int) -> list[Question] | None:
        try:
            return plan_raw(set_key(raw, key, values[place]))
        except JobError as error:
            refusals.append(error)
            return None

    start = _start(raw, key, values, planned)
    if start is None:
        raise refusals[0]
    question = find_question(planned(start) or [], promise)
    limit = question.read(promise, most)

    @cache
    def figure(place: int) -> float | None:
        found = planned(place)
        return None if found is None else find_question(found, promise).figures()[promise]

    def enough(place: int) -> bool:
        promised = figure(place)
        return promised is not None and promised <= limit

    @cache
    def possible(place: int) -> bool:
        found = planned(place)
        return found is not None and (enough(place) or bool(_methods(found, promise, limit)))

    search = _first if key == _EPSILON else _first_in_order
    first = search(possible, start, len(values))
    place = None if first is None else next((i for i in range(first, len(values)) if enough(i)), None)
    shown = question.shown(promise, limit)
    unit = UNITS.get(promise.rpartition(".")[2])
    counted_in = "" if unit is None else f" ({unit})"
    if place is None:
        tries = [*_tries(start, len(values)), len(values) - 1]
        best = [(found, i) for i in tries if (found := figure(i)) is not None]
        tried = f"{key}: no value from {number(values[0])} to {number(values[-1])}"
        said = f"{tried} promises {promise} at most {shown}"
        if not best:
            raise JobError(f"{said}, because nothing is promised about it at the values that were tried.")
        least, at = min(best)
        near = f"at {number(values[at])} it is {question.shown(promise, least)}"
        raise JobError(f"{said}; {near}, the smallest that was found{counted_in}.")
    promised = figure(place) or 0.0
    less = figure(place - 1) if place else None
    says = f"{key} is {number(values[place])}, the smallest value that was found to promise {promise} at "
    says += f"most {shown}: it promises {question.shown(promise, promised)}"
    if place and planned(place - 1) is not None:
        says += f", and {number(values[place - 1])} promises {question.shown(promise, less)}"
    says += f"{counted_in}."
    if first is not None and first < place:
        method = _methods(planned(first) or [], promise, limit)[0]
        key_of_method = f"params.{TASKS[question.job.task].core.choice}"
        chooses = f"questions.{question.name}.{key_of_method}" if question.name else key_of_method
        says += f" With {chooses}: {method}, which auto does not choose, {number(values[first])} is enough."
    solved = Solved(key, values[place], promise, limit, promised, says)
    return set_key(raw, key, values[place]), solved


def _values(key: str) -> list[Any]:
    """Return the values of a key that are tried, ascending.

    Raises:
        JobError: the key cannot be solved for.
    """
    inside = key.startswith("questions.") and key.count(".") > 2
    own = next((each for each in _SOLVED if inside and key.endswith(f".{each}")), key)
    if own not in _SOLVED or (own != key and own == _EPSILON):
        close = meant(nearest(key, _SOLVED))
        raise JobError(f"--solve {key}{close}: it must be {', '.join([*_SOLVED][:-1])} or {[*_SOLVED][-1]}.")
    low, high, whole = _SOLVED[own]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found = [float(f"{each:.3g}e{power}") for power in range(first, last + 1) for each in _MANTISSAS]
    if whole:
        found = [*range(1, 41), *(round(value) for value in found)]
    return [value for value in sorted(set(found)) if low <= value <= high]


def _start(
    raw: Mapping[str, Any], key: str, values: list[Any], planned: Callable[[int], object]
) -> int | None:
    """Return the place of the job's own value, or of another one at which the job can be planned."""
    part: Any = raw
    for name in key.split("."):
        part = part.get(name) if isinstance(part, Mapping) else None
    known = isinstance(part, int | float) and not isinstance(part, bool)
    tries = []
    if known:  # by its ratio to each value; one that no job may have, such as .inf, is the nearer end
        near = min(max(part, values[0]), values[-1])
        tries = [min(range(len(values)), key=lambda i: abs(math.log(values[i] / near)))]
    return next((i for i in [*tries, *_tries(len(values) // 2, len(values))] if planned(i) is not None), None)


def _tries(start: int, count: int) -> list[int]:
    """Return places that are 0, 1, 2, 4, 8, ... away from a start on both sides."""
    away = [0, *(1 << i for i in range(count.bit_length()))]
    return [i for step in away for i in dict.fromkeys((start + step, start - step)) if 0 <= i < count]


def _methods(planned: list[Question], promise: str, limit: float) -> list[str]:
    """Return the methods that auto might take and does not, but that keep the promise."""
    question = find_question(planned, promise)
    chosen = question.plan.chosen
    if chosen is not None and chosen.asked is not None:
        return []
    found = {name: question.figures(each)[promise] for name, each in question.plan.alternatives.items()}
    return [name for name, value in found.items() if value is not None and value <= limit]


def _first(possible: Callable[[int], bool], start: int, count: int) -> int | None:
    """Return the first place that is possible, where all after it are; None if none is found."""
    up = (i for i in [start, *_above(start, count)] if possible(i))
    high = next(up, None)
    if high is None:
        return None
    while True:
        below = next((i for i in _below(high) if possible(i)), None)
        if below is None:
            return high
        low = next((i for i in _below(below) if not possible(i)), -1)
        high = below
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if possible(middle) else (middle, high)


def _first_in_order(possible: Callable[[int], bool], start: int, count: int) -> int | None:
    """Return the first place that is possible, unless fewer than `_STRIDE` are; None if none is found."""
    found = next((i for i in [*range(0, count, _STRIDE), count - 1] if possible(i)), None)
    if found is None:
        return None
    return next(i for i in range(max(0, found - _STRIDE), found + 1) if possible(i))


def _above(place: int, count: int) -> list[int]:
    steps = (place + (1 << i) for i in range(count.bit_length()))
    return [*(i for i in steps if i < count - 1), *([count - 1] if place < count - 1 else [])]


def _below(place: int) -> list[int]:
    away = {*(1 << step for step in range(place.bit_length())), *range(3, 49, 3)}
    return [place - step for step in sorted(away) if step <= place]
