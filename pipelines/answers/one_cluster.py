"""Answers of one_cluster: a small ball, or none."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.geography import FAR
from core.one_cluster.found import Promises, Result
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
from pipelines.answers.earth import near, plane_of
from pipelines.answers.maps import balls, close_up
from pipelines.answers.picture import MOST_STRIPS, Picture, Row, Strip, strips
from pipelines.answers.text import (
    confidence,
    counted,
    nothing_found,
    number,
    on_grid,
    truth,
)
from pipelines.dates import grid_of
from pipelines.quantities import Metres

_ADVICE = (
    ("A larger target.", "A cluster of more rows is found more reliably, but its ball is larger."),
    ("A larger epsilon.", "Twice the budget halves the noise, but weakens the guarantee."),
    ("A smaller domain or a larger step,", "if you can choose them without looking at the data."),
)
_FEW_AXES = 3
_UNITS = "in the units of the columns"


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    target, promised = release["params"]["target"], promises_of(Promises, release)
    many = counted(release).promised
    sentences = []
    if promised.missing is not None:
        sentences.append(
            f"If there are at least {target:,} {many}, a ball is found, and it contains at least "
            f"{target - promised.missing:,} of them."
        )
    if promised.radius_factor is not None:
        more = limit_of(promised.resolution)
        sentences.append(
            f"Its radius is at most {number(promised.radius_factor, 3)} times that of the smallest ball with "
            f"{target:,} {many}{more}.{reach_of(release)}"
        )
    if promised.count_error is not None:
        sentences.append(f"The count is within {promised.count_error:,} of {truth(release)}.")
    return sentences


def reach_of(release: Release) -> str:
    """Return up to which radius a promise of it holds, as a further sentence; empty where it always does."""
    earth = grid_of(release["domain"]).geography if "domain" in release else None
    if earth is None or earth.flat:
        return ""
    return f" This holds for radii up to {number(Metres(FAR, earth.step))}."


def limit_of(resolution: float | None) -> str:
    """Return what bounds a radius from below, as an addition to its promise."""
    if not resolution:
        return ""
    return f", or {number(resolution)} if that is larger, because the smallest regions are about that wide"


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    accuracy, target = release["accuracy"], release["params"]["target"]
    if promises_of(Promises, release).missing is not None:
        return None
    smallest = accuracy.get("smallest_target")
    many = counted(release).promised
    begins = (
        f" At this budget, a ball with at least half as many {many} as the target is promised from a "
        f"target of {smallest:,} on."
        if smallest
        else ""
    )
    return (
        f"For a target of {target:,} it is not promised that a ball is found, how many {many} it contains, "
        f"or how small it is.{begins} Clusters are often found with far smaller targets."
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, target, records = result_of(Result, release), release["params"]["target"], counted(release)
    if result is None:
        smallest = release["accuracy"].get("smallest_target")
        from_here = (
            ()
            if smallest is None
            else (
                Fact(
                    "smallest target with a promise",
                    (f"{smallest:,} {records.promised}",),
                    "of a ball with at least half as many, at this budget and domain",
                ),
            )
        )
        return nothing_found(
            "cluster",
            f"Either no small ball contains about {target:,} {records.promised}, or the noise at this budget "
            "hides it.",
            facts=(
                Fact("asked for", (f"{target:,} {records.promised}",), "in a small ball"),
                *from_here,
            ),
            advice=tuple((phrase, records.read(sentence)) for phrase, sentence in _ADVICE),
        )
    step, radius = domain_of(release)["step"], result.radius
    columns = domain_of(release)["columns"]
    error = promises_of(Promises, release).count_error
    within = (
        ""
        if error is None
        else f"within {error:,} of {truth(release)}, with probability {confidence(release)}"
    )
    center = [(name, on_grid(at, step)) for name, at in zip(columns, result.center, strict=True)]
    lines = tuple(map(" ".join, center))
    few = len(columns) <= _FEW_AXES
    return Answer(
        headline=(
            f"About {result.count:,} {records.many} lie within {on_grid(radius, step)} of one point"
            f"{records.by}"
        ),
        lead=(
            f"A small ball for a target of {target:,} {records.promised}, found with differential privacy. "
            f"The release hides whether any one {records.one} was in the data. The center was computed from "
            f"noisy sums. It was not taken from any {records.one}."
        ),
        facts=(
            Fact("center", lines if few else (f"{len(columns)} columns",), "" if few else "listed below"),
            Fact("radius", (on_grid(radius, step),), _UNITS if type(radius) is float else "", said=True),
            Fact("count", (f"{result.count:,}",), within, said=True),
            *certified(result, release),
        ),
        figures=_figures(release, result),
        tables=() if few else (Table("The center", ("column", "value"), center),),
    )


def certified(result: Result, release: Release) -> tuple[Fact, ...]:
    """Return how many rows the ball surely holds, and how small it is, if the release says it."""
    sure, facts = f"with probability {confidence(release)}", []
    if result.at_least is not None:
        facts.append(Fact("at least", (f"{result.at_least:,} {counted(release).promised}",), sure))
    if result.radius_factor is not None:
        times = f"{number(result.radius_factor, 3)} times the smallest radius"
        facts.append(Fact("at most", (times,), f"that holds the target, {sure}"))
    return tuple(facts)


def _figures(release: Release, result: Result) -> tuple[Figure, ...]:
    domain, center, radius = domain_of(release), result.center, result.radius
    step = domain["step"]
    if len(center) != 2:
        drawn = ranges([result], domain)
        return (Figure(drawn, "The range of the ball in the domain of each column"),)
    plane, geography = plane_of(domain), grid_of(release["domain"]).geography
    close = close_up(plane, center, radius, step) if geography is None else near(geography, center, radius)
    return (
        Figure(
            balls(plane, [(center, radius)], "the ball, at its true size"), "The ball in the whole domain"
        ),
        Figure(close, "The ball close up; both axes have the same scale"),
    )


def ranges(found: Sequence[Result], domain: Mapping[str, Any]) -> Picture:
    """Return the ranges of balls in each of the first columns of their domain."""
    parts = []
    columns = list(zip(domain["columns"], domain["lower"], domain["upper"], strict=True))
    for number_of, (name, low, high) in enumerate(columns[:MOST_STRIPS]):
        rows = [
            Row(
                str(i) if len(found) > 1 else "",
                ball.center[number_of],
                max(low, ball.center[number_of] - ball.radius),
                min(high, ball.center[number_of] + ball.radius),
            )
            for i, ball in enumerate(found, 1)
        ]
        parts.append(Strip(Axis.of(name, low, high), rows, "ball" if len(found) > 1 else ""))
    what = "center of a ball" if len(found) > 1 else "center of the ball"
    return strips("The range in each column", parts, what, "from the center by the radius to both sides")
