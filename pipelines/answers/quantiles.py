"""Quantiles: how they speak."""

import numpy as np

from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, Table
from pipelines.answers.plots import draw_curve
from pipelines.answers.text import number, on_grid

ROUNDS = {"quantiles": "where the quantiles lie"}
_FEW = 9


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    said = release["accuracy"]["promises"]
    return [
        f"No quantile’s rank is off by more than {said['rank_error']:,} rows, whatever the data.",
        f"Where rows lie densely, its standard error is about {number(said['typical_rank_error'], 3)} rows.",
    ]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return None


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, column = release["result"], release["domain"]["columns"][0]
    step = release["domain"]["step"]
    pairs = [
        (f"{p:g}", on_grid(v, step)) for p, v in zip(result["probabilities"], result["values"], strict=True)
    ]
    typical = release["accuracy"]["promises"]["typical_rank_error"]
    facts = tuple(Fact(f"quantile {p}", (value,)) for p, value in pairs[:_FEW])
    figures: tuple[Figure, ...] = ()
    if len(pairs) > 2:
        values, shares = np.array(result["values"], dtype=float), np.array(result["probabilities"])
        figures = (Figure(draw_curve(values, shares, column, "share of rows"), "The released quantiles"),)
    few = len(pairs) == 1
    return Answer(
        headline=f"{'One quantile' if few else f'{len(pairs)} quantiles'} of {column}",
        lead=(
            f"Below each value lies about its share of the rows; ranks are typically off by "
            f"{number(typical, 3)} rows. Values are points of the grid, not taken from any row."
        ),
        facts=facts if len(pairs) <= _FEW else (Fact("median", (_middle(pairs),)),),
        figures=figures,
        tables=() if len(pairs) <= _FEW else (Table("Quantiles", ("share", column), pairs),),
    )


def _middle(pairs: list[tuple[str, str]]) -> str:
    return min(pairs, key=lambda pair: abs(float(pair[0]) - 0.5))[1]
