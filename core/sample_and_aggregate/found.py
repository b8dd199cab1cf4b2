"""What sample and aggregate releases and promises: a stable point, and how far the answers are from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Promises:
    """What every aggregator promises.

    Args:
        leftover: suppose that a fraction `stable_fraction` of the blocks answers within distance D of a point
            c. Then the released value is within a small multiple of D, plus `leftover`, of c, whatever the
            other blocks answer. Data units per axis.
        radius_blocks: the released radius holds all but at most `radius_blocks` of the stable answers. It is
            at most 10% larger than the smallest radius about the value that holds a fraction
            `stable_fraction` of the answers.
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
