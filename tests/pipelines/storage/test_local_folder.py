"""Local folders: links, rights and faults of the system."""

import errno
import os
from pathlib import Path

import pytest

from pipelines.errors import JobError
from pipelines.storage.folder import StorageError
from pipelines.storage.local_folder import LocalFolder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "place"


@pytest.fixture
def folder(place: Path) -> LocalFolder:
    return LocalFolder(str(place))


def test_a_swap_through_links_changes_the_one_file(folder, place, tmp_path):
    folder.create("file", b"one")
    (place / "link").symlink_to("file")
    (tmp_path / "way").symlink_to(place)
    (tmp_path / "far").symlink_to(tmp_path / "way" / "link")
    assert folder.swap("link", b"one", b"two")
    assert LocalFolder(str(tmp_path / "way")).swap("file", b"two", b"three")
    assert LocalFolder(str(tmp_path)).swap("far", b"three", b"four")
    LocalFolder(str(tmp_path)).replace("far", b"five")
    assert (place / "file").read_bytes() == b"five"
    assert (tmp_path / "far").is_symlink()
    assert (place / "link").is_symlink()
    assert sorted(os.listdir(place)) == ["file", "link"]
    assert sorted(os.listdir(tmp_path)) == ["far", "place", "way"]


@pytest.mark.parametrize("device", ["zero", "full", "null"])
def test_a_device_is_not_read(device):
    """Some have no end."""
    for look in (LocalFolder("/dev").read, LocalFolder("/dev").size):
        with pytest.raises(JobError, match=rf"/dev/{device} is not a regular file: give the path of one"):
            look(device)


@pytest.mark.timeout(20)
def test_a_pipe_is_not_waited_for(folder, place):
    place.mkdir()
    os.mkfifo(place / "pipe")
    for look in (folder.read, folder.size):
        with pytest.raises(JobError, match="pipe is not a regular file"):
            look("pipe")


def test_links_that_lead_nowhere_are_refused(folder, place, tmp_path):
    place.mkdir()
    (place / "link").symlink_to("missing")
    (place / "loop").symlink_to("loop")
    (tmp_path / "way").symlink_to(tmp_path / "gone")
    for attempt in (
        lambda: folder.create("link", b""),
        lambda: folder.replace("link", b""),
        lambda: folder.create("loop", b""),
        lambda: LocalFolder(str(tmp_path / "way")).create("file", b""),
        lambda: LocalFolder(str(tmp_path / "way" / "below")).prepare(),
    ):
        with pytest.raises(JobError, match="remove the link"):
            attempt()
    assert not (place / "missing").exists()
    assert not (tmp_path / "gone").exists()


def test_a_file_of_several_names_is_not_swapped(folder, place):
    folder.create("file", b"one")
    os.link(place / "file", place / "other")
    with pytest.raises(JobError, match="has 2 hard links"):
        folder.swap("file", b"one", b"two")
    assert folder.read("other") == folder.read("file") == b"one"
    (place / "other").unlink()
    assert folder.swap("file", b"one", b"two")


def test_the_draft_of_a_killed_writer_is_no_other_name_of_the_file(folder, place):
    """On a file system without unnamed files, a writer may be killed after its draft has got its name."""
    folder.create("file", b"one")
    (place / ".file.staging").mkdir(0o700)
    os.link(place / "file", place / ".file.staging" / "draft")
    assert folder.swap("file", b"one", b"two")
    assert sorted(os.listdir(place)) == [".file.lock", "file"]
    assert folder.read("file") == b"two"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.EIO])
@pytest.mark.parametrize("call", ["read", "create", "replace", "swap"])
def test_trouble_of_the_system_is_not_the_jobs(folder, monkeypatch, number, call):
    """One sentence with the system's word, which ends a run with exit code 1."""
    folder.create("file", b"one")
    path = folder.locate("file")

    def fail(*arguments, **named):
        raise OSError(number, os.strerror(number), path)

    attempts = {
        "read": lambda: folder.read("file"),
        "create": lambda: folder.create("other", b""),
        "replace": lambda: folder.replace("file", b""),
        "swap": lambda: folder.swap("file", b"one", b""),
    }
    with monkeypatch.context() as broken:
        broken.setattr("builtins.open", fail)
        with pytest.raises(StorageError, match=rf"(read|written) \({os.strerror(number)}\).*\.$"):
            attempts[call]()
    assert folder.read("file") == b"one"
    assert os.listdir(folder.path) in (["file"], [".file.lock", "file"], ["file", ".file.lock"])


