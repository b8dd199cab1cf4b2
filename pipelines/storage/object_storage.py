"""Folders on Google Cloud Storage. Preconditions on the generation exclude concurrent writers."""

import base64
import posixpath
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache

import google_crc32c
import requests
from google.api_core import exceptions
from google.api_core.retry import Retry
from google.auth.exceptions import GoogleAuthError, InvalidOperation, RefreshError
from google.cloud import storage  # type: ignore[attr-defined]
from google.cloud.storage.exceptions import DataCorruption
from google.cloud.storage.retry import DEFAULT_RETRY

from pipelines.errors import JobError
from pipelines.storage.folder import GCS, StorageError

_WAIT = 120.0
"""Seconds for which a request is retried with growing pauses, on 408, 429, 5xx, broken connections and
damaged downloads."""

_NO_GENERATION = 1
_CHUNK_SECONDS = 30.0
_ROLE = "roles/storage.objectUser"
_UPLOAD_TYPES = {".json": "application/json", ".html": "text/html; charset=utf-8"}


@cache
def _client() -> storage.Client:
    return storage.Client()


def _retry() -> Retry:
    return DEFAULT_RETRY.with_delay(initial=0.2, maximum=10.0, multiplier=2.0).with_timeout(_WAIT)


def _size_and_checksum(data: bytes) -> tuple[int, str]:
    """Return the size and CRC32C that storage reports for an object of this content."""
    return len(data), base64.b64encode(google_crc32c.Checksum(data).digest()).decode()


@dataclass(frozen=True)
class ObjectFolder:
    """A folder of Google Cloud Storage: the objects whose names have its prefix.

    Every write names the generation that it replaces, so it can be repeated safely. A write succeeds only if
    size and CRC32C of the stored object are as sent. Objects are written atomically: an interrupted upload
    leaves nothing that can be listed or read.

    Args:
        path: `gs://bucket/prefix`, without a slash at the end.
    """

    path: str

    def __post_init__(self) -> None:
        if not self._bucket_name:
            raise JobError(f"{self.path} has no bucket: give gs://bucket/folder.")

    def read(self, name: str) -> bytes | None:
        """See `Folder.read`."""
        found = self._see(name)
        return None if found is None else found[0]

    def size(self, name: str) -> int | None:
        """See `Folder.size`."""
        with self._explained():
            blob = self._blob(name)
            try:
                blob.reload(timeout=_CHUNK_SECONDS, retry=_retry())
            except exceptions.NotFound:
                self._check_bucket()
                return None
            return int(blob.size)

    def create(self, name: str, data: bytes) -> bool:
        """See `Folder.create`."""
        # an earlier try may have written it, although its response was lost
        return self._upload(name, data, 0) or self.read(name) == data

    def replace(self, name: str, data: bytes) -> None:
        """See `Folder.replace`."""
        found = self._see(name)
        while not self._upload(name, data, 0 if found is None else found[1]):
            found = self._see(name)

    def swap(self, name: str, seen: bytes, data: bytes) -> bool:
        """See `Folder.swap`."""
        found = self._see(name)
        if found is None or found[0] != seen:
            return False
        return self._upload(name, data, found[1]) or self.read(name) == data

    def sweep(self, name: str) -> None:
        """See `Folder.sweep`: an interrupted upload leaves no object."""

    def prepare(self) -> None:
        """See `Folder.prepare`: a write to an impossible generation fails, but checks the permission."""
        self._upload(".probe", b"", _NO_GENERATION)

    def prepare_swap(self, name: str) -> None:
        """See `Folder.prepare_swap`."""
        self.prepare()

    def locate(self, name: str) -> str:
        """See `Folder.locate`."""
        return posixpath.join(self.path, name)

    @property
    def _bucket_name(self) -> str:
        return self.path.removeprefix(GCS).partition("/")[0]

    def _bucket(self) -> storage.Bucket:
        return _client().bucket(self._bucket_name)

    def _blob(self, name: str) -> storage.Blob:
        return self._bucket().blob(self.locate(name).removeprefix(f"{GCS}{self._bucket_name}/"))

    def _see(self, name: str) -> tuple[bytes, int] | None:
        """Return the bytes of an object and their generation, or None if it does not exist.

        Size and CRC32C of the bytes are checked here, because the client library does not check a download
        that was interrupted and resumed.
        """
        with self._explained():
            end, pause = time.monotonic() + _WAIT, 0.1
            while True:
                blob = self._blob(name)
                try:
                    blob.reload(timeout=_CHUNK_SECONDS, retry=_retry())
                    generation, stored = int(blob.generation), (blob.size, blob.crc32c)
                    data = blob.download_as_bytes(
                        if_generation_match=generation,
                        checksum="crc32c",
                        timeout=_CHUNK_SECONDS,
                        retry=_retry(),
                    )
                    if _size_and_checksum(data) == stored:
                        return data, generation
                except (exceptions.PreconditionFailed, DataCorruption):
                    pass  # the object was changed meanwhile, or the download is damaged
                except exceptions.NotFound:
                    self._check_bucket()
                    return None
                if time.monotonic() > end:
                    raise StorageError(
                        f"{self.locate(name)} could not be downloaded undamaged within {_WAIT:.0f} s: size "
                        "or CRC32C differs."
                    )
                time.sleep(pause)
                pause = min(2.0 * pause, 10.0)

    def _check_bucket(self) -> None:
        """Raise NotFound if the bucket is missing; a missing object in an existing bucket is no error.

        An account without permission to list the bucket skips this check.
        """
        with suppress(exceptions.Forbidden):
            next(iter(_client().list_blobs(self._bucket(), max_results=1, retry=_retry())), None)

    def _upload(self, name: str, data: bytes, generation: int) -> bool:
        """Write an object if its generation is still `generation`; return whether it was."""
        kind = _UPLOAD_TYPES.get(posixpath.splitext(name)[1], "application/octet-stream")
        with self._explained():
            blob = self._blob(name)
            try:
                blob.upload_from_string(
                    data,
                    content_type=kind,
                    checksum="crc32c",
                    if_generation_match=generation,
                    timeout=_CHUNK_SECONDS,
                    retry=_retry(),
                )
            except exceptions.PreconditionFailed:
                return False
        if (blob.size, blob.crc32c) != _size_and_checksum(data):
            raise StorageError(f"{self.locate(name)} was not stored as sent: size or CRC32C differs.")
        return True

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Translate errors of storage to a JobError or StorageError that names the bucket."""
        bucket = f"{self.path}: bucket {self._bucket_name}"
        try:
            yield
        except (
            exceptions.Unauthorized,
            RefreshError,
            InvalidOperation,
        ):  # the latter two also stand for a 401
            raise JobError(f"{bucket} refuses the credentials (401): give valid ones.") from None
        except exceptions.Forbidden:
            raise JobError(f"{bucket} denies access (403): grant {_ROLE} to this account.") from None
        except exceptions.NotFound:
            raise JobError(f"{bucket} does not exist (404): create it, or give another bucket.") from None
        except GoogleAuthError:
            raise JobError(
                f"{bucket} needs credentials, but none were found: set GOOGLE_APPLICATION_CREDENTIALS or run "
                "gcloud auth application-default login."
            ) from None
        except (exceptions.GoogleAPIError, requests.RequestException, OSError) as error:
            kind = type(error).__name__
            raise StorageError(f"{bucket} did not respond within {_WAIT:.0f} s ({kind}).") from None
