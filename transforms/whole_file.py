"""Local files that appear whole or not at all, with their final rights, and until then nowhere.

A new file is written without a name (O_TMPFILE) and then linked to its own. A writer that is killed before
the link leaves nothing, since the system frees a file that has no name and is not open; one that is killed
after it leaves the whole file. So nobody ever sees, or copies along with a folder, what was not published.

Where a file system has no unnamed files, a new file is written in a closet: a hidden folder that only its
owner may enter, of one fixed name for each file. A kill can leave that closet behind. It is emptied by
whoever next writes the file, and by `sweep`, so closets never pile up.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
_ACCESS_LIST = "system.posix_acl_access"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def create_file(path: str, data: bytes, mode: int = 0o666) -> bool:
    """Write a file whole, unless there is one; return whether this call wrote it.

    Args:
        path: absolute, in a folder that exists.
        data: its bytes.
        mode: its rights, from which the system takes the umask, and this what the folder doesn't give.

    Raises:
        OSError: it cannot be written; there is nothing then.
    """
    folder = os.path.dirname(path)
    with _draft(path, mode & os.stat(folder).st_mode) as (file, draft), _opened(folder) as place:
        _write(file, data)
        try:  # a folder's descriptor is what makes Python follow the link that /proc has of an open file
            os.link(draft, path, src_dir_fd=place, follow_symlinks=True)
        except FileExistsError:
            return False
        os.fsync(place)
        return True


def replace_file(path: str, data: bytes) -> None:
    """Write a file whole over another, whose rights it keeps; whoever calls this holds its lock.

    Raises:
        OSError: it cannot be written, or there is none; what was there is there still.
    """
    clear(path)
    draft = _hidden(path, "draft")
    file = os.open(draft, _NEW, 0o600)
    try:
        _write(file, data)
        _copy_rights(path, file)
        os.rename(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    finally:
        os.close(file)
    with _opened(os.path.dirname(path)) as folder:
        os.fsync(folder)


@contextmanager
def locked(path: str, kept: bool = False) -> Iterator[None]:
    """Hold the lock beside a file; the system lets go of it when the process ends, however it ends.

    Args:
        path: absolute, in a folder that exists.
        kept: whether the lock stays beside the file, which must be there; it gets the rights of that file,
            so that everyone who may write the one can take the other. Else it is removed after use.

    Raises:
        OSError: the lock cannot be made or opened.
    """
    lock = _hidden(path, "lock")
    like = path if kept else None
    while (held := _take(lock, like)) is None:
        pass
    try:
        yield
    finally:
        if not kept:
            with suppress(OSError):
                os.unlink(lock)
        os.close(held)


def sweep(path: str) -> None:
    """Remove what a killed writer left of a file; what is not there, or not ours to remove, is left."""
    left = (_hidden(path, kind) for kind in ("closet", "draft", "lock"))
    if any(os.path.lexists(leftover) for leftover in left):
        with suppress(OSError), locked(path):
            clear(path)


def clear(path: str) -> None:
    """Remove what was begun of a file, under its lock."""
    closet = _hidden(path, "closet")
    leftovers = (f"{closet}/draft.link", f"{closet}/draft", _hidden(path, "draft"))
    for leftover in leftovers:
        with suppress(FileNotFoundError):
            os.unlink(leftover)
    with suppress(FileNotFoundError):
        os.rmdir(closet)


def try_folder(folder: str) -> None:
    """Find out whether files can be created in a folder, and leave no trace.

    Raises:
        OSError: they cannot.
    """
    with _draft(os.path.join(folder, ".probe"), 0o600) as (_, draft):
        if os.path.basename(draft) == "draft":  # where files need no name, there are hard links
            os.link(draft, f"{draft}.link")
            os.unlink(f"{draft}.link")


@contextmanager
def _draft(path: str, mode: int) -> Iterator[tuple[int, str]]:
    """Open a new file that nobody else sees; give its descriptor, and the name from which to link it."""
    unnamed = _open_unnamed(os.path.dirname(path), mode)
    if unnamed is not None:
        try:
            yield unnamed, f"/proc/self/fd/{unnamed}"
        finally:
            os.close(unnamed)
        return
    with locked(path):
        clear(path)
        closet = _hidden(path, "closet")
        os.mkdir(closet, 0o700)
        try:
            named = os.open(f"{closet}/draft", _NEW, mode)
            try:
                yield named, f"{closet}/draft"
            finally:
                os.close(named)
        finally:
            clear(path)


def _open_unnamed(folder: str, mode: int) -> int | None:
    """Open a new file without a name, or return None where the file system has none."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, mode)
    except OSError as error:
        if error.errno not in _NO_UNNAMED:
            raise
        return None


def _write(file: int, data: bytes) -> None:
    """Write all of `data`, down to the disk."""
    with open(file, "wb", closefd=False) as stream:
        stream.write(data)
    os.fsync(file)


def _copy_rights(path: str, file: int) -> None:
    """Give an open file owner, group, access list and mode of another, as far as the system allows it.

    Where the group or the list cannot be kept, the group gets no rights: they were meant for others.
    """
    like = os.stat(path)
    mode = like.st_mode & 0o777
    for owner in (like.st_uid, -1):
        with suppress(OSError):
            os.fchown(file, owner, like.st_gid)
            break
    if os.fstat(file).st_gid != like.st_gid or not _copy_access_list(path, file):
        mode &= ~0o070
    os.fchmod(file, mode)


def _copy_access_list(path: str, file: int) -> bool:
    """Copy a file's access list, where there is one; say whether the open file now has it."""
    try:
        listed = os.getxattr(path, _ACCESS_LIST)
    except (AttributeError, OSError):  # no such lists on this system, on this file system, or of this file
        return True
    try:
        os.setxattr(file, _ACCESS_LIST, listed)
    except OSError:
        return False
    return True


def _take(lock: str, like: str | None) -> int | None:
    """Open and lock the lock; None where it was removed before it was ours."""
    held = _open_lock(lock, like)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(held), os.lstat(lock)):
            return held
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(held)
        raise
    os.close(held)
    return None


def _open_lock(lock: str, like: str | None) -> int:
    """Open the lock, made where there is none."""
    while True:
        with suppress(FileNotFoundError):
            held = _open_existing(lock)
            if like is not None and os.fstat(held).st_uid == os.geteuid():
                _copy_rights(like, held)  # those of the file may have changed since
            return held
        with suppress(FileExistsError):
            return _make_lock(lock, like)


def _open_existing(lock: str) -> int:
    """Open the lock to write, as network file systems want it, or else to read, which is enough elsewhere."""
    try:
        return os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except PermissionError:
        return os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)


def _make_lock(lock: str, like: str | None) -> int:
    """Make the lock, which has its rights from its first moment where files need no name."""
    mode = 0o666 if like is None else 0o600
    made = _open_unnamed(os.path.dirname(lock), mode)
    named = made is None
    if made is None:
        made = os.open(lock, _NEW, mode)
    try:
        if like is not None:
            _copy_rights(like, made)
        if not named:
            with _opened(os.path.dirname(lock)) as folder:
                os.link(f"/proc/self/fd/{made}", lock, src_dir_fd=folder, follow_symlinks=True)
    except BaseException:
        os.close(made)
        raise
    return made


def _hidden(path: str, kind: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{kind}")


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
