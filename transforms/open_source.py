"""List the input and check it at the edge: from names and Parquet footers alone, before any row is read."""

import os
import posixpath
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from urllib.parse import urlsplit

import google.auth
import google.auth.exceptions
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

_GCS = "gs://"
_RETRIED = timedelta(seconds=120)
_ALLOWED = "give a Parquet file, a folder of *.parquet files or a glob"
_NUMERIC = "used columns must be integers, floats, decimals or booleans"
_UNITS = "give a column of integers, text, bytes, dates, times, decimals or booleans"


class InputError(ValueError):
    """The input is not what the job says: one sentence that names the field or file and what is allowed."""


@dataclass(frozen=True)
class File:
    """One Parquet file.

    Args:
        path: absolute, readable by every worker.
        name: path below the folder or below the fixed part of the glob (for a single file its base
            name), so that a record's identity does not depend on where the folder lies.
    """

    path: str
    name: str


@dataclass(frozen=True)
class Source:
    """The listed input. It knows no number of rows: nothing made from it can depend on one.

    Args:
        files: sorted by name, at least one.
        columns: used columns, one per axis.
        unit: column that says whose row it is, or None where every row is one person's.
        inexact: used columns that are not of integers, and are read as float64.
    """

    files: tuple[File, ...]
    columns: tuple[str, ...]
    unit: str | None = None
    inexact: tuple[str, ...] = ()


def open_source(path: str, columns: Sequence[str], unit: str | None = None) -> Source:
    """List the files at `path` and check the footer of each.

    Args:
        path: a Parquet file, a folder (all `*.parquet` below it, but nothing whose name starts with
            `.` or `_`) or a glob (`*`, `?`, `[...]`, and `**` for any depth).
        columns: used columns, at least one, all different.
        unit: optional column of the privacy unit.

    Returns:
        The source, files sorted by name.

    Raises:
        InputError: nothing there, not Parquet, truncated, or a used column is missing, not numeric,
            or of another type than in the other files; or the unit's column tells nobody apart, or is
            of another kind than in the other files.
    """
    if not columns or len(set(columns)) < len(columns):
        raise InputError(f"input.columns is {list(columns)}: give at least one column, each once.")
    files = _list(path)
    with ThreadPoolExecutor(16) as threads:
        schemas = list(threads.map(_schema, files))
    for file, schema in zip(files, schemas, strict=True):
        _check_columns(file, schema, columns, unit)
        _check_same(files[0], schemas[0], file, schema, columns, unit)
    inexact = tuple(name for name in columns if not pa.types.is_integer(schemas[0].field(name).type))
    return Source(tuple(files), tuple(columns), unit, inexact)


