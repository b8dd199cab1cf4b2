"""Bound what a privacy unit contributes to groups: it keeps some of its groups, and some rows in each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.domain import Grid
from core.rounds import Block
from core.sampling import U64
from transforms.bound_units import Bounding, add_outside, count_units, of_someone
from transforms.group_keys import GroupKeys, Ints
from transforms.heap import BLOCK_VALUES
from transforms.open_source import Source
from transforms.point_words import number_of_words, point_words, points_of, stored
from transforms.read_blocks import Reader, to_block
from transforms.reduce_units import reduce_units
from transforms.row_races import first_hashes, race_of, races_of_copies
from transforms.sorted_words import sorted_numbers, sorted_within
from transforms.spill import Spilled, fetched
from transforms.unit_groups import GroupNames, UnitGroups, pair_hashes, places
from transforms.unit_rows import ROWS, GatheredLabels, ShardRows, UnitRows, renumbered, words_of

Contributed = tuple[bytes, bytes, bytes, bytes, bytes]
"""Of one shard: points axis by axis as int64, identities, counts of `Block.outside`, groups, and labels."""


@dataclass(frozen=True)
class Contributing:
    """Which rows of a unit become records.

    A unit keeps at most `groups` of its groups: those with the smallest hashes of the unit and the group. In
    each of them it keeps at most `rows` of its rows: those with the smallest hashes of the unit, the group
    and the row's own values, where copies of a row have hashes of their own. So every subset is equally
    likely, up to the quality of the hash.

    Privacy, for every salt, even a known one. What a unit keeps is a function of the multiset of its own
    rows: it depends neither on their places nor on other units. So if two databases differ in all rows of
    one unit, their records differ in the records of this unit, which are at most `rows` in each of at most
    `groups` groups.

    Units are told apart by their keys. Of these, records have an identity of 64 bits; see `identities`.

    Args:
        bounding: columns, grid, unit, salt and shards; `keep` has no meaning here.
        keys: how rows become members of groups; None for all rows together.
        groups: see above.
        rows: see above.
    """

    bounding: Bounding
    keys: GroupKeys | None
    groups: int
    rows: int

    @classmethod
    def of(cls, source: Source, bounding: Bounding, groups: int, rows: int) -> "Contributing":
        """Return the bounds for `source`."""
        return cls(bounding, source.groups, groups, rows)

    @property
    def parts(self) -> int:
        """See `UnitBounds.parts`."""
        return self.bounding.parts

    @property
    def key_columns(self) -> tuple[str, ...]:
        """See `UnitBounds.key_columns`."""
        return () if self.keys is None else self.keys.columns

    @property
    def reader(self) -> "ContributedReader":
        """See `UnitBounds.reader`."""
        return ContributedReader(self.bounding.grid.dimension, self.keys)

    def split(self, batch: pa.RecordBatch, units: pa.Array) -> Iterator[tuple[int, bytes]]:
        """See `UnitBounds.split`. Rows without a group are left out.

        The last word of a row is the number of its group, or with private keys its place among the labels of
        a piece.
        """
        bounding, keys = self.bounding, self.keys
        reader = Reader(bounding.columns, bounding.grid)
        rows, odd = ShardRows(bounding.shards, bounding.salt), ShardRows(bounding.shards, bounding.salt)
        batch, units = of_someone(batch, units)
        groups, labels = (None, np.empty(0, "S1")) if keys is None else keys.read(batch)
        for start in range(0, len(units), ROWS):
            some, owners = batch.slice(start, ROWS), units.slice(start, ROWS)
            if bounding.checked:
                add_outside(odd, bounding, some, owners)
            block = to_block(reader, some, np.arange(len(owners), dtype=np.uint64))
            words, kept = point_words(block.points, bounding.grid), block.ids.astype(np.int64)
            if groups is not None:
                group = groups[start : start + ROWS][kept]
                there = group >= 0
                words, kept = [word[there] for word in (*words, group.astype(np.uint64))], kept[there]
            rows.add(owners if len(kept) == len(owners) else owners.take(pa.array(kept)), words)
        named = keys is not None and keys.labels is None
        yield from rows.pieces(labels if named else None)
        if bounding.checked:
            yield from ((number + bounding.shards, piece) for number, piece in odd.pieces())

    def bound(self, number: int, parts: Iterable[bytes]) -> Contributed:
        """See `UnitBounds.bound`."""
        bounding = self.bounding
        if number >= bounding.shards:
            return b"", b"", count_units(bounding, parts).astype("<i8").tobytes(), b"", b""
        labels = GatheredLabels()
        named = self.keys is not None and self.keys.labels is None
        read = labels.words_of if named else words_of
        pieces = (read(part) for part in parts if part)
        kept = list(reduce_units(pieces, _ChosenRows(self, labels if named else None), bounding.salt))
        if not kept:
            return b"", b"", b"", b"", b""
        points, ids, more, groups = (np.concatenate(each) for each in zip(*kept, strict=True))
        ids = identities(ids, more)
        return (
            points.astype("<i8").tobytes(order="F"),
            ids.tobytes(),
            b"",
            groups.astype("<i8").tobytes(),
            b"\n".join(labels),
        )


@dataclass(frozen=True)
class _ChosenRows:
    """The rows that units keep; see `transforms.reduce_units.Reduction`.

    A row is the words of its point, and its group where there are keys. What is merged of it are its group,
    its hash of `race_of`, and its coordinates. Rows whose first hash is the same are reduced together, see
    `transforms.unit_records.KeptRows`. A group that a unit keeps is among those that it keeps of any part
    of its rows in which the group occurs, and so is a row.

    Args:
        contributing: the bounds.
        labels: of private groups, complete once all pieces are read; None where groups are numbers.
    """

    contributing: Contributing
    labels: GatheredLabels | None

    @property
    def words(self) -> int:
        return number_of_words(self._grid) + (self.contributing.keys is not None)

    @property
    def state_words(self) -> int:
        return 2 + self._grid.dimension

    @property
    def _grid(self) -> Grid:
        return self.contributing.bounding.grid

    @cached_property
    def _names(self) -> GroupNames:
        """What chooses groups. It is asked for when all pieces are read."""
        keys, names = self.contributing.keys, pa.array([0])
        if self.labels is not None:
            names = pa.array(list(self.labels), pa.binary())
        elif keys is not None:
            names = pa.array(np.arange(len(keys.labels or ())))
        return GroupNames.of(names, self.contributing.bounding.salt)

    def whole(self, rows: UnitRows) -> tuple[NDArray[Any], ...]:
        points, groups = self._read(rows.words)
        of_unit, first = renumbered(rows)
        kept = chosen(self.contributing, points, of_unit, rows.ids[first], groups, self._names)
        more = rows.ids if rows.more is None else rows.more
        return points[kept], rows.ids[kept], more[kept], groups[kept]

    @property
    def apart(self) -> Callable[[Sequence[NDArray[np.uint64]]], NDArray[np.uint64]]:
        return self._first_hashes

    def _first_hashes(self, rows: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
        points, groups = self._read(rows[len(rows) - self.words :])
        return first_hashes(self._named(rows[0], groups, points), self._salt)

    def state(self, rows: UnitRows, copies: Ints | None) -> UnitRows:
        copies = np.ones(len(rows.ids), dtype=np.int64) if copies is None else copies
        points, groups = self._read(rows.words)
        of_unit, _ = renumbered(rows)
        of_pair = np.unique(of_unit * len(self._names.hashes) + groups, return_inverse=True)[1]
        named = self._named(rows.ids, groups, points)
        some, race = races_of_copies(named, of_pair, copies, self.contributing.rows, self._salt)
        own = rows.with_words([groups.astype(np.uint64), *points.astype(np.uint64).T]).take(some)
        return own.with_words([own.words[0], race, *own.words[1:]])

    def merged(self, state: UnitRows) -> list[NDArray[np.uint64]]:
        group, race, *points = state.words
        of_unit, first = renumbered(state)
        of_groups = group.astype(np.int64)
        every = np.stack(points, axis=1)
        kept = chosen(self.contributing, every, of_unit, state.ids[first], of_groups, self._names, race)
        return state.rows(kept, [np.take(word, kept) for word in state.words])

    def finished(self, merged: Sequence[NDArray[np.uint64]]) -> tuple[NDArray[Any], ...]:
        *keys, group, _ = merged[: len(merged) - self._grid.dimension]
        points = merged[len(merged) - self._grid.dimension :]
        return np.stack(points, axis=1).astype(stored(self._grid)), keys[0], keys[-1], group.astype(np.int64)

    @property
    def _salt(self) -> bytes:
        return self.contributing.bounding.salt

    def _read(self, words: Sequence[NDArray[np.uint64]]) -> tuple[NDArray[np.unsignedinteger[Any]], Ints]:
        many = number_of_words(self._grid)
        points = points_of(words[:many], self._grid)
        if self.contributing.keys is None:
            return points, np.zeros(len(points), dtype=np.int64)
        return points, words[many].astype(np.int64)

    def _named(
        self, ids: NDArray[np.uint64], groups: Ints, points: NDArray[np.unsignedinteger[Any]]
    ) -> list[NDArray[np.uint64]]:
        """Return the words of `race_of`."""
        return [pair_hashes(ids, self._names.hashes[groups], self._salt), *points.astype(np.uint64).T]


@dataclass(frozen=True)
class ContributedReader:
    """Read `Contributed` in blocks, of which each has all records of its units: the last may make it larger.

    Args:
        dimension: number of columns.
        keys: see `Contributing`.
    """

    dimension: int
    keys: GroupKeys | None

    def blocks(self, element: Contributed | Spilled) -> Iterator[Block]:
        """Return the records in the order of their units, at least one block."""
        bounded: Contributed = fetched(element)
        ids = np.frombuffer(bounded[1], dtype="<u8").astype(np.uint64)
        points = np.frombuffer(bounded[0], dtype="<i8").reshape(self.dimension, len(ids)).T
        counts = np.frombuffer(bounded[2], dtype="<i8").astype(np.int64) if bounded[2] else None
        groups = labels = None
        if self.keys is not None:
            groups = np.frombuffer(bounded[3], dtype="<i8").astype(np.int64)
            names = np.array(bounded[4].split(b"\n"), dtype=np.bytes_)
            labels = names if self.keys.labels is None else self.keys.labels.array
        size = max(1, BLOCK_VALUES // self.dimension)
        starts = np.append(np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if len(ids) else 0, len(ids))
        wanted = np.arange(size, len(ids), size)
        cuts = np.unique(np.concatenate([[0], starts[np.searchsorted(starts, wanted)], [len(ids)]]))
        cuts = cuts.astype(np.int64) if len(cuts) > 1 else np.array([0, 0])
        for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            yield Block(
                points[start:end].astype(np.int64, order="F"),
                ids[start:end],
                None if start else counts,
                None if groups is None else groups[start:end],
                labels,
            )


def identities(ids: U64, more: U64) -> U64:
    """Return identities of records, which differ for units whose keys do.

    A key of two words is told by its first one, but where another unit has the same: of n others one has with
    probability n / 2^64. Then the identity of both is the exclusive or of their two words.

    Args:
        ids: shape (n,), the first words of the keys of the records' units, of which records are together.
        more: shape (n,), the last words.
    """
    new = np.ones(len(ids), dtype=np.bool_)
    new[1:] = (ids[1:] != ids[:-1]) | (more[1:] != more[:-1])
    units = np.sort(ids[new])
    twice = units[1:][units[1:] == units[:-1]]
    return np.where(np.isin(ids, twice), ids ^ more, ids) if len(twice) else ids


def chosen(
    contributing: Contributing,
    points: NDArray[np.unsignedinteger[Any]],
    of_unit: Ints,
    ids: NDArray[np.uint64],
    groups: Ints,
    names: GroupNames,
    races: NDArray[np.uint64] | None = None,
) -> NDArray[np.intp]:
    """Return the indices of the rows that units keep, unit by unit; see `Contributing`.

    Args:
        contributing: the bounds.
        points: shape (n, d), grid steps.
        of_unit: shape (n,), index of the unit of each row.
        ids: shape (units,), identities.
        groups: shape (n,), the group of each row as an index of `names`.
        names: of the groups.
        races: hash of each row where it is known, shape (n,); see `transforms.row_races.race_of`.
    """
    salt = contributing.bounding.salt
    pairs = UnitGroups.of(of_unit, ids, groups, names, contributing.groups, salt)
    # Rows are chosen where a unit has too many of them in a group that it keeps.
    full = pairs.kept & (pairs.rows > contributing.rows)
    some = full[pairs.of_pair]
    of_full, among = (np.cumsum(full) - 1)[pairs.of_pair[some]], pairs.order[some]
    words = [points[among, axis].astype(np.uint64) for axis in range(points.shape[1])]
    if races is None:
        race = race_of([pairs.hashes[pairs.of_pair[some]], *words], of_full, salt)
    else:
        race = races[among]
    ranked = sorted_within(of_full, race, words)
    kept = pairs.keep()
    kept[among[ranked]] = places(of_full[ranked]) < contributing.rows
    indices = np.flatnonzero(kept)
    return indices[sorted_numbers(of_unit[indices])]
