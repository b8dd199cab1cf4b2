"""Show the curve of a sweep: on a terminal, as JSON values, and as an HTML page with pictures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from pipelines.answers.answer import Table
from pipelines.answers.axis import Axis
from pipelines.answers.picture import DOT, Picture, Spec, layer, plot
from pipelines.answers.text import number
from pipelines.choose.sweep import Curve, Figure
from pipelines.simulation.made_up import MadeUp

_WIDTH = 40
"""Characters of a line of the terminal's curve."""

_PLAIN = str.maketrans("●┤─━·", "o|-=.")
"""What a terminal without Unicode has for the characters of a curve."""

_HEIGHT = 220
_STATED = "typical error, as the plan states it"


def describe_curve(curve: Curve) -> dict[str, Any]:
    """Return a sweep as JSON values."""
    return {
        "key": curve.swept.key,
        "made_up": None if curve.made_up is None else curve.made_up._asdict(),
        "failure": dict(curve.failures),
        "points": [asdict(point) for point in curve.points],
    }


def _says(made_up: MadeUp | None) -> str:
    if made_up is None:
        return "typical: as the plan states it; none where it does not."
    rows = f"{made_up.rows:,} made-up rows ({made_up.shape})"
    return f"typical: the median error of runs on {rows}, with real noise."


def show_curve(curve: Curve, console: Console) -> None:
    """Print a sweep: for each promise a table with a curve."""
    swept = curve.swept
    for name in curve.drawn:
        sure = f"{number(100 * (1 - curve.failures[name]))}%"
        console.print(f"{name}, promised with probability {sure}; {_says(curve.made_up)}")
        console.print(_table(curve, name, not console.encoding.lower().startswith("utf")))
    refused = next((point for point in curve.points if point.refused is not None), None)
    if refused is not None:
        console.print(f"No plan at {swept.key} {refused.value:g}. {refused.refused}")


def _table(curve: Curve, name: str, plain: bool) -> RichTable:
    low, high = _ends(curve, name)
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in _headers(curve):
        table.add_column(header, justify="left" if header == "method" else "right")
    table.add_column(no_wrap=True, min_width=_WIDTH)
    ends = f"● typical, ┤ promised: {curve.text(name, low)} ... {curve.text(name, high)}, logarithmic"
    table.columns[-1].header = ends.translate(_PLAIN) if plain else ends
    for point, row in zip(curve.points, _rows(curve, name), strict=True):
        line = _line(point.figures.get(name, Figure(None)), low, high)
        table.add_row(*row, line.translate(_PLAIN) if plain else line)
    return table


def _headers(curve: Curve) -> tuple[str, ...]:
    return (curve.swept.key, "method", "promised", "typical")


def _rows(curve: Curve, name: str) -> list[tuple[str, ...]]:
    """Return the cells of each value: the value, its method, what is promised, and what is typical."""
    rows = []
    for point in curve.points:
        figure = point.figures.get(name, Figure(None))
        texts = (curve.text(name, value) for value in (figure.promised, figure.typical))
        rows.append((f"{point.value:g}", ", ".join(dict.fromkeys(point.methods)) or "none", *texts))
    return rows


def _ends(curve: Curve, name: str) -> tuple[float, float]:
    """Return the smallest figure above 0 and the largest one of a promise."""
    shown = [
        value for point in curve.points for value in point.figures.get(name, Figure(None)).shown if value > 0
    ]
    return (min(shown), max(shown)) if shown else (1.0, 1.0)


def _line(figure: Figure, low: float, high: float) -> str:
    """Return one line of a curve, in equal ratios: the typical error, what is promised, and a band."""

    def place(value: float) -> int:
        if high <= low:
            return 0
        return round((_WIDTH - 1) * math.log(max(value, low) / low) / math.log(high / low))

    line = [" "] * _WIDTH
    known = {each: getattr(figure, each) for each in ("typical", "promised", "low", "high")}
    at = {each: place(value) for each, value in known.items() if value is not None and math.isfinite(value)}
    if "promised" in at:
        for i in range(at.get("typical", 0), at["promised"]):
            line[i] = "─" if "typical" in at else "·"
    if "low" in at and "high" in at:
        for i in range(at["low"], at["high"] + 1):
            line[i] = "━"
    if "promised" in at:
        line[at["promised"]] = "┤"
    if "typical" in at:
        line[at["typical"]] = "●"
    return "".join(line).rstrip()


def _picture(curve: Curve, name: str) -> Picture:
    low, high = _ends(curve, name)
    y = Axis.of(name.replace("_", " "), low / 1.1, high * 1.1)
    y = replace(y, logarithmic=high > low > 0)
    values = curve.swept.values
    x = replace(Axis.of(curve.swept.key, values[0], values[-1]), logarithmic=curve.swept.wide)
    encoding = {"x": x.encoded("x"), "y": y.encoded("y")}
    sure = f"{number(100 * (1 - curve.failures[name]))}%"
    layers: list[Spec] = []
    band = [
        {"x": x.place(point.value), "y": y.place(max(low, each.low)), "y2": y.place(max(low, each.high))}
        for point in curve.points
        for each in [point.figures.get(name, Figure(None))]
        if each.low is not None and each.high is not None and math.isfinite(each.low + each.high)
    ]
    if band:
        says, ends = "8 in 10 errors on made-up rows; 0 is at the edge", {"y2": {"field": "y2"}}
        layers.append(layer("area", says, band, {**encoding, **ends}, opacity=0.25, clip=True))
    measured = None if curve.made_up is None else f"median error on {curve.made_up.rows:,} made-up rows"
    lines: Sequence[tuple[str, str, str]] = (
        ("promised", f"promised, with probability {sure}", "sea"),
        ("typical", measured or _STATED, "sun"),
    )
    for which, says, color in lines:
        rows = _points(curve, name, which, x, y, low)
        if rows:
            layers.append(layer("line", says, rows, encoding, color, clip=True))
            layers.append(layer("point", None, rows, encoding, color, **DOT))
    return Picture(f"{name} by {curve.swept.key}", (plot(_HEIGHT, layers),))


def _points(curve: Curve, name: str, which: str, x: Axis, y: Axis, low: float) -> list[Mapping[str, float]]:
    found: list[Mapping[str, float]] = []
    for point in curve.points:
        value = getattr(point.figures.get(name, Figure(None)), which)
        if value is not None and math.isfinite(value):
            found.append({"x": x.place(point.value), "y": y.place(max(low, value))})
    return found


def curve_page(curve: Curve, task: str) -> bytes:
    """Return a sweep as an HTML page, drawn as reports are."""
    from pipelines.report.page import as_page  # needs the library that draws
    from pipelines.report.report import render_curve

    figures = [
        (name, _picture(curve, name), Table(name, _headers(curve), _rows(curve, name)))
        for name in curve.drawn
    ]
    title = f"What {task} promises by {curve.swept.key}"
    lead = f"Each value is that of a plan. {_says(curve.made_up).capitalize()}"
    source = "This page was made from public settings alone."
    return as_page(render_curve(title, lead, source, figures))
