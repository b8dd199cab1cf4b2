"""How this process keeps the memory of blocks of rows.

Arrays of blocks are made and freed all the time. glibc keeps them in its heap, since a pass takes 1.5 times
as long where they go back to the system each time. Larger arrays are those of aggregates. In the heap they
would leave gaps of all sizes, which doubled the memory of a run with a million groups. So each of them is
mapped by itself, and unmapped when it is freed. Each thread would also keep what it freed in an arena of its
own. One arena for all of them halves the memory of a run and takes no longer: blocks are few and large.
"""

import ctypes

import pyarrow as pa

BLOCK_VALUES = 1 << 18
"""Coordinates per block: enough to make the overhead of Python negligible, and few enough for the cache."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of mallopt(3)

_LIBC = ctypes.CDLL(None)
if hasattr(_LIBC, "mallopt"):
    _LIBC.mallopt(_M_ARENA_MAX, 1)
    _LIBC.mallopt(_M_MMAP_THRESHOLD, 16 * BLOCK_VALUES)
    _LIBC.mallopt(_M_TRIM_THRESHOLD, 256 * BLOCK_VALUES)


def give_back() -> None:
    """Give the system what is free in the heap: where no more blocks follow, before what else takes much."""
    pa.default_memory_pool().release_unused()
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
