"""Read a piece of a file in batches of bounded size. Every error is one sentence without row values."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileType, LocalFileSystem

from transforms.cut_batches import cut_batch, most_bytes_of_one
from transforms.footers import drop_footer, footer_of, schema_in, schema_of
from transforms.list_files import File, Held, InputError, filesystem, short, version_of
from transforms.open_source import check_columns
from transforms.parse_texts import parse_text
from transforms.read_formats import READINGS
from transforms.stored_types import as_stored

_AT_ONCE = 1 << 26
"""Bytes of uncompressed rows per batch, and of compressed columns that are fetched at once."""

_FETCHED = 1 << 22
"""Bytes of a column that are fetched at a time if the whole column is too large."""

_READ = 1 << 16
"""The same of a local file, where a request costs next to nothing."""

_INDEX = 4
"""Bytes of an index of a dictionary."""

_INT96_UNIT = "us"
"""Unit of INT96 timestamps where all columns are read: by default Arrow reads nanoseconds, and years before
1677 or after 2262 become other years."""

_OF_DICTIONARIES = {"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}
"""Encodings of values and of levels in a column of which Arrow can keep the dictionary."""


def read_batches(
    file: File,
    row_group: int,
    used: Sequence[str],
    most: int,
    unit: str | None = None,
    every: bool = False,
    order: str | None = None,
    others: Sequence[str] = (),
    beside: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Read a piece of a file in batches: a row group of Parquet, or see `transforms.file_format`.

    A batch of Parquet takes about 64 MB, estimated from the average size of rows in the footer. In addition,
    Arrow keeps one whole page in memory. A column of units that is stored with a dictionary keeps it: each
    text is in memory once, however many rows have it. Of any format, a batch has no texts of many bytes; see
    `transforms.cut_batches`.

    Args:
        file: the file.
        row_group: number of the piece.
        used: used columns.
        most: most rows per batch.
        unit: optional column of the privacy unit.
        every: whether to read all columns of Parquet, with the types of `as_stored`; texts may be
            dictionaries, and INT96 timestamps are cut to microseconds.
        order: optional column that orders the rows of a unit.
        others: columns of any type that are read, too.
        beside: bytes of texts that a row gets when it is prepared.

    Raises:
        InputError: the piece cannot be read, or lacks a column.
    """
    folders = {} if every else dict(file.folders)
    inside = [name for name in used if name not in folders]
    stored = [name for name in others if name not in folders]
    ordered = None if order in folders else order
    if file.format == "Parquet":
        batches = _read(file, row_group, inside, most, unit, every, ordered, stored)
    else:
        names = list(dict.fromkeys((*inside, *filter(None, (unit, ordered)), *stored)))
        batches = _read_other(file, row_group, names, most)
    if folders:
        names = list(dict.fromkeys((*used, *filter(None, (unit, order)), *others)))
        batches = _with_folders(file, names, batches)
    cut = chain.from_iterable(cut_batch(batch, beside, every) for batch in batches)
    while True:
        with _reading(file):
            batch = next(cut, None)
        if batch is None:
            return
        yield batch


def _check_version(file: File) -> None:
    """Check that a file is the one that was opened: all passes must read the same rows.

    Raises:
        InputError: it is another one.
    """
    if file.version and version_of(file) != file.version:
        system, path = filesystem(file.path)
        gone = system.get_file_info(path).type is FileType.NotFound
        raise InputError(
            f"input.path: {short(file.name)} was {'removed' if gone else 'written again'} during the run, "
            "which must read the same rows in every pass; leave the input as it is until a run has ended."
        )


def first_rows(file: File) -> list[int]:
    """Return for each piece of a file the index in the file of its first row.

    Raises:
        InputError: the file cannot be read, or has no piece and is not the one that was opened.
    """
    if file.format == "Parquet":
        starts = list(accumulate(count_rows(file), initial=0))[:-1]
    else:
        with _open(file) as opened:
            starts = READINGS[file.format].starts(opened)
    if not starts:  # nobody will read a piece, which would find it out
        with _reading(file):
            _check_version(file)
    return starts


def count_rows(file: File) -> list[int]:
    """Return the number of rows of each row group of a Parquet file.

    Raises:
        InputError: the file's footer cannot be read.
    """
    with _open(file) as opened:
        footer = pq.read_metadata(opened)
        return [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]


def read_schema(file: File) -> pa.Schema:
    """Return the schema of a Parquet file, as batches of every column have it, with all that its footer says.

    So a file that is written with it, and without a schema of Arrow's own, is read as the types of this one.

    Raises:
        InputError: the file's footer cannot be read.
    """
    with _open(file) as opened:
        says = pq.read_metadata(opened).metadata
        footer = as_stored(opened)
        found = pq.ParquetFile(opened, metadata=footer, coerce_int96_timestamp_unit=_INT96_UNIT)
        return found.schema_arrow.with_metadata(says)


