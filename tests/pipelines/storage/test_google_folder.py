"""Folders on Google Cloud Storage over a bucket in memory; `tests/engines` has a real server and races."""

import pickle
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, RefreshError
from google.cloud.storage.exceptions import DataCorruption

from pipelines.errors import JobError
from pipelines.storage import google_folder, object_folder
from pipelines.storage.folder import StorageError
from pipelines.storage.google_folder import GoogleFolder

GENERATIONS = count(7)


@dataclass
class Bucket:
    """Objects by name with their generations, and what goes wrong: errors that the next calls raise.

    Args:
        there: whether the bucket exists.
        listed: whether this account may list it.
        wrong: errors by the name of the call.
        sent: what comes with each call.
    """

    there: bool = True
    listed: bool = True
    objects: dict[str, tuple[bytes, int, str]] = field(default_factory=dict)
    wrong: dict[str, list[Exception]] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)

    def bucket(self, name: str) -> "Bucket":
        assert name == "b"
        return self

    def blob(self, name: str) -> "Blob":
        return Blob(self, name)

    def list_blobs(self, bucket: "Bucket", max_results: int, retry: Any) -> list["Blob"]:
        if not self.listed:
            raise exceptions.Forbidden("list")
        if not self.there:
            raise exceptions.NotFound("bucket")
        return []

    def called(self, call: str, **given: Any) -> None:
        self.sent.append({"call": call, **given})
        if self.wrong.get(call):
            raise self.wrong[call].pop(0)
        if not self.there:
            raise exceptions.NotFound("bucket")


class Blob:
    """What the client library knows of an object."""

    def __init__(self, bucket: Bucket, name: str) -> None:
        self.bucket, self.name = bucket, name
        self.size: int | None = None
        self.crc32c: str | None = None
        self.generation: int | None = None

    def _is_now(self, data: bytes, generation: int) -> None:
        self.size, self.crc32c = google_folder._size_and_checksum(data)
        self.generation = generation

    def reload(self, **given: Any) -> None:
        self.bucket.called("reload", **given)
        if self.name not in self.bucket.objects:
            raise exceptions.NotFound(self.name)
        data, generation, _ = self.bucket.objects[self.name]
        self._is_now(data, generation)

    def download_as_bytes(self, if_generation_match: int, checksum: str, **given: Any) -> bytes:
        data, generation, _ = self.bucket.objects[self.name]
        self.bucket.called("download", **given)
        if generation != if_generation_match:
            raise exceptions.PreconditionFailed(self.name)
        return data

    def upload_from_string(
        self, data: bytes, content_type: str, checksum: str, if_generation_match: int, **given: Any
    ) -> None:
        self.bucket.called("upload", **given)
        _, generation, _ = self.bucket.objects.get(self.name, (b"", 0, ""))
        if generation != if_generation_match:
            raise exceptions.PreconditionFailed(self.name)
        self.bucket.objects[self.name] = data, next(GENERATIONS), content_type
        self._is_now(data, self.bucket.objects[self.name][1])


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    made = Bucket()
    monkeypatch.setattr(google_folder, "_client", lambda: made)
    monkeypatch.setattr(object_folder, "WAIT", 0.2)
    return made


@pytest.fixture
def folder(bucket: Bucket) -> GoogleFolder:
    return GoogleFolder("gs://b/out")


def test_a_file_is_created_once_with_its_type(folder: GoogleFolder, bucket: Bucket) -> None:
    assert folder.read("f.json") is None
    assert folder.size("f.json") is None
    assert folder.create("f.json", b"one")
    assert not folder.create("f.json", b"two")
    assert folder.create("f.json", b"one"), "an earlier try of the same call may have written it"
    assert (folder.read("f.json"), folder.size("f.json")) == (b"one", 3)
    assert {name: each[::2] for name, each in bucket.objects.items()} == {
        "out/f.json": (b"one", "application/json")
    }


def test_a_swap_needs_what_was_seen(folder: GoogleFolder, bucket: Bucket) -> None:
    assert not folder.swap("f", b"one", b"two")
    folder.create("f", b"one")
    seen = folder.see("f")
    assert seen == (b"one", str(bucket.objects["out/f"][1]))
    assert folder.swap("f", b"one", b"two")
    assert not folder.write("f", b"three", seen[1]), "another version is there by now"
    assert not folder.swap("f", b"one", b"three")
    folder.replace("f", b"four")
    assert folder.read("f") == b"four"


