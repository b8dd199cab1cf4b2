"""Several small balls, or fewer, or none: how the cover speaks."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.k_cover.params import MAX_K
from pipelines.answers import one_cluster
from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, Table
from pipelines.answers.drawing import LEFT, TOP, WIDTH, Axis, Window, axes, frame, svg, tag
from pipelines.answers.text import confidence, number, on_grid

ROUNDS = {
    "rows": "how many rows there are",
    **{
        f"{name}_{ball}": f"ball {ball}: {said}"
        for ball in range(1, MAX_K + 1)
        for name, said in one_cluster.ROUNDS.items()
    },
}

_ADVICE = (
    ("Fewer balls.", "Each has then a larger part of the budget."),
    ("A larger target or coverage.", "More rows stand out more clearly; the balls grow with them."),
    ("A larger epsilon.", "Twice the budget is half the noise, and a weaker promise to each row."),
)
_FEW_BALLS, _FEW_AXES = 6, 3
_MOST_COLUMNS = 8


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    params, said = release["params"], release["accuracy"]["promises"]
    sentences = []
    if said.get("missing") is not None:
        sentences.append(
            f"As long as {params['target']:,} rows that are in no ball lie close together, a further ball is "
            f"found, up to {params['k']}, and it truly holds at least {params['target'] - said['missing']:,} "
            "of them."
        )
    if said.get("radius_factor") is not None:
        more = f", or {number(said['resolution'])} where that is more" if said.get("resolution") else ""
        sentences.append(
            f"Its radius is at most {number(said['radius_factor'], 3)} times that of the smallest ball with "
            f"{params['target']:,} of them{more}. This is proved for the worst data; mostly it is far closer."
        )
    if said.get("rows_error"):
        sentences.append(f"The number of all rows is within {said['rows_error']:,} of the truth.")
    sentences.append(f"Each ball’s count is within {said['count_error']:,} of the truth.")
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    accuracy, params = release["accuracy"], release["params"]
    if accuracy["promises"].get("missing") is not None:
        return None
    smallest = accuracy.get("smallest_target")
    begins = f" At this budget, that begins at {smallest:,} rows a ball." if smallest else ""
    if params["coverage"] is not None:
        return (
            f"That the balls together hold {number(100 * params['coverage'])}% of the rows is aimed at and "
            f"not promised: it depends on the data whether enough rows lie close together.{begins}"
        )
    return (
        f"For a target of {params['target']:,} it is not promised that a ball is found, how many rows it "
        f"holds and how small it is.{begins} Real clusters are often found far below."
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, k = release["result"], release["params"]["k"]
    asked = Fact("asked for", (f"{_several(k)}", _wanted(release["params"])))
    if result is None:
        return Answer(
            headline="Nothing was found, and that is an answer",
            lead="No small ball stood out clearly enough, under the noise that privacy needs.",
            facts=(asked,),
            advice=_ADVICE,
        )
    balls, step = result["balls"], release["domain"]["step"]
    together = sum(ball["count"] for ball in balls)
    share = (
        f", {number(100 * together / result['rows'], 3)}% of about {result['rows']:,}"
        if result.get("rows")
        else ""
    )
    error = release["accuracy"]["promises"]["count_error"]
    return Answer(
        headline=f"{_several(len(balls))} hold{'s' if len(balls) == 1 else ''} about {together:,} rows",
        lead=(
            "Each ball was found with differential privacy among the rows that the balls before it leave: "
            "whether any one row was in the data stays hidden. "
            + ("The search for a further one found nothing. " if len(balls) < k else "")
            + "To split rows into those inside and those outside, screen a dataset by this release."
        ),
        facts=(
            asked,
            Fact("together", (f"{together:,} rows{share}",)),
            *(_facts(balls, step) if _is_short(release) else ()),
        ),
        figures=_figures(release),
        tables=(_table(release, f"counts are within {error:,}, with probability {confidence(release)}"),),
    )


def _several(balls: int) -> str:
    return "One ball" if balls == 1 else f"{balls} balls"


def _wanted(params: Mapping[str, Any]) -> str:
    if params["coverage"] is not None:
        return f"{number(100 * params['coverage'])}% of the rows"
    return f"{params['target']:,} rows each"


def _is_short(release: Release) -> bool:
    return len(release["result"]["balls"]) <= _FEW_BALLS and len(release["domain"]["columns"]) <= _FEW_AXES


def _facts(balls: Sequence[Mapping[str, Any]], step: float) -> list[Fact]:
    return [
        Fact(
            f"ball {i}",
            tuple(on_grid(value, step) for value in ball["center"]),
            f"radius {on_grid(ball['radius'], step)}, about {ball['count']:,} rows",
        )
        for i, ball in enumerate(balls, 1)
    ]


def _table(release: Release, note: str) -> Table:
    """Return the balls as a table, with the first columns of their centers where there are many."""
    columns, step = release["domain"]["columns"], release["domain"]["step"]
    shown = columns[:_MOST_COLUMNS]
    more = f"; centers on the first {len(shown)} of {len(columns)} columns" if shown != columns else ""
    rows = [
        (
            str(i),
            f"{ball['count']:,}",
            on_grid(ball["radius"], step),
            *(on_grid(value, step) for value in ball["center"][: len(shown)]),
        )
        for i, ball in enumerate(release["result"]["balls"], 1)
    ]
    return Table(
        f"The balls, in the order they were found ({note}{more})", ("ball", "rows", "radius", *shown), rows
    )


def _figures(release: Release) -> tuple[Figure, ...]:
    domain, balls = release["domain"], release["result"]["balls"]
    if len(domain["columns"]) != 2:
        return ()
    placed = [(one_cluster._upright(axes(domain, ball["center"])), ball["radius"]) for ball in balls]
    (x, y), _ = placed[0]
    return (
        Figure(_draw(placed), "The balls in the whole domain, at their true size", one_cluster._shape(x, y)),
    )


def _draw(placed: Sequence[tuple[tuple[Axis, Axis], float]]) -> Any:
    """Draw numbered balls in the whole domain, with a ring around those that are tiny."""
    (x, y), _ = placed[0]
    width = WIDTH - LEFT - 14
    height = width * min(1.0, max(0.4, (y.high - y.low) / (x.high - x.low)))
    window = Window((x.low, x.high), (y.low, y.high), width, height)
    shown = tag("rect", "inside", x=LEFT, y=TOP, width=width, height=height)
    parts = [f'<clipPath id="domain">{shown}</clipPath>', frame(window, x.name, y.name)]
    parts.append('<g clip-path="url(#domain)">')
    for i, ((x, y), radius) in enumerate(placed, 1):
        (rx, ry), at = window.pixels(radius), (window.across(x.center), window.down(y.center))
        parts.append(tag("ellipse", "ball", cx=at[0], cy=at[1], rx=max(rx, 1.2), ry=max(ry, 1.2)))
        if max(rx, ry) < 9:
            parts.append(tag("circle", "ring", cx=at[0], cy=at[1], r=13))
        parts.append(
            f'<text class="strong" x="{at[0]:.1f}" y="{max(TOP + 12, at[1] - max(ry, 13) - 4):.1f}" '
            f'text-anchor="middle">{i}</text>'
        )
    parts.append("</g>")
    return svg(f"The balls in the whole domain, {x.name} to the right and {y.name} upwards", parts, window)
