"""Answers of median and minimum: one quantile or extreme."""

from core.quantiles.found import Promises, ValueResult
from pipelines.answers.answer import Answer, Fact, Release, Rows, promises_of, result_of
from pipelines.answers.text import DENSE, UNITS, confidence, counted, in_share, nothing_found, number, on_grid

_NOISE = {
    "exponential": "The exponential mechanism chose the value among all grid points by their ranks.",
    "ordered": "The value was found by halving, from noisy counts of the {many} below some grid points.",
    "smooth": "The noise was fitted to these data: it follows how much one {one} could change the value.",
}


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised, many = promises_of(Promises, release), counted(release).many
    sentences = []
    if promised.rank_error is not None:
        sentences.append(
            f"The rank of the value is within {number(promised.rank_error)} of the wanted one. "
            f"{in_share(promised.rank_error, many)}"
        )
    if promised.typical_rank_error is not None:
        sentences.append(
            f"{DENSE.format(many=many)}, the standard error of the rank is about "
            f"{number(promised.typical_rank_error, 3)} {many}."
        )
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    if promises(release):
        return UNITS
    return (
        f"The error is not promised. It depends on how much one {counted(release).one} can change the value."
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, domain, records = result_of(ValueResult, release), release["domain"], counted(release)
    if result is None:
        return nothing_found("value")
    value = on_grid(result.value, domain["step"])
    note = "" if result.scale is None else f"under noise of scale {number(result.scale)}"
    if result.low is not None and result.high is not None:
        ends = f"{on_grid(result.low, domain['step'])} to {on_grid(result.high, domain['step'])}"
        note = f"the true one is from {ends} with probability {confidence(release)}"
    named = f"{_name(release['task'], release['params'])} of {domain['columns'][0]}"
    return Answer(
        headline=f"{named} is about {value}{records.by}",
        lead=_NOISE[release["method"]].format(one=records.one, many=records.many),
        facts=(Fact("value", (value,), note),),
    )


def _name(task: str, params: Release) -> str:
    if task == "median":
        return f"The quantile {params['quantile']:g}" if params["quantile"] != 0.5 else "The median"
    return "The largest value" if params["largest"] else "The smallest value"
