"""Plan quantiles: shares, noise scales, promises; from public parameters alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.budget import Budget, calibrate, spend
from core.domain import Grid
from core.draws import Laplace, charged
from core.mechanisms.exponential import Exponential
from core.mechanisms.within_cell import WithinCell
from core.neighbors import Neighbors
from core.plan import Plan, check_failure
from core.quantiles.cells import Groups, best_groups, largest_sum
from core.quantiles.counts import CountsDownTheTree, CountsOfPoints, levels_of
from core.quantiles.recursive import MOST_POINTS, CutsAndChoices, OneQuantile, scales_of_points

Method = Literal["auto", "recursive", "histogram", "tree"]
Floats = NDArray[np.float64]
Step = OneQuantile | CutsAndChoices | CountsOfPoints | CountsDownTheTree

_CUTS = 0.1  # part of epsilon for the cuts: what they get wrong, the counts know
_MOST = 10_000  # quantiles


@dataclass(frozen=True)
class Quantiles:
    """Which quantiles to release.

    Args:
        probabilities: of the quantiles, ascending, each between 0 and 1.
        method: `recursive` (cuts, counts of cells, then a look into each), `histogram` (counts of every grid
            point, of which there may be 8,192), `tree` (counts down a tree), or `auto`.
        failure: probability with which a promise may fail.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    probabilities: tuple[float, ...]
    method: Method = "auto"
    failure: float = 0.1

    def __post_init__(self) -> None:
        if not 1 <= len(self.probabilities) <= _MOST:
            raise ValueError(
                f"params.probabilities has {len(self.probabilities)} values: give 1 to {_MOST:,} of them."
            )
        for p in self.probabilities:
            if not 0 < p < 1:
                raise ValueError(f"params.probabilities has {p}: each must be above 0 and below 1.")
        if any(a >= b for a, b in zip(self.probabilities, self.probabilities[1:], strict=False)):
            raise ValueError(
                f"params.probabilities is {list(self.probabilities)}: they must ascend, each only once."
            )
        if self.method not in get_args(Method):
            raise ValueError(
                f"params.method is {self.method!r}: it must be auto, recursive, histogram or tree."
            )
        check_failure(self.failure)


@dataclass(frozen=True)
class _Setting:
    """Everything a plan is made from."""

    size: int
    params: Quantiles
    budget: Budget
    neighbors: Neighbors

    @property
    def probabilities(self) -> Floats:
        return np.array(self.params.probabilities)


