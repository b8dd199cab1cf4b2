"""A small ball, or none: how the 1-cluster speaks."""

from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows
from pipelines.answers.drawing import Axis, axes, draw_close_up, draw_intervals, draw_overview
from pipelines.answers.text import confidence, number, on_grid

ROUNDS = {
    "good_radius": "how wide a box must be to hold the target",
    "good_center": "which box of that width",
    "average_1": "the mean of the rows around it",
    "average_2": "the mean again, from closer",
    "fit_radius": "the radius that fits, and how many rows it holds",
}

_ADVICE = (
    ("A larger target.", "More rows stand out more clearly; the ball grows with them."),
    ("A larger epsilon.", "Twice the budget is half the noise, and a weaker promise to each row."),
    ("A smaller domain or a coarser step,", "where that is known without looking at the data."),
)
_FEW_AXES = 3


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    target, said = release["params"]["target"], release["accuracy"]["promises"]
    sentences = []
    if said.get("missing") is not None:
        sentences.append(
            f"Where {target:,} rows lie close together, a ball is found, and it truly holds at least "
            f"{target - said['missing']:,} rows."
        )
    if said.get("radius_factor") is not None:
        more = f", or {number(said['resolution'])} where that is more" if said.get("resolution") else ""
        sentences.append(
            f"Its radius is at most {number(said['radius_factor'], 3)} times that of the smallest ball with "
            f"{target:,} rows{more}. This is proved for the worst data; mostly it is far closer."
        )
    if said.get("count_error") is not None:
        sentences.append(f"The count is within {said['count_error']:,} of the truth.")
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    accuracy, target = release["accuracy"], release["params"]["target"]
    if accuracy["promises"].get("missing") is not None:
        return None
    smallest = accuracy.get("smallest_target")
    begins = f" At this budget, that begins at a target of {smallest:,}." if smallest else ""
    return (
        f"For a target of {target:,}, it is not promised that a ball is found, how many rows it holds and "
        f"how small it is.{begins} Real clusters are often found far below."
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, target = release["result"], release["params"]["target"]
    if result is None:
        smallest = release["accuracy"].get("smallest_target")
        from_here = (Fact("full promise from", (f"{smallest:,} rows",), "at this budget and domain"),)
        return Answer(
            headline="Nothing was found, and that is an answer",
            lead=(
                "No small ball stood out clearly enough, under the noise that privacy needs, to hold about "
                f"{target:,} rows. There may be none, or this budget could not show it."
            ),
            facts=(
                Fact("asked for", (f"{target:,} rows",), "close together"),
                *(from_here if smallest else ()),
            ),
            advice=_ADVICE,
        )
    step, radius = release["domain"]["step"], result["radius"]
    columns = axes(release["domain"], result["center"])
    error = release["accuracy"]["promises"].get("count_error")
    within = f"within {error:,} of the truth, with probability {confidence(release)}" if error else ""
    lines = tuple(f"{axis.name} {on_grid(axis.center, step)}" for axis in columns)
    few = len(columns) <= _FEW_AXES
    return Answer(
        headline=f"About {result['count']:,} rows lie within {on_grid(radius, step)} of one point",
        lead=(
            f"A small ball that holds about the {target:,} rows that were asked for, found with differential "
            "privacy: whether any one row was in the data stays hidden. The center was computed from noisy "
            "sums. It was not taken from any row."
        ),
        facts=(
            Fact("center", lines if few else (f"{len(columns)} columns",), "" if few else "listed below"),
            Fact("radius", (on_grid(radius, step),), "in the units of the columns"),
            Fact("count", (f"{result['count']:,}",), within),
        ),
        figures=_figures(columns, radius, step),
    )


def _figures(columns: list[Axis], radius: float, step: float) -> tuple[Figure, ...]:
    if len(columns) != 2:
        drawn = draw_intervals(columns, radius, step)
        return (Figure(drawn, "What the ball spans of each column’s domain, and its center"),)
    x, y = _upright(columns)
    outside = "; shaded: outside the domain" if _leaves(x, y, radius) else ""
    return (
        Figure(draw_overview(x, y, radius), "In the whole domain, at its true size", _shape(x, y)),
        Figure(draw_close_up(x, y, radius, step), f"Close up, both axes to one scale{outside}"),
    )


def _upright(columns: list[Axis]) -> tuple[Axis, Axis]:
    """Return what goes to the right and what goes upwards: maps have their longitude to the right."""
    first, second = columns
    is_map = first.name.lower().startswith("lat") and second.name.lower().startswith(("lon", "lng"))
    return (second, first) if is_map else (first, second)


def _leaves(x: Axis, y: Axis, radius: float) -> bool:
    return any(axis.center - radius < axis.low or axis.center + radius > axis.high for axis in (x, y))


def _shape(x: Axis, y: Axis) -> float:
    """Return the width that a map of the domain deserves beside a square one."""
    return min(1.6, max(1.0, ((x.high - x.low) / (y.high - y.low)) ** 0.5))
