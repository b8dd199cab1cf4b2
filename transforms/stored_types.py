"""The types that Parquet has, without those that Arrow adds in a schema of its own."""

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC, _LENGTH, _SCHEMA_KEY = b"PAR1", 4, b"ARROW:schema"
"""Ends of a Parquet file, bytes of the length of its footer, and the key of Arrow's schema in the footer."""


def as_stored(opened: pa.NativeFile) -> pq.FileMetaData:
    """Read the footer without the schema that Arrow wrote into it: columns then have their types in Parquet.

    These hold every value of a file. Arrow's own types do not: it makes a dictionary of a column of which its
    schema says so, but not of all encodings, such as deltas, nor of all texts; and it reads no list of fixed
    length that is missing. So the key of this schema is changed to one that Arrow does not know. Types of
    numbers and units of times are the same without it.
    """
    end = opened.size() - len(_MAGIC) - _LENGTH
    length = opened.read_at(_LENGTH, end)
    footer = opened.read_at(size := int.from_bytes(length, "little"), end - size)
    bare = footer.replace(_SCHEMA_KEY, _SCHEMA_KEY.lower())
    return pq.read_metadata(pa.BufferReader(b"".join((_MAGIC, bare, length, _MAGIC))))
