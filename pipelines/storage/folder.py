"""A place for files, which are written whole or not at all, whatever kind of storage it is on."""

from typing import Protocol

from core.errors import ShoalError

GCS = "gs://"


class StorageError(ShoalError, RuntimeError):
    """Storage failed for a reason that is not the job's; the text holds nothing that depends on rows."""


class Folder(Protocol):
    """A place for files. Values that name it travel to workers, so it is small and picklable.

    Every method raises JobError where the job names a place that isn't there or isn't allowed, and
    StorageError where storage keeps failing.
    """

    def read(self, name: str) -> bytes | None:
        """Return the file's bytes, or None where there is no such file."""

    def size(self, name: str) -> int | None:
        """Return the file's size in bytes, or None where there is no such file; only files have one."""

    def create(self, name: str, data: bytes) -> bool:
        """Write the file whole, unless there is one; return whether this call wrote it."""

    def replace(self, name: str, data: bytes) -> None:
        """Write the file whole, whether or not there is one."""

    def swap(self, name: str, seen: bytes, data: bytes) -> bool:
        """Write the file whole if it still holds `seen`; return whether it now holds `data`."""

    def sweep(self, name: str) -> None:
        """Remove what writers that were killed may have left of the file, which is there."""

    def prepare(self) -> None:
        """Check that files can be created here, and leave no trace."""

    def locate(self, name: str) -> str:
        """Return what a person opens to see the file."""
