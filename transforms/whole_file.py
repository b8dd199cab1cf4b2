"""Write local files atomically, with their final permissions.

A new file is written without a name (O_TMPFILE) and then linked to its name. A writer that is killed before
the link leaves nothing, since the system frees a file that has no name and is not open. A writer that is
killed after the link leaves the complete file. So nobody can see or copy an unpublished file.

On file systems without unnamed files, a new file is written in a staging folder. This is a hidden folder that
only its owner can enter, with a fixed name for each file. A killed writer can leave its staging folder
behind. The next writer of the file empties it, and so does `sweep`, so staging folders do not accumulate.
"""

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LONGEST_NAME = 255
"""Most bytes of a name on local disks."""

_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
_ACCESS_LIST = "system.posix_acl_access"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def create_file(path: str, data: bytes, mode: int = 0o666) -> bool:
    """Write a file atomically, unless it exists; return whether this call wrote it.

    Args:
        path: absolute, in a folder that exists.
        data: its content.
        mode: its permissions, without those that the umask or the folder excludes.

    Raises:
        OSError: it cannot be written; no file is left.
    """
    folder = os.path.dirname(path)
    with _draft(path, mode & os.stat(folder).st_mode) as (file, draft), _opened(folder) as place:
        _write(file, data)
        try:  # Python follows the link in /proc to an open file only if a folder's descriptor is given
            os.link(draft, path, src_dir_fd=place, follow_symlinks=True)
        except FileExistsError:
            return False
        os.fsync(place)
        return True


def replace_file(path: str, data: bytes) -> None:
    """Replace a file atomically and keep its permissions. The caller must hold its lock.

    Raises:
        OSError: it cannot be written, or does not exist; an existing file is unchanged.
    """
    clear(path)
    draft = _hidden(path, "draft")
    file = os.open(draft, _NEW, 0o600)
    try:
        _write(file, data)
        _copy_permissions(path, file)
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
    """Hold the lock file beside a file. The system releases the lock when the process ends in any way.

    Args:
        path: absolute, in a folder that exists.
        kept: whether to keep the lock file, which gets the permissions of the existing file, so that everyone
            who can write the file can take the lock. Otherwise the lock file is removed after use.

    Raises:
        OSError: the lock file cannot be created or opened.
    """
    lock = _hidden(path, "lock")
    like = path if kept else None
    while (held := _acquire(lock, like)) is None:
        pass
    try:
        yield
    finally:
        if not kept:
            with suppress(OSError):
                os.unlink(lock)
        os.close(held)


def sweep(path: str) -> None:
    """Remove the temporary files of killed writers of a file, as far as permissions allow."""
    left = (_hidden(path, kind) for kind in ("staging", "draft", "lock"))
    if any(os.path.lexists(leftover) for leftover in left):
        with suppress(OSError), locked(path):
            clear(path)


def clear(path: str) -> None:
    """Remove the temporary files of a file. The caller must hold its lock."""
    staging = _hidden(path, "staging")
    leftovers = (f"{staging}/draft.link", f"{staging}/draft", _hidden(path, "draft"))
    for leftover in leftovers:
        with suppress(FileNotFoundError):
            os.unlink(leftover)
    with suppress(FileNotFoundError):
        os.rmdir(staging)


def try_folder(folder: str) -> None:
    """Check that files can be created in a folder, and leave no file behind.

    Raises:
        OSError: no file can be created.
    """
    with _draft(os.path.join(folder, ".probe"), 0o600) as (_, draft):
        if os.path.basename(draft) == "draft":  # file systems with unnamed files have hard links
            os.link(draft, f"{draft}.link")
            os.unlink(f"{draft}.link")


@contextmanager
def _draft(path: str, mode: int) -> Iterator[tuple[int, str]]:
    """Open a new hidden file; yield its descriptor, and the path from which to link it."""
    unnamed = _open_unnamed(os.path.dirname(path), mode)
    if unnamed is not None:
        try:
            yield unnamed, f"/proc/self/fd/{unnamed}"
        finally:
            os.close(unnamed)
        return
    with locked(path):
        clear(path)
        staging = _hidden(path, "staging")
        os.mkdir(staging, 0o700)
        try:
            named = os.open(f"{staging}/draft", _NEW, mode)
            try:
                yield named, f"{staging}/draft"
            finally:
                os.close(named)
        finally:
            clear(path)


def _open_unnamed(folder: str, mode: int) -> int | None:
    """Open a new file without a name, or return None where the file system does not support that."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, mode)
    except OSError as error:
        if error.errno not in _NO_UNNAMED:
            raise
        return None


def _write(file: int, data: bytes) -> None:
    """Write `data` and sync it to the disk."""
    with open(file, "wb", closefd=False) as stream:
        stream.write(data)
    os.fsync(file)


def _copy_permissions(path: str, file: int) -> None:
    """Copy owner, group, access list and mode of another file to an open file, as far as the system permits.

    If the group or the access list cannot be copied, the group gets no permissions.
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
    """Copy the access list of a file, if there is one; return whether the open file now has it."""
    try:
        listed = os.getxattr(path, _ACCESS_LIST)
    except (AttributeError, OSError):  # the system or the file has no access list
        return True
    try:
        os.setxattr(file, _ACCESS_LIST, listed)
    except OSError:
        return False
    return True


def _acquire(lock: str, like: str | None) -> int | None:
    """Open the lock file and lock it; return None if it was removed meanwhile."""
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
    """Open the lock file; create it if it does not exist."""
    while True:
        with suppress(FileNotFoundError):
            held = _open_existing(lock)
            if like is not None and os.fstat(held).st_uid == os.geteuid():
                _copy_permissions(like, held)  # the permissions of the file may have changed since
            return held
        with suppress(FileExistsError):
            return _make_lock(lock, like)


def _open_existing(lock: str) -> int:
    """Open the lock file for writing, as network file systems require, or otherwise for reading."""
    try:
        return os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except PermissionError:
        return os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)


def _make_lock(lock: str, like: str | None) -> int:
    """Create the lock file, with its permissions from the start where the file system has unnamed files."""
    mode = 0o666 if like is None else 0o600
    made = _open_unnamed(os.path.dirname(lock), mode)
    named = made is None
    if made is None:
        made = os.open(lock, _NEW, mode)
    try:
        if like is not None:
            _copy_permissions(like, made)
        if not named:
            with _opened(os.path.dirname(lock)) as folder:
                os.link(f"/proc/self/fd/{made}", lock, src_dir_fd=folder, follow_symlinks=True)
    except BaseException:
        os.close(made)
        raise
    return made


def _hidden(path: str, kind: str) -> str:
    """Return the path of a hidden file beside a file, whose name may be as long as a name can be."""
    folder, name = os.path.split(path)
    hidden = f".{name}.{kind}"
    if len(os.fsencode(hidden)) > LONGEST_NAME:
        hidden = f".{hashlib.sha256(os.fsencode(name)).hexdigest()}.{kind}"
    return os.path.join(folder, hidden)


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
