"""Memory of the process that forks children for functions, and what they share; see `function_process`."""

import ctypes
import mmap
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_FIXED = 0x10  # MAP_FIXED of <sys/mman.h>
_COLLAPSE, _HUGE = 25, 1 << 21  # MADV_COLLAPSE, and the bytes of a huge page
_QUERY, _FIXED_PLACES = 0xFFFFFFFF, 0x40000  # no change, and ADDR_NO_RANDOMIZE, of <sys/personality.h>
_libc = ctypes.CDLL(None)
_libc.mmap.restype = ctypes.c_void_p


@contextmanager
def fixed_places() -> Iterator[None]:
    """Let processes that this thread starts have their memory at the places where all of them have it.

    By default the system draws these places for each process. What a function answers may follow from them,
    as where it goes through a set of objects. Which process forks for a block follows from other blocks: from
    how long they take, and whether one of them was not ended as usual. Where the system, such as that of some
    containers, does not allow this, nothing changes.
    """
    before = _libc.personality(ctypes.c_ulong(_QUERY))
    if before >= 0:
        _libc.personality(ctypes.c_ulong(before | _FIXED_PLACES))
    try:
        yield
    finally:
        if before >= 0:
            _libc.personality(ctypes.c_ulong(before))


def mapped() -> int:
    """Return the size of the address space of this process in bytes."""
    line = bytearray(1 << 10)  # as large whatever follows: how many pages are held is said, too
    with open("/proc/self/statm", "rb", buffering=0) as file:  # text would import a codec in each child
        file.readinto(line)
    return int(line[: line.index(b" ")]) * resource.getpagesize()


def shared_memory() -> list[tuple[int, int]]:
    """Return address and size of each writable mapping that a child would share with this process."""
    return [(start, end - start) for start, end, access, _ in _maps() if access[1::2] == b"ws"]


def use_huge_pages() -> None:
    """Move the private memory of this process to huge pages, of which a fork copies one entry for 512.

    Nearly half of the time of a fork goes into copying an entry for each page that was written. What a child
    sees is the same: a small page is copied when it or this process writes to it. Where the system has no
    huge pages to give, nothing changes.
    """
    for start, end, access, name in _maps():
        if access == b"rw-p" and name in (b"", b"[heap]"):
            for place in range(-(-start // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
                _libc.madvise(ctypes.c_void_p(place), ctypes.c_size_t(_HUGE), _COLLAPSE)


def _maps() -> list[tuple[int, int, bytes, bytes]]:
    """Return start, end, access and name of each mapping of this process."""
    with open("/proc/self/maps", "rb") as file:
        lines = [line.split(maxsplit=5) for line in file]
    return [(*_ends(line[0]), line[1], line[5].strip() if len(line) > 5 else b"") for line in lines]


def _ends(place: bytes) -> tuple[int, int]:
    start, end = place.split(b"-")
    return int(start, 16), int(end, 16)


def copy_shared(shared: Sequence[tuple[int, int]]) -> None:
    """Replace shared mappings by private copies at the same addresses."""
    for start, size in shared:
        content = (ctypes.c_char * size).from_address(start).raw
        access, how = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED
        put = _libc.mmap(ctypes.c_void_p(start), ctypes.c_size_t(size), access, how, -1, ctypes.c_long(0))
        if put != start:
            raise OSError("shared memory could not be copied")
        ctypes.memmove(start, content, size)
