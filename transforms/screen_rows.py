"""Split the rows of Parquet files into those inside a public ball and those outside of all balls.

The output consists of unchanged rows, so it is as private as the input.
"""

import dataclasses
import os
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from core.balls import Balls
from core.errors import ShoalError, add_mark
from transforms.list_files import filesystem
from transforms.plain_errors import plain_errors
from transforms.read_batches import read_batches, read_schema
from transforms.read_blocks import Descriptor, Reader, to_block
from transforms.whole_file import create_file

INSIDE, OUTSIDE = "inside", "outside"

_ROWS = 1 << 16
"""Most rows per batch."""


class OutputError(ShoalError, RuntimeError):
    """The screened rows cannot be written. The text contains nothing that depends on rows."""


@dataclass(frozen=True)
class Screen:
    """The balls, and how rows become points.

    A row with a null, NaN or infinity in a used column, or that the preparation of the release does not keep,
    is outside. Rows beyond the domain are clamped to it, as in the search for the balls.

    Args:
        reader: used columns and their grid.
        balls: a row is inside if one of them contains it.
    """

    reader: Reader
    balls: Balls

    def hold(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return which rows of `batch` are inside."""
        inside = np.zeros(batch.num_rows, dtype=np.bool_)
        ids = np.arange(batch.num_rows, dtype=np.uint64)
        if self.reader.preparation:
            batch, kept = self.reader.preparation.prepare(batch, self.reader.columns)
            if kept is not None:
                batch, ids = batch.filter(kept), ids[kept.to_numpy(zero_copy_only=False)]
        block = to_block(self.reader, batch, ids)
        inside[block.ids[self.balls.hold(block.points)]] = True
        return pa.array(inside)


@dataclasses.dataclass
class ScreenRows(beam.PTransform):
    """Write the rows of each row group to a file of those inside and a file of those outside.

    Names depend on the input only, and files are written atomically, so a repeated step writes the same
    files.

    Args:
        screen: the balls.
        output: absolute path of the folder of `inside` and `outside`, which all workers share.
    """

    screen: Screen
    output: str

    def expand(self, descriptors: beam.PCollection) -> beam.PCollection:
        """Take the descriptors of `ReadBlocks`; return an empty PCollection."""
        return descriptors | "Screen" >> beam.FlatMap(screen_row_group, self.screen, self.output)


def screen_row_group(descriptor: Descriptor, screen: Screen, output: str) -> tuple[()]:
    """Split one row group with all its columns into two files, which are written even if they are empty.

    The used columns are read as in any run. Then all are read as the types that Parquet has, which hold every
    value: some types of Arrow do not, and one row of an unused column would end the screening. Files say what
    the input says of the types of Arrow, so they are read as these.

    Both files are first made in memory. Compressed, they take about as much as the row group.

    Raises:
        InputError: the row group cannot be read.
        OutputError: a file cannot be written.
    """
    sinks = {INSIDE: pa.BufferOutputStream(), OUTSIDE: pa.BufferOutputStream()}
    with plain_errors("Screening"):
        schema = read_schema(descriptor.file)
        left = _held(descriptor, screen)
        batches = _read(descriptor, (), every=True)
        first = next(batches, pa.RecordBatch.from_pylist([], schema))
        with _writing(output):
            inside, outside = (
                pq.ParquetWriter(sink, first.schema, compression="zstd", store_schema=False)
                for sink in sinks.values()
            )
        for batch in chain([first], batches):
            held, left = left[: len(batch)], left[len(batch) :]
            with _writing(output):
                inside.write_batch(batch.filter(held))
                outside.write_batch(batch.filter(pc.invert(held)))
        with _writing(output):
            for side in (inside, outside):
                side.add_key_value_metadata(schema.metadata or {})
                side.close()
    for side, sink in sinks.items():
        path = posixpath.join(output, side, file_name(descriptor))
        with _writing(path):
            _write(path, sink.getvalue())
    return ()


def _held(descriptor: Descriptor, screen: Screen) -> pa.BooleanArray:
    """Return which rows of a row group are inside."""
    reader = screen.reader
    used = [name for name in reader.columns if not reader.preparation.makes(name)]
    sources = reader.preparation.sources(reader.columns)
    beside = reader.preparation.bytes_beside(reader.columns)
    held = [screen.hold(batch) for batch in _read(descriptor, used, others=sources, beside=beside)]
    return pa.concat_arrays([pa.array([], pa.bool_()), *held])


def _read(descriptor: Descriptor, used: Sequence[str], **more: Any) -> Iterator[pa.RecordBatch]:
    if descriptor.row_group is not None:
        yield from read_batches(descriptor.file, descriptor.row_group, used, _ROWS, **more)


def file_name(descriptor: Descriptor) -> str:
    """Return the name of the files of a row group, below `inside` and `outside`."""
    return f"{descriptor.file.name.removesuffix('.parquet')}-{descriptor.row_group or 0:05d}.parquet"


def _write(path: str, data: pa.Buffer) -> None:
    """Write a file atomically.

    A local file can be read by its owner only, because its rows may come from a file that others can't read.
    """
    system, where = filesystem(path)
    if not isinstance(system, fs.LocalFileSystem):
        with system.open_output_stream(where) as stream:
            stream.write(data)
        return
    _make_private(os.path.dirname(where))
    create_file(where, data, 0o600)  # an existing file has the same rows


def _make_private(folder: str) -> None:
    """Make a folder, and those around it, that only its owner may enter: names and sizes are private, too."""
    if not os.path.isdir(folder):
        _make_private(os.path.dirname(folder))
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:  # the text of Arrow's errors may quote rows
        why = getattr(error, "strerror", None) or "not as Parquet, or the storage does not respond"
        raise add_mark(OutputError(f"{path} cannot be written ({why}).")) from None
