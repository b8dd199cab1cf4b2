"""Draw a ball as inline SVG: in its domain, close up, and as one interval per column."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from pipelines.answers.text import number, on_grid
from pipelines.dates import Span, TimeColumn

WIDTH = 460.0
LEFT, _RIGHT, TOP, _BOTTOM = 58.0, 14.0, 12.0, 46.0
_ROW = 30.0
_MOST_NAMES, _LONGEST_LABEL = 6, 12
"""Names of columns below a plot, and characters of each."""


@dataclass(frozen=True)
class Axis:
    """One column of the domain, and the center of the ball on it; data units."""

    name: str
    low: float
    high: float
    center: float


@dataclass(frozen=True)
class Window:
    """The range of a plot in data units, and its size in pixels."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: float
    height: float

    def across(self, value: float) -> float:
        """Return the position of a value of x in pixels from the left."""
        return LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * self.width

    def down(self, value: float) -> float:
        """Return the position of a value of y in pixels from the top."""
        return TOP + (self.y[1] - value) / (self.y[1] - self.y[0]) * self.height

    def pixels(self, length: float) -> tuple[float, float]:
        """Return a length in pixels on both axes."""
        return (
            length / (self.x[1] - self.x[0]) * self.width,
            length / (self.y[1] - self.y[0]) * self.height,
        )


def axes(domain: Mapping[str, Any], center: Sequence[float]) -> list[Axis]:
    """Return the axes of a release's domain with the ball's center on each."""
    columns = zip(domain["columns"], domain["lower"], domain["upper"], center, strict=True)
    return [Axis(*column) for column in columns]


def draw_overview(x: Axis, y: Axis, radius: float) -> Markup:
    """Draw the ball at its true size in the whole domain. A tiny ball is marked with a ring."""
    spans = x.high - x.low, y.high - y.low
    width = WIDTH - LEFT - _RIGHT
    height = width * min(1.0, max(0.4, spans[1] / spans[0]))
    window = Window((x.low, x.high), (y.low, y.high), width, height)
    at = window.across(x.center), window.down(y.center)
    rx, ry = window.pixels(radius)
    parts = [frame(window, x.name, y.name)]
    for value, line in ((at[0], "M{0:.1f} {1:.1f}V{2:.1f}"), (at[1], "M{3:.1f} {0:.1f}H{4:.1f}")):
        path = line.format(value, TOP, TOP + height, LEFT, LEFT + width)
        parts.append(tag("path", "hair", d=path))
    parts.append(tag("ellipse", "ball", cx=at[0], cy=at[1], rx=max(rx, 1.2), ry=max(ry, 1.2)))
    if max(rx, ry) < 9:
        parts.append(tag("circle", "ring", cx=at[0], cy=at[1], r=13))
    title = f"The ball in the whole domain, {x.name} to the right and {y.name} upwards"
    return _svg(title, WIDTH, height + TOP + _BOTTOM, parts)


def draw_close_up(x: Axis, y: Axis, radius: float, step: float) -> Markup:
    """Draw the ball close up with equal scales, its radius and a scale bar."""
    size = WIDTH - LEFT - _RIGHT
    reach = 1.45 * radius if radius > 0 else 4 * step
    window = Window((x.center - reach, x.center + reach), (y.center - reach, y.center + reach), size, size)
    at = window.across(x.center), window.down(y.center)
    r = window.pixels(radius)[0]
    inside = (
        max(window.x[0], x.low),
        max(window.y[0], y.low),
        min(window.x[1], x.high),
        min(window.y[1], y.high),
    )
    corner = window.across(inside[0]), window.down(inside[3])
    parts = [
        tag("rect", "outside", x=LEFT, y=TOP, width=size, height=size),
        tag(
            "rect",
            "inside",
            x=corner[0],
            y=corner[1],
            width=window.across(inside[2]) - corner[0],
            height=window.down(inside[1]) - corner[1],
        ),
        frame(window, x.name, y.name),
        tag("circle", "ball", cx=at[0], cy=at[1], r=max(r, 3)),
    ]
    if radius > 0:
        parts.append(tag("path", "radius", d=f"M{at[0]:.1f} {at[1]:.1f}H{at[0] + r:.1f}"))
        label = escape(f"radius {on_grid(radius, step)}")
        parts.append(
            f'<text class="strong" x="{at[0] + r / 2:.1f}" y="{at[1] - 9:.1f}" '
            f'text-anchor="middle">{label}</text>'
        )
    parts.append(tag("circle", "dot", cx=at[0], cy=at[1], r=4))
    parts.append(_scale_bar(window, x.name))
    title = f"The ball close up, {x.name} to the right and {y.name} upwards, with equal scales"
    return _svg(title, WIDTH, size + TOP + _BOTTOM, parts)


