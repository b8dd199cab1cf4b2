"""Learn a threshold from labeled examples: choose among all of them, or among interior points of blocks."""

import itertools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.budget import Mechanism, laplace
from core.noise import Noise
from core.ordered.gaps import Order, Points, Runs
from core.ordered.interior_point import Exponential

Ints = NDArray[np.int64]

MOST_BLOCKS = 1 << 16


@dataclass(frozen=True)
class Examples:
    """Labeled examples in order of their values.

    Args:
        zeros: those labeled 0.
        ones: those labeled 1.
        all: both.
    """

    zeros: Order
    ones: Order
    all: Order

    @classmethod
    def of_counts(cls, counts: Counts) -> "Examples":
        """Take the keys of `counts` for twice the value plus the label."""
        of_one = counts.keys % 2 == 1
        zeros, ones = (
            Order.of_counts(Counts(counts.keys[of] // 2, counts.counts[of])) for of in (~of_one, of_one)
        )
        values = np.unique(counts.keys // 2)
        ranks = (
            zeros.ranks[np.searchsorted(zeros.values, values)]
            + ones.ranks[np.searchsorted(ones.values, values)]
        )
        return cls(zeros, ones, Order(values, np.append(ranks, zeros.total + ones.total)))

    def errors(self, thresholds: Points) -> Ints:
        """Number of examples that each threshold labels wrongly: ones below it and zeros from it on."""
        below = self.ones.ranks[np.searchsorted(self.ones.values, thresholds)]
        return np.asarray(
            below + self.zeros.total - self.zeros.ranks[np.searchsorted(self.zeros.values, thresholds)]
        )


class Learner(Protocol):
    """A private method that learns a threshold."""

    def learn(self, examples: Examples, noise: Noise) -> int:
        """Release a threshold; never raises on data."""


@dataclass(frozen=True)
class AmongAll:
    """Choose among all thresholds by the number of examples that they label wrongly.

    Adding an example adds 0 or 1 to every threshold's errors: their change has range 1, and twice that
    for a replacement (scale = moves / epsilon).

    Args:
        size: number of grid points of the value's axis; thresholds are 0, ..., size.
        scale: Gumbel scale.
    """

    size: int
    scale: float

    def learn(self, examples: Examples, noise: Noise) -> int:
        """See `Learner`."""
        runs = Runs.between(examples.all, 0, self.size + 1)
        return runs.choose(-examples.errors(runs.starts), self.scale, noise)

    def errors(self, failure: float) -> int:
        """Bound the errors above the best threshold's, but for probability `failure`: on any data."""
        return math.ceil(self.scale * (math.log(self.size + 1) - math.log(failure)))


@dataclass(frozen=True)
class AmongBlocks:
    """Cut the ordered examples into blocks of noisy size, find an interior point of each, choose the best.

    The way from interior points to thresholds by which both need the same number of records but for a
    factor (Bun, Nissim, Stemmer and Vadhan 2015), for any labels.

    Between two thresholds whose ranks lie in one block there are at most as many examples as it has. An
    interior point c of the block around the best threshold's rank is such a one, or c + 1 is, where
    many examples share c. So one of the candidates c, c + 1, 0 and `size` errs at most one block more often
    than the best threshold; the exponential mechanism picks one by the number of errors.

    Privacy, for an example more or less. The number of examples is counted once, and decides (public by
    then) how many blocks there are. Their sizes are secret. Let x be added, and let it fall into block i:
    where that block is drawn one larger, all the others hold what they held, and block i holds x besides.
    This maps sizes to sizes one to one, and changes their probability by at most exp(1 / size_scale)
    and that of block i's answer by at most exp(1 / finder.scale): together they are private at the sum.
    (x is assigned to a block that is not empty, so that sizes cut off at 0 do no harm.) The final choice is
    among public candidates by errors that change by 0 or 1. A replacement is a removal and an addition.

    Args:
        size: number of grid points of the value's axis; thresholds are 0, ..., size.
        finder: of the interior points; its scale is moves / epsilon.
        total_scale: Laplace scale of the number of examples; 0 where it is public.
        total_margin: the most by which that noise is supposed to be off.
        size_scale: Laplace scale of a block's size.
        size_margin: the most by which that noise is supposed to be off.
        block: intended examples per block.
        choice_scale: Gumbel scale of the choice.
    """

    size: int
    finder: Exponential
    total_scale: float
    total_margin: int
    size_scale: float
    size_margin: int
    block: int
    choice_scale: float

    def learn(self, examples: Examples, noise: Noise) -> int:
        """See `Learner`."""
        order = examples.all
        total = order.total
        if self.total_scale:
            total = int(noise.laplace(np.array([total]), self.total_scale)[0])
        total = max(1, total + self.total_margin)
        block = max(self.block, self.size_margin + math.ceil(total / MOST_BLOCKS))
        count = math.ceil(total / (block - self.size_margin))
        sizes = np.maximum(0, noise.laplace(np.full(count, block), self.size_scale))
        ends = np.minimum(np.append(0, np.cumsum(sizes)), order.total)
        points = [self.finder.find(ranked(order, a, b), noise) for a, b in itertools.pairwise(ends)]
        found = np.array(points, dtype=np.int64)
        candidates = np.unique(np.concatenate([[0, self.size], found, found + 1]))
        scores = -examples.errors(candidates)
        return int(candidates[noise.select_run(scores, np.ones_like(candidates), self.choice_scale)])

    def errors(self, failure: float) -> int:
        """Bound the errors above the best threshold's, but for probability `failure`.

        For up to `examples_covered` examples: the largest block, and what the choice loses.
        """
        candidates = math.log(2 * MOST_BLOCKS + 2)
        return self.block + self.size_margin + math.ceil(self.choice_scale * (candidates - math.log(failure)))

    @property
    def examples_covered(self) -> int:
        """Examples up to which the blocks stay as small as intended."""
        return (self.block - self.size_margin) * MOST_BLOCKS - 2 * self.total_margin

    @classmethod
    def of(
        cls, size: int, epsilon: float, moves: int, total_is_public: bool, failure: float
    ) -> "AmongBlocks":
        """Set scales that spend `epsilon`, and blocks that have an interior point each.

        Args:
            size: number of grid points of the value's axis.
            epsilon: sum over all draws.
            moves: of the neighbors.
            total_is_public: whether the number of examples is.
            failure: of the noise and the finders together.
        """
        parts = {"total": 0.0 if total_is_public else 0.05, "sizes": 0.2, "choice": 0.3}
        scale = {part: moves / (share * epsilon) for part, share in parts.items() if share}
        finder = Exponential(size, moves / ((1 - sum(parts.values())) * epsilon))
        total_scale = scale.get("total", 0.0)
        size_margin = math.ceil(scale["sizes"] * math.log(6 * MOST_BLOCKS / failure))
        return cls(
            size=size,
            finder=finder,
            total_scale=total_scale,
            total_margin=math.ceil(total_scale * math.log(3 / failure)),
            size_scale=scale["sizes"],
            size_margin=size_margin,
            block=size_margin + finder.records_needed(failure / (3 * MOST_BLOCKS)),
            choice_scale=scale["choice"],
        )

    def mechanisms(self, moves: int) -> list[Mechanism]:
        """Every draw and what it costs; sizes and interior points are private together."""
        points = moves / self.size_scale + moves / self.finder.scale
        choice = moves / self.choice_scale
        draws = [
            Mechanism(
                "threshold", "interior points of blocks of noisy size", moves / points, 1, epsilon=points
            ),
            Mechanism("threshold", "exponential mechanism: candidates", self.choice_scale, 1, epsilon=choice),
        ]
        if self.total_scale:
            draws.insert(0, laplace("threshold", "number of examples", moves / self.total_scale, moves))
        return draws


def ranked(order: Order, first: int, last: int) -> Order:
    """Return the records of ranks first, ..., last - 1; ties are divided."""
    low = int(np.searchsorted(order.ranks, first, side="right")) - 1
    high = int(np.searchsorted(order.ranks, last, side="left"))
    if first >= last:
        return Order(order.values[:0], order.ranks[:1])
    return Order(order.values[low:high], np.clip(order.ranks[low : high + 1], first, last) - first)
