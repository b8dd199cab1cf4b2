"""What sample and aggregate answers and promises: a stable point, and how far the answers are from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Promises:
    """What every aggregator promises.

    Args:
        leftover: if the `stable_fraction` of the blocks answer within some distance of a point, the value is
            within a small multiple of that distance plus `leftover` of it, in data units per axis, whatever
            the other blocks answer.
        radius_blocks: the radius, to 10%, is no wider than what holds the `stable_fraction` of the answers,
            and holds all of these but so many.
    """

    leftover: float
    radius_blocks: int


@dataclass(frozen=True)
class Result:
    """The answer: a point, and the radius about it that holds the stable answers, data units."""

    value: tuple[float, ...]
    radius: float


@dataclass(frozen=True)
class Stable:
    """A released point, and how far the blocks' answers are from it.

    Args:
        value: shape (d,), grid steps.
        radius: grid steps.
    """

    value: Ints
    radius: int

    def result(self, grid: Grid) -> Result:
        """Return value and radius in data units."""
        return Result(tuple(grid.restore(self.value).tolist()), self.radius * grid.step)
