"""Namespaces of Linux for the process that runs an untrusted function: no network, and no files of people.

Run as a program, it enters them and then is `transforms.function_process`. That takes no rights and no other
program, but a kernel that lets its users make namespaces; many containers do not. Inside

- the files are those of the system's libraries, of Python and of its packages, all read-only. Of a folder on
  Python's path that is not for packages alone, such as that of a program, there are only modules and
  packages. The home of a child is a file system in memory that no other process sees, and that ends with it;
- there is no network, not even that of the machine itself;
- there are no processes but those of the sandbox, no System V objects and no message queues of others;
- a child has no rights, and cannot trace or signal the process that forked it.

It keeps a hostile function from files and from the network. It does not keep it from passing what it saw to a
later block: the blocks of a worker are children of one process in one kernel, whose limits, numbers of
processes, key rings and file locks they can read and change. Time and memory show to others, too.
"""

import ctypes
import os
import platform
import runpy
import shutil
import signal
import socket
import sys
import zipfile
from collections.abc import Sequence
from importlib.machinery import all_suffixes
from pathlib import Path

from transforms.function_messages import DENIED

_NEW = 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
"""CLONE_NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET of <linux/sched.h>."""
_NEW_MOUNTS, _NEW_IPC = 0x20000, 0x8000000  # CLONE_NEWNS, CLONE_NEWIPC
_BEFORE_PATH = 10  # arguments of `transforms.function_process` before the path of Python
_BIND, _REC, _PRIVATE, _NOSUID, _NODEV, _NOEXEC = 0x1000, 0x4000, 0x40000, 2, 4, 8  # MS_ of <sys/mount.h>
_DETACH = 2  # MNT_DETACH
_RECURSIVE, _READ_ONLY = 0x8000, 1  # AT_RECURSIVE, MOUNT_ATTR_RDONLY
_PIVOT_ROOT, _MOUNT_SETATTR = {"x86_64": 155, "aarch64": 41}, 442  # numbers of system calls
_DEATH_SIGNAL, _DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38  # PR_ of <linux/prctl.h>
_CAPABILITIES = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/localtime")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SHARED = "/dev/shm"
_IMPORT = 1 << 26
"""Bytes that a module may write to each folder while it is imported; no child sees them."""

_libc = ctypes.CDLL(None, use_errno=True)


def enter(control: socket.socket, folder: str, path: Sequence[str]) -> None:
    """Go on in a child of this process, inside new namespaces. This process waits for it, and ends with it.

    Args:
        control: the socket of requests, which only the child keeps.
        folder: of this process alone. It is removed at the end, and is empty inside.
        path: of Python, where the module of the function may be.

    Raises:
        OSError: the machine does not allow it.
    """
    user, group = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEW), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    child = os.fork()
    if child:
        control.close()
        os.waitpid(child, 0)
        shutil.rmtree(folder, ignore_errors=True)  # where the worker was killed
        os._exit(0)
    _check(_libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "prctl")
    _check(_libc.prctl(_DUMPABLE, 0, 0, 0, 0), "prctl")  # no child may trace it
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # as the first process it ignores others that it does not handle
    _check(_libc.unshare(_NEW_MOUNTS), "unshare")
    _enter_root(folder, path)
    _mount_empty(folder, _IMPORT)


def own_folder(folder: str, memory: int) -> None:
    """Give this process, a child inside, empty folders of its own, and take all rights from it.

    Args:
        folder: see `enter`.
        memory: bytes that each of its folders may hold.

    Raises:
        OSError: the machine does not allow it.
    """
    _check(_libc.unshare(_NEW_MOUNTS | _NEW_IPC), "unshare")
    _mount_empty(folder, memory)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _check(_libc.prctl(_DUMPABLE, 1, 0, 0, 0), "prctl")  # its own files in /proc are its own again
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
    _check(_libc.capset(header, none), "capset")


