"""The word that was probably meant by a mistyped one."""

from collections.abc import Iterable
from difflib import get_close_matches

_CLOSE = 0.6
"""Least similarity of a mistyped word to the one that was meant."""


def nearest(word: str, words: Iterable[str], similarity: float = _CLOSE) -> str | None:
    """Return which of some words is most like a mistyped one, whatever its case; None where none is."""
    by_lower = {each.lower(): each for each in words}
    found = get_close_matches(word.lower(), by_lower, 1, similarity)
    return by_lower[found[0]] if found else None


def meant(word: str | None) -> str:
    """Return a question after a mistyped word, to put behind it; empty where no word is near."""
    return f" (did you mean {word}?)" if word is not None else ""
