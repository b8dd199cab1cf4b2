"""Integer aggregates whose `+` is associative and commutative: any split of the data gives the same bits."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from core.sampling import siphash

Ints = NDArray[np.int64]
Keys = Ints | NDArray[np.bytes_]

_SAMPLE = 0x73616D706C65
"""Tweak of the hash that orders records, which no Poisson sample uses."""

FACTOR = 0x9E3779B97F4A7C15
"""Odd, and without a pattern: the golden ratio of 2^64."""

_FULL = 16
"""Cells for each occupied one, or for each record, up to which a table of all cells is made."""

_GATHERED = 1 << 22
"""Keys that `Counts.gathered` holds before it adds them up."""

_SLICE = 1 << 16
"""Keys that are sorted together, about, where large counts are added up."""

_LOOKED_AT = 8
"""Keys for each slice and part that tell where to cut: of these, a slice has an eighth too many at most."""

_HASHED = 1 << 16  # keys that are hashed together: more take memory, and no less time
_FEW = 2
"""Largest mean count for which keys are repeated instead of carrying their counts."""


class Aggregate(Protocol):
    """What workers send to the private stage."""

    def __add__(self, other: Self) -> Self:
        """Merge two aggregates of disjoint parts of the data."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Sparse counts: `counts[i]` records have key `keys[i]`. Keys are sorted and distinct.

    Args:
        keys: shape (m,), int64.
        counts: shape (m,), int64, all positive.
    """

    keys: Ints
    counts: Ints

    @classmethod
    def of(cls, keys: Ints) -> "Counts":
        """Count the occurrences in `keys`, shape (n,)."""
        return cls._of_sorted(np.sort(keys))

    @classmethod
    def _of_sorted(cls, keys: Ints) -> "Counts":
        new = keys[1:] != keys[:-1]
        if new.all():
            return cls(keys, np.ones(len(keys), dtype=np.int64))
        first = np.append(0, np.flatnonzero(new) + 1)
        return cls(keys[first], np.diff(np.append(first, len(keys))))

    def __len__(self) -> int:
        return len(self.keys)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle counts in the smallest type that holds them: most are small, and many wait in files."""
        most = int(self.counts.max(initial=0))
        return _unpickled, (self.keys, self.counts.astype(np.min_scalar_type(most)))

    @classmethod
    def joined(cls, parts: Sequence["Counts"]) -> "Counts":
        """Join parts whose keys ascend from part to part."""
        return cls(np.concatenate([p.keys for p in parts]), np.concatenate([p.counts for p in parts]))

    @classmethod
    def merged(cls, parts: Sequence["Counts"]) -> "Counts":
        """Add up any number of counts at once, at least one.

        Sorting takes up to four times the memory of the parts. So large parts, of which there are fewer than
        slices, are added slice by slice, and slices have about equally many keys.

        Raises:
            ValueError: keys of a large part do not ascend.
        """
        filled = [part for part in parts if len(part.keys)]
        if len(filled) < 2:
            return (filled or list(parts))[0]
        most = sum(map(len, filled))
        slices = most // _SLICE
        if slices <= len(filled):
            return cls._sorted(filled)
        step = max(1, _SLICE // (_LOOKED_AT * len(filled)))
        some = np.sort(np.concatenate([part.keys[step // 2 :: step] for part in filled]))
        cuts = some[len(some) * np.arange(1, slices) // slices]
        keys, counts, end = np.empty(most, np.int64), np.empty(most, np.int64), 0
        for piece in zip(*(part._cut(cuts) for part in filled), strict=True):
            added = cls._sorted(piece)
            here = slice(end, end + len(added))
            if end and len(added) and added.keys[0] <= keys[end - 1]:
                raise ValueError("keys do not ascend")  # and would be in two slices
            keys[here], counts[here], end = added.keys, added.counts, here.stop
        for made in (keys, counts):
            made.resize(end, refcheck=False)  # gives back what was never touched
        return cls(keys, counts)

    def _cut(self, cuts: Ints) -> Iterator["Counts"]:
        """Cut into len(cuts) + 1 pieces, of which each but the first begins at its cut or after it."""
        ends = [0, *np.searchsorted(self.keys, cuts), len(self)]
        return (Counts(self.keys[a:b], self.counts[a:b]) for a, b in itertools.pairwise(ends))

    @classmethod
    def _sorted(cls, parts: Sequence["Counts"]) -> "Counts":
        """Add up counts by sorting all of their keys together."""
        keys = np.concatenate([part.keys for part in parts])
        records = sum(int(part.counts.sum()) for part in parts)
        if records != len(keys):
            counts = np.concatenate([part.counts for part in parts])
            if not _are_few(records, keys):
                return cls._weighted(keys, counts)
            keys = np.repeat(keys, counts)
        keys.sort(kind="stable")  # merges what ascends already, ten times as fast as sorting it again
        return cls._of_sorted(keys)

    @classmethod
    def gathered(cls, parts: Iterable["Counts"]) -> "Counts":
        """Add up any number of counts, at least one, and hold few of them at a time if keys repeat."""
        held: list[Counts] = []
        size, most = 0, _GATHERED
        for part in parts:
            held.append(part)
            size += len(part)
            if size > most:
                held = [cls.merged(held)]
                size = len(held[0])
                most = max(most, 2 * size)
        return cls.merged(held)

    @classmethod
    def weighted(cls, keys: Ints, counts: Ints) -> "Counts":
        """Add up the counts of each key; keys (n,) and positive counts (n,) in any order."""
        if _are_few(int(counts.sum()), keys):  # sorting keys alone is several times as fast
            return cls.of(np.repeat(keys, counts))
        return cls._weighted(keys, counts)

    @classmethod
    def _weighted(cls, keys: Ints, counts: Ints) -> "Counts":
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        return cls(keys[first], np.add.reduceat(counts, first))

    def __add__(self, other: "Counts") -> "Counts":
        return Counts.merged([self, other])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Counts)
            and np.array_equal(self.keys, other.keys)
            and np.array_equal(self.counts, other.counts)
        )

    def above(self, floor: int) -> "Counts":
        """Replace each count by max(0, count - floor), which is 1-Lipschitz, and drop the zeros."""
        if floor == 0:
            return self
        kept = self.counts > floor
        return Counts(self.keys[kept], self.counts[kept] - floor)

    def split(self, shards: int) -> list["Counts"]:
        """Split by key into `shards` parts, of which any may be empty."""
        if shards == 1:
            return [self]
        shard = shard_of(self.keys, shards)
        order = np.argsort(shard, kind="stable")  # keys stay ascending in every shard
        keys, counts = self.keys[order], self.counts[order]
        ends = np.searchsorted(shard[order], np.arange(shards + 1))
        parts = [slice(*ends[shard : shard + 2]) for shard in range(shards)]
        return [Counts(keys[part], counts[part]) for part in parts]


def _unpickled(keys: Ints, counts: NDArray[np.integer[Any]]) -> Counts:
    return Counts(keys, counts.astype(np.int64))


@dataclass(frozen=True, eq=False)
class CellCounts:
    """How many records lie in each of the cells 0 to `size` - 1: sparse while few of them are occupied.

    Many records are counted in a table of all cells, which takes a tenth of the time of sorting their keys,
    and no more memory where counts are small.

    Args:
        size: number of cells.
        sparse: the counts of the occupied cells, or None where there is a table.
        table: shape (size,), the counts of all cells, or None.
    """

    size: int
    sparse: Counts | None
    table: NDArray[np.integer[Any]] | None = None

    @classmethod
    def of(cls, keys: Ints, size: int) -> "CellCounts":
        """Count the occurrences in `keys`, shape (n,), all below `size`."""
        if len(keys) * _FULL < size:
            return cls(size, Counts.of(keys))
        return cls._of_all(np.bincount(keys, minlength=size))

    @classmethod
    def _of_all(cls, counts: Ints) -> "CellCounts":
        """Hold the counts of all cells in a table of the smallest type."""
        return cls(len(counts), None, counts.astype(np.min_scalar_type(int(counts.max()))))

    def __len__(self) -> int:
        """Return how many counts this holds."""
        return self.size if self.sparse is None else len(self.sparse)

    def __repr__(self) -> str:
        return f"CellCounts({self.size}, {self.counts()})"  # the same in whichever form

    def __add__(self, other: "CellCounts") -> "CellCounts":
        if self.table is not None and other.table is not None:
            kind = np.min_scalar_type(int(self.table.max()) + int(other.table.max()))
            total = np.add(self.table, other.table, dtype=kind, casting="unsafe")
            return CellCounts(self.size, None, total)
        if self.sparse is not None and other.sparse is not None:
            both = CellCounts(self.size, self.sparse + other.sparse)
            return both if len(both) * _FULL < self.size else self._of_all(both.dense())
        return self._of_all(self.dense() + other.dense())

    def counts(self) -> Counts:
        """Return the counts of the occupied cells."""
        if self.table is None:
            return cast(Counts, self.sparse)
        keys = np.flatnonzero(self.table)
        return Counts(keys, self.table[keys].astype(np.int64))

    def dense(self) -> Ints:
        """Return the counts of all cells, shape (size,)."""
        if self.table is not None:
            return self.table.astype(np.int64)
        sparse = cast(Counts, self.sparse)
        total = np.zeros(self.size, dtype=np.int64)
        total[sparse.keys] = sparse.counts
        return total

    def within(self, cells: Ints, halvings: int) -> Ints:
        """Count the records in cells of 2^halvings neighboring ones, given their numbers (m,): shape (m,)."""
        if self.table is not None:
            width = min(self.size, 1 << halvings)
            return np.asarray(self.table.reshape(-1, width).sum(axis=1, dtype=np.int64)[cells])
        counts = cast(Counts, self.sparse)
        first, after = np.searchsorted(counts.keys, np.stack([cells, cells + 1]) << halvings)
        before = np.concatenate([[0], np.cumsum(counts.counts)])
        return np.asarray(before[after] - before[first], dtype=np.int64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CellCounts) or self.size != other.size:
            return False
        cells = np.arange(self.size)
        return np.array_equal(self.within(cells, 0), other.within(cells, 0))


@dataclass(frozen=True, eq=False)
class Sample:
    """A random subset of the records: the `size` records of smallest hash, or all where there are fewer.

    Records are ordered by the keyed hash of their identity, then by the identity, then by the point. To merge
    two samples, keep the first `size` records of their union; so the result does not depend on how the data
    is split. Under the secret key, every subset of distinct identities is equally likely. The points matter
    only for records that share an identity.

    Privacy, under `replace_one`. For every key, the samples of neighbors are equal or differ in one record.
    - The neighbors have the same other records; one has x besides them, and the other has y.
    - If the sample is smaller than the database, it holds the first size - 1 of the others and one more
      record. That is x (or y) if it comes before the next one of the others, and otherwise that next one.
    - So whatever is private for databases of `size` records is as private for the sample. It does not matter
      whether y has the identity of x.

    Args:
        size: largest number of records.
        hashes: shape (m,), uint64.
        ids: shape (m,), uint64.
        points: shape (m,), int64, of one axis.
    """

    size: int
    hashes: NDArray[np.uint64]
    ids: NDArray[np.uint64]
    points: Ints

    @classmethod
    def of(cls, size: int, points: Ints, ids: NDArray[np.uint64], salt: bytes) -> "Sample":
        """Sample records, points (n,) and identities (n,), under a key of 16 secret bytes."""
        return cls.by_hash(size, points, ids, siphash(ids, salt, _SAMPLE))

    @classmethod
    def by_hash(
        cls, size: int, points: Ints, ids: NDArray[np.uint64], hashes: NDArray[np.uint64]
    ) -> "Sample":
        """Keep the records of smallest hash, given the hashes (n,) of their identities."""
        if len(hashes) > size:  # leave most of them unsorted
            few = hashes <= np.partition(hashes, size - 1)[size - 1]
            hashes, ids, points = hashes[few], ids[few], points[few]
        return cls(size, hashes, ids, points)._least()

    def __len__(self) -> int:
        return len(self.points)

    def __add__(self, other: "Sample") -> "Sample":
        return Sample(
            self.size,
            np.concatenate([self.hashes, other.hashes]),
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.points, other.points]),
        )._least()

    def _least(self) -> "Sample":
        least = np.lexsort((self.points, self.ids, self.hashes))[: self.size]
        return Sample(self.size, self.hashes[least], self.ids[least], self.points[least])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sample)
            and self.size == other.size
            and np.array_equal(self.hashes, other.hashes)
            and np.array_equal(self.ids, other.ids)
            and np.array_equal(self.points, other.points)
        )