def filesystem(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system that holds `path`, and the absolute path in it: only here are schemes known.

    Raises:
        InputError: a scheme that is not served.
    """
    if path.startswith(_GCS):
        return _object_storage(), path.removeprefix(_GCS).rstrip("/")
    if "://" in path:
        raise InputError(
            f"input.path {path} has a scheme that is not served: {_ALLOWED}, {_GCS}... or local."
        )
    return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(path))


@cache
def _object_storage() -> fs.FileSystem:
    """Return Google Cloud Storage, or what stands for it in tests, as its own client library finds it."""
    emulator = urlsplit(os.environ.get("STORAGE_EMULATOR_HOST", ""))
    if emulator.netloc:
        return fs.GcsFileSystem(
            anonymous=True,
            scheme=emulator.scheme,
            endpoint_override=emulator.netloc,
            retry_time_limit=_RETRIED,
        )
    try:
        google.auth.default()  # answers at once where there are none; pyarrow would go on trying
    except google.auth.exceptions.GoogleAuthError:
        raise InputError(
            f"input.path: {_GCS} needs credentials, and none were found: set GOOGLE_APPLICATION_CREDENTIALS, "
            "or run gcloud auth application-default login."
        ) from None
    return fs.GcsFileSystem(retry_time_limit=_RETRIED)


def _list(path: str) -> list[File]:
    try:
        return _list_files(path)
    except OSError as error:
        raise InputError(f"input.path {path} cannot be listed: {_why(error)}.") from None


def _why(error: OSError) -> str:
    """Return what object storage or the system gives as its reason, in a few words."""
    reasons = {
        "UNAUTHENTICATED": "the bucket does not know who asks (401), give valid credentials",
        "PERMISSION_DENIED": "the bucket does not allow it (403), grant roles/storage.objectViewer",
        "NOT_FOUND": "there is no such bucket (404)",
    }
    known = (reason for code, reason in reasons.items() if code in str(error))
    return next(known, error.strerror or "the storage does not answer")


def _list_files(path: str) -> list[File]:
    system, absolute = filesystem(path)
    scheme = _GCS if path.startswith(_GCS) else ""
    found = system.get_file_info(absolute)
    if found.type == fs.FileType.File:
        return [File(scheme + absolute, posixpath.basename(absolute))]
    if found.type == fs.FileType.Directory:
        root, pattern = absolute, r"([^._/][^/]*/)*[^._/][^/]*\.parquet"
        missing = "is a folder without *.parquet files"
    elif re.search(r"[*?[]", absolute):
        root, pattern = _parse_glob(absolute)
        missing = "matches no files"
    else:
        raise InputError(f"input.path {path} does not exist: {_ALLOWED}.")
    below = system.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True))
    names = sorted(posixpath.relpath(f.path, root) for f in below if f.type == fs.FileType.File)
    files = [File(scheme + posixpath.join(root, name), name) for name in names if re.fullmatch(pattern, name)]
    if not files:
        raise InputError(f"input.path {path} {missing}: {_ALLOWED}.")
    return files


def _parse_glob(path: str) -> tuple[str, str]:
    """Split a glob into its fixed root and a regular expression for what lies below."""
    parts = path.split("/")
    fixed = next(i for i, part in enumerate(parts) if re.search(r"[*?[]", part))
    tokens = {"**/": r"([^./][^/]*/)*", "*": r"[^/]*", "?": r"[^/]"}
    pattern = ""
    for token in re.findall(r"\*\*/|\*|\?|\[[^]/]+\]|.", "/".join(parts[fixed:])):
        charset = "[" + token[1:-1].replace("\\", r"\\").replace("[", r"\[").replace("!", "^", 1) + "]"
        translated = charset if len(token) > 2 and token[0] == "[" else tokens.get(token, re.escape(token))
        hides = token in ("*", "?") and (not pattern or pattern.endswith(("/", "/)*")))
        pattern += (r"(?!\.)" if hides else "") + translated
    return "/".join(parts[:fixed]) or "/", pattern


def _schema(file: File) -> pa.Schema:
    system, path = filesystem(file.path)
    try:
        with system.open_input_file(path) as opened:
            starts_right = opened.read(4) == b"PAR1"
            try:
                return pq.ParquetFile(opened).schema_arrow
            except (pa.ArrowException, OSError):
                fault = "is truncated or damaged" if starts_right else "is not Parquet"
    except (OSError, ValueError):  # the latter where object storage breaks off
        fault = "cannot be opened"
    raise InputError(f"input.path: {file.name} {fault}; {_ALLOWED}.")


def _check_columns(file: File, schema: pa.Schema, columns: Sequence[str], unit: str | None) -> None:
    for field, column in [*(("columns", c) for c in columns), *([("unit", unit)] if unit else [])]:
        times = len(schema.get_all_field_indices(column))
        if times != 1:
            had = "is missing from" if not times else "stands more than once in"
            raise InputError(
                f"input.{field}: {column} {had} {file.name}; its columns are {', '.join(schema.names)}."
            )
        kind = schema.field(column).type
        if field == "columns" and not _is_numeric(kind):
            raise InputError(f"input.columns: {column} is {kind} in {file.name}; {_NUMERIC}.")
        if field == "unit" and unit_kind(kind) is None:
            raise InputError(f"input.unit: {column} is {kind} in {file.name}; {_UNITS}.")


def _is_numeric(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def unit_kind(kind: pa.DataType) -> str | None:
    """Return the kind of units in a column of this type; units of one kind are equal by their values.

    None where units cannot be told apart for sure: floats, where NaN is no value and one number may be
    written as several, and nested values.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return unit_kind(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return unit_kind(kind.value_type)
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
    first: File, expected: pa.Schema, file: File, schema: pa.Schema, columns: Sequence[str], unit: str | None
) -> None:
    for column in columns:
        kinds = expected.field(column).type, schema.field(column).type
        if kinds[0] != kinds[1]:
            raise InputError(
                f"input.columns: {column} is {kinds[0]} in {first.name} but {kinds[1]} in {file.name}; "
                "a used column must have one type in all files."
            )
    if unit is not None:
        kinds = expected.field(unit).type, schema.field(unit).type
        if unit_kind(kinds[0]) != unit_kind(kinds[1]):
            raise InputError(
                f"input.unit: {unit} is {kinds[0]} in {first.name} but {kinds[1]} in {file.name}; a unit "
                "must be of one kind in all files, such as signed integers, unsigned integers or text."
            )