@contextmanager
def _open(file: File) -> Iterator[pa.NativeFile]:
    """Open a file, unless it is another one since it was listed: to open a pipe might take for ever."""
    with _reading(file):
        _check_version(file)
        with _file_of(file) as opened:
            yield opened


def _file_of(file: File) -> pa.NativeFile:
    if isinstance(file, Held):
        return pa.BufferReader(file.content)
    system, path = filesystem(file.path)
    return system.open_input_file(path)


@contextmanager
def _reading(file: File) -> Iterator[None]:
    """Translate every error of Arrow or the storage, whose text may quote rows, to an InputError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # damaged bytes may cause any type of error
        if isinstance(error, NotImplementedError) or "Not yet implemented" in str(error):
            raise InputError(
                f"input.path: {short(file.name)} has an encoding or a compression that Arrow cannot read, or "
                "is damaged."
            ) from None
        raise _damaged(file) from None


def _damaged(file: File) -> InputError:
    return InputError(f"input.path: {short(file.name)} can no longer be read, or is damaged.")


def _read(
    file: File,
    row_group: int,
    used: Sequence[str],
    most: int,
    unit: str | None,
    every: bool,
    order: str | None,
    others: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    _check_version(file)
    system, path = filesystem(file.path)
    with system.open_input_file(path) as opened:
        schema = schema_in(file, opened)
        check_columns(file, schema, used, unit, order)
        kinds = {name: schema.field(name).type for name in (*filter(None, (unit,)), *others)}
        bare = every or any(map(pa.types.is_dictionary, kinds.values()))
        footer = footer_of(file, opened, schema, bare)
        group, names = footer.row_group(row_group), {*used, *others, *filter(None, (unit, order))}
        row = group.total_byte_size / max(1, group.num_rows) if every else 0.0
        kept = _dictionaries(opened, footer, row_group) if every else []
        fetched = 0
        for name in filter(lambda name: name == unit or _may_be_long(kinds[name]), kinds):
            look = _look_at_texts(opened, footer, row_group, name)
            kept += [name] * look[0]
            row, fetched = row + look[1], fetched + look[2]
        whole, local = fetched <= _AT_ONCE, isinstance(system, LocalFileSystem)
        parquet = pq.ParquetFile(
            opened,
            metadata=footer,
            read_dictionary=kept,
            coerce_int96_timestamp_unit=_INT96_UNIT if every else None,
            pre_buffer=whole and not local,
            buffer_size=_READ if local else 0 if whole else _FETCHED,
            page_checksum_verification=True,  # if the writer stored checksums
        )
        rows = 0
        for batch in parquet.iter_batches(
            max(1, min(most, int(_AT_ONCE / max(1.0, row)))),
            row_groups=[row_group],
            columns=None if every else sorted(names),
            use_threads=False,
        ):
            if not all(_is_sound(column) for column in batch.columns):
                raise _damaged(file)
            rows += batch.num_rows
            yield batch
        if rows != group.num_rows:
            raise _damaged(file)
    if row_group == footer.num_row_groups - 1 or not file.version:
        drop_footer()
    _check_version(file)


def _read_other(file: File, piece: int, names: Sequence[str], most: int) -> Iterator[pa.RecordBatch]:
    """Read columns of a piece of a file that is not Parquet."""
    with _open(file) as opened:
        for batch in READINGS[file.format].batches(file, opened, piece, names):
            for first in range(0, batch.num_rows, most):
                part = batch.slice(first, most)
                yield batch if part.num_rows == batch.num_rows else pa.concat_batches([part])  # which copies
    _check_version(file)


def _with_folders(
    file: File, names: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the columns `names` of batches. Folders of the file give some of them, the same for all rows."""
    types = dict(file.types)
    given = {name: parse_text(value, types[name]) for name, value in file.folders if name in names}
    for batch in batches:
        arrays = [
            pa.repeat(given[name], batch.num_rows) if name in given else batch.column(name) for name in names
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=list(names))


def _may_be_long(kind: pa.DataType) -> bool:
    return not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind))


