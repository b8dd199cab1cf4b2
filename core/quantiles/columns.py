"""One quantile or extreme of each of several columns, from the same passes: the 1-median in L1, for one."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.budget import Budget, calibrate
from core.counted_points import Between, ReadsRanks, StoredOrder, order_of
from core.domain import Grid
from core.draws import Charged, Draw, charged
from core.errors import InvalidValue
from core.focus import Bools, Focus, Focused
from core.gaps import Runs
from core.neighbors import Neighbors
from core.noise import Noise
from core.policy import Distance, DistancePerAxis, Partition, Policy
from core.quantiles.exponential import ExponentialByRank
from core.quantiles.found import FoundColumns, Promises
from core.quantiles.ordered import OrderedValue, SearchValue
from core.quantiles.params import OneValue
from core.quantiles.smooth import Smooth
from core.rounds import Block
from core.task import Accuracy, Method, Setting
from core.tightness import Tightness

Ints = NDArray[np.int64]
N = TypeVar("N", int, float)


@dataclass(frozen=True)
class Columns:
    """Release a value of each column.

    The columns' points are laid out one column after the other on one line, and a record has one point in
    each of them. So all columns are counted in the same pass.

    Sensitivity: one record changes the counts of all columns at once. Each column's draws have the
    sensitivity that they have for this column alone, and all columns' draws compose in sequence.

    Args:
        columns: the round of each column.
        sizes: number of grid points of each column.
        errors: what each column promises.
    """

    columns: tuple[Any, ...]
    sizes: tuple[int, ...]
    errors: tuple[Promises, ...]
    purpose: ClassVar[str] = "for each column, a value whose rank is close to the wanted one"
    name: str = "release"
    floor: ClassVar[int] = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return tuple(draw for column in self.columns for draw in column.draws())

    @property
    def starts(self) -> Ints:
        """Where each column begins on the line, and where the last one ends, shape (d + 1,)."""
        return np.append(0, np.cumsum(self.sizes))

    def _places(self, block: Block) -> Ints:
        """Return the points of all columns on the line, shape (n d,)."""
        return np.asarray(block.points + self.starts[:-1]).ravel()

    @property
    def points(self) -> int:
        """Number of points of the line."""
        return sum(self.sizes)


@dataclass(frozen=True)
class SearchedColumns(Columns, ReadsRanks):
    """Release a value of each column by a search of its own; see `Columns`.

    Args:
        columns: a `SearchValue` for each.
    """

    columns: tuple[SearchValue, ...]

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every point of the line that has any."""
        return Counts.of(self._places(block))

    def release(self, aggregate: Counts | StoredOrder, state: None, noise: Noise) -> FoundColumns:
        """Release the values, one column after the other."""
        line, ends = order_of(aggregate), pairwise(self.starts.tolist())
        found = (
            column.found(Between(line, *its), noise) for column, its in zip(self.columns, ends, strict=True)
        )
        return FoundColumns(tuple(found), self.errors)


