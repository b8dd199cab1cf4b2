"""Totals above a floor are those of adding up every key, whatever is held at once."""

from functools import partial

import numpy as np
import pytest

from core.aggregate import Counts
from core.one_cluster.practical import exceeding as module
from core.one_cluster.practical.exceeding import exceeding

FORMS = ["spread", "few keys", "one key", "large keys", "no pairs"]


def pairs(form, n=3000):
    rng = np.random.default_rng(len(form))
    most = {"few keys": 7, "one key": 1, "large keys": 2**62}.get(form, 1000)
    keys = rng.integers(0, most, n) + (2**62 if form == "large keys" else 0)
    if form == "large keys":
        keys = keys[rng.integers(0, 500, n)]
    counts = rng.geometric(0.3, n)
    size = 0 if form == "no pairs" else n
    return [(keys[:size][at : at + 257], counts[:size][at : at + 257]) for at in range(0, max(1, size), 257)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bits", [2, 9, 16])
@pytest.mark.parametrize("held", [40, 1000, 1 << 24])
def test_totals_above_a_floor_are_those_of_all_keys(form, bits, held, monkeypatch):
    monkeypatch.setattr(module, "_HELD", held)
    monkeypatch.setattr(module, "_BITS", range(bits, bits + 1))
    given = pairs(form)
    totals = Counts.weighted(*(np.concatenate(each) for each in zip(*given, strict=True)))
    for floor in (0, 3, 20, 10**6):
        parts = list(exceeding(lambda: given, floor, 1.0))
        none = Counts.of(np.zeros(0, dtype=np.int64))
        assert Counts.merged([none, *parts]) == totals.above(floor)
        assert sum(map(len, parts)) == len(totals.above(floor)), "a key is in two parts"


@pytest.mark.parametrize("floor", [0, 12])
def test_few_pairs_are_held_at_once(floor, monkeypatch):
    """No more than are wanted, and those of one bucket; and pairs of no bucket above the floor are not."""
    monkeypatch.setattr(module, "_HELD", 300)
    monkeypatch.setattr(module, "_BITS", range(9, 10))
    given, held = pairs("spread"), []

    def gathered(parts):
        some = list(parts)
        held.append(sum(len(part) for part in some))
        return real(some)

    real = Counts.gathered
    monkeypatch.setattr(module.Counts, "gathered", partial(gathered))
    assert len(list(exceeding(lambda: given, floor, 1.0))) == len(held)
    largest = np.bincount(
        module._buckets(np.concatenate([keys for keys, _ in given]), 9).astype(np.int64)
    ).max()
    assert max(held) <= 300 + largest
    assert len(held) > 5 if floor == 0 else sum(held) < 2500
