"""Refuse a function whose blocks may need more memory than a worker has, before budget is spent.

Only public numbers are compared: the limit of the job, the number of workers and the memory of the machine.
How large blocks are follows from the number of rows, which is private under add_or_remove_one. So no refusal
depends on it: a block that needs more than its limit has no answer, as after any other failure.
"""

import os
from contextlib import suppress
from pathlib import Path

from pipelines.errors import JobError

_CONTAINER = Path("/sys/fs/cgroup/memory.max")
"""Bytes that the container of this process may have, or a word where it has no limit."""


def check_block_memory(megabytes: int, workers: int = 0) -> None:
    """Check that every worker of this machine can give a block what it may take.

    Args:
        megabytes: limit of the memory of a block.
        workers: number of workers of this machine, each with one block at a time; 0 for one per core.

    Raises:
        JobError: together they may take more than the machine has.
    """
    workers = workers or os.cpu_count() or 1
    memory = machine_memory() >> 20
    if megabytes * workers > memory:
        raise JobError(
            f"params.memory_limit is {megabytes}: {workers} workers of this machine, with one block each at "
            f"a time, have {memory:,} megabytes together. Give at most {memory // workers}, or fewer workers "
            "(-- --direct_num_workers=1)."
        )


def machine_memory() -> int:
    """Return the memory of this machine in bytes, or of its container where that has less."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # no container of this kind, or one without a limit
        memory = min(memory, int(_CONTAINER.read_text()))
    return memory
