"""Folders on S3 and Azure over obstore's store in memory; `tests/engines` has real servers and races."""

import pickle

import obstore
import pytest
from obstore.store import MemoryStore

from pipelines.errors import JobError
from pipelines.storage import object_folder, store_folder
from pipelines.storage.folder import StorageError
from pipelines.storage.store_folder import StoreFolder


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    held = MemoryStore()
    monkeypatch.setattr(store_folder, "open_store", lambda bucket: held)
    return held


@pytest.fixture
def folder(store) -> StoreFolder:
    return StoreFolder("s3://b/out")


def test_a_file_is_created_once(folder, store):
    assert folder.read("f") is None
    assert folder.size("f") is None
    assert folder.create("f", b"one")
    assert not folder.create("f", b"two")
    assert folder.create("f", b"one"), "an earlier try of the same call may have written it"
    assert (folder.read("f"), folder.size("f")) == (b"one", 3)
    assert bytes(obstore.get(store, "out/f").bytes()) == b"one"


def test_a_swap_needs_what_was_seen(folder):
    assert not folder.swap("f", b"one", b"two")
    folder.create("f", b"one")
    assert folder.swap("f", b"one", b"two")
    assert not folder.swap("f", b"one", b"three")
    folder.replace("f", b"four")
    folder.replace("g", b"five")
    assert (folder.read("f"), folder.read("g")) == (b"four", b"five")


def changed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another writer change a file between the next look at it and what follows the look."""
    see, others = StoreFolder.see, [b"other"]

    def seen_and_then_changed(self, name):
        found = see(self, name)
        if others:
            folder_of_another = StoreFolder("s3://b/out")
            assert folder_of_another.write(name, others.pop(), found[1])
        return found

    monkeypatch.setattr(StoreFolder, "see", seen_and_then_changed)


def test_a_write_between_look_and_swap_wins(folder, monkeypatch):
    folder.create("f", b"one")
    changed_meanwhile(monkeypatch)
    assert not folder.swap("f", b"one", b"two")
    assert folder.read("f") == b"other"


def test_a_file_is_replaced_whoever_writes_meanwhile(folder, monkeypatch):
    folder.create("f", b"one")
    changed_meanwhile(monkeypatch)
    folder.replace("f", b"two")
    assert folder.read("f") == b"two"


def test_a_swap_whose_answer_was_lost_has_swapped(folder, monkeypatch):
    """A second try of the write then fails, because the object has another version by now."""
    folder.create("f", b"one")
    write = StoreFolder.write

    def written_twice(self, *given):
        return write(self, *given) and write(self, *given)

    monkeypatch.setattr(StoreFolder, "write", written_twice)
    assert folder.swap("f", b"one", b"two")
    assert not folder.swap("f", b"one", b"three")
    assert folder.read("f") == b"two"


def test_an_object_without_a_hash_that_arrives_in_part_is_read_again(folder, store, monkeypatch):
    """Of another program, whose objects have no hash of ours: their size tells."""
    obstore.put(store, "out/f", b"of another program")
    get, parts = obstore.get, [b"of another", b""]

    class Part:
        def __init__(self, found, data):
            self.meta, self.attributes, self.data = found.meta, found.attributes, data

        def bytes(self):
            return self.data

    def cut(*given):
        found = get(*given)
        return Part(found, parts.pop()) if parts else found

    monkeypatch.setattr(obstore, "get", cut)
    assert folder.read("f") == b"of another program"
    assert not parts


def test_a_preparation_leaves_nothing(folder, store):
    folder.prepare()
    folder.prepare_swap("f")
    assert list(obstore.list(store)) == []


def test_a_server_that_ignores_preconditions_is_refused(folder, monkeypatch):
    put = obstore.put

    def careless(*given, mode, **named):
        return put(*given, **named)

    monkeypatch.setattr(obstore, "put", careless)
    with pytest.raises(JobError, match=r"s3://b/out: the server ignores preconditions \(If-Match\).*\.$"):
        folder.prepare()


def test_what_arrives_is_compared_with_what_was_sent(folder, store, monkeypatch):
    monkeypatch.setattr(object_folder, "WAIT", 0.2)
    folder.create("f", b"one")
    sent = dict(obstore.get(store, "out/f").attributes)
    assert sent["Content-Type"] == "application/octet-stream"
    obstore.put(store, "out/f", b"two", attributes=sent)
    with pytest.raises(StorageError, match="could not be downloaded undamaged within 0 s: size or SHA-256"):
        folder.read("f")
    obstore.put(store, "out/f", b"of another program")
    assert folder.read("f") == b"of another program"


def test_a_worker_opens_it_from_its_url(folder):
    folder.create("f", b"one")
    sent = pickle.dumps(folder)
    assert len(sent) < 200, "no client and no secret"
    assert pickle.loads(sent).read("f") == b"one"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("s3:///folder", r"s3:///folder has no bucket: give s3://bucket/folder\."),
        ("az://", r"az:// has no bucket: give az://bucket/folder\."),
    ],
)
def test_a_url_names_a_bucket(path, says):
    with pytest.raises(JobError, match=says):
        StoreFolder(path)


def test_a_name_that_no_store_can_hold(folder):
    for path in ("s3://b/a//b", "s3://b//a"):
        with pytest.raises(JobError, match="is not a path: a name between two slashes is empty"):
            StoreFolder(path).read("f")
