"""Folders of the local file system: hard links and a lock keep writers from each other."""

import fcntl
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from pipelines.refusal import JobError


@dataclass(frozen=True)
class LocalFolder:
    """A folder of the local file system, which must have hard links."""

    path: str

    def read(self, name: str) -> bytes | None:
        """See `Folder.read`; a JobError where the path can hold no file."""
        try:
            with open(self.locate(name), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise JobError(
                f"{self.locate(name)} cannot be read ({error.strerror}): give another path."
            ) from None

    def size(self, name: str) -> int | None:
        """See `Folder.size`; a JobError where it is a folder, a pipe or a device."""
        try:
            found = os.stat(self.locate(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise JobError(
                f"{self.locate(name)} cannot be read ({error.strerror}): give another path."
            ) from None
        if not stat.S_ISREG(found.st_mode):
            raise JobError(f"{self.locate(name)} is not a regular file: give the path of one.")
        return found.st_size

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
