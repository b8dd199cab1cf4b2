import pickle
import tracemalloc
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.aggregate import CellCounts, Counts, Sample, Tally
from core.sampling import siphash
from tests.core.exact import fits

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


@pytest.mark.parametrize("seed", range(20))
def test_large_counts_are_added_in_slices_and_small_ones_at_once(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    parts = [
        np.cumsum(rng.geometric(0.2, size)) if spread else rng.geometric(0.2, size) << 12 * kind
        for size, spread, kind in rng.integers((1, 0, 0), (3000, 2, 4), (2 + seed % 3, 3))
    ]  # keys of a part are many, or nearly all alike
    sorted_, add = [], Counts._sorted
    monkeypatch.setattr("core.aggregate._SLICE", 256)
    monkeypatch.setattr(Counts, "_sorted", lambda few: (sorted_.append(few), add(few))[1])
    merged = Counts.merged([Counts.of(part) for part in parts])
    assert (np.diff(merged.keys) > 0).all()
    whole = Counter(np.concatenate(parts).tolist())
    assert dict(zip(merged.keys.tolist(), merged.counts.tolist(), strict=True)) == whole
    slices = sum(len(set(part.tolist())) for part in parts) // 256
    assert len(sorted_) == (slices if slices > len(parts) else 1)
    assert len(sorted_) == 1 or all(sum(map(len, few)) < 1.25 * 256 for few in sorted_)


def test_large_counts_whose_keys_do_not_ascend_are_refused(monkeypatch):
    """Keys would be in two slices. Few counts are sorted together anyway."""
    rng = np.random.default_rng(5)
    ascending, shuffled = (
        Counts(keys, np.ones(500, np.int64)) for keys in (np.arange(500), rng.permutation(500))
    )
    assert (ascending + shuffled) == Counts(np.arange(500), np.full(500, 2))
    monkeypatch.setattr("core.aggregate._SLICE", 64)
    assert (ascending + ascending) == Counts(np.arange(500), np.full(500, 2))
    for parts in ([ascending, shuffled], [shuffled, ascending], [shuffled, shuffled]):
        with pytest.raises(ValueError, match="do not ascend"):
            Counts.merged(parts)


def test_counts_whose_sum_is_no_int64_are_added():
    a, b, c = (Counts(np.array([key]), np.array([1 << 62])) for key in (1, 2, 3))
    assert a + b == Counts(np.array([1, 2]), np.full(2, 1 << 62))
    whole = Counts(np.array([1, 2, 3]), np.full(3, 1 << 62))
    assert (a + b) + c == a + (b + c) == Counts.merged([c, b, a]) == whole
    assert Counts.weighted(whole.keys, whole.counts) == whole


@pytest.mark.parametrize("times", [1, 9])
@pytest.mark.parametrize("way", ["the same keys", "in between", "beside"])
def test_the_sum_of_large_counts_takes_little_more_memory_than_its_parts(way, times):
    starts, step = {"the same keys": ((0, 0), 2), "in between": ((0, 1), 2), "beside": ((0, 1 << 21), 1)}[way]
    a, b = (Counts(first + step * np.arange(1 << 21), np.full(1 << 21, times)) for first in starts)
    tracemalloc.start()
    total = a + b
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(total) == (1 if way == "the same keys" else 2) << 21
    assert peak < 1.2 * 2 * (a.keys.nbytes + b.keys.nbytes)  # sorted at once, up to three times as much


@given(keys, st.integers(1, 7))
def test_split_and_merge_is_the_same(values, shards):
    parts = counts(values).split(shards)
    assert sum(parts, counts([])) == counts(values)
    assert len(parts) == shards


@given(keys, keys, st.integers(1, 4))
def test_a_key_is_always_in_the_same_shard(a, b, shards):
    first = {k: s for s, part in enumerate(counts(a).split(shards)) for k in part.keys.tolist()}
    second = {k: s for s, part in enumerate(counts(b).split(shards)) for k in part.keys.tolist()}
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


cells = st.lists(st.integers(0, 63), max_size=40)


@given(cells, cells, cells, st.integers(0, 7))
def test_counts_of_cells_are_the_same_in_a_table_and_sparse(a, b, c, halvings):
    parts = [CellCounts.of(np.array(part, dtype=np.int64), 64) for part in (a, b, c)]
    sparse = [CellCounts(64, counts(part)) for part in (a, b, c)]
    whole = CellCounts(64, counts(a + b + c))
    numbers = np.arange(-(-64 // (1 << halvings)))
    expected = [sum(cell >> halvings == number for cell in a + b + c) for number in numbers]
    for x, y, z in (parts, sparse, (parts[0], sparse[1], pickle.loads(pickle.dumps(parts[2])))):
        assert (x + y) + z == x + (z + y) == whole
        assert (x + y + z).within(numbers, halvings).tolist() == expected
        assert repr(x + y + z) == repr(whole)


def test_a_table_of_cells_is_made_where_it_pays_and_is_small():
    few, many = CellCounts.of(np.zeros(3, np.int64), 64), CellCounts.of(np.zeros(300, np.int64), 64)
    assert few.table is None and many.sparse is None and many.table.dtype == np.uint16
    assert (few + few).table is None and (few + many).within(np.array([0]), 0).tolist() == [303]
    four = [CellCounts.of(np.arange(first, 4 + first), 64 + 1) for first in (0, 1, 4)]
    assert (four[0] + four[0]).table is None and (four[0] + four[1]).sparse is None
    small = CellCounts.of(np.zeros(255, np.int64), 64)
    assert small.table.dtype == pickle.loads(pickle.dumps(small)).table.dtype == np.uint8
    assert (small + small).within(np.array([0, 1]), 0).tolist() == [510, 0]
    assert small.within(np.array([0]), 6).tolist() == [255]
    for each in (few, many, small, few + many, small + small, CellCounts.of(np.arange(0), 64)):
        assert each.dense().dtype == np.int64
        assert each.counts() == Counts.of(np.repeat(np.arange(64), each.dense()))


@pytest.mark.parametrize("most", [2**32 - 1, 2**32, 2**40])
def test_a_table_of_very_many_records_is_added_like_any_other(most):
    table = CellCounts(64, None, np.array([most] + [0] * 63))
    sent, few = pickle.loads(pickle.dumps(table)), CellCounts(64, counts([0]))
    for total in (sent + few, few + sent, sent + table + few, few + sent + CellCounts(64, counts([]))):
        rest = (total.within(np.array([0]), 0) - 1)[0]
        assert rest in (most, 2 * most) and total.within(np.array([0]), 6)[0] == rest + 1
    everywhere = CellCounts.of(np.arange(64), 64)
    for total in (everywhere + table, sent + everywhere, table + sent + everywhere + everywhere):
        assert total.within(np.array([0]), 0)[0] in (most + 1, 2 * most + 2)


def test_tables_of_all_cells_do_not_overflow():
    most = CellCounts(64, None, np.full(64, 2**32 - 1, dtype=np.uint32))
    one = CellCounts.of(np.arange(64), 64)
    for total in (most + one, one + most, pickle.loads(pickle.dumps(most)) + one):
        assert total.dense().tolist() == [2**32] * 64
    assert (most + most + one).dense().tolist() == [2**33 - 1] * 64


def test_tally_adds():
    assert Tally(np.array([1, 2])) + Tally(np.array([3, 4])) == Tally(np.array([4, 6]))


records = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=25)  # identities may collide
salts = st.binary(min_size=16, max_size=16)


def sample(size, rows, salt):
    ids = np.array([i for i, _ in rows], dtype=np.uint64)
    return Sample.of(size, np.array([p for _, p in rows], dtype=np.int64), ids, salt)


def members(found):
    return Counter(zip(found.ids.tolist(), found.points.tolist(), strict=True))


@given(st.integers(1, 8), records, records, records, salts)
def test_a_sample_is_the_same_under_any_split_and_order(size, a, b, c, salt):
    whole = sample(size, a + b + c, salt)
    parts = [sample(size, rows, salt) for rows in (a, b, c)]
    assert (parts[0] + parts[1]) + parts[2] == whole
    assert parts[2] + (parts[1] + parts[0]) == whole
    assert sample(size, (a + b + c)[::-1], salt) == whole
    assert len(whole.points) == min(size, len(a + b + c))
    hashes = siphash(np.arange(10, dtype=np.uint64), salt, 0x73616D706C65)
    least = sorted((int(hashes[i]), i, p) for i, p in a + b + c)[:size]
    assert members(whole) == Counter((i, p) for _, i, p in least)


@given(st.integers(1, 8), records, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3))), salts)
def test_samples_of_neighbors_differ_in_one_record(size, others, pair, salt):
    """Whatever the key, and whether or not the one that came has the identity of the one that went."""
    for x, y in combinations(pair[:4], 2):
        before, after = (members(sample(size, [*others, record], salt)) for record in (x, y))
        assert (before - after).total() == (after - before).total() <= 1


