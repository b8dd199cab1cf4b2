"""A point between the smallest and the largest row: how it speaks."""

from pipelines.answers.answer import Answer, Fact, Release, Rows
from pipelines.answers.text import on_grid

ROUNDS = {"interior_point": "a point that is neither below nor above all rows"}


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    needed = release["accuracy"]["promises"]["records_needed"]
    return [f"With at least {needed:,} rows, the point lies between the smallest and the largest of them."]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return None


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, column = release["result"], release["domain"]["columns"][0]
    needed = release["accuracy"]["promises"]["records_needed"]
    if result is None:
        return Answer(
            headline="No point was found, and that is an answer",
            lead=f"That is to be expected with fewer than {needed:,} rows.",
            advice=(("Another method.", "`shoal plan` says from how many rows each is sure."),),
        )
    point = on_grid(result["point"], release["domain"]["step"])
    return Answer(
        headline=f"Some rows have at most {point} in {column}, and some at least that",
        lead=f"With at least {needed:,} rows this is true with the promised probability.",
        facts=(Fact("point", (point,)),),
    )
