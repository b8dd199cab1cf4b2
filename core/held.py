"""What the private stage of a plan holds at work, for who chooses a machine.

A round says it by properties, all made from public parameters:

- `most_counts`: most counts that it holds at once, whatever the data; without it the round holds few.
- `dense`: whether it holds as many where there are fewer records; otherwise no more than records.
- `growing`: what it holds besides that nothing bounds, as a phrase; None or missing where there is nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

AT_WORK = 250
"""Bytes that a count takes in a run while counts are merged, looked at and drawn from, at most."""


@dataclass(frozen=True)
class Held:
    """What the private stage holds at work.

    Args:
        counts: most counts, whatever the data.
        dense: whether there are as many where there are fewer records.
        growing: phrases for what it holds besides, which grows with the data.
    """

    counts: int
    dense: bool
    growing: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Most bytes of the counts."""
        return AT_WORK * self.counts


def held_by(rounds: Iterable[object]) -> Held:
    """Return what rounds hold, which come one after the other."""
    plain = [getattr(round_, "round_", round_) for round_ in rounds]  # without checks
    counts = (getattr(round_, "most_counts", None) or 0 for round_ in plain)
    growing = (getattr(round_, "growing", None) for round_ in plain)
    dense = any(getattr(round_, "dense", False) for round_ in plain)
    return Held(max(counts, default=0), dense, tuple(dict.fromkeys(phrase for phrase in growing if phrase)))
