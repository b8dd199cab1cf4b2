"""Draw the figures of benchmarks as SVG with Vega-Lite."""

from collections.abc import Mapping, Sequence
from typing import Any

import vl_convert

Row = Mapping[str, Any]


def draw_lines(
    title: str,
    rows: Sequence[Row],
    x: str,
    y: str,
    *,
    log: bool = False,
    band: bool = False,
    what: str = "policy",
) -> str:
    """Draw lines of `y` over `x`, one for each `policy`, dashed by `kind` where rows have it.

    Args:
        title: of the figure.
        rows: with the fields named by `x` and `y`, `policy`, and maybe `kind`, or `low` and `high`.
        x: field and name of the axis.
        y: the same.
        log: whether both axes are logarithmic.
        band: whether to draw `low` to `high` as bars.
        what: title of the colors.
    """
    scale = {"type": "log"} if log else {"zero": False}
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    encoding: dict[str, Any] = {
        "x": {"field": x, "type": "quantitative", "scale": scale},
        "color": {"field": "policy", "type": "nominal", "title": what, "scale": {"domain": policies}},
    }
    up = {"type": "quantitative", "title": y, "scale": scale}
    lines: dict[str, Any] = {"mark": {"type": "line", "point": True}, "encoding": {"y": {"field": y, **up}}}
    if any("kind" in row for row in rows):
        lines["encoding"]["strokeDash"] = {
            "field": "kind",
            "type": "nominal",
            "legend": {"symbolType": "stroke", "symbolFillColor": "gray", "symbolStrokeColor": "gray"},
        }
    bars = {"mark": "rule", "encoding": {"y": {"field": "low", **up}, "y2": {"field": "high"}}}
    spec = {
        "title": title,
        "background": "white",
        "width": 560,
        "height": 360,
        "data": {"values": list(rows)},
        "encoding": encoding,
        "layer": [lines, *([bars] if band else [])],
    }
    return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])) + "\n"
