"""Plan quantiles: shares, noise scales, promises; from public parameters alone."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.budget import Budget, Mechanism, calibrate, laplace, spend
from core.domain import Grid
from core.neighbors import Neighbors
from core.ordered.quantiles import CellCounts, CountsDownTheTree, CutsAndChoices, levels_of
from core.plan import Plan

Method = Literal["auto", "recursive", "tree"]
Floats = NDArray[np.float64]

_CUTS = 0.15  # part of epsilon for the cuts: what they get wrong, the counts know
_MOST = 10_000  # quantiles


@dataclass(frozen=True)
class Quantiles:
    """Which quantiles to release.

    Args:
        probabilities: of the quantiles, ascending, each between 0 and 1.
        method: `recursive` (cuts, counts and choices), `tree` (counts down a tree), or `auto`.
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
            raise ValueError(f"params.method is {self.method!r}: it must be auto, recursive or tree.")
        if not 0 < self.failure < 1:
            raise ValueError(f"params.failure is {self.failure}: it must be above 0 and below 1.")


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
        where records lie densely, by which `auto` chooses.

    Raises:
        ValueError: there is more than one column.
    """
    if grid.dimension != 1:
        raise ValueError(f"domain.lower has {grid.dimension} values: quantiles takes one column.")
    setting = _Setting(grid.extents[0] + 1, params, budget, neighbors)
    plans = {"recursive": _recursive(setting), "tree": _tree(setting)}
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
    build: Callable[[float], tuple[CutsAndChoices | CountsDownTheTree, Sequence[Mechanism]]],
    errors: Callable[[float], tuple[float, float]],
) -> Plan:
    multiplier = calibrate(setting.budget, lambda factor: build(factor)[1])
    step, mechanisms = build(multiplier)
    worst, typical = errors(multiplier)
    return Plan(
        method=method,
        rounds=(step,),
        start=None,
        mechanisms=tuple(mechanisms),
        spend=spend(mechanisms, setting.budget.delta),
        promises={"rank_error": math.ceil(worst), "typical_rank_error": typical},
        failure=setting.params.failure,
    )


@dataclass(frozen=True)
class _Groups:
    """How the cells are counted: `share` of the counts' epsilon on groups of `size`.

    Args:
        size: cells per group; 1 where groups are not counted.
        share: of epsilon, on groups.
        variance: of the rank at which a cell lies, at epsilon 1; average over the cells.
    """

    size: int
    share: float
    variance: float

    def scales(self, epsilon: float) -> CellCounts:
        if self.share == 0:
            return CellCounts(1 / epsilon)
        return CellCounts(1 / ((1 - self.share) * epsilon), 1 / (self.share * epsilon), self.size)


def _groups(probabilities: Floats) -> _Groups:
    """Find the grouping with the smallest average variance of the ranks (over 200 quantiles at most).

    A rank, centered by n, weighs each cell's count by 1, 1/2 or 0 (below, own, above), less p.
    """
    count = len(probabilities)
    rows = np.unique(np.linspace(0, count - 1, min(count, 200)).astype(int))
    columns = np.arange(count)
    below = (columns < rows[:, None]) + (columns == rows[:, None]) / 2
    weights = below - probabilities[rows, None]
    best = _Groups(1, 0.0, float(2 * (weights**2).sum(axis=1).mean()))
    for size in sorted({round(count ** (i / 8)) for i in range(2, 8)} - {1}):
        firsts = np.arange(0, count, size)
        sizes = np.diff(np.append(firsts, count))
        sums = np.add.reduceat(weights, firsts, axis=1)
        inner = ((weights - np.repeat(sums / sizes, sizes, axis=1)) ** 2).sum(axis=1).mean()
        for share in (0.3, 0.4, 0.5, 0.6, 0.7):
            cell, group = (1 - share) ** -2.0, share**-2.0
            outer = (sums**2 / (sizes**2 * (1 / (sizes * cell) + 1 / group))).sum(axis=1).mean()
            variance = float(2 * (cell * inner + outer))
            if variance < best.variance:
                best = _Groups(size, share, variance)
    return best


def _recursive(setting: _Setting) -> Plan:
    """Plan `CutsAndChoices`.

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

    def build(factor: float) -> tuple[CutsAndChoices, list[Mechanism]]:
        scale = moves / (factor * choices)
        if groups is None:
            step = CutsAndChoices(
                setting.params.probabilities, setting.size, 1.0, None, scale, total_is_public
            )
            what = "exponential mechanism"
            return step, [Mechanism(step.name, what, 2 * alone * scale, alone, epsilon=factor * choices)]
        level, cells = factor * cuts / depth, groups.scales(factor * counts / moves)
        step = CutsAndChoices(
            setting.params.probabilities, setting.size, moves / level, cells, scale, total_is_public
        )
        draws = [
            Mechanism(
                step.name,
                f"exponential mechanism: cuts of level {i + 1}, per unit of the larger weight of a record",
                2 * moves / level,
                1,
                epsilon=level,
            )
            for i in range(depth)
        ]
        draws.append(laplace(step.name, "counts of cells", moves / cells.cell, moves))
        if math.isfinite(cells.group):
            draws.append(laplace(step.name, "counts of groups of cells", moves / cells.group, moves))
        what = "exponential mechanism: choices in a cell, per quantile that shares it"
        return step, [*draws, Mechanism(step.name, what, scale, 0.5, epsilon=factor * choices)]

    def errors(factor: float) -> tuple[float, float]:
        scale, failure = moves / (factor * choices), setting.params.failure
        log_size = math.log(setting.size)
        if groups is None:
            return 2 * alone * scale * (log_size - math.log(failure)), 2 * alone * scale * math.sqrt(2)
        cells = groups.scales(factor * counts / moves)
        # A cell may hold all quantiles. Its edges and middle are known to within `rank`: the true point may
        # lie in the next cell, at most that far from this one's edge, and its score is as uncertain.
        choice = count * scale * (log_size + math.log(2 * count / failure))
        # Its weights are at most 1: one amount of noise per cell, and one per group.
        scales = (cells.cell,) if math.isinf(cells.group) else (cells.cell, cells.group)
        amounts = (float(count), math.ceil(count / cells.size))[: len(scales)]
        rank = _largest_sum(amounts, scales, math.log(4 * (count + 1) * count / failure))
        typical = groups.variance * (moves / (factor * counts)) ** 2 + 2 * scale**2
        return choice + 3 * rank, math.sqrt(typical)

    return _plan(setting, "recursive", build, errors)


