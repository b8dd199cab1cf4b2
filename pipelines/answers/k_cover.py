"""Answers of k_cover: several small balls, or none."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.k_cover.found import Promises, Result
from core.one_cluster.found import Result as BallResult
from pipelines.answers import maps, one_cluster
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
from pipelines.answers.earth import plane_of
from pipelines.answers.text import (
    Counted,
    confidence,
    counted,
    nothing_found,
    number,
    on_grid,
    truth,
)

_ADVICE = (
    ("Fewer balls.", "Each ball then gets a larger part of the budget."),
    (
        "A larger target or coverage.",
        "Clusters of more rows are found more reliably, but their balls are larger.",
    ),
    ("A larger epsilon.", "Twice the budget halves the noise, but weakens the guarantee."),
)
_MOST_COLUMNS = 8


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    params, promised = release["params"], promises_of(Promises, release)
    many = counted(release).promised
    sentences = []
    if promised.missing is not None:
        sentences.append(
            f"As long as at least {params['target']:,} {many} lie outside of all balls so far, another ball "
            f"is found, up to {params['k']} balls. It contains at least "
            f"{params['target'] - promised.missing:,} of them."
        )
    if promised.radius_factor is not None:
        more = one_cluster.limit_of(promised.resolution)
        sentences.append(
            f"Its radius is at most {number(promised.radius_factor, 3)} times that of the smallest ball with "
            f"{params['target']:,} of them{more}.{one_cluster.reach_of(release)}"
        )
    if promised.rows_error is not None:
        sentences.append(f"The number of all {many} is within {promised.rows_error:,} of the truth.")
    if promised.count_error is not None:
        sentences.append(f"The count of each ball is within {promised.count_error:,} of {truth(release)}.")
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    accuracy, params, many = release["accuracy"], release["params"], counted(release).promised
    if promises_of(Promises, release).missing is not None:
        return None
    smallest = accuracy.get("smallest_target")
    begins = (
        f" At this budget, balls with at least half as many {many} as a target are promised from a target of "
        f"{smallest:,} on."
        if smallest
        else ""
    )
    if params["coverage"] is not None:
        return (
            f"The balls should contain {number(100 * params['coverage'])}% of the {many} together. This is "
            f"not promised, because it depends on how many {many} there are and how they lie.{begins}"
        )
    return (
        f"For a target of {params['target']:,} it is not promised that a ball is found, how many {many} it "
        f"contains, or how small it is.{begins} Clusters are often found with far smaller targets."
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, k, records = result_of(Result, release), release["params"]["k"], counted(release)
    asked = Fact("asked for", (f"{_several(k)}", _wanted(release["params"], records.promised)))
    if result is None:
        return nothing_found(
            "cluster",
            f"Either no small ball contains enough {records.promised}, or the noise at this budget hides it.",
            (asked,),
            tuple((phrase, records.read(sentence)) for phrase, sentence in _ADVICE),
        )
    balls = result.balls
    together = sum(ball.count for ball in balls)
    share = f", {number(100 * together / result.rows, 3)}% of about {result.rows:,}" if result.rows else ""
    error = promises_of(Promises, release).count_error
    of_kept = " of those of the kept rows" if records.kept else ""
    within = "" if error is None else f"counts are within {error:,}{of_kept}, {_sure(release)}"
    return Answer(
        headline=(
            f"{_several(len(balls))} contain{'s' if len(balls) == 1 else ''} about {together:,} "
            f"{records.many}{records.by}"
        ),
        lead=(
            f"Each ball was found with differential privacy among the {records.promised} outside of the "
            f"earlier balls. The release hides whether any one {records.one} was in the data. "
            + ("The search for another ball found nothing. " if len(balls) < k else "")
            + "The command shoal screen splits a dataset into the rows inside and outside of the balls."
        ),
        facts=(
            asked,
            Fact("together", (f"{together:,} {records.promised}{share}",), said=not share),
        ),
        figures=_figures(release, balls),
        tables=(_table(release, balls, within, records),),
    )


def _sure(release: Release) -> str:
    return f"with probability {confidence(release)}"


def _several(balls: int) -> str:
    return "One ball" if balls == 1 else f"{balls} balls"


def _wanted(params: Mapping[str, Any], many: str) -> str:
    if params["coverage"] is not None:
        return f"{number(100 * params['coverage'])}% of the {many}"
    return f"{params['target']:,} {many} each"


def _table(release: Release, balls: Sequence[BallResult], note: str, records: Counted) -> Table:
    """Return a table of the balls, with at most the first columns of their centers."""
    columns, step = domain_of(release)["columns"], domain_of(release)["step"]
    shown = columns[:_MOST_COLUMNS]
    more = f"the first {len(shown)} of {len(columns)} columns of centers" if shown != columns else ""
    certified = all(ball.at_least is not None for ball in balls)
    notes = "; ".join(part for part in (note, more) if part)
    rows = [
        (
            str(i),
            f"{ball.count:,}",
            *((f"{ball.at_least:,}",) if certified else ()),
            on_grid(ball.radius, step),
            *(on_grid(value, step) for value in ball.center[: len(shown)]),
        )
        for i, ball in enumerate(balls, 1)
    ]
    return Table(
        f"The balls, in the order in which they were found ({notes})",
        ("ball", records.promised, *(("at least",) if certified else ()), "radius", *shown),
        rows,
    )


def _figures(release: Release, balls: Sequence[BallResult]) -> tuple[Figure, ...]:
    domain = domain_of(release)
    if len(domain["columns"]) != 2:
        return (Figure(one_cluster.ranges(balls, domain), "The range of each ball in each column"),)
    says = "a ball, at its true size; numbered as found" if len(balls) > 1 else "the ball, at its true size"
    drawn = maps.balls(plane_of(domain), [(ball.center, ball.radius) for ball in balls], says)
    return (Figure(drawn, "The balls in the whole domain"),)
