"""A draw from a cell: either choices of some of its points at once, or histograms of its records in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.budget import Cost
from core.draws import Draw
from core.mechanisms.exponential import Both
from core.noise import Lengths, Noise

Ints = NDArray[np.int64]
Points = Ints | NDArray[np.object_]


@dataclass(frozen=True, kw_only=True)
class WithinCell(Draw):
    """Choose k points of a cell, or release k histograms of its records, at the cost of one.

    The points are chosen by the exponential mechanism; the histograms have discrete Laplace noise. Each of
    the k parts has k times the noise. For one record more or less they are together (1 / scale)-private.

    Proof.
    - The k parts compose in sequence, adaptively, so it is enough that each is (1 / (k scale))-private.
    - The change of the scores of a choice has a range of at most `unit`, and the choice has scale
      k unit scale.
    - A record is in one count of a histogram, so a histogram has L1 sensitivity 1. Its scale is k scale.
    - Their kind and their number must be public before the first of them.

    Args:
        scale: of the noise of a single histogram, and of a single choice per unit.
    """

    kind: ClassVar[str] = "exponential mechanism or discrete Laplace in a cell"
    scale: float

    @property
    def noise_scale(self) -> float:
        """See `Draw.noise_scale`."""
        return self.scale

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return 1

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        return Cost(1 / self.scale)

    def points(
        self,
        starts: Points,
        lengths: Lengths,
        scores: Sequence[Ints],
        parts: float,
        noise: Noise,
        unit: float,
    ) -> tuple[int, ...]:
        """Choose some of the cell's points, given in runs of equal scores; see `Exponential.point`.

        Args:
            starts: shape (m,), first point of each run; the runs together are the cell.
            lengths: shape (m,), positive.
            scores: arrays of shape (m,), those of each choice.
            parts: see `WithinCell`.
            noise: where randomness comes from.
            unit: public, above 0: the range of the change of a score.
        """
        shared = parts * unit

        def sample() -> tuple[int, ...]:
            runs = [noise.select_run(each, lengths, self.scale * shared) for each in scores]
            return tuple(int(starts[run]) + noise.below(int(lengths[run])) for run in runs)

        return noise.answer(self, sample, shared)

    def both(
        self,
        starts: Points,
        lengths: Lengths,
        scores: Ints,
        others: Ints,
        parts: float,
        noise: Noise,
        unit: float,
    ) -> tuple[int, int]:
        """Choose one of the cell's points and one of several candidates together.

        See `core.mechanisms.exponential.Both`.

        Args:
            starts: see `points`.
            lengths: see `points`.
            scores: shape (m,), of the points.
            others: shape (k,), of the candidates.
            parts: see `WithinCell`.
            noise: where randomness comes from.
            unit: public, above 0: the range of the change of a score.
        """
        alone = unit * parts
        sample = Both(starts, lengths, scores, others, self.scale * alone, noise)
        return noise.answer(self, sample, alone)

    def histogram(self, counts: Ints, parts: int, noise: Noise) -> Ints:
        """Release one of `parts` histograms of the cell's records; later ones may depend on it.

        Args:
            counts: shape (m,), of disjoint sets of the cell's records.
            parts: see `WithinCell`.
            noise: where randomness comes from.
        """
        return noise.answer(self, lambda: noise.laplace(counts, self.scale * parts), parts)
