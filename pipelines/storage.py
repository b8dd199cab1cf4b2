"""Where releases and ledgers are kept: folders whose files are written whole, or not at all."""

import fcntl
import os
import posixpath
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from pipelines.refusal import JobError

GCS = "gs://"


class StorageError(RuntimeError):
    """Storage failed for a reason that is not the job's; the text holds nothing that depends on rows."""


class Folder(Protocol):
    """A place for files. Values that name it travel to workers, so it is small and picklable.

    Every method raises JobError where the job names a place that isn't there or isn't allowed, and
    StorageError where storage keeps failing.
    """

    def read(self, name: str) -> bytes | None:
        """Return the file's bytes, or None where there is no such file."""

    def create(self, name: str, data: bytes) -> bool:
        """Write the file whole, unless there is one; return whether this call wrote it."""

    def replace(self, name: str, data: bytes) -> None:
        """Write the file whole, whether or not there is one."""

    def swap(self, name: str, seen: bytes, data: bytes) -> bool:
        """Write the file whole if it still holds `seen`; return whether it now holds `data`."""

    def prepare(self) -> None:
        """Check that files can be created here, and leave no trace."""

    def locate(self, name: str) -> str:
        """Return what a person opens to see the file."""


def open_folder(path: str) -> Folder:
    """Return the folder at `path`, which need not exist yet: the only place that knows schemes.

    Raises:
        JobError: a scheme that is not served.
    """
    if path.startswith(GCS):
        from pipelines.object_storage import ObjectFolder

        return ObjectFolder(path.rstrip("/"))
    if "://" in path:
        raise JobError(f"{path} has a scheme that is not served: give a local path or one of {GCS}.")
    return LocalFolder(path)


def open_file(path: str) -> tuple[Folder, str]:
    """Return the folder of the file at `path`, and its name there.

    Raises:
        JobError: a scheme that is not served, or no name.
    """
    folder, name = (posixpath if "://" in path else os.path).split(path)
    if not name:
        raise JobError(f"{path} is a folder: give a file's name.")
    return open_folder(folder), name


def absolute(path: str) -> str:
    """Return a local path made absolute, since workers run elsewhere; another as it is."""
    return path if "://" in path or not path else os.path.abspath(os.path.expanduser(path))


@dataclass(frozen=True)
class LocalFolder:
    """A folder of the local file system, which must have hard links."""

    path: str

    def read(self, name: str) -> bytes | None:
        """See `Folder.read`."""
        try:
            with open(self.locate(name), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def create(self, name: str, data: bytes) -> bool:
        """See `Folder.create`: a hard link is made at once, and never over another file."""
        draft = self._write_draft(data)
        try:
            os.link(draft, self.locate(name))
        except FileExistsError:
            return False
        else:
            self._show(name)
            return True
        finally:
            os.unlink(draft)

    def replace(self, name: str, data: bytes) -> None:
        """See `Folder.replace`."""
        os.replace(self._write_draft(data), self.locate(name))
        self._show(name)

    def swap(self, name: str, seen: bytes, data: bytes) -> bool:
        """See `Folder.swap`: the file system keeps others who swap out meanwhile."""
        with self._locked(name):
            if self.read(name) != seen:
                return False
            self.replace(name, data)
        return True

    def prepare(self) -> None:
        """See `Folder.prepare`: what exists of the path is tried, so that nothing is left behind."""
        existing = self.path
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        probe = os.path.join(existing, f".{uuid.uuid4().hex}")
        try:
            LocalFolder(existing).create(os.path.basename(probe), b"")
            os.unlink(probe)
        except OSError as error:
            raise JobError(
                f"output is {self.path}: no file can be created there ({error.strerror}); "
                "give a folder that can be written, on a file system with hard links."
            ) from None

    def locate(self, name: str) -> str:
        """See `Folder.locate`."""
        return os.path.join(self.path, name)

    def _write_draft(self, data: bytes) -> str:
        """Write a hidden file of a name that no one else has, down to the disk.

        Only its owner may read it: after a crash it may hold what was never released.
        """
        os.makedirs(self.path, exist_ok=True)
        draft = self.locate(f".{uuid.uuid4().hex}")
        with open(draft, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return draft

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Hold the lock beside a file; the system lets go of it when the process ends, however it ends."""
        with open(self.locate(f".{name}.lock"), "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _show(self, name: str) -> None:
        """Let those read a new file who may read the folder, and make its name last."""
        os.chmod(self.locate(name), os.stat(self.path).st_mode & 0o666)
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