@pytest.mark.parametrize(("call", "allowed"), [("read", "read it"), ("create", "write it and to its folder")])
def test_a_denied_path_stays_the_right_one(folder, place, monkeypatch, call, allowed):
    """A ledger at another path would be another budget."""

    def deny(*arguments, **named):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(
        "builtins.open" if call == "read" else "pipelines.storage.local_folder.create_file", deny
    )
    with pytest.raises(JobError, match=rf"\(Permission denied\): let this account {allowed}\.$"):
        folder.read("file") if call == "read" else folder.create("file", b"")


def test_a_path_that_holds_no_file_is_the_jobs(folder, place):
    place.mkdir()
    (place / "below").mkdir()
    (place / "loop").symlink_to("loop")
    assert folder.read("missing") is None
    assert LocalFolder(str(place / "missing" / "more")).read("file") is None
    for name, why in (("below", "Is a directory"), ("loop", "symbolic links"), ("x" * 300, "too long")):
        with pytest.raises(JobError, match=rf"cannot be read \(.*{why}.*\): give another path\.$"):
            folder.read(name)
    (place / "file").write_text("")
    with pytest.raises(JobError, match=r"cannot be written \(File exists\)"):
        LocalFolder(str(place / "file")).create("below", b"")
    with pytest.raises(JobError, match=r"cannot be written \(File name too long\): give another path\.$"):
        LocalFolder(str(place) + "/d" * 2500).create("file", b"")


def test_what_cannot_be_prepared(folder, monkeypatch):
    opens = os.open

    def failing(number):
        def fail(path, flags, *arguments, **named):
            if flags & os.O_CREAT or flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(number, os.strerror(number))
            return opens(path, flags, *arguments, **named)

        return fail

    for number, kind in ((errno.EROFS, JobError), (errno.EACCES, JobError), (errno.ENOSPC, StorageError)):
        with monkeypatch.context() as broken:
            broken.setattr(os, "open", failing(number))
            with pytest.raises(kind, match=rf"no file can be created there \({os.strerror(number)}\)"):
                folder.prepare()
    folder.prepare()
    assert not os.path.exists(folder.path)


def test_a_file_is_prepared_for_a_swap_with_its_folder(folder, place, monkeypatch):
    """A swap makes a file there, so that a ledger in a folder that is read-only cannot be charged."""
    folder.create("file", b"one")
    folder.prepare_swap("file")

    def deny(where):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), where)

    monkeypatch.setattr("pipelines.storage.local_folder.try_folder", deny)
    with pytest.raises(JobError, match=r"file cannot be written \(Permission denied\): let this account"):
        folder.prepare_swap("file")


def test_a_file_that_may_not_be_written_is_not_swapped_though_its_folder_may(folder, place, monkeypatch):
    """A rename would do it, and whoever denied the file meant to keep it."""
    folder.create("file", b"one")
    opened = os.open

    def deny(where, flags, *given, **named):
        if str(where).endswith("file") and flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), where)
        return opened(where, flags, *given, **named)

    monkeypatch.setattr(os, "open", deny)
    for swap in (lambda: folder.swap("file", b"one", b"two"), lambda: folder.prepare_swap("file")):
        with pytest.raises(JobError, match=r"file cannot be written \(Permission denied\): let this account"):
            swap()
    assert folder.read("file") == b"one"


def test_what_killed_writers_left_is_swept(folder, place):
    folder.create("file", b"one")
    (place / ".file.staging").mkdir(0o700)
    (place / ".file.staging" / "draft").write_bytes(b"two")
    (place / ".file.draft").write_bytes(b"three")
    (place / ".file.lock").touch()
    (place / ".other").touch()
    folder.sweep("file")
    assert sorted(os.listdir(place)) == [".other", "file"]


def test_a_swap_compares_every_byte(tmp_path: Path) -> None:
    """Ledgers begin alike: one that others have charged meanwhile differs at its end."""
    folder, content = LocalFolder(str(tmp_path)), b"x" * 10_000
    assert folder.create("ledger.json", content)
    for seen in (content[:-1], content + b"x", content[:-1] + b"y", b"y" + content[1:], b""):
        assert not folder.swap("ledger.json", seen, b"other")
        assert folder.read("ledger.json") == content
    assert folder.swap("ledger.json", content, b"other")
