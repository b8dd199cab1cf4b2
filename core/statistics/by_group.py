"""The round of statistics: exact totals of each group, and one release of them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from core.aggregate import Keys, shard_of
from core.draws import Additive, Draw
from core.mechanisms.partition_selection import CountThreshold, OptimalSelection
from core.noise import Noise
from core.rounds import Block
from core.statistics.found import Groups, Reading, Totals
from core.statistics.params import Grouping
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

    The release may be in parts. The part of a group follows from its key alone, and what is released of a
    group depends on its own totals and its own noise. So all parts together are distributed like one release,
    and cost as much.

    Args:
        reading: what is summed up, and how it becomes measures.
        noises: noise of each quantity; None of the one that the selection releases.
        grouping: the groups; None without.
        selection: for private keys.
        parts: see `core.rounds.RoundInParts`; as many as the times of each draw.
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
        return added if self.selection is None else (self.selection, *added)

    def summarize(self, block: Block, state: None) -> GroupTotals:
        """Add up the quantities of the block's records by group."""
        private = self.grouping is not None and self.grouping.private
        return GroupTotals.of(block, self.reading.quantities, private)

    def release(self, aggregate: GroupTotals, state: None, noise: Noise) -> Totals | Groups:
        """Release the noisy totals."""
        if self.grouping is None:
            return Totals(self._noisy(aggregate, np.zeros(1, np.int64), {}, noise), self.reading)
        shards = aggregate.split(self.parts)
        return Groups.joined([self.release_part(i, shard, state, noise) for i, shard in enumerate(shards)])

    def release_part(self, number: int, aggregate: GroupTotals, state: None, noise: Noise) -> Groups:
        """See `RoundInParts.release_part`."""
        grouping = self.grouping
        if grouping is None:
            raise ValueError("Without groups there are no parts.")
        if self.selection is None:
            keys = self._public[number]
            labels = np.array([], dtype="S1") if not len(keys) else self._labels[keys]
            return Groups(labels, self._noisy(aggregate, keys, {}, noise), self.reading, grouping)
        units = self._units
        counts = aggregate.totals[:, units]
        if isinstance(self.selection, OptimalSelection):
            found = self.selection.released(aggregate.keys, counts, noise)
            return Groups(found, self._noisy(aggregate, found, {}, noise), self.reading, grouping)
        found, noisy = self.selection.released(aggregate.keys, counts, noise)
        return Groups(found, self._noisy(aggregate, found, {units: noisy}, noise), self.reading, grouping)

    def _noisy(self, aggregate: GroupTotals, keys: Keys, known: dict[int, Any], noise: Noise) -> Any:
        """Return the noisy totals of keys, shape (len(keys), q)."""
        exact = aggregate.at(keys)
        noisy = np.zeros_like(exact)
        for i, added in enumerate(self.noises):
            if i in known:
                noisy[:, i] = known[i]
            elif added is not None:
                noisy[:, i] = added.add(exact[:, i], noise)
        return noisy

    @property
    def _units(self) -> int:
        """Which quantity is the number of units: that of rows where a unit has one row in a group."""
        kinds = [quantity.kind for quantity in self.reading.quantities]
        return kinds.index("units" if "units" in kinds else "rows")

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
