"""What lies in a bucket, beside the code that is tested."""

import itertools

import obstore
from google.cloud import storage

from pipelines.storage import google_folder
from tests.engines.services import Azurite, FakeGcs, ObjectServer, Versity
from transforms import list_files, object_store

SERVERS = {"gs": FakeGcs, "s3": Versity, "az": Azurite}
"""A real server for each kind of object storage."""

_numbers = itertools.count()


class Bucket:
    """A bucket, as the client of its kind shows it.

    Args:
        root: its URL.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.name = root.partition("://")[2]

    def put(self, name: str, data: bytes) -> None:
        """Write an object."""
        raise NotImplementedError

    def get(self, name: str) -> bytes:
        """Return the bytes of an object."""
        raise NotImplementedError

    def delete(self, name: str) -> None:
        """Remove an object."""
        raise NotImplementedError

    def names(self) -> list[str]:
        """Return the names of all objects, sorted."""
        raise NotImplementedError


class GoogleBucket(Bucket):
    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._bucket = storage.Client().bucket(self.name)

    def put(self, name: str, data: bytes) -> None:
        self._bucket.blob(name).upload_from_string(data)

    def get(self, name: str) -> bytes:
        return self._bucket.blob(name).download_as_bytes()

    def delete(self, name: str) -> None:
        self._bucket.blob(name).delete()

    def names(self) -> list[str]:
        return sorted(blob.name for blob in self._bucket.list_blobs())


class StoreBucket(Bucket):
    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._store = object_store.open_store(root)

    def put(self, name: str, data: bytes) -> None:
        obstore.put(self._store, name, data)

    def get(self, name: str) -> bytes:
        return bytes(obstore.get(self._store, name).bytes())

    def delete(self, name: str) -> None:
        obstore.delete(self._store, name)

    def names(self) -> list[str]:
        return sorted(each["path"] for some in obstore.list(self._store) for each in some)


def open_bucket(root: str) -> Bucket:
    """Return the bucket at a URL, which this process must be able to find."""
    return (GoogleBucket if root.startswith("gs://") else StoreBucket)(root)


def new_bucket(server: ObjectServer) -> str:
    """Make a bucket on a server; return its URL."""
    name = f"bucket-{next(_numbers)}"
    server.create_bucket(name)
    return server.scheme + name


def forget_clients() -> None:
    """Make this process look at its environment again."""
    for opened in (google_folder._client, list_files._google, object_store.open_store):
        opened.cache_clear()
