"""Run a command, and measure what it and all of its children take: processor time and peak memory."""

import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_EVERY = 0.05  # seconds between two looks at the memory


@dataclass(frozen=True)
class Usage:
    """What a command took.

    Args:
        processor: seconds of the processor, of all processes.
        seconds: from start to end.
        memory: peak bytes of all processes together, each shared page counted once.
        code: its exit code.
        error: what it wrote to its standard error.
    """

    processor: float
    seconds: float
    memory: int
    code: int
    error: str


def run_command(command: Sequence[str]) -> Usage:
    """Run a command to its end, without its output. Memory is read from the system, which must be Linux."""
    peak, start = 0, time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        while True:
            peak = max(peak, sum(memory_of(each) for each in descendants(process.pid)))
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            time.sleep(_EVERY)
        process.returncode = os.waitstatus_to_exitcode(status)
        error = process.stderr.read() if process.stderr else ""
    processor = usage.ru_utime + usage.ru_stime
    return Usage(processor, time.perf_counter() - start, peak, process.returncode, error)


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
