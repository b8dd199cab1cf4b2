"""A learned threshold: how it speaks."""

from pipelines.answers.answer import Answer, Fact, Release, Rows
from pipelines.answers.text import number, on_grid

ROUNDS = {"threshold": "from which value on rows are labeled 1"}


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    said = release["accuracy"]["promises"]
    return [
        f"It mislabels at most {said['errors']:,} rows more than the best threshold does.",
        f"From {said['records_needed']:,} rows on, that is at most {number(100 * said['alpha'])}% of them.",
    ]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return None


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    column, said = release["domain"]["columns"][0], release["accuracy"]["promises"]
    threshold = on_grid(release["result"]["threshold"], release["domain"]["step"])
    return Answer(
        headline=f"Rows with {column} of at least {threshold} are labeled 1",
        lead=(
            f"A threshold that is at most {said['errors']:,} mistakes worse than the best one on these rows, "
            "learned with differential privacy."
        ),
        facts=(Fact("threshold", (threshold,)),),
    )
