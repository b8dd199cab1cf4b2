"""Points of given ranks by halving, over noisy counts of records below points, as near policies allow."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.counted_points import Ranks
from core.draws import Draw, Laplace
from core.errors import InvalidValue
from core.mechanisms.tails import largest_of
from core.neighbors import Neighbors
from core.noise import Noise
from core.policy import Partition, Secrets

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_TYPICAL = 0.95  # root mean square error of a rank, in scales, where ranks grow evenly; computed numerically


def check_near(neighbors: Neighbors, size: int) -> InvalidValue | None:
    """Return why `OrderedSearch` does not serve a relation, or None where it does.

    Args:
        neighbors: the relation.
        size: number of grid points.
    """
    if neighbors.name == "replace_one" and neighbors.secrets.reach((size - 1,)) < size - 1:
        return None
    return InvalidValue(
        "method",
        "ordered",
        "it needs a policy whose secret pairs reach less far than the domain",
    )


@dataclass(frozen=True)
class OrderedSearch:
    """Find a grid point for each of several ranks, from noisy counts of the records below some points.

    The number of records is public. The domain is cut into blocks, and a rank is sought by halving: first
    among the ends of blocks, then among the points of the block that was found. Where the noisy count of the
    records below a point is at most the rank, the search goes on from that point upward, else downward.

    Sensitivity. A record that moves from x to y > x changes the counts below the points x + 1, ..., y, each
    by 1. These are at most theta points in a row, theta being the reach of the policy (He, Machanavajjhala
    and Ding 2014, Section 7.1). The ordered mechanism gives all counts noise. Here only some are asked for,
    and answers decide which. As every count has noise of its own, this is the same as to draw the noise of
    all counts beforehand and to look at some of them. So a draw costs what all counts cost that it may be
    asked for:

    1. Ends of blocks: blocks are at least theta wide, so at most one of their ends is among theta points in a
       row. The sensitivity is 1 for all ends together. Under a partition policy blocks are its parts, no
       secret pair lies on both sides of an end, and the counts are exact.
    2. The d-th halving of a block with m halvings: the points that may be asked for are 2^(m - d + 1) apart,
       so at most ceil(theta / 2^(m - d + 1)) of them are among theta in a row. Besides, at most one point is
       asked for per rank, and which ones depends on earlier answers alone. The sensitivity is the smaller of
       both numbers.

    All counts have noise of the same scale, which is the sum of these sensitivities over epsilon.

    Utility. If no answer is off by more than m in the direction that misleads, the found point v has a rank
    within m of the wanted one: at most rank + m records are below v, and at least rank - m at or below it.

    Args:
        size: number of grid points.
        block: points per block; the last one may have fewer.
        ends: noise of the counts below ends of blocks.
        inside: noise of the counts of each halving inside a block.
    """

    size: int
    block: int
    ends: Laplace
    inside: tuple[Laplace, ...]

    @classmethod
    def of(cls, size: int, secrets: Secrets, ranks: int, epsilon: float) -> "OrderedSearch":
        """Return the search that spends `epsilon`.

        Args:
            size: number of grid points.
            secrets: the secret pairs; see `check_near`.
            ranks: how many ranks are sought.
            epsilon: sum over all draws.
        """
        theta = secrets.reach((size - 1,))
        parts = isinstance(secrets, Partition)
        halvings = theta.bit_length() if parts else (theta - 1).bit_length()
        block = secrets.widths[0] if isinstance(secrets, Partition) else 1 << halvings
        blocks = -(-size // block)
        of_ends = 1 if blocks > 1 and not parts else 0
        of_halvings = [min(ranks, -(-theta // (1 << (halvings - depth)))) for depth in range(halvings)]
        scale = (of_ends + sum(of_halvings)) / epsilon
        ends = Laplace(
            what="rows below ends of blocks",
            scale=scale if of_ends else 0.0,
            sensitivity=of_ends,
            times=max(1, (blocks - 1).bit_length()),
            disjoint=True,
        )
        inside = tuple(
            Laplace(what=f"rows below points, halving {depth + 1}", scale=scale, sensitivity=change)
            for depth, change in enumerate(of_halvings)
        )
        return cls(size, block, ends, inside)

    @property
    def _blocks(self) -> int:
        return -(-self.size // self.block)

    def draws(self) -> tuple[Draw, ...]:
        """Return every draw that `points` can make."""
        return (self.ends, *self.inside) if self._blocks > 1 else self.inside

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return max(draw.noise_scale for draw in self.draws())

    def points(self, order: Ranks, ranks: Floats, noise: Noise) -> Ints:
        """Return a grid point for each rank, shape (k,), ascending as the ranks do.

        Args:
            order: the records.
            ranks: shape (k,), from 0 to the number of records.
            noise: where randomness comes from.
        """
        first = np.zeros(len(ranks), dtype=np.int64)
        last = np.full(len(ranks), self._blocks, dtype=np.int64)
        for _ in range((self._blocks - 1).bit_length()):
            middle, open_ = (first + last) // 2, last - first > 1
            up = _upward(order, ranks, middle * self.block, open_, self.ends, noise)
            first, last = np.where(up, middle, first), np.where(open_ & ~up, middle, last)
        point = first * self.block
        stop = np.minimum(point + self.block, self.size)
        for left, draw in zip(reversed(range(len(self.inside))), self.inside, strict=True):
            middle = point + (1 << left)
            up = _upward(order, ranks, middle, middle < stop, draw, noise)
            point = np.where(up, middle, point)
        return np.asarray(point)

    def largest_error(self, ranks: int, failure: float) -> int:
        """Bound the errors of so many ranks, but for probability `failure`.

        At each count noise in one direction alone can mislead. So of n counts with noise, one misleads by
        more than m with at most the probability that one of n / 2 is off by more than m in any direction.
        """
        ends = (self._blocks - 1).bit_length() if self.ends.scale else 0
        return largest_of(-(-ranks * (ends + len(self.inside)) // 2), self.scale, failure)

    @property
    def typical_error(self) -> float:
        """Root mean square error of a rank where records are dense."""
        return _TYPICAL * self.scale


def _upward(order: Ranks, ranks: Floats, points: Ints, open_: Bools, draw: Laplace, noise: Noise) -> Bools:
    """Return for which ranks the noisy count below the point is at most the rank; False where not open."""
    asked, place = np.unique(points[open_], return_inverse=True)
    up = np.zeros(len(ranks), dtype=np.bool_)
    if len(asked):
        below = draw.add(order.ranks_at(asked), noise)
        up[open_] = below[place] <= ranks[open_]
    return up
