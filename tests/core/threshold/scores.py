"""Draws and sizes that tests of thresholds share."""

from core.mechanisms.exponential import Exponential

SIZE = 5


def among(scale: float, spread: float = 1, what: str = "any") -> Exponential:
    """Return an exponential mechanism."""
    return Exponential(what=what, scale=scale, spread=spread)
