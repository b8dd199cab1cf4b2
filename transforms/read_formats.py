"""What each format of files but Parquet does: the schema of a file, its pieces, and the rows of a piece."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from transforms.file_format import Format
from transforms.list_files import File
from transforms.read_arrow import count_batches, read_arrow, read_arrow_schema, start_batches
from transforms.read_avro import read_avro, read_avro_schema
from transforms.read_csv import read_csv, read_csv_schema
from transforms.read_json_lines import read_json, read_json_schema


def _one_piece(_: pa.NativeFile) -> int:
    return 1


def _from_the_start(_: pa.NativeFile) -> list[int]:
    return [0]


@dataclass(frozen=True)
class Reading:
    """How files of a format are read. Each function gets an open file, and may raise any error of Arrow.

    Args:
        schema: returns the schema. A column without a type has that of `File.types`, or null.
        batches: yields the given columns of all rows of a piece. With no column it yields any one.
        pieces: returns the number of pieces. A file that is read as a stream is one piece.
        starts: returns for each piece the index in the file of its first row.
    """

    schema: Callable[[File, pa.NativeFile], pa.Schema]
    batches: Callable[[File, pa.NativeFile, int, Sequence[str]], Iterator[pa.RecordBatch]]
    pieces: Callable[[pa.NativeFile], int] = _one_piece
    starts: Callable[[pa.NativeFile], list[int]] = _from_the_start


READINGS: Mapping[Format, Reading] = {
    "CSV": Reading(read_csv_schema, read_csv),
    "JSON lines": Reading(read_json_schema, read_json),
    "Arrow IPC": Reading(read_arrow_schema, read_arrow, count_batches, start_batches),
    "Avro": Reading(read_avro_schema, read_avro),
}
