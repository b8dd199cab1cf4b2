"""Counts of pairs of a group and a point, as one word a pair where both fit into it, and otherwise as two."""

from collections import Counter

import numpy as np
import pytest

from core.statistics import values as module
from core.statistics.values import ValueCounts


def pairs(counts: ValueCounts) -> list[tuple[tuple[int, int], int]]:
    both = zip(counts.groups.tolist(), counts.points.tolist(), strict=True)
    return list(zip(both, counts.counts.tolist(), strict=True))


@pytest.mark.parametrize("most", [0, 1 << 62])
@pytest.mark.parametrize(
    ("groups", "points"),
    [(1, 1), (1, 1 << 62), (5, 40), (5, 1 << 59), (5, 1 << 60), (5, 1 << 62), (1 << 22, 1 << 40)],
)
def test_equal_pairs_are_added_up(
    monkeypatch: pytest.MonkeyPatch, most: int, groups: int, points: int
) -> None:
    """The most that a point may be, and a group, are among them."""
    monkeypatch.setattr(module, "_MOST", most)
    rng, parts, expected = np.random.default_rng(0), [], Counter[tuple[int, int]]()
    for n in (0, 1, 500):
        of, at = rng.integers(0, groups, n), rng.integers(0, points, n)
        at[: n // 2], of[: n // 4] = at[n // 2 : 2 * (n // 2)], groups - 1
        at[: n // 8] = points - 1
        weights = rng.integers(1, 9, n)
        for weighted in (False, True):
            part = ValueCounts.of(of, at, weights if weighted else None)
            own = Counter[tuple[int, int]]()
            for pair, weight in zip(zip(of.tolist(), at.tolist(), strict=True), weights, strict=True):
                own[pair] += int(weight) if weighted else 1
            assert pairs(part) == sorted(own.items())
            parts.append(part)
            expected += own
    assert pairs(ValueCounts.joined(parts)) == sorted(expected.items())
    assert pairs(ValueCounts.joined([*parts, ValueCounts.joined(parts)])) == sorted(
        (expected + expected).items()
    )