@dataclass(frozen=True, eq=False)
class Tally:
    """Dense integer totals: counts of fixed cells, or a sum of integer vectors beside its count.

    Args:
        totals: shape (m,), int64.
    """

    totals: Ints

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.totals + other.totals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and np.array_equal(self.totals, other.totals)


def _are_few(records: int, keys: Ints) -> bool:
    """Say whether keys have few records; no, where their number is no int64 and came out negative."""
    return len(keys) <= records <= _FEW * len(keys)


def shard_of(keys: Keys, shards: int) -> NDArray[np.uint16]:
    """Return the shard of each key, which follows from the key alone, shape (m,)."""
    found = np.empty(len(keys), dtype=np.uint16)
    for start in range(0, len(keys), _HASHED):
        found[start : start + _HASHED] = _shard_of(keys[start : start + _HASHED], shards)
    return found


def _shard_of(keys: Keys, shards: int) -> NDArray[np.uint16]:
    mixed = np.zeros(len(keys), dtype=np.uint64)
    if keys.dtype.kind == "S":
        letters = keys.view(np.uint8).reshape(len(keys), keys.dtype.itemsize)
        factor = 1
        for i in range(letters.shape[1]):  # the zeros after a shorter label change nothing
            factor = factor * FACTOR % 2**64
            mixed += letters[:, i] * np.uint64(factor)
        mixed ^= mixed >> np.uint64(32)
    else:
        mixed += keys.astype(np.uint64)
    mixed *= np.uint64(FACTOR)
    return ((mixed >> np.uint64(40)) % np.uint64(shards)).astype(np.uint16)
