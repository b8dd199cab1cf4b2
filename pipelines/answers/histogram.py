"""Answers of histogram: counts of cells."""

from collections.abc import Mapping
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
from pipelines.answers.plots import draw_bars, draw_map
from pipelines.answers.text import confidence, counted, nothing_found, number, place_of_table, plain

_LARGEST = 12
"""Number of cells in the table of the report."""


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised = promises_of(Promises, release)
    sentences = []
    if promised.cell_error is not None:
        sentences.append(f"Every released count is within {promised.cell_error:,} of the truth.")
    if promised.released_from is not None:
        sentences.append(
            f"Every cell with at least {promised.released_from:,} {counted(release).many} is released."
        )
    return [*sentences, f"The standard error of a count is {number(promised.standard_error)}."]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    if promises_of(Promises, release).released_from is None:
        return None
    return f"A cell with fewer {counted(release).many} may be missing, so a missing cell is not always empty."


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, records = result_of(Result, release), counted(release)
    if result is None:
        return nothing_found(
            "cell",
            "No noisy count was above the threshold that privacy requires.",
            advice=(
                ("Fewer, larger cells.", f"Each has more {records.many}, under the same noise."),
                ("A larger epsilon.", "Twice the budget halves the noise, but weakens the guarantee."),
            ),
        )
    columns, shape, many = domain_of(release)["columns"], result.cells, records.many
    in_parts = release.get("table") is not None  # then `rows` has the largest of each part alone
    error = promises_of(Promises, release).cell_error
    within = (
        "" if error is None else f"each within {error:,} of the truth, with probability {confidence(release)}"
    )
    return Answer(
        headline=f"{result.released:,} cells contain about {result.total:,} {many}{records.by}",
        lead=f"The number of {many} in each cell of {' and '.join(columns)}, with differential privacy.",
        facts=(
            Fact("cells", (f"{result.released:,} of {int(np.prod(shape, dtype=object)):,}",), within),
            Fact(many, (f"{result.total:,}",), "sum of the released counts"),
        ),
        figures=_figures(release, shape, rows, many, in_parts),
        tables=() if rows is None else (_largest(columns, rows, many, place_of_table(release)),),
    )


def _span(rows: Mapping[str, NDArray[Any]], axis: int, i: int) -> str:
    ends = [rows[f"{end}_{axis}"][i] for end in ("lower", "upper")]
    ends = [end if isinstance(end, np.datetime64) else end.item() for end in ends]
    return " to ".join(f"{end:,}" if isinstance(end, int) else plain(end) for end in ends)


def _figures(
    release: Release, shape: tuple[int, ...], rows: Rows, many: str, in_parts: bool
) -> tuple[Figure, ...]:
    columns = domain_of(release)["columns"]
    if rows is None or in_parts or len(columns) > 2 or np.prod(shape, dtype=object) > 1 << 22:
        return ()
    edges = []
    for axis, cells in enumerate(shape):
        low, high = (steps_of(release, rows[f"{end}_{axis}"], axis) for end in ("lower", "upper"))
        width = (high - low)[0] if (high > low).any() else 1.0
        first = low[0] - rows[f"cell_{axis}"][0] * width
        edges.append(first + width * np.arange(cells + 1))
    counts = np.zeros(shape, dtype=np.int64)
    counts[tuple(rows[f"cell_{axis}"] for axis in range(len(shape)))] = rows["count"]
    if len(columns) == 1:
        bars = draw_bars(edges[0], counts.astype(np.float64), columns[0], many)
        return (Figure(bars, "Released counts; noise can make one negative"),)
    heat = draw_map(edges[0], edges[1], counts, columns[0], columns[1])
    return (Figure(heat, "Darker cells have larger released counts"),)


def _largest(columns: list[str], rows: Mapping[str, NDArray[Any]], many: str, place: str) -> Table:
    order = np.argsort(-rows["count"], kind="stable")[:_LARGEST]
    cells = [
        (*(_span(rows, axis, i) for axis in range(len(columns))), f"{rows['count'][i]:,}") for i in order
    ]
    return Table(f"The {len(cells)} largest cells; all cells are in {place}", (*columns, many), cells)
