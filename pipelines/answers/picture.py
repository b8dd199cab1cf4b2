"""Pictures of answers, as specifications in Vega-Lite. They hold figures of the release alone.

A picture is plain data, so that whoever shows an answer on a terminal pays for no library that draws.
`pipelines.report.draw` makes SVG of it. Colors are the variables of the report's style sheet.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.answers.axis import Axis

Spec = dict[str, Any]
Floats = NDArray[np.float64]

WIDTH = 320
"""Of a plot without its labels, in pixels at the normal size."""

_HEIGHT, _ROW, _LONGEST = 220, 22, 18
MOST_STRIPS = 12
"""Strips of a picture."""

_SYMBOLS = {
    "line": "stroke",
    "rule": "stroke",
    "area": "square",
    "rect": "square",
    "bar": "square",
    "point": "circle",
}
_OF_LEGEND = {
    "symbolOpacity": "opacity",
    "symbolDash": "strokeDash",
    "symbolFillColor": "fill",
    "symbolStrokeWidth": "strokeWidth",
}
"""Properties of a legend that follow from those of its mark."""

_ROW_NAMES: Spec = {
    "grid": False,
    "labelFlush": False,  # a name stays beside its row
    "titleAngle": 0,
    "titleAlign": "left",
    "titleAnchor": "end",
    "titleBaseline": "bottom",
    "titleX": 0,
    "titleY": -6,
}
"""The axis of the names of rows: what they are stands above the plot, where it has room."""

DOT: Spec = {"filled": True, "size": 50, "opacity": 1}
_MOST_POINTS = 400
"""Points of a curve."""


@dataclass(frozen=True)
class Picture:
    """One picture: its title for those who cannot see it, and its plots, one above the other."""

    title: str
    plots: tuple[Spec, ...]


@dataclass(frozen=True)
class Row:
    """A figure with its interval, if there is one.

    Args:
        name: which one it is, among those of its strip.
        value: the figure.
        low: lower end of the interval.
        high: upper end.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def within(cls, name: str, value: float, error: float | None, least: float = -math.inf) -> "Row":
        """Return a figure with the interval of an error to both sides, but not below `least`."""
        if error is None or not math.isfinite(error):
            return cls(name, value)
        return cls(name, value, max(least, value - error), max(least, value + error))

    @property
    def shown(self) -> list[float]:
        """The figure, and the ends of its interval."""
        return [value for value in (self.value, self.low, self.high) if value is not None]


@dataclass(frozen=True)
class Strip:
    """Figures on one axis, one below the other.

    Args:
        axis: of all figures.
        rows: the figures.
        names: what the names of the rows are; empty where a single row needs no name.
        below: layers to draw below the figures.
    """

    axis: Axis
    rows: Sequence[Row]
    names: str = ""
    below: tuple[Spec, ...] = ()

    @classmethod
    def around(cls, name: str, rows: Sequence[Row], names: str = "", whole: bool = False) -> "Strip":
        """Return figures on an axis that has room for them and their intervals; see `Axis.of`."""
        return cls(Axis.around(name, [value for row in rows for value in row.shown], whole), rows, names)


def layer(
    mark: str,
    says: str | None,
    rows: Sequence[Mapping[str, Any]],
    encoding: Spec,
    color: str = "sea",
    symbol: str | None = None,
    **style: Any,
) -> Spec:
    """Return marks of one kind, with their line in the legend.

    Args:
        mark: the name that Vega-Lite has for the kind.
        says: what the legend says of it; None for nothing.
        rows: the fields of each mark.
        encoding: which fields are where.
        color: the name of a color of the style sheet.
        symbol: its form in the legend, unless that of the kind.
        style: more properties of the mark.
    """
    paint = f"var(--{color})"
    if says is None:
        return {
            "mark": {"type": mark, "color": paint, **style},
            "data": {"values": list(rows)},
            "encoding": encoding,
        }
    legend = {"title": None, "symbolType": symbol or _SYMBOLS.get(mark, "square")}
    for of_legend, of_mark in _OF_LEGEND.items():
        if of_mark in style:
            legend[of_legend] = style[of_mark]
    colored = {"datum": says, "type": "nominal", "scale": {"domain": [says], "range": [paint]}}
    return {
        "mark": {"type": mark, **style},
        "data": {"values": list(rows)},
        "encoding": {**encoding, "color": {**colored, "legend": legend}},
    }


def plot(height: float, layers: Iterable[Spec]) -> Spec:
    """Return a plot of layers."""
    return {
        "width": WIDTH,
        "height": round(height),
        "layer": list(layers),
        "resolve": {"scale": {"color": "independent", "opacity": "independent"}},
    }


def listed(names: Sequence[str], what: str) -> tuple[list[str], str]:
    """Return names of rows and what they are; long names become numbers in the order of the table."""
    if all(len(name) <= _LONGEST for name in names):
        return list(names), what
    return [str(number) for number in range(1, len(names) + 1)], f"{what} (line of the table)"


def short(names: Sequence[str]) -> list[str]:
    """Return names that fit beside or below a plot, and differ where the names do."""
    cut = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names]
    return cut if len(set(cut)) == len(cut) else [f"{i}: {name}" for i, name in enumerate(cut, 1)]


