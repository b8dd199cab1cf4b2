"""Run a command, and measure what it and all of its children take: processor time, peak memory and disk."""

import os
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_EVERY = 0.05  # seconds between two looks at memory and disk


@dataclass(frozen=True)
class Usage:
    """What a command took.

    Args:
        processor: seconds of the processor, of all processes.
        seconds: from start to end.
        memory: peak bytes of all processes together, each shared page counted once.
        disk: peak bytes of their temporary files without a name, see `transforms.spill`.
        code: its exit code.
        error: what it wrote to its standard error.
    """

    processor: float
    seconds: float
    memory: int
    disk: int
    code: int
    error: str


def run_command(command: Sequence[str]) -> Usage:
    """Run a command to its end, without its output. Its use is read from the system, which must be Linux."""
    memory, disk, start = 0, 0, time.perf_counter()
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        while True:
            processes = descendants(process.pid)
            memory = max(memory, sum(map(memory_of, processes)), *map(peak_of, processes))
            disk = max(disk, disk_of(processes))
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            time.sleep(_EVERY)
        process.returncode = os.waitstatus_to_exitcode(status)
        error = process.communicate()[1]
    except BaseException:  # a signal, which may have come to this process alone, and while the command began
        _end_children()
        raise
    processor = usage.ru_utime + usage.ru_stime
    return Usage(processor, time.perf_counter() - start, memory, disk, process.returncode, error)


def _end_children() -> None:
    for child in descendants(os.getpid())[1:]:
        with suppress(ProcessLookupError):  # it has ended
            os.kill(child, signal.SIGTERM)


def descendants(process: int) -> list[int]:
    """Return a process, its children, and theirs."""
    found = [process]
    for each in found:
        with suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found


def memory_of(process: int) -> int:
    """Return the memory of a process in bytes, of shared pages its part; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def peak_of(process: int) -> int:
    """Return the most memory that a process alone has had so far, in bytes; 0 where it has ended.

    A peak of some milliseconds would be missed between two looks, and more often in a shorter run.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def disk_of(processes: Sequence[int]) -> int:
    """Return the bytes of files without a name that processes have open, on the disk for temporary files."""
    found: dict[int, int] = {}
    device = os.stat(tempfile.gettempdir()).st_dev
    for process in processes:
        with suppress(OSError):  # it has ended
            for opened in Path(f"/proc/{process}/fd").iterdir():
                with suppress(OSError):  # it was closed
                    file = opened.stat()
                    if stat.S_ISREG(file.st_mode) and not file.st_nlink and file.st_dev == device:
                        found[file.st_ino] = 512 * file.st_blocks
    return sum(found.values())
