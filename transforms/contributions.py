"""Bound what a privacy unit contributes to groups: it keeps some of its groups, and some rows in each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.rounds import Block
from core.sampling import scramble
from transforms.bound_units import (
    BLOCK_VALUES,
    Bounding,
    by_shard,
    count_units,
    gathered_rows,
    outside_by_shard,
)
from transforms.group_keys import GroupKeys, Ints
from transforms.open_source import Source
from transforms.read_blocks import Reader, to_block
from transforms.unit_keys import unit_ids, unit_keys
from transforms.unit_records import race_of

Contributed = tuple[bytes, bytes, bytes, bytes, bytes]
"""Of one shard: points axis by axis as int64, identities, counts of `Block.outside`, groups, and labels."""

_GROUP = 0x67726F7570
"""Tweak of the hash that chooses groups. No sampling of records uses it."""


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
        """See `UnitBounds.split`. Rows without a group are left out."""
        bounding, keys = self.bounding, self.keys
        if units.null_count:
            batch, units = batch.filter(units.is_valid()), units.drop_null()
        if bounding.checked:
            yield from outside_by_shard(bounding, batch, units)
        block = to_block(
            Reader(bounding.columns, bounding.grid, groups=keys),
            batch,
            np.arange(len(units), dtype=np.uint64),
        )
        more = {}
        if block.groups is not None and block.labels is not None:
            group: pa.Array = pa.array(block.groups)
            if keys is not None and keys.labels is None:
                group = pa.array(block.labels.tolist(), pa.binary()).take(group)
            more["group"] = group
        yield from by_shard(bounding, units.take(pa.array(block.ids)), block.points, more)

    def bound(self, number: int, parts: Sequence[bytes]) -> Contributed:
        """See `UnitBounds.bound`."""
        bounding = self.bounding
        if number >= bounding.shards:
            counts = count_units(parts, 2 * len(bounding.columns)).astype("<i8").tobytes()
            return b"", b"", counts, b"", b""
        gathered = gathered_rows(parts)
        if gathered is None:
            return b"", b"", b"", b"", b""
        rows, order, of_unit, ids = gathered
        points = np.empty((len(rows), bounding.grid.dimension), np.int64, order="F")
        for axis in range(bounding.grid.dimension):
            points[:, axis] = rows.column(str(axis)).to_numpy()[order]
        groups, names = np.zeros(len(rows), dtype=np.int64), pa.array([0])
        if self.keys is not None:
            encoded = rows.column("group").dictionary_encode().combine_chunks()
            groups, names = encoded.indices.to_numpy().astype(np.int64)[order], encoded.dictionary
        kept = chosen(self, points, of_unit, ids, groups, names)
        points, groups = points[kept], groups[kept]
        labels = b""
        if self.keys is not None and self.keys.labels is None:
            labels = b"\n".join(names.to_pylist())
        elif self.keys is not None:
            groups = names.to_numpy()[groups]
        return (
            points.astype("<i8").tobytes(order="F"),
            ids[of_unit[kept]].astype("<u8").tobytes(),
            b"",
            groups.astype("<i8").tobytes(),
            labels,
        )


@dataclass(frozen=True)
class ContributedReader:
    """Read `Contributed` in blocks, of which each has all records of its units: the last may make it larger.

    Args:
        dimension: number of columns.
        keys: see `Contributing`.
    """

    dimension: int
    keys: GroupKeys | None

    def blocks(self, element: Contributed) -> Iterator[Block]:
        """Return the records in the order of their units, at least one block."""
        ids = np.frombuffer(element[1], dtype="<u8").astype(np.uint64)
        points = np.frombuffer(element[0], dtype="<i8").reshape(self.dimension, len(ids)).T
        counts = np.frombuffer(element[2], dtype="<i8").astype(np.int64) if element[2] else None
        groups = labels = None
        if self.keys is not None:
            groups = np.frombuffer(element[3], dtype="<i8").astype(np.int64)
            names = np.array(element[4].split(b"\n"), dtype=np.bytes_)
            labels = names if self.keys.public is None else self.keys.public
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
    points: Ints,
    of_unit: Ints,
    ids: NDArray[np.uint64],
    groups: Ints,
    names: pa.Array,
) -> NDArray[np.intp]:
    """Return the indices of the rows that units keep, unit by unit; see `Contributing`.

    Args:
        contributing: the bounds.
        points: shape (n, d), grid steps.
        of_unit: shape (n,), index of the unit of each row, which does not decrease.
        ids: shape (units,), identities.
        groups: shape (n,), the group of each row as an index of `names`.
        names: labels or numbers of the groups, all different.
    """
    salt = contributing.bounding.salt
    of_name = unit_ids(unit_keys(names, salt))
    pair = of_unit * len(names) + groups
    pairs, of_pair = np.unique(pair, return_inverse=True)
    unit_of, group_of = np.divmod(pairs, len(names))
    hashes = scramble(scramble(ids, salt, _GROUP)[unit_of] ^ of_name[group_of], salt, _GROUP)
    # Two groups of a unit may have one hash if their names have: then the smaller name comes first.
    by_name = np.empty(len(names), dtype=np.int64)
    by_name[pc.sort_indices(names).to_numpy()] = np.arange(len(names))
    order = np.lexsort((by_name[group_of], hashes, unit_of))
    keeps = np.empty(len(pairs), dtype=np.bool_)
    keeps[order] = _rank(unit_of[order]) < contributing.groups
    race, words = race_of(points.astype(np.uint64), of_pair, hashes, salt)
    order = np.lexsort((*words, race, of_pair))
    kept = np.empty(len(points), dtype=np.bool_)
    kept[order] = _rank(of_pair[order]) < contributing.rows
    return np.flatnonzero(kept & keeps[of_pair])


def _rank(sorted_: Ints) -> Ints:
    """Return the place of each element among the equal ones, in a sorted array."""
    new = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1])) if len(sorted_) else sorted_
    return np.arange(len(sorted_)) - np.repeat(new, np.diff(np.append(new, len(sorted_))))