def strips(title: str, parts: Sequence[Strip], value: str, interval: str) -> Picture:
    """Return figures as dots with intervals.

    Args:
        title: see `Picture`.
        parts: at least one.
        value: what a dot is.
        interval: what an interval is.
    """
    spans = any(row.low is not None for strip in parts for row in strip.rows)
    plots = []
    for strip in parts:
        says = (value, interval if spans else None) if strip is parts[-1] else (None, None)
        plots.append(plot(_ROW * max(1, len(strip.rows)) + 8, _strip(strip, *says)))
    return Picture(title, tuple(plots))


def _strip(strip: Strip, value: str | None, interval: str | None) -> list[Spec]:
    """Return the layers of a strip, and what the legend says of its dots and of intervals."""
    x, place = strip.axis.encoded("x"), strip.axis.place
    y = {
        "field": "name",
        "type": "nominal",
        "sort": None,
        "title": strip.names or None,
        "axis": _ROW_NAMES if strip.names else None,
    }
    spans = [
        {"name": row.name, "x": place(row.low), "x2": place(row.high)}
        for row in strip.rows
        if row.low is not None and row.high is not None
    ]
    dots = [{"name": row.name, "x": place(row.value)} for row in strip.rows]
    layers = list(strip.below)
    if spans or interval:
        style: Spec = {"strokeWidth": 6, "opacity": 0.45, "strokeCap": "round", "clip": True}
        layers.append(layer("rule", interval, spans, {"x": x, "x2": {"field": "x2"}, "y": y}, **style))
    return [*layers, layer("point", value, dots, {"x": x, "y": y}, "deep", **DOT)]


def curve(
    title: str,
    x: Axis,
    y: Axis,
    line: tuple[Floats, Floats, str],
    band: tuple[Floats, Floats, Floats, str] | None = None,
    *,
    steps: bool = False,
    across: bool = False,
) -> Picture:
    """Return a curve with a band.

    Args:
        title: see `Picture`.
        x: the axis.
        y: the axis.
        line: x and y of each point, and what the curve is.
        band: where the band is, its lower and upper ends, and what the band is.
        steps: whether the curve is a step function; otherwise its points are shown as dots.
        across: whether the ends of the band are of x, each at a y; otherwise of y, each at an x.
    """
    encoding, layers = {"x": x.encoded("x"), "y": y.encoded("y")}, []
    shape = "step-after" if steps else "linear"
    if band is not None:
        at, along = (y, x) if across else (x, y)
        own, ends = ("y", "x") if across else ("x", "y")
        kept = _some(len(band[0]))
        rows = [
            {own: at.place(float(a)), ends: along.place(float(b)), f"{ends}2": along.place(float(c))}
            for a, b, c in zip(*(part[kept] for part in band[:3]), strict=True)
        ]
        layers.append(
            layer("area", band[3], rows, {**encoding, f"{ends}2": {"field": f"{ends}2"}}, opacity=0.25,
                  orient="horizontal" if across else "vertical", interpolate=shape, clip=True)
        )  # fmt: skip
    kept = _some(len(line[0]))
    points = [
        {"x": x.place(float(a)), "y": y.place(float(b)), "order": i}
        for i, (a, b) in enumerate(zip(line[0][kept], line[1][kept], strict=True))
    ]
    order = {"field": "order", "type": "quantitative"}
    says = line[2] if steps else "straight lines between them"
    layers.append(layer("line", says, points, {**encoding, "order": order}, interpolate=shape, clip=True))
    if not steps:
        layers.append(layer("point", line[2], points, encoding, "deep", **DOT))
    return Picture(title, (plot(_HEIGHT, layers),))


def bars(
    title: str,
    axes: tuple[Axis, Axis],
    edges: Floats,
    heights: Floats,
    says: str,
    error: tuple[float, str] | None,
) -> Picture:
    """Return one bar for each cell of an axis.

    Args:
        title: see `Picture`.
        axes: x and y.
        edges: ends of the cells, shape (n + 1,).
        heights: shape (n,).
        says: what a bar is.
        error: how far each is off at most, and what the interval is; None where that is not known.
    """
    (x, y), rows = axes, []
    off = 0.0 if error is None else error[0]
    for low, high, height in zip(edges[:-1].tolist(), edges[1:].tolist(), heights.tolist(), strict=True):
        places = {"x": x.place(low), "x2": x.place(high), "middle": x.place((low + high) / 2)}
        rows.append({**places, "y": height, "ground": 0.0, "low": height - off, "high": height + off})
    up = {"y": y.encoded("y"), "y2": {"field": "ground"}}
    layers = [layer("rect", says, rows, {"x": x.encoded("x"), "x2": {"field": "x2"}, **up}, opacity=0.55)]
    if error is not None:
        ends = {"x": x.encoded("middle"), "y": y.encoded("low"), "y2": {"field": "high"}}
        layers.append(layer("rule", error[1], rows, ends, "ink"))
    return Picture(title, (plot(_HEIGHT, layers),))


def _some(n: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).astype(np.int64))
