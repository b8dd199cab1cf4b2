"""List the files of the input in order of their names, and find out whether a listing covers a path."""

import errno
import os
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from core.errors import ShoalError
from transforms.extras import needs
from transforms.file_format import NAMES, Format, alike, format_of, table_of
from transforms.name_pattern import FILE, FOLDER, NamePattern, States, is_glob, parse_glob
from transforms.schemes import AZURE, EXTRAS, GCS, KNOWN, LOCAL, S3, split_scheme

_RETRIED = timedelta(seconds=120)
ALLOWED = (
    f"give a file of {NAMES}, as the ending of its name says, a folder of files of one format, or a glob"
)
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_NOT_UTF_8 = "its name is not UTF-8 as this locale reads it, rename it or set LC_ALL=C.UTF-8"
_LONG = 200
"""Longest name that an error quotes, in characters."""


class InputError(ShoalError, ValueError):
    """The input does not match the job. The text names the field or file, and what is allowed.

    Args:
        text: the sentence; unprintable characters are escaped.
    """

    exit_code: ClassVar[int] = 2
    worker_exit_code: ClassVar[int | None] = 1  # the input was valid when the job was checked

    def __init__(self, text: str) -> None:
        super().__init__("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))


class NoFiles(InputError):
    """There are no files at the path. They may come later, so the run may be tried again."""

    exit_code: ClassVar[int] = 1


class Incomplete(InputError):
    """A file is empty, truncated or damaged. It may be whole later, so the run may be tried again."""

    exit_code: ClassVar[int] = 1


@dataclass(frozen=True)
class File:
    """One file of the input.

    Args:
        path: absolute, readable by every worker.
        name: path below the folder or below the fixed part of the glob; for a single file its base name.
        number: index of the file in the listing.
        version: see `version_of`, when the input was opened; it is not checked if it is empty.
        folders: columns that the folders of its name give, such as `day=2013-01-31`, with their values.
        types: types of the used columns that have none in the file; see `transforms.column_types`.
    """

    path: str
    name: str
    number: int = 0
    version: str = ""
    folders: tuple[tuple[str, str | None], ...] = ()
    types: tuple[tuple[str, pa.DataType], ...] = ()

    @property
    def format(self) -> Format:
        """The format of the file."""
        return format_of(self.path)


@dataclass(frozen=True)
class Held(File):
    """A file of Arrow IPC that is held in memory; see `transforms.hold_batches`.

    Args:
        content: its bytes.
        names: secret bytes of the run, from which identities of rows follow; see `core.sampling.renamed`.
    """

    content: bytes = field(default=b"", repr=False)
    names: bytes = field(default=b"", repr=False)


def list_files(path: str) -> list[File]:
    """Return the files at `path`, sorted by name, at least one, all of one format; see `open_source`.

    Each file is listed once. On a local disk, only regular files are listed, and symbolic links below the
    folder or below the fixed part of the glob are not followed; `path` itself may contain links. In object
    storage each object has one name.

    Raises:
        NoFiles: there are none.
        InputError: they cannot be listed, they may have the same rows twice, or the folders of some give
            other columns than those of others.
    """
    _NOT_READ.pop(path, None)
    with _listing(path):
        system, root, pattern = _resolve(path)
        scheme, _ = split_scheme(path)
        if pattern is FILE:
            return [File(scheme + root, posixpath.basename(root))]
        if isinstance(system, fs.LocalFileSystem):
            names, links, others = _list_local(path, root, pattern)
        else:
            below = system.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True))
            every = {posixpath.relpath(found.path, root): found.size for found in below if found.is_file}
            for name in every:
                _check_no_table(path, name, pattern)
            reached = {name: pattern.after_all(name.split("/")) for name in every}
            names, links = [name for name in every if pattern.ends(reached[name])], 0
            others = sum(size > 0 and _is_other(pattern, reached[name]) for name, size in every.items())
    _keep_count(path, links, others)
    if not names:
        missing = "is a folder without such files" if pattern is FOLDER else "matches no files"
        skipped = "names that begin with . or _" + "; symbolic links below it are not followed" * bool(links)
        raise NoFiles(f"input.path {short(path)} {missing}, apart from {skipped}: {ALLOWED}.")
    ordered = sorted(names)
    _check_formats(path, ordered)
    return [
        File(scheme + posixpath.join(root, name), name, number, folders=folders)
        for number, (name, folders) in enumerate(zip(ordered, _folders(path, ordered), strict=True))
    ]


def _check_formats(path: str, names: Sequence[str]) -> None:
    """Check that all files are of one format, and no two of one name: they may be the same rows twice.

    Raises:
        InputError: they are not.
    """
    first: dict[Format, str] = {}
    for name in names:
        first.setdefault(format_of(name), name)
    if len(first) > 1:
        (one, its), (other, another) = list(first.items())[:2]
        raise InputError(
            f"input.path {short(path)} has files of {one}, such as {short(its)}, and of {other}, such as "
            f"{short(another)}: give files of one format, by a glob such as *.parquet."
        )
    both = alike(names)
    if both is not None:
        raise InputError(
            f"input.path {short(path)} has {short(both[0])} and {short(both[1])}, which may be the same rows "
            "twice; keep one of them, or rename one."
        )


