"""Give rows from memory, or from several files, a path that a job can read."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import JobError, quoted
from transforms.file_format import ENDINGS

Data = Any
"""A table of pandas, polars or pyarrow, a path as in `input.path`, or a list of local files."""

_ALLOWED = "give a table of pandas, polars or pyarrow, a path, or a list of files"
_ROW_GROUP = 1 << 17  # rows; each is read by one thread
_FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow raises for values that it cannot store. The text may quote a value, so it is not repeated."""


def place_data(data: Data, place: str, job: Mapping[str, Any]) -> str:
    """Return the path of the rows of `data`; where they have none, they are put at `place`.

    Columns of a table that Parquet cannot store are left out, unless the job names them.

    Args:
        data: the rows.
        place: a path without a suffix, in a private folder.
        job: what is asked about them.

    Raises:
        JobError: the data is of no kind that can be read, or a column of it that the job names.
    """
    if isinstance(data, str | os.PathLike):
        return os.fspath(data)
    if isinstance(data, list | tuple):
        return _place_files(data, place)
    table, path = to_table(data, job), f"{place}.parquet"
    try:
        _write(table, path)
    except _FAILURES:
        columns = dict(zip(table.column_names, table.columns, strict=True))
        unfit = [name for name, column in columns.items() if not _is_storable(column)]
        _check_unused(unfit, job)
        _write(table.drop_columns(unfit), path)
    return path


def to_table(data: Data, job: Mapping[str, Any]) -> pa.Table:
    """Return a table in memory as one of Arrow; see `place_data`. An index of pandas with a name is a column.

    Raises:
        JobError: it is no table, or a column that the job names has values of several types.
    """
    module, name = type(data).__module__, type(data).__qualname__
    if isinstance(data, pa.Table):
        return data
    if module.partition(".")[0] == "pandas" and name == "DataFrame":
        return _of_pandas(data, job)
    try:
        # A reader can be read once, so that a second run would find no rows.
        if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.RecordBatchReader):
            return _without_views(pa.table(data))
    except _FAILURES:  # the stream is of an array, and not of a table
        pass
    raise JobError(f"data is a {module}.{name}: {_ALLOWED}.")


def _of_pandas(data: Any, job: Mapping[str, Any]) -> pa.Table:
    try:
        table = pa.Table.from_pandas(data)
    except _FAILURES:
        unfit = [name for name in data.columns if not _is_plain(data[name])]
        _check_unused(unfit, job)
        table = pa.Table.from_pandas(data.drop(columns=unfit))
    return table.replace_schema_metadata(None)


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table whose dictionaries have no views of text, as categories of polars do.

    Arrow writes such views to Parquet, but no dictionaries of them.
    """
    for number, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
            plain = pa.dictionary(kind.index_type, pa.string(), kind.ordered)
            table = table.set_column(number, field.name, table.column(number).cast(plain))
    return table


def _write(table: pa.Table, where: str | pa.NativeFile) -> None:
    pq.write_table(table, where, row_group_size=_ROW_GROUP, compression="zstd")


def _is_plain(values: Any) -> bool:
    """Return whether a column of pandas has a type of Arrow."""
    try:
        pa.array(values, from_pandas=True)
    except _FAILURES:
        return False
    return True


def _is_storable(column: pa.ChunkedArray) -> bool:
    """Return whether Parquet can store a column."""
    try:
        _write(pa.table({"column": column}), pa.MockOutputStream())  # a path would be removed after a failure
    except _FAILURES:
        return False
    return True


def _check_unused(unfit: Sequence[Any], job: Mapping[str, Any]) -> None:
    """Check that a job names none of the columns that cannot be stored; an expression may name one, too.

    Raises:
        JobError: it names one.
    """
    texts = list(_texts(job))
    for name in unfit:
        word = re.compile(rf"(?<!\w){re.escape(str(name))}(?!\w)")
        if any(map(word.search, texts)):
            column = quoted(str(name))
            raise JobError(
                f"data has a column {column} that Parquet cannot store: convert it to a plain type."
            )


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a job, also in lists and mappings."""
    if isinstance(value, str):
        yield value
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for item in items:
        yield from _texts(item)


def _place_files(files: Sequence[Any], place: str) -> str:
    """Link or copy files to a new folder at `place`, which is returned.

    There they are named by their numbers, with the endings that say their formats.

    Raises:
        JobError: an item is not the path of a file, or two are of the same file.
    """
    if not files:
        raise JobError(f"data is an empty list: {_ALLOWED}.")
    os.mkdir(place)
    seen: dict[tuple[int, int], int] = {}
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
        ending = next((known for known in ENDINGS if os.fspath(file).endswith(known)), ".parquet")
        own = os.path.join(place, f"{number:06}{ending}")
        try:
            os.link(path, own)
        except OSError:  # it is on another disk, or of another user
            shutil.copyfile(path, own)
    return place
