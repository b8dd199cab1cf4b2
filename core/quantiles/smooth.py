"""Release a quantile, the minimum or the maximum of one bounded column."""

from dataclasses import dataclass

import numpy as np

from core.aggregate import Counts
from core.domain import Grid
from core.draws import Draw
from core.mechanisms.exponential import Exponential
from core.mechanisms.smooth_noise import Answer, SmoothNoise
from core.neighbors import Neighbors
from core.noise import Noise
from core.order_statistics import Rank, order_statistic, smooth_sensitivity
from core.rounds import Block


@dataclass(frozen=True)
class Window:
    """The values that the answer is sought among; others count as the nearer end.

    Args:
        lower: grid steps.
        upper: grid steps, at least `lower`.
    """

    lower: int
    upper: int


@dataclass(frozen=True)
class FindWindow:
    """Find a window about the rank, so that no node needs the whole column.

    Values are counted in equal cells. For the window's lower end the cell that holds rank r - margin is
    chosen, for its upper end that of rank r + margin, each by the exponential mechanism: the score of a
    cell is minus how far the wanted rank is from the ranks #{x < cell} + 1, ..., #{x <= cell} that the cell
    holds. A replaced record moves the ranks by at most 1. A record more raises a rank by 0 or 1, and r by
    0 or 1. So the sensitivity is 1 under both relations.

    Args:
        bits: a cell is 2^bits grid steps wide.
        extent: largest grid coordinate.
        rank: the order statistic.
        margin: ranks that the window should hold on each side.
        end: chooses the cell of each end.
    """

    bits: int
    extent: int
    rank: Rank
    margin: int
    end: Exponential
    name: str = "window"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.end,)

    def summarize(self, block: Block, state: Window) -> Counts:
        """Count the records in each cell."""
        return Counts.of(block.points[:, 0] >> self.bits)

    def release(self, aggregate: Counts, state: Window, noise: Noise) -> Window:
        """Release the window from the lower end of one chosen cell to the upper end of the other."""
        counts = np.zeros((self.extent >> self.bits) + 1, dtype=np.int64)
        counts[aggregate.keys] = aggregate.counts
        last = np.cumsum(counts)
        first, rank = last - counts + 1, self.rank.of(int(last[-1]))
        ends = []
        for wanted in (rank - self.margin, rank + self.margin):
            away = np.maximum(np.maximum(first - wanted, wanted - last), 0)
            ends.append(self.end.candidate(-away, noise))
        lower, upper = min(ends) << self.bits, ((max(ends) + 1) << self.bits) - 1
        return Window(lower, min(upper, self.extent))


@dataclass(frozen=True, kw_only=True)
class Quantile:
    """Count the values inside the window, and release the one of the rank.

    Values outside of the public window are clamped to it, which maps neighbors to neighbors.

    Args:
        grid: the universe, of one axis.
        rank: the order statistic.
    """

    grid: Grid
    rank: Rank
    name: str = "release"
    floor: int = 0

    def summarize(self, block: Block, state: Window) -> Counts:
        """Count every value, clamped to the window, in steps above its lower end."""
        return Counts.of(np.clip(block.points[:, 0], state.lower, state.upper) - state.lower)

    def restored(self, state: Window, value: int, scale: float | None = None) -> Answer:
        """Return the answer in data units."""
        at = float(self.grid.restore(np.array([state.lower + value]))[0])
        return Answer(at, None if scale is None else scale * self.grid.step)


@dataclass(frozen=True, kw_only=True)
class SmoothQuantile(Quantile):
    """Release the order statistic with noise by its smooth sensitivity.

    Args:
        neighbors: the relation.
        smooth: the draws.
    """

    neighbors: Neighbors
    smooth: SmoothNoise

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.smooth.draws()

    def release(self, aggregate: Counts, state: Window, noise: Noise) -> Answer:
        """Release the value, and the scale of its noise where that is paid for."""
        upper = state.upper - state.lower
        value = order_statistic(aggregate, upper, self.rank)
        bound = smooth_sensitivity(aggregate, upper, self.rank, self.smooth.noise.beta, self.neighbors)
        released = self.smooth.value(value, bound, 0, upper, noise)
        return self.restored(state, released, self.smooth.scale(bound, noise))


@dataclass(frozen=True, kw_only=True)
class ExponentialQuantile(Quantile):
    """Choose a grid point of the window by its rank, see `choose_by_rank`.

    Args:
        value: chooses the grid point.
    """

    value: Exponential

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.value,)

    def release(self, aggregate: Counts, state: Window, noise: Noise) -> Answer:
        """Release a grid point."""
        value = choose_by_rank(aggregate, state.upper - state.lower, self.rank, self.value, noise)
        return self.restored(state, value)


def choose_by_rank(values: Counts, upper: int, rank: Rank, draw: Exponential, noise: Noise) -> int:
    """Choose one of 0, ..., upper by the exponential mechanism.

    The score of v is -max(0, #{x < v} + 1 - r, r - #{x <= v}), how far r is from the ranks that v holds; its
    sensitivity is 1 under both relations, as in `FindWindow`. The grid points between two neighboring values
    share one score and are one run (Smith 2011).

    Args:
        values: how often each value occurs.
        upper: largest value.
        rank: which order statistic.
        draw: of spread 2.
        noise: where randomness comes from.
    """
    last = np.cumsum(values.counts)
    r = rank.of(int(last[-1]) if len(last) else 0)
    before = np.append(0, last)  # records below each gap
    gap_starts = np.append(0, values.keys + 1)
    gap_away = np.maximum(before + 1 - r, r - before)
    value_away = np.maximum(np.maximum(last - values.counts + 1 - r, r - last), 0)
    starts = np.append(gap_starts, values.keys)
    lengths = np.append(np.append(values.keys, upper + 1) - gap_starts, np.ones_like(values.keys))
    scores = -np.append(gap_away, value_away)
    some = lengths > 0
    return draw.point(starts[some], lengths[some], scores[some], noise)