def _check_no_table(path: str, name: str, pattern: NamePattern) -> None:
    """Raise an InputError where a name, in a folder that is looked into, is of a table with versions."""
    found = table_of(name)
    if found is not None and pattern.goes_on(pattern.after_all(found[0])):
        raise InputError(
            f"input.path {short(path)} is a table of {found[1]}, which keeps files of earlier versions, so "
            "rows would count twice; give a folder to which the rows of one version were written."
        )


def _folders(path: str, names: Sequence[str]) -> list[tuple[tuple[str, str | None], ...]]:
    """Return the columns that the folders `key=value` of each name give.

    Raises:
        InputError: a name has a key twice, or the names do not all have the same keys.
    """
    found: list[tuple[tuple[str, str | None], ...]] = []
    for name in names:
        parts = [part.partition("=") for part in name.split("/")[:-1]]
        pairs = [(unquote(key), unquote(value)) for key, sign, value in parts if key and sign]
        keys, first = [key for key, _ in pairs], [key for key, _ in found[0]] if found else []
        if len(set(keys)) < len(keys):
            raise InputError(
                f"input.path {short(path)}: the folders of {short(name)} give one column twice; rename one."
            )
        if found and set(keys) != set(first):
            one, other = (short(", ".join(each)) or "none" for each in (first, keys))
            raise InputError(
                f"input.path {short(path)}: the folders key=value of {short(names[0])} give the columns "
                f"{one}, but those of {short(name)} give {other}; all files need the same ones."
            )
        found.append(tuple((key, None if value == _NULL_FOLDER else value) for key, value in sorted(pairs)))
    return found


def lies_within(path: str, place: str) -> bool:
    """Return whether a later listing of the input at `path` could include `place`, or files below it.

    A folder includes everything below it. A glob includes `place` if it could match a name at or below it.
    Local paths are compared after resolving links, and object storage by name.

    Args:
        path: as in `list_files`.
        place: absolute path of a folder or file, which need not exist yet.

    Raises:
        InputError: `path` cannot be listed.
    """
    scheme, _ = split_scheme(path)
    kind, inner = split_scheme(place)
    if kind != scheme:
        return False
    with _listing(path):
        _, root, pattern = _resolve(path)
    if scheme == LOCAL:
        root, inner = os.path.realpath(root), os.path.realpath(inner)
    above, below = ([part for part in each.split("/") if part] for each in (root, inner))
    if below[: len(above)] != above:
        return False
    return pattern is FOLDER or bool(pattern.after_all(below[len(above) :]))


@contextmanager
def _listing(path: str) -> Iterator[None]:
    """Translate errors while listing `path` to an InputError."""
    try:
        yield
    except InputError:
        raise
    except (OSError, UnicodeEncodeError) as error:
        why = cause_of(path, error) or "no reason is given"
        raise InputError(f"input.path {short(path)} cannot be listed: {why}.") from None
    except ValueError:  # a NUL character
        raise InputError(f"input.path {short(path)} is not a path: {ALLOWED}.") from None


def cause_of(path: str, error: Exception) -> str | None:
    """Return the reason that the system or object storage gives; None where it gives none.

    It has nothing of what is in the file at `path`, unlike the text of errors of formats.
    """
    if not isinstance(error, OSError):
        return _NOT_UTF_8 if isinstance(error, UnicodeEncodeError) else None
    scheme, _ = split_scheme(path)
    if scheme == GCS:
        return _why_google(error)
    return os.strerror(error.errno) if error.errno else error.strerror


def _why_google(error: OSError) -> str | None:
    reasons = {
        "UNAUTHENTICATED": "the bucket refuses the credentials (401), give valid ones",
        "PERMISSION_DENIED": "the bucket denies access (403), grant roles/storage.objectViewer",
        "NOT_FOUND": "the bucket does not exist (404)",
    }
    known = (reason for code, reason in reasons.items() if code in str(error))
    return next(known, error.strerror)


def _resolve(path: str) -> tuple[Any, str, NamePattern]:
    """Return the file system and root of the input, and the pattern of names below the root."""
    system, absolute = filesystem(path)
    try:
        found = system.get_file_info(absolute).type
    except OSError as error:
        if not (is_glob(absolute) and error.errno == errno.ENAMETOOLONG):
            raise
        found = fs.FileType.NotFound
    if found == fs.FileType.File:
        return system, absolute, FILE
    if found == fs.FileType.Directory:
        return system, absolute, FOLDER
    if found == fs.FileType.NotFound and is_glob(absolute):
        return system, *parse_glob(absolute)
    if found == fs.FileType.NotFound:
        raise NoFiles(f"input.path {short(path)} does not exist: {ALLOWED}.")
    raise InputError(f"input.path {short(path)} is neither a file nor a folder: {ALLOWED}.")


