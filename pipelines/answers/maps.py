"""Pictures of balls and centers in the plane of two columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.answers.axis import Axis
from pipelines.answers.picture import DOT, WIDTH, Floats, Picture, Spec, layer, plot, short
from pipelines.answers.text import on_grid

_TINY = 0.02
"""A ball whose radius is a smaller part of the map gets a ring."""

BALL: Spec = {"interpolate": "linear-closed", "fill": "var(--wash)", "strokeWidth": 2, "clip": True}
_SMALL: Spec = {**DOT, "size": 14}
_MOST_FIELDS = 56
"""Fields of a heat map on each axis."""

_CHARACTERS = 44
"""Characters that fit below a plot."""

_COLORS = 8
"""Colors of the style sheet, from s0 on."""


@dataclass(frozen=True)
class Plane:
    """The axes of a domain of two columns.

    Args:
        x: to the right.
        y: upwards.
        names: of both.
        across: number of the column to the right, which is longitude if there is one.
    """

    x: Axis
    y: Axis
    names: tuple[str, str]
    across: int

    @classmethod
    def of(cls, domain: Mapping[str, Any]) -> "Plane":
        """Return the plane of a domain as `domain_of` returns it."""
        names = domain["columns"]
        across = int(names[0].lower().startswith("lat") and names[1].lower().startswith(("lon", "lng")))
        axes = [Axis.of(*each) for each in zip(names, domain["lower"], domain["upper"], strict=True)]
        return cls(axes[across], axes[1 - across], (names[across], names[1 - across]), across)

    @property
    def height(self) -> float:
        """The height of a map: with equal scales, unless one column is much wider than the other."""
        return WIDTH * min(1.0, max(0.4, (self.y.high - self.y.low) / (self.x.high - self.x.low)))

    @property
    def encoding(self) -> Spec:
        """Where the fields x and y are."""
        return {"x": self.x.encoded("x"), "y": self.y.encoded("y")}

    def ordered(self, point: Sequence[float]) -> tuple[float, float]:
        """Return a point's value to the right, and that upwards."""
        return point[self.across], point[1 - self.across]

    def place(self, point: Sequence[float]) -> dict[str, float]:
        """Return the fields of a point."""
        x, y = self.ordered(point)
        return {"x": self.x.place(x), "y": self.y.place(y)}

    @property
    def ground(self) -> list[Spec]:
        """What is below all else."""
        return []

    def reach(self, center: Sequence[float], length: float) -> tuple[float, float]:
        """Return how far a length about a point reaches to the right, and upwards."""
        return length, length

    def ball(self, says: str | None, center: Sequence[float], radius: float) -> Spec:
        """Return the layer of a ball."""
        turns = np.linspace(0, 2 * np.pi, 73)[:-1]
        around = np.array(center, dtype=float) + radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        rows = [{**self.place(point), "order": i} for i, point in enumerate(around.tolist())]
        order = {"order": {"field": "order", "type": "quantitative"}}
        return layer("line", says, rows, {**self.encoding, **order}, symbol="circle", **BALL)

    def numbers(self, points: Sequence[Sequence[float]], above: Sequence[float]) -> list[Spec]:
        """Return layers of the numbers of points, from 1 on, so many pixels above them, with a halo."""
        rows = [
            {**self.place(point), "name": str(i), "up": -up}
            for i, (point, up) in enumerate(zip(points, above, strict=True), 1)
        ]
        encoding, style = {**self.encoding, "text": {"field": "name"}}, Spec(dy={"expr": "datum.up"})
        halo = layer("text", None, rows, encoding, "card", stroke="var(--card)", strokeWidth=4, **style)
        return [halo, layer("text", None, rows, encoding, "ink", **style)]


def balls(plane: Plane, found: Sequence[tuple[Sequence[float], float]], says: str) -> Picture:
    """Return balls in the whole domain at their true size; several are numbered.

    Args:
        plane: of the domain.
        found: center and radius of each, data units.
        says: what a ball is.
    """
    tiny = _TINY * (plane.x.high - plane.x.low)
    layers = [*plane.ground, *(plane.ball(None if i else says, *ball) for i, ball in enumerate(found))]
    if rings := [plane.place(center) for center, radius in found if plane.reach(center, radius)[0] < tiny]:
        style: Spec = {"size": 500, "filled": False, "strokeWidth": 2}
        layers.append(layer("point", "around a small ball", rings, plane.encoding, "sun", **style))
    layers.append(
        layer("point", "center", [plane.place(at) for at, _ in found], plane.encoding, "deep", **_SMALL)
    )
    if len(found) > 1:
        layers += plane.numbers([center for center, _ in found], [20.0] * len(found))
    return Picture("In the whole domain", (plot(plane.height, layers),))


