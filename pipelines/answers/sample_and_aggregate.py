"""Answers of sample_and_aggregate: what most blocks of the rows answer."""

from collections.abc import Sequence

from core.sample_and_aggregate.found import Promises, Result
from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, Table, promises_of, result_of
from pipelines.answers.axis import Axis
from pipelines.answers.picture import MOST_STRIPS, Row, Strip, strips
from pipelines.answers.text import confidence, nothing_found, number, on_grid

_FEW = 6
_SAID = 3
"""Values that the headline shows."""


_ADVICE = (
    ("A function that fails less often.", "Try it with check-function, and look at its limits."),
    ("More rows per block.", "Larger blocks agree better, but there are fewer answers to hide one in."),
    ("A smaller range of outputs or a larger step,", "if you can choose them without looking at the data."),
    ("A larger epsilon.", "Twice the budget halves the noise, but weakens the guarantee."),
)


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    params, promised = release["params"], promises_of(Promises, release)
    blocks, stable = params["blocks"], _stable(release)
    sentences = []
    if promised.mean_errors is not None:
        sentences.append(
            f"The value is within {_each(promised.mean_errors)} of the mean of the {blocks:,} answers."
        )
    if promised.errors is not None and promised.spread_factor is not None:
        factor = "" if promised.spread_factor == 1 else f"{number(promised.spread_factor)} "
        sentences.append(
            f"If {stable:,} of the {blocks:,} blocks answer within a distance D of a point on each axis, the "
            f"value is within {factor}D plus {_each(promised.errors)} of that point, whatever the other "
            "blocks answer."
        )
    if promised.radius_blocks is not None:
        sentences.append(
            f"{_holds(release, promised)}. It is at most 20% larger than the smallest radius about the value "
            f"that holds {stable:,} of them."
        )
    if promised.failed_error is not None:
        sentences.append(
            f"The released number of blocks without an answer is off by at most {promised.failed_error:,}."
        )
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    promised = promises_of(Promises, release)
    sentences = []
    if promised.errors is None:
        sentences.append(
            "It is not promised how close the value is to a point on which most blocks agree. More blocks "
            "or a larger epsilon help."
        )
    if promised.radius_blocks is None and _has_radius(release):
        sentences.append("It is not promised how many answers lie within the radius.")
    sentences.append(
        "It is not promised that the blocks answer alike, or right. This depends on the function and on the "
        "data."
    )
    return " ".join(sentences)


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, params, promised = (
        result_of(Result, release),
        release["params"],
        promises_of(Promises, release),
    )
    if result is None:
        failed = "" if promised.failed_most is None else " or too many blocks have no answer,"
        return nothing_found(
            "common answer",
            f"Either too few of the {params['blocks']:,} blocks agree on one answer,{failed} or the noise at "
            "this budget hides it.",
            advice=_ADVICE,
        )
    domain = release["domain"]
    step, columns = domain["step"], domain["columns"]
    values = [on_grid(value, step) for value in result.value]
    few = len(values) <= _FEW
    shown = values if result.errors is None else _with_errors(values, result.errors)
    table = Table("The value", ("output", "value"), list(zip(columns, shown, strict=True)))
    return Answer(
        headline=f"{params['function'].rpartition(':')[2]} answers about {_point(values)}",
        lead=(
            f"The rows were split at random into {params['blocks']:,} blocks, and the function was run on "
            "each. The release is a noisy aggregate of the answers, which hides each single answer."
        ),
        facts=(
            Fact(
                "value",
                tuple(shown) if few else (f"{len(values)} values, listed below",),
                _about_value(release, result, promised),
                said=len(values) <= _SAID and result.errors is None,
            ),
            *_radius(release, result, promised),
            *_failed(result, promised),
            Fact("blocks", (f"{params['blocks']:,}",)),
        ),
        figures=(_figure(release, result),),
        tables=() if few else (table,),
    )


def _figure(release: Release, result: Result) -> Figure:
    """Return a picture of the value, each output on its own axis."""
    domain, parts, interval = release["domain"], [], ""
    errors: Sequence[float | None] = (None,) * len(result.value)
    if result.errors is not None:
        errors = result.errors
        interval = f"where the {_exact(release)} is, with probability {confidence(release)}"
    elif result.radius is not None:
        errors, interval = (result.radius,) * len(result.value), "the released radius about the value"
    outputs = zip(domain["columns"], domain["lower"], domain["upper"], result.value, errors, strict=True)
    for column, low, high, value, error in list(outputs)[:MOST_STRIPS]:
        row = Row.within("", value, error)
        whole = Strip(Axis.of(column, low, high), [row])
        parts.append(whole if error is None else Strip.around(column, [row]))
    return Figure(strips("The released value", parts, "the released value", interval), "The released value")


def _stable(release: Release) -> int:
    params = release["params"]
    return max(1, int(params["stable_fraction"] * params["blocks"]))


def _holds(release: Release, promised: Promises) -> str:
    inside = _stable(release) - (promised.radius_blocks or 0)
    return f"At least {inside:,} of the {release['params']['blocks']:,} answers lie within the radius"


def _exact(release: Release) -> str:
    """Return which figure of the answers the released errors hold."""
    if release["method"] != "average":
        return "median of the answers"
    loose = release["params"].get("ranges") == "loose"
    return f"mean of the answers{' clamped to their noisy quartiles' * loose}"


def _about_value(release: Release, result: Result, promised: Promises) -> str:
    """Return what is promised about the released value, in one sentence."""
    sure = confidence(release)
    if result.errors is not None:
        return f"the exact {_exact(release)} lies within these errors, with probability {sure}"
    if promised.errors is not None and promised.spread_factor == 1:
        return (
            f"within {_each(promised.errors)} of a point on which {_stable(release):,} blocks agree, plus "
            f"the distance within which they agree, with probability {sure}"
        )
    return "" if promised.errors is not None else "no error is promised at this budget and number of blocks"


def _radius(release: Release, result: Result, promised: Promises) -> list[Fact]:
    if result.radius is None:
        return []
    if promised.radius_blocks is None:
        note = "how many answers lie within it is not promised"
    else:
        note = _holds(release, promised).replace("At least", "at least").replace("the radius", "it")
    return [Fact("radius", (on_grid(result.radius, release["domain"]["step"]),), note)]


def _failed(result: Result, promised: Promises) -> list[Fact]:
    if result.failed_blocks is None or promised.failed_error is None:
        why = "too few to be counted at this budget; each one that failed counts as the default answer"
        return [Fact("blocks without an answer", ("unknown",), why)]
    shown = f"about {max(0, result.failed_blocks):,}"
    return [Fact("blocks without an answer", (shown,), f"off by at most {promised.failed_error:,}")]


def _has_radius(release: Release) -> bool:
    return bool(release["method"] == "one_cluster")


def _with_errors(values: Sequence[str], errors: Sequence[float]) -> list[str]:
    return [f"{value} ± {number(error, 3)}" for value, error in zip(values, errors, strict=True)]


def _each(errors: Sequence[float]) -> str:
    """Return errors of all axes, as one number where they are equal."""
    if len(set(errors)) == 1:
        return number(errors[0], 3) + (" on each axis" if len(errors) > 1 else "")
    shown = ", ".join(number(error, 3) for error in errors[:_FEW])
    return f"({shown}{', …' if len(errors) > _FEW else ''})"


def _point(values: list[str]) -> str:
    more = ", …" if len(values) > _SAID else ""
    return values[0] if len(values) == 1 else f"({', '.join(values[:_SAID])}{more})"
