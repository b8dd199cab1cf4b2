"""The exponential mechanism: over public candidates, and over runs of points of equal score."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from core.budget import Cost
from core.draws import Draw
from core.noise import Lengths, Noise

Ints = NDArray[np.int64]
Points = Ints | NDArray[np.object_]


def missed_scores(candidates: int, failure: float) -> float:
    """Bound by how many scales a choice among candidates misses the best score, but for `failure`.

    One candidate has the best score 0. If each of the others has a score of at most -a, the probability to
    choose one of them is at most x / (1 + x) for x = (candidates - 1) e^(-a / scale). This is `failure` for
    the returned a / scale.
    """
    return math.log(max(1, candidates - 1)) + math.log1p(-failure) - math.log(failure)


@dataclass(frozen=True, kw_only=True)
class Exponential(Draw):
    """Choose a candidate with probability proportional to exp(score / scale).

    Privacy. `spread` is the range of the change of the scores between neighbors: the largest change minus the
    smallest one, over all candidates. The weight of a candidate grows by a factor of at most
    exp(largest / scale), and the sum of weights by a factor of at least exp(smallest / scale). So the privacy
    loss is at most spread / scale.

    Utility. With probability 1 - failure the chosen score is at least the best one minus
    scale ln(candidates / failure).

    Args:
        scale: the scale above.
        spread: the range above; twice the sensitivity of the score always suffices.
    """

    kind: ClassVar[str] = "exponential mechanism"
    scale: float
    spread: float

    @classmethod
    def of(cls, what: str, epsilon: float, spread: float, **more: Any) -> "Exponential":
        """Return the draw that spends `epsilon`."""
        return cls(what=what, scale=spread / epsilon, spread=spread, **more)

    @property
    def noise_scale(self) -> float:
        """See `Draw.noise_scale`."""
        return self.scale

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return self.spread

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        return Cost(self.spread / self.scale)

    def candidate(self, scores: Ints, noise: Noise, unit: float = 1.0) -> int:
        """Choose one of several public candidates; return its index.

        Args:
            scores: shape (m,).
            noise: where randomness comes from.
            unit: public, above 0; scale and spread are multiples of it.
        """
        return noise.answer(self, lambda: noise.select(scores, self.scale * unit), unit)

    def point(self, starts: Points, lengths: Lengths, scores: Ints, noise: Noise, unit: float = 1.0) -> int:
        """Choose a point of a public universe, whose points are given in runs of equal score.

        The runs may depend on the data at no cost: the probability of a point depends on scores alone.

        Args:
            starts: shape (m,), first point of each run; the runs together are the universe.
            lengths: shape (m,), positive.
            scores: shape (m,).
            noise: where randomness comes from.
            unit: public, above 0; scale and spread are multiples of it.
        """

        def sample() -> int:
            run = noise.select_run(scores, lengths, self.scale * unit)
            return int(starts[run]) + noise.below(int(lengths[run]))

        return noise.answer(self, sample, (unit, *_universe(starts, lengths)))

    def offered(self, points: Points, lengths: Lengths, scores: Ints, noise: Noise) -> int:
        """Choose a point of a public universe, of runs that have drawn one of their points each.

        Args:
            points: shape (m,), of each run a uniform one of its points.
            lengths: shape (m,), positive: points of each run; the runs together are the universe 0, 1, ....
            scores: shape (m,).
            noise: where randomness comes from.
        """
        sample = Offered(points, lengths, scores, self.scale, noise)
        return noise.answer(self, sample, (1.0, 0, int(np.sum(lengths))))

    def both(
        self, starts: Points, lengths: Lengths, scores: Ints, others: Ints, noise: Noise, unit: float = 1.0
    ) -> tuple[int, int]:
        """Choose a point and one of several candidates together; see `Both`.

        Args:
            starts: see `point`.
            lengths: see `point`.
            scores: shape (m,), of the points.
            others: shape (k,), of the candidates.
            noise: where randomness comes from.
            unit: public, above 0; scale and spread are multiples of it.
        """
        sample = Both(starts, lengths, scores, others, self.scale * unit, noise)
        return noise.answer(self, sample, (unit, *_universe(starts, lengths), len(others)))


@dataclass(frozen=True, eq=False)
class Offered:
    """A choice among runs that have drawn one of their points each; see `Exponential.offered`."""

    points: Points
    lengths: Lengths
    scores: Ints
    scale: float
    noise: Noise

    def __call__(self) -> int:
        """Return the point."""
        return int(self.points[self.noise.select_run(self.scores, self.lengths, self.scale)])


@dataclass(frozen=True, eq=False)
class Both:
    """A choice of a point and of one of several candidates, scored by the smaller of their two scores.

    Both scores change by amounts of one range between neighbors, so the smaller one does, too. The pairs are
    given to the noise in runs of equal score: for each run of points those with the candidates whose scores
    are no smaller, and for each candidate those with all points whose scores are larger.

    Args:
        starts: shape (m,), first point of each run.
        lengths: shape (m,), positive.
        scores: shape (m,), of the points of each run.
        others: shape (k,), of the candidates.
        scale: of the exponential mechanism.
        noise: where randomness comes from.
    """

    starts: Points
    lengths: Lengths
    scores: Ints
    others: Ints
    scale: float
    noise: Noise

    def __call__(self) -> tuple[int, int]:
        """Return the point, and the index of the candidate."""
        starts, noise, scale = self.starts, self.noise, self.scale
        kind: Any = object if _universe(starts, self.lengths)[1] * len(self.others) >= 1 << 62 else np.int64
        order, candidates = np.argsort(-self.scores, kind="stable"), np.argsort(-self.others, kind="stable")
        scores, others = self.scores[order], self.others[candidates]
        lengths = np.asarray(self.lengths)[order].astype(kind)
        before = np.concatenate([np.zeros(1, dtype=kind), np.cumsum(lengths)])
        with_run = np.searchsorted(-others, -scores, side="right")
        with_candidate = before[np.searchsorted(-scores, -others, side="left")]
        lengths *= with_run.astype(kind)
        sizes = np.concatenate([lengths, with_candidate])
        del lengths  # there may be millions of runs
        some = np.flatnonzero(sizes > 0)
        sizes = sizes[some]
        chosen = noise.select_run(np.concatenate([scores, others])[some], sizes, scale)
        run, at = int(some[chosen]), noise.below(int(sizes[chosen]))
        if run < len(scores):
            at, other = divmod(at, int(with_run[run]))
        else:
            other = run - len(scores)
            run = int(np.searchsorted(before, at, side="right")) - 1
            at -= int(before[run])
        return int(starts[order[run]]) + at, int(candidates[other])


def _universe(starts: Points, lengths: Lengths) -> tuple[int, int]:
    """Return the first point of all runs and the number of points, which must be public."""
    whole = np.asarray(lengths)
    return int(np.min(starts)), int(whole.sum())
