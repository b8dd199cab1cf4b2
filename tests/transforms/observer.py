"""A function that looks at all that it can see, after it was as untidy as its first row says."""

import ctypes
import decimal
import gc
import hashlib
import locale
import os
import resource
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

_BITS = 52  # of a digest: a float64 holds them
_OF_ITSELF = (
    "Pid",
    "Tgid",
    "NSpid",
    "NStgid",
    "NSpgid",
    "NSsid",
    "PPid",
    "Ngid",
    "voluntary",
    "nonvoluntary",
    "SigQ",  # of all processes of the user
)


def _status() -> dict[str, str]:
    """Return what the system says of this process, but for its numbers, memory and how often it waited."""
    lines = [line.partition(":") for line in Path("/proc/self/status").read_text().splitlines()]
    return {name: text for name, _, text in lines if not name.startswith((*_OF_ITSELF, "Vm", "Rss", "Cpus"))}


def _files() -> list[str]:
    """Return the open files; a socket has another number each time."""
    ends = [os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd") if each in "0123"]
    return ["socket" if each.startswith("socket") else each for each in ends]


def _limits() -> Iterator[tuple[int, int]]:
    for name in sorted(dir(resource)):
        if name.startswith("RLIMIT_"):
            yield resource.getrlimit(getattr(resource, name))


def _signals() -> list[str]:
    return [*map(str, map(signal.getsignal, range(1, 32))), str(signal.pthread_sigmask(signal.SIG_BLOCK, []))]


def _settings() -> list[object]:
    return [
        *(os.umask(0o22), os.nice(0), os.sched_getaffinity(0), os.sched_getscheduler(0)),
        *(
            os.getuid(),
            os.geteuid(),
            os.getgroups(),
            os.getpid() == os.getsid(0),
            os.getpgid(0) == os.getpid(),
        ),
        *(sys.getrecursionlimit(), sys.getswitchinterval(), str(decimal.getcontext()), np.geterr()),
        *(locale.setlocale(locale.LC_ALL), threading.active_count(), str(warnings.filters), gc.isenabled()),
        *(gc.get_threshold(), pa.cpu_count(), pa.default_memory_pool().bytes_allocated()),
        Path("/proc/self/oom_score_adj").read_text(),
    ]


def _left() -> list[object]:
    """Return what was left in the home, beside it and in the memory of modules."""
    home = Path.home()
    beside = sorted(each.name for each in home.parent.iterdir()) if os.access(home.parent, os.R_OK) else []
    return [sorted(os.listdir()), sorted(map(str, home.rglob("*"))), beside, home.stat().st_mode, *_LEFT]


def _places() -> list[object]:
    """Return where new objects are: arrays, a list, and many of the least size."""
    new = [np.empty(size, dtype=np.uint8) for size in (100, 1000, 5000, 20_000, 200_000, 2_000_000)]
    arrays = [each.__array_interface__["data"][0] for each in new]
    return [*arrays, id([]), *map(id, [object() for _ in range(30)])]


def _mapped() -> list[str]:
    """Return what is mapped where. The stack grows as it likes."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if "[stack]" not in line]


SEEN: dict[str, Callable[[], object]] = {
    "places": _places,
    "garbage": lambda: [gc.get_count(), gc.get_freeze_count()],
    "what is mapped": _mapped,
    "environment": lambda: [(name, text.replace(str(Path.home()), "")) for name, text in os.environ.items()],
    "status": _status,
    "files": _files,
    "limits": lambda: list(_limits()),
    "signals": _signals,
    "settings": _settings,
    "what is left": _left,
    "modules": lambda: list(sys.modules),
    "numbers": lambda: [str(part) for part in np.random.get_state()],  # noqa: NPY002
    "children": lambda: [*resource.getrusage(resource.RUSAGE_CHILDREN)],
}
"""What is looked at, by name."""

_LEFT: list[object] = []


def _leave_files() -> None:
    deep = Path.home() / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "c").write_bytes(bytes(1 << 20))
    deep.chmod(0)


def _leave_children() -> None:
    subprocess.Popen(["sleep", "1000"], start_new_session=True)


def _allocate() -> None:
    _LEFT.extend(np.ones(1 << 20) for _ in range(12))
    _LEFT.extend([str(number)] for number in range(100_000))


def _change_settings() -> None:
    os.environ["LEFT"] = "1"
    os.umask(0o77)
    os.chdir("/")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    np.random.random(1000)  # noqa: NPY002
    sys.setrecursionlimit(5000)
    import xml.dom.minidom  # noqa: F401


UNTIDY: tuple[Callable[[], object], ...] = (
    lambda: None,
    _leave_files,
    _leave_children,
    _allocate,
    _change_settings,
    lambda: os._exit(3),
    lambda: os.kill(os.getpid(), signal.SIGKILL),
    lambda: ctypes.string_at(0),
    lambda: 1 // 0,
    lambda: bytearray(1 << 40),
)
"""What it does before it looks, by the first row."""


def looks(rows: pa.Table) -> list[float]:
    """Return a digest of each of `SEEN`, as whole numbers."""
    UNTIDY[rows["x"][0].as_py()]()
    return [float(_digest(look())) for look in SEEN.values()]


def _digest(seen: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(seen).encode()).digest()) >> (256 - _BITS)
