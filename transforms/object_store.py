"""Files of S3 and Azure, through obstore: one client for both, which finds credentials in the environment.

A store is opened from a URL wherever it is needed, also in workers, so neither a client nor a secret is
pickled. `StoreFiles` has the few methods of pyarrow's file systems that reading and screening use.
"""

import io
import os
import posixpath
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import obstore
import pyarrow as pa
from obstore.exceptions import BaseError
from obstore.store import AzureStore, S3Store
from pyarrow import fs

from transforms.schemes import AZURE, S3, split_scheme

WAIT = timedelta(seconds=120)
"""How long a request is retried with growing pauses, on 408, 429, 5xx and broken connections."""

_REQUEST = timedelta(seconds=300)
"""How long one request may take with its body, which may be a whole table."""

_METADATA = "169.254.169.254"
"""Where a machine of either cloud finds the credentials of its role."""

_GIVE = {
    S3: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    AZURE: "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY",
}
_BUCKETS = {S3: "bucket", AZURE: "container"}
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_REFUSED = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AuthenticationFailed",
    "ExpiredToken",
    "InvalidToken",
)
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_OTHER_REGION = ("AuthorizationHeaderMalformed", "PermanentRedirect", "configured region")


class StoreError(OSError):
    """A request to a store failed.

    Args:
        name: of the bucket, as the beginning of a sentence.
        problem: what it does, as the rest of the sentence, without what a row could say.
        ours: whether the job or the credentials are wrong; otherwise it is a fault of the storage.
    """

    def __init__(self, name: str, problem: str, ours: bool) -> None:
        super().__init__(0, f"the {name} {problem}")
        self.sentence, self.ours = f"{name} {problem}", ours


def is_missing_bucket(error: Exception) -> bool:
    """Return whether a request failed because there is no such bucket, whatever type the error has."""
    return any(code in str(error) for code in _NO_BUCKET)


def status_of(error: Exception) -> int | None:
    """Return the HTTP status with which a request failed, or None without an answer."""
    found = _STATUS.search(str(error))
    return None if found is None else int(found[1])


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Translate the errors of requests to the bucket of `url`, but that of an object that does not exist.

    Raises:
        StoreError: a request failed.
    """
    try:
        yield
    except FileNotFoundError as error:
        if is_missing_bucket(error):
            raise store_error(url, error) from None
        raise
    except BaseError as error:
        raise store_error(url, error) from None


def store_error(url: str, error: Exception) -> StoreError:
    """Return the error that says which bucket did what."""
    scheme, place = split_scheme(url)
    kind = _BUCKETS[scheme]
    name = f"{kind} {place.partition('/')[0]}"
    text, status = str(error), status_of(error)

    def says(*codes: str) -> bool:
        return any(code in text for code in codes)

    if says(_METADATA, "MissingAccount"):
        return StoreError(name, f"needs credentials, but none were found: {_GIVE[scheme]}", True)
    if says("InvalidBucketName", "InvalidResourceName"):
        return StoreError(name, f"has a name that is not allowed: give another {kind}", True)
    if is_missing_bucket(error) or status == 404:
        return StoreError(name, f"does not exist (404): create it, or give another {kind}", True)
    if says(*_OTHER_REGION):
        return StoreError(name, "is in another region: set AWS_REGION to its region", True)
    if status == 401 or says(*_REFUSED):
        return StoreError(name, f"refuses the credentials ({status}): give valid ones", True)
    if status == 403:
        return StoreError(
            name, "denies access (403): check the key, and let its account list, read and write there", True
        )
    if status is not None and status not in (408, 429) and status < 500:
        return StoreError(name, f"refuses a request ({status})", False)
    why = "no connection" if status is None else str(status)
    return StoreError(name, f"did not respond ({why}), also when it was asked again", False)


@cache
def open_store(bucket: str) -> Any:
    """Return the store of a bucket such as `s3://name`.

    Credentials and endpoints come from the environment: `AWS_*` and `AZURE_*` as obstore documents them, and
    `AZURE_STORAGE_CONNECTION_STRING`, `AZURE_STORAGE_ACCOUNT` and `AZURE_STORAGE_KEY`. An endpoint that is
    given with `http://` is taken as it is given.

    Raises:
        StoreError: there are no credentials.
    """
    scheme, name = split_scheme(bucket)
    settings = azure_settings(os.environ) if scheme == AZURE else {}
    endpoints = [settings.get("endpoint"), *map(os.environ.get, _ENDPOINTS[scheme])]
    plain = any(each is not None and each.startswith("http://") for each in endpoints)
    if not any(os.environ.get(variable) for variable in _IDENTITIES[scheme]) and not settings.keys() & _KEYS:
        _find_metadata(bucket)
    with explained(bucket):
        return (AzureStore if scheme == AZURE else S3Store)(
            name,
            client_options={"timeout": _REQUEST, "allow_http": plain},
            retry_config={"retry_timeout": WAIT, "max_retries": 30},
            **settings,
        )


_ENDPOINTS = {
    S3: ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    AZURE: ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", "AZURITE_BLOB_STORAGE_URL"),
}
_KEYS = {"account_key", "sas_key", "use_emulator"}
_IDENTITIES = {
    S3: (
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_METADATA_ENDPOINT",
        "AWS_SKIP_SIGNATURE",
    ),
    AZURE: (
        *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY"),
        *("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_TOKEN"),
        *("AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"),
        *("AZURE_USE_AZURE_CLI", "AZURE_STORAGE_USE_EMULATOR", "AZURE_SKIP_SIGNATURE"),
        *("AZURE_MSI_ENDPOINT", "AZURE_IDENTITY_ENDPOINT", "IDENTITY_ENDPOINT"),
    ),
}
"""Variables that say who asks. Without them, only the machine itself can have a role."""


def _find_metadata(bucket: str) -> None:
    """Check that this machine may have a role, without the minutes for which obstore would try.

    Raises:
        StoreError: it has none.
    """
    try:
        socket.create_connection((_METADATA, 80), timeout=2).close()
    except OSError:
        raise store_error(bucket, OSError(_METADATA)) from None


def azure_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what the variables of Azure's own clients say that obstore does not read.

    Raises:
        StoreError: the connection string does not say where the account is.
    """
    given = {
        "account_name": environment.get("AZURE_STORAGE_ACCOUNT"),
        "account_key": environment.get("AZURE_STORAGE_KEY"),
    }
    text = environment.get("AZURE_STORAGE_CONNECTION_STRING", "")
    parts = dict(part.partition("=")[::2] for part in text.split(";") if part)
    if parts.get("UseDevelopmentStorage", "").lower() == "true":
        return {"use_emulator": True}
    if parts:
        if not parts.keys() & {"AccountName", "BlobEndpoint"}:
            what = "connection string in AZURE_STORAGE_CONNECTION_STRING"
            raise StoreError(what, "has neither AccountName nor BlobEndpoint: give one of them", True)
        name, host = parts.get("AccountName"), "blob.core.windows.net"
        if "EndpointSuffix" in parts:
            host = f"blob.{parts['EndpointSuffix']}"
        protocol = parts.get("DefaultEndpointsProtocol", "https")
        endpoint = parts.get("BlobEndpoint", f"{protocol}://{name}.{host}").rstrip("/")
        given |= {
            "account_name": name or urlsplit(endpoint).netloc.partition(".")[0],
            "account_key": parts.get("AccountKey"),
            "sas_key": parts.get("SharedAccessSignature"),
            "endpoint": endpoint,
        }
    return {key: value for key, value in given.items() if value}


