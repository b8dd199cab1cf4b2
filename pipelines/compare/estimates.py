"""The figures of an answer with their errors, by name, so that those of two releases can be compared."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from core.draws import Gaussian, Laplace
from core.mechanisms.tails import variance
from core.times import Times
from pipelines.answers.answer import Release, Rows
from pipelines.answers.text import row_key
from pipelines.compare.estimate import (
    KEPT,
    RUNS,
    SAMPLED,
    Estimate,
    Value,
    drawn_anew,
    most_of_unit,
    sampled,
)
from pipelines.grouped_release import answers_by_group


def estimates(release: Release, rows: Rows, of: str = RUNS) -> list[Estimate]:
    """Return the figures of a release of one question.

    Args:
        release: a value as in release.json.
        rows: the columns of its table, if there is one.
        of: what errors are from, `RUNS`, `KEPT` or `SAMPLED`.
    """
    if "groups" in release:
        return [
            replace(each, group=group)
            for group, one, own in answers_by_group(release, rows)
            for each in estimates(one, own, of)
        ]
    if release["result"] is None:
        return []
    found = [each for each in _OF_TASK.get(release["task"], _point)(release, rows) if _is_known(each.value)]
    if of == SAMPLED:
        return sampled(found, release)
    most = most_of_unit(release)
    return found if most is None or of == KEPT else [drawn_anew(each, most) for each in found]


def groups_of(release: Release, rows: Rows) -> list[str]:
    """Return the keys of all groups of a release of one question, also of those without a figure."""
    if "groups" in release:
        return [name for name, _, _ in answers_by_group(release, None)]
    if release["task"] != "statistics" or release.get("group_by") is None or rows is None:
        return []
    return [row_key(release["group_by"], rows, place) for place in range(len(rows[next(iter(rows))]))]


def _is_known(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value))


def _interval(given: Mapping[str, Any]) -> tuple[Value, Value] | None:
    low, high = given.get("low"), given.get("high")
    return None if low is None or high is None else (low, high)


def _columns(release: Release) -> Sequence[str]:
    return tuple(release["domain"]["columns"])


def _promise(release: Release, name: str) -> Any:
    return release["accuracy"]["promises"].get(name)


def _value(release: Release, rows: Rows) -> Iterator[Estimate]:
    """Yield the value of a column, or those of several."""
    several = release["result"].get("columns")
    for name, each in zip(_columns(release), several or [release["result"]], strict=False):
        yield Estimate(f"value of {name}", each["value"], interval=_interval(each))


def _bounds(release: Release, rows: Rows) -> Iterator[Estimate]:
    """Yield both bounds of each column, of which it is not known how far the data go."""
    for name, each in zip(_columns(release), release["result"]["columns"], strict=True):
        for side in ("lower", "upper"):
            yield Estimate(f"{side} bound of {name}", each[side])


def _quantiles(release: Release, rows: Rows) -> Iterator[Estimate]:
    result = release["result"]
    empty = [None] * len(result["values"])
    lows, highs = result.get("lows") or empty, result.get("highs") or empty
    for p, value, low, high in zip(result["probabilities"], result["values"], lows, highs, strict=True):
        yield Estimate(f"quantile {p:.12g}", value, interval=_interval({"low": low, "high": high}))


def _cdf(release: Release, rows: Rows) -> Iterator[Estimate]:
    yield Estimate("rows", release["result"]["total"], bound=_promise(release, "kolmogorov_records"))
    for each in release["result"]["ranges"]:
        name = f"rows from {each['low']} to {each['high']}"
        yield Estimate(name, each["count"], each["standard_error"], counts=True, one=1.0)


def _ranges(release: Release, rows: Rows) -> Iterator[Estimate]:
    for each in release["result"]["ranges"]:
        sides = " by ".join(
            f"{low} to {high}" for low, high in zip(each["lower"], each["upper"], strict=True)
        )
        yield Estimate(f"rows in {sides}", each["count"], interval=(each["low"], each["high"]))


def _histogram(release: Release, rows: Rows) -> Iterator[Estimate]:
    if rows is None:
        return
    axes = range(len(_columns(release)))
    ends = [[_at_points(release, rows[f"{end}_{axis}"], axis) for axis in axes] for end in ("lower", "upper")]
    error = _promise(release, "standard_error")
    for place, count in enumerate(rows["count"].tolist()):
        low, high = (", ".join(str(column[place]) for column in columns) for columns in ends)
        yield Estimate(f"cell from {low} to {high}", count, error, counts=True, one=1.0)


def _at_points(release: Release, ends: Any, axis: int) -> Any:
    """Return ends of cells, at grid points: older releases have those of dates up to a step before."""
    if ends.dtype.kind != "M":
        return ends
    domain = release["domain"]
    times = Times.of(domain["lower"], domain["upper"], domain["step"])
    return times.instants(np.ceil(times.place(ends, axis)), axis)


def _statistics(release: Release, rows: Rows) -> Iterator[Estimate]:
    least = _least_noise(release)
    if release.get("group_by") is None:
        for each in release["result"]["values"]:
            of = "" if each["column"] is None else f" of {_columns(release)[each['column']]}"
            its = (each["measure"], each["column"] or 0)
            name = f"{each['measure']}{of}"
            yield _measure(name, its, each["value"], each["error"], _interval(each), least)
        return
    columns = dict(rows or {})
    measures = [name for name in columns if name not in release["group_by"]["columns"]]
    names = [name.removesuffix("_error") for name in measures if name.endswith("_error")]
    for place in range(len(columns[names[0]]) if names else 0):
        group = row_key(release["group_by"], columns, place)
        for name in names:
            values = {end: columns.get(f"{name}{end}") for end in ("", "_error", "_low", "_high")}
            value, error, low, high = (
                None if each is None else _of_table(each[place]) for each in values.values()
            )
            measure, _, column = name.rpartition("_")
            its = (measure, int(column)) if measure and column.isdigit() else (name, 0)
            yield _measure(name, its, value, error, _interval({"low": low, "high": high}), least, group)


def _of_table(value: Any) -> Any:
    """Return a value of a table as answers have it: a date as text."""
    return str(value) if isinstance(value, np.datetime64) else value.item()


def _measure(
    name: str,
    its: tuple[str, int],
    value: Any,
    error: Any,
    interval: tuple[Value, Value] | None,
    least: float | None,
    group: str | None = None,
) -> Estimate:
    """Return a measure. The error of a quantile or an extreme is of its rank, not of its value.

    Args:
        name: which figure it is.
        its: the measure, and the number of its column.
        value: the figure.
        error: as it was released.
        interval: of a quantile.
        least: the smallest standard deviation of the noises of totals.
        group: the key of its group.
    """
    of_rank = name.startswith(("quantile", "minimum", "maximum"))
    counts = its[0] in ("count", "units")
    if of_rank:
        return Estimate(name, value, None, None, interval, group=group)
    one = 1.0 if counts else error / least if error and least else None
    return Estimate(name, value, error, None, interval, counts, its, group, one=one)


def _least_noise(release: Release) -> float | None:
    """Return the smallest standard deviation of the noises of totals, which are whole numbers."""
    return min(
        (
            math.sqrt(variance(draw["scale"])) if draw["kind"] == Laplace.kind else draw["scale"]
            for draw in release.get("mechanisms", ())
            if draw.get("kind") in (Laplace.kind, Gaussian.kind)
        ),
        default=None,
    )


def _ball(release: Release, rows: Rows) -> Iterator[Estimate]:
    """Yield balls. A count is of its own ball, which another run may find elsewhere, so no error is said."""
    balls = release["result"].get("balls", [release["result"]])
    for number, ball in enumerate(balls, 1):
        which = f" of ball {number}" if "balls" in release["result"] else ""
        yield Estimate(f"count{which}", ball["count"])
        yield Estimate(f"radius{which}", ball["radius"])
        for name, at in zip(_columns(release), ball["center"], strict=True):
            yield Estimate(f"center{which} on {name}", at)


def _centers(release: Release, rows: Rows) -> Iterator[Estimate]:
    """Yield sizes and places. Which center is which is not known, so nothing is said of their errors."""
    for number, (center, count) in enumerate(
        zip(release["result"]["centers"], release["result"]["counts"], strict=True), 1
    ):
        yield Estimate(f"rows of center {number}", count)
        for name, at in zip(_columns(release), center, strict=True):
            yield Estimate(f"center {number} on {name}", at)


def _graph(release: Release, rows: Rows) -> Iterator[Estimate]:
    yield Estimate("value", release["result"]["value"], bound=_promise(release, "error"))


def _point(release: Release, rows: Rows) -> Iterator[Estimate]:
    """Yield the figures of an answer whose error is not promised in their unit."""
    for name, value in release["result"].items():
        yield Estimate(name, value)


def _answers(release: Release, rows: Rows) -> Iterator[Estimate]:
    """Yield the values. Their intervals are of the answers of blocks, which each run chooses anew."""
    for number, value in enumerate(release["result"]["value"]):
        yield Estimate(f"value {number}", value)
    failed = release["result"].get("failed_blocks")
    if failed is not None:
        yield Estimate("blocks without an answer", failed, bound=_promise(release, "failed_error"))


_OF_TASK: Mapping[str, Callable[[Release, Rows], Iterator[Estimate]]] = {
    "one_cluster": _ball,
    "k_cover": _ball,
    "histogram": _histogram,
    "cdf": _cdf,
    "ranges": _ranges,
    "quantiles": _quantiles,
    "interior_point": _point,
    "threshold": _point,
    "k_means": _centers,
    "k_median": _centers,
    "median": _value,
    "minimum": _value,
    "bounds": _bounds,
    "triangles": _graph,
    "mst_cost": _graph,
    "statistics": _statistics,
    "sample_and_aggregate": _answers,
}
