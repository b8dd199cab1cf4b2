"""Look up the rows of a small public table by key."""

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.cut_batches import most_bytes_of_one
from transforms.expression_values import DATE, READ, TEXT, WHOLE, column_values
from transforms.joined_batches import decoded_column
from transforms.list_files import File, InputError, cause_of, filesystem, short, version_of
from transforms.missing_column import not_once
from transforms.parse_expression import ExpressionError
from transforms.stored_types import as_stored

MOST_BYTES = 64 << 20
"""Most bytes that the key and the used columns of a public table may take in the memory of a worker."""

_ALLOWED = "give one Parquet file"
_KEYS = (*WHOLE, TEXT, DATE)


@dataclass(frozen=True)
class Join:
    """A public table whose columns rows get by key, or null where their key is not in it.

    What a row gets depends on the public table and on the row's own key.

    Args:
        file: the Parquet file of the table.
        on: name of the key, in the rows and in the table.
        columns: the columns that rows get.
    """

    file: File
    on: str
    columns: tuple[str, ...]

    def schema(self) -> dict[str, pa.DataType]:
        """Return the type of each column that rows get."""
        return {name: column.type for name, column in _table(self)[1].items()}

    def longest(self, names: Collection[str]) -> int:
        """Return the bytes of the longest texts of some columns together; of other columns than its own 0."""
        texts = [column for name, column in _table(self)[1].items() if name in names and column.type == TEXT]
        return sum(map(most_bytes_of_one, texts))

    def look_up(self, keys: pa.Array) -> "LookedUp":
        """Find keys of `column_values`, shape (n,).

        Raises:
            ExpressionError: the keys are not of the kind of the table's keys.
            InputError: the table cannot be read, or was written again.
        """
        known, columns = _table(self)
        wanted = keys.dictionary if pa.types.is_dictionary(keys.type) else keys
        if wanted.type != known.type:
            raise ExpressionError(f"{self.on} is {wanted.type} in the rows, but {known.type} in the table")
        places = pc.index_in(wanted, value_set=known)
        if wanted is not keys:
            places = places.take(keys.indices)
        return LookedUp(columns, places)


@dataclass(frozen=True)
class LookedUp:
    """The places of rows in a public table.

    Args:
        columns: of the table.
        places: shape (n,), null where a row has none.
    """

    columns: Mapping[str, pa.Array]
    places: pa.Array

    def column(self, name: str) -> pa.Array:
        """Return a column of the rows, shape (n,), alone: rows may have long texts in others.

        A text that many rows have is there once, in a dictionary without nulls.
        """
        values = self.columns[name]
        if values.type != TEXT:
            return values.take(self.places)
        held = pc.fill_null(values.is_valid().take(self.places), False)
        told = pc.if_else(held, self.places, pa.scalar(None, self.places.type)).dictionary_encode()
        return pa.DictionaryArray.from_arrays(told.indices, values.take(told.dictionary))


def open_join(path: str, on: str, columns: tuple[str, ...] | None) -> Join:
    """Check a public table.

    Args:
        path: one Parquet file.
        on: name of the key.
        columns: the columns that rows get; by default all but the key.

    Raises:
        InputError: the file cannot be read, is too large, lacks a column, or has a key twice.
    """
    file = File(path, posixpath.basename(path))
    try:
        file = File(path, file.name, 0, version_of(file))
        names = _schema(file).names
    except InputError as error:  # of the scheme or the credentials
        raise InputError(str(error).replace("input.path", "input.join.path", 1)) from None
    except FileNotFoundError:
        raise InputError(f"input.join.path: {short(file.name)} does not exist; {_ALLOWED}.") from None
    except Exception as error:
        raise _unreadable(file, error) from None
    used = tuple(name for name in names if name != on) if columns is None else columns
    for field, name in (("on", on), *(("columns", name) for name in used)):
        if names.count(name) != 1:
            raise not_once(f"input.join.{field}", name, file, names)
    if not used:
        raise InputError(
            f"input.join.path: {short(file.name)} has only the column {short(on)}; give one more."
        )
    join = Join(file, on, used)
    _table(join)
    return join


def _schema(file: File) -> pa.Schema:
    system, where = filesystem(file.path)
    with system.open_input_file(where) as opened:
        return pq.ParquetFile(opened).schema_arrow


@lru_cache(maxsize=2)
def _table(join: Join) -> tuple[pa.Array, Mapping[str, pa.Array]]:
    """Return the keys and columns of a table. A process reads it once."""
    file = join.file
    batches, size = [], 0
    try:
        version = version_of(file)
        system, where = filesystem(file.path)
        with system.open_input_file(where) as opened:
            names = list(dict.fromkeys((join.on, *join.columns)))
            known = pq.read_schema(opened)
            _check_types(join, {name: known.field(name).type for name in names})
            parquet = pq.ParquetFile(opened, metadata=as_stored(opened), page_checksum_verification=True)
            for batch in parquet.iter_batches(4096, columns=names, use_threads=False):
                size += batch.nbytes
                if size > MOST_BYTES:
                    break
                batches.append(batch)
            table = pa.Table.from_batches(batches, None if batches else parquet.schema_arrow)
        changed = {version, version_of(file)} != {file.version}
    except ExpressionError as error:
        raise InputError(f"input.join.columns: {error}.") from None
    except Exception as error:  # damaged bytes may cause any type of error
        raise _unreadable(file, error) from None
    if changed:
        raise InputError(
            f"input.join.path: {short(file.name)} was written again during the run; leave it as it is until "
            "a run has ended."
        )
    if size > MOST_BYTES:
        raise InputError(
            f"input.join.path: {short(file.name)} takes more than {MOST_BYTES >> 20} MB in memory, of which "
            "each worker holds a copy: choose fewer input.join.columns, or a smaller table."
        )
    return _checked(join, table)


def _check_types(join: Join, kinds: Mapping[str, pa.DataType]) -> None:
    """Check types as Arrow has them: the table is read as the types of Parquet, which hold every value."""
    for name, kind in kinds.items():
        if isinstance(kind, pa.BaseExtensionType) or pa.types.is_duration(kind):
            raise ExpressionError(f"{name} is {short(str(kind))}, but an expression reads {READ}")


def _checked(join: Join, table: pa.Table) -> tuple[pa.Array, Mapping[str, pa.Array]]:
    def values(name: str) -> pa.Array:
        return decoded_column(column_values(name, table.column(name).combine_chunks()))

    try:
        keys = values(join.on)
    except ExpressionError as error:
        raise InputError(f"input.join.on: {error}.") from None
    if keys.type not in _KEYS:
        raise InputError(
            f"input.join.on: {short(join.on)} is {keys.type} in {short(join.file.name)}; give a column of "
            "integers, text or dates."
        )
    held = pc.is_valid(keys)
    known = keys.filter(held)
    if len(pc.unique(known)) < len(known):
        raise InputError(
            f"input.join.path: {short(join.file.name)} has a value of {short(join.on)} in two rows; give a "
            "table with one row per key."
        )
    try:
        return known, {name: values(name).filter(held) for name in join.columns}
    except ExpressionError as error:
        raise InputError(f"input.join.columns: {error}.") from None


def _unreadable(file: File, error: Exception) -> InputError:
    cause = cause_of(file.path, error)
    why = f"cannot be read as Parquet; {_ALLOWED}" if cause is None else f"cannot be opened: {cause}"
    return InputError(f"input.join.path: {short(file.name)} {why}.")
