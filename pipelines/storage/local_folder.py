"""Folders of the local file system."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pipelines.errors import JobError
from pipelines.storage.folder import StorageError
from transforms.whole_file import clear, create_file, locked, replace_file, sweep, try_folder

_OF_THE_PATH = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.EACCES,
    errno.EPERM,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EOPNOTSUPP,
)
"""What says that the path is wrong; everything else is trouble of the system."""

_ADVICE = {
    errno.ENOSPC: ": make room there, and try again",
    errno.EDQUOT: ": make room there, and try again",
    errno.EROFS: ": let it be written, and try again",
    errno.EMFILE: ": raise the limit (ulimit -n), and try again",
    errno.ENFILE: ": raise the system's limit, and try again",
}


@dataclass(frozen=True)
class LocalFolder:
    """A folder of the local file system, which must have hard links.

    Whatever is written is written to where links lead, so a file that several links name stays one file.
    A new file is published by one link of a file that had no name, as `transforms.whole_file` describes, so
    nothing of it can be seen unless all of it is there; and a link is never made over another file, so what
    was published first stays. A file that is there already is swapped, under its lock, by one rename.
    """

    path: str

    def read(self, name: str) -> bytes | None:
        """See `Folder.read`."""
        path = self.locate(name)
        with _told(path, "read"):
            try:
                with open(path, "rb") as file:
                    return file.read()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def size(self, name: str) -> int | None:
        """See `Folder.size`; a JobError where it is a folder, a pipe or a device."""
        path = self.locate(name)
        with _told(path, "read"):
            try:
                found = os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
        if not stat.S_ISREG(found.st_mode):
            raise JobError(f"{path} is not a regular file: give the path of one.")
        return found.st_size

    def create(self, name: str, data: bytes) -> bool:
        """See `Folder.create`."""
        path = self._real(name)
        with _told(path, "written"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return create_file(path, data)

    def replace(self, name: str, data: bytes) -> None:
        """See `Folder.replace`."""
        path = self._real(name)
        with _told(path, "written"):
            while not self.create(name, data):
                try:
                    with locked(path):
                        return replace_file(path, data)
                except FileNotFoundError:
                    continue  # another has removed it meanwhile

    def swap(self, name: str, seen: bytes, data: bytes) -> bool:
        """See `Folder.swap`: the lock keeps others who swap out meanwhile.

        Raises:
            JobError: the file has several hard links; the swap would leave the others what was seen.
        """
        path = self._real(name)
        with _told(path, "written"):
            if not os.path.exists(path):
                return False
            with locked(path, kept=True):
                clear(path)
                # opened to write, so that who may not is refused, though the folder would let him swap
                with open(os.open(path, os.O_RDWR | os.O_NOFOLLOW), "rb") as file:
                    held, links = file.read(), os.fstat(file.fileno()).st_nlink
                if held != seen:
                    return False
                if links > 1:
                    raise JobError(
                        f"{path} has {links} hard links, which a write would make different files: remove "
                        "the others, or make them symbolic links."
                    )
                replace_file(path, data)
        return True

    def sweep(self, name: str) -> None:
        """See `Folder.sweep`."""
        sweep(self._real(name))

    def prepare(self) -> None:
        """See `Folder.prepare`: what exists of the path is tried, so that nothing is left behind."""
        try:
            try_folder(_existing(self._real("")))
        except OSError as error:
            said = f"output is {self.path}: no file can be created there ({_why(error)})"
            if error.errno not in (*_OF_THE_PATH, errno.EROFS):
                raise StorageError(f"{said}{_ADVICE.get(error.errno or 0, '')}.") from None
            raise JobError(
                f"{said}; give a folder that can be written, on a file system with hard links."
            ) from None

    def locate(self, name: str) -> str:
        """See `Folder.locate`."""
        return os.path.join(self.path, name)

    def _real(self, name: str) -> str:
        """Return where a file lies, once all links are followed.

        Raises:
            JobError: a link on the way leads nowhere.
        """
        path = os.path.abspath(self.locate(name))
        link = _existing(path)
        if os.path.islink(link) and not os.path.exists(link):
            raise JobError(
                f"{path} cannot be written: {link} is a link to {os.readlink(link)}, which leads nowhere; "
                "remove the link, or give another path."
            )
        return os.path.realpath(path)


def _existing(path: str) -> str:
    """Return as much of an absolute path as there is."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


@contextmanager
def _told(path: str, what: str) -> Iterator[None]:
    """Say in a sentence why a file cannot be `what`; JobError where the path is wrong."""
    try:
        yield
    except OSError as error:
        lock = str(error.filename)
        where = lock if lock.endswith(".lock") and os.path.lexists(lock) else path
        said = f"{where} cannot be {what} ({_why(error)})"
        if error.errno in _OF_THE_PATH:
            raise JobError(f"{said}: give another path.") from None
        raise StorageError(f"{said}{_ADVICE.get(error.errno or 0, '')}.") from None


def _why(error: OSError) -> str:
    return error.strerror or "the system gives no reason"
