"""Level and ball from one pass are those of two passes, bit for bit, whatever the samples."""

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.mechanisms.choosing import ChoiceOfKeys
from core.neighbors import Neighbors
from core.one_cluster.found import NotFound
from core.one_cluster.params import OneCluster
from core.one_cluster.practical import tiles
from core.one_cluster.practical.locate import FindRadiusAndRegion, Located, PoissonSample
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import Block, total_in_memory
from core.side_by_side import SideBySide
from tests.core.one_cluster.practical.steps import alone
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise
from tests.core.test_stored import Pickles

CHOOSE = ChoiceOfKeys.__call__
SALT = b"a salt of 16 byt"
N = 6000
TARGETS = {200: 1, 1500: 1, 10_000: 2, 20_000: 2}
"""Targets, and how many samples are counted: below 8,000 both have all records."""


def plan_of(d, target):
    grid = Grid((0.0,) * d, (1.0,) * d, 2.0**-16)
    neighbors = Neighbors("add_or_remove_one")
    return ONE_CLUSTER.plan(grid, OneCluster(target=target), Budget(1.0, 1e-6), neighbors, SALT)


def blocks(d, target):
    """Return records in three blocks: half of them in a small ball, or all where the target is large."""
    rng = np.random.default_rng(d)
    n = max(N, 2 * target)
    points = rng.integers(0, 2**16, (n, d))
    points[: n // 2] = 30_000 + rng.integers(-300, 300, (n // 2, d))
    ids = rng.permutation(n).astype(np.uint64)
    return [Block(points[i::3], ids[i::3]) for i in range(3)]


def choose_at_once(self: ChoiceOfKeys) -> int | None:
    """Choose from all keys in one part, ascending, and check that parts have no key in common."""
    parts = [Counts(*part) for part in self.parts()]
    whole = Counts.merged(parts) if parts else Counts.of(np.zeros(0, dtype=np.int64))
    assert sum(map(len, parts)) == len(whole)
    return CHOOSE(replace(self, parts=lambda: [(whole.keys, whole.counts)]))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("pairs", [tiles.PAIRS, 5000], ids=["at once", "in tiles"])
def test_the_draws_are_those_of_two_passes(pairs, d, target, monkeypatch):
    monkeypatch.setattr(tiles, "PAIRS", pairs)
    monkeypatch.setattr(ChoiceOfKeys, "__call__", choose_at_once)
    both, data = plan_of(d, target).rounds[0], blocks(d, target)
    assert isinstance(both, FindRadiusAndRegion)
    cells = total_in_memory(both, data, None, SeededNoise(0))
    assert [len(sample.parts) for sample in cells.samples] == [both.sections] * TARGETS[target]
    (radius, region), found = alone(both), 0
    for seed in range(3):
        one, two = (RecordingNoise(SeededNoise(seed)) for _ in range(2))
        after = both.release(cells, None, one)
        scaled = radius.release(total_in_memory(radius, data, None), None, two)
        located = region.release(total_in_memory(region, data, scaled), scaled, two)
        assert repr(after) == repr(located)
        assert [(kind, np.asarray(values).tolist(), scale) for kind, values, scale in one.calls] == [
            (kind, np.asarray(values).tolist(), scale) for kind, values, scale in two.calls
        ]
        found += isinstance(after, Located)
    assert found


@pytest.mark.parametrize("target", TARGETS)
def test_records_may_come_in_any_order_and_blocks(target):
    both, data = plan_of(2, target).rounds[0], blocks(2, target)
    whole = Block(np.concatenate([b.points for b in data]), np.concatenate([b.ids for b in data]))
    cells = both.summarize(whole, None)
    assert cells == total_in_memory(both, data[::-1], None) == total_in_memory(both, data, None)
    shards = cells.split(16)
    assert len(shards) == 16 and len({len(part.samples) for part in shards}) == 1
    assert reduce(add, shards) == SideBySide.merged(shards) == cells
    stored = [both.examine(shard, None, SeededNoise(0), Pickles()) for shard in shards]
    assert [sample.whole() for sample in reduce(add, stored).samples] == list(cells.samples)


def test_where_no_level_holds_the_target_no_ball_is_drawn():
    both = plan_of(2, 20_000).rounds[0]
    nothing = both.summarize(Block(np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.uint64)), None)
    noise = RecordingNoise(SeededNoise(0, factor=0))
    assert both.release(nothing, None, noise) == NotFound()
    assert len(noise.calls) == 1


def test_samples_are_those_that_the_draws_are_charged_for():
    both = plan_of(2, 20_000).rounds[0]
    level, region = both.draws()
    assert [sample.rate for sample in both.samples] == [level.rate, region.rate] == pytest.approx([0.4, 0.8])
    assert both.samples[0].tweak != both.samples[1].tweak
    assert plan_of(2, 200).rounds[0].samples == (PoissonSample(1.0, SALT, 1),)
