"""The rows of a unit meet, with what they hold, in an order that follows from them alone."""

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from core.domain import Grid
from transforms import reduce_units as reduce_units_module
from transforms.point_words import number_of_words, point_words, points_of
from transforms.reduce_units import in_batches
from transforms.row_races import repeated
from transforms.sorted_words import sorted_numbers, sorted_within, sorted_words
from transforms.unit_keys import unit_keys
from transforms.unit_rows import (
    GatheredLabels,
    ShardRows,
    joined,
    numbers_of,
    renumbered,
    unit_rows,
)

SALT = b"a salt of 16 byt"
RNG = np.random.default_rng(0)
WORDS = {
    "hashes": RNG.integers(0, 2**64, 5000, dtype=np.uint64),
    "copies": RNG.integers(0, 2**64, 50, dtype=np.uint64)[RNG.integers(0, 50, 3000)],
    "small": RNG.integers(0, 100, 1000).astype(np.uint64),
    "equal but for lower bits": np.uint64(7 << 40) + RNG.integers(0, 500, 1000).astype(np.uint64),
    "one": np.array([2**64 - 1], dtype=np.uint64),
    "none": np.empty(0, dtype=np.uint64),
}


@pytest.mark.parametrize("kind", WORDS)
def test_words_are_sorted_and_equal_ones_stay_in_order(kind: str) -> None:
    words = WORDS[kind].copy()
    order, found = sorted_words(words)
    assert order.tolist() == np.argsort(words, kind="stable").tolist()
    assert np.array_equal(found, np.sort(words)) and np.array_equal(words, WORDS[kind])