def close_up(plane: Plane, center: Sequence[float], radius: float, step: float) -> Picture:
    """Return a ball close up, with its center and its radius; both axes have the same scale."""
    reach = 1.25 * radius if radius > 0 else 4 * step
    middle, encoding = plane.ordered(center), {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    near = [Axis.of(name, at - reach, at + reach) for name, at in zip(plane.names, middle, strict=True)]
    close = replace(plane, x=near[0], y=near[1])
    layers = []
    if any(a.low < b.low or a.high > b.high for a, b in zip(near, (plane.x, plane.y), strict=True)):
        whole: Spec = {}
        inside: Spec = {}
        for field, axis, domain in (("x", near[0], plane.x), ("y", near[1], plane.y)):
            whole |= {field: axis.place(axis.low), f"{field}2": axis.place(axis.high)}
            inside |= {
                field: axis.place(max(axis.low, domain.low)),
                f"{field}2": axis.place(min(axis.high, domain.high)),
            }
        layers = [
            layer("rect", "outside of the domain", [whole], {**close.encoding, **encoding}, "shade"),
            layer("rect", None, [inside], {**close.encoding, **encoding}, "card"),
        ]
    layers.append(close.ball("the ball", center, radius))
    at = close.place(center)
    if radius > 0:
        far = {**at, "x2": near[0].place(middle[0] + radius)}
        along, style = {**close.encoding, "x2": {"field": "x2"}}, Spec(strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(layer("rule", f"its radius, {on_grid(radius, step)}", [far], along, "deep", **style))
    layers.append(layer("point", "its center", [at], close.encoding, "deep", **DOT))
    return Picture("The ball close up", (plot(WIDTH, layers),))


def centers(
    plane: Plane,
    found: Sequence[Sequence[float]],
    counts: Sequence[int],
    noise: Sequence[float] | None,
    many: str,
) -> Picture:
    """Return centers in the whole domain, numbered, and sized by their counts.

    Args:
        plane: of the domain.
        found: the centers, data units.
        counts: of each center.
        noise: standard deviation of each center's noise in both columns, data units; None if it is not known.
        many: what is counted.
    """
    most = max(1, *counts)
    rows = [
        {**plane.place(center), "size": 40 + 1400 * max(count, 0) / most}
        for center, count in zip(found, counts, strict=True)
    ]
    sized = {**plane.encoding, "size": {"field": "size", "type": "quantitative", "scale": None}}
    larger = layer("point", f"larger for more {many}", rows, sized, filled=True, opacity=0.25)
    layers = [*plane.ground, larger]
    if noise is not None:
        layers += _crosses(plane, found, noise)
    layers += [
        layer("point", "a center, numbered by its count", rows, plane.encoding, "deep", **_SMALL),
        *plane.numbers(found, [8 + math.sqrt(row["size"] / math.pi) for row in rows]),
    ]
    return Picture("The centers in the whole domain", (plot(plane.height, layers),))


def _crosses(plane: Plane, found: Sequence[Sequence[float]], noise: Sequence[float]) -> list[Spec]:
    """Return one layer for each axis, of lines as long as the noise to both sides."""
    layers = []
    for field, number, says in (("x", 0, "standard deviation of its noise"), ("y", 1, None)):
        axis, rows = (plane.x, plane.y)[number], []
        for center, off in zip(found, noise, strict=True):
            if np.isfinite(off):
                middle, to = plane.ordered(center)[number], plane.reach(center, off)[number]
                ends = {field: axis.place(middle - to), f"{field}2": axis.place(middle + to)}
                rows.append({**plane.place(center), **ends})
        encoding = {**plane.encoding, f"{field}2": {"field": f"{field}2"}}
        layers.append(layer("rule", says, rows, encoding, "ink", clip=True))
    return layers


def profiles(domain: Mapping[str, Any], found: Sequence[Sequence[float]], names: Sequence[str]) -> Picture:
    """Return every center as a line across the columns, each drawn from its lower to its upper bound.

    Args:
        domain: of three columns or more.
        found: the centers, data units.
        names: of the centers, for the legend.
    """
    columns, lower, upper = (domain[key] for key in ("columns", "lower", "upper"))
    up = Axis.of("place between the bounds", 0, 1).encoded("y")
    names_of = short(columns)
    fit = sum(map(len, columns)) + 2 * len(columns) < _CHARACTERS
    across = {
        "field": "column",
        "type": "nominal",
        "sort": None,
        "title": "column",
        "axis": {"labelAngle": 0 if fit else -40, "grid": False},
        "scale": {"type": "point", "padding": 0.2},
    }
    colored, layers = len(found) <= _COLORS, []
    for i, center in enumerate(found):
        rows = [
            {"column": column, "y": float((value - low) / (high - low)), "order": j}
            for j, (column, value, low, high) in enumerate(zip(names_of, center, lower, upper, strict=True))
        ]
        encoding = {"x": across, "y": up, "order": {"field": "order", "type": "quantitative"}}
        says = names[i] if colored else None if i else "a center"
        color, opacity = (f"s{i}", 1.0) if colored else ("sea", 0.6)
        layers.append(layer("line", says, rows, encoding, color, opacity=opacity, point=len(columns) <= 20))
    return Picture("The centers across the columns", (plot(220, layers),))


def colors(
    domain: Mapping[str, Any],
    found: Sequence[Sequence[float]],
    counts: Sequence[int],
    error: float | None,
    many: str,
    true: str,
) -> Picture:
    """Return centers of red, green and blue as bars of these colors, as long as their counts.

    Args:
        domain: of three columns.
        found: the centers, data units.
        counts: of each center.
        error: how far a count may be off; None if it is not known.
        many: what is counted.
        true: the true count, as the subject of a sentence.
    """
    off = error or 0.0
    x = Axis.of(f"{many} nearest to the center", 0, max(1.0, *counts) + off, whole=True)
    y = {"field": "name", "type": "nominal", "sort": None, "title": "center", "axis": {"grid": False}}
    rows = [
        {"name": f"{i} ({', '.join(f'{value:.3g}' for value in center)})", "x": count, "zero": 0,
         "x2": max(0.0, count - off), "x3": count + off, "color": _hex(domain, center)}
        for i, (center, count) in enumerate(zip(found, counts, strict=True), 1)
    ]  # fmt: skip
    own = {"color": {"field": "color", "type": "nominal", "scale": None, "legend": None}}
    at = {"x": x.encoded("x"), "y": y}
    layers = [
        layer("bar", None, rows, {**at, "x2": {"field": "zero"}, **own}, stroke="var(--line)"),
        layer("bar", f"a center in its color: ({', '.join(domain['columns'])})", [], at, "s6"),
    ]
    if error is not None:
        encoding = {"x": x.encoded("x2"), "x2": {"field": "x3"}, "y": y}
        layers.append(layer("rule", f"where {true} is", rows, encoding, "ink", strokeWidth=2))
    return Picture("The centers as colors", (plot(30 * len(found), layers),))


def of_colors(columns: Sequence[str]) -> bool:
    """Return whether three columns are red, green and blue."""
    return [name.lower() for name in columns] in (["r", "g", "b"], ["red", "green", "blue"])


def _hex(domain: Mapping[str, Any], center: Sequence[float]) -> str:
    sides = zip(center, domain["lower"], domain["upper"], strict=True)
    parts = [min(255, max(0, round(255 * (value - low) / (high - low)))) for value, low, high in sides]
    return "#" + "".join(f"{part:02x}" for part in parts)


def heat(
    title: str,
    plane: Plane,
    edges: Sequence[Floats],
    counts: Floats,
    says: str,
    over: Sequence[Spec] = (),
) -> Picture:
    """Return a map of the counts of cells, with layers over it. A count below 0 is drawn like 0.

    Args:
        title: see `Picture`.
        plane: of the two columns.
        edges: ends of the cells on the axis of each column, shapes (m + 1,) and (n + 1,).
        counts: shape (m, n). Neighboring cells are merged if there are too many.
        says: what is counted in a cell. Where cells are merged, it is followed by their number.
        over: see above.
    """
    kept = [_starts(size) for size in counts.shape]
    merged = [int(np.diff([*starts, size]).max()) for starts, size in zip(kept, counts.shape, strict=True)]
    if max(merged) > 1:
        says = f"{says}, of up to {merged[0]} x {merged[1]}"
    sums = np.add.reduceat(np.add.reduceat(counts, kept[0], axis=0), kept[1], axis=1)
    axes = (plane.y, plane.x) if plane.across else (plane.x, plane.y)
    low, high = [], []
    for axis, edge, starts in zip(axes, edges, kept, strict=True):
        ends = axis.place(np.append(edge[starts], edge[-1]).astype(np.float64))
        low.append(ends[:-1].tolist())
        high.append(ends[1:].tolist())
    names = ("y", "x") if plane.across else ("x", "y")
    fields = [
        {names[0]: low[0][i], f"{names[0]}2": high[0][i], names[1]: low[1][j], f"{names[1]}2": high[1][j],
         "count": float(sums[i, j])}
        for i, j in zip(*np.nonzero(sums > 0), strict=True)
    ]  # fmt: skip
    shade = {
        "field": "count",
        "type": "quantitative",
        "title": says,
        "scale": {"type": "sqrt", "domain": [0, max(1.0, float(sums.max()))], "range": [0, 1]},
        "legend": {"symbolType": "square", "symbolFillColor": "var(--sea)", "symbolSize": 160, "tickCount": 4,
                   "symbolStrokeColor": "var(--line)", "direction": "horizontal"},
    }  # fmt: skip
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "opacity": shade}
    drawn = layer("rect", None, fields, {**plane.encoding, **ends}, clip=True)
    return Picture(title, (plot(plane.height, [drawn, *over]),))


def _starts(n: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n, min(n, _MOST_FIELDS) + 1).astype(np.int64))[:-1]
