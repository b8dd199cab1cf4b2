"""Numbers and releases as a person reads them."""

import math
import re
from collections.abc import Mapping
from typing import Any

NEIGHBORS = {
    "add_or_remove_one": "one row more or one row less; the number of rows is private",
    "replace_one": "one row replaced by another; the number of rows is public",
}


def hides(neighbors: str, unit: str | None) -> str:
    """Return what a relation hides: of units where there is a column of them, of rows otherwise."""
    return NEIGHBORS[neighbors] if unit is None else NEIGHBORS[neighbors].replace("row", "unit")


def number(value: float, digits: int = 4) -> str:
    """Return `value` for a person: `digits` significant ones, thousands separated, 1e-9 for 1e-09."""
    if math.isfinite(value) and 10**digits <= abs(value) < 10**15:
        return f"{value:,.0f}"
    return re.sub(r"e([-+])0+", r"e\1", f"{value:.{digits}g}")


def on_grid(value: float, step: float) -> str:
    """Return a value in data units with the decimals that the step can tell apart."""
    if isinstance(value, int):
        return f"{value:,}"
    decimals = max(0, min(12, math.ceil(-math.log10(step) - 1e-9)))
    return f"{value:,.{decimals}f}"


def confidence(release: Mapping[str, Any]) -> str:
    """Return the probability with which the promises of a plan or release hold, together."""
    return f"{number(100 * (1 - release['accuracy']['failure']))}%"