def test_a_preparation_leaves_nothing_and_needs_a_bucket(folder: GoogleFolder, bucket: Bucket) -> None:
    folder.prepare()
    folder.prepare_swap("f")
    assert not bucket.objects
    bucket.there = False
    for call in (folder.prepare, lambda: folder.read("f"), lambda: folder.size("f")):
        with pytest.raises(JobError, match=r"gs://b/out: bucket b does not exist \(404\)"):
            call()


def test_who_may_not_list_a_bucket_may_still_find_that_a_file_is_missing(
    folder: GoogleFolder, bucket: Bucket
) -> None:
    bucket.listed = False
    assert (folder.read("f"), folder.size("f")) == (None, None)


@pytest.mark.parametrize("fault", [DataCorruption(None, "damaged"), exceptions.PreconditionFailed("changed")])
def test_what_is_damaged_or_changed_meanwhile_is_read_again(
    folder: GoogleFolder, bucket: Bucket, fault: Exception
) -> None:
    folder.create("f", b"one")
    bucket.wrong["download"] = [fault]
    assert folder.read("f") == b"one"
    bucket.wrong["download"] = [fault] * 99
    with pytest.raises(StorageError, match=r"gs://b/out/f could not be downloaded undamaged .* CRC32C"):
        folder.read("f")


def test_a_part_of_an_object_or_another_one_is_never_taken_for_it(
    folder: GoogleFolder, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client library does not compare what it resumed; sizes and checksums of ours tell."""
    folder.create("f", b"onetwo")
    for arrives in (b"one", b"twoone"):
        with monkeypatch.context() as changed:
            changed.setattr(Blob, "download_as_bytes", lambda blob, sent=arrives, **given: sent)
            with pytest.raises(StorageError, match="undamaged"):
                folder.read("f")
    stored = google_folder._size_and_checksum
    for kept in ((6, "AAAAAA=="), (5, stored(b"twoone")[1])):
        with monkeypatch.context() as changed:
            changed.setattr(
                Blob,
                "_is_now",
                lambda blob, *_, kept=kept: blob.__dict__.update(size=kept[0], crc32c=kept[1], generation=1),
            )
            with pytest.raises(StorageError, match="gs://b/out/g was not stored as sent"):
                folder.create("g", b"twoone")
        bucket.objects.pop("out/g")


ERRORS = [
    (exceptions.Unauthorized("401"), JobError, r"refuses the credentials \(401\)"),
    (RefreshError("401"), JobError, r"refuses the credentials \(401\)"),
    (exceptions.Forbidden("403"), JobError, r"denies access \(403\): grant roles/storage.objectUser"),
    (exceptions.NotFound("404"), JobError, r"does not exist \(404\)"),
    (DefaultCredentialsError("none"), JobError, "needs credentials, but none were found"),
    (exceptions.ServiceUnavailable("503"), StorageError, r"did not respond \(ServiceUnavailable\)"),
    (requests.ConnectionError("refused"), StorageError, r"did not respond \(ConnectionError\)"),
    (TimeoutError("late"), StorageError, r"did not respond \(TimeoutError\)"),
]


@pytest.mark.parametrize(("error", "kind", "says"), ERRORS)
def test_trouble_is_a_sentence_about_the_bucket(
    folder: GoogleFolder, bucket: Bucket, error: Exception, kind: type[Exception], says: str
) -> None:
    """Of the system it is worth another try, of the job it is not."""
    bucket.wrong["upload"] = [error]
    with pytest.raises(kind, match=rf"^gs://b/out: bucket b {says}"):
        folder.create("f", b"one")
    assert not bucket.objects


def test_every_request_is_asked_again_and_not_for_ever(folder: GoogleFolder, bucket: Bucket) -> None:
    folder.create("f", b"one")
    assert (folder.read("f"), folder.size("f")) == (b"one", 3)
    assert {each["call"] for each in bucket.sent} == {"reload", "download", "upload"}
    for each in bucket.sent:
        assert each["timeout"] == 30
        assert each["retry"]._timeout == object_folder.WAIT


def test_a_worker_opens_it_from_its_url(folder: GoogleFolder) -> None:
    folder.create("f", b"one")
    sent = pickle.dumps(folder)
    assert len(sent) < 200, "no client and no secret"
    assert pickle.loads(sent).read("f") == b"one"
