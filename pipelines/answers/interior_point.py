"""Answers of interior_point: a point between the smallest and the largest row."""

from core.interior_point.found import Promises, Result
from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, domain_of, promises_of, result_of
from pipelines.answers.axis import Axis
from pipelines.answers.picture import Row, Strip, strips
from pipelines.answers.text import counted, nothing_found, on_grid


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    needed, many = promises_of(Promises, release).records_needed, counted(release).promised
    return [f"With at least {needed:,} {many}, the point lies between the smallest and the largest of them."]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return None


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, column = result_of(Result, release), domain_of(release)["columns"][0]
    needed, records = promises_of(Promises, release).records_needed, counted(release)
    if result is None:
        return nothing_found(
            "point",
            f"This is to be expected with fewer than {needed:,} {records.promised}.",
            advice=(
                (
                    "Another method.",
                    f"The command shoal plan shows how many {records.promised} each method needs.",
                ),
            ),
        )
    point = on_grid(result.point, domain_of(release)["step"])
    return Answer(
        headline=(
            f"Some {records.many} have at most {point} in {column}, and some have at least {point}"
            f"{records.by}"
        ),
        lead=f"With at least {needed:,} {records.promised} this is true with the promised probability.",
        facts=(Fact("point", (point,), said=True),),
        figures=(_figure(release, result),),
    )


def _figure(release: Release, result: Result) -> Figure:
    domain, many = domain_of(release), counted(release).many
    axis = Axis.of(domain["columns"][0], domain["lower"][0], domain["upper"][0])
    says = f"some {many} are at or below it, some at or above"
    drawn = strips("The released point in the domain", [Strip(axis, [Row("", result.point)])], says, "")
    return Figure(drawn, "The released point in the whole domain")
