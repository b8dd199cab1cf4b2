"""Neighboring databases over a binary tree, for tests of paths down it."""

from typing import Any

import numpy as np


def neighboring(rng: Any, bits: int, n: int) -> tuple[list[int], list[int]]:
    """Return a database around a random center, from uniform to concentrated, and a neighbor of it."""
    center, size = int(rng.integers(1 << bits)), 1 << bits
    points = [center ^ (int(rng.integers(size)) >> int(rng.integers(bits + 1))) for _ in range(n)]
    other = list(points)
    other[int(rng.integers(n))] = int(rng.integers(size)) if rng.random() < 0.5 else center
    return sorted(points), sorted(other)


def moved(a: list[int], b: list[int]) -> int:
    """Return how many records of `a` are missing in `b`."""
    counts = np.bincount(a, minlength=64) - np.bincount(b, minlength=64)
    return int(np.maximum(counts, 0).sum())
