"""Plan the median and the minimum: rounds, noise and promises from public parameters alone."""

import math
from dataclasses import dataclass, replace

from core.budget import Budget, calibrate, spend
from core.domain import Grid
from core.draws import Charged, charged
from core.graphs.params import Median, Minimum
from core.mechanisms.exponential import Exponential
from core.mechanisms.smooth_bound import reach
from core.mechanisms.smooth_noise import SmoothNoise, calibrate_smooth
from core.neighbors import Neighbors
from core.order_statistics import Rank
from core.plan import Plan
from core.quantiles.smooth import ExponentialQuantile, FindWindow, SmoothQuantile, Window

_WHOLE = 20  # a column of up to 2^20 possible values is counted whole
_CELLS = 12  # bits of the number of cells of the first round
_WINDOW_SHARE = 0.05


def plan_median(grid: Grid, params: Median, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan a quantile of one column; `auto` is the exponential mechanism, which promises a rank.

    A domain of at most 2^20 values is counted in one round. A larger one takes two: a private window of
    cells about the rank, then the counts of the values in it, so that no node holds more than about 2^20
    values and the window's ranks.

    Args:
        grid: the universe, of one axis.
        params: quantile, method and noise.
        budget: what the run may spend.
        neighbors: either relation; the number of records is used under neither.
        salt: not used: nothing is sampled.

    Returns:
        Rounds and promises: `rank_error` (the released value is within so many ranks of the wanted one);
        None for smooth sensitivity, whose error depends on the data. All points beyond an extreme have its
        rank, so the exponential mechanism wants a rank inside by its error: among more records than that,
        the value is not beyond the extreme, and within twice that error of its rank.

    Raises:
        ValueError: the grid has several axes, or the noise does not fit the budget.
    """
    grid.check_distances()
    if grid.dimension != 1:
        raise ValueError(f"input.columns has {grid.dimension} columns: a quantile is taken of one.")
    neighbors.count()  # refuses what a rank does not count by one
    method = "exponential" if params.method == "auto" else params.method
    setting = _Setting(grid, replace(params, method=method), budget, neighbors)
    multiplier = calibrate(budget, lambda m: charged(setting.rounds(m * budget.epsilon)))
    epsilon = multiplier * budget.epsilon
    rounds = setting.rounds(epsilon)
    mechanisms = charged(rounds)
    error = setting.rank_error(epsilon) * (2 if setting.rank.extreme else 1)
    other = "smooth" if method == "exponential" else "exponential"
    return Plan(
        method=method,
        rounds=rounds,
        start=Window(0, grid.extents[0]),
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises={"rank_error": error if method == "exponential" else None},
        failure=params.failure,
        alternatives={other: {"rank_error": None if method == "exponential" else error}},
        notes=setting.notes(epsilon),
    )


def plan_minimum(grid: Grid, params: Minimum, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan the minimum or maximum of one column: the quantile 0 or 1; see `plan_median`."""
    return plan_median(grid, params.as_quantile(), budget, neighbors, salt)


@dataclass(frozen=True)
class _Setting:
    """Everything a plan is made from."""

    grid: Grid
    params: Median
    budget: Budget
    neighbors: Neighbors

    @property
    def bits(self) -> int:
        return (self.grid.extents[0] + 1).bit_length() - 1

    @property
    def windowed(self) -> bool:
        return self.bits >= _WHOLE

    @property
    def share(self) -> float:
        """Part of epsilon that the last round gets."""
        return 1 - _WINDOW_SHARE if self.windowed else 1.0

    @property
    def rank(self) -> Rank:
        return Rank.of_quantile(self.params.quantile)

    @property
    def one_failure(self) -> float:
        """Failure of each of the choices that are made: two ends and the value."""
        return self.params.failure / (3 if self.windowed else 1)

    def aim(self, epsilon: float) -> Rank:
        """The rank that is aimed at: by the exponential mechanism, inside of an extreme."""
        inwards = self.rank.extreme and self.params.method == "exponential"
        return replace(self.rank, inside=self.rank_error(epsilon)) if inwards else self.rank

    def end(self, epsilon: float) -> Exponential:
        """Draw of both ends of the window, whose scores have sensitivity 1."""
        return Exponential.of("end of the window", _WINDOW_SHARE / 2 * epsilon, 2, times=2)

    def value(self, epsilon: float) -> Exponential:
        """Draw of the exponential method, whose scores have sensitivity 1."""
        return Exponential.of("value", self.share * epsilon, 2)

    def smooth(self, epsilon: float) -> SmoothNoise:
        """Noise of the smooth method; a gap grows by itself per change where records are evenly spread."""
        return calibrate_smooth(self.params, self.share * epsilon, self.budget.delta, moves=1, doubling=1.0)

    def rank_error(self, epsilon: float) -> int:
        """Bound the rank error of the exponential mechanism over the grid, with probability 1 - failure."""
        return math.ceil(
            self.value(epsilon).scale * (math.log(2) * (self.bits + 1) - math.log(self.one_failure))
        )

    def window(self, epsilon: float, rank: Rank, needed: int) -> FindWindow:
        """Return the round that finds a window, with margins of `needed` ranks and the error of its ends."""
        end = self.end(epsilon)
        error = end.scale * (math.log(2) * _CELLS - math.log(self.one_failure))
        bits = self.bits + 1 - _CELLS
        return FindWindow(bits, self.grid.extents[0], rank, needed + math.ceil(error), end)

    def rounds(self, epsilon: float) -> tuple[Charged, ...]:
        rank, grid = self.aim(epsilon), self.grid
        if self.params.method == "smooth":
            smooth = self.smooth(epsilon)
            needed = reach(grid.extents[0], smooth.noise.beta) + 2  # beyond which nothing matters
            last: Charged = SmoothQuantile(grid=grid, rank=rank, neighbors=self.neighbors, smooth=smooth)
        else:
            needed = self.rank_error(epsilon)
            last = ExponentialQuantile(grid=grid, rank=rank, value=self.value(epsilon))
        return (self.window(epsilon, rank, needed), last) if self.windowed else (last,)

    def notes(self, epsilon: float) -> tuple[str, ...]:
        notes = []
        if inside := self.aim(epsilon).inside:
            notes.append(
                f"The value is aimed {inside:,} ranks inside of the extreme, beyond which no rank tells one "
                "value from another: among more records than that, it is not beyond them."
            )
        if self.windowed:
            notes.append(
                "The column has more than 2^20 possible values: a first round finds a window about the rank, "
                "and only the values in it are counted one by one."
            )
        if self.params.method == "smooth":
            notes.append(
                "The noise follows the smooth sensitivity of the data: it is small where records are "
                "dense about the rank, and no error can be promised beforehand."
            )
        return tuple(notes)
