"""Answers of quantiles."""

from collections.abc import Sequence

import numpy as np

from core.quantiles.found import Promises, Result
from pipelines.answers.answer import (
    Answer,
    Fact,
    Figure,
    Release,
    Rows,
    Table,
    domain_of,
    promises_of,
    result_of,
)
from pipelines.answers.axis import Axis
from pipelines.answers.picture import Picture, Row, Strip, curve, strips
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

_MOST_FACTS = 9
_CURVE = 3
"""From so many quantiles on, they are drawn as a curve."""


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised, many = promises_of(Promises, release), counted(release).promised
    sentences = []
    if promised.rank_error is not None:
        sentences.append(
            f"The rank of every quantile is within {promised.rank_error:,} of the wanted one, on all data. "
            f"{in_share(promised.rank_error, many)}"
        )
    if promised.typical_rank_error is not None:
        sentences.append(
            f"{DENSE.format(many=many)}, the standard error of a rank is about "
            f"{number(promised.typical_rank_error, 3)} {many}."
        )
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return UNITS


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, domain, records = result_of(Result, release), domain_of(release), counted(release)
    if result is None:
        return nothing_found("quantile")
    column = domain["columns"][0]
    step, empty = domain["step"], (None,) * len(result.values)
    pairs = [(f"{p:g}", on_grid(v, step)) for p, v in zip(result.probabilities, result.values, strict=True)]
    intervals = [
        ""
        if low is None or high is None
        else f"from {on_grid(low, step)} to {on_grid(high, step)}{if_all(release, low, high)}"
        for low, high in zip(result.lows or empty, result.highs or empty, strict=True)
    ]
    theirs = f"all true quantiles{' of the kept rows' if records.kept else ''}"
    all_true = f", like {theirs} with probability {confidence(release)}"
    ranges = [
        ""
        if low is None or high is None
        else f"from {on_grid(low, step)} to {on_grid(high, step)}{the_domain(release, low, high)}"
        for low, high in zip(result.lows or empty, result.highs or empty, strict=True)
    ]
    facts = tuple(
        Fact(
            f"quantile {p}",
            (value,),
            f"{true_one(release)} is {interval}{all_true}" if interval else "",
            range=where,
        )
        for (p, value), interval, where in zip(pairs, intervals, ranges, strict=True)
    )
    sure = ""
    if result.lows is not None:
        sure = f" With probability {confidence(release)} {theirs} are in the intervals beside them."
    typical = promises_of(Promises, release).typical_rank_error
    error = ""
    if typical is not None:
        error = f" The standard error of a rank is about {number(typical, 3)} {records.promised}."
    several = "One quantile" if len(pairs) == 1 else f"{len(pairs)} quantiles"
    return Answer(
        headline=f"{several} of {column}{records.by}",
        lead=(
            f"About the given share of the {records.promised} lies at or below each value.{error}{sure} "
            f"Values are points of the grid. They were not taken from any {records.one}."
        ),
        facts=facts if len(facts) <= _MOST_FACTS else (facts[_middle(result.probabilities)],),
        figures=(Figure(_picture(release, result), "The released quantiles"),),
        tables=() if len(pairs) <= _MOST_FACTS else (_table(column, pairs, intervals),),
    )


def _table(column: str, pairs: list[tuple[str, str]], intervals: list[str]) -> Table:
    if not any(intervals):
        return Table("Quantiles", ("share", column), pairs)
    rows = [(*pair, interval) for pair, interval in zip(pairs, intervals, strict=True)]
    return Table("Quantiles", ("share", column, "interval"), rows)


def _middle(probabilities: Sequence[float]) -> int:
    """Return the place of the quantile that is nearest to the median."""
    return min(range(len(probabilities)), key=lambda place: abs(probabilities[place] - 0.5))


def _picture(release: Release, result: Result) -> Picture:
    """Return the quantiles as a curve with a band, or two and fewer as dots with intervals."""
    column, many = domain_of(release)["columns"][0], counted(release).promised
    lows, highs = result.lows or (), result.highs or ()
    sure = f"where {true_one(release)} is, with probability {confidence(release)}"
    if len(result.values) < _CURVE:
        empty = (None,) * len(result.values)
        figures = zip(result.probabilities, result.values, lows or empty, highs or empty, strict=True)
        shown = [Row(f"{p:g}", value, low, high) for p, value, low, high in figures]
        return strips("Quantiles", [Strip.around(column, shown, "quantile")], "released quantile", sure)
    values, shares = np.array(result.values, dtype=float), np.array(result.probabilities)
    band = (shares, np.array(lows, dtype=float), np.array(highs, dtype=float), sure) if lows else None
    return curve(
        f"Quantiles of {column}",
        Axis.around(column, (*result.values, *lows, *highs)),
        Axis.of(f"share of {many} below", 0, 1),
        (values, shares, "released quantiles"),
        band,
        across=True,
    )
