"""Counts of several samples of the same records, which travel together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.aggregate import Counts


@dataclass(frozen=True)
class SideBySide:
    """Sparse counts of several samples of the same records, which one pass makes.

    Args:
        samples: the counts of each sample; always as many. All are `Counts`, or `core.stored.Stored`.
    """

    samples: tuple[Any, ...]

    def __add__(self, other: "SideBySide") -> "SideBySide":
        return SideBySide(tuple(a + b for a, b in zip(self.samples, other.samples, strict=True)))

    @classmethod
    def merged(cls, parts: Sequence["SideBySide"]) -> "SideBySide":
        """Add up any number at once, at least one, whose samples are `Counts`."""
        return cls(
            tuple(Counts.merged(counts) for counts in zip(*(part.samples for part in parts), strict=True))
        )

    def split(self, shards: int) -> list["SideBySide"]:
        """Split the counts of every sample by key; see `Counts.split`."""
        parts = [counts.split(shards) for counts in self.samples]
        return [SideBySide(shard) for shard in zip(*parts, strict=True)]