def _largest_sum(amounts: Sequence[float], scales: Sequence[float], log: float) -> float:
    """Bound a weighted sum of Laplace variables from above, but for probability exp(-log).

    Chernoff: a variable of scale b and weight w has moments 1 / (1 - (w b s)^2) <= exp(1.151 (w b s)^2) for
    s <= 1 / (2 w b), and those of the discrete one are no larger.

    Args:
        amounts: sum of the squares of the weights, each at most 1, of the variables of each scale.
        scales: of the variables.
        log: see above.
    """
    load = 1.151 * sum(amount * scale**2 for amount, scale in zip(amounts, scales, strict=True))
    rate = min(math.sqrt(log / load), 1 / (2 * max(scales)))
    return log / rate + load * rate


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

    def build(factor: float) -> tuple[CountsDownTheTree, list[Mechanism]]:
        share = factor * setting.budget.epsilon / levels
        draws = [
            laplace("quantiles", f"counts of level {i + 1}", share, neighbors.moves) for i in range(levels)
        ]
        probabilities = setting.params.probabilities
        return CountsDownTheTree(probabilities, setting.size, fan_out, draws[0].scale, total_is_public), draws

    def errors(factor: float) -> tuple[float, float]:
        # A leaf is chosen where the noisy centered rank changes its sign: the error is at most the noise at
        # its edges. An edge's noise is between those of its parent's edges, plus that of a bridge over
        # the children, whose weights are at most 1/2 in the mean square; the root's are at most 1.
        scale = build(factor)[0].scale
        amount = fan_out * (1 + (levels - 1) / 4)
        log = math.log(2 * len(setting.probabilities) / setting.params.failure) + math.log(setting.size)
        worst = _largest_sum((amount,), (scale,), log)
        return worst, scale * math.sqrt(2 * levels * fan_out / 12)

    return _plan(setting, "tree", build, errors)
