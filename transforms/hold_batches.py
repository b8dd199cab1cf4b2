"""Let record batches of a PCollection stand for the row groups of files.

A batch becomes an Arrow IPC file of one piece in memory (`transforms.list_files.Held`) and its descriptor.
All that follows reads it as it reads files: the same columns, the same checks of what is stored, the same
rows left out for a null, NaN or infinity.

Identities. Samples of rows are chosen by a row's identity, which must be unique and never of its content.
In files it is the number of the file and the index of the row there. Here batches are dealt to `SHARDS`
shards at random, and a shard counts the rows of its batches: row r of shard s has the identity (s, r), so
no two rows have the same, and by another name in each execution that has names (`core.sampling.renamed`).
How batches are dealt and ordered may differ where the step is repeated, so a Reshuffle follows: every
pass then reads what was kept, and a row has one identity in all rounds.

Neighbors and sensitivity are those of files: a record more or less is a row more or less of one batch. It may
move the identities of other rows. An identity is only hashed with a secret salt, and distinct identities have
independent hashes, so the samples of the others have the same joint distribution.
"""

import dataclasses
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.decorators import no_annotations

from transforms.column_types import Opened
from transforms.list_files import Held, InputError, short
from transforms.plain_errors import plain_errors
from transforms.read_blocks import Descriptor
from transforms.spread import KEYED, Keyed, Spread

SHARDS = 256
"""Number of shards that count rows; at most `transforms.count_records.MOST_FILES`."""

PLACE, NAME = "batches.arrow", "the batches"
"""Path of a held batch, whose ending says its format, and what errors call it."""


def open_schema(schema: pa.Schema) -> Opened:
    """Return what stands for opened files of `schema`; see `transforms.open_source.open_files`."""
    return [Held(PLACE, NAME)], [schema], [1]


@dataclasses.dataclass
class HoldBatches(beam.PTransform):
    """Make descriptors of record batches: one for each, and one of no rows, spread over the workers.

    So the number of elements is one more than the caller's own pipeline has, whatever the rows are.

    Args:
        schema: of all batches.
        names: a side input of secret bytes of this execution, which must be there before a batch is held.
    """

    schema: pa.Schema
    names: Any

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        """Take batches, perhaps none; return `Descriptor`s, at least one."""
        none = batches.pipeline | "None" >> beam.Create([b""])
        held = batches | "Hold" >> beam.Map(_content, self.schema, self.names)
        return (
            (held, none)
            | "All" >> beam.Flatten()
            | "Deal" >> beam.Map(_dealt).with_output_types(KEYED)
            | "Shard" >> beam.GroupByKey()
            | "Count" >> beam.FlatMap(_counted, self.schema, self.names).with_output_types(KEYED)
            | "Spread" >> Spread()
            | "Descriptor" >> beam.Map(_value).with_output_types(Descriptor)
        )


@no_annotations
def _content(batch: Any, schema: pa.Schema, _: Any) -> bytes:
    """Return a batch as a file of Arrow IPC.

    Raises:
        InputError: it is no batch, or one of another schema. Metadata of schemas may differ.
    """
    with plain_errors("Reading"):
        if not isinstance(batch, pa.RecordBatch):
            raise InputError(
                f"batches: an element is a {type(batch).__name__}; each must be a pyarrow.RecordBatch, such "
                "as of table.to_batches()."
            )
        if not batch.schema.equals(schema):
            differs = _differs(batch.schema, schema)
            raise InputError(f"batches: an element has another schema than the one that is given{differs}.")
        return _written(batch)


def _differs(found: pa.Schema, given: pa.Schema) -> str:
    """Return how the schema of an element first differs, in words that have nothing of the element's own.

    Its names and types may be made of rows. Those of the given schema are public.
    """
    for number, field in enumerate(given):
        if number == len(found):
            return f": column {number + 1}, {short(field.name)}, is missing there"
        other = found.field(number)
        if not other.equals(field):
            unlike = "name" if other.name != field.name else "type"
            unlike = "nullability" if unlike == "type" and other.type.equals(field.type) else unlike
            kind = f"{short(str(field.type))}, {'may be null' if field.nullable else 'not null'}"
            return f": column {number + 1} has another {unlike} there than {short(field.name)} ({kind})"
    return f": it has more columns than the {len(given)} of the schema"


def _written(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


@no_annotations
def _dealt(content: bytes) -> Keyed:
    return uuid.uuid4().int % SHARDS, content


@no_annotations
def _counted(shard: tuple[int, Iterable[bytes]], schema: pa.Schema, names: bytes) -> Iterator[Keyed]:
    """Yield the descriptors of a shard, each with a number of its own."""
    number, contents = shard
    with plain_errors("Reading"):
        first = 0
        for count, content in enumerate(contents):
            content = content or _written(_empty(schema))
            held = Held(PLACE, NAME, number, content=content, names=names)
            yield count * SHARDS + number, Descriptor(held, 0, first)
            first += pa.ipc.open_file(content).get_batch(0).num_rows


@no_annotations
def _value(numbered: Keyed) -> Descriptor:
    descriptor: Descriptor = numbered[1]
    return descriptor
