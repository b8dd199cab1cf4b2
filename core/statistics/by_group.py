"""The round of statistics: exact totals of each group, and one release of them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from core.aggregate import Keys, shard_of
from core.draws import Additive, Draw
from core.grouping import Grouping
from core.mechanisms.partition_selection import CountThreshold, OptimalSelection, PairThreshold
from core.noise import Noise
from core.rounds import Block
from core.statistics.found import Groups, Reading, Totals
from core.statistics.totals import GroupTotals


@dataclass(frozen=True)
class TotalsByGroup:
    """Release totals of groups, each with noise, in one pass.

    Neighbors and sensitivity are those of `core.statistics.quantities.Change`: each draw adds noise to the
    totals of one quantity in all groups, and is calibrated to their joint change.

    - Without groups there is one total of each quantity.
    - Public keys: every key has totals, also where no row has it. Nothing shows which keys have rows.
    - Private keys: only groups that hold rows are looked at, and `selection` says which are released. Noise
      of the other quantities is drawn for the released groups alone. The module
      `core.mechanisms.partition_selection` has the cost of both together. A selection by noisy counts of
      units is the release of these counts, too.

    Ranks of a column (quantiles, minimum, maximum) are released for the same groups, each from its own rows;
    see `core.statistics.ranks.Ranks`.

    The release may be in parts. The part of a group follows from its key alone, and what is released of a
    group depends on its own totals and its own noise. So all parts together are distributed like one release,
    and cost as much.

    Args:
        reading: what is summed up, and how it becomes measures.
        noises: noise of each quantity; None of the one that the selection releases, and of `below`, which is
            drawn together with `above`, the quantity before it.
        grouping: the groups; None without.
        selection: for private keys.
        parts: see `core.rounds.RoundInParts`; as many as the times of each draw of noise on totals.
    """

    reading: Reading
    noises: tuple[Additive | None, ...]
    grouping: Grouping | None = None
    selection: CountThreshold | OptimalSelection | None = None
    parts: int = 1
    purpose: ClassVar[str] = "the totals from which the measures follow"
    name: str = "statistics"

    @property
    def floor(self) -> int | None:
        """Totals of groups are merged in shards; 0 clips nothing."""
        return None if self.grouping is None else 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        added = tuple(noise for noise in self.noises if noise is not None)
        ranks = tuple(draw for each in self.reading.ranks for draw in each.draws())
        return (*added, *ranks) if self.selection is None else (self.selection, *added, *ranks)

    def summarize(self, block: Block, state: None) -> GroupTotals:
        """Add up the quantities of the block's records by group."""
        private = self.grouping is not None and self.grouping.private
        return GroupTotals.of(block, self.reading.quantities, private, self._axes)

    def release(self, aggregate: GroupTotals, state: None, noise: Noise) -> Totals | Groups:
        """Release the noisy totals."""
        if self.grouping is None:
            key = np.zeros(1, np.int64)
            totals = self._noisy(aggregate, key, {}, noise)
            return Totals(totals, self.reading, self._ranks(aggregate, key, noise))
        shards = [aggregate] if self.parts == 1 else aggregate.split(self.parts)
        return Groups.joined([self.release_part(i, shard, state, noise) for i, shard in enumerate(shards)])

    def release_part(self, number: int, aggregate: GroupTotals, state: None, noise: Noise) -> Groups:
        """See `RoundInParts.release_part`."""
        grouping = self.grouping
        if grouping is None:
            raise ValueError("Without groups there are no parts.")
        if self.selection is None:
            keys = self._public[number]
            labels = np.array([], dtype="S1") if not len(keys) else self._labels[keys]
            return self._groups(aggregate, keys, labels, {}, grouping, noise)
        found, known = self._found(aggregate, noise)
        return self._groups(aggregate, found, found, known, grouping, noise)

    def _groups(
        self,
        aggregate: GroupTotals,
        keys: Keys,
        labels: Keys,
        known: dict[int, Any],
        grouping: Grouping,
        noise: Noise,
    ) -> Groups:
        """Release what is asked of groups, given their keys and labels, and totals that are known."""
        totals = self._noisy(aggregate, keys, known, noise)
        named = replace(grouping, labels=None)  # the table has its own, and all of them take much memory
        return Groups(labels, totals, self.reading, named, self._ranks(aggregate, keys, noise))

    def _found(self, aggregate: GroupTotals, noise: Noise) -> tuple[Any, dict[int, Any]]:
        """Release which private groups there are, and the totals that this shows, by quantity."""
        units = self._units
        paired = isinstance(self.selection, PairThreshold)
        counts = aggregate.totals[:, units : units + 2] if paired else aggregate.totals[:, units]
        if isinstance(self.selection, CountThreshold):
            found, noisy = self.selection.released(aggregate.keys, counts, noise)
            if paired:
                return found, {units: noisy[:, 0], units + 1: noisy[:, 1]}
            return found, {units: noisy}
        if self.selection is None:
            raise ValueError("Public keys are not searched.")
        return self.selection.released(aggregate.keys, counts, noise), {}

    def _noisy(self, aggregate: GroupTotals, keys: Keys, known: dict[int, Any], noise: Noise) -> Any:
        """Return the noisy totals of keys, shape (len(keys), q)."""
        exact = aggregate.at(keys)
        noisy = np.zeros_like(exact)
        for i, added in enumerate(self.noises):
            if i in known:
                noisy[:, i] = known[i]
            elif added is not None and self.reading.quantities[i].kind == "above":
                noisy[:, i : i + 2] = added.add(exact[:, i : i + 2], noise)
            elif added is not None:
                noisy[:, i] = added.add(exact[:, i], noise)
        return noisy

    def _ranks(self, aggregate: GroupTotals, keys: Keys, noise: Noise) -> Any:
        """Return the grid points of the ranks of groups, shape (len(keys), r, 3)."""
        many = sum(len(each.sought.names) for each in self.reading.ranks)
        steps = np.zeros((len(keys), many, 3), dtype=np.int64)
        for group, place in enumerate(aggregate.places(keys) if many else ()):
            counts = {axis: of.at(place) for axis, of in zip(self._axes, aggregate.values, strict=True)}
            found = [each.release(counts[each.sought.axis], noise) for each in self.reading.ranks]
            steps[group] = np.concatenate(found)
        return steps

    @property
    def _axes(self) -> tuple[int, ...]:
        """The columns of which ranks are released."""
        return tuple(sorted({each.sought.axis for each in self.reading.ranks}))

    @property
    def _units(self) -> int:
        """Which quantity counts units: that of rows, or a pair, where a unit has one row in a group."""
        kinds = [quantity.kind for quantity in self.reading.quantities]
        return next(kinds.index(kind) for kind in ("units", "rows", "above") if kind in kinds)

    @cached_property
    def _labels(self) -> Any:
        labels = () if self.grouping is None else self.grouping.labels or ()
        return np.array([label.encode() for label in labels], dtype=np.bytes_)

    @cached_property
    def _public(self) -> list[Any]:
        """The public keys of each part."""
        keys = np.arange(len(self._labels))
        shard = shard_of(keys, self.parts)
        return [keys[shard == number] for number in range(self.parts)]
