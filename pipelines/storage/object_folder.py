"""Folders on object storage. Preconditions on the version of an object exclude concurrent writers."""

import posixpath
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pipelines.errors import JobError
from pipelines.storage.folder import StorageError

WAIT = 120.0
"""Seconds for which a request is retried with growing pauses, on 408, 429, 5xx, broken connections and
damaged downloads."""

_TYPES = {".json": "application/json", ".html": "text/html; charset=utf-8"}


@dataclass(frozen=True)
class ObjectFolder(ABC):
    """A folder of object storage: the objects whose names have its prefix.

    Every write names the version that it replaces, so it can be repeated safely. Objects are written
    atomically: an interrupted upload leaves nothing that can be listed or read.

    Args:
        path: `scheme://bucket/prefix`, without a slash at the end.
    """

    path: str

    never: ClassVar[str]
    """A version that no object has."""

    def __post_init__(self) -> None:
        if not self.bucket:
            scheme, mark, _ = self.path.partition("://")
            raise JobError(f"{self.path} has no bucket: give {scheme}{mark}bucket/folder.")

    def read(self, name: str) -> bytes | None:
        """See `Folder.read`."""
        found = self.see(name)
        return None if found is None else found[0]

    @abstractmethod
    def size(self, name: str) -> int | None:
        """See `Folder.size`."""

    def create(self, name: str, data: bytes) -> bool:
        """See `Folder.create`."""
        for _ in tries():
            if self.write(name, data, None):
                return True
            found = self.see(name)
            if found is not None:
                return found[0] == data  # an earlier try may have written it, although its response was lost
        raise StorageError(f"{self.locate(name)} can be neither written nor read within {WAIT:.0f} s.")

    def replace(self, name: str, data: bytes) -> None:
        """See `Folder.replace`."""
        found = self.see(name)
        while not self.write(name, data, None if found is None else found[1]):
            found = self.see(name)

    def swap(self, name: str, seen: bytes, data: bytes) -> bool:
        """See `Folder.swap`."""
        found = self.see(name)
        if found is None or found[0] != seen:
            return False
        return self.write(name, data, found[1]) or self.read(name) == data

    def sweep(self, name: str) -> None:  # noqa: B027  (there is nothing to do)
        """See `Folder.sweep`: an interrupted upload leaves no object."""

    def prepare(self) -> None:
        """See `Folder.prepare`: a write to a version that no object has fails, but checks the permission.

        Raises:
            JobError: it was written, so the server keeps no preconditions.
        """
        if self.write(".probe", b"", self.never):
            raise JobError(
                f"{self.path}: the server ignores preconditions (If-Match), so two runs could overwrite each "
                "other there: give a folder on another one."
            )

    def prepare_swap(self, name: str) -> None:
        """See `Folder.prepare_swap`."""
        self.prepare()

    def locate(self, name: str) -> str:
        """See `Folder.locate`."""
        return posixpath.join(self.path, name)

    def damaged(self, name: str, checksum: str) -> StorageError:
        """Return the error of a file that never arrived as it was sent."""
        return StorageError(
            f"{self.locate(name)} could not be downloaded undamaged within {WAIT:.0f} s: size or {checksum} "
            "differs."
        )

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self.path.partition("://")[2].partition("/")[0]

    def key(self, name: str) -> str:
        """Return the name in the bucket of a file."""
        return self.locate(name).partition("://")[2].removeprefix(f"{self.bucket}/")

    @abstractmethod
    def see(self, name: str) -> tuple[bytes, str] | None:
        """Return the bytes of an object, undamaged, and their version; or None if it does not exist."""

    @abstractmethod
    def write(self, name: str, data: bytes, version: str | None) -> bool:
        """Write an object if it still has this version, or, where that is None, if there is none.

        Returns:
            Whether this call wrote it. After False, an earlier try of the same call may have.
        """


def content_type(name: str) -> str:
    """Return the media type of a file."""
    return _TYPES.get(posixpath.splitext(name)[1], "application/octet-stream")


def tries() -> Iterator[None]:
    """Yield for each try, with growing pauses between them, until the time is over."""
    end, pause = time.monotonic() + WAIT, 0.1
    yield
    while time.monotonic() < end:
        time.sleep(pause)
        pause = min(2.0 * pause, 10.0)
        yield