@dataclass(frozen=True)
class FocusedColumns(Columns, Focused):
    """Release a value of each column; see `Columns`. All columns are looked at in the same passes.

    On the line each column has a rank n more than the one before. So the ranks within a column are known
    exactly, also where others are counted coarsely. A column decides alone which of its cells are looked at
    more closely, and its draws use the same numbers as if all of its points were counted.
    """

    columns: tuple[Any, ...]  # whose rounds are Focused

    @property
    def near(self) -> tuple[int, ...]:
        """See `Focused.near`."""
        return tuple(rank for column in self.columns for rank in column.near)

    def coarse(self, state: None) -> Self:
        """See `core.rounds.Looking.coarse`; no cell is in two columns."""
        width = -(-self.points // self.first_cells)
        return replace(self, focus=Focus(self.starts, np.full(len(self.sizes), width)))

    def hot(self, runs: Runs, total: int, state: None) -> Bools:
        """See `Focused.hot`; `total` counts each record once in every column."""
        records, ends = total // len(self.columns), np.searchsorted(runs.starts, self.starts)
        found = []
        for at, column in enumerate(self.columns):
            here, before = slice(*ends[at : at + 2]), at * records
            starts = runs.starts[here] - self.starts[at]
            ranks = runs.below[here] - before, runs.upto[here] - before
            found.append(column.hot(Runs(starts, runs.lengths[here], *ranks), records, state))
        return np.concatenate(found)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records of every cell, or at every point of the line, that has any."""
        places = self._places(block)
        return Counts.of(places) if self.focus is None else self.focus.count(places)

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundColumns:
        """Release the values, one column after the other."""
        found, ends = [], np.searchsorted(aggregate.keys, self.starts)
        for at, column in enumerate(self.columns):
            here = slice(*ends[at : at + 2])
            counts = Counts(aggregate.keys[here] - self.starts[at], aggregate.counts[here])
            found.append(column.release(counts, None, noise))
        return FoundColumns(tuple(found), self.errors)


_TIGHTNESS = Tightness(
    "The columns share the failure probability equally, and the promised rank error is that of the worst "
    "column. It is nearly reached there, as it is for one column: see its plan.",
    reached=False,
)


class _Columns(Method[OneValue]):
    """A method of one column, for each of several.

    The columns share epsilon such that all have about the same promised error. The largest one is then as
    small as it can be, because each error falls as the column's own epsilon grows, and the epsilons add up.
    Nothing but the public domain decides how. The columns share `failure` and delta equally.
    """

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`: what any column refuses."""
        return next((no for each in self._alone if (no := each.refusal()) is not None), None)

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        if self.setting.grid.dimension == 1:
            return self._alone[0].rounds(share)
        return (self._joined(share),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        if self.setting.grid.dimension == 1:
            return self._alone[0].accuracy(share)
        each = [one.accuracy(share) for one in self._each]
        promised = [_promises(one) for one in each]
        rank_error = _largest([one.rank_error for one in promised])
        typical = _largest([one.typical_rank_error for one in promised])
        notes = dict.fromkeys(note for one in each for note in one.notes)
        return Accuracy(
            Promises(rank_error, typical),
            error=max(one.error for one in each),
            notes=(
                "Every promise holds for all columns at once. What each column promises is beside its value.",
                *notes,
            ),
            tightness={} if rank_error is None else {"rank_error": _TIGHTNESS},
        )

    @cached_property
    def _alone(self) -> tuple[Method[OneValue], ...]:
        """The method of each column, with the whole budget."""
        return tuple(self._column(at, self.setting.budget) for at in range(self.setting.grid.dimension))

    @cached_property
    def _each(self) -> tuple[Any, ...]:
        """The method of each column, with its part of the budget. An error is about const / epsilon."""
        budget = self.setting.budget
        errors = [each.accuracy(1.0).error for each in self._alone]
        if not all(0 < error < math.inf for error in errors):
            errors = [1.0] * len(errors)
        parts = [error / sum(errors) for error in errors]
        return tuple(
            self._column(at, Budget(part * budget.epsilon, budget.delta / len(parts)))
            for at, part in enumerate(parts)
        )

    def _column(self, at: int, budget: Budget) -> Method[OneValue]:
        """Return the method of one column."""
        setting, grid = self.setting, self.setting.grid
        if grid.dimension == 1:
            return self._one(setting)
        params = replace(setting.params, failure=setting.params.failure / grid.dimension)
        alone = Grid((grid.lower[at],), (grid.upper[at],), grid.step)
        return self._one(Setting(alone, params, budget, self._neighbors(at), setting.salt))

    def _neighbors(self, at: int) -> Neighbors:
        """Return how the values of one column may differ between neighbors."""
        return self.setting.neighbors

    @abstractmethod
    def _one(self, setting: Setting[OneValue]) -> Method[OneValue]:
        """Return the method of one column."""

    def _joined(self, share: float) -> SearchedColumns | FocusedColumns:
        """Return the round of several columns."""
        return self._join([each.rounds(share)[0] for each in self._each], share)

    def _join(self, rounds: Sequence[Any], share: float) -> SearchedColumns | FocusedColumns:
        focused = all(isinstance(step, Focused) for step in rounds)
        return (FocusedColumns if focused else SearchedColumns)(
            columns=tuple(_numbered(step, at + 1) for at, step in enumerate(rounds)),
            sizes=tuple(extent + 1 for extent in self.setting.grid.extents),
            errors=tuple(_promises(each.accuracy(share)) for each in self._each),
        )


class ColumnsByRank(_Columns):
    """The exponential mechanism on ranks; see `ExponentialByRank`."""

    name: ClassVar[str] = ExponentialByRank.name

    def _one(self, setting: Setting[OneValue]) -> ExponentialByRank:
        return ExponentialByRank(setting, sum(self.setting.grid.extents) + self.setting.grid.dimension)


class SmoothColumns(_Columns):
    """Noise by smooth sensitivity; see `Smooth`. All columns' draws are calibrated together."""

    name: ClassVar[str] = Smooth.name
    calibrated: ClassVar[bool] = False

    def _one(self, setting: Setting[OneValue]) -> Smooth:
        return Smooth(setting)

    def _joined(self, share: float) -> SearchedColumns | FocusedColumns:
        return self._calibrated

    @cached_property
    def _calibrated(self) -> SearchedColumns | FocusedColumns:
        def scaled(share: float) -> SearchedColumns | FocusedColumns:
            return self._join([each.scaled(share) for each in self._each], share)

        return scaled(calibrate(self.setting.budget, lambda share: charged((scaled(share),))))


class OrderedColumns(_Columns):
    """A search over noisy cumulative counts; see `OrderedValue`.

    A pair of values within an L1 distance theta is within theta in each column, and so on for a distance or a
    partition of each column. So each column has the sensitivity of that policy for it alone. A record may
    move in several columns at once: all columns' draws compose in sequence.
    """

    name: ClassVar[str] = OrderedValue.name
    uses_policy: ClassVar[bool] = True

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.grid.dimension > 1:
            secrets = self.setting.neighbors.secrets
            widths: tuple[int, ...] = ()
            match secrets:
                case Distance():
                    widths = (secrets.theta,)
                case DistancePerAxis():
                    widths = secrets.thetas
                case Partition():
                    widths = tuple(width - 1 for width in secrets.widths)
            if not widths:
                allowed = "for several columns it needs a policy of distances or of a partition"
                return InvalidValue("method", self.name, allowed)
            if min(widths) < 1:
                allowed = "it searches no column that the policy leaves public, so leave that column out"
                return InvalidValue("method", self.name, allowed)
        return super().refusal()

    def _neighbors(self, at: int) -> Neighbors:
        secrets, extent = self.setting.neighbors.secrets, self.setting.grid.extents[at]
        match secrets:
            case Distance():
                return Neighbors("replace_one", Policy(Distance(min(secrets.theta, extent))))
            case DistancePerAxis():
                return Neighbors("replace_one", Policy(Distance(secrets.thetas[at])))
            case Partition():
                return Neighbors("replace_one", Policy(Partition((secrets.widths[at],))))
        return self.setting.neighbors

    def _one(self, setting: Setting[OneValue]) -> OrderedValue:
        return OrderedValue(setting)


def _promises(accuracy: Accuracy) -> Promises:
    """Return the promises of one column."""
    promised = accuracy.promises
    if not isinstance(promised, Promises):
        raise TypeError(f"{type(promised).__name__} are not the promises of a column.")
    return promised


def _largest(figures: Sequence[N | None]) -> N | None:
    """Return the largest figure; None where a column has none."""
    known = [figure for figure in figures if figure is not None]
    return max(known) if len(known) == len(figures) else None


def _numbered(value: Any, column: int) -> Any:
    """Return a round, or what it holds, with the number of its column in the name of each draw."""
    if isinstance(value, Draw):
        return replace(value, what=f"{value.what}, column {column}")
    if isinstance(value, tuple):
        return tuple(_numbered(each, column) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    inner = {each.name: getattr(value, each.name) for each in fields(value)}
    changed = {name: new for name, old in inner.items() if (new := _numbered(old, column)) is not old}
    return replace(value, **changed) if changed else value
