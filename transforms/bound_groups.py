"""Bound in how many groups a unit has rows, before they are split into subsamples.

The rows of a unit must meet first, so they go through the runner once more than rows of no unit. All rows of
a unit in a group that it keeps go on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from core.sampling import siphash
from transforms.joined_batches import decoded, joined_batches
from transforms.read_blocks import Descriptor
from transforms.split_units import Shard, Splitting, read_split, seen, split_batch, stream
from transforms.unit_groups import GroupNames, UnitGroups
from transforms.unit_keys import unit_ids

CHOSEN = "choose groups"
"""The step that counts shards; see `count_done`."""

SHARDS = 256
"""Shards of units. The number must not depend on the number of units."""

_OWNERS = 0x6F776E657273
"""Tweak of the hash that chooses the shard of a unit. No sampling of records uses it."""


@dataclass(frozen=True, order=True)
class OwnedRows:
    """Rows of the units of a shard that were read together. Sorting them puts rows in one order.

    Args:
        file: number of the file.
        first_row: orders what is read of one file.
        rows: Arrow IPC stream of the rows, with the keys of their units and their groups; empty without rows.
    """

    file: int
    first_row: int
    rows: bytes = field(repr=False)


def split_owners(splitting: Splitting, descriptor: Descriptor) -> Iterator[tuple[int, OwnedRows]]:
    """Read the row group of `descriptor`; yield its rows that have a unit and a group by the unit's shard.

    Every shard occurs once for each batch that is read, with rows or without.

    Raises:
        InputError: the row group cannot be read.
    """
    for batch, units, groups, row in read_split(splitting, descriptor):
        kept = np.flatnonzero(groups >= 0)
        shard = (siphash(unit_ids(units), splitting.salt, _OWNERS) % np.uint64(SHARDS)).astype(np.int64)[kept]
        order = pa.array(kept[np.argsort(shard, kind="stable")])
        own = seen(splitting, batch).columns
        owned = decoded(
            pa.RecordBatch.from_arrays(
                [*own, units, pa.array(groups)], names=[*splitting.columns, "", ""]
            ).take(order)
        )
        start = 0
        for number, size in enumerate(np.bincount(shard, minlength=SHARDS).tolist()):
            rows = stream(owned.slice(start, size)) if size else b""
            yield number, OwnedRows(descriptor.file.number, row, rows)
            start += size


def split_kept(
    splitting: Splitting, gathered: tuple[int, Sequence[OwnedRows]]
) -> Iterator[tuple[int, Shard]]:
    """Yield the rows of a shard of units by the part of their subsample, in the groups that units keep.

    A unit keeps at most `splitting.groups` groups; see `transforms.unit_groups.UnitGroups`. So what one unit
    adds is in at most so many subsamples, each of another group, for every salt.
    """
    number, pieces = gathered
    batches = [pa.ipc.open_stream(each.rows).read_next_batch() for each in sorted(pieces) if each.rows]
    if not batches:
        return  # `GatherParts` hands on every part, also without pieces
    rows = joined_batches(batches)
    units, groups = rows.column(rows.num_columns - 2), rows.column(rows.num_columns - 1).to_numpy()
    told = units.dictionary_encode()
    names = GroupNames.of(pa.array(np.arange(splitting.total // splitting.subsamples)), splitting.salt)
    pairs = UnitGroups.of(
        told.indices.to_numpy().astype(np.int64),
        unit_ids(told.dictionary),
        groups,
        names,
        splitting.groups,
        splitting.salt,
    )
    own = pa.RecordBatch.from_arrays(rows.columns[:-2], names=list(splitting.columns))
    kept = np.where(pairs.keep(), groups, -1)
    yield from split_batch(splitting, own, units, kept, 0, number)
