"""Answers of triangles and mst_cost: one figure of a graph."""

from core.graphs.found import Promises, Result
from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, promises_of, result_of
from pipelines.answers.axis import Axis
from pipelines.answers.picture import Row, Strip, strips
from pipelines.answers.text import confidence, nothing_found, number

_NAMES = {"mst_cost": "The cost of a minimum spanning tree", "triangles": "The number of triangles"}
_NOISE = {
    "global": "The noise hides the largest change that one row could cause in any graph.",
    "smooth": "The noise was fitted to these data: it follows how much one row could change the value.",
}


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    error = promises_of(Promises, release).error
    return [] if error is None else [f"The value is within {number(error)} of the truth."]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    if promises(release):
        return None
    return "No error is promised before the run: it depends on how much one row can change the value."


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result = result_of(Result, release)
    if result is None:
        return nothing_found("value")
    value = number(result.value, 12)
    note = "" if result.scale is None else f"under noise of scale {number(result.scale)}"
    if result.within is not None:
        note = f"within {number(result.within)} of the truth, with probability {confidence(release)}; {note}"
    return Answer(
        headline=f"{_NAMES[release['task']]} is about {value}",
        lead=_NOISE[release["method"]],
        facts=(Fact("value", (value,), note, said=True),),
        figures=(_figure(release, result),),
    )


def _figure(release: Release, result: Result) -> Figure:
    error = promises_of(Promises, release).error
    off, interval = error, f"where the true value is, with probability {confidence(release)}"
    off = result.within if off is None else off
    if off is None:
        off, interval = result.scale, "one scale of the noise to each side"
    name = _NAMES[release["task"]]
    row = Row.within("", result.value, off, least=0)
    axis = Axis.around(name.removeprefix("The "), row.shown if off is not None else [0.0, result.value])
    drawn = strips(name, [Strip(axis, [row])], "the released value", interval)
    return Figure(drawn, f"{name} and its noise" if off is not None else name)
