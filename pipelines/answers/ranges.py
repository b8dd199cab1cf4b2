"""Answers of ranges: counts of rectangles."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.ranges.found import Promises, Rectangle, Result
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
from pipelines.answers.maps import Plane, heat
from pipelines.answers.picture import Picture, Row, Spec, Strip, layer, listed, strips
from pipelines.answers.text import (
    ROUNDED,
    confidence,
    counted,
    nothing_found,
    number,
    place_of_table,
    span,
    truth,
)

_MOST_RECTANGLES = 24  # in the picture
_SIDE = 56  # fields of the map on each axis
_MOST_FACTS = 5
_AT_ONCE = 1 << 14  # cells that are spread over the map at once


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised = promises_of(Promises, release)
    return [
        f"The count of every cell is within {promised.cell_error:,} of {truth(release)}.",
        f"The standard error of the count of a cell is {number(promised.standard_error)} before inference.",
    ]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    many = counted(release).promised
    return (
        f"How evenly {many} lie in a cell is not known, so a rectangle that cuts cells has an error beside "
        "the noise. Its bounds in the release hold all the same. "
        f"{ROUNDED}"
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, records = result_of(Result, release), counted(release)
    if result is None:
        return nothing_found("rectangle")
    columns = domain_of(release)["columns"]
    many = records.promised
    lead = (
        f"The number of {many} in any rectangle follows from the {result.cells:,} cells in "
        f"{place_of_table(release)}."
    )
    if result.ranges:
        lead += f" With probability {confidence(release)} the bounds of all rectangles below hold."
    headers = (" by ".join(columns), many, "standard error", "at least", "at most")
    return Answer(
        headline=f"Counts of rectangles of {' and '.join(columns)}{records.by}",
        lead=lead,
        facts=(
            Fact(records.many, (f"{result.total:,}",), "sum of the released counts"),
            Fact("cells", (f"{result.cells:,}",), f"in {result.boxes:,} boxes"),
            *(_fact(each, many, confidence(release)) for each in result.ranges[:_MOST_FACTS]),
        ),
        figures=_figures(release, rows, result.ranges),
        tables=(Table("Rectangles, sides included", headers, [_line(each) for each in result.ranges]),)
        if result.ranges
        else (),
    )


def _fact(asked: Rectangle, many: str, sure: str) -> Fact:
    note = f"at least {asked.low:,} and at most {asked.high:,} with probability {sure}"
    return Fact(_sides(asked), (f"{number(asked.count)} {many}",), note)


def _sides(asked: Rectangle) -> str:
    pairs = zip(asked.lower, asked.upper, strict=True)
    return " by ".join(span(low, high) for low, high in pairs)


def _line(asked: Rectangle) -> tuple[str, ...]:
    return (
        _sides(asked),
        number(asked.count),
        number(asked.standard_error),
        f"{asked.low:,}",
        f"{asked.high:,}",
    )


def _figures(release: Release, rows: Rows, ranges: tuple[Rectangle, ...]) -> tuple[Figure, ...]:
    many, figures = counted(release).many, []
    if rows is not None:
        figures.append(Figure(_map(rows, release, ranges), "Darker places have larger released counts"))
    if ranges:
        some = ranges[:_MOST_RECTANGLES]
        names, what = listed([_sides(each) for each in some], "rectangle")
        shown = [Row(name, each.count, each.low, each.high) for name, each in zip(names, some, strict=True)]
        strip = Strip.around(many, shown, what, whole=True)
        sure = f"where {truth(release, 'the true count')} is, with probability {confidence(release)}"
        figures.append(Figure(strips("Counts of rectangles", [strip], "released count", sure), "Rectangles"))
    return tuple(figures)


def _map(rows: Mapping[str, NDArray[Any]], release: Release, asked: Sequence[Rectangle]) -> Picture:
    """Return a heat map of the first two columns; each cell is spread over the fields that it covers."""
    domain, many = domain_of(release), counted(release).many
    columns = domain["columns"][:2]
    edges = [
        np.linspace(low, high + domain["step"], _SIDE + 1)
        for low, high in list(zip(domain["lower"], domain["upper"], strict=True))[:2]
    ]
    counts = np.zeros((_SIDE, _SIDE))
    for start in range(0, len(rows["count"]), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        parts = []
        for axis, ends in enumerate(edges):
            first, last = (steps_of(release, rows[f"{end}_{axis}"][here], axis) for end in ("first", "last"))
            first, last = first[:, None], last[:, None] + domain["step"]
            inside = np.minimum(last, ends[1:]) - np.maximum(first, ends[:-1])
            parts.append(np.maximum(inside, 0) / (last - first))
        counts += (parts[0] * rows["count"][here, None]).T @ parts[1]
    plane = Plane.of({key: domain[key][:2] for key in ("columns", "lower", "upper")})
    outlines = [
        {**plane.place(each.lower), **{f"{key}2": at for key, at in plane.place(each.upper).items()}}
        for each in asked
    ]
    over = []
    if outlines and len(domain["columns"]) == 2:
        encoding = {**plane.encoding, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
        style: Spec = {"filled": False, "strokeWidth": 1.5, "clip": True}
        over.append(layer("rect", "a rectangle that was asked for", outlines, encoding, "sun", **style))
    return heat(f"{many} by {' and '.join(columns)}", plane, edges, counts, f"{many} in a field", over)
