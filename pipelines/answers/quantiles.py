"""Answers of quantiles."""

import numpy as np

from core.quantiles.found import Promises, Result
from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, Table, promises_of, result_of
from pipelines.answers.plots import draw_curve
from pipelines.answers.text import DENSE, UNITS, counted, in_share, nothing_found, number, on_grid

_MOST_FACTS = 9


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised, many = promises_of(Promises, release), counted(release).many
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
    result, domain, records = result_of(Result, release), release["domain"], counted(release)
    if result is None:
        return nothing_found("quantile")
    column = domain["columns"][0]
    pairs = [
        (f"{p:g}", on_grid(v, domain["step"]))
        for p, v in zip(result.probabilities, result.values, strict=True)
    ]
    figures: tuple[Figure, ...] = ()
    if len(pairs) > 2:
        values, shares = np.array(result.values, dtype=float), np.array(result.probabilities)
        drawn = draw_curve(values, shares, column, f"share of {records.many}")
        figures = (Figure(drawn, "The released quantiles"),)
    facts = tuple(Fact(f"quantile {p}", (value,)) for p, value in pairs[:_MOST_FACTS])
    typical = promises_of(Promises, release).typical_rank_error
    error = ""
    if typical is not None:
        error = f" The standard error of a rank is about {number(typical, 3)} {records.many}."
    several = "One quantile" if len(pairs) == 1 else f"{len(pairs)} quantiles"
    return Answer(
        headline=f"{several} of {column}{records.by}",
        lead=(
            f"About the given share of the {records.many} lies below each value.{error} Values are points of "
            f"the grid. They were not taken from any {records.one}."
        ),
        facts=facts if len(pairs) <= _MOST_FACTS else (Fact("median", (_middle(pairs),)),),
        figures=figures,
        tables=() if len(pairs) <= _MOST_FACTS else (Table("Quantiles", ("share", column), pairs),),
    )


def _middle(pairs: list[tuple[str, str]]) -> str:
    return min(pairs, key=lambda pair: abs(float(pair[0]) - 0.5))[1]
