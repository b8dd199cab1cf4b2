"""Give rows from memory, or from several files, a path that a job can read."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unicodedata import normalize

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.errors import JobError, quoted
from transforms.cut_batches import LONGEST, may_be_text, text_sizes, without_longer
from transforms.file_format import alike, ending_of
from transforms.joined_batches import joined_batches

Data = Any
"""A table of pandas, polars or pyarrow, a path as in `input.path`, or a list of local files."""

_ALLOWED = "give a table of pandas, polars or pyarrow, a path, or a list of files"
_ROW_GROUP = 1 << 17  # rows; each is read by one thread
_FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow raises for types that it cannot store. The text may quote a value. So no other error is raised
while one is handled, because its traceback would show both."""

_TEXT = pa.large_string()
_SECONDS = ("timestamp[s", "time32[s]")
_WIDE = {
    **dict.fromkeys((pa.string(), pa.string_view()), pa.large_string()),
    **dict.fromkeys((pa.binary(), pa.binary_view()), pa.large_binary()),
}
"""Types of the texts of dictionaries, and those that have offsets of 64 bits and are no views."""

_PAGE, _AT_ONCE = 1 << 26, 1 << 10
"""Bytes of texts, and rows, that Arrow puts into a page without a look at its size, which has 31 bits."""


def place_data(data: Data, place: str, job: Mapping[str, Any]) -> str:
    """Return the path of the rows of `data`; where they have none, they are put at `place`.

    Of a column of a table that the job does not name, only the name is stored: its values are nulls. So none
    of them can end a run, whatever its type.

    Errors call a file by its name, so that of a table is the name of `place` itself.

    Args:
        data: the rows.
        place: a path without a suffix, in a private folder.
        job: what is asked about them.

    Raises:
        JobError: the data is of no kind that can be read, or a column of it that the job names; or the disk
            of `place` does not hold it.
    """
    if isinstance(data, str | os.PathLike):
        return os.fspath(data)
    if isinstance(data, list | tuple):
        return _place_files(data, place)
    table = to_table(data, job)
    _check_storable([field.name for field in table.schema if not _is_storable(field.type)])
    full = False
    table, longest = _without_longer(table)
    at_once = max(1, min(_AT_ONCE, _PAGE // max(1, longest)))
    try:
        written = _is_written(_without_seconds(table), place, at_once)
    except OSError:
        full = True
    if full:
        raise JobError(
            f"data cannot be stored in {quoted(os.path.dirname(place))}, whose disk is full or failed: give "
            "the environment variable TMPDIR a folder on another disk."
        )
    if not written:
        raise JobError("data has a column that Parquet cannot store: convert it to a plain type.")
    return place


def to_table(data: Data, job: Mapping[str, Any]) -> pa.Table:
    """Return a table in memory as one of Arrow; see `place_data`. An index of pandas with a name is a column.

    Of a column that the job does not name, the values are nulls.

    Raises:
        JobError: it is no table, or see `_of_pandas`.
    """
    module, name = type(data).__module__, type(data).__qualname__
    if isinstance(data, pa.Table):
        return _of_arrow(data, job)
    if module.partition(".")[0] == "pandas" and name == "DataFrame":
        return _of_pandas(data, job)
    try:
        # A reader can be read once, so that a second run would find no rows.
        if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.RecordBatchReader):
            return _of_arrow(pa.table(data), job)
    except _FAILURES:  # the stream is of an array, and not of a table
        pass
    raise JobError(f"data is a {module}.{name}: {_ALLOWED}.")


def _of_arrow(table: pa.Table, job: Mapping[str, Any]) -> pa.Table:
    arrays = [
        _plain_dictionary(table.column(number)) if _is_named(name, job) else pa.nulls(len(table))
        for number, name in enumerate(table.column_names)
    ]
    return pa.Table.from_arrays(arrays, names=table.column_names)


def _of_pandas(data: Any, job: Mapping[str, Any]) -> pa.Table:
    """Return a frame whose types follow from its dtypes alone, which are public.

    Raises:
        JobError: the job names a column of a dtype that Arrow does not have, or an axis of objects.
    """
    columns = [(str(name), data.iloc[:, number]) for number, name in enumerate(data.columns)]
    columns += [
        (str(name), data.index.get_level_values(number))
        for number, name in enumerate(data.index.names)
        if name is not None
    ]
    objects = [name for name, values in columns if _has_objects(values.dtype)]
    _check_axes(objects, job)
    arrays = []
    for name, values in columns:
        if not _is_named(name, job):
            arrays.append(pa.nulls(len(data)))
            continue
        array = _texts_of(values) if name in objects else _plain(values)
        if array is None:
            _check_storable([name])
        arrays.append(array)
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])


