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
"""Errors of the path; all other errors are faults of the system."""

_ADVICE = {
    errno.ENOSPC: ": free some space there, and try again",
    errno.EDQUOT: ": free some space there, and try again",
    errno.EROFS: ": make it writable, and try again",
    errno.EMFILE: ": raise the limit (ulimit -n), and try again",
    errno.ENFILE: ": raise the system's limit, and try again",
}

_RIGHTS = {"read": "let this account read it", "written": "let this account write it and to its folder"}
"""What helps where the system denies access: at another path, a ledger would be another budget."""


@dataclass(frozen=True)
class LocalFolder:
    """A folder of the local file system, which must support hard links.

    Symbolic links are followed before a file is written, so they keep pointing to the same file. A new file
    is written without a name and then linked to its name, as `transforms.whole_file` describes. So it becomes
    visible only when it is complete. A link never replaces another file, so the first published file stays.
    An existing file is swapped under a lock, by one rename.
    """

    path: str

    def read(self, name: str) -> bytes | None:
        """See `Folder.read`; raises JobError for a folder, a pipe or a device, which may have no end."""
        path = self.locate(name)
        with _explained(path, "read"):
            try:
                with open(path, "rb", opener=_at_once) as file:
                    _check_regular(path, os.fstat(file.fileno()))
                    return file.read()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def size(self, name: str) -> int | None:
        """See `Folder.size`; raises JobError for a folder, a pipe or a device."""
        path = self.locate(name)
        with _explained(path, "read"):
            try:
                found = os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
        _check_regular(path, found)
        return found.st_size

    def create(self, name: str, data: bytes) -> bool:
        """See `Folder.create`."""
        path = self._real(name)
        with _explained(path, "written"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return create_file(path, data)

    def replace(self, name: str, data: bytes) -> None:
        """See `Folder.replace`."""
        path = self._real(name)
        with _explained(path, "written"):
            while not self.create(name, data):
                try:
                    with locked(path):
                        return replace_file(path, data)
                except FileNotFoundError:
                    continue  # another process has removed it meanwhile

    def swap(self, name: str, seen: bytes, data: bytes) -> bool:
        """See `Folder.swap`: a lock excludes concurrent swaps.

        Raises:
            JobError: the file has several hard links; the others would keep the old content.
        """
        path = self._real(name)
        with _explained(path, "written"):
            if not os.path.exists(path):
                return False
            with locked(path, kept=True):
                clear(path)
                if _read_to_swap(path) != seen:
                    return False
                replace_file(path, data)
        return True

    def sweep(self, name: str) -> None:
        """See `Folder.sweep`."""
        sweep(self._real(name))

    def prepare(self) -> None:
        """See `Folder.prepare`: the check creates no folder, but tries the deepest existing one."""
        try:
            try_folder(_existing(self._real("")))
        except OSError as error:
            problem = f"output is {self.path}: no file can be created there ({_why(error)})"
            if error.errno not in (*_OF_THE_PATH, errno.EROFS):
                raise StorageError(f"{problem}{_ADVICE.get(error.errno or 0, '')}.") from None
            raise JobError(
                f"{problem}; give a folder that can be written, on a file system with hard links."
            ) from None

    def prepare_swap(self, name: str) -> None:
        """See `Folder.prepare_swap`; raises JobError as `swap` does."""
        path = self._real(name)
        with _explained(path, "written"):
            _read_to_swap(path)
            try_folder(os.path.dirname(path))

    def locate(self, name: str) -> str:
        """See `Folder.locate`."""
        return os.path.join(self.path, name)

    def _real(self, name: str) -> str:
        """Return the path of a file with all symbolic links resolved.

        Raises:
            JobError: a link in the path is broken.
        """
        path = os.path.abspath(self.locate(name))
        link = _existing(path)
        if os.path.islink(link) and not os.path.exists(link):
            raise JobError(
                f"{path} cannot be written: {link} is a broken link to {os.readlink(link)}; remove the link, "
                "or give another path."
            )
        return os.path.realpath(path)


def _read_to_swap(path: str) -> bytes:
    """Return the content of a file that is going to be replaced.

    It is opened for writing, so that a user without write permission is refused, even if the folder permits a
    rename.

    Raises:
        JobError: the file has several hard links; the others would keep the old content.
    """
    with open(os.open(path, os.O_RDWR | os.O_NOFOLLOW), "rb") as file:
        held, links = file.read(), os.fstat(file.fileno()).st_nlink
    if links > 1:
        raise JobError(
            f"{path} has {links} hard links, and a write would separate them: remove the others, or make "
            "them symbolic links."
        )
    return held


def _existing(path: str) -> str:
    """Return the longest existing part of an absolute path."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


@contextmanager
def _explained(path: str, what: str) -> Iterator[None]:
    """Translate an OSError to a JobError where the path is wrong, and to a StorageError otherwise."""
    try:
        yield
    except OSError as error:
        lock = str(error.filename)
        where = lock if lock.endswith(".lock") and os.path.lexists(lock) else path
        problem = f"{where} cannot be {what} ({_why(error)})"
        if error.errno in _OF_THE_PATH:
            allowed = _RIGHTS[what] if error.errno in (errno.EACCES, errno.EPERM) else "give another path"
            raise JobError(f"{problem}: {allowed}.") from None
        raise StorageError(f"{problem}{_ADVICE.get(error.errno or 0, '')}.") from None
    except RecursionError:  # by os.makedirs, of more folders than any path may have
        raise JobError(f"{path} cannot be {what} (File name too long): give another path.") from None


def _why(error: OSError) -> str:
    return error.strerror or "the system gives no reason"


def _check_regular(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise JobError(f"{path} is not a regular file: give the path of one.")


def _at_once(path: str, flags: int) -> int:
    """Open a file; one that is a pipe is empty where nobody writes to it, instead of waited for."""
    return os.open(path, flags | os.O_NONBLOCK)
