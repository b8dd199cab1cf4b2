"""Answers of interior_point: a point between the smallest and the largest row."""

from core.interior_point.found import Promises, Result
from pipelines.answers.answer import Answer, Fact, Release, Rows, promises_of, result_of
from pipelines.answers.text import nothing_found, on_grid


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    needed = promises_of(Promises, release).records_needed
    return [f"With at least {needed:,} rows, the point lies between the smallest and the largest of them."]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return None


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, column = result_of(Result, release), release["domain"]["columns"][0]
    needed = promises_of(Promises, release).records_needed
    if result is None:
        return nothing_found(
            "point",
            f"This is to be expected with fewer than {needed:,} rows.",
            advice=(("Another method.", "`shoal plan` shows how many rows each method needs."),),
        )
    point = on_grid(result.point, release["domain"]["step"])
    return Answer(
        headline=f"Some rows have at most {point} in {column}, and some have at least {point}",
        lead=f"With at least {needed:,} rows this is true with the promised probability.",
        facts=(Fact("point", (point,)),),
    )
