"""Folders on S3 and Azure. Conditional writes on the ETag exclude concurrent writers."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from pipelines.errors import JobError
from pipelines.storage.folder import StorageError
from pipelines.storage.object_folder import ObjectFolder, content_type, tries
from transforms.object_store import (
    StoreError,
    explained,
    is_missing_bucket,
    open_store,
    status_of,
    store_error,
)
from transforms.schemes import split_scheme

_DIGEST = "sha256"
"""Metadata of an object: the hash of what was sent."""

_NO_PATH = "is not a path: a name between two slashes is empty or not allowed."


@dataclass(frozen=True)
class StoreFolder(ObjectFolder):
    """A folder of S3 or Azure; see `ObjectFolder`.

    The version is the ETag. Two contents of an object never have the same one, so that a write with If-Match
    replaces what was seen and nothing else, and with If-None-Match it replaces nothing. Each object carries
    the SHA-256 of what was sent. It is compared with what arrives.
    """

    never: ClassVar[str] = '"0"'

    def __post_init__(self) -> None:
        super().__post_init__()
        if f"{self.bucket}//" in self.path:
            raise JobError(f"{self.path} {_NO_PATH}")  # obstore would leave a slash out

    def size(self, name: str) -> int | None:
        """See `Folder.size`."""
        with self._explained():
            try:
                return int(obstore.head(self._store(), self.key(name))["size"])
            except FileNotFoundError:
                self._check_bucket()
                return None

    def see(self, name: str) -> tuple[bytes, str] | None:
        """See `ObjectFolder.see`."""
        with self._explained():
            for _ in tries():
                try:
                    found = obstore.get(self._store(), self.key(name))
                    data = bytes(found.bytes())
                except FileNotFoundError as error:
                    if is_missing_bucket(error):
                        raise
                    return None
                sent = dict(found.attributes).get(_DIGEST)
                whole = len(data) == found.meta["size"]
                if whole and sent in (None, hashlib.sha256(data).hexdigest()):
                    return data, str(found.meta["e_tag"])
        raise self.damaged(name, "SHA-256")

    def write(self, name: str, data: bytes, version: str | None) -> bool:
        """See `ObjectFolder.write`."""
        mode: Any = "create" if version is None else {"e_tag": version}
        attributes = {"Content-Type": content_type(name), _DIGEST: hashlib.sha256(data).hexdigest()}
        with self._explained():
            for _ in tries():
                try:
                    obstore.put(self._store(), self.key(name), data, mode=mode, attributes=attributes)
                    return True
                except (AlreadyExistsError, PreconditionError) as error:
                    if is_missing_bucket(error):
                        raise
                    return False
                except BaseError as error:
                    if status_of(error) is not None:
                        raise
                    failed = error  # nobody knows whether it was written: the same condition tells
            raise failed

    def _store(self) -> Any:
        scheme, _ = split_scheme(self.path)
        return open_store(scheme + self.bucket)

    def _check_bucket(self) -> None:
        """Raise FileNotFoundError if the bucket is missing: the answer to a HEAD request does not say so."""
        try:
            next(iter(obstore.list(self._store(), self.key("") or None)), None)
        except BaseError as error:
            if status_of(error) != 403:  # an account without permission to list skips this check
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Translate errors of storage to a JobError or StorageError that names the bucket."""
        try:
            with explained(self.path):
                yield
        except FileNotFoundError as error:
            raise JobError(f"{self.path}: {store_error(self.path, error).sentence}.") from None
        except StoreError as error:
            raise (JobError if error.ours else StorageError)(f"{self.path}: {error.sentence}.") from None
        except ValueError:
            raise JobError(f"{self.path} {_NO_PATH}") from None
