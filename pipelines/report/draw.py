"""Draw pictures as SVG with Vega-Lite, which loads nothing and runs without a browser."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from pipelines.answers.picture import Picture
from pipelines.console.printable import printable

_FONT = "Liberation Sans"
"""The library brings this font, so that sizes of texts are the same on every computer."""

_LONGEST = 60
"""Characters of a text."""

_TEXT = {"labelColor": "var(--soft)", "titleColor": "var(--ink)", "labelFontSize": 13, "titleFontSize": 14,
         "titleFontWeight": "normal"}  # fmt: skip

_CONFIG: dict[str, Any] = {
    "aria": False,
    "background": None,
    "font": _FONT,
    "view": {"stroke": "var(--line)"},
    "axis": {
        **_TEXT,
        "domain": False,
        "gridColor": "var(--grid)",
        "tickColor": "var(--line)",
        "tickCount": 5,
        "labelOverlap": "greedy",
        "labelSeparation": 8,
        "labelFlush": True,
        "labelLimit": 0,  # at a limit the library may cut a character in two, and fails
        "titleLimit": 0,
    },
    "legend": {
        **_TEXT,
        "orient": "bottom",
        "direction": "vertical",
        "labelColor": "var(--ink)",
        "labelLimit": 0,
        "titleLimit": 0,
        "titleOrient": "left",
        "offset": 10,
        "layout": {"bottom": {"direction": "vertical", "anchor": "start", "margin": 2}},
    },
    "title": {"color": "var(--ink)", "fontSize": 14, "anchor": "start", "limit": 0},
    "text": {"color": "var(--ink)", "fontSize": 13},
    "concat": {"spacing": 14},
}


def draw(picture: Picture, of: str | None = None) -> Markup:
    """Return a picture as SVG, for a page whose style sheet has its colors.

    The bytes depend on the picture alone. Names in it may be anything: control characters are escaped.

    Args:
        picture: what to draw.
        of: the name of the group that it is of, which stands above it.
    """
    import vl_convert  # only a report needs it

    spec = {"config": _CONFIG, "vconcat": list(picture.plots)}
    if of is not None:
        spec["title"] = of
    text = vl_convert.vegalite_to_svg(_safe(spec), allowed_base_urls=[])
    size = re.search(r'viewBox="([^"]*)"', text)
    inside = text[text.index(">") + 1 :].replace(f' font-family="{_FONT}"', "")
    mark = hashlib.sha256(re.sub(r"\bclip\d+", "", inside).encode()).hexdigest()[:12]
    numbers: dict[str, int] = {}
    inside = re.sub(
        r'(id="|url\(#)(clip\d+)',
        lambda found: f"{found[1]}clip-{mark}-{numbers.setdefault(found[2], len(numbers))}",
        inside,
    )
    title = escape(_safe(picture.title if of is None else f"{of}: {picture.title}"))
    box = size[1] if size else ""
    return Markup(f'<svg role="img" aria-label="{title}" viewBox="{box}"><title>{title}</title>{inside}')


def _safe(value: Any) -> Any:
    """Return a JSON value whose strings the library can measure: its process ends at what XML has not."""
    if isinstance(value, str):
        short = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
        return re.sub("[\ufffe\uffff]", "\ufffd", printable(short))
    if isinstance(value, Mapping):
        return {key: _safe(item) for key, item in value.items()}
    return [_safe(item) for item in value] if isinstance(value, list | tuple) else value
