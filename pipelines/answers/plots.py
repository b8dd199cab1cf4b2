"""Draw curves, bars and maps of counts as inline SVG, in the style of `pipelines.answers.drawing`."""

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from pipelines.answers.drawing import LEFT, TOP, WIDTH, Window, frame, svg, tag

Floats = NDArray[np.float64]

_HEIGHT = 260.0
_MOST = 400
"""Most points or bars in a plot."""


def draw_curve(x: Floats, y: Floats, x_name: str, y_name: str, marks: Sequence[float] = ()) -> Markup:
    """Draw y over x as a step function, with a vertical line at every mark.

    Args:
        x: ascending, shape (n,).
        y: value of the function from x[i] to x[i + 1], shape (n,).
        x_name: label of the axis.
        y_name: label of the axis.
        marks: values of x.
    """
    kept = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST)).astype(int))
    window = _window(float(x[0]), float(x[-1]), min(0.0, float(y.min())), float(y.max()))
    steps = "".join(f"H{window.across(x[i]):.1f}V{window.down(y[i]):.1f}" for i in kept[1:])
    path = f"M{window.across(x[0]):.1f} {window.down(y[0]):.1f}{steps}"
    lines = [tag("path", "hair", d=f"M{window.across(m):.1f} {TOP}V{TOP + window.height:.1f}") for m in marks]
    parts = [frame(window, x_name, y_name), *lines, tag("path", "curve", d=path)]
    return svg(f"{y_name} over {x_name}", parts, window)


def draw_bars(edges: Floats, heights: Floats, x_name: str, y_name: str) -> Markup:
    """Draw one bar per cell of an axis. Neighboring cells are merged if there are too many.

    Args:
        edges: shape (n + 1,), ascending.
        heights: shape (n,).
        x_name: label of the axis.
        y_name: label of the axis.
    """
    starts = np.unique(np.linspace(0, len(heights), min(len(heights), _MOST) + 1).astype(int))[:-1]
    sums = np.add.reduceat(heights, starts)
    ends = np.append(edges[starts], edges[-1])
    window = _window(
        float(ends[0]), float(ends[-1]), min(0.0, float(sums.min())), max(1.0, float(sums.max()))
    )
    ground = window.down(0.0)
    bars = []
    for low, high, height in zip(ends, ends[1:], sums, strict=False):
        top = window.down(float(height))
        x, width = window.across(float(low)), window.pixels(float(high - low))[0]
        bars.append(
            tag("rect", "span", x=x, y=min(top, ground), width=max(0.6, width), height=abs(ground - top))
        )
    return svg(f"{y_name} by {x_name}", [frame(window, x_name, y_name), *bars], window)


def draw_map(x_edges: Floats, y_edges: Floats, counts: NDArray[np.int64], x_name: str, y_name: str) -> Markup:
    """Draw counts of cells of two axes as a heat map.

    Args:
        x_edges: shape (m + 1,).
        y_edges: shape (n + 1,).
        counts: shape (m, n).
        x_name: label of the axis.
        y_name: label of the axis.
    """
    rows = np.unique(np.linspace(0, counts.shape[0], min(counts.shape[0], 80) + 1).astype(int))[:-1]
    columns = np.unique(np.linspace(0, counts.shape[1], min(counts.shape[1], 80) + 1).astype(int))[:-1]
    sums = np.add.reduceat(np.add.reduceat(counts, rows, axis=0), columns, axis=1)
    x, y = np.append(x_edges[rows], x_edges[-1]), np.append(y_edges[columns], y_edges[-1])
    window = _window(float(x[0]), float(x[-1]), float(y[0]), float(y[-1]))
    most = max(1, int(sums.max()))
    cells = [
        tag(
            "rect",
            "heat",
            x=window.across(float(x[i])),
            y=window.down(float(y[j + 1])),
            width=window.pixels(float(x[i + 1] - x[i]))[0] + 0.3,
            height=window.pixels(float(y[j + 1] - y[j]))[1] + 0.3,
            opacity=float(np.sqrt(sums[i, j] / most)),
        )
        for i, j in zip(*np.nonzero(sums > 0), strict=True)
    ]
    return svg(f"Counts by {x_name} and {y_name}", [frame(window, x_name, y_name), *cells], window)


def _window(left: float, right: float, low: float, high: float) -> Window:
    return Window(_span(left, right), _span(low, high), WIDTH - LEFT - 14.0, _HEIGHT)


def _span(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis, with a minimal distance for float64."""
    least = 1024 * math.ulp(max(abs(low), abs(high)))
    return (low, high) if high - low >= least else (low, low + max(1.0, least))