def _has_objects(kind: Any) -> bool:
    """Return whether values of a dtype of pandas are objects of Python, or such text."""
    categories = getattr(kind, "categories", None)
    if categories is not None and kind.name == "category":
        return _has_objects(categories.dtype)
    return kind.name == "object" or getattr(kind, "storage", "") == "python"


def _texts_of(values: Any) -> pa.Array:
    """Return objects of Python as texts, each by itself: one row must not change the type of another."""
    return pa.array([_text(value) for value in values.astype(object)], pa.large_binary()).view(_TEXT)


def _text(value: Any) -> bytes | None:
    """Return the text of an object; None where it has none, is missing, or is not Unicode."""
    try:
        return None if value is None or value != value else str(value).encode()
    except Exception:  # of a row, which must not end a run
        return None


def _plain(values: Any) -> pa.Array | None:
    """Return a column of pandas, or None where Arrow does not have its dtype."""
    try:
        found = pa.array(values, from_pandas=True)
    except _FAILURES:
        return None
    whole = found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
    return _plain_dictionary(whole)


def _plain_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose dictionaries have no views, as categories of polars do, and no nulls.

    Arrow writes views to Parquet, but no dictionaries of them, and no dictionaries with a null. Whether one
    has a null depends on rows.
    """
    kind = column.type
    if not pa.types.is_dictionary(kind):
        return column
    if kind.value_type in _WIDE:
        kind = pa.dictionary(kind.index_type, _WIDE[kind.value_type], kind.ordered)
    return pa.chunked_array([_without_null(chunk) for chunk in column.cast(kind).chunks], kind)


def _without_null(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a column whose dictionary has no null: such rows have none of its values."""
    there = column.dictionary.is_valid()
    if not column.dictionary.null_count:
        return column
    places = pc.if_else(there, pc.subtract(pc.cumulative_sum(there.cast(pa.int64())), 1), None)
    indices = places.take(column.indices).cast(column.indices.type)
    return pa.DictionaryArray.from_arrays(
        indices, column.dictionary.filter(there), ordered=column.type.ordered
    )


