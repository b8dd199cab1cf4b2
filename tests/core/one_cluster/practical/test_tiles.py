"""Regions counted tile by tile are those counted at once, bit for bit, and few cells are held at a time."""

import numpy as np
import pytest

from core.aggregate import Counts
from core.domain import Grid
from core.one_cluster.practical import exceeding, tiles
from core.one_cluster.practical import fullest as module
from core.one_cluster.practical.fullest import fullest
from core.one_cluster.practical.regions import regions_of
from core.one_cluster.practical.tiles import Tile, crowded_of_all, fullest_of_all
from core.stored import InMemory, Stored
from tests.core.one_cluster.practical.steps import crowded, merged
from tests.core.test_stored import Pickles

DIMENSIONS = [1, 2, 3, 4, 5, 6, 9]  # in the first and in the last one, regions are boxes
SHAPES = ["uniform", "clump", "far clumps", "copies", "line", "corner", "few"]


def regions(d):
    return regions_of(Grid((0.0,) * d, (1.0,) * d, 2.0 ** -{1: 24, 5: 8, 6: 8, 9: 8}.get(d, 12)))


def records(cover, shape, n=900, seed=0):
    extent, d = cover.grid.extents[0], cover.grid.dimension
    rng = np.random.default_rng([seed, d])
    where = rng.integers(0, extent + 1, (n, d))
    if shape in ("clump", "far clumps", "copies"):
        where[: n // 3] = extent // 3 + rng.integers(0, extent // 60 + 2, (n // 3, d))
    if shape == "far clumps":
        where[n // 3 : n // 2] = extent - rng.integers(0, extent // 30 + 2, (n // 2 - n // 3, d))
    if shape == "copies":
        where[n // 2 :] = where[rng.integers(0, 20, n - n // 2)]
    if shape == "line":
        where[:, 1:] = where[:, :1] // 2
    if shape == "corner":
        where = extent - np.abs(rng.normal(0, extent / 40, (n, d))).astype(np.int64)
    if shape == "few":
        where = where[rng.integers(0, 5, n)]
    return np.clip(where, 0, extent)


def stored(counts, parts=5):
    first, *others = (Stored.of(part, Pickles()) for part in counts.split(parts))
    return sum(others, first)


def hold_few(monkeypatch, cover, cells=240):
    """Let few cells be held at once, and space be cut by a part of them."""
    monkeypatch.setattr(tiles, "PAIRS", cells * cover.pairs)
    monkeypatch.setattr(tiles, "_SAMPLE", 2 * cells)
    monkeypatch.setattr(tiles, "FULL", 2 * cells)
    monkeypatch.setattr(tiles, "_AT_ONCE", 50)


def held(monkeypatch):
    """Return a list in which the numbers of cells that are looked at together will be."""
    seen = []

    def counted(cover, cells, *others):
        seen.append(len(cells))
        return fullest(cover, cells, *others)

    monkeypatch.setattr(tiles, "fullest", counted)
    return seen


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_largest_counts_are_those_of_all_cells_at_once(d, shape, monkeypatch):
    cover = regions(d)
    hold_few(monkeypatch, cover)
    counts = cover.tally(records(cover, shape))
    cells, seen = cover.cells(counts.keys), held(monkeypatch)
    for low, high in ((0, 2), (2, 6), (20, 60), (100, 500), (2000, 3000)):
        at_once = fullest(cover, cells, counts.counts, low, high)
        assert fullest_of_all(cover, stored(counts), low, high).tolist() == at_once.tolist()
    assert shape in ("copies", "few") or len(set(seen)) > 1, "nothing was cut"


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("buckets", [3, 16])
def test_the_largest_counts_are_the_same_where_pairs_are_made_again(buckets, d, shape, monkeypatch):
    """Also where regions that matter share buckets with many others."""
    cover = regions(d)
    counts = cover.tally(records(cover, shape, 300))
    cells, bounds = cover.cells(counts.keys), ((0, 2), (2, 9), (20, 60), (100, 2000))
    held = [fullest(cover, cells, counts.counts, *each).tolist() for each in bounds]
    monkeypatch.setattr(module, "_HELD", 0)
    monkeypatch.setattr(exceeding, "_HELD", 200)
    monkeypatch.setattr(exceeding, "_BITS", range(buckets, buckets + 1))
    monkeypatch.setattr(module, "_AT_ONCE", 70)
    assert [fullest(cover, cells, counts.counts, *each).tolist() for each in bounds] == held


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_crowded_regions_are_those_of_all_cells_at_once(d, shape, monkeypatch):
    cover = regions(d)
    hold_few(monkeypatch, cover)
    counts = cover.tally(records(cover, shape))
    found = 0
    for level in cover.levels[::2]:
        for floor in (0, 4):
            at_once = crowded(cover, counts, level, floor)
            parts = list(crowded_of_all(cover, stored(counts), level, floor))
            assert merged(parts) == at_once
            assert sum(map(len, parts)) == len(at_once), "a region is in two parts"
            assert max(map(len, parts), default=0) <= 50
            found += len(at_once) > 1
    assert found > 3


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("shape", ["uniform", "clump", "far clumps"])
def test_few_cells_are_held_at_once(d, shape, monkeypatch):
    """As far as a tile of a few cover has few cells."""
    cover, most = regions_of(Grid((0.0,) * d, (1.0,) * d, 2.0**-24 if d == 1 else 2.0**-16)), 3000
    hold_few(monkeypatch, cover, most)
    counts = cover.tally(records(cover, shape, 40_000))
    seen = held(monkeypatch)
    fullest_of_all(cover, stored(counts), 5, 25)
    assert len(seen) > 5
    assert max(seen) < 1.5 * most < len(counts) / 5
    seen.clear()
    real = type(cover).crowded
    monkeypatch.setattr(
        type(cover), "crowded", lambda *given: [seen.append(len(given[1])), *real(*given)][1:]
    )
    level = next(level for level in cover.levels if cover.reach(level) > 1)
    assert sum(len(part) for part in crowded_of_all(cover, stored(counts), level, 0)) > 0
    assert len(seen) > 5 and max(seen) < 1.5 * most


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_margins_reach_as_far_as_the_regions_that_are_not_known(d, shape, monkeypatch):
    """And every region that a tile owns has its full count there."""
    cover, margins, real = regions(d), [], tiles._tiles
    counts = cover.tally(records(cover, shape, 600))
    hold_few(monkeypatch, cover, 100)

    def spied(cover, aggregate, margin, sample):
        margins.append(margin)
        return real(cover, aggregate, margin, sample)

    def examined(cover, cells, weights, low, high, known):
        for place, level in enumerate(cover.levels):
            assert not margins or known[place] >= high or margins[-1] >= cover.reach(level)
        return fullest(cover, cells, weights, low, high, known)

    monkeypatch.setattr(tiles, "_tiles", spied)
    monkeypatch.setattr(tiles, "fullest", examined)
    for high in (3, 20, 10_000):
        margins.clear()
        fullest_of_all(cover, stored(counts), 1, high)
    for level in cover.levels[::3]:
        full, owned = crowded(cover, counts, level, 0), []
        for tile, cells in real(cover, stored(counts), cover.reach(level), cover.cells(counts.keys)[::2]):
            here = crowded(cover, cells, level, 0)
            own = tile.owns(cover.centers(here.keys, level))
            owned.append(Counts(here.keys[own], here.counts[own]))
        assert Counts.merged(owned) == full


@pytest.mark.parametrize("d", [2, 3])
def test_few_far_cells_leave_the_others_cut(d, monkeypatch):
    """Neither are they taken for the densest cells, nor does a tile hold all of the others in its margin."""
    cover = regions_of(Grid((0.0,) * d, (2.0**24,) * d, 1.0))
    rng = np.random.default_rng(d)
    where = rng.integers(0, 2**24, (40_000, d))
    where[:, 0] = 0
    where[:40, 0] = 2**24 - rng.integers(0, 1000, 40)
    counts = cover.tally(where)
    hold_few(monkeypatch, cover, 3000)
    seen = held(monkeypatch)
    fullest_of_all(cover, stored(counts), 5, 25)
    assert 1000 < seen[0] < 3000 and max(seen) < 10_000
    sizes = [
        len(cells) for _, cells in tiles._tiles(cover, stored(counts), 1 << 12, cover.cells(counts.keys))
    ]
    assert max(sizes) < 10_000 and sum(sizes) < 3 * len(counts)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_cells_are_dealt_to_a_bounded_number_of_tiles(d):
    """Also where margins are as wide as most of the data: time and disk would have no end."""
    sample = np.random.default_rng(d).integers(0, 1 << 20, (20_000, d))
    sample[:15_000] //= 50
    for margin in (1 << 10, 1 << 14, 1 << 17, 1 << 19, 1 << 21):
        root, keys = Tile.of(sample, margin, 20, 40), np.arange(len(sample))
        root.deal(sample, Counts(keys, keys + 1), InMemory())
        assert sum(len(part) for leaf in root.leaves() for part in leaf.kept) <= 12 * len(sample)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("margin", [0, 3, 40])
def test_each_place_is_in_one_tile_and_each_cell_in_all_that_are_near(d, margin):
    rng = np.random.default_rng(d)
    sample = rng.integers(0, 1000, (300, d))
    sample[:100] //= 50
    root = Tile.of(sample, margin, 20, 40)
    leaves = list(root.leaves())
    assert len(leaves) > 3
    places = np.concatenate(
        [rng.integers(-100, 1100, (500, d)), sample[:50], [[-(1 << 60)] * d, [1 << 60] * d]]
    )
    assert (sum(leaf.owns(places).astype(int) for leaf in leaves) == 1).all()
    keys = np.arange(len(sample))
    root.deal(sample, Counts(keys, keys + 1), Pickles())
    for leaf in leaves:
        near = ((sample >= leaf.low - margin) & (sample < leaf.high + margin)).all(axis=1)
        parts = [Pickles().get(kept) for kept in leaf.kept]
        assert (
            sorted(np.concatenate([part.keys for part in parts]).tolist() if parts else [])
            == keys[near].tolist()
        )
        assert all((part.counts == part.keys + 1).all() for part in parts)
