"""Find the axes along which the records spread, from noisy second moments."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Tally
from core.centers.cells import AXIS_UNIT, Frame
from core.centers.space import Space
from core.draws import Draw, Gaussian
from core.noise import Noise
from core.rounds import Block, State

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_DIMENSION = 1024  # most columns for which a matrix of second moments is summed up
_MOST_AXES = 8
_SPANS = 2.0  # half the box's side, in standard deviations
_BLURRED = 3.0  # a mean is taken if its squared length exceeds so many times what noise adds to it
_REACH = 1 << 11  # length of the records in the second moments' own units: 2^40 squares fit into int64
_PUBLIC_SEED = 0xA4E5  # of axes that do not depend on the data


@dataclass(frozen=True)
class Moments:
    """Release the sum of x, the count, and the sum of x x^T over records x about the middle, in coarse units.

    Let b be a bound on the length of a record in these units. The count is appended to the sum of x as one
    more coordinate, in which every record has the value b.

    Sensitivity of the sum with the count:

    1. An added record changes it by (x, b), which has L2 norm at most sqrt(2) b.
    2. A replaced record changes it by (y - x, 0), which has L2 norm at most 2 b.

    Sensitivity of the sum of x x^T:

    1. An added record changes it by at most b^2 in Frobenius norm.
    2. Replacing x by y changes it by sqrt(|x|^4 + |y|^4 - 2 (x.y)^2) <= sqrt(2) b^2.
    3. Only the upper triangle is released. An entry off the diagonal occurs twice in the Frobenius norm. So
       the unit of such an entry is b^2 / sqrt(2), and the unit of a diagonal entry is b^2. In these units the
       L2 norm of the triangle is the Frobenius norm divided by b^2.

    Args:
        space: the universe.
        sums: noise of the sum and count, units of b.
        squares: noise of the upper triangle, in the units above.
    """

    space: Space
    sums: Gaussian
    squares: Gaussian
    purpose: ClassVar[str] = "along which directions the rows spread"
    name: str = "moments"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.sums, self.squares

    @cached_property
    def shrink(self) -> float:
        """Coarse units per unit of the space."""
        return min(1.0 / (1 << self.space.bits), (_REACH - math.sqrt(self._d)) / self.space.reach)

    @cached_property
    def longest(self) -> int:
        """Bound b on a record's norm in coarse units, rounding included."""
        return math.ceil(self.space.reach * self.shrink + math.sqrt(self._d) / 2)

    @property
    def _d(self) -> int:
        return self.space.grid.dimension

    def summarize(self, block: Block, state: State) -> Tally:
        """Sum x, count, and the upper triangle of x x^T; exact in float64, as all sums are below 2^53."""
        total, squares = np.zeros(self._d), np.zeros((self._d, self._d))
        for records in self.space.chunks(block.points, 3 * self._d):
            coarse = np.rint(records * self.shrink)
            total += coarse.sum(axis=0)
            squares += coarse.T @ coarse
        upper = squares[np.triu_indices(self._d)]
        count = len(block.points) * self.longest
        return Tally(np.concatenate([total, [count], upper]).astype(np.int64))

    def release(self, aggregate: Tally, state: State, noise: Noise) -> Frame:
        """Release eigenvectors of the noisy covariance: those above the noise, at least 2 and at most 8."""
        d, b = self._d, self.longest
        sums = self.sums.add(aggregate.totals[: d + 1], noise, unit=b)
        rows, columns = np.triu_indices(d)
        units = np.where(rows == columns, b * b, b * b / math.sqrt(2))
        squares = np.zeros((d, d))
        squares[rows, columns] = self.squares.add(aggregate.totals[d + 1 :], noise, unit=units)
        squares[columns, rows] = squares[rows, columns]

        count = max(1.0, sums[-1] / b)
        mean = sums[:-1] / count
        blurred = d * (self.sums.scale * b / count) ** 2  # what noise adds to the squared length of the mean
        if mean @ mean <= _BLURRED * blurred:
            mean[:] = 0.0  # it may be noise alone: the box stays about the middle
        values, vectors = np.linalg.eigh(squares / count - np.outer(mean, mean))
        values, vectors = values[::-1], vectors[:, ::-1]
        # a symmetric Gaussian matrix has norm about scale sqrt(2 d): smaller eigenvalues may be noise alone
        clear = int((values > self.squares.scale * b * b * math.sqrt(2 * d) / count).sum())
        q = min(d, _MOST_AXES, max(2, clear))
        # noise in the center is a distance from the records, and noise in the squares may hide one
        unsure = 2 * (1 - q / d) * blurred + self.squares.scale * b * b * math.sqrt(d) / count
        rest = max(0.0, float(values[q:].sum())) + unsure if q < d else 0.0
        rest = min(rest, (self.space.reach * self.shrink) ** 2)
        spans = np.sqrt(np.maximum(values[:q], 1.0)) * _SPANS / self.shrink
        spans[clear:] = np.minimum(spans[clear:], public_half(self.space))
        return Frame(
            space=self.space,
            center=self.space.inside(mean[None, :] / self.shrink)[0],
            axes=np.rint(vectors[:, :q] * AXIS_UNIT).astype(np.int64),
            half=np.clip(np.ceil(spans), 1, 2 * self.space.reach).astype(np.int64),
            rest=rest / self.shrink**2,
        )


def public_half(space: Space) -> int:
    """Return half a box's side along an axis of which the data say nothing, units.

    Records lie within the universe's radius r of the middle. So their projections onto q of d random axes
    have norm about r sqrt(q / d) at most (Johnson and Lindenstrauss 1984). Along one axis it is r / sqrt(d).
    """
    return min(space.reach, math.ceil(_SPANS * space.reach / math.sqrt(space.grid.dimension)))


def random_frame(space: Space) -> Frame:
    """Return public random axes through the middle: a projection that nearly keeps distances."""
    d = space.grid.dimension
    q = min(d, _MOST_AXES)
    gauss = np.random.default_rng(_PUBLIC_SEED).normal(size=(d, q))
    axes = np.rint(np.linalg.qr(gauss)[0] * AXIS_UNIT).astype(np.int64)
    return Frame(
        space,
        center=np.zeros(d, dtype=np.int64),
        axes=axes,
        half=np.full(q, public_half(space), dtype=np.int64),
        rest=float(space.reach) ** 2,
    )