def _look_at_texts(
    opened: pa.NativeFile, footer: pq.FileMetaData, row_group: int, column: str
) -> tuple[bool, float, int]:
    """Return whether to keep the dictionary of a column, its bytes per row, and its bytes to fetch.

    The dictionary is kept if all rows may be indices of it. When a dictionary becomes too large, writers go
    on with plain values. These take more bytes than an index, and Arrow would add them to the dictionary.
    Arrow cannot make a dictionary of a column that also has other encodings, such as deltas; see
    `as_stored`.
    """
    schema = schema_of(footer)
    leaves = map(schema.column, range(footer.num_columns))
    # the path of a field v in a column u is u.v, which may also be the name of a column
    leaf = next(i for i, each in enumerate(leaves) if each.path == each.name == column)
    if schema.column(leaf).physical_type != "BYTE_ARRAY":
        return False, 1.0, 0
    if _first_row(opened, footer, row_group, column, kept=False) is None:
        return False, 1.0, 0
    # Only after a row was read: on a damaged chunk, reading raises an error, but this call aborts the
    # process.
    group = footer.row_group(row_group)
    chunk = group.column(leaf)
    row = chunk.total_uncompressed_size / max(1, group.num_rows)
    if not chunk.has_dictionary_page or not _OF_DICTIONARIES.issuperset(chunk.encodings):
        return False, row, chunk.total_compressed_size
    first = _first_row(opened, footer, row_group, column, kept=True)
    if not isinstance(first, pa.DictionaryArray):  # such as decimals
        return False, row, chunk.total_compressed_size
    if chunk.total_uncompressed_size - _written(first.dictionary) <= _INDEX * group.num_rows:
        return True, _INDEX, chunk.total_compressed_size
    return False, max(row, most_bytes_of_one(first.dictionary)), chunk.total_compressed_size


def _dictionaries(opened: pa.NativeFile, footer: pq.FileMetaData, row_group: int) -> list[str]:
    """Return the paths of all texts of a row group, also inside of lists, whose dictionaries are kept.

    A text is then in memory once. Otherwise one row with a list that has a long text many times may take any
    memory, although it takes a few bytes of the file. See `_look_at_texts` for which ones are kept. In lists,
    levels may take as many bytes as indices.
    """
    found, schema = [], schema_of(footer)
    for leaf in range(footer.num_columns):
        path = schema.column(leaf).path
        if schema.column(leaf).physical_type != "BYTE_ARRAY":
            continue
        parquet = pq.ParquetFile(opened, metadata=footer, read_dictionary=[path], buffer_size=_FETCHED)
        batches = parquet.iter_batches(1, row_groups=[row_group], columns=[path], use_threads=False)
        try:
            first = next(batches, None)
        except (pa.ArrowException, OSError):  # of an encoding that makes none; damage shows where all is read
            continue
        held = [] if first is None else list(_dictionaries_of(first.column(0)))
        if not held:
            continue
        chunk = footer.row_group(row_group).column(leaf)  # it aborts the process on damaged chunks
        rest = chunk.total_uncompressed_size - _written(held[0].dictionary)
        of_row = _INDEX if path == schema.column(leaf).name else 2 * _INDEX
        known = chunk.has_dictionary_page and _OF_DICTIONARIES.issuperset(chunk.encodings)
        if known and rest <= of_row * chunk.num_values:
            found.append(path)
    return found


def _written(dictionary: pa.Array) -> int:
    """Return the bytes that the texts of a dictionary take in a file, each with its length."""
    return (pc.sum(pc.binary_length(dictionary)).as_py() or 0) + _INDEX * len(dictionary)


def _dictionaries_of(column: pa.Array) -> Iterator[pa.DictionaryArray]:
    """Yield all dictionary arrays of a column, also inside of lists and records."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        yield column
    elif pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _dictionaries_of(column.field(number))
    elif pa.types.is_map(kind):
        yield from _dictionaries_of(column.keys)
        yield from _dictionaries_of(column.items)
    elif pa.types.is_nested(kind):
        yield from _dictionaries_of(column.values)


def _first_row(
    opened: pa.NativeFile, footer: pq.FileMetaData, row_group: int, column: str, kept: bool
) -> pa.Array | None:
    """Return the first value of a column, with its dictionary if that is `kept`; None without rows."""
    dictionary = [column] if kept else []
    parquet = pq.ParquetFile(opened, metadata=footer, read_dictionary=dictionary, buffer_size=_FETCHED)
    batches = parquet.iter_batches(1, row_groups=[row_group], columns=[column], use_threads=False)
    first = next(batches, None)
    return None if first is None else first.column(column)


def _is_sound(column: pa.Array) -> bool:
    """Return whether all indices of dictionaries are valid, which Arrow does not check."""
    for each in _dictionaries_of(column):
        bounds = pc.min_max(each.indices).as_py()
        if bounds["min"] is not None and (bounds["min"] < 0 or bounds["max"] >= len(each.dictionary)):
            return False
    return True