@pytest.mark.parametrize("top", [5, 2**20, 2**55])
def test_numbers_are_sorted_and_equal_ones_stay_in_order(top: int) -> None:
    for size in (0, 1, 2, 5000):
        numbers = RNG.integers(0, top, size)
        assert sorted_numbers(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()


@pytest.mark.parametrize("most", [1, 40, 2**30])
@pytest.mark.parametrize("top", [3, 2**64 - 1])
def test_rows_of_one_hash_are_sorted_by_what_else_they_hold(most: int, top: int) -> None:
    """Hashes that differ in the lowest bits alone are different, though these do not fit beside `of`."""
    of, hashes = RNG.integers(0, most, 2000), RNG.integers(0, top, 2000, dtype=np.uint64)
    further = RNG.permutation(2000)
    order = sorted_within(of, hashes, (further,))
    assert order.tolist() == np.lexsort((further, hashes, of)).tolist()


@pytest.mark.parametrize("copies", [0, 1, 3, 400])
@pytest.mark.parametrize("many", [1000, (1 << 16) - 404, (1 << 16) + 1000])
def test_hashes_that_occur_again_are_found_and_no_others(copies: int, many: int) -> None:
    """Also beside hashes that have the same upper half, and around 2^16 of them."""
    hashes = np.append(RNG.integers(0, 2**64, many, dtype=np.uint64), np.arange(4, dtype=np.uint64))
    hashes = np.append(hashes, hashes[:copies])
    counts = Counter(hashes.tolist())
    twice = [i for i, each in enumerate(hashes.tolist()) if counts[each] > 1]
    assert sorted(repeated(hashes).tolist()) == twice


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
@pytest.mark.parametrize("wide", [False, True])
def test_points_are_what_their_words_say(axes: int, wide: bool) -> None:
    top = 2**61 if wide else 2**30
    grid = Grid((0,) * axes, (top,) * axes, 1) if wide else Grid((0.0,) * axes, (float(top),) * axes, 1.0)
    points = RNG.integers(0, top + 1, (100, axes))
    words = point_words(points, grid)
    assert len(words) == number_of_words(grid) == (axes if wide else (axes + 1) // 2)
    assert points_of(words, grid).tolist() == points.tolist()


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("cities", [3, 5000])
def test_all_rows_of_a_unit_are_in_one_shard_with_their_labels(text: bool, cities: int) -> None:
    """From two parts of the rows, with few labels and with more than a shard has rows."""
    units = RNG.integers(0, 200, 3000)
    column = pa.array([f"person {unit}" for unit in units]) if text else pa.array(units)
    city = RNG.integers(0, cities, 3000)
    gathered: dict[int, list[bytes]] = {}
    for some in (slice(0, 2900), slice(2900, 3000)):
        labels, place = np.unique([b"%d" % each for each in city[some]], return_inverse=True)
        rows = ShardRows(16, SALT)
        rows.add(unit_keys(column[some], SALT), [units[some].astype(np.uint64), place.astype(np.uint64)])
        for number, piece in rows.pieces(labels):
            gathered.setdefault(number, []).append(piece)
    assert list(gathered) == list(range(16))
    seen, found = Counter(), Counter()
    for pieces in filter(any, gathered.values()):  # a shard may have no unit
        kept = {}
        for parts in itertools.permutations(pieces):
            labels = GatheredLabels()
            rows = joined([labels.words_of(part) for part in parts if part])
            names = list(labels)
            assert len(names) == len(set(names)) <= len(rows[0]) + 3
            shard = unit_rows(rows, 2, SALT)
            own = [(int(unit), names[label]) for unit, label in zip(*shard.words, strict=True)]
            index, first = renumbered(shard)
            assert len({unit for unit, _ in own}) == len(first)
            assert [own[first[i]][0] for i in index] == [unit for unit, _ in own]
            kept[tuple(shard.ids[first].tolist())] = Counter(own)
        assert len(kept) == 1  # in whatever order the pieces come
        found += next(iter(kept.values()))
        seen.update({unit for unit, _ in own})
    assert set(seen.values()) == {1}
    assert found == Counter((int(unit), b"%d" % each) for unit, each in zip(units, city, strict=True))


@pytest.mark.parametrize("units", [40, 5000])
def test_pieces_are_the_same_whether_units_have_a_dictionary(units: int) -> None:
    """One of few units, one of more than there are rows, and one that has each unit twice."""
    names = pa.array([f"person {unit}" for unit in range(units)])
    who = RNG.integers(0, units, 3000)
    twice = pa.DictionaryArray.from_arrays(who + units * (np.arange(3000) % 2), pa.concat_arrays([names] * 2))
    pieces = []
    for column in (names.take(pa.array(who)), pa.DictionaryArray.from_arrays(who, names), twice):
        rows = ShardRows(16, SALT)
        for first in (0, 1000):
            keys = unit_keys(column, SALT).slice(first, 2000 if first else 1000)
            rows.add(keys, [np.arange(len(keys), dtype=np.uint64) + np.uint64(first)])
        pieces.append(dict(rows.pieces()))
    assert pieces[0] == pieces[1] == pieces[2] and len(pieces[0]) == 16


@pytest.mark.parametrize("many", [2, 50, 10_000])
@pytest.mark.parametrize("pieces", [1, 5])
def test_all_rows_of_a_unit_are_in_one_batch(monkeypatch: pytest.MonkeyPatch, pieces: int, many: int) -> None:
    monkeypatch.setattr(reduce_units_module, "_MANY", many)
    ids = RNG.integers(0, 200, 3000).astype(np.uint64)
    rows = [ids, np.arange(3000, dtype=np.uint64)]
    cuts = [0, *sorted(RNG.integers(0, 3000, pieces - 1).tolist()), 3000]
    found = in_batches([[w[i:j] for w in rows] for i, j in itertools.pairwise(cuts)], SALT)
    batches = [joined(batch) for batch in found]
    assert sorted(np.concatenate([number for _, number in batches]).tolist()) == list(range(3000))
    assert all((ids[number.astype(int)] == unit).all() for unit, number in batches)
    seen = Counter(unit for some, _ in batches for unit in set(some.tolist()))
    assert set(seen.values()) == {1} and all(map(len, itertools.chain.from_iterable(batches)))
    assert len(batches) == 1 if many > 3000 else max(len(unit) for unit, _ in batches) < 300


@pytest.mark.parametrize("shift", [0, 8, 33, 46])
def test_units_of_every_pattern_fill_the_shards(shift: int) -> None:
    rows = ShardRows(64, SALT)
    rows.add(pa.array(np.arange(100_000) << shift), [])
    sizes = [len(piece) // 8 for _, piece in rows.pieces()]
    assert min(sizes) > 0.8 * 100_000 / 64 and max(sizes) < 1.2 * 100_000 / 64


@pytest.mark.parametrize("kind", [kind for kind in WORDS if kind != "none"])
def test_equal_words_alone_have_equal_numbers_whatever_their_order(kind: str) -> None:
    words = np.append(WORDS[kind], np.array([0, 2**64 - 1], dtype=np.uint64))
    numbers, bound = numbers_of(words)
    assert numbers.min() >= 0 and numbers.max() < bound <= 5 * len(words)
    pairs = set(zip(words.tolist(), numbers.tolist(), strict=True))
    assert len(pairs) == len({word for word, _ in pairs}) == len({number for _, number in pairs})
    order = RNG.permutation(len(words))
    assert np.array_equal(numbers_of(words[order])[0], numbers[order])


def test_a_shard_without_rows_has_an_empty_piece() -> None:
    rows = ShardRows(4, SALT)
    assert list(rows.pieces()) == [(number, b"") for number in range(4)]
    rows.add(pa.array([], pa.int64()), [np.empty(0, np.uint64)])
    assert list(rows.pieces(np.array([b"a"]))) == [(number, b"") for number in range(4)]
