"""Answers of cdf: a distribution."""

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
from pipelines.answers.plots import draw_curve
from pipelines.answers.text import confidence, counted, nothing_found, number, on_grid, plain

_TITLE = "Ranges, both ends included"


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised = promises_of(Promises, release)
    return [
        f"Every cumulative count is within {promised.kolmogorov_records:,} of the truth, which bounds the "
        "Kolmogorov distance.",
        f"The count of every range is within {promised.range_error:,} of the truth.",
        f"The standard error of the count of a random range is {number(promised.range_standard_error)} "
        "before inference.",
    ]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return None


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, column = result_of(Result, release), domain_of(release)["columns"][0]
    records = counted(release)
    if result is None:
        return nothing_found("distribution")
    distance = result.kolmogorov
    ranges = [
        (
            f"{plain(each.low)} to {plain(each.high)}",
            _points(each, domain_of(release)["step"]),
            f"{each.count:,}",
            number(each.standard_error),
        )
        for each in result.ranges
    ]
    figures: tuple[Figure, ...] = ()
    if rows is not None:
        values = steps_of(release, rows["value"], 0)
        curve = draw_curve(values, rows["count"].astype(float), column, "cumulative count")
        figures = (Figure(curve, "The released cumulative histogram"),)
    return Answer(
        headline=f"The distribution of {column}, within {number(distance.data, 3)} everywhere{records.by}",
        lead=(
            f"The number of {records.many} with at most each value of {column}. The distribution is within a "
            f"Kolmogorov distance of {number(distance.data, 3)} from that of the data. If the {records.many} "
            f"were drawn at random from a population, it is within {number(distance.population, 3)} from "
            "that of the population."
        ),
        facts=(
            Fact(records.many, (f"{result.total:,}",)),
            Fact(
                "Kolmogorov distance",
                (number(distance.data, 3),),
                f"to the data, with probability {confidence(release)}",
            ),
        ),
        figures=figures,
        tables=(Table(_TITLE, (column, "grid points", records.many, "standard error"), ranges),)
        if ranges
        else (),
    )


def _points(range_: CountedRange, step: float) -> str:
    if range_.first is None or range_.last is None:
        return "none"
    return f"{on_grid(range_.first, step)} to {on_grid(range_.last, step)}"
