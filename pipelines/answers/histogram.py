"""Answers of histogram: counts of cells."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.histogram.found import Promises, Result
from pipelines.answers.answer import (
    Answer,
    Fact,
    Figure,
    Release,
    Rows,
    Table,
    domain_of,
    promises_of,
    result_of,
    steps_of,
)
from pipelines.answers.axis import Axis
from pipelines.answers.maps import Plane, heat
from pipelines.answers.picture import Row, Strip, bars, listed, strips
from pipelines.answers.text import (
    ROUNDED,
    confidence,
    counted,
    nothing_found,
    number,
    place_of_table,
    plain,
    truth,
)
from pipelines.quantities import after

_LARGEST = 12
"""Number of cells in the table of the report."""

_MOST_BARS = 60


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised = promises_of(Promises, release)
    sentences = []
    if promised.cell_error is not None:
        sentences.append(f"Every released count is within {promised.cell_error:,} of {truth(release)}.")
    if promised.released_from is not None:
        sentences.append(
            f"Every cell with at least {promised.released_from:,} {counted(release).promised} is released."
        )
    return [*sentences, f"The standard error of a count is {number(promised.standard_error)}."]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    if promises_of(Promises, release).released_from is None:
        return ROUNDED
    many = counted(release).promised
    few = f"A cell with fewer {many} may be missing, so a missing cell is not always empty."
    return f"{few} {ROUNDED}"


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, records = result_of(Result, release), counted(release)
    if result is None:
        return nothing_found(
            "cell",
            "No noisy count was above the threshold that privacy requires.",
            advice=(
                ("Fewer, larger cells.", f"Each has more {records.promised}, under the same noise."),
                ("A larger epsilon.", "Twice the budget halves the noise, but weakens the guarantee."),
                ("The method dense.", "It releases every cell, also where noise is larger than the counts."),
            ),
        )
    columns, shape, many = domain_of(release)["columns"], result.cells, records.many
    in_parts = release.get("table") is not None  # then `rows` has the largest of each part alone
    error = promises_of(Promises, release).cell_error
    within = (
        ""
        if error is None
        else f"each within {error:,} of {truth(release)}, with probability {confidence(release)}"
    )
    return Answer(
        headline=f"{result.released:,} cells contain about {result.total:,} {many}{records.by}",
        lead=f"The number of {many} in each cell of {' and '.join(columns)}, with differential privacy.",
        facts=(
            Fact("cells", (f"{result.released:,} of {int(np.prod(shape, dtype=object)):,}",), within),
            Fact(
                many, (f"{result.total:,}",), f"sum of the released counts{_noise_of_sum(release)}", said=True
            ),
        ),
        figures=_figures(release, shape, rows, many, in_parts),
        tables=() if rows is None else (_largest(columns, rows, many, place_of_table(release)),),
    )


def _noise_of_sum(release: Release) -> str:
    """Return a clause with the noise of the sum of all cells; empty where some are left out or adjusted."""
    promised, policy = promises_of(Promises, release), release["privacy"].get("policy") or {}
    result = result_of(Result, release)
    if result is None or promised.released_from is not None or policy.get("constraints"):
        return ""
    error = promised.standard_error * math.sqrt(result.released)
    return f"; the standard error of its noise is {number(error, 2)}"


def _span(columns: Sequence[str], rows: Mapping[str, NDArray[Any]], axis: int, i: int) -> str:
    ends = [rows[f"{end}_{axis}"][i] for end in ("lower", "upper")]
    ends = [end if isinstance(end, np.datetime64) else end.item() for end in ends]
    shown = [f"{end:,}" if isinstance(end, int) else plain(end) for end in ends]
    span = " to ".join(dict.fromkeys(shown))  # once, where the cell is one point
    return f"{span}{after(columns[axis])}"


def _figures(
    release: Release, shape: tuple[int, ...], rows: Rows, many: str, in_parts: bool
) -> tuple[Figure, ...]:
    columns = domain_of(release)["columns"]
    if rows is None:
        return ()
    if in_parts or len(columns) > 2 or np.prod(shape, dtype=object) > 1 << 22:
        return (_cells(release, rows, many),)
    edges = []
    for axis, cells in enumerate(shape):
        low, high = (steps_of(release, rows[f"{end}_{axis}"], axis) for end in ("lower", "upper"))
        width = (high - low)[0] if (high > low).any() else 1.0
        first = low[0] - rows[f"cell_{axis}"][0] * width
        edges.append(first + width * np.arange(cells + 1))
    counts = np.zeros(shape)
    counts[tuple(rows[f"cell_{axis}"] for axis in range(len(shape)))] = rows["count"]
    if len(columns) == 1:
        return (_bars(release, edges[0], counts, many),)
    ends = zip(*((float(edge[0]), float(edge[-1])) for edge in edges), strict=True)
    plane = Plane.of({"columns": columns} | dict(zip(("lower", "upper"), ends, strict=True)))
    drawn = heat(f"{many} by {columns[0]} and {columns[1]}", plane, edges, counts, f"{many} in a cell")
    return (Figure(drawn, "Darker cells have larger released counts"),)


def _bars(release: Release, edges: NDArray[Any], counts: NDArray[np.float64], many: str) -> Figure:
    """Return bars with their errors; neighboring cells are merged if there are too many."""
    starts = np.arange(0, len(counts), math.ceil(len(counts) / _MOST_BARS))
    heights, error = np.add.reduceat(counts, starts), promises_of(Promises, release).cell_error
    alone, column = len(starts) == len(counts), domain_of(release)["columns"][0]
    off = error if error is not None and alone else None
    ends = [0.0, *(heights - (off or 0)), *(heights + (off or 0))]
    drawn = bars(
        f"{many} by {column}",
        (Axis.of(column, edges[0], edges[-1]), Axis.around(many, ends, whole=True)),
        np.append(edges[starts], edges[-1]),
        heights,
        "released count" if alone else "sum of neighboring released counts",
        None if off is None else (off, _sure(release)),
    )
    return Figure(drawn, "Released counts; noise can make one negative")


def _cells(release: Release, rows: Mapping[str, NDArray[Any]], many: str) -> Figure:
    """Return the largest cells with their errors."""
    columns, error = domain_of(release)["columns"], promises_of(Promises, release).cell_error
    shown = []
    order = np.argsort(-rows["count"], kind="stable")[:_LARGEST]
    names = ["; ".join(_span(columns, rows, axis, i) for axis in range(len(columns))) for i in order]
    names, what = listed(names, "; ".join(columns))
    for name, i in zip(names, order, strict=True):
        shown.append(Row.within(name, float(rows["count"][i]), error, least=0))
    strip = Strip.around(many, shown, what, whole=True)
    drawn = strips("The largest cells", [strip], "released count", _sure(release))
    return Figure(drawn, "The largest cells")


def _sure(release: Release) -> str:
    """Return what an interval of a picture shows."""
    return f"where {truth(release, 'the true count')} is, with probability {confidence(release)}"


def _largest(columns: list[str], rows: Mapping[str, NDArray[Any]], many: str, place: str) -> Table:
    order = np.argsort(-rows["count"], kind="stable")[:_LARGEST]
    cells = [
        (*(_span(columns, rows, axis, i) for axis in range(len(columns))), f"{rows['count'][i]:,}")
        for i in order
    ]
    return Table(f"The {len(cells)} largest cells; all cells are in {place}", (*columns, many), cells)
