"""Find the columns of a Parquet file that are encrypted, where its footer is not."""

import mmap

import pyarrow as pa
import pyarrow.parquet as pq

_SIGNATURE = 28
"""Bytes that such a file has after its footer. Its length includes them."""


class Encrypted(pa.ExtensionType):
    """The type of a column that is encrypted: nothing can be asked about it, and sentences say why."""

    def __init__(self) -> None:
        super().__init__(pa.null(), "encrypted")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> "Encrypted":
        return cls()

    def __str__(self) -> str:
        return "encrypted"


def readable_schema(opened: pa.NativeFile, parquet: pq.ParquetFile) -> pa.Schema:
    """Return the schema of an open file, with another type for columns that are encrypted. No row is read."""
    schema, footer = parquet.schema_arrow, parquet.metadata
    length = int.from_bytes(opened.read_at(4, opened.size() - 8), "little")
    if length - footer.serialized_size != _SIGNATURE or not footer.num_row_groups:
        return schema
    zeros = mmap.mmap(-1, opened.size(), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
    without_rows = pq.ParquetFile(pa.py_buffer(zeros), metadata=footer)
    for place, field in enumerate(schema):
        if _is_encrypted(without_rows, field.name):
            schema = schema.set(place, pa.field(field.name, Encrypted()))
    return schema


def _is_encrypted(zeros: pq.ParquetFile, column: str) -> bool:
    """Return whether Arrow finds a column encrypted, in a file that has zeros in place of rows.

    The metadata of columns say so, but Arrow aborts the process where it cannot decrypt them.
    """
    try:
        next(zeros.iter_batches(1, row_groups=[0], columns=[column], use_threads=False), None)
    except OSError as error:
        return "crypt" in str(error)  # decryption, or noted as encrypted
    return False
