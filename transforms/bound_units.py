"""Bound what a privacy unit contributes: all of its rows become one record, or none. Columnar throughout."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.typehints.decorators import no_annotations
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.rounds import Block
from core.sampling import siphash
from transforms.gather_parts import GatherParts
from transforms.open_source import Source
from transforms.plain_errors import plain_errors
from transforms.read_blocks import Descriptor, Reader, check_axes, list_row_groups, to_block
from transforms.split_units import read_keyed, stream
from transforms.unit_keys import U64, unit_ids

Keep = Literal["one", "mean"]

Bounded = tuple[bytes, bytes]
"""The records of one shard: their points axis by axis, each coordinate as `_stored` says, and identities."""

_SHARDS = 64
"""Parts in which units are gathered. Fixed, as nothing may depend on how many there are."""

_SPLIT, _ROW = 0x756E697473, 0x6B657074
"""Tweaks of the hashes that choose shards and rows, which no sampling of records uses."""

_SPLIT_VALUES, _BLOCK_VALUES = 1 << 22, 1 << 18
"""Values split at a time, many as each part is a stream of its own; and coordinates per block of records."""

_LIMB = 16
"""Bits of a coordinate that are summed at a time."""

_STEP = "Bounding units"


@dataclass(frozen=True)
class Bounding:
    """How the rows of a unit become its record.

    The record of a unit is a function of that unit's own rows alone: of the multiset of their grid points,
    not of where they stand, of other units, or of how files are cut. Rows without a unit, and rows with a
    null, NaN or infinity in a used column, are no records of anyone's, and a unit without any other row has
    none. So the records of two databases that differ in all rows of one unit differ in at most one record:
    one more or less under `add_or_remove_one`, whatever number of rows the unit had. Under `replace_one` both
    databases have as many records, as they have without a unit: one unit's record is another, and how many
    units have a record is public. Every sensitivity of a task is then one for a unit, where it was one for a
    row. All of this holds for every salt, also a known one.

    `one` keeps one of the unit's rows at random, by the smallest keyed hash: of the unit, the grid point, and
    how many equal rows came before, so that each row is as likely as any other. `mean` keeps the mean of the
    unit's grid points, after clamping, so that it is a point of the universe: exact in integers, then rounded
    to the grid, halves up, and moved back onto the domain's ball if the rounding left it.

    Units are told apart by their keys: integers and the like are their own, and text has 128 bits of a keyed
    hash, so that a row costs the same however long its unit's text is. What two units of one key would mean,
    and how improbable they are, is said at `transforms.unit_keys.unit_keys`.

    A record's identity is a number of its unit: the integer itself, or 64 bits of its key. So a unit is in a
    Poisson sample or not, with all of its rows, independently of other units. A given unit has the identity
    of some other one with probability n / 2^64 over the salt. Both are then sampled together and are two
    records all the same; for this unit alone, the sample hides as much as without amplification.

    Args:
        columns: used columns, one per axis.
        grid: the universe that rows are clamped and rounded to.
        unit: column that says whose row it is.
        keep: what becomes of the rows of a unit.
        salt: 16 secret bytes.
        shards: parts in which units are gathered, at most 2^16.
    """

    columns: tuple[str, ...]
    grid: Grid
    unit: str
    keep: Keep
    salt: bytes = field(repr=False)
    shards: int = _SHARDS

    @classmethod
    def of(cls, source: Source, grid: Grid, keep: Keep, salt: bytes) -> "Bounding":
        """Return the bounding of `source`.

        Raises:
            InputError: see `transforms.read_blocks.check_axes`.
        """
        check_axes(source, grid)
        return cls(source.columns, grid, str(source.unit), keep, salt)


@dataclass(frozen=True)
class BoundedReader:
    """Read `Bounded` in blocks that fit the cache: at least one, even without records.

    Args:
        grid: the universe.
    """

    grid: Grid

    def blocks(self, element: Bounded) -> Iterator[Block]:
        """Return the records in their order."""
        ids = np.frombuffer(element[1], dtype="<u8")
        points = np.frombuffer(element[0], dtype=_stored(self.grid)).reshape(self.grid.dimension, len(ids)).T
        size = max(1, _BLOCK_VALUES // self.grid.dimension)
        for start in range(0, max(1, len(ids)), size):
            part = points[start : start + size].astype(np.int64, order="F")
            yield Block(part, ids[start : start + size].astype(np.uint64))


def _stored(grid: Grid) -> str:
    """Return the kind of integer that coordinates are kept as: 8 bytes only on grids that need them."""
    return "<u4" if max(grid.extents) < 1 << 32 else "<u8"


@dataclasses.dataclass
class BoundUnits(beam.PTransform):
    """Make the records that every round goes through: at most one for each unit.

    Only used columns go through the runner, quantized, as one Arrow stream for each shard and part of a row
    group. The records are kept, so that a unit has the same one whoever reads them.

    Args:
        bounding: how the rows of a unit become its record.
    """

    bounding: Bounding

    def expand(self, descriptors: beam.PCollection) -> beam.PCollection:
        """Take the descriptors of `ReadBlocks`; return one `Bounded` per shard, also for an empty one."""
        return (
            descriptors
            | "Gather" >> GatherParts(partial(split_points, self.bounding), self.bounding.shards, _STEP)
            | "Bound" >> beam.Map(_bound, self.bounding)
            | "Keep" >> beam.Reshuffle()
        )


def bound_in_memory(source: Source, bounding: Bounding) -> Iterator[Block]:
    """Bound the whole source in this process: the twin of `BoundUnits`."""
    gathered: dict[int, list[bytes]] = {number: [] for number in range(bounding.shards)}
    for file in source.files:
        for descriptor in list_row_groups(file):
            for number, part in split_points(bounding, descriptor):
                gathered[number].append(part)
    for parts in gathered.values():
        yield from BoundedReader(bounding.grid).blocks(bound(bounding, parts))


@no_annotations
def _bound(gathered: tuple[int, list[bytes]], bounding: Bounding) -> Bounded:
    with plain_errors(_STEP):
        return bound(bounding, gathered[1])


def split_points(bounding: Bounding, descriptor: Descriptor) -> Iterator[tuple[int, bytes]]:
    """Read what `descriptor` names; return its rows by shard, each part as an Arrow stream.

    Each shard is there once for every part that is read, with rows or without, since runners count elements.
    The shard of a row is a keyed hash of its unit, so all rows of a unit are in one.

    Raises:
        InputError: the row group cannot be read.
    """
    most = max(1, _SPLIT_VALUES // (len(bounding.columns) + 1))
    for batch, keys in read_keyed(descriptor, bounding.columns, bounding.unit, bounding.salt, most):
        yield from _split_batch(bounding, batch, keys)


def _split_batch(bounding: Bounding, batch: pa.RecordBatch, keys: pa.Array) -> Iterator[tuple[int, bytes]]:
    rows = np.flatnonzero(pc.is_valid(keys).to_numpy(zero_copy_only=False))
    reader = Reader(bounding.columns, bounding.grid)
    block = to_block(reader, batch.take(pa.array(rows)), rows.astype(np.uint64))
    keys = keys.take(pa.array(block.ids))
    shard = siphash(unit_ids(keys), bounding.salt, _SPLIT) % np.uint64(bounding.shards)
    order = np.argsort(shard.astype(np.uint16), kind="stable")  # of 16 bits, numpy sorts without comparing
    points = block.points.astype(_stored(bounding.grid))[order]
    columns = [keys.take(pa.array(order)), *(pa.array(points[:, axis]) for axis in range(points.shape[1]))]
    part = pa.record_batch(columns, names=["unit", *map(str, range(points.shape[1]))])
    ends = np.cumsum(np.bincount(shard.astype(np.int64), minlength=bounding.shards)).tolist()
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        yield number, stream(part.slice(start, end - start))


def bound(bounding: Bounding, parts: Sequence[bytes]) -> Bounded:
    """Return the records of one shard, in order of their identities.

    Rows are gathered by the unit's key, of which `unit_keys` says how surely it tells units apart.

    Args:
        bounding: how the rows of a unit become its record.
        parts: Arrow streams of `split_points`, in any order.
    """
    tables = [pa.ipc.open_stream(part).read_all() for part in parts]
    if not any(len(table) for table in tables):
        return b"", b""
    rows = pa.concat_tables(tables)
    encoded = rows.column("unit").combine_chunks().dictionary_encode()
    of_unit = encoded.indices.to_numpy().astype(np.int64)
    ids = unit_ids(encoded.dictionary)
    points = np.stack([rows.column(str(axis)).to_numpy() for axis in range(bounding.grid.dimension)], axis=1)
    if bounding.keep == "one":
        kept = points[keep_one(points, of_unit, ids, bounding.salt)]
    else:
        kept = keep_mean(points, of_unit, len(ids), bounding.grid)
    order = np.argsort(ids, kind="stable")
    return kept[order].astype(_stored(bounding.grid)).tobytes(order="F"), ids[order].astype("<u8").tobytes()


def keep_one(
    points: NDArray[np.unsignedinteger[Any]], of_unit: NDArray[np.int64], ids: U64, salt: bytes
) -> NDArray[np.intp]:
    """Return the number of the row that each unit keeps, shape (units,).

    Args:
        points: shape (n, d), grid steps.
        of_unit: shape (n,), whose row it is: from 0 to units - 1, each at least once.
        ids: shape (units,), what the hash knows a unit by.
        salt: 16 secret bytes.
    """
    state = siphash(ids, salt, _ROW)[of_unit]
    if points.dtype.itemsize == 4:  # two coordinates to a word
        even = np.pad(points, ((0, 0), (0, points.shape[1] % 2)))
        points = np.ascontiguousarray(even).view(np.uint64)
    for word in points.T:
        state = siphash(state ^ word, salt, _ROW)
    order = np.lexsort((of_unit, state))  # by unit too: the rows of another one of the same hash count apart
    race, unit = state[order], of_unit[order]
    first = np.r_[True, (race[1:] != race[:-1]) | (unit[1:] != unit[:-1])]
    copy = np.arange(len(race)) - np.maximum.accumulate(np.where(first, np.arange(len(race)), 0))
    race[~first] = siphash(race[~first] + copy[~first].astype(np.uint64), salt, _ROW)
    least = np.full(len(ids), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(least, unit, race)
    won = np.flatnonzero(race == least[unit])[::-1]  # the first of two with one hash is written last
    kept = np.empty(len(ids), dtype=np.intp)
    kept[unit[won]] = order[won]
    return kept


def keep_mean(
    points: NDArray[np.unsignedinteger[Any]], of_unit: NDArray[np.int64], units: int, grid: Grid
) -> Points:
    """Return the mean of each unit's points, on the grid and in its ball, shape (units, d).

    16 bits are summed at a time and divided as on paper, which is exact for fewer than 2^45 rows: for more
    than any machine holds.

    Args:
        points: shape (n, d), grid steps.
        of_unit: shape (n,), whose row it is: from 0 to units - 1, each at least once.
        units: how many there are.
        grid: the universe.
    """
    rows = np.bincount(of_unit, minlength=units)
    means = np.zeros((units, points.shape[1]), dtype=np.int64)
    for axis in range(points.shape[1]):
        rest = np.zeros(units, dtype=np.int64)
        for low in reversed(range(0, grid.extents[axis].bit_length(), _LIMB)):
            limbs = (points[:, axis] >> low & (1 << _LIMB) - 1).astype(np.int64)
            rest <<= _LIMB
            np.add.at(rest, of_unit, limbs)
            digit, rest = np.divmod(rest, rows)
            means[:, axis] = (means[:, axis] << _LIMB) + digit
        means[:, axis] += 2 * rest >= rows
    return means if grid.ball is None else grid.quantize(grid.restore(means))
