"""Quantiles and extremes of one column in each group, by the mechanisms of the task `quantiles`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from core.aggregate import Ints
from core.budget import Budget
from core.domain import Grid
from core.draws import Draw
from core.focus import HELD
from core.neighbors import Neighbors
from core.noise import Lengths, Noise
from core.quantiles.exponential import ExponentialByRank, typical_distance
from core.quantiles.found import FoundQuantiles
from core.quantiles.params import Minimum, Quantiles
from core.quantiles.recursive import Recursive
from core.rounds import run_on_stored
from core.statistics.params import Statistics, quantile_name
from core.statistics.quantities import Change
from core.stored import Stored
from core.task import Setting

T = TypeVar("T")

_SALT = bytes(16)  # nothing here is sampled


@dataclass(frozen=True)
class Sought:
    """Ranks that are sought together in one column: all quantiles, or an extreme.

    Args:
        axis: the column.
        names: of the measures.
        probabilities: of the quantiles; 0 or 1 alone is an extreme.
    """

    axis: int
    names: tuple[str, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def of(cls, asked: Statistics, columns: int) -> "tuple[Sought, ...]":
        """Return what is sought for the measures of all columns."""
        found = []
        for axis in range(columns):
            if asked.probabilities:
                names = tuple(map(quantile_name, asked.probabilities))
                found.append(cls(axis, names, asked.probabilities))
            extremes = (("minimum", 0.0), ("maximum", 1.0))
            found += [cls(axis, (name,), (end,)) for name, end in extremes if name in asked.names]
        return tuple(found)

    @property
    def extreme(self) -> bool:
        """Whether it is a minimum or a maximum."""
        return self.probabilities in ((0.0,), (1.0,))

    def paid(
        self, epsilon: float, failure: float, grid: Grid, change: Change, groups: int, stated: bool
    ) -> "Ranks":
        """Return the release that spends `epsilon`.

        Args:
            epsilon: what it costs, between neighbors.
            failure: probability with which a promise about one group may fail.
            grid: the universe.
            change: what neighbors differ in.
            groups: most groups that are released; 0 without groups.
            stated: whether errors are stated, which takes most of the time.
        """
        axis = self.axis
        line = Grid((grid.lower[axis],), (grid.upper[axis],), grid.step)
        relation = Neighbors("replace_one" if change.fixed else "add_or_remove_one")
        moved = 1 if change.fixed else change.changes * change.groups * change.rows
        budget = Budget(epsilon / moved, 0.0)
        method: ExponentialByRank | Recursive
        if self.extreme:
            asked = Minimum(largest=self.probabilities == (1.0,), failure=failure, method="exponential")
            method = ExponentialByRank(Setting(line, asked, budget, relation, _SALT))
            step: Any = method.rounds(1.0)[0]
            rounds: tuple[Any, ...] = (step,)
        else:
            wanted = Quantiles(self.probabilities, failure=failure)
            method = Recursive(Setting(line, wanted, budget, relation, _SALT))
            step, rounds = method.in_one_pass(1.0), method.rounds(1.0)
        if not stated:
            return Ranks(self, step, rounds, moved, groups)
        promises: Any = method.accuracy(1.0).promises
        typical = promises.typical_rank_error
        off = typical_distance(step.aim, step.draw.scale / 2) if self.extreme else typical
        return Ranks(self, step, rounds, moved, groups, promises.rank_error, typical, off)


@dataclass(frozen=True)
class Ranks:
    """Release the same ranks of one column in every group.

    Each group is released like a database of its own, by `step`: several quantiles by cells and searches (see
    `core.quantiles.cells_and_searches`), one quantile or an extreme by the exponential mechanism (see
    `core.quantiles.exponential`). What is released of a group depends on its own rows and noise alone.

    A group of many distinct values is released by `rounds`. They have the same draws, of the same
    distribution, and pass over its values several times instead of holding them; see `core.focus` and
    `core.quantiles.wide`.

    Neighbors and sensitivity:

    1. Let `step` be e-private for one row more or less. All groups together then are e-private for one row
       more or less, because this row is in one group, and the others are released as before.
    2. Neighbors are at most `changes` = c L M such rows apart: a unit has at most M rows in each of at most L
       groups, and c is 2 under `replace_one`, because a replaced unit is one removed and one added.
    3. So all groups together cost changes e by group privacy, in which groups and order of the rows do not
       matter. This is the L1 sensitivity of the ranks of all groups. The mechanisms are pure, so there is
       nothing that an L2 sensitivity would gain in a few groups.
    4. Without groups and contributions the number of records is public under `replace_one`. `step` is then
       planned for a replaced row and changes is 1. A policy has no effect.

    Args:
        sought: what is sought.
        step: the round of the task `quantiles` or `minimum`, for a group whose values are held.
        rounds: those of a group whose values are not.
        changes: rows in which neighbors differ, at most, in units of what `step` is planned for.
        groups: most groups that are released; 0 without groups.
        rank_error: what `step` promises of each rank, in rows.
        typical: root mean square error of a rank among dense rows.
        off: the same, from the rank at which a value is sought: for an extreme not that of the end. Shares of
            the budget follow from it.
    """

    sought: Sought
    step: Any
    rounds: tuple[Any, ...]
    changes: int
    groups: int
    rank_error: int = 0
    typical: float = 0.0
    off: float = 0.0

    def draws(self) -> tuple[Draw, ...]:
        """Return the draws of `step`, as they are charged for all groups."""
        return tuple(map(self.of_groups, self.step.draws()))

    def of_groups(self, draw: Draw) -> Draw:
        """Return a draw of one group as a draw of all groups.

        Groups are disjoint, so a draw is charged once for all of them. One that is made k times in a group is
        charged like one for k times as many changes, which is the same for a pure draw.
        """
        what = f"{draw.what}; {', '.join(self.sought.names[:3])} of column {self.sought.axis}"
        if not self.groups:
            return replace(draw, what=what, changes=draw.changes * self.changes)
        in_each = 1 if draw.disjoint else draw.times
        return replace(
            draw,
            what=what,
            times=draw.times * self.groups,
            disjoint=True,
            changes=draw.changes * self.changes * in_each,
        )

    @property
    def points(self) -> int:
        """Number of values that the column may have."""
        return int(self.step.size)

    def release(self, counts: Stored, noise: Noise) -> Ints:
        """Release the ranks of one group.

        Args:
            counts: its rows by grid point.
            noise: where randomness comes from.

        Returns:
            Grid points, shape (k, 3): value, and lower and upper end of its interval. An extreme has no
            interval: all three are its value.
        """
        own = _OfGroups(self, noise)
        found: Any
        if len(counts) <= HELD:
            found = self.step.release(counts.whole(), None, own)
        else:
            found = run_on_stored(self.rounds, counts, None, own)
        if isinstance(found, FoundQuantiles):
            return np.array(
                [(at, *ends) for at, ends in zip(found.steps, found.intervals or (), strict=True)]
            )
        return np.array([(found.step,) * 3])


@dataclass(frozen=True)
class _OfGroups(Noise):
    """Noise for one group: its draws are answered as those of all groups, which are charged."""

    ranks: Ranks
    noise: Noise

    def answer(self, draw: object, sample: Callable[[], T], unit: object = 1.0) -> T:
        if not isinstance(draw, Draw):
            raise TypeError(f"{draw} is no draw.")
        return self.noise.answer(self.ranks.of_groups(draw), sample, unit)

    def laplace(self, values: Ints, scale: float) -> Ints:
        return self.noise.laplace(values, scale)

    def gaussian(self, values: Ints, scale: float) -> Ints:
        return self.noise.gaussian(values, scale)

    def select(self, scores: Ints, scale: float) -> int:
        return self.noise.select(scores, scale)

    def select_run(self, scores: Ints, lengths: Lengths, scale: float) -> int:
        return self.noise.select_run(scores, lengths, scale)

    def below(self, bound: int) -> int:
        return self.noise.below(bound)
