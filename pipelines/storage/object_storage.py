"""Folders on Google Cloud Storage: preconditions on an object's generation keep writers from each other."""

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
"""Seconds for which a request is tried again, ever more slowly, on 408, 429, 5xx, broken connections and
downloads that arrive damaged."""

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
    """Return what storage says of an object that holds `data`."""
    return len(data), base64.b64encode(google_crc32c.Checksum(data).digest()).decode()


@dataclass(frozen=True)
class ObjectFolder:
    """A folder of Google Cloud Storage: the objects whose names begin with its own.

    Every write names the generation that it replaces, so it can be repeated without harm, and none is
    called done before size and CRC32C of what is stored are those of what was sent. An object is there whole
    or not at all, and an upload that breaks off leaves nothing that anybody could list or read.

    Args:
        path: `gs://bucket/prefix`, without a slash at the end.
    """

    path: str

    def __post_init__(self) -> None:
        if not self._bucket_name:
            raise JobError(f"{self.path} names no bucket: give gs://bucket/folder.")

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
        # what was sent may be there by a first try, whose answer was lost
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
        """See `Folder.sweep`: uploads that broke off are no objects."""

    def prepare(self) -> None:
        """See `Folder.prepare`: a write to a generation that no object has is allowed or not, and fails."""
        self._upload(".probe", b"", _NO_GENERATION)

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
        """Return an object's bytes and their generation, or None where there is none.

        The bytes are compared with what storage says of the object: the client library does not do that for
        a download that broke off and was continued.
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
                    pass  # another write came between, or it arrived damaged
                except exceptions.NotFound:
                    self._check_bucket()
                    return None
                if time.monotonic() > end:
                    raise StorageError(
                        f"{self.locate(name)} did not arrive as it is stored in {_WAIT:.0f} s: size or "
                        "CRC32C differs."
                    )
                time.sleep(pause)
                pause = min(2.0 * pause, 10.0)

    def _check_bucket(self) -> None:
        """Tell a missing object, which is no error, from a missing bucket.

        An account may be barred from looking at the bucket itself, and then need not look.
        """
        with suppress(exceptions.Forbidden):
            next(iter(_client().list_blobs(self._bucket(), max_results=1, retry=_retry())), None)

    def _upload(self, name: str, data: bytes, generation: int) -> bool:
        """Write an object whose generation still is `generation`; return whether it was."""
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
            raise StorageError(f"{self.locate(name)} is not stored as it was sent: size or CRC32C differs.")
        return True

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in a sentence what storage answered: which bucket, and what is missing."""
        bucket = f"{self.path}: bucket {self._bucket_name}"
        try:
            yield
        except (exceptions.Unauthorized, RefreshError, InvalidOperation):  # the latter two answer a 401
            raise JobError(f"{bucket} does not know who asks (401): give valid credentials.") from None
        except exceptions.Forbidden:
            raise JobError(f"{bucket} does not allow it (403): grant {_ROLE} to this account.") from None
        except exceptions.NotFound:
            raise JobError(f"{bucket} does not exist (404): create it, or give another.") from None
        except GoogleAuthError:
            raise JobError(
                f"{bucket} needs credentials, and none were found: set GOOGLE_APPLICATION_CREDENTIALS or run "
                "gcloud auth application-default login."
            ) from None
        except (exceptions.GoogleAPIError, requests.RequestException, OSError) as error:
            kind = type(error).__name__
            raise StorageError(f"{bucket} did not answer in {_WAIT:.0f} s ({kind}).") from None
