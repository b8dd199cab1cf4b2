"""K-means and k-median by a coreset: noisy counts of nested cells, a solver, and noisy averages."""

import math
from functools import cached_property
from typing import ClassVar

from core.centers.cells import MOST_LEVELS, Frame
from core.centers.center_averages import CenterAverages
from core.centers.center_counts import OF_COUNTS, SHARE, CountNearest
from core.centers.counted_cells import CountedCells
from core.centers.found import Promises
from core.centers.moments import MAX_DIMENSION, Moments, random_frame
from core.centers.params import KCenters
from core.centers.solver import Solver
from core.centers.space import Space
from core.draws import Charged, Gaussian
from core.errors import InvalidValue
from core.task import Accuracy, Method

FEW_COLUMNS = 3  # up to so many columns, cells are cut along the grid's own axes
_SHARES = {"moments": 0.2, "coreset": 0.3, "average": 0.15}  # of one average; the last has twice its share
_FINER = 0.7  # a level's rho over that of the level before: fine cells matter only where records are many
_COUNT = 0.12  # part of an average's rho that is spent on the counts; the weights get the same part
_MEAN = 0.15  # part of the moments' rho that is spent on the sum and count


class Coreset(Method[KCenters]):
    """Centers of the cells of a private tree, improved by noisy averages.

    The method does not use a policy's secret pairs to lower its noise. Its noise hides any replacement, and
    so serves every policy without constraints. The number of records is not used under either relation.
    `share` is the zCDP parameter rho that all draws cost together.
    """

    name: ClassVar[str] = "coreset"

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.budget.delta > 0:
            return None
        return InvalidValue("delta", 0, "the Gaussian noise of coreset needs a delta above 0")

    def check_shares(self) -> None:
        """Check that `shares` names rounds.

        Raises:
            InvalidValue: a key of `shares` is not the name of a round.
        """
        shares, names = self.setting.params.shares or {}, self._default_shares
        for name in shares:
            if name not in names:
                raise InvalidValue("shares", shares, f"its keys are {', '.join(names)}", f"has {name!r}")

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`, and each round for its sensitivities."""
        shares, levels = self._shares, self._levels
        whole, cells = share * shares["coreset"], self.setting.neighbors.histogram().l2
        parts = [_FINER**level for level in range(levels)]
        counts = tuple(
            Gaussian.of(f"cell counts, level {level + 1}", whole * part / sum(parts), cells)
            for level, part in enumerate(parts)
        )
        tree = CountedCells(self._frame, self._solver, self.setting.params.k, counts)
        first = [self._moments(share * shares["moments"])] if self._measures_moments else []
        return *first, tree, *self._averages(share), self._count(share)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        The error is the distance within which rows pull a center, in data units. It depends on the data, so
        it is assumed to be a third of the domain's radius.
        """
        setting, last = self.setting, self._averages(share)[-1]
        smallest_group = math.ceil(10 * last.sums.scale * math.sqrt(setting.grid.dimension))
        few, notes = len(self._names) < self._enough, []
        if few:
            notes.append(
                f"With fewer than {self._enough} averages (iterations) nothing is promised of the centers of "
                "small groups. They may stay far from their rows, mostly beside large groups."
            )
        if setting.grid.dimension > MAX_DIMENSION:
            notes.append(
                f"With more than {MAX_DIMENSION} columns, cells are cut along public random axes, which show "
                "less of the data than axes fitted to them."
            )
        promises = Promises(self._count(share).error(setting.params.failure), None if few else smallest_group)
        error, tightness = self._space.length(self._space.reach / 3), {"count_error": OF_COUNTS}
        return Accuracy(promises, error, tuple(notes), tightness=tightness)

    @cached_property
    def _space(self) -> Space:
        return Space(self.setting.grid)

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the averages."""
        return tuple(f"average_{i + 1}" for i in range(self.setting.params.iterations or self._enough))

    @property
    def _enough(self) -> int:
        """Number of averages from which on they come near to where more of them lead."""
        return 4 if self.setting.grid.dimension > FEW_COLUMNS else 2 if self.setting.params.power == 2 else 3

    @property
    def _measures_moments(self) -> bool:
        return FEW_COLUMNS < self.setting.grid.dimension <= MAX_DIMENSION

    @cached_property
    def _frame(self) -> Frame | None:
        """The public frame, or None where a round finds it."""
        if self._measures_moments:
            return None
        if self.setting.grid.dimension <= FEW_COLUMNS:
            return Frame.of_grid(self._space)
        return random_frame(self._space)

    @property
    def _levels(self) -> int:
        """Number of levels whose cells are counted, at most."""
        return MOST_LEVELS if self._frame is None else len(self._frame.levels)

    @cached_property
    def _default_shares(self) -> dict[str, float]:
        """Weights of the rounds in rho, unless `shares` says otherwise."""
        names = [*(["moments"] if self._measures_moments else []), "coreset", *self._names]
        shares = {name: _SHARES[name.split("_")[0]] for name in names}
        shares[names[-1]] *= 2
        return {**shares, "count": SHARE * sum(shares.values())}

    @cached_property
    def _shares(self) -> dict[str, float]:
        """Parts of rho, by round; they sum to 1."""
        shares = {**self._default_shares, **(self.setting.params.shares or {})}
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()}

    @property
    def _solver(self) -> Solver:
        k = self.setting.params.k  # one center needs one start, and many centers make a start costly
        return Solver(self.setting.params.power, starts=min(30, 3 * k - 2, max(3, 1500 // k)))

    def _moments(self, rho: float) -> Moments:
        longest = math.sqrt(2) if self.setting.neighbors.name == "add_or_remove_one" else 2
        return Moments(
            self._space,
            sums=Gaussian.of("sum and count, per unit of the longest record", _MEAN * rho, longest),
            squares=Gaussian.of(
                "second moments, per unit of the longest squared",
                (1 - _MEAN) * rho,
                self.setting.neighbors.histogram().l2,
            ),
        )

    def _count(self, share: float) -> CountNearest:
        cells = self.setting.neighbors.histogram().l2
        noise = Gaussian.of("counts", share * self._shares["count"], cells)
        return CountNearest(self._space, self.setting.params.k, noise)

    def _averages(self, share: float) -> tuple[CenterAverages, ...]:
        return tuple(self._average(name, share * self._shares[name]) for name in self._names)

    def _average(self, name: str, rho: float) -> CenterAverages:
        params, neighbors = self.setting.params, self.setting.neighbors
        small, cells = _COUNT * rho, neighbors.histogram().l2
        return CenterAverages(
            self._space,
            params.k,
            params.power,
            sums=Gaussian.of("sums, per unit of the radius", rho - 2 * small, neighbors.changes),
            counts=Gaussian.of("counts", small, cells),
            weights=Gaussian.of("weights", small, cells),
            name=name,
        )
