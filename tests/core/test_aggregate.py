import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.aggregate import Counts, Tally

keys = st.lists(st.integers(-5, 5) | st.integers(0, 2**62), max_size=40)


def counts(values):
    return Counts.of(np.array(values, dtype=np.int64))


@given(keys, keys, keys)
def test_counts_add_up_in_any_order(a, b, c):
    whole = counts(a + b + c)
    assert (counts(a) + counts(b)) + counts(c) == whole
    assert counts(c) + (counts(b) + counts(a)) == whole
    assert (np.diff(whole.keys) > 0).all()
    assert whole.counts.sum() == len(a + b + c)


@given(keys, st.integers(1, 7))
def test_split_and_merge_is_the_same(values, shards):
    parts = counts(values).split(shards)
    assert sum((part for _, part in parts), counts([])) == counts(values)
    assert len({shard for shard, _ in parts}) == len(parts)


@given(keys, keys, st.integers(1, 4))
def test_a_key_is_always_in_the_same_shard(a, b, shards):
    first = {k: s for s, part in counts(a).split(shards) for k in part.keys.tolist()}
    second = {k: s for s, part in counts(b).split(shards) for k in part.keys.tolist()}
    assert all(first[k] == second[k] for k in first.keys() & second.keys())


@given(keys, st.integers(0, 2**62), st.integers(0, 5))
def test_clipped_counts_move_by_at_most_one(values, extra, floor):
    def clipped(v):
        part = counts(v).above(floor)
        return dict(zip(part.keys.tolist(), part.counts.tolist(), strict=True))

    before, after = clipped(values), clipped([*values, extra])
    moves = {k: after.get(k, 0) - before.get(k, 0) for k in before.keys() | after.keys()}
    assert all(move in (0, 1) for move in moves.values())
    assert sum(moves.values()) <= 1


def test_tally_adds():
    assert Tally(np.array([1, 2])) + Tally(np.array([3, 4])) == Tally(np.array([4, 6]))
