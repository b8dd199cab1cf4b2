"""List the input and check the schemas of its files, before any row is read."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from core.times import Times
from transforms.column_types import Opened, give_types, used_types
from transforms.count_records import MOST_FILES
from transforms.encrypted_columns import readable_schema
from transforms.file_format import not_parquet
from transforms.group_keys import GroupKeys, check_keys, is_time
from transforms.list_files import (
    ALLOWED,
    File,
    Incomplete,
    InputError,
    cause_of,
    filesystem,
    list_files,
    short,
    version_of,
)
from transforms.missing_column import not_once
from transforms.preparation import AS_THEY_ARE, Preparation
from transforms.read_formats import READINGS
from transforms.row_order import is_ordering
from transforms.text_as_times import convert_text, is_text

_NUMERIC = "used columns must be integers, floats, decimals or booleans"
_TIMES = (
    f"{_NUMERIC}; make a number of it in input.derive, such as days(day) or seconds(time), or, if the job "
    "has a domain, write its bounds as dates or timestamps"
)
_EXAMPLES = {
    "dates": "2013-01-31",
    "timestamps without a zone": "2013-01-31T06:00:00",
    "timestamps with a zone": "2013-01-31T06:00:00Z",
}
_UNITS = "give a column of integers, text, bytes, dates, times, decimals or booleans"
_ORDERS = "give a column of integers, timestamps or dates"
_COUNTS = "give a column of integers, which says how many records a row stands for"
_FAULTS = {
    b"PAR1": "is truncated or damaged, or has a column of a type that Arrow cannot read",
    b"PARE": "is encrypted",
}


@dataclass(frozen=True)
class Source:
    """The listed input. It contains no number of rows, so nothing made from it can depend on one.

    Args:
        files: sorted by name, at least one.
        columns: used columns, one per axis.
        unit: column of the privacy unit, or None where each row is a unit of its own.
        inexact: used columns that are not integers in each file, and are read as float64.
        order: column that orders the rows of a unit, or None where their order does not matter.
        preparation: how rows of the files become those that a task sees; by default they are as they are.
        groups: how rows become members of groups, or None without groups.
        count: column of how many records a row stands for, or None where each row is one.
        row_groups: how many descriptors the files give, to show how far a run is; it enters no pipeline.
        mixed: used columns of numbers that have other types in other files, and the type that fits all.
    """

    files: tuple[File, ...]
    columns: tuple[str, ...]
    unit: str | None = None
    inexact: tuple[str, ...] = ()
    order: str | None = None
    preparation: Preparation = AS_THEY_ARE
    groups: GroupKeys | None = None
    count: str | None = None
    row_groups: int = dataclasses.field(default=0, compare=False)
    mixed: tuple[tuple[str, pa.DataType], ...] = ()

    @property
    def every_file(self) -> tuple[File, ...]:
        """The files of rows, and the joined table."""
        join = self.preparation.join
        return self.files if join is None else (*self.files, join.file)


def open_files(path: str) -> Opened:
    """List the files at `path`, and read the schema of each.

    Raises:
        InputError: see `list_files`; or a file is not of the format of its name, truncated or damaged, or has
            a column that its folders give, too.
    """
    with ThreadPoolExecutor(16) as threads:
        files, schemas, row_groups = zip(*threads.map(_opened, list_files(path)), strict=True)
    return files, schemas, row_groups


def open_source(
    path: str,
    columns: Sequence[str],
    unit: str | None = None,
    order: str | None = None,
    opened: Opened | None = None,
    preparation: Preparation = AS_THEY_ARE,
    groups: GroupKeys | None = None,
    count: str | None = None,
    times: Times | None = None,
    types: Mapping[str, str] | None = None,
    exact: Sequence[str] = (),
) -> Source:
    """List the files at `path` and check the schema of each.

    Args:
        path: a file, a folder (all files of a known format below it, except names that start with `.` or `_`)
            or a glob (`*`, `?`, `[...]`, and `**` for any depth); see `transforms.file_format`.
        columns: used columns, at least one, all different.
        unit: optional column of the privacy unit.
        order: optional column that orders the rows of a unit.
        opened: what `open_files` gave for `path`, with types, so that several sources have the same files.
        preparation: how rows are prepared; it may make some of these columns.
        groups: optional key columns of groups.
        count: optional column of how many records a row stands for.
        times: what the used columns must be where some are of dates or timestamps; by default all are
            numbers.
        types: names of the types of columns that have none in their files; see `transforms.column_types`.
        exact: used columns that must be integers if their files have no types.

    Returns:
        The source, files sorted by name.

    Raises:
        InputError: see `open_files` and `transforms.column_types.give_types`; or a used column is
            missing, or neither numeric nor of the times that it must be;
            or the column of the unit has a type that cannot identify units, or another kind than in other
            files; or the column of the order has a type that cannot order rows, or another type than in other
            files; or an expression does not fit, or no folder fulfils the condition; or see
            `transforms.group_keys.check_keys`.
    """
    if not columns or len(set(columns)) < len(columns):
        raise InputError(f"input.columns is {list(columns)}: give at least one column, each once.")
    if opened is None:
        used = used_types(columns, unit, order, count, groups, times, exact)
        opened = give_types(open_files(path), types, preparation, [used])
    files, schemas, row_groups = opened
    if unit in dict(files[0].folders):
        raise InputError(
            f"input.unit: {short(str(unit))} is a column of folders, whose names are public; give a column "
            f"of the files."
        )
    if preparation:
        preparation.check_zones(files, schemas)
        schemas = tuple(map(preparation.schema, files, schemas))
        if not preparation.may_keep(files):
            raise InputError(
                f"input.where: no folder below input.path {short(path)} fulfils it, so there is no row to "
                "ask about; give a condition that some folder fulfils."
            )
    for file, schema in zip(files, schemas, strict=True):
        check_columns(file, schema, columns, unit, order, count, times)
        _check_kinds(file, schema, columns, times)
        _check_same(files[0], schemas[0], file, schema, unit, order)
    if count is not None and len(files) > MOST_FILES:
        raise InputError(
            f"input.count is {short(count)}, but input.path has {len(files):,} files: with a count there may "
            f"be at most {MOST_FILES:,}."
        )
    if groups is not None:
        check_keys(groups, files, schemas)
    kinds = {name: {schema.field(name).type for schema in schemas} for name in columns}
    inexact = tuple(
        name
        for name, found in kinds.items()
        if not all(pa.types.is_integer(kind) or is_time(kind) for kind in found)
    )
    return Source(
        tuple(files),
        tuple(columns),
        unit,
        inexact,
        order,
        preparation,
        groups,
        count,
        sum(row_groups),
        tuple((name, _fitting(found)) for name, found in kinds.items() if len(found) > 1),
    )


def _fitting(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """Return int64 for integers that it holds and booleans, else float64."""
    whole = all(
        pa.types.is_boolean(kind) or (pa.types.is_integer(kind) and not pa.types.is_uint64(kind))
        for kind in kinds
    )
    return pa.int64() if whole else pa.float64()


def _opened(file: File) -> tuple[File, pa.Schema, int]:
    """Return a file with its version, its schema, and the number of its descriptors.

    Raises:
        InputError: see `open_files`.
    """
    system, path = filesystem(file.path)
    try:
        file = replace(file, version=version_of(file))
        with system.open_input_file(path) as opened:
            begins = opened.read(4)
            opened.seek(0)
            if not begins and file.format != "JSON lines":  # which may have no line
                raise Incomplete(
                    f"input.path: {short(file.name)} is not {file.format}: it is empty; {ALLOWED}."
                )
            found = _schema_of(file, opened)
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError where object storage breaks the connection
        cause = cause_of(file.path, error)
        if cause is not None:
            raise InputError(f"input.path: {short(file.name)} cannot be opened: {cause}.") from None
        found, fault = None, "cannot be opened"
    else:
        fault = f"is not {file.format}, or is truncated or damaged"
        fault = _FAULTS.get(begins, not_parquet(file.path)) if file.format == "Parquet" else fault
    if found is None:
        kind = Incomplete if "damaged" in fault else InputError
        raise kind(f"input.path: {short(file.name)} {fault}; {ALLOWED}.")
    schema, pieces = found
    for name, _ in file.folders:
        if name in schema.names:
            raise InputError(
                f"input.path: {short(file.name)} has the column {short(name)}, which its folders give, too; "
                f"rename one."
            )
        schema = schema.append(pa.field(name, pa.null()))
    return file, schema, max(1, pieces)


def _schema_of(file: File, opened: pa.NativeFile) -> tuple[pa.Schema, int] | None:
    """Return the schema of a file and the number of its pieces; None if it is damaged or of another format.

    Raises:
        InputError: a CSV file has no header.
    """
    try:
        if file.format != "Parquet":
            reading = READINGS[file.format]
            return reading.schema(file, opened), reading.pieces(opened)
        parquet = pq.ParquetFile(opened)
        schema = readable_schema(opened, parquet)
        _ = [(field.name, str(field.type)) for field in schema]
        return (schema, parquet.num_row_groups) if _is_sound(parquet.metadata) else None
    except InputError:
        raise
    except Exception:  # damaged bytes may cause any type of error
        return None


def _is_sound(footer: pq.FileMetaData) -> bool:
    """Return whether the numbers of rows of the row groups add up to that of the file.

    Their columns are not checked, because Arrow aborts the process when the metadata of a damaged column are
    read; reading rows of it raises an error instead.
    """
    rows = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
    return min(rows, default=0) >= 0 and sum(rows) == footer.num_rows


def check_columns(
    file: File,
    schema: pa.Schema,
    columns: Sequence[str],
    unit: str | None,
    order: str | None = None,
    count: str | None = None,
    times: Times | None = None,
) -> None:
    """Check that a file has each used column once, with a supported type; `times` is for the sentence alone.

    Raises:
        InputError: a column is missing, occurs twice or has an unsupported type.
    """
    others = [
        (field, column) for field, column in (("unit", unit), ("order", order), ("count", count)) if column
    ]
    for field, column in [*(("columns", column) for column in columns), *others]:
        if len(schema.get_all_field_indices(column)) != 1:
            raise not_once(f"input.{field}", column, file, schema.names)
        kind = schema.field(column).type
        where = f"input.{field}: {short(column)} is {_type_name(kind)} in {short(file.name)}"
        if field == "columns" and not _is_numeric(kind) and not is_time(kind):
            if times is None or times.lower[columns.index(column)] is None:
                advice = ", or text that number(...) reads in input.derive" if is_text(kind) else ""
                raise InputError(f"{where}; {_NUMERIC}{advice}.")
            raise InputError(_other(where, file, column, kind, times))
        if field == "unit" and unit_kind(kind) is None:
            raise InputError(f"{where}; {_UNITS}.")
        if field == "order" and not is_ordering(kind):
            raise InputError(f"{where}; {_ORDERS}.")
        if field == "count" and not pa.types.is_integer(kind):
            raise InputError(f"{where}; {_COUNTS}.")


def _check_kinds(file: File, schema: pa.Schema, columns: Sequence[str], times: Times | None) -> None:
    """Check that columns are times where their axes are, and numbers elsewhere.

    Raises:
        InputError: a column is of another kind.
    """
    for axis, column in enumerate(columns):
        kind = schema.field(column).type
        where = f"input.columns: {short(column)} is {_type_name(kind)} in {short(file.name)}"
        found, number = _time_kind(kind), times is None or times.lower[axis] is None
        if number and found is not None:
            raise InputError(f"{where}; {_TIMES}.")
        if times is not None and not number and found != times.kind:
            raise InputError(_other(where, file, column, kind, times))


def _other(where: str, file: File, column: str, kind: pa.DataType, times: Times) -> str:
    """Return the sentence that a column is not of the times of its axis."""
    found, advice = _time_kind(kind), convert_text(file, column, kind, times.kind)
    example = "" if found is None else f", or write its bounds like {_EXAMPLES[found]}"
    if found is not None and times.kind == "dates":
        example += ", or make a date of it in input.derive, such as date(time)"
    return f"{where}, but domain has {times.kind}; {advice or f'give a column of these{example}'}."


def _time_kind(kind: pa.DataType) -> str | None:
    """Return which times a column of this type has, as `Times.kind` says it; None where it has numbers."""
    if not is_time(kind):
        return None
    if pa.types.is_date(kind):
        return "dates"
    return "timestamps without a zone" if kind.tz is None else "timestamps with a zone"


def _type_name(kind: pa.DataType) -> str:
    return short(str(kind))


def _is_numeric(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def unit_kind(kind: pa.DataType) -> str | None:
    """Return the kind of units in a column of this type, or None where the type cannot identify units.

    Units of the same kind are equal if their values are. Floats cannot identify units, because NaN does not
    equal itself and one number may have several representations. Nested values cannot either.
    """
    if isinstance(kind, pa.BaseExtensionType):
        stored = unit_kind(kind.storage_type)
        return None if stored == "text" else stored  # such as JSON, where one value may have several texts
    if pa.types.is_dictionary(kind):
        return unit_kind(kind.value_type)
    if pa.types.is_interval(kind):
        return None
    families = {
        "signed integers": (pa.types.is_signed_integer,),
        "unsigned integers": (pa.types.is_unsigned_integer,),
        "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        "bytes": (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_binary_view,
        ),
        str(kind): (pa.types.is_boolean, pa.types.is_temporal, pa.types.is_decimal),
    }
    return next((name for name, tests in families.items() if any(test(kind) for test in tests)), None)


def _check_same(
    first: File,
    expected: pa.Schema,
    file: File,
    schema: pa.Schema,
    unit: str | None,
    order: str | None,
) -> None:
    def refuse(field: str, column: str, allowed: str) -> None:
        one, other = (_type_name(each.field(column).type) for each in (expected, schema))
        raise InputError(
            f"input.{field}: {short(column)} is {one} in {short(first.name)} but {other} in "
            f"{short(file.name)}; {allowed}."
        )

    if order is not None and expected.field(order).type != schema.field(order).type:
        refuse("order", order, "the column must have one type in all files")
    if unit is not None and len({unit_kind(each.field(unit).type) for each in (expected, schema)}) > 1:
        refuse(
            "unit",
            unit,
            "a unit must be of one kind in all files, such as signed integers, unsigned integers or text",
        )
