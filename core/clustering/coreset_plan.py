"""Plan k-means and k-median by a coreset: shares, noise scales, promises; from public parameters alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from core.budget import Budget, Mechanism, calibrate, gaussian, spend
from core.clustering.average import Average
from core.clustering.cells import MOST_LEVELS, Frame
from core.clustering.coreset import Coreset
from core.clustering.moments import MAX_DIMENSION, Moments, random_frame
from core.clustering.params import KMeans, KMedian
from core.clustering.solver import Solver
from core.clustering.space import Space
from core.domain import Grid
from core.neighbors import Neighbors
from core.plan import Plan
from core.rounds import Round

FEW_COLUMNS = 3  # up to so many, cells are cut along the grid's own axes
_SHARES = {"moments": 0.2, "coreset": 0.3, "average": 0.15}  # of one average; the last has twice its share
_COUNT = 0.08  # part of an average that is spent on the counts, and as much on the weights
_MEAN = 0.15  # part of the moments that is spent on the sum and count


@dataclass(frozen=True)
class _Setting:
    """Everything a plan is made from."""

    grid: Grid
    params: KMeans | KMedian
    budget: Budget
    neighbors: Neighbors

    @property
    def power(self) -> int:
        return 2 if isinstance(self.params, KMeans) else 1

    @cached_property
    def space(self) -> Space:
        return Space(self.grid)

    @property
    def averages(self) -> tuple[str, ...]:
        default = 4 if self.grid.dimension > FEW_COLUMNS else 2 if self.power == 2 else 3
        return tuple(f"average_{i + 1}" for i in range(self.params.iterations or default))

    @property
    def measures_moments(self) -> bool:
        return FEW_COLUMNS < self.grid.dimension <= MAX_DIMENSION

    @cached_property
    def frame(self) -> Frame | None:
        """The public frame, or None where a round finds it."""
        if self.measures_moments:
            return None
        if self.grid.dimension <= FEW_COLUMNS:
            return Frame.of_grid(self.space)
        return random_frame(self.space)

    @property
    def levels(self) -> int:
        return MOST_LEVELS if self.frame is None else len(self.frame.levels)

    def shares(self) -> dict[str, float]:
        """Shares of rho, by round."""
        names = [*(["moments"] if self.measures_moments else []), "coreset", *self.averages]
        shares = {name: _SHARES[name.split("_")[0]] for name in names}
        shares[names[-1]] *= 2
        for name, share in (self.params.shares or {}).items():
            if name not in shares:
                raise ValueError(f"params.shares has {name!r}: its keys are {', '.join(names)}.")
            shares[name] = share
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()}

    def mechanisms(self, rho: float) -> tuple[Mechanism, ...]:
        """Every draw of a run that spends `rho` in all; see the rounds for the sensitivities."""
        shares = {name: share * rho for name, share in self.shares().items()}
        one, cells = self.neighbors.name == "add_or_remove_one", self.neighbors.histogram().l2
        draws = []
        if self.measures_moments:
            mean, longest = _MEAN * shares["moments"], math.sqrt(2) if one else 2
            rest = shares["moments"] - mean
            draws += [
                gaussian("moments", "sum and count, per unit of the longest record", mean, longest),
                gaussian("moments", "second moments, per unit of the longest squared", rest, cells),
            ]
        level = shares["coreset"] / self.levels
        for number in range(self.levels):
            draws.append(gaussian("coreset", f"cell counts, level {number + 1}", level, cells))
        for name in self.averages:
            small = _COUNT * shares[name]
            rest = shares[name] - 2 * small
            draws += [
                gaussian(name, "sums, per unit of the radius", rest, self.neighbors.moves),
                gaussian(name, "counts", small, cells),
                gaussian(name, "weights", small, cells),
            ]
        return tuple(draws)

    def rounds(self, mechanisms: tuple[Mechanism, ...]) -> tuple[Round, ...]:
        scales = {(draw.round, draw.mechanism.split()[2].strip(",")): draw.scale for draw in mechanisms}
        first = []
        if self.measures_moments:
            first.append(Moments(self.space, scales["moments", "sum"], scales["moments", "second"]))
        k = self.params.k  # one center needs one start, and many centers make a start costly
        solver = Solver(self.power, starts=min(30, 3 * k - 2, max(3, 1500 // k)))
        coreset = Coreset(self.frame, solver, self.params.k, scales["coreset", "cell"], self.levels)
        averages = [
            Average(
                self.space,
                self.params.k,
                self.power,
                sum_scale=scales[name, "sums"],
                count_scale=scales[name, "counts"],
                weight_scale=scales[name, "weights"],
                name=name,
            )
            for name in self.averages
        ]
        return (*first, coreset, *averages)


def _promises(setting: _Setting, mechanisms: tuple[Mechanism, ...]) -> Mapping[str, float]:
    """State the error of the counts, and the smallest group whose average is worth much.

    A Gaussian exceeds t times its scale with probability at most 2 exp(-t^2 / 2); k counts share `failure`.
    """
    k, last = setting.params.k, setting.averages[-1]
    sums, counts = [draw.scale for draw in mechanisms if draw.round == last][:2]
    return {
        "count_error": math.ceil(counts * math.sqrt(2 * math.log(2 * k / setting.params.failure))),
        "smallest_group": math.ceil(10 * sums * math.sqrt(setting.grid.dimension)),
    }


def _notes(setting: _Setting, promises: Mapping[str, float]) -> tuple[str, ...]:
    notes = [
        f"The noise moves the center of {promises['smallest_group']:,.0f} records by about a tenth of the "
        "radius within which records pull it, and less for more."
    ]
    if setting.grid.dimension > MAX_DIMENSION:
        notes.append(
            f"With more than {MAX_DIMENSION} columns, cells are cut along public random axes, which show "
            "less of the data than axes fitted to them."
        )
    return tuple(notes)


def plan_coreset(grid: Grid, params: KMeans | KMedian, budget: Budget, neighbors: Neighbors) -> Plan:
    """Plan k-means or k-median by a coreset.

    Args:
        grid: the universe.
        params: what to look for.
        budget: what the run may spend.
        neighbors: the relation; the number of records is never used under either.

    Returns:
        Rounds and promises: `count_error` (each count is off by at most so much), `smallest_group` (see
        the note).

    Raises:
        ValueError: delta is 0, a share has an unknown name, or the domain is too wide in steps.
    """
    if budget.delta <= 0:
        raise ValueError("privacy.delta is 0: this method adds Gaussian noise, which needs a delta above 0.")
    setting = _Setting(grid, params, budget, neighbors)
    mechanisms = setting.mechanisms(calibrate(budget, setting.mechanisms))
    promises = _promises(setting, mechanisms)
    return Plan(
        method="coreset",
        rounds=setting.rounds(mechanisms),
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises=promises,
        failure=params.failure,
        notes=_notes(setting, promises),
    )
