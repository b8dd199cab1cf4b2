"""Keys whose totals exceed a floor, where there are more pairs of a key and a count than can be held."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from core.aggregate import FACTOR, Counts

Ints = NDArray[np.int64]

Pairs = Callable[[], Iterable[tuple[Ints, Ints]]]
"""Yields keys and their positive counts, shape (n,) each, in at least one part: the same whenever called."""

_HELD = 1 << 22  # pairs that are added up at once, about

_BITS = range(16, 23)  # of a bucket's number, as far as they go
_FULL = 3  # bits of the number of pairs for each bucket, otherwise


def exceeding(pairs: Pairs, floor: int, about: float) -> Iterator[Counts]:
    """Yield by how much the total of each key exceeds a floor, for those that exceed it, in parts.

    Where the floor is large, most keys have smaller totals, and are passed over: keys share buckets, and no
    key has a larger total than its bucket. So only keys of buckets above the floor are added up, and only
    those of so many buckets at a time as few pairs are in. A key is in one part.

    Args:
        pairs: see `Pairs`.
        floor: clipping floor, at least 0.
        about: number of pairs, about.
    """
    bits = min(_BITS[-1], max(_BITS[0], int(about).bit_length() - _FULL))
    totals, sizes = (np.zeros(1 << bits, dtype=np.int64) for _ in range(2))
    for keys, counts in pairs():
        bucket = _buckets(keys, bits)
        np.add.at(totals, bucket, counts)
        np.add.at(sizes, bucket, 1)
    above = np.flatnonzero(totals > floor)
    part = np.full(1 << bits, -1, dtype=np.int32)
    part[above] = (np.cumsum(sizes[above]) - sizes[above]) // _HELD
    del totals, sizes

    def of(number: int) -> Iterator[Counts]:
        for keys, counts in pairs():
            own = np.flatnonzero(part[_buckets(keys, bits)] == number)
            yield Counts.weighted(keys[own], counts[own])

    for number in range(int(part.max()) + 1):
        yield Counts.gathered(of(number)).above(floor)


def _buckets(keys: Ints, bits: int) -> NDArray[np.uint64]:
    return keys.astype(np.uint64) * np.uint64(FACTOR) >> np.uint64(64 - bits)