def plan_quantiles(grid: Grid, params: Quantiles, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan the quantiles.

    Args:
        grid: the universe; its first axis is used.
        params: probabilities, method and failure.
        budget: what the run may spend; delta may be 0.
        neighbors: the relation; the number of records is used under `replace_one` only.
        salt: unused: nothing is sampled.

    Returns:
        One round, and two figures in records: `rank_error`, which no quantile exceeds on any data (how far
        p n is from the ranks of the released point), and `typical_rank_error`, the standard deviation
        where records lie densely and the quantiles anywhere, by which `auto` chooses.

    Raises:
        ValueError: there is more than one column, or `histogram` is asked for on too many grid points.
    """
    if grid.dimension != 1:
        raise ValueError(f"domain.lower has {grid.dimension} values: quantiles takes one column.")
    setting = _Setting(grid.extents[0] + 1, params, budget, neighbors)
    plans = {"recursive": _recursive(setting), "tree": _tree(setting)}
    if setting.size <= MOST_POINTS:
        plans["histogram"] = _histogram(setting)
    elif params.method == "histogram":
        raise ValueError(
            f"params.method is histogram: the domain has {setting.size:,} grid points, and may have "
            f"{MOST_POINTS:,}."
        )
    best = min(plans, key=lambda name: float(plans[name].promises["typical_rank_error"]))
    chosen = best if params.method == "auto" else params.method
    note = (
        f"Chosen by the typical error of a rank: {chosen}."
        if params.method == "auto"
        else f"As asked: {chosen}; auto would take {best}."
    )
    memory = (
        "The counts of the distinct grid points are merged and sorted on one machine: 16 bytes for each in "
        "the result and about 100 at work, at most as many as records or grid points."
    )
    return replace(
        plans[chosen],
        alternatives={name: plan.promises for name, plan in plans.items() if name != chosen},
        notes=(note, memory),
    )


def _plan(
    setting: _Setting,
    method: str,
    build: Callable[[float], Step],
    errors: Callable[[float], tuple[float, float]],
) -> Plan:
    multiplier = calibrate(setting.budget, lambda factor: charged((build(factor),)))
    step = build(multiplier)
    mechanisms = charged((step,))
    worst, typical = errors(multiplier)
    return Plan(
        method=method,
        rounds=(step,),
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, setting.budget.delta),
        promises={"rank_error": math.ceil(worst), "typical_rank_error": typical},
        failure=setting.params.failure,
    )


def _groups(probabilities: Floats) -> Groups:
    """Group the cells of the cuts, one for each quantile; averages over 200 quantiles at most."""
    count = len(probabilities)
    some = np.unique(np.linspace(0, count - 1, min(count, 200)).astype(int))
    return best_groups(probabilities[some], some, count)


def _per_weight(what: str, epsilon: float, moves: int, **more: Any) -> Exponential:
    """Return a draw on ranks: its scores change by amounts of range twice the larger weight of a record."""
    what = f"{what}, per unit of the larger weight of a record"
    return Exponential.of(what, epsilon / moves, spread=2, changes=moves, **more)


def _recursive(setting: _Setting) -> Plan:
    """Plan `CutsAndChoices`, or `OneQuantile`.

    Counts and choices share epsilon so that the sum of their variances, V / e^2 and 2 / e^2 for a
    choice among dense records, is smallest: in proportion to the cube roots.
    """
    probabilities, moves = setting.probabilities, setting.neighbors.moves
    count, epsilon = len(probabilities), setting.budget.epsilon
    groups = _groups(probabilities) if count > 1 else None
    depth = len(probabilities[1:]).bit_length()
    cuts = _CUTS * epsilon if groups else 0.0
    ratio = groups.variance ** (1 / 3) if groups else 0.0
    counts = (epsilon - cuts) * ratio / (ratio + 2 ** (1 / 3))
    choices = epsilon - cuts - counts
    total_is_public = setting.neighbors.name == "replace_one"
    alone = 0.5 if total_is_public else float(max(probabilities[0], 1 - probabilities[0]))

    def build(factor: float) -> OneQuantile | CutsAndChoices:
        params, size = setting.params, setting.size
        if groups is None:
            point = _per_weight("the quantile", factor * choices, moves)
            return OneQuantile(params.probabilities[0], size, point, total_is_public)
        return CutsAndChoices(
            params.probabilities,
            size,
            tuple(
                _per_weight(f"cuts of level {i + 1}", factor * cuts / depth, moves, times=2**i, disjoint=True)
                for i in range(depth)
            ),
            groups.counts("cells", factor * counts, moves),
            WithinCell(
                what="quantiles, or counts of points",
                scale=moves / (factor * choices),
                changes=moves,
                times=count,
                disjoint=True,
            ),
            total_is_public,
        )

    def errors(factor: float) -> tuple[float, float]:
        scale, failure = moves / (factor * choices), setting.params.failure
        log_size = math.log(setting.size)
        if groups is None:
            return 2 * alone * scale * (log_size - math.log(failure)), 2 * alone * scale * math.sqrt(2)
        cells = groups.counts("cells", factor * counts, moves).scales
        # A cell may hold all quantiles. Its edges and middle are known to within `rank`: the true point may
        # lie in the next cell, at most that far from this one's edge, and its score is as uncertain.
        choice = count * scale * (log_size + math.log(2 * count / failure))
        width = min(setting.size, MOST_POINTS, max(24 * count**2, 9 * count**4))  # see `points_suffice`
        points = (
            scales_of_points(w, scale).largest_error(w, math.log(4 * (w + 1) * count / failure))
            for w in {width, min(width, 64)}
        )
        rank = cells.largest_error(count, math.log(4 * (count + 1) * count / failure))
        typical = groups.variance * (moves / (factor * counts)) ** 2 + 2 * scale**2
        return max(choice, *points) + 3 * rank, math.sqrt(typical)

    return _plan(setting, "recursive", build, errors)


def _histogram(setting: _Setting) -> Plan:
    """Plan `CountsOfPoints`, grouped so that ranks are best where quantiles may lie at any point."""
    probabilities, size = setting.probabilities, setting.size
    # 96 pairs of a quantile and a point, evenly spread: multiples of the golden section come near no period.
    spread = np.arange(96)
    some = probabilities[spread * len(probabilities) // 96]
    groups = best_groups(some, (spread * 0.6180339887 % 1 * size).astype(int), size)
    moves, total_is_public = setting.neighbors.moves, setting.neighbors.name == "replace_one"

    def build(factor: float) -> CountsOfPoints:
        cells = groups.counts("grid points", factor * setting.budget.epsilon, moves)
        return CountsOfPoints(setting.params.probabilities, size, cells, total_is_public)

    def errors(factor: float) -> tuple[float, float]:
        # A point is chosen where the noisy centered rank changes its sign.
        cells = build(factor).cells.scales
        log = math.log(2 * (size + 1) * len(probabilities) / setting.params.failure)
        typical = math.sqrt(groups.variance) * moves / (factor * setting.budget.epsilon)
        return cells.largest_error(size, log), typical

    return _plan(setting, "histogram", build, errors)


def _tree(setting: _Setting) -> Plan:
    """Plan `CountsDownTheTree` with the fan-out of the smallest typical error.

    Laplace noise only: Gaussian noise would need more levels than ln(1 / delta) to be smaller.
    """
    plans = [_tree_with(setting, fan_out) for fan_out in _fan_outs(setting.size)]
    return min(plans, key=lambda plan: float(plan.promises["typical_rank_error"]))


def _fan_outs(size: int) -> list[int]:
    """Smallest fan-outs of trees of 1, 2, ... levels, none above 4,096."""
    fan_outs = (math.ceil(size ** (1 / levels) - 1e-9) for levels in range(1, 2 + math.ceil(math.log2(size))))
    return sorted({f for f in fan_outs if 2 <= f <= 4096})


def _tree_with(setting: _Setting, fan_out: int) -> Plan:
    levels, neighbors = levels_of(setting.size, fan_out), setting.neighbors
    total_is_public = neighbors.name == "replace_one"

    def build(factor: float) -> CountsDownTheTree:
        share = factor * setting.budget.epsilon / levels
        counts = tuple(Laplace.of(f"counts of level {i + 1}", share, neighbors.moves) for i in range(levels))
        return CountsDownTheTree(setting.params.probabilities, setting.size, fan_out, counts, total_is_public)

    def errors(factor: float) -> tuple[float, float]:
        # A leaf is chosen where the noisy centered rank changes its sign: the error is at most the noise at
        # its edges. An edge's noise is between those of its parent's edges, plus that of a bridge over
        # the children, whose weights are at most 1/2 in the mean square; the root's are at most 1. In
        # the mean over edges it is 1/6 per child, and 1/3 at the root, where an edge may be any quantile.
        scale = build(factor).counts[0].scale
        amount = fan_out * (1 + (levels - 1) / 4)
        log = math.log(2 * len(setting.probabilities) / setting.params.failure) + math.log(setting.size)
        worst = largest_sum((amount,), (scale,), log)
        return worst, scale * math.sqrt(2 * fan_out * (1 / 3 + (levels - 1) / 6))

    return _plan(setting, "tree", build, errors)
