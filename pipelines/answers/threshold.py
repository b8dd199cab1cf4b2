"""Answers of threshold: a learned threshold."""

from core.threshold.found import Promises, Result
from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, domain_of, promises_of, result_of
from pipelines.answers.axis import Axis
from pipelines.answers.picture import Row, Strip, layer, strips
from pipelines.answers.text import counted, nothing_found, number, on_grid


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised, many = promises_of(Promises, release), counted(release).promised
    return [
        f"The threshold mislabels at most {promised.errors:,} {many} more than the best threshold.",
        f"For at least {promised.records_needed:,} {many}, these are at most {number(100 * promised.alpha)}% "
        f"of the {many}.",
    ]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return None


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    column, promised = domain_of(release)["columns"][0], promises_of(Promises, release)
    result, records = result_of(Result, release), counted(release)
    if result is None:
        return nothing_found("threshold")
    threshold = on_grid(result.threshold, domain_of(release)["step"])
    return Answer(
        headline=(
            f"{records.many.capitalize()} with {column} of at least {threshold} are labeled 1{records.by}"
        ),
        lead=(
            f"The threshold was learned with differential privacy. It makes at most {promised.errors:,} "
            f"mistakes more than the best threshold for these {records.promised}."
        ),
        facts=(Fact("threshold", (threshold,), said=True),),
        figures=(_figure(release, result),),
    )


def _figure(release: Release, result: Result) -> Figure:
    domain, at = domain_of(release), result.threshold
    low, high = domain["lower"][0], domain["upper"][0]
    axis = Axis.of(domain["columns"][0], low, max(high, at))
    sides = [
        layer(
            "rect",
            f"labeled {label}",
            [{"x": axis.place(start), "x2": axis.place(stop)}],
            {"x": axis.encoded("x"), "x2": {"field": "x2"}},
            color,
            opacity=0.3,
        )
        for label, start, stop, color in ((0, low, at, "s6"), (1, at, axis.high, "s1"))
    ]
    strip = Strip(axis, [Row("", at)], below=tuple(sides))
    drawn = strips("The threshold in the domain", [strip], "the released threshold", "")
    return Figure(drawn, "The threshold in the whole domain")
