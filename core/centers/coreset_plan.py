"""Plan k-means and k-median by a coreset: shares, noise scales, promises; from public parameters alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from core.budget import Budget, calibrate, spend
from core.centers.average import Average
from core.centers.cells import MOST_LEVELS, Frame
from core.centers.coreset import Coreset
from core.centers.moments import MAX_DIMENSION, Moments, random_frame
from core.centers.params import KMeans, KMedian
from core.centers.solver import Solver
from core.centers.space import Space
from core.domain import Grid
from core.draws import Charged, Gaussian, charged
from core.neighbors import Neighbors
from core.plan import Plan

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
    def names(self) -> tuple[str, ...]:
        """Names of the averages."""
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
        names = [*(["moments"] if self.measures_moments else []), "coreset", *self.names]
        shares = {name: _SHARES[name.split("_")[0]] for name in names}
        shares[names[-1]] *= 2
        for name, share in (self.params.shares or {}).items():
            if name not in shares:
                raise ValueError(f"params.shares has {name!r}: its keys are {', '.join(names)}.")
            shares[name] = share
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()}

    @property
    def solver(self) -> Solver:
        k = self.params.k  # one center needs one start, and many centers make a start costly
        return Solver(self.power, starts=min(30, 3 * k - 2, max(3, 1500 // k)))

    def rounds(self, rho: float) -> tuple[Charged, ...]:
        """Return the rounds of a run that spends `rho` in all; see each for its sensitivities."""
        shares = self.shares()
        level, cells = rho * shares["coreset"] / self.levels, self.neighbors.histogram().l2
        counts = (Gaussian.of(f"cell counts, level {i + 1}", level, cells) for i in range(self.levels))
        coreset = Coreset(self.frame, self.solver, self.params.k, tuple(counts))
        first = [self._moments(rho * shares["moments"])] if self.measures_moments else []
        return *first, coreset, *self.averages(rho)

    def averages(self, rho: float) -> tuple[Average, ...]:
        """Return the last of these rounds."""
        return tuple(self._average(name, rho * self.shares()[name]) for name in self.names)

    def _moments(self, rho: float) -> Moments:
        longest = math.sqrt(2) if self.neighbors.name == "add_or_remove_one" else 2
        return Moments(
            self.space,
            sums=Gaussian.of("sum and count, per unit of the longest record", _MEAN * rho, longest),
            squares=Gaussian.of(
                "second moments, per unit of the longest squared",
                (1 - _MEAN) * rho,
                self.neighbors.histogram().l2,
            ),
        )

    def _average(self, name: str, rho: float) -> Average:
        small, cells = _COUNT * rho, self.neighbors.histogram().l2
        return Average(
            self.space,
            self.params.k,
            self.power,
            sums=Gaussian.of("sums, per unit of the radius", rho - 2 * small, self.neighbors.moves),
            counts=Gaussian.of("counts", small, cells),
            weights=Gaussian.of("weights", small, cells),
            name=name,
        )


def _promises(setting: _Setting, last: Average) -> Mapping[str, float]:
    """State the error of the counts, and the smallest group whose average is worth much.

    A Gaussian exceeds t times its scale with probability at most 2 exp(-t^2 / 2); k counts share `failure`.
    """
    largest = math.sqrt(2 * math.log(2 * setting.params.k / setting.params.failure))
    return {
        "count_error": math.ceil(last.counts.scale * largest),
        "smallest_group": math.ceil(10 * last.sums.scale * math.sqrt(setting.grid.dimension)),
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
    rho = calibrate(budget, lambda rho: charged(setting.rounds(rho)))
    rounds, promises = setting.rounds(rho), _promises(setting, setting.averages(rho)[-1])
    mechanisms = charged(rounds)
    return Plan(
        method="coreset",
        rounds=rounds,
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises=promises,
        failure=params.failure,
        notes=_notes(setting, promises),
    )