def test_every_subset_is_as_likely():
    """7,500 keys, chi-square of the 15 pairs of 6 records at 1e-6.

    Power: a sample ordered by a hash of the points, of which four are equal, is rejected for sure.
    """
    rng, pairs = np.random.default_rng(3), list(combinations(range(6), 2))

    def drawn(ids):
        seen = Counter()
        for _ in range(7500):
            found = Sample.of(2, np.arange(6), np.array(ids, dtype=np.uint64), rng.bytes(16))
            seen[tuple(sorted(found.points.tolist()))] += 1
        return np.array([seen[pair] for pair in pairs])

    assert fits(drawn([10, 11, 12, 2**63, 2**64 - 1, 0]), np.ones(15))
    assert not fits(drawn([7, 7, 7, 7, 8, 9]), np.ones(15))


@pytest.mark.parametrize("size", [1, 100])
def test_a_sample_never_holds_more_than_its_size(size):
    rng, total = np.random.default_rng(0), None
    for block in range(30):
        ids = np.arange(block * 5000, (block + 1) * 5000, dtype=np.uint64)
        part = Sample.of(size, rng.integers(0, 2**62, 5000), ids, bytes(16))
        total = part if total is None else total + part
        assert len(part.hashes) == len(total.hashes) == len(total.ids) == len(total.points) == size
        assert part.points.base is None or part.points.base.size <= 2 * size  # no view of the block is kept


@pytest.mark.parametrize(("most", "width"), [(1, 1), (255, 1), (256, 2), (65_536, 4), (2**63 - 1, 8)])
def test_counts_travel_in_the_smallest_type_and_come_back_as_they_were(most, width):
    counts = Counts(np.arange(10_000), np.append(np.ones(9_999, dtype=np.int64), most))
    packed = pickle.dumps(counts, pickle.HIGHEST_PROTOCOL)
    assert len(packed) < 10_000 * (8 + width) + 1000
    back = pickle.loads(packed)
    assert back == counts and back.keys.dtype == back.counts.dtype == np.int64
    none = pickle.loads(pickle.dumps(Counts.of(np.zeros(0, dtype=np.int64))))
    assert len(none) == 0 and none.counts.dtype == np.int64
