"""Counts of cells: how the histogram speaks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, Table
from pipelines.answers.plots import draw_bars, draw_map
from pipelines.answers.text import confidence, number

ROUNDS = {"histogram": "how many rows lie in each cell"}
_SHOWN = 12


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    said = release["accuracy"]["promises"]
    sentences = []
    if said.get("cell_error") is not None:
        sentences.append(f"Every released count is within {said['cell_error']:,} of the truth.")
    if said.get("released_from") is not None:
        sentences.append(f"Every cell with at least {said['released_from']:,} rows is released.")
    if said.get("standard_error") is not None:
        sentences.append(f"A count’s standard error is {number(said['standard_error'])}.")
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    if release["accuracy"]["promises"].get("released_from") is not None:
        return "A cell with fewer rows may be missing; that one is missing does not mean that it is empty."
    return None


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result = release["result"]
    if result is None:
        return Answer(
            headline="No cell was released, and that is an answer",
            lead="No cell stood out clearly enough, under the noise that privacy needs.",
            advice=(
                ("Fewer, larger cells.", "They hold more rows each, under the same noise."),
                (
                    "A larger epsilon.",
                    "Twice the budget is half the noise, and a weaker promise to each row.",
                ),
            ),
        )
    columns, shape = release["domain"]["columns"], result["cells"]
    error = release["accuracy"]["promises"].get("cell_error")
    within = f"each within {error:,} of the truth, with probability {confidence(release)}" if error else ""
    return Answer(
        headline=f"{result['released']:,} cells hold about {result['total']:,} rows",
        lead=f"How many rows lie in each cell of {' and '.join(columns)}, with differential privacy.",
        facts=(
            Fact("cells", (f"{result['released']:,} of {int(np.prod(shape, dtype=object)):,}",), within),
            Fact("rows", (f"{result['total']:,}",), "sum of the released counts"),
        ),
        figures=_figures(columns, shape, rows),
        tables=() if rows is None else (_largest(columns, rows),),
    )


def _span(rows: Mapping[str, NDArray[Any]], axis: int, i: int) -> str:
    ends = [rows[f"{end}_{axis}"][i].item() for end in ("lower", "upper")]
    return " to ".join(f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in ends)


def _figures(columns: list[str], shape: list[int], rows: Rows) -> tuple[Figure, ...]:
    if rows is None or len(columns) > 2 or np.prod(shape, dtype=object) > 1 << 22:
        return ()
    edges = []
    for axis, cells in enumerate(shape):
        low, high = rows[f"lower_{axis}"], rows[f"upper_{axis}"]
        width = (high - low)[0] if (high > low).any() else 1.0
        first = low[0] - rows[f"cell_{axis}"][0] * width
        edges.append(first + width * np.arange(cells + 1))
    counts = np.zeros(shape, dtype=np.int64)
    counts[tuple(rows[f"cell_{axis}"] for axis in range(len(shape)))] = rows["count"]
    if len(columns) == 1:
        bars = draw_bars(edges[0], counts.astype(np.float64), columns[0], "rows")
        return (Figure(bars, "Released counts; noise can make one negative"),)
    heat = draw_map(edges[0], edges[1], counts, columns[0], columns[1])
    return (Figure(heat, "Darker where more rows were released"),)


def _largest(columns: list[str], rows: Mapping[str, NDArray[Any]]) -> Table:
    order = np.argsort(-rows["count"], kind="stable")[:_SHOWN]
    cells = [
        (*(_span(rows, axis, i) for axis in range(len(columns))), f"{rows['count'][i]:,}") for i in order
    ]
    return Table(f"The {len(cells)} largest; all are in result.parquet", (*columns, "rows"), cells)