@dataclass(frozen=True)
class StoreFiles:
    """The files of one kind of store. Paths are `bucket/key`, as in pyarrow's file systems.

    Every method raises StoreError where a request fails, and ValueError where the path is none, such as one
    with an empty part between slashes.

    Args:
        scheme: of the store's URLs.
    """

    scheme: str

    def get_file_info(self, place: str | fs.FileSelector) -> Any:
        """Return what is at a path, or the list of what is below a selected folder.

        An object of no bytes whose name has no ending is no file: consoles and other programs make such
        objects to show an empty folder.
        """
        if not isinstance(place, str):
            return self._below(place.base_dir, place.recursive)
        store, key = self._open(place)
        with explained(self.scheme + place):
            with suppress(FileNotFoundError):  # as also of a bucket that does not exist: the listing tells
                found = obstore.head(store, key) if key else {"size": 0, "path": ""}
                if _is_file(found):
                    return self._file(place, found)
            below = next(iter(obstore.list(store, key or None)), [])
            return fs.FileInfo(place, fs.FileType.Directory if below else fs.FileType.NotFound)

    def version(self, path: str) -> str:
        """Return what changes where a file is written again."""
        store, key = self._open(path)
        with explained(self.scheme + path):
            found = obstore.head(store, key)
            return f"{found['e_tag']} {found['last_modified'].isoformat()}"

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file for reading, of which only the ranges are fetched that are read."""
        store, key = self._open(path)
        return pa.PythonFile(_StoredFile(store, key, self.scheme + path), "r")

    @contextmanager
    def open_output_stream(self, path: str) -> Iterator[Any]:
        """Write a file, which can be seen when the context ends."""
        store, key = self._open(path)
        written = io.BytesIO()
        yield written
        with explained(self.scheme + path):
            obstore.put(store, key, written.getvalue())

    def _open(self, path: str) -> tuple[Any, str]:
        bucket, _, key = path.partition("/")
        if key.startswith("/"):
            raise ValueError(path)  # obstore would leave it out, and so give an object a second name
        return open_store(self.scheme + bucket), key

    def _below(self, path: str, recursive: bool) -> list[fs.FileInfo]:
        store, key = self._open(path)
        bucket = path.partition("/")[0]
        with explained(self.scheme + path):
            if not recursive:
                found = obstore.list_with_delimiter(store, key or None)
                folders = [
                    fs.FileInfo(f"{bucket}/{name}", fs.FileType.Directory)
                    for name in found["common_prefixes"]
                ]
                return folders + self._files(bucket, found["objects"])
            return [file for some in obstore.list(store, key or None) for file in self._files(bucket, some)]

    def _files(self, bucket: str, found: Any) -> list[fs.FileInfo]:
        return [self._file(f"{bucket}/{each['path']}", each) for each in found if _is_file(each)]

    def _file(self, path: str, found: Mapping[str, Any]) -> fs.FileInfo:
        written: datetime = found["last_modified"]
        return fs.FileInfo(path, fs.FileType.File, mtime=written, size=found["size"])


def _is_file(found: Mapping[str, Any]) -> bool:
    return bool(found["size"]) or "." in posixpath.basename(found["path"])


class _StoredFile(io.RawIOBase):
    """An object as a file. All that is read is of one version, that of its opening."""

    def __init__(self, store: Any, key: str, url: str) -> None:
        self._store, self._key, self._url, self._place = store, key, url, 0
        with explained(url):
            found = obstore.head(store, key)
        self._size, self._version = found["size"], found["e_tag"]
        if self._version is None:  # nothing else tells whether the object changes while it is read
            raise StoreError(
                "object", "has no ETag: write it through the server, which then gives it one", True
            )

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = start + offset
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._size, self._place + size)
        if end <= self._place:
            return b""
        wanted: Any = {"range": (self._place, end), "if_match": self._version}
        with explained(self._url):
            data = bytes(obstore.get(self._store, self._key, options=wanted).bytes())
        self._place = end
        return data
