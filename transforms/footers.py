"""The footer of the Parquet file that is being read, so that it is not parsed again for each row group.

The footer of a file of n row groups has n parts, so to parse it for each of them takes time that grows with
the square of n. A process keeps one footer: that of the file that it read last, until its last row group was
read or another file comes.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.list_files import File
from transforms.stored_types import as_stored


@dataclass(frozen=True)
class _Footer:
    """The footer of a file.

    Args:
        of: path, version and size of the file.
        schema: its schema, with the types that Arrow adds.
        bare: whether `metadata` lacks these types; see `as_stored`.
        metadata: the footer.
    """

    of: tuple[str, str, int]
    schema: pa.Schema
    bare: bool
    metadata: pq.FileMetaData


_KEPT: list[_Footer] = []
"""At most one. Threads look at it once and replace all of it."""


def schema_in(file: File, opened: pa.NativeFile) -> pa.Schema:
    """Return the schema of a file, which is read again if the file has no version."""
    kept = next(iter(_KEPT), None)
    if kept is None or kept.of != _name(file, opened) or not file.version:
        del kept  # before the next footer is in memory
        drop_footer()
        metadata = pq.read_metadata(opened)
        kept = _keep(_Footer(_name(file, opened), schema_of(metadata).to_arrow_schema(), False, metadata))
    return kept.schema


def footer_of(file: File, opened: pa.NativeFile, schema: pa.Schema, bare: bool) -> pq.FileMetaData:
    """Return the footer of a file, whose schema was read before, with the types that Arrow adds or `bare`."""
    kept = next(iter(_KEPT), None)
    if kept is None or kept.of != _name(file, opened) or kept.bare != bare:
        del kept
        drop_footer()
        metadata = as_stored(opened) if bare else pq.read_metadata(opened)
        kept = _keep(_Footer(_name(file, opened), schema, bare, metadata))
    return kept.metadata


def drop_footer() -> None:
    """Keep no footer any more."""
    _KEPT.clear()


def _keep(footer: _Footer) -> _Footer:
    _KEPT[:] = [footer]
    return footer


def _name(file: File, opened: pa.NativeFile) -> tuple[str, str, int]:
    return file.path, file.version, opened.size()


def schema_of(metadata: pq.FileMetaData) -> pq.ParquetSchema:
    """Return the schema of a footer, which does not hold the footer, as `metadata.schema` does.

    Footers of many row groups are large. Those of files read before would stay in memory until Python
    collects cycles.
    """
    return pq.ParquetSchema(metadata)
