"""Folders of files on any kind of storage. Files are written atomically."""

from typing import Protocol

from core.errors import ShoalError


class StorageError(ShoalError, RuntimeError):
    """Storage failed, although the job is valid. The text contains nothing that depends on rows."""


class Folder(Protocol):
    """A folder of files. It is picklable, since it is sent to workers.

    Every method raises JobError where the path does not exist or is not permitted, and StorageError where
    storage keeps failing.
    """

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, or None if it does not exist."""

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes, or None if it does not exist."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a file atomically, unless it exists; return whether this call wrote it."""

    def replace(self, name: str, data: bytes) -> None:
        """Write a file atomically, whether or not it exists."""

    def swap(self, name: str, seen: bytes, data: bytes) -> bool:
        """Replace a file atomically if it still contains `seen`; return whether it now contains `data`."""

    def sweep(self, name: str) -> None:
        """Remove temporary files that killed writers of an existing file left."""

    def prepare(self) -> None:
        """Check that files can be created in the folder, and leave no file behind."""

    def prepare_swap(self, name: str) -> None:
        """Check that an existing file can be swapped, and change nothing."""

    def locate(self, name: str) -> str:
        """Return the path or URL of a file."""
