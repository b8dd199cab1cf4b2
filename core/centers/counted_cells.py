"""Centers from noisy counts of nested cells: a tree that grows where the counts are large, then a solver."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import CellCounts
from core.centers.cells import HALVINGS, Frame
from core.centers.found import Centers
from core.centers.iteration import scattered
from core.centers.solver import Solver, squared_distances
from core.draws import Draw, Gaussian
from core.noise import Noise
from core.rounds import Block

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_CLEAR = 2.0  # a cell is kept if its noisy count exceeds so many standard deviations of the noise
_GROWN = 512  # at most so many cells of a level are divided further (or 4 per center, if that is more)
_HIDDEN = 0.1  # records that are spread over the box, per standard deviation of the first level's noise
_EVEN = 6  # they are spread by so many halvings
_ROUGHLY = 3  # iterations that spread public places over the universe
_PUBLIC_SEED = 0x5EED5


@dataclass(frozen=True)
class CountedCells:
    """Count the records in nested cells, and find centers of the weighted cells.

    A record is in one cell of every level. So the counts of a level have L2 sensitivity 1, or sqrt(2) when a
    record is replaced. The cost of all levels is the sum of the costs of the levels.

    A level counts the children of those cells of the level before whose noisy count was clearly above the
    noise. Empty children get noise too. Which cells are divided follows from noisy counts that are released
    already, so only the counts cost privacy.

    Cells whose counts are not clear are left out, but they may hold some records each. A few of these far
    from all clear cells can cost more than all other records together, and the clear cells do not show them.
    So a small public weight is spread evenly over the frame's box, and the solver sees it beside the cells.
    It draws a center away from the clear cells only where that center would gain little among them.

    A box about fitted axes is a small part of the universe, and may miss far records. So where the axes are
    fitted, a center without a clear cell gets a public place instead. These places cover the universe evenly.

    Args:
        frame: public axes and cells, or None where the state before is that frame.
        solver: what finds centers of the weighted cells.
        k: how many centers.
        counts: noise of the counts of each level, from the coarsest.
    """

    frame: Frame | None
    solver: Solver
    k: int
    counts: tuple[Gaussian, ...]
    purpose: ClassVar[str] = "how many rows lie in the cells of a tree, and first centers from them"
    name: str = "coreset"
    floor: None = None

    @property
    def most_counts(self) -> int:
        """See `core.held`: a cell of a table takes at most a quarter of what a count takes."""
        return 1 << (HALVINGS - 2)

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.counts

    def summarize(self, block: Block, state: Frame | None) -> CellCounts:
        """Count the records in every finest cell; those of coarser cells are sums of these."""
        frame = self._frame(state)
        return CellCounts.of(frame.keys(block.points), 1 << len(frame.order))

    def release(self, aggregate: CellCounts, state: Frame | None, noise: Noise) -> Centers:
        """Release k centers, their spread and their weights."""
        frame = self._frame(state)
        points, weights = self.grown(frame, aggregate, noise)
        centers = self.solver.centers(*self._with_hidden(frame, points, weights), self.k)
        return self._described(frame, points, weights, self._padded(frame, centers))

    def _frame(self, state: Frame | None) -> Frame:
        frame = self.frame if state is None else state
        if frame is None:
            raise TypeError("the coreset round has neither a frame nor one from the round before")
        return frame

    def grown(self, frame: Frame, aggregate: CellCounts, noise: Noise) -> tuple[Floats, Floats]:
        """Grow the tree: return the middles (m, q) of its undivided cells, and their weights (m,).

        The weights of a cell's children are scaled so that they sum to the cell's own weight.
        """
        last = len(frame.order)
        points, weights = [], []
        parents, parent_weights = np.zeros(1, dtype=np.int64), None
        before = 0
        for level, count in zip(frame.levels, self.counts, strict=False):  # a frame may have fewer levels
            if not len(parents):
                break
            fan = 1 << (level - before)
            children = ((parents << (level - before))[:, None] + np.arange(fan)).ravel()
            noisy = count.add(aggregate.within(children, last - level), noise)
            kept = np.where(noisy > _CLEAR * count.scale, noisy, 0).reshape(-1, fan).astype(np.float64)
            total = kept.sum(axis=1)
            if parent_weights is None:  # the root is not counted itself
                parent_weights = total
            barren = total == 0
            points.append(frame.centers(parents[barren], before))
            weights.append(parent_weights[barren])
            share = np.where(barren, 0.0, parent_weights / np.where(barren, 1.0, total))
            kept *= share[:, None]
            alive = np.flatnonzero(kept.ravel() > 0)
            heavy = alive[np.argsort(-kept.ravel()[alive], kind="stable")]
            grown, rest = np.split(heavy, [max(_GROWN, 4 * self.k)])
            points.append(frame.centers(children[rest], level))
            weights.append(kept.ravel()[rest])
            parents, parent_weights, before = children[grown], kept.ravel()[grown], level
        points.append(frame.centers(parents, before))
        weights.append(parent_weights if parent_weights is not None else np.zeros(len(parents)))
        return np.concatenate(points), np.concatenate(weights)

    def _with_hidden(self, frame: Frame, points: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Add the weight that stands for records in cells that are not clear: public, and even over the box.

        It lies in the middles of equal cells.
        """
        level = min(len(frame.order), _EVEN)
        middles = frame.centers(np.arange(1 << level), level)
        hidden = np.full(len(middles), _HIDDEN * self.counts[0].scale / len(middles))
        distinct, place = np.unique(np.concatenate([points, middles]), axis=0, return_inverse=True)
        summed = np.bincount(place, np.concatenate([weights, hidden]))
        return distinct, summed.astype(np.float64)

    def _padded(self, frame: Frame, centers: Floats) -> Floats:
        """Fill up to k centers with public random places in the frame's box."""
        missing = self.k - len(centers)
        places = np.random.default_rng(_PUBLIC_SEED).uniform(-1, 1, size=(missing, frame.dimension))
        return np.concatenate([centers, places * frame.half / 2])

    def _described(self, frame: Frame, points: Floats, weights: Floats, centers: Floats) -> Centers:
        """Estimate every center's weight and spread from the cells nearest to it."""
        squares = squared_distances(points, centers)
        label, least = squares.argmin(axis=1), squares.min(axis=1)
        total = np.bincount(label, weights, minlength=self.k)
        inside = np.bincount(label, weights * least, minlength=self.k)
        everywhere = inside.sum() / max(1.0, total.sum())
        # few cells say little about a center's own spread, so it is at least half of the spread of all
        own = np.maximum(inside / np.maximum(total, 1.0), everywhere / 4)
        finest = float(((frame.centers(np.zeros(1, np.int64), 0) - frame.half) ** 2).sum())
        finest /= 4.0 ** (len(frame.order) / frame.dimension)
        spread = np.sqrt(own + frame.rest + finest)
        spread[total == 0] = math.sqrt(everywhere + frame.rest + float((frame.half.astype(float) ** 2).sum()))
        positions = frame.space.placed(frame.lifted(centers))
        if self.frame is None and (total == 0).any():
            public = scattered(frame.space, int((total == 0).sum()), _ROUGHLY)
            positions[total == 0], spread[total == 0] = public.positions, public.spread
        return Centers(
            space=frame.space,
            positions=positions,
            spread=spread,
            counts=np.rint(total).astype(np.int64),
        )
