"""The round of statistics: exact totals of each group, and one release of them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from core.aggregate import Keys, shard_of
from core.draws import Additive, Draw
from core.focus import CELLS
from core.grouping import Grouping
from core.held import AT_WORK
from core.labels import Labels
from core.mechanisms.partition_selection import CountThreshold, OptimalSelection, SumsThreshold
from core.noise import Noise
from core.rounds import Block
from core.statistics.found import Groups, Reading, Totals
from core.statistics.quantities import drawn_together
from core.statistics.stored_totals import StoredTotals, TotalsInSections
from core.statistics.totals import GroupTotals
from core.stored import SECTIONS, Store

_FEW = 1 << 14
"""Public keys whose totals are merged at once: they take less than a megabyte for each total."""


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

    Where ranks are sought among many values, these are counted in sections; see `core.rounds.RoundInSections`
    and `core.statistics.stored_totals`. Where one process runs all steps, none then holds all values, also
    not those of one group.

    The release may be in parts. The part of a group follows from its key alone, and what is released of a
    group depends on its own totals and its own noise. So all parts together are distributed like one release,
    and cost as much.

    Args:
        reading: what is summed up, and how it becomes measures.
        noises: noise of each quantity; None of those that the selection releases, and of those that are tied
            to the one before them, with which they are drawn.
        grouping: the groups; None without.
        selection: for private keys; it looks at the first quantity, and at those that are tied to it.
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
        """Totals of many groups, or of values, are merged in shards; 0 clips nothing."""
        grouping = self.grouping
        if grouping is None:
            return None
        few = grouping.labels is not None and len(grouping.labels) <= _FEW and not self._axes
        return None if few else 0

    @property
    def sections(self) -> int:
        """See `core.rounds.RoundInSections`: none where all possible values are few."""
        if self.parts > 1 or not self._axes:
            return 0
        points = max(each.points for each in self.reading.ranks) * len(self._axes)
        labels = None if self.grouping is None else self.grouping.labels
        private = self.grouping is not None and labels is None
        return 0 if not private and points * max(1, len(labels or ())) <= CELLS else SECTIONS

    @property
    def most_counts(self) -> int:
        """See `core.held`: of values, or of public groups."""
        labels = None if self.grouping is None else self.grouping.labels
        groups = 1 if labels is None else -(-len(labels) // self.parts)
        steps = [step for each in self.reading.ranks for step in each.rounds]
        values = max(CELLS, *(getattr(step, "most_counts", 0) for step in steps)) if self._axes else 0
        return max(groups, values)

    @property
    def growing(self) -> str | None:
        """See `core.held`: private groups, and with parts the values of a part."""
        if self.grouping is None:
            return None
        found = []
        if self.grouping.private:
            found.append(f"{AT_WORK} bytes for each group")
        if self._axes and self.parts > 1:
            found.append(f"{AT_WORK} bytes for each pair of a group and a distinct value")
        of_each = f" of each of {self.parts:,} parts in turn" if self.parts > 1 and found else ""
        return f"{' and '.join(found)}{of_each}" or None

    def of_one_group(self) -> "TotalsByGroup":
        """Return the release of the first public group alone, as it is beside all others."""
        grouping = self.grouping
        if grouping is None or grouping.labels is None:
            return self
        return replace(self, grouping=replace(grouping, labels=Labels(grouping.labels[:1])))

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        added = tuple(noise for noise in self.noises if noise is not None)
        ranks = tuple(draw for each in self.reading.ranks for draw in each.draws())
        return (*added, *ranks) if self.selection is None else (self.selection, *added, *ranks)

    def summarize(self, block: Block, state: None) -> GroupTotals:
        """Add up the quantities of the block's records by group."""
        private = self.grouping is not None and self.grouping.private
        kind = TotalsInSections if self.sections else GroupTotals
        return kind.of(block, self.reading.quantities, private, self._axes)

    def examine(self, section: GroupTotals, state: None, noise: Noise, store: Store) -> StoredTotals:
        """Store the values of a section; see `core.rounds.RoundInSections`."""
        return StoredTotals.of(section, store)

    def release(self, aggregate: GroupTotals | StoredTotals, state: None, noise: Noise) -> Totals | Groups:
        """Release the noisy totals."""
        if self.grouping is None:
            key, stored = np.zeros(1, np.int64), StoredTotals.of(aggregate)
            totals = self._noisy(stored.totals, key, {}, noise)
            return Totals(totals, self.reading, self._ranks(stored, key, noise))
        if isinstance(aggregate, StoredTotals) or self.parts == 1:
            return self.release_part(0, aggregate, state, noise)
        shards = aggregate.split(self.parts)
        return Groups.joined([self.release_part(i, shard, state, noise) for i, shard in enumerate(shards)])

    def release_part(
        self, number: int, aggregate: GroupTotals | StoredTotals, state: None, noise: Noise
    ) -> Groups:
        """See `RoundInParts.release_part`."""
        grouping, stored = self.grouping, StoredTotals.of(aggregate)
        if grouping is None:
            raise ValueError("Without groups there are no parts.")
        if self.selection is None:
            keys = self._public[number]
            labels = np.array([], dtype="S1") if grouping.labels is None else grouping.labels.array[keys]
            return self._groups(stored, keys, labels, {}, grouping, noise)
        found, known = self._found(stored.totals, noise)
        return self._groups(stored, found, found, known, grouping, noise)

    def _groups(
        self,
        aggregate: StoredTotals,
        keys: Keys,
        labels: Keys,
        known: dict[int, Any],
        grouping: Grouping,
        noise: Noise,
    ) -> Groups:
        """Release what is asked of groups, given their keys and labels, and totals that are known."""
        totals = self._noisy(aggregate.totals, keys, known, noise)
        named = replace(grouping, labels=None)  # the table has its own, and all of them take much memory
        return Groups(labels, totals, self.reading, named, self._ranks(aggregate, keys, noise))

    def _found(self, aggregate: GroupTotals, noise: Noise) -> tuple[Any, dict[int, Any]]:
        """Release which private groups there are, and the totals that this shows, by quantity."""
        if isinstance(self.selection, SumsThreshold):
            sums = aggregate.totals[:, : self.selection.sums]
            found, noisy = self.selection.released(aggregate.keys, sums, noise)
            return found, dict(enumerate(noisy.T))
        if isinstance(self.selection, CountThreshold):
            found, counts = self.selection.released(aggregate.keys, aggregate.totals[:, 0], noise)
            return found, {0: counts}
        if self.selection is None:
            raise ValueError("Public keys are not searched.")
        return self.selection.released(aggregate.keys, aggregate.totals[:, 0], noise), {}

    def _noisy(self, aggregate: GroupTotals, keys: Keys, known: dict[int, Any], noise: Noise) -> Any:
        """Return the noisy totals of keys, shape (len(keys), q)."""
        exact = aggregate.at(keys)
        noisy = np.zeros_like(exact)
        for drawn in drawn_together(self.reading.quantities):
            added = self.noises[drawn.start]
            if added is not None:
                noisy[:, drawn] = added.add(exact[:, drawn], noise)
        for i, totals in known.items():
            noisy[:, i] = totals
        return noisy

    def _ranks(self, aggregate: StoredTotals, keys: Keys, noise: Noise) -> Any:
        """Return the grid points of the ranks of groups, shape (len(keys), r, 3)."""
        many = sum(len(each.sought.names) for each in self.reading.ranks)
        steps = np.zeros((len(keys), many, 3), dtype=np.int64)
        for group, values in enumerate(aggregate.values(keys) if many else ()):
            counts = dict(zip(self._axes, values, strict=True))
            found = [each.release(counts[each.sought.axis], noise) for each in self.reading.ranks]
            steps[group] = np.concatenate(found)
        return steps

    @property
    def _axes(self) -> tuple[int, ...]:
        """The columns of which ranks are released."""
        return tuple(sorted({each.sought.axis for each in self.reading.ranks}))

    @cached_property
    def _public(self) -> list[Any]:
        """The public keys of each part."""
        grouping = self.grouping
        keys = np.arange(0 if grouping is None or grouping.labels is None else len(grouping.labels))
        shard = shard_of(keys, self.parts)
        return [keys[shard == number] for number in range(self.parts)]