def _enter_root(folder: str, path: Sequence[str]) -> None:
    """Make a read-only root with the files that Python needs, and leave all others behind."""
    _mount("none", "/", None, _REC | _PRIVATE)
    _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    for place in (folder, _SHARED):
        os.makedirs(f"{folder}{place}")
    places = _places(path)
    for place in places:
        _show(folder, place)
    for link in _links(path):
        if not f"{link}/".startswith(tuple(f"{place}/" for place in places)):
            os.makedirs(os.path.dirname(f"{folder}{link}"), exist_ok=True)
            os.symlink(os.readlink(link), f"{folder}{link}")
    for place in _DEVICES:
        _show(folder, place)
    os.symlink("/proc/self/fd", f"{folder}/dev/fd")
    os.mkdir(f"{folder}/proc")
    _mount("proc", f"{folder}/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    os.chdir(folder)
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError("no sandbox on this kind of machine")
    _check(_libc.syscall(ctypes.c_long(number), b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _DETACH), "umount2")
    os.chdir("/")
    attributes = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
    here = ctypes.c_int(-100)  # AT_FDCWD
    done = _libc.syscall(
        ctypes.c_long(_MOUNT_SETATTR), here, b"/", _RECURSIVE, attributes, ctypes.c_size_t(32)
    )
    _check(done, "mount_setattr")


def shown_of(places: Sequence[str], path: Sequence[str]) -> tuple[str, str] | None:
    """Return the first of some places that a sandbox shows, and what it shows of which this is a part.

    Args:
        places: absolute paths, which need not exist.
        path: of Python, beside that of this process.
    """
    shown = [f"{each}/" for each in _places(path)]
    for place in places:
        real = f"{os.path.realpath(place)}/"
        for each in shown:
            if real.startswith(each):
                return place, each.rstrip("/")
    return None


def _importable(folder: str) -> set[str]:
    """Return what is shown of a place on Python's path: all of an archive or of a folder for packages alone.

    Of another folder, such as that of a program or of sources, these are the modules and packages: files of
    people may lie beside them. Of a folder that cannot be listed it is nothing.
    """
    if not os.path.isdir(folder):
        return {folder} if zipfile.is_zipfile(folder) else set()
    try:
        inside = [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return set()
    installed = any(place.endswith(".dist-info") for place in inside)
    if installed or os.path.basename(folder) in ("site-packages", "dist-packages"):
        return {folder}
    return {place for place in inside if _is_module(os.path.realpath(place)) or place.endswith(".egg-info")}


def _is_module(place: str) -> bool:
    """Return whether a file is a module, or a folder a package: one with a module `__init__`."""
    suffixes = tuple(all_suffixes())
    if os.path.isdir(place):
        return any(os.path.exists(f"{place}/__init__{suffix}") for suffix in suffixes)
    return place.endswith(suffixes)


def _wanted(path: Sequence[str]) -> set[str]:
    """Return the files and folders that programs of Python read, by the names that Python has for them."""
    loaded = filter(os.path.isdir, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    wanted = {*_SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, *loaded}
    roots = tuple(f"{os.path.realpath(root)}/" for root in wanted if os.path.isabs(root))
    for place in filter(os.path.isabs, {*sys.path, *path}):
        within = f"{os.path.realpath(place)}/".startswith(roots)
        wanted |= {place} if within else _importable(place)
    return set(filter(os.path.isabs, wanted))


def _places(path: Sequence[str]) -> list[str]:
    """Return where what is wanted really lies: no place leads through a link or lies in another one."""
    real = {os.path.realpath(place) for place in _wanted(path)} - {"/"}
    found: list[str] = []
    for place in sorted(real, key=lambda place: place.split("/")):  # a folder, and then all that lies in it
        if os.path.exists(place) and not (found and place.startswith(f"{found[-1]}/")):
            found.append(place)
    return found


def _links(path: Sequence[str]) -> set[str]:
    """Return the links on the way to what is wanted: to it, to a folder above it, and to other links."""
    found: set[str] = set()
    for place in filter(os.path.exists, _wanted(path)):
        here, ahead = "/", place.split("/")[::-1]
        while ahead:
            step = os.path.normpath(os.path.join(here, ahead.pop()))
            if os.path.islink(step):
                found.add(step)
                target = os.readlink(step)
                ahead += target.split("/")[::-1]
                here = "/" if os.path.isabs(target) else here
            else:
                here = step
    return found


def _show(root: str, place: str) -> None:
    """Show a file or a folder at the same place below a root."""
    inside = f"{root}{place}"
    os.makedirs(os.path.dirname(inside), exist_ok=True)
    if os.path.isdir(place):
        os.makedirs(inside, exist_ok=True)
    else:
        Path(inside).touch()
    _mount(place, inside, None, _BIND | _REC)


def _mount_empty(folder: str, size: int) -> None:
    """Put empty file systems in memory at a folder and at that of shared memory. They hide what is there."""
    for place in (folder, _SHARED):
        _mount("tmpfs", place, "tmpfs", _NOSUID | _NODEV, f"size={size},mode=700")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    done = _libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])
    _check(done, f"mount of {target}")


def _check(done: int, what: str) -> None:
    if done != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def main() -> None:
    """Enter, then be the process that runs the function. A process with threads cannot enter.

    So this comes before numpy is imported.
    """
    number, folder, *arguments = sys.argv[1:]
    control = socket.socket(fileno=int(number))
    try:
        enter(control, folder, arguments[_BEFORE_PATH:])
    except OSError:
        control.sendall(DENIED)
        return
    control.detach()
    sys.argv[1:] = arguments
    runpy.run_module(f"{__package__}.function_process", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
