"""Escape control characters, so that text from outside is safe on a terminal and in a log."""

import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: they control terminals and end lines
    r"\u2028\u2029"  # line and paragraph separators
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they change the direction of text
    r"\ud800-\udfff]"  # lone surrogates: UTF-8 cannot encode them
)
_MOST_CHARACTERS, _MOST_LINES = 480, 20
_NARROWEST = 72


def printable(value: Any) -> Any:
    """Return a JSON value whose strings have escapes in place of control characters."""
    if isinstance(value, str):
        return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    if isinstance(value, Mapping):
        return {printable(key): printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable(item) for item in value]
    return value


def as_json(value: Any, indent: int | None = None) -> str:
    """Return `value` as JSON text with all control characters escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return re.sub(r"(?!\n)" + CONTROL.pattern, lambda found: f"\\u{ord(found[0]):04x}", text)


def finite(value: Any) -> Any:
    """Return a JSON value with null in place of NaN and infinities."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def error_text(error: Exception) -> str:
    """Return the sentences of an error, one per line. The middle of a long sentence is cut out."""
    lines = [_shortened(printable(str(sentence))) for sentence in error.args[:_MOST_LINES]]
    if len(error.args) > _MOST_LINES:
        lines.append(f"There are {len(error.args) - _MOST_LINES} more problems.")
    return "\n".join(lines)


def _shortened(text: str) -> str:
    half = _MOST_CHARACTERS // 2
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:half]} ... {text[-half:]}"


def terminal(wide: bool) -> "Console":
    """Return a console that prints text verbatim, without markup or emoji codes.

    Args:
        wide: whether to use the width of the terminal; otherwise it is 110 characters. In a narrower one
            than 72 tables would lose words and numbers, so it is at least that, and lines break.
    """
    from rich.console import Console

    console = Console(width=None if wide else 110, highlight=False, markup=False, emoji=False)
    console.width = max(console.width, _NARROWEST)
    return console
