"""Bound what a privacy unit contributes to groups: it keeps some of its groups, and some rows in each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.rounds import Block
from transforms.bound_units import Bounding, add_outside, count_units, of_someone
from transforms.group_keys import GroupKeys, Ints
from transforms.heap import BLOCK_VALUES
from transforms.open_source import Source
from transforms.point_words import number_of_words, point_words, points_of
from transforms.read_blocks import Reader, to_block
from transforms.sorted_words import sorted_numbers, sorted_within
from transforms.spill import Spilled, fetched
from transforms.unit_groups import GroupNames, UnitGroups, places
from transforms.unit_records import race_of
from transforms.unit_rows import (
    ROWS,
    ShardRows,
    in_batches,
    joined_labels,
    joined_rows,
    renumbered,
    unit_rows,
)

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

    Units are told apart as by `transforms.bound_units.Bounding`.

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

    def bound(self, number: int, parts: Sequence[bytes]) -> Contributed:
        """See `UnitBounds.bound`."""
        bounding = self.bounding
        if number >= bounding.shards:
            return b"", b"", count_units(bounding, parts).astype("<i8").tobytes(), b"", b""
        named = self.keys is not None and self.keys.labels is None
        rows, names = joined_rows(parts), pa.array([0])
        if rows is None:
            return b"", b"", b"", b"", b""
        if named:
            names = joined_labels(parts, rows)
        elif self.keys is not None:
            names = pa.array(np.arange(len(self.keys.labels or ())))
        chosen_by = GroupNames.of(names, bounding.salt)
        kept = [self._kept(some, chosen_by) for some in in_batches([rows], bounding.salt)]
        points, ids, groups = (np.concatenate(each) for each in zip(*kept, strict=True))
        return (
            points.astype("<i8").tobytes(order="F"),
            ids.tobytes(),
            b"",
            groups.astype("<i8").tobytes(),
            b"\n".join(names.to_pylist()) if named else b"",
        )

    def _kept(self, rows: list[NDArray[np.uint64]], names: GroupNames) -> tuple[NDArray[Any], ...]:
        """Return points, identities and groups of the rows that units keep, unit by unit.

        Args:
            rows: words of rows, with all rows of their units.
            names: of the groups.
        """
        grid, salt = self.bounding.grid, self.bounding.salt
        many = number_of_words(grid)
        gathered = unit_rows(rows, many + (self.keys is not None), salt)
        points = points_of(gathered.words[:many], grid)
        groups = np.zeros(len(points), dtype=np.int64)
        if self.keys is not None:
            groups = gathered.words[many].astype(np.int64)
        of_unit, first = renumbered(gathered)
        kept = chosen(self, points, of_unit, gathered.ids[first], groups, names)
        return points[kept], gathered.ids[kept], groups[kept]


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


def chosen(
    contributing: Contributing,
    points: NDArray[np.unsignedinteger[Any]],
    of_unit: Ints,
    ids: NDArray[np.uint64],
    groups: Ints,
    names: GroupNames,
) -> NDArray[np.intp]:
    """Return the indices of the rows that units keep, unit by unit; see `Contributing`.

    Args:
        contributing: the bounds.
        points: shape (n, d), grid steps.
        of_unit: shape (n,), index of the unit of each row.
        ids: shape (units,), identities.
        groups: shape (n,), the group of each row as an index of `names`.
        names: of the groups.
    """
    salt = contributing.bounding.salt
    pairs = UnitGroups.of(of_unit, ids, groups, names, contributing.groups, salt)
    # Rows are chosen where a unit has too many of them in a group that it keeps.
    full = pairs.kept & (pairs.rows > contributing.rows)
    some = full[pairs.of_pair]
    of_full, among = (np.cumsum(full) - 1)[pairs.of_pair[some]], pairs.order[some]
    words = [points[among, axis].astype(np.uint64) for axis in range(points.shape[1])]
    race = race_of([pairs.hashes[pairs.of_pair[some]], *words], of_full, salt)
    ranked = sorted_within(of_full, race, words)
    kept = pairs.keep()
    kept[among[ranked]] = places(of_full[ranked]) < contributing.rows
    indices = np.flatnonzero(kept)
    return indices[sorted_numbers(of_unit[indices])]
