"""Answers of bounds."""

import numpy as np

from core.bounds.found import Promises, Result
from pipelines.answers.answer import (
    Answer,
    Fact,
    Figure,
    Release,
    Rows,
    domain_of,
    promises_of,
    result_of,
)
from pipelines.answers.picture import MOST_STRIPS, Row, Strip, strips
from pipelines.answers.text import confidence, counted, nothing_found, number, on_grid

_MOST_STEPS = 10**8
"""Steps of the widest column of the next domain, so that exact distances fit."""


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    return [f"{_promised(release)} lie outside of the bounds of each column."]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return (
        f"Among too few {counted(release).promised} bounds may be anywhere in the domain: the plan has a "
        "note on how many it takes. A value that the domain of this job moved to its end counts as that end."
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    found, domain, records = result_of(Result, release), domain_of(release), counted(release)
    if found is None:
        return nothing_found("bound")
    columns, step = domain["columns"], domain["step"]
    pairs = list(zip(columns, found.columns, strict=True))
    ends = [f"{on_grid(each.lower, step)} to {on_grid(each.upper, step)}" for each in found.columns]
    facts = [
        Fact(str(name), (text,), of_column=True, said=len(columns) == 1)
        for name, text in zip(columns, ends, strict=True)
    ]
    which = f"{columns[0]} are {ends[0]}" if len(columns) == 1 else f"each of {len(columns)} columns"
    parts = [
        Strip.around(name, [Row("", each.lower, each.lower, each.upper), Row("", each.upper)])
        for name, each in pairs[:MOST_STRIPS]
    ]
    drawn = strips(
        "The bounds of each column", parts, "a released bound", f"where nearly all {records.promised} lie"
    )
    return Answer(
        headline=f"Bounds of {which}{records.by}",
        lead=(
            f"{_promised(release)} lie outside of the bounds of a column, with probability "
            f"{confidence(release)}. The last line is the domain of a job that uses these bounds."
        ),
        facts=(*facts, Fact("domain", (next_domain(release),))),
        figures=(Figure(drawn, "The bounds of each column"),),
    )


def _promised(release: Release) -> str:
    """Return how many records may be outside, as the subject of a sentence."""
    share, many = release["params"]["outside"], counted(release).promised
    most = promises_of(Promises, release).records_outside
    of_all = f"{number(100 * share)}% of the {many} and " if share else ""
    more = " more" if share else ""
    return f"At most {of_all}{most:,} {many}{more}"


def next_domain(release: Release) -> str:
    """Return the line of a job file that has the bounds as its domain.

    The step is the release's own, or coarser where the widest column would have more than 10^8 steps.
    """
    columns = release["result"]["columns"]
    widths = [each["upper"] - each["lower"] for each in columns]
    coarsest = 10.0 ** np.ceil(np.log10(max(widths) / _MOST_STEPS))
    step = min(max(release["domain"]["step"], coarsest), *widths)
    lower, upper = (", ".join(_plain(each[side]) for each in columns) for side in ("lower", "upper"))
    return f"{{lower: [{lower}], upper: [{upper}], step: {_plain(step)}}}"


def _plain(value: float) -> str:
    """Return a number as YAML reads it: without an exponent, and without what float64 rounded."""
    if isinstance(value, int):
        return str(value)
    return np.format_float_positional(float(f"{value:.12g}"), trim="-")
