"""One number: how medians, extremes and graph statistics speak."""

from pipelines.answers.answer import Answer, Fact, Release, Rows
from pipelines.answers.text import number, on_grid

ROUNDS = {
    "window": "a range of values around the wanted rank",
    "release": "the value, under noise fitted to these data",
}
_NAMES = {
    "median": "The quantile",
    "minimum": "The extreme",
    "mst_cost": "The cost of a minimum spanning tree",
    "triangles": "The number of triangles",
}


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    said = release["accuracy"]["promises"]
    sentences = []
    if said.get("rank_error") is not None:
        sentences.append(f"The value is within {number(said['rank_error'])} ranks of the wanted one.")
    if said.get("error") is not None:
        sentences.append(f"The value is within {number(said['error'])} of the truth.")
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    if promises(release):
        return None
    return "The error depends on how stable the value is under a change of one row, so no figure is promised."


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, task = release["result"], release["task"]
    if result is None:
        return Answer(
            headline="Nothing was found, and that is an answer",
            lead="It is as private as any other, and as dear.",
        )
    on_one_column = task in ("median", "minimum")
    value = (
        on_grid(result["value"], release["domain"]["step"]) if on_one_column else number(result["value"], 12)
    )
    scale = result.get("scale")
    note = f"under noise of scale {number(scale)}" if scale is not None else ""
    subject = f"{_NAMES[task]} of {release['domain']['columns'][0]}" if on_one_column else _NAMES[task]
    return Answer(
        headline=f"{subject} is about {value}",
        lead="Released with noise that follows how much one row could change this very answer.",
        facts=(Fact("value", (value,), note),),
    )
