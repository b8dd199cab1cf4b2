"""Answers of cdf: a distribution."""

from typing import Any

import numpy as np

from core.cdf.found import CountedRange, Promises, Result
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
from pipelines.answers.picture import Picture, Row, Strip, curve, listed, strips
from pipelines.answers.text import (
    ROUNDED,
    confidence,
    counted,
    nothing_found,
    number,
    on_grid,
    span,
    true_one,
    truth,
)

_TITLE = "Ranges, both ends included"
_MOST_RANGES = 24
"""Ranges in the picture."""


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised = promises_of(Promises, release)
    return [
        f"Every cumulative count is within {promised.kolmogorov_records:,} of {truth(release)}, which bounds "
        "the Kolmogorov distance.",
        f"The count of every range is within {promised.range_error:,} of {truth(release)}.",
        f"The standard error of the count of a random range is {number(promised.range_standard_error)} "
        "before inference.",
    ]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return ROUNDED


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, column = result_of(Result, release), domain_of(release)["columns"][0]
    records = counted(release)
    if result is None:
        return nothing_found("distribution")
    distance, data = result.kolmogorov, "the kept rows" if records.kept else "the data"
    ranges = [
        (
            span(each.low, each.high),
            _points(each, domain_of(release)["step"]),
            f"{each.count:,}",
            number(each.standard_error),
        )
        for each in result.ranges
    ]
    return Answer(
        headline=f"The distribution of {column}, within {number(distance.data, 3)} everywhere{records.by}",
        lead=(
            f"The number of {records.promised} with at most each value of {column}. The distribution is "
            f"within a Kolmogorov distance of {number(distance.data, 3)} from that of {data}. If the "
            f"{records.promised} were drawn at random from a population, it is within "
            f"{number(distance.population, 3)} from that of the population."
        ),
        facts=(
            Fact(records.many, (f"{result.total:,}",)),
            Fact(
                "Kolmogorov distance",
                (number(distance.data, 3),),
                f"to {data}, with probability {confidence(release)}",
                said=True,
            ),
        ),
        figures=_figures(release, rows, result.ranges),
        tables=(Table(_TITLE, (column, "grid points", records.many, "standard error"), ranges),)
        if ranges
        else (),
    )


def _figures(release: Release, rows: Rows, ranges: tuple[CountedRange, ...]) -> tuple[Figure, ...]:
    promised, many, figures = promises_of(Promises, release), counted(release).promised, []
    if rows is not None:
        caption = f"The released cumulative histogram; {true_one(release)} is in the band with probability "
        figures.append(Figure(_cumulative(release, rows, many), caption + confidence(release)))
    if ranges:
        some = ranges[:_MOST_RANGES]
        names = [span(each.low, each.high) for each in some]
        names, what = listed(names, domain_of(release)["columns"][0])
        shown = [
            Row.within(name, each.count, promised.range_error, least=0)
            for name, each in zip(names, some, strict=True)
        ]
        strip = Strip.around(many, shown, what, whole=True)
        where = f"where {truth(release, 'the true count')} is"
        drawn = strips("Counts of ranges", [strip], "released count", where)
        figures.append(Figure(drawn, f"Counts of ranges, right with probability {confidence(release)}"))
    return tuple(figures)


def _cumulative(release: Release, rows: Any, many: str) -> Picture:
    values, counts = steps_of(release, rows["value"], 0), rows["count"].astype(np.float64)
    off, most = promises_of(Promises, release).kolmogorov_records, max(1.0, float(counts.max()))
    column = domain_of(release)["columns"][0]
    return curve(
        f"Number of {many} with at most each value of {column}",
        Axis.of(column, values[0], values[-1]),
        Axis.of(f"{many} up to there", 0, most + min(off, most), whole=True),
        (values, counts, f"released number of {many} with at most this value"),
        (values, np.maximum(0, counts - off), counts + off, f"where {truth(release, 'the true number')} is"),
        steps=True,
    )


def _points(range_: CountedRange, step: float) -> str:
    if range_.first is None or range_.last is None:
        return "none"
    return f"{on_grid(range_.first, step)} to {on_grid(range_.last, step)}"
