"""Folders on Google Cloud Storage, with preconditions on the generation."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import google_crc32c
import requests
from google.api_core import exceptions
from google.api_core.retry import Retry
from google.auth.exceptions import GoogleAuthError, InvalidOperation, RefreshError
from google.cloud import storage  # type: ignore[attr-defined]
from google.cloud.storage.exceptions import DataCorruption
from google.cloud.storage.retry import DEFAULT_RETRY

from pipelines.errors import JobError
from pipelines.storage import object_folder
from pipelines.storage.folder import StorageError
from pipelines.storage.object_folder import ObjectFolder, content_type, tries

_CHUNK_SECONDS = 30.0
_ROLE = "roles/storage.objectUser"


@cache
def _client() -> storage.Client:
    return storage.Client()


def _retry() -> Retry:
    return DEFAULT_RETRY.with_delay(initial=0.2, maximum=10.0, multiplier=2.0).with_timeout(
        object_folder.WAIT
    )


def _size_and_checksum(data: bytes) -> tuple[int, str]:
    """Return the size and CRC32C that storage reports for an object of this content."""
    return len(data), base64.b64encode(google_crc32c.Checksum(data).digest()).decode()


@dataclass(frozen=True)
class GoogleFolder(ObjectFolder):
    """A folder of Google Cloud Storage; see `ObjectFolder`.

    The version is the generation. A write succeeds only if size and CRC32C of the stored object are as sent.
    """

    never: ClassVar[str] = "1"

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

    def see(self, name: str) -> tuple[bytes, str] | None:
        """See `ObjectFolder.see`.

        Size and CRC32C of the bytes are checked here, because the client library does not check a download
        that was interrupted and resumed.
        """
        with self._explained():
            for _ in tries():
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
                        return data, str(generation)
                except (exceptions.PreconditionFailed, DataCorruption):
                    pass  # the object was changed meanwhile, or the download is damaged
                except exceptions.NotFound:
                    self._check_bucket()
                    return None
        raise self.damaged(name, "CRC32C")

    def write(self, name: str, data: bytes, version: str | None) -> bool:
        """See `ObjectFolder.write`."""
        with self._explained():
            blob = self._blob(name)
            try:
                blob.upload_from_string(
                    data,
                    content_type=content_type(name),
                    checksum="crc32c",
                    if_generation_match=int(version or 0),
                    timeout=_CHUNK_SECONDS,
                    retry=_retry(),
                )
            except exceptions.PreconditionFailed:
                return False
        if (blob.size, blob.crc32c) != _size_and_checksum(data):
            raise StorageError(f"{self.locate(name)} was not stored as sent: size or CRC32C differs.")
        return True

    def _bucket(self) -> storage.Bucket:
        return _client().bucket(self.bucket)

    def _blob(self, name: str) -> storage.Blob:
        return self._bucket().blob(self.key(name))

    def _check_bucket(self) -> None:
        """Raise NotFound if the bucket is missing; a missing object in an existing bucket is no error.

        An account without permission to list the bucket skips this check.
        """
        with suppress(exceptions.Forbidden):
            next(iter(_client().list_blobs(self._bucket(), max_results=1, retry=_retry())), None)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Translate errors of storage to a JobError or StorageError that names the bucket."""
        bucket = f"{self.path}: bucket {self.bucket}"
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
            raise StorageError(f"{bucket} did not respond ({kind}), also when it was asked again.") from None