def draw_intervals(columns: Sequence[Axis], radius: float, step: float) -> Markup:
    """Draw the range of the ball in the domain of each column."""
    label, value, width = 172.0, 110.0, 940.0
    track = width - label - value
    parts = []
    for i, axis in enumerate(columns):
        y = 24 + i * _ROW
        scale = track / (axis.high - axis.low)
        low = label + (max(axis.low, axis.center - radius) - axis.low) * scale
        high = label + (min(axis.high, axis.center + radius) - axis.low) * scale
        name = axis.name if len(axis.name) <= 18 else f"{axis.name[:17]}…"
        parts += [
            f'<text x="{label - 14}" y="{y + 4}" text-anchor="end">{escape(name)}</text>',
            tag("rect", "track", x=label, y=y - 5, width=track, height=10, rx=5),
            tag("rect", "span", x=min(low, high - 3), y=y - 5, width=max(3.0, high - low), height=10, rx=1.5),
            tag("circle", "dot", cx=label + (axis.center - axis.low) * scale, cy=y, r=4),
            f'<text class="strong" x="{width}" y="{y + 4}" text-anchor="end">'
            f"{escape(on_grid(axis.center, step))}</text>",
            f'<text class="small" x="{label}" y="{y + 19}">{escape(number(axis.low))}</text>',
            f'<text class="small" x="{label + track}" y="{y + 19}" text-anchor="end">'
            f"{escape(number(axis.high))}</text>",
        ]
    return _svg("The range of the ball in each column", width, 24 + len(columns) * _ROW, parts)


def draw_centers(
    domain: Mapping[str, Any], centers: Sequence[Sequence[float]], counts: Sequence[int]
) -> Markup:
    """Draw centers in a domain of two columns, sized by their counts."""
    x, y = axes(domain, centers[0])
    if x.name.lower().startswith("lat"):  # on maps, longitude is horizontal
        x, y, centers = y, x, [center[::-1] for center in centers]
    width = WIDTH - LEFT - _RIGHT
    height = width * min(1.0, max(0.4, (y.high - y.low) / (x.high - x.low)))
    window = Window((x.low, x.high), (y.low, y.high), width, height)
    most = max(1, *counts)
    parts = [frame(window, x.name, y.name)]
    for center, count in zip(centers, counts, strict=True):
        at = {"cx": window.across(center[0]), "cy": window.down(center[1])}
        parts.append(tag("circle", "ball", **at, r=4 + 18 * (max(count, 0) / most) ** 0.5))
        parts.append(tag("circle", "dot", **at, r=2.5))
    return svg(f"The centers, {x.name} to the right and {y.name} upwards", parts, window)


