"""Answers of median and minimum: one quantile or extreme."""

from collections.abc import Sequence
from dataclasses import replace

from core.quantiles.found import ColumnsResult, Promises, ValueResult
from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, domain_of, promises_of, result_of
from pipelines.answers.axis import Axis
from pipelines.answers.picture import MOST_STRIPS, Row, Strip, strips
from pipelines.answers.text import (
    DENSE,
    UNITS,
    confidence,
    counted,
    if_all,
    in_share,
    nothing_found,
    number,
    on_grid,
    the_domain,
    true_one,
)

_NOISE = {
    "exponential": "The exponential mechanism chose the value among all grid points by their ranks.",
    "ordered": "The value was found by halving, from noisy counts of the {many} below some grid points.",
    "smooth": "The noise was fitted to these data: it follows how much one {one} could change the value.",
}


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised, many = promises_of(Promises, release), counted(release).promised
    of_value = "of the value" if len(domain_of(release)["lower"]) == 1 else "of every column's value"
    sentences = []
    if promised.rank_error is not None:
        sentences.append(
            f"The rank {of_value} is within {number(promised.rank_error)} of the wanted one. "
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
    columns, records = domain_of(release)["columns"], counted(release)
    name = _name(release["task"], release["params"])
    lead = _NOISE[release["method"]].format(one=records.one, many=records.promised)
    if len(columns) > 1:
        several = result_of(ColumnsResult, release)
        if several is None:
            return nothing_found("value")
        return Answer(
            headline=f"{name} of each of {len(columns)} columns{records.by}",
            lead=f"{lead} The columns were read together, and share the budget.",
            facts=tuple(
                replace(_fact(release, column, each, each.rank_error, axis), of_column=True)
                for axis, (column, each) in enumerate(zip(columns, several.columns, strict=True))
            ),
            figures=(_figure(release, several.columns),),
        )
    result = result_of(ValueResult, release)
    if result is None:
        return nothing_found("value")
    fact = _fact(release, "value", result)
    return Answer(
        headline=f"{name} of {columns[0]} is about {fact.lines[0]}{records.by}",
        lead=lead,
        facts=(replace(fact, said=True),),
        figures=(_figure(release, (result,)),),
    )


def _fact(
    release: Release, name: str, found: ValueResult, rank_error: int | None = None, axis: int = 0
) -> Fact:
    """Return a column's value with its interval or the scale of its noise, and its rank's error if given."""
    step, notes, ends = domain_of(release)["step"], [], ""
    if found.low is not None and found.high is not None:
        ends = f"{on_grid(found.low, step)} to {on_grid(found.high, step)}"
        whole = if_all(release, found.low, found.high, axis)
        notes.append(f"{true_one(release)} is from {ends} with probability {confidence(release)}{whole}")
    elif found.scale is not None:
        notes.append(f"under noise of scale {number(found.scale)}")
    if rank_error is not None:
        notes.append(f"its rank is within {rank_error:,} of the wanted one")
    where = f"from {ends}{the_domain(release, found.low, found.high, axis)}" if ends else ""
    return Fact(name, (on_grid(found.value, step),), "; ".join(notes), range=where)


def _name(task: str, params: Release) -> str:
    if task == "median":
        return f"The quantile {params['quantile']:g}" if params["quantile"] != 0.5 else "The median"
    return "The largest value" if params["largest"] else "The smallest value"


def _figure(release: Release, found: Sequence[ValueResult]) -> Figure:
    """Return a picture of the values, each on the axis of its column."""
    domain, name = domain_of(release), _name(release["task"], release["params"])
    parts, interval = [], f"where {true_one(release)} is, with probability {confidence(release)}"
    sides = zip(domain["columns"], domain["lower"], domain["upper"], strict=True)
    for (column, low, high), each in list(zip(sides, found, strict=True))[:MOST_STRIPS]:
        row = Row("", each.value, each.low, each.high)
        if row.low is None and each.scale is not None:
            row, interval = Row.within("", each.value, each.scale), "one scale of the noise to each side"
        alone = row.low is None
        parts.append(Strip(Axis.of(column, low, high), [row]) if alone else Strip.around(column, [row]))
    says = f"the released value: {name[:1].lower()}{name[1:]}"
    drawn = strips(f"{name}, with intervals", parts, says, interval)
    return Figure(drawn, f"{name} of each column" if len(found) > 1 else name)
