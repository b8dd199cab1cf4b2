"""Average more centers than are asked for, and merge them without a further pass."""

from dataclasses import dataclass

import numpy as np

from core.aggregate import Tally
from core.centers.center_averages import CenterAverages
from core.centers.found import Centers
from core.centers.solver import Solver, squared_distances
from core.draws import Draw
from core.noise import Noise
from core.rounds import Block

_FINE = 3  # fine centers per center
_MOST = 384  # no more fine centers than these: the tree and the solver hold their distances from all cells


def number(k: int) -> int:
    """Return how many fine centers are merged into k; k where it is too many, or 1, and nothing is merged."""
    m = _FINE * k - 2
    return m if m <= _MOST else k


@dataclass(frozen=True)
class FineAverages:
    """Move m fine centers to noisy averages, and find k centers of these averages without another pass.

    A step of Lloyd's iteration leads to the local optimum nearest by. It takes several passes, as few records
    change their center in each. A solver of the fine centers, weighted by their noisy counts, makes all these
    steps on what one pass released, from several starts.

    The release is that of `CenterAverages` with m centers, and so are its sensitivities: they do not depend
    on the number of centers, because a record pulls one center only. A fine center is the mean of fewer
    records, so its noise is larger. A merged center averages the noise of its fine centers.

    The sums are (d + 2) m whole numbers, for d columns. The release holds the distances of the fine centers
    from k centers beside them.

    A fine center stays where its noisy count may be noise alone. It has no weight then. Such centers take the
    places that are left where fewer than k others are known, those of the largest noisy counts first.

    Args:
        average: the round of the fine centers, of power 2.
        solver: what finds centers of the averages.
        k: how many centers.
    """

    average: CenterAverages
    solver: Solver
    k: int
    floor: None = None

    @property
    def name(self) -> str:
        """Name of the round."""
        return self.average.name

    @property
    def purpose(self) -> str:
        """What the round finds out, for a report."""
        return "where the means of small groups of rows lie, and better centers from them"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.average.draws()

    def summarize(self, block: Block, state: Centers) -> Tally:
        """Sum the pulls, their weights and the number of each fine center's records."""
        return self.average.summarize(block, state)

    def release(self, aggregate: Tally, state: Centers, noise: Noise) -> Centers:
        """Release k centers of the fine averages."""
        return self.merged(self.average.release(aggregate, state, noise))

    def merged(self, fine: Centers) -> Centers:
        """Return k centers of m fine centers; the spread of each includes that of its fine centers."""
        deviation = np.full(len(fine.counts), np.inf) if fine.noise is None else fine.noise
        known = np.isfinite(deviation)
        points, weights = fine.positions[known].astype(np.float64), fine.counts[known].astype(np.float64)
        centers = fine.space.placed(self.solver.centers(points, weights, self.k))
        unknown = np.flatnonzero(~known)
        left = unknown[np.argsort(-fine.counts[unknown], kind="stable")][: self.k - len(centers)]
        positions = np.concatenate([centers, fine.positions[left]])

        squares = squared_distances(points, positions.astype(np.float64))
        parts = np.equal.outer(squares.argmin(axis=1), np.arange(self.k)) * weights[:, None]  # (known, k)
        total = parts.sum(axis=0)
        inside = (squares.min(axis=1) + fine.spread[known] ** 2) @ parts
        blurred = deviation[known] ** 2 @ parts**2
        bare, weight = total == 0, np.maximum(total, 1.0)
        # a center without known fine centers is the fine center at its place
        near = squared_distances(positions.astype(np.float64), fine.positions.astype(np.float64))
        same = near.argmin(axis=1)
        return Centers(
            space=fine.space,
            positions=positions,
            spread=np.where(bare, fine.spread[same], np.sqrt(inside / weight)),
            counts=np.where(bare, fine.counts[same], total.astype(np.int64)),
            noise=np.where(bare, np.inf, np.sqrt(blurred) / weight),
        )
