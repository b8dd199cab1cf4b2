"""The ordered mechanism: noise on every cumulative count, then isotonic regression."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from core.aggregate import Counts
from core.budget import Mechanism
from core.cdf.found import Cumulative, Reading, count_values, cumulate, monotone
from core.cdf.largest_errors import LargestErrors
from core.cdf.params import Cdf
from core.cdf.reading import promised, range_ends, read
from core.draws import Charged, Draw, Laplace
from core.errors import InvalidValue
from core.mechanisms.tails import largest_of, variance
from core.noise import Noise
from core.rounds import Block
from core.task import Accuracy, Method
from core.tightness import Tightness

_TIGHTNESS = Tightness(
    "The errors promised for counts and ranges are reached where every value of the domain has many more "
    "rows than the noise scale. Where values have few rows or none, their counts are fitted together, and "
    "errors are many times smaller.",
    reached=True,
)


@dataclass(frozen=True)
class OrderedMechanism:
    """Release the cumulative histogram with noise on every count, then isotonic regression.

    A secret pair i, j changes |i - j| <= theta of the counts by 1. So the counts have L1 sensitivity theta,
    and Laplace noise of scale theta / epsilon on each is epsilon-private (He, Machanavajjhala and Ding 2014,
    Section 7.1). The last count, the number of records, is public.

    Args:
        size: number of grid points.
        count: noise of every count, of scale theta / epsilon.
        reading: what is computed from the release.
    """

    size: int
    count: Laplace
    reading: Reading
    purpose: ClassVar[str] = "how many rows have at most each value"
    dense: ClassVar[bool] = True
    floor: int = 0
    name: str = "cdf"

    @property
    def most_counts(self) -> int:
        """See `core.held`."""
        return self.size

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.count,)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the block's records by value."""
        return count_values(block)

    def release(self, aggregate: Counts, state: None, noise: Noise) -> Cumulative:
        """Release ascending noisy counts."""
        exact = cumulate(aggregate, self.size)
        total = int(exact[-1])
        noisy = np.append(self.count.add(exact[:-1], noise), total).astype(np.float64)
        return Cumulative(monotone(noisy, total), self.reading)


class Ordered(Method[Cdf]):
    """The ordered mechanism of a distance policy, for a public number of records."""

    name: ClassVar[str] = "ordered"
    uses_policy: ClassVar[bool] = True

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.neighbors.name == "replace_one":
            return None
        return InvalidValue(
            "method",
            self.name,
            "an added lowest record changes every cumulative count, so neighbors must be replace_one",
        )

    @property
    def size(self) -> int:
        """Number of grid points."""
        return self.setting.grid.extents[0] + 1

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        round_ = self._round(share)
        average = 2 * (self.size - 1) / (self.size + 1)  # the empty prefix and the whole one are exact
        return promised(round_.reading, average * variance(round_.count.scale), _TIGHTNESS)

    def charges(self, share: float) -> tuple[Mechanism, ...]:
        """See `Method.charges`."""
        return self._count(share).mechanisms("cdf")

    def _count(self, share: float) -> Laplace:
        return Laplace.of("cumulative counts", share * self.setting.budget.epsilon, self._sensitivity)

    @cached_property
    def _sensitivity(self) -> float:
        return self.setting.neighbors.cumulative(self.size).l1

    def _round(self, share: float) -> OrderedMechanism:
        setting, count = self.setting, self._count(share)
        ends = [(start, stop) for _, _, start, stop in range_ends(setting)]
        noisy = (
            (0 < start < self.size) + (0 < stop < self.size) if start < stop else 0 for start, stop in ends
        )
        variances = [variance(count.scale) * number for number in noisy]
        reading = read(setting, variances, lambda part: self._largest(count.scale, part))
        return OrderedMechanism(self.size, count, reading)

    def _largest(self, scale: float, failure: float) -> LargestErrors:
        """Bound the errors: exactly that of a count, and a range has two ends."""
        count = largest_of(self.size - 1, scale, failure)
        return LargestErrors(count, 2 * count)