_NOT_READ: dict[str, str] = {}
"""What `not_read` returns, by path."""


def not_read(path: str) -> str | None:
    """Say how many files the last listing of a folder or glob left out, and why, once; None where it did not.

    Names that begin with . or _ are not counted, and neither are files whose name a glob does not match, nor
    empty objects, which object storage may have for folders.
    """
    return _NOT_READ.pop(path, None)


def _keep_count(path: str, links: int, others: int) -> None:
    """Keep for `not_read` what a listing leaves out."""
    counts = {"symbolic links, which are not followed": links, f"files not named as {NAMES}": others}
    parts = [f"{why}: {count:,}" for why, count in counts.items() if count]
    if parts:
        _NOT_READ[path] = f"input.path {short(path)} has what is not read; {'; '.join(parts)}."


def _list_local(path: str, root: str, pattern: NamePattern) -> tuple[list[str], int, int]:
    """Return the names of the regular files below `root` that match, and how many others were skipped.

    These are symbolic links, and in a folder files of other endings.

    Raises:
        InputError: two names refer to the same file, by hard links or mounts, so its rows would count twice.
    """
    named: dict[tuple[int, int], str] = {}
    links = others = 0
    folders = [("", pattern.start)] if os.path.isdir(root) else []
    while folders:
        folder, states = folders.pop()
        with os.scandir(os.path.join(root, folder)) as entries:
            for entry in entries:
                name, reached = posixpath.join(folder, entry.name), pattern.after(states, entry.name)
                _check_no_table(path, name, pattern)
                links += bool(reached) and entry.is_symlink()
                others += _is_other(pattern, reached) and entry.is_file(follow_symlinks=False)
                if pattern.goes_on(reached) and entry.is_dir(follow_symlinks=False):
                    folders.append((name, reached))
                if pattern.ends(reached) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    other = named.setdefault((status.st_dev, status.st_ino), name)
                    if other != name:
                        one, two = sorted((short(other), short(name)))
                        raise InputError(
                            f"input.path {short(path)}: {one} and {two} are the same file, whose rows would "
                            "count twice; keep one of the names."
                        )
    return list(named.values()), links, others


def _is_other(pattern: NamePattern, reached: States) -> bool:
    """Return whether a name in a folder is one of another ending."""
    return pattern is FOLDER and bool(reached) and not pattern.ends(reached)


def filesystem(path: str) -> tuple[Any, str]:
    """Return the file system of `path`, and the absolute path in it.

    It is one of pyarrow, or `transforms.object_store.StoreFiles`, which has the same methods.

    Raises:
        InputError: the scheme is not supported.
        MissingExtra: its packages are not installed.
    """
    scheme, place = split_scheme(path)
    if scheme == LOCAL:
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(path))
    if scheme == GCS:
        return _google(), place.rstrip("/")
    if scheme not in EXTRAS:
        raise InputError(
            f"input.path {path} has a scheme that is not supported: {ALLOWED}, {KNOWN} or local."
        )
    with needs(EXTRAS[scheme], f"input.path: {scheme}"):
        from transforms.object_store import StoreFiles

    return StoreFiles(scheme), place.rstrip("/")


def version_of(file: File) -> str:
    """Return what changes where a file is written again: its path, of some its ETag, and last its time."""
    system, path = filesystem(file.path)
    if file.path.startswith((S3, AZURE)):  # whose times have whole seconds
        return f"{file.path} {system.version(path)}"
    return f"{file.path} {system.get_file_info(path).mtime_ns}"


@cache
def _google() -> fs.FileSystem:
    """Return Google Cloud Storage or its emulator, as Google's client library would choose it."""
    emulator = urlsplit(os.environ.get("STORAGE_EMULATOR_HOST", ""))
    if emulator.netloc:
        return fs.GcsFileSystem(
            anonymous=True,
            scheme=emulator.scheme,
            endpoint_override=emulator.netloc,
            retry_time_limit=_RETRIED,
        )
    with needs(EXTRAS[GCS], f"input.path: {GCS}"):
        import google.auth  # imported here, since local input needs no cloud client
        import google.auth.exceptions

    try:
        google.auth.default()  # fails at once without credentials; pyarrow would retry
    except google.auth.exceptions.GoogleAuthError:
        raise InputError(
            f"input.path: {GCS} needs credentials, but none were found: set GOOGLE_APPLICATION_CREDENTIALS, "
            "or run gcloud auth application-default login."
        ) from None
    return fs.GcsFileSystem(retry_time_limit=_RETRIED)


def short(text: str) -> str:
    """Return a name or path; the middle of a very long one is cut out."""
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]}...{text[-_LONG // 2 :]}"
