"""List the files of the input: each once, in order of name; and say what a listing would cover."""

import errno
import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import ClassVar
from urllib.parse import urlsplit

from pyarrow import fs

from core.errors import ShoalError
from transforms.name_pattern import FILE, FOLDER, NamePattern, is_glob, parse_glob

_GCS = "gs://"
_RETRIED = timedelta(seconds=120)
ALLOWED = "give a Parquet file, a folder of *.parquet files or a glob"
_LONG = 200
"""Characters of a name that a sentence quotes."""


class InputError(ShoalError, ValueError):
    """The input is not what the job says: one sentence that names the field or file and what is allowed.

    Args:
        text: the sentence; characters of a name that cannot be printed are written as escapes.
    """

    exit_code: ClassVar[int] = 2
    worker_exit_code: ClassVar[int | None] = 1  # the input was right when the job was checked

    def __init__(self, text: str) -> None:
        super().__init__("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))


@dataclass(frozen=True)
class File:
    """One Parquet file.

    Args:
        path: absolute, readable by every worker.
        name: path below the folder or below the fixed part of the glob; for a single file its base name.
        number: of the file among those that are listed, in order of their names.
    """

    path: str
    name: str
    number: int = 0


def list_files(path: str) -> list[File]:
    """Return the files at `path`, sorted by name, at least one; see `open_source`.

    Each file counts once. On a local disk links below the folder or the fixed part of the glob are not
    followed, and only regular files are listed; `path` itself may lead through links. An object of object
    storage has one name, so nothing more is needed there.

    Raises:
        InputError: there are none, they cannot be listed, or two names are of one file.
    """
    with _looking(path):
        system, root, pattern = _resolve(path)
        scheme = _GCS if path.startswith(_GCS) else ""
        if pattern is FILE:
            return [File(scheme + root, posixpath.basename(root))]
        if isinstance(system, fs.LocalFileSystem):
            names, links = _list_local(path, root, pattern)
        else:
            below = system.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True))
            every = (posixpath.relpath(found.path, root) for found in below if found.is_file)
            names, links = [name for name in every if pattern.matches(name)], False
    if not names:
        missing = "is a folder without *.parquet files" if pattern is FOLDER else "matches no files"
        skipped = ", and links below it are not followed" if links else ""
        raise InputError(f"input.path {short(path)} {missing}{skipped}: {ALLOWED}.")
    listed = enumerate(sorted(names))
    return [File(scheme + posixpath.join(root, name), name, number) for number, name in listed]


def lies_within(path: str, place: str) -> bool:
    """Say whether a later listing of the input at `path` could cover `place`, or what is written below it.

    Of a folder that is everything in it, at any depth. Of a glob it is what a name at `place` or below could
    match. Local places are compared by their real paths, those of object storage by their names.

    Args:
        path: as in `list_files`.
        place: a folder or file that need not exist yet: absolute.

    Raises:
        InputError: `path` cannot be looked at.
    """
    if path.startswith(_GCS) != place.startswith(_GCS):
        return False
    with _looking(path):
        _, root, pattern = _resolve(path)
    inner = place.removeprefix(_GCS)
    if not path.startswith(_GCS):
        root, inner = os.path.realpath(root), os.path.realpath(inner)
    above, below = ([part for part in each.split("/") if part] for each in (root, inner))
    if below[: len(above)] != above:
        return False
    return pattern is FOLDER or bool(pattern.after_all(below[len(above) :]))


@contextmanager
def _looking(path: str) -> Iterator[None]:
    """Say in a sentence what the storage has against looking at `path`."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"input.path {short(path)} cannot be listed: {_why(path, error)}.") from None
    except ValueError:  # a NUL character, or half of a character
        raise InputError(f"input.path {short(path)} is not a path: {ALLOWED}.") from None


def _why(path: str, error: OSError) -> str:
    """Return what the system or object storage gives as its reason, in a few words."""
    if not path.startswith(_GCS):
        return os.strerror(error.errno or 0)
    reasons = {
        "UNAUTHENTICATED": "the bucket does not know who asks (401), give valid credentials",
        "PERMISSION_DENIED": "the bucket does not allow it (403), grant roles/storage.objectViewer",
        "NOT_FOUND": "there is no such bucket (404)",
    }
    known = (reason for code, reason in reasons.items() if code in str(error))
    return next(known, error.strerror or "the storage does not answer")


def _resolve(path: str) -> tuple[fs.FileSystem, str, NamePattern]:
    """Return where the input lies: its root, and which names below it are meant."""
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
    wrong = "does not exist" if found == fs.FileType.NotFound else "is neither a file nor a folder"
    raise InputError(f"input.path {short(path)} {wrong}: {ALLOWED}.")


def _list_local(path: str, root: str, pattern: NamePattern) -> tuple[list[str], bool]:
    """Return the names of the regular files below `root` that are meant, and whether links were passed over.

    Raises:
        InputError: two of them are names of one file, by hard links or mounts, whose rows would count twice.
    """
    named: dict[tuple[int, int], str] = {}
    links = False
    folders = [("", pattern.start)] if os.path.isdir(root) else []
    while folders:
        folder, states = folders.pop()
        with os.scandir(os.path.join(root, folder)) as entries:
            for entry in entries:
                name, reached = posixpath.join(folder, entry.name), pattern.after(states, entry.name)
                links |= bool(reached) and entry.is_symlink()
                if pattern.goes_on(reached) and entry.is_dir(follow_symlinks=False):
                    folders.append((name, reached))
                if pattern.ends(reached) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    other = named.setdefault((status.st_dev, status.st_ino), name)
                    if other != name:
                        one, two = sorted((short(other), short(name)))
                        raise InputError(
                            f"input.path {short(path)}: {one} and {two} are one file, and its rows would "
                            "count twice; keep one of the names."
                        )
    return list(named.values()), links


def filesystem(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system that holds `path`, and the absolute path in it: only here are schemes known.

    Raises:
        InputError: a scheme that is not served.
    """
    if path.startswith(_GCS):
        return _object_storage(), path.removeprefix(_GCS).rstrip("/")
    if "://" in path:
        raise InputError(f"input.path {path} has a scheme that is not served: {ALLOWED}, {_GCS}... or local.")
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
    import google.auth  # only here: local input needs no client of a cloud
    import google.auth.exceptions

    try:
        google.auth.default()  # answers at once where there are none; pyarrow would go on trying
    except google.auth.exceptions.GoogleAuthError:
        raise InputError(
            f"input.path: {_GCS} needs credentials, and none were found: set GOOGLE_APPLICATION_CREDENTIALS, "
            "or run gcloud auth application-default login."
        ) from None
    return fs.GcsFileSystem(retry_time_limit=_RETRIED)


def short(text: str) -> str:
    """Return a name or path without its middle where it is very long."""
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]}...{text[-_LONG // 2 :]}"
