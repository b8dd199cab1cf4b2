"""Answers of one_cluster: a small ball, or none."""

import math

from core.one_cluster.found import Promises, Result
from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, domain_of, promises_of, result_of
from pipelines.answers.drawing import Axis, axes, draw_close_up, draw_intervals, draw_overview
from pipelines.answers.text import confidence, counted, nothing_found, number, on_grid

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
    many = counted(release).many
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
            f"{target:,} {many}{more}."
        )
    if promised.count_error is not None:
        sentences.append(f"The count is within {promised.count_error:,} of the truth.")
    return sentences


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
    many = counted(release).many
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
            Fact(
                "smallest target with a promise",
                (f"{smallest:,} {records.many}",),
                "of a ball with at least half as many, at this budget and domain",
            ),
        )
        return nothing_found(
            "cluster",
            f"Either no small ball contains about {target:,} {records.many}, or the noise at this budget "
            "hides it.",
            facts=(
                Fact("asked for", (f"{target:,} {records.many}",), "in a small ball"),
                *(from_here if smallest else ()),
            ),
            advice=tuple((phrase, records.read(sentence)) for phrase, sentence in _ADVICE),
        )
    step, radius = domain_of(release)["step"], result.radius
    columns = axes(domain_of(release), result.center)
    error = promises_of(Promises, release).count_error
    within = "" if error is None else f"within {error:,} of the truth, with probability {confidence(release)}"
    lines = tuple(f"{axis.name} {on_grid(axis.center, step)}" for axis in columns)
    few = len(columns) <= _FEW_AXES
    return Answer(
        headline=(
            f"About {result.count:,} {records.many} lie within {on_grid(radius, step)} of one point"
            f"{records.by}"
        ),
        lead=(
            f"A small ball for a target of {target:,} {records.many}, found with differential privacy. The "
            f"release hides whether any one {records.one} was in the data. The center was computed from "
            f"noisy sums. It was not taken from any {records.one}."
        ),
        facts=(
            Fact("center", lines if few else (f"{len(columns)} columns",), "" if few else "listed below"),
            Fact("radius", (on_grid(radius, step),), _UNITS if type(radius) is float else ""),
            Fact("count", (f"{result.count:,}",), within),
            *certified(result, release),
        ),
        figures=_figures(columns, radius, step),
    )


def certified(result: Result, release: Release) -> tuple[Fact, ...]:
    """Return how many rows the ball surely holds, and how small it is, if the release says it."""
    sure, facts = f"with probability {confidence(release)}", []
    if result.at_least is not None:
        facts.append(Fact("at least", (f"{result.at_least:,} {counted(release).many}",), sure))
    if result.radius_factor is not None:
        times = f"{number(result.radius_factor, 3)} times the smallest radius"
        facts.append(Fact("at most", (times,), f"that holds the target, {sure}"))
    return tuple(facts)


def _figures(columns: list[Axis], radius: float, step: float) -> tuple[Figure, ...]:
    if len(columns) != 2:
        drawn = draw_intervals(columns, radius, step)
        return (Figure(drawn, "The range of the ball in each column, and its center"),)
    x, y = horizontal_and_vertical(columns)
    outside = "; the shaded area is outside the domain" if _exceeds_domain(x, y, radius) else ""
    return (
        Figure(
            draw_overview(x, y, radius),
            "The ball in the whole domain, at its true size",
            relative_width(x, y),
        ),
        Figure(
            draw_close_up(x, y, radius, step), f"The ball close up; both axes have the same scale{outside}"
        ),
    )


def horizontal_and_vertical(columns: list[Axis]) -> tuple[Axis, Axis]:
    """Return the horizontal and the vertical axis. On maps, longitude is horizontal."""
    first, second = columns
    is_map = first.name.lower().startswith("lat") and second.name.lower().startswith(("lon", "lng"))
    return (second, first) if is_map else (first, second)


def _exceeds_domain(x: Axis, y: Axis, radius: float) -> bool:
    return any(axis.center - radius < axis.low or axis.center + radius > axis.high for axis in (x, y))


def relative_width(x: Axis, y: Axis) -> float:
    """Return the width of a map of the domain relative to a square figure."""
    return min(1.6, max(1.0, math.sqrt((x.high - x.low) / (y.high - y.low))))
