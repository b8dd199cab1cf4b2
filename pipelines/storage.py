"""Where releases are kept: a folder whose files are written whole, and only once."""

import os
import uuid
from dataclasses import dataclass
from typing import Protocol

from pipelines.refusal import JobError


class Folder(Protocol):
    """A place for one release. Values that name it travel to workers, so it is small and picklable."""

    def read(self, name: str) -> bytes | None:
        """Return the file's bytes, or None where there is no such file."""

    def create(self, name: str, data: bytes) -> bool:
        """Write the file whole, unless there is one; return whether this call wrote it."""

    def replace(self, name: str, data: bytes) -> None:
        """Write the file whole, whether or not there is one."""

    def prepare(self) -> None:
        """Check that files can be created here, and leave no trace.

        Raises:
            JobError: they cannot.
        """

    def locate(self, name: str) -> str:
        """Return what a person opens to see the file."""


def open_folder(path: str) -> Folder:
    """Return the folder at `path`, which need not exist yet: the only place that knows schemes.

    Raises:
        JobError: a scheme that is not served.
    """
    if "://" in path:
        raise JobError(f"output is {path}: only local folders are supported.")
    return LocalFolder(path)


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
            self._sync()
            return True
        finally:
            os.unlink(draft)

    def replace(self, name: str, data: bytes) -> None:
        """See `Folder.replace`."""
        os.replace(self._write_draft(data), self.locate(name))

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
        """Write a hidden file of a name that no one else has, down to the disk."""
        os.makedirs(self.path, exist_ok=True)
        draft = self.locate(f".{uuid.uuid4().hex}")
        with open(draft, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return draft

    def _sync(self) -> None:
        """Make the new name itself last."""
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
