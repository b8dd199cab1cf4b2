"""The exponential mechanism over a wide axis whose sections are held by different workers.

The points of an axis have losses, whole numbers that a section knows up to a constant: the sum of what the
sections before it add. Let e(v) be the loss of v, and b the least loss. A point is chosen with probability
proportional to exp(s(v) / scale), with the score

    s(v) = -min(e(v), b + far).

What a section offers. Points of equal loss are one entry: their number, and a uniform one of them. Points
whose loss is `far` or more above the section's least loss are one entry, too: their loss is at least b + far.
So a section has at most `far` + 1 entries. The choice takes an entry with probability proportional to its
number of points times exp(score / scale), and answers the entry's point. So of the m points of an entry, each
is answered with probability 1 / m times that of the entry, which is the probability above.

Privacy. If all losses change by at least l and at most h from one database to its neighbor, then so does the
least one, and so does the smaller one of e(v) and b + far. So the range of the scores' change is that of the
losses' change, and the proof of `Exponential` holds. Points of entries that are not taken are dropped, and
entries themselves are never released.
"""

from dataclasses import dataclass

import numpy as np

from core.aggregate import Ints
from core.mechanisms.exponential import Exponential
from core.noise import Noise

NEVER = 1 << 61
"""Where losses end if they do not: no loss is as large."""


@dataclass(frozen=True, eq=False)
class Offer:
    """What a section offers; see the docstring of the module.

    Args:
        low: tells where the section is among the others.
        change: what is added to losses from one section to the next.
        losses: shape (m,), ascending: of each entry, without what earlier sections add.
        lengths: shape (m,), positive: number of points of each entry.
        points: shape (m,), a uniform point of each entry.
    """

    low: int
    change: int
    losses: Ints
    lengths: Ints
    points: Ints

    @classmethod
    def of(
        cls, low: int, starts: Ints, lengths: Ints, losses: Ints, change: int, far: int, noise: Noise
    ) -> "Offer":
        """Draw a point of each entry.

        Args:
            low: see above.
            starts: shape (k,): first points of runs of equal loss, which are the section.
            lengths: shape (k,), positive: points of each run.
            losses: shape (k,), of the points of each run.
            change: see above.
            far: see the docstring of the module.
            noise: where randomness comes from.
        """
        if not len(starts):
            return cls(low, change, losses, lengths, starts)
        ended = np.minimum(losses, losses.min() + far)
        order = np.argsort(ended, kind="stable")
        ended, upto = ended[order], np.cumsum(lengths[order])
        last = np.flatnonzero(np.append(ended[1:] != ended[:-1], True))
        before = np.append(0, upto[last[:-1]])
        sizes = upto[last] - before
        places = before + np.array([noise.below(int(size)) for size in sizes], dtype=np.int64)
        runs = np.searchsorted(upto, places, side="right")
        # A place counts the points of the runs in this order; the run's own end is known.
        points = (starts + lengths)[order][runs] - (upto[runs] - places)
        return cls(low, change, ended[last], sizes, points)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Offer)
            and (self.low, self.change) == (other.low, other.change)
            and np.array_equal(self.losses, other.losses)
            and np.array_equal(self.lengths, other.lengths)
            and np.array_equal(self.points, other.points)
        )


@dataclass(frozen=True)
class Offers:
    """What sections offer.

    Args:
        sections: those with points, ascending.
    """

    sections: tuple[Offer, ...]

    def __add__(self, other: "Offers") -> "Offers":
        return Offers(tuple(sorted(self.sections + other.sections, key=lambda offer: offer.low)))

    def choose(self, draw: Exponential, far: int, noise: Noise) -> int:
        """Choose a point of the axis, 0, 1, ..., of which every section is there.

        Args:
            draw: with the scale, and the range of the losses' change as spread.
            far: see the docstring of the module.
            noise: where randomness comes from.
        """
        before = np.cumsum([0, *(offer.change for offer in self.sections[:-1])])
        losses = np.concatenate(
            [start + offer.losses for start, offer in zip(before, self.sections, strict=True)]
        )
        lengths = np.concatenate([offer.lengths for offer in self.sections])
        points = np.concatenate([offer.points for offer in self.sections])
        return draw.offered(points, lengths, -np.minimum(losses, losses.min() + far), noise)
