"""Labeled examples in order of their values, and how many of them thresholds and cuts mislabel."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.distinct import distinct
from core.gaps import Order, Points

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Examples:
    """Labeled examples in order of their values.

    Args:
        zeros: those labeled 0.
        ones: those labeled 1.
        all: both.
        ends: number of examples before each run of one value and label, and at last of all; of equal values,
            those labeled 1 come first.
        ones_upto: how many of these examples are labeled 1.
    """

    zeros: Order
    ones: Order
    all: Order
    ends: Ints
    ones_upto: Ints

    @classmethod
    def of_counts(cls, counts: Counts) -> "Examples":
        """Read examples from counts whose keys are twice the value plus the label."""
        of_one = counts.keys % 2 == 1
        zeros, ones = (
            Order.of_counts(Counts(counts.keys[of] // 2, counts.counts[of])) for of in (~of_one, of_one)
        )
        values = distinct(counts.keys // 2)
        ranks = zeros.ranks_at(values) + ones.ranks_at(values)
        order = np.argsort(counts.keys ^ 1)
        ones_first, labels = counts.counts[order], of_one[order]
        return cls(
            zeros,
            ones,
            Order(values, np.append(ranks, zeros.total + ones.total)),
            np.append(0, np.cumsum(ones_first)),
            np.append(0, np.cumsum(np.where(labels, ones_first, 0))),
        )

    def errors(self, thresholds: Points) -> Ints:
        """Return how many examples each threshold mislabels: ones below it, and zeros at or above it."""
        below, above = self.ones.ranks_at(thresholds), self.zeros.total - self.zeros.ranks_at(thresholds)
        return np.asarray(below + above)

    def errors_of_cuts(self, ranks: Ints) -> Ints:
        """Return how many examples each cut mislabels: ones before its rank, and zeros from its rank on.

        Args:
            ranks: from 0 on; a cut beyond all examples labels all of them 0.
        """
        ranks = np.minimum(ranks, self.all.total)
        run = np.searchsorted(self.ends, ranks, side="right") - 1
        # A run of zeros adds no ones, and a run of ones adds one a rank: the smaller of both is exact.
        run_end = np.minimum(run + 1, len(self.ends) - 1)
        ones = np.minimum(self.ones_upto[run] + ranks - self.ends[run], self.ones_upto[run_end])
        return np.asarray(2 * ones - ranks + self.zeros.total)


def labeled(points: Ints, label: int) -> Counts:
    """Count the examples of each value and label; the key is twice the value plus the label.

    Args:
        points: shape (n, 2): values, and grid coordinates of labels.
        label: grid coordinate from which a label counts as 1.
    """
    return Counts.of(2 * points[:, 0] + (points[:, 1] >= label))


def ranked(order: Order, first: int, last: int) -> Order:
    """Return the records of ranks first, ..., last - 1, as far as there are any.

    Records of equal value have ranks of their own, so only some of them may be returned.
    """
    first, last = max(0, first), min(last, order.total)
    low = int(np.searchsorted(order.ranks, first, side="right")) - 1
    high = int(np.searchsorted(order.ranks, last, side="left"))
    if first >= last:
        return Order(order.values[:0], order.ranks[:1])
    return Order(order.values[low:high], np.clip(order.ranks[low : high + 1], first, last) - first)