def _of_few(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of texts with one dictionary in each row group, which has no value twice.

    Arrow makes plain texts of the rows of others, which may take any memory, and end the process if their
    offsets have 32 bits.
    """
    kind, parts = column.type, []
    for start in range(0, len(column), _ROW_GROUP):
        chunks = column.slice(start, _ROW_GROUP).chunks
        batches = [pa.RecordBatch.from_arrays([chunk], names=[""]) for chunk in chunks]
        whole = joined_batches(batches).column(0)
        used = whole.indices.dictionary_encode()
        values = whole.dictionary.take(used.dictionary).dictionary_encode()
        indices = values.indices.take(used.indices)
        parts.append(pa.DictionaryArray.from_arrays(indices, values.dictionary, ordered=kind.ordered))
    return pa.chunked_array(parts, pa.dictionary(pa.int32(), kind.value_type, kind.ordered))


def _without_longer(table: pa.Table) -> tuple[pa.Table, int]:
    """Return a table with nulls in place of texts that no reader gives, and the bytes of its longest text."""
    longest = 0
    for number, field in enumerate(table.schema):
        if not may_be_text(field.type):
            continue
        chunks = table.column(number).chunks
        own = max((int(text_sizes(chunk).max(initial=0)) for chunk in chunks), default=0)
        if own > LONGEST:
            column = pa.chunked_array(map(without_longer, chunks), field.type)
            table = table.set_column(number, field.name, _plain_dictionary(column))
        if pa.types.is_dictionary(field.type) and own > _PAGE // _ROW_GROUP:
            table = table.set_column(number, field.name, _of_few(table.column(number)))
        longest = max(longest, min(own, LONGEST))
    return table, longest


def _is_written(table: pa.Table, where: str | pa.NativeFile, at_once: int = _AT_ONCE) -> bool:
    """Write a table as Parquet; return whether Arrow can do that.

    Raises:
        OSError: the disk is full or failed.
    """
    try:
        pq.write_table(table, where, row_group_size=_ROW_GROUP, compression="zstd", write_batch_size=at_once)
    except _FAILURES:
        return False
    return True


def _without_seconds(table: pa.Table) -> pa.Table:
    """Return a table without times in seconds, which Parquet stores as milliseconds.

    One that milliseconds cannot hold is null, and does not end the run.
    """
    for number, field in enumerate(table.schema):
        kind = field.type
        if not (pa.types.is_timestamp(kind) or pa.types.is_time(kind)) or kind.unit != "s":
            continue
        wide = pa.types.is_timestamp(kind)
        seconds = table.column(number).cast(pa.int64() if wide else pa.int32())
        most = (2**63 - 1) // 1000 if wide else 86_399
        held = pc.and_(pc.less_equal(seconds, most), pc.greater_equal(seconds, -most if wide else 0))
        parts = pc.multiply(pc.if_else(held, seconds, pa.scalar(None, seconds.type)), 1000)
        finer = pa.timestamp("ms", kind.tz) if wide else pa.time32("ms")
        table = table.set_column(number, field.name, parts.cast(seconds.type).cast(finer))
    return table


def _is_storable(kind: pa.DataType) -> bool:
    """Return whether Parquet can store every value of a type.

    Of times in seconds see `_without_seconds`, and of dictionaries `_plain_dictionary`: neither looks inside
    other types.
    """
    text = str(kind)
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        if any(part in text for part in (*_SECONDS, "dictionary<")):
            return False
    elif pa.types.is_dictionary(kind) and any(part in text for part in _SECONDS):
        return False
    try:
        return _is_written(pa.table({"column": pa.nulls(1, kind)}), pa.MockOutputStream())
    except (*_FAILURES, OSError):
        return False


def _check_axes(objects: Sequence[str], job: Mapping[str, Any]) -> None:
    """Check that no axis is a column of objects of Python. That follows from dtypes, not from values.

    Raises:
        JobError: one is.
    """
    questions = job.get("questions")
    asked = [job.get("input"), *(questions.values() if isinstance(questions, Mapping) else ())]
    for each in asked:
        axes = each.get("columns") if isinstance(each, Mapping) else None
        found = [name for name in objects if name in (axes if isinstance(axes, list | tuple) else ())]
        if found:
            raise JobError(
                f"data has a column {quoted(found[0])} of Python objects, which are read as text: convert it "
                "to a dtype of numbers or of times."
            )


def _check_storable(unfit: Sequence[str]) -> None:
    """Check that there are no columns that a job names and that cannot be stored.

    Raises:
        JobError: there is one.
    """
    if unfit:
        raise JobError(
            f"data has a column {quoted(unfit[0])} that Parquet cannot store: convert it to a plain type."
        )


def _is_named(name: str, job: Mapping[str, Any]) -> bool:
    """Return whether a text of the job names a column, also as Python normalizes names of expressions."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(word.search(text) or word.search(normalize("NFKC", text)) for text in _texts(job))


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a job, also in lists and mappings, and their keys."""
    if isinstance(value, str):
        yield value
    items: Any = value if isinstance(value, list | tuple) else ()
    if isinstance(value, Mapping):
        items = [*value.keys(), *value.values()]
    for item in items:
        yield from _texts(item)


def _place_files(files: Sequence[Any], place: str) -> str:
    """Link or copy files to a new folder at `place`, which is returned.

    There they are named as errors call them, such as data[0].csv: by their numbers, of as many digits as the
    last one, so that they are in order, and with the endings that say their formats.

    Raises:
        JobError: an item is not the path of a file, or two are of the same file, or may have the same rows.
    """
    if not files:
        raise JobError(f"data is an empty list: {_ALLOWED}.")
    seen = dict[tuple[int, int], int]()
    for number, file in enumerate(files):
        item = f"data[{number}] is {quoted(file)}"
        if not isinstance(file, str | os.PathLike) or "://" in os.fspath(file):
            raise JobError(f"{item}: give the path of a local file.")
        path = os.path.realpath(os.path.expanduser(file))
        if not os.path.isfile(path):
            raise JobError(f"{item}, which is not a file: give the path of a local file.")
        status = os.stat(path)
        first = seen.setdefault((status.st_dev, status.st_ino), number)
        if first != number:
            raise JobError(f"{item}, the same file as data[{first}], whose rows would count twice.")
    both = alike(map(os.fspath, files))
    if both is not None:
        one, other = (quoted(os.path.basename(each)) for each in both)
        raise JobError(f"data has {one} and {other}, which may be the same rows twice: leave out one.")
    os.mkdir(place)
    digits = len(str(len(files) - 1))
    for number, file in enumerate(files):
        path = os.path.realpath(os.path.expanduser(file))
        ending = ending_of(os.fspath(file)) or ".parquet"
        own = os.path.join(place, f"data[{number:0{digits}}]{ending}")
        try:
            os.link(path, own)
        except OSError:  # it is on another disk, or of another user
            shutil.copyfile(path, own)
    return place
