"""Files that appear whole or not at all: no trace before, never with wrong rights, no drafts that pile up."""

import errno
import os
import signal
import stat
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from transforms import whole_file
from transforms.whole_file import create_file, locked, replace_file, sweep, try_folder

A, B, TEAM = 12345, 12346, 12347
"""Two people and their group, for tests that may change who they are."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two other people")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture(params=["unnamed", "named"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system with unnamed files, and one without."""
    if request.param == "named":
        refuse_unnamed(monkeypatch)
    return request.param


def refuse_unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    opens = os.open

    def refusing(path: str, flags: int, *arguments: int, **named: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no unnamed files here")
        return opens(path, flags, *arguments, **named)

    monkeypatch.setattr(os, "open", refusing)


def in_child(act: Callable[[], object], user: int | None = None, umask: int = 0o022) -> int:
    """Run `act` in a process of its own, as a user of the team; return its exit code, or minus its signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.umask(umask)
            if user is not None:
                os.setgroups([TEAM])
                os.setgid(user)
                os.setuid(user)
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_file_is_created_once(place, either):
    path = str(place / "file")
    assert create_file(path, b"one")
    assert not create_file(path, b"two")
    assert Path(path).read_bytes() == b"one"
    assert names(place) == ["file"]
    assert os.stat(path).st_nlink == 1


@pytest.mark.parametrize("length", [245, 249, 255])
def test_a_file_with_a_long_name_can_be_replaced(place, either, length):
    """Beside it are hidden files, whose names would be longer than a name can be."""
    name = "ä" * (length // 2) + "x" * (length % 2)
    path = str(place / name)
    assert create_file(path, b"one")
    with locked(path, kept=True):
        replace_file(path, b"two")
    sweep(path)
    assert Path(path).read_bytes() == b"two" and names(place) == [name]


@pytest.mark.parametrize(
    ("umask", "folder", "expected"),
    [
        (0o022, 0o755, 0o644),
        (0o027, 0o755, 0o640),
        (0o002, 0o775, 0o664),
        (0o022, 0o700, 0o600),
        (0, 0o755, 0o644),
    ],
)
def test_a_new_file_has_the_rights_that_umask_and_folder_give(place, either, umask, folder, expected):
    place.chmod(folder)
    assert in_child(lambda: create_file(str(place / "file"), b"data"), umask=umask) == 0
    assert mode(place / "file") == expected


CALLS = ("open", "mkdir", "fsync", "link", "rename", "unlink", "rmdir", "fchmod", "fchown")


def die_at(number: int) -> None:
    """Kill this process before its call of that number to the system, counted in `whole_file`'s."""
    left = [number]

    def counting(original: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **named)

        return call

    for name in CALLS:
        setattr(os, name, counting(getattr(os, name)))
    writes = whole_file._write
    whole_file._write = counting(lambda file, data: (os.write(file, data[:3]), writes(file, data[3:])))


def every_death(act: Callable[[], object]) -> int:
    """Give the number of calls that `act` makes, having died at each of them; call `look` after each."""
    number = 1
    while in_child(lambda n=number: (die_at(n), act())) == -signal.SIGKILL:
        yield number
        number += 1


def test_a_killed_writer_leaves_the_file_or_nothing_that_others_can_read(place, either):
    path = place / "file"
    deaths = 0
    for deaths in every_death(lambda: create_file(str(path), b"a draw")):  # noqa: B007
        assert not path.exists() or (path.read_bytes(), mode(path)) == (b"a draw", 0o644)
        if either == "unnamed":
            assert names(place) in ([], ["file"])
        for staging in place.glob(".*.staging"):
            assert mode(staging) == 0o700
        assert {hidden.name for hidden in place.glob(".*")} <= {".file.staging", ".file.lock"}
        before = path.read_bytes() if path.exists() else None
        assert create_file(str(path), b"b draw") == (before is None)
        assert path.read_bytes() == (before or b"b draw")
        sweep(str(path))
        assert names(place) == ["file"]
        path.unlink()
    assert deaths >= 4


def test_a_killed_swap_leaves_the_old_file_or_the_new_one(place, either):
    path = place / "ledger"

    def swap() -> None:
        with locked(str(path), kept=True):
            replace_file(str(path), b"new")

    create_file(str(path), b"old")
    path.chmod(0o660)
    deaths = 0
    for deaths in every_death(swap):  # noqa: B007
        assert path.read_bytes() in (b"old", b"new")
        assert mode(path) == 0o660
        for hidden in place.glob(".*"):
            assert mode(hidden) & ~0o660 == 0
        swap()
        assert names(place) == [".ledger.lock", "ledger"]
        assert mode(place / ".ledger.lock") == 0o660
        (place / ".ledger.lock").unlink()
        path.write_bytes(b"old")
    assert deaths >= 8


def test_a_swap_that_fails_leaves_what_was_there(place, monkeypatch):
    create_file(str(place / "file"), b"old")

    def full(file: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(whole_file, "_write", full)
    with pytest.raises(OSError, match="full"), locked(str(place / "file")):
        replace_file(str(place / "file"), b"new")
    with pytest.raises(OSError, match="full"):
        create_file(str(place / "other"), b"new")
    assert names(place) == ["file"]
    assert (place / "file").read_bytes() == b"old"


def test_one_holds_the_lock_at_a_time(place, either):
    """Also where locks are removed after use, so that one waits for a lock that is gone when it gets it."""
    inside, most = [0], [0]

    def enter() -> None:
        for _ in range(50):
            with locked(str(place / "file")):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert names(place) == []


def test_a_lock_is_no_link(place):
    create_file(str(place / "file"), b"data")
    (place / ".file.lock").symlink_to(place / "victim")
    with pytest.raises(OSError, match="symbolic links"), locked(str(place / "file"), kept=True):
        pass
    assert not (place / "victim").exists()


def test_a_folder_is_tried_without_a_trace(place, either):
    try_folder(str(place))
    assert names(place) == []
    with pytest.raises(NotADirectoryError):
        create_file(str(place / "file"), b"")
        try_folder(str(place / "file"))


@pytest.fixture
def shared() -> Iterator[Path]:
    """A setgid folder that a team may write, where everyone may go."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, A, TEAM)
        os.chmod(folder, 0o2775)
        yield Path(folder)


@as_root
def test_a_team_shares_a_file_in_a_setgid_folder(shared, either):
    path = shared / "ledger"

    def swap() -> None:
        with locked(str(path), kept=True):
            replace_file(str(path), b"new")

    assert in_child(lambda: create_file(str(path), b"old"), A) == 0
    path.chmod(0o660)
    for user, umask in ((A, 0o077), (B, 0o077), (A, 0o022), (B, 0)):
        assert in_child(swap, user, umask) == 0
        for file in (path, shared / ".ledger.lock"):
            assert (mode(file), file.stat().st_gid) == (0o660, TEAM)


@as_root
def test_a_lock_from_before_the_file_was_shared_serves_too(shared):
    path = shared / "ledger"

    def swap() -> None:
        with locked(str(path), kept=True):
            replace_file(str(path), b"new")

    assert in_child(lambda: create_file(str(path), b"old"), A) == 0
    assert in_child(swap, A) == 0
    assert mode(shared / ".ledger.lock") == 0o644
    path.chmod(0o664)
    assert in_child(swap, B) == 0


@as_root
def test_a_group_that_cannot_be_kept_gets_no_rights(shared):
    shared.chmod(0o777)  # without setgid
    path = shared / "ledger"
    create_file(str(path), b"old")
    os.chown(path, B, 4242)
    path.chmod(0o660)
    assert in_child(lambda: replace_file(str(path), b"new"), B) == 0
    assert (mode(path), path.stat().st_gid) == (0o600, B)
    os.chown(path, B, 4242)
    path.chmod(0o640)
    replace_file(str(path), b"newer")  # root can keep both
    assert (mode(path), path.stat().st_uid, path.stat().st_gid) == (0o640, B, 4242)


def test_an_access_list_is_kept(place):
    """Without it, what the list lets one person do would be the group's."""
    create_file(str(place / "ledger"), b"old")
    entries = ((1, 6, -1), (2, 6, B), (4, 0, -1), (16, 6, -1), (32, 0, -1))  # owner, B, group, mask, others
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(place / "ledger", "system.posix_acl_access", listed)
    except OSError as error:
        pytest.skip(f"the file system has no access lists ({error.strerror})")
    assert mode(place / "ledger") == 0o660
    with locked(str(place / "ledger"), kept=True):
        replace_file(str(place / "ledger"), b"new")
    for file in (place / "ledger", place / ".ledger.lock"):
        assert os.getxattr(file, "system.posix_acl_access") == listed


def recorded(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    """Return what is synced, linked and renamed, in order."""
    calls = []

    def record(name: str) -> None:
        real = getattr(os, name)

        def call(*args: object, **more: object) -> object:
            kind = "folder" if name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode) else "file"
            calls.append(f"{name} {kind}" if name == "fsync" else name)
            return real(*args, **more)

        monkeypatch.setattr(os, name, call)

    for name in ("fsync", "link", "rename"):
        record(name)
    act()
    return calls


def test_what_is_published_is_on_the_disk(place, either, monkeypatch):
    """The content before its name, and the name before the writer goes on: a charge outlives a power cut."""
    path = str(place / "a")
    assert recorded(monkeypatch, lambda: create_file(path, b"1")) == ["fsync file", "link", "fsync folder"]
    monkeypatch.undo()
    assert recorded(monkeypatch, lambda: replace_file(path, b"2")) == ["fsync file", "rename", "fsync folder"]


def test_a_lock_file_that_was_made_anew_is_no_lock(place, monkeypatch):
    """Whoever waited for the old one would write beside the owner of the new one."""
    lock = place / ".lock"
    lock.touch()

    def made_anew(file: int, how: int) -> None:
        lock.rename(place / "old")
        lock.touch()

    monkeypatch.setattr(whole_file.fcntl, "flock", made_anew)
    assert whole_file._acquire(str(lock), None) is None