def draw_profiles(domain: Mapping[str, Any], centers: Sequence[Sequence[float]]) -> Markup:
    """Draw every center as a line across the columns, scaled to their bounds."""
    columns = domain["columns"]
    d = len(columns)
    window = Window((0.0, max(1.0, d - 1.0)), (0.0, 1.0), WIDTH - LEFT - _RIGHT, 220.0)
    some = range(0, d, math.ceil(d / _MOST_NAMES))
    parts = [frame(window, "column", "position in its domain", [(float(i), columns[i]) for i in some])]
    for center in centers:
        heights = [
            (value - low) / (high - low)
            for value, low, high in zip(center, domain["lower"], domain["upper"], strict=True)
        ]
        places = [
            f"{window.across(float(i)):.1f} {window.down(height):.1f}" for i, height in enumerate(heights)
        ]
        parts.append(tag("path", "profile", d="M" + "L".join(places)))
        if d == 1:
            parts.append(tag("circle", "dot", cx=window.across(0.0), cy=window.down(heights[0]), r=4))
    return svg("The centers across the columns", parts, window)


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Return round numbers from `low` to `high`: multiples of 1, 2, 3 or 5 times a power of ten, or of 45."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 3, 5, 10) if m * power >= rough * (1 - 1e-9))
    if 30 < rough <= 60 and (low % 45 == 0 or high % 45 == 0):
        step = 60.0 if low % 60 == 0 else 45.0
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def frame(window: Window, x_name: str, y_name: str, labels: Sequence[tuple[float, str]] | None = None) -> str:
    """Return the frame of a plot, with ticks and names on both axes.

    Args:
        window: of the plot.
        x_name: label of the axis.
        y_name: label of the axis.
        labels: positions and texts of the ticks of x; None for round numbers.
    """
    right, bottom = LEFT + window.width, TOP + window.height
    parts = []
    for tick, label in labels or [
        (tick, _label(x_name, tick, window.x)) for tick in ticks(*window.x, most=6)
    ]:
        at = window.across(tick)
        short = label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"
        parts.append(tag("path", "grid", d=f"M{at:.1f} {TOP}V{bottom:.1f}"))
        parts.append(f'<text x="{at:.1f}" y="{bottom + 17:.1f}" text-anchor="middle">{escape(short)}</text>')
    for tick in ticks(*window.y, most=max(2, int(window.height / 45))):
        at = window.down(tick)
        parts.append(tag("path", "grid", d=f"M{LEFT} {at:.1f}H{right:.1f}"))
        label = _short_label(y_name, tick, window.y)
        parts.append(f'<text x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    parts.append(tag("rect", "frame", x=LEFT, y=TOP, width=window.width, height=window.height))
    x_label, y_label = escape(x_name), escape(y_name)
    middle = TOP + window.height / 2
    parts.append(
        f'<text class="axis" x="{LEFT + window.width / 2:.1f}" y="{bottom + 37:.1f}" '
        f'text-anchor="middle">{x_label}</text>'
        f'<text class="axis" transform="translate(13 {middle:.1f}) rotate(-90)" '
        f'text-anchor="middle">{y_label}</text>'
    )
    return "".join(parts)


def _scale_bar(window: Window, name: str) -> str:
    length = ticks(0, window.x[1] - window.x[0], most=5)[1]
    label = number(Span(length, name.times)) if isinstance(name, TimeColumn) else _tick(length)
    pixels = window.pixels(length)[0]
    x, y = LEFT + 14, TOP + window.height - 14
    return (
        tag("path", "rule", d=f"M{x} {y - 5}V{y}H{x + pixels:.1f}V{y - 5}")
        + f'<text class="strong" x="{x + pixels / 2:.1f}" y="{y - 8}" text-anchor="middle">'
        + f"{label}</text>"
    )


def _label(name: str, value: float, ends: tuple[float, float]) -> str:
    """Return the label of a tick of an axis: a number, or a date where the column has dates."""
    return name.label(value, ends[1] - ends[0]) if isinstance(name, TimeColumn) else _tick(value)


def _short_label(name: str, value: float, ends: tuple[float, float]) -> str:
    return _label(name, value, ends)[-8:] if isinstance(name, TimeColumn) else _short(value)


def _short(value: float) -> str:
    """Return a short label of a tick, such as 40k for 40,000."""
    for power, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * power or (abs(value) >= power > 1e3):
            return f"{value / power:g}{letter}".replace("-", "−")
    return _tick(value)


def _tick(value: float) -> str:
    plain = f"{value:,.12f}".rstrip("0").rstrip(".")
    return (plain if 1e-9 <= abs(value) < 1e12 or value == 0 else f"{value:g}").replace("-", "−")


def tag(name: str, style: str, **attributes: float | str) -> str:
    """Return an empty SVG element of a class."""
    written = " ".join(
        f'{key}="{value:.2f}"' if isinstance(value, float) else f'{key}="{value}"'
        for key, value in attributes.items()
    )
    return f'<{name} class="{style}" {written}/>'


def svg(title: str, parts: Sequence[str], window: Window) -> Markup:
    """Return a drawing of standard width around a window."""
    return _svg(title, WIDTH, window.height + TOP + _BOTTOM, parts)


def _svg(title: str, width: float, height: float, parts: Sequence[str]) -> Markup:
    safe = escape(title)
    return Markup(
        f'<svg role="img" aria-label="{safe}" viewBox="0 0 {width:.0f} {height:.0f}"><title>{safe}</title>'
        + "".join(parts)
        + "</svg>"
    )
