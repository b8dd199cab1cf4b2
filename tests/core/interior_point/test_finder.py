"""Interior points: what a record costs, the promise of every method, and bad input."""

import itertools
import random

import numpy as np
import pytest

from core.aggregate import Counts, Sample
from core.budget import Budget
from core.domain import Grid
from core.gaps import Order, Runs
from core.interior_point.finder import AmongPoints, FoundPoint, depth
from core.interior_point.one_cluster import int_point
from core.interior_point.plan import InteriorPoint, candidate, plan_interior_point
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise
from tests.core.exact import fits
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
BUDGET = Budget(1.0, 1e-6)
SIZE = 6
METHODS = ["exponential", "heavy_paths", "tree_log", "one_cluster"]
HUGE = METHODS[:3]


def depths_of(points):
    """Depth of every point of the universe."""
    runs = Runs.between(Order.of(points), 0, SIZE)
    out = np.zeros(SIZE, dtype=np.int64)
    for start, length, score in zip(runs.starts, runs.lengths, depth(runs, len(points)), strict=True):
        out[start : start + length] = score
    return out


def test_depth_moves_by_at_most_one_in_one_direction_and_is_positive_inside():
    for n in range(5):
        for points in itertools.combinations_with_replacement(range(SIZE), n):
            before = depths_of(points)
            inside = [bool(points) and min(points) <= v <= max(points) for v in range(SIZE)]
            assert ((before > 0) == inside).all()
            for extra in range(SIZE):
                assert set((depths_of((*points, extra)) - before).tolist()) <= {0, 1}


@pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(1)])
def test_exponential_draws_its_distribution(noise):
    """5,000 draws, chi-square at 1e-6; half the scale is rejected with power above 1 - 1e-6."""
    points = [1, 2, 2, 4]

    def drawn(scale):
        finder = AmongPoints(SIZE, Exponential(what="point", scale=scale, spread=1))
        found = [finder.find(Order.of(points), noise) for _ in range(5000)]
        return np.bincount(found, minlength=SIZE)

    expected = np.exp(depths_of(points) / 1.0)
    assert fits(drawn(1.0), expected)
    assert not fits(drawn(0.5), expected)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("budget", [BUDGET, Budget(0.3, 0.0)])
def test_exponential_spends_what_it_says(neighbors, budget):
    chosen = candidate("exponential", 1 << 40, 0.1, budget, neighbors, bytes(16))
    noise = RecordingNoise(SeededNoise(0))
    chosen.finder.find(Order.of([5, 6, 7]), noise)
    [(_, _, scale)] = noise.calls
    assert neighbors.moves / scale == pytest.approx(chosen.mechanisms[0].epsilon)
    assert chosen.mechanisms[0].epsilon == pytest.approx(budget.epsilon, rel=1e-3)


def database(rng, bits, n):
    """Points in a random window of a random width: from a point mass to the whole universe."""
    low, width = rng.randrange(1 << bits), 1 << rng.randrange(bits)
    if rng.random() < 0.2:
        return [low] * (n - n // 4) + [rng.randrange(1 << bits) for _ in range(n // 4)]
    return [min((1 << bits) - 1, low + rng.randrange(width)) for _ in range(n)]


def successes(method, bits, neighbors, n_factor, runs):
    chosen, rng, good = (
        candidate(method, 1 << bits, 0.1, BUDGET, neighbors, bytes(16)),
        random.Random(bits),
        0,
    )
    for seed in range(runs):
        points = database(rng, bits, int(chosen.records_needed * n_factor))
        found = chosen.finder.find(Order.of(points), SeededNoise(seed))
        good += found is not None and min(points) <= found <= max(points)
    return good


@pytest.mark.parametrize(
    ("method", "bits"),
    [
        ("exponential", 16),
        ("exponential", 64),
        ("exponential", 1000),
        ("heavy_paths", 64),
        ("tree_log", 16),
        ("one_cluster", 20),
    ],
)
def test_the_promised_number_of_records_suffices(method, bits):
    """20 runs that each fail with probability at most 0.1: 13 or fewer successes have probability < 1e-3."""
    assert successes(method, bits, REPLACE, 1.0, 20) >= 14


@pytest.mark.audit
@pytest.mark.parametrize(
    ("method", "bits"), [*itertools.product(HUGE, [16, 64, 4096]), ("one_cluster", 16), ("one_cluster", 30)]
)
def test_promise_holds(method, bits):
    """300 runs (60 on the largest universe): at most 0.1 + 3 standard deviations fail."""
    runs = 60 if bits > 1000 else 300
    assert runs - successes(method, bits, REPLACE, 1.0, runs) <= 0.1 * runs + 3 * (0.09 * runs) ** 0.5


def test_the_exponential_mechanism_needs_that_many_on_spread_records():
    """A tenth of the promised records in a tiny window of a huge universe: most of 30 runs fail."""
    scale = candidate("exponential", 1 << 64, 0.1, BUDGET, ADD, bytes(16))
    assert 88 <= scale.records_needed <= 96
    few = scale.records_needed // 10
    misses = sum(
        not 7 <= (scale.finder.find(Order.of([7] * few), SeededNoise(s)) or 0) <= 7 for s in range(30)
    )
    assert misses >= 29


@pytest.mark.parametrize("method", METHODS)
def test_every_database_ends(method):
    grid = Grid((-5.0,), (1000.0,), 0.5)
    plan = plan_interior_point(grid, InteriorPoint(method), BUDGET, REPLACE, bytes(16))
    for n in (0, 1, 2, 4000):
        points = np.full((n, 1), grid.extents[0])
        block = Block(points, np.arange(n, dtype=np.uint64))
        found = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(n))
        assert found.step is None or 0 <= found.step <= grid.extents[0]
    assert FoundPoint(4).result(grid) == {"point": -3.0}
    assert FoundPoint(None).result(grid) is None


def test_ends_of_pieces_are_the_candidates():
    """Every point of a small ball; of a wide one, pieces shorter than the smallest ball is wide."""
    method = int_point(1 << 20, 1.0, 1e-6, 0.1, bytes(16))
    assert method.candidates(50, 1) == [49, 50, 51]
    for radius in (2, 5, 17, 1000, 12345):
        ends = method.candidates(10**5, radius)
        assert ends[0] == 10**5 - radius
        assert ends[-1] == 10**5 + radius
        assert len(ends) <= method.most_candidates
        assert max(np.diff(ends)) <= max(1, radius / method.factor)


def test_the_choice_of_an_end_is_as_charged():
    method = int_point(1 << 10, 1.0, 1e-6, 0.1, bytes(16))
    noise = RecordingNoise(SeededNoise(0))
    assert method.find(Order.of([77] * method.records_needed(0.1)), noise) == 77
    assert method.find(Order.of([77] * 5), noise) is None
    kind, _, scale = noise.calls[-1]
    assert kind == "select"
    assert 2 / scale == pytest.approx(method.draws()[-1].cost.epsilon)


def test_a_universe_that_is_no_power_of_two_is_not_left():
    plan = plan_interior_point(
        Grid((0.0,), (1000.0,), 1.0), InteriorPoint("tree_log"), BUDGET, REPLACE, bytes(16)
    )
    order = Order.of_counts(Counts.of(np.full(30_000, 1000)))
    assert {plan.rounds[0].finder.find(order, SeededNoise(s)) for s in range(3)} <= {1000, None}


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_not_overspent(method):
    for budget in (BUDGET, Budget(0.1, 1e-9), Budget(5.0, 1e-4)):
        plan = plan_interior_point(
            Grid((0.0,), (2.0**30,), 1.0), InteriorPoint(method), budget, REPLACE, bytes(16)
        )
        assert 0.95 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
        assert sum(m.delta for m in plan.mechanisms) <= budget.delta


def test_auto_takes_what_needs_fewest_records():
    plan = plan_interior_point(Grid((0.0,), (2.0**30,), 1.0), InteriorPoint(), BUDGET, REPLACE, bytes(16))
    assert plan.method == "exponential"
    assert set(plan.alternatives) == set(METHODS[1:])
    assert all(
        other["records_needed"] > plan.promises["records_needed"] for other in plan.alternatives.values()
    )
    assert not plan_interior_point(Grid((0.0,), (9.0,), 1.0), InteriorPoint(), BUDGET, ADD, b"").alternatives
    needs = [candidate(method, 1 << 8192, 0.1, BUDGET, REPLACE, bytes(16)).records_needed for method in HUGE]
    assert needs[1] < needs[0]


@pytest.mark.parametrize(
    ("method", "budget", "neighbors", "message"),
    [
        ("tree_log", BUDGET, ADD, r"params\.method is tree_log: .* replace_one only"),
        ("heavy_paths", Budget(1.0, 0.0), REPLACE, r"privacy\.delta is 0"),
    ],
)
def test_what_a_method_does_not_serve_is_refused(method, budget, neighbors, message):
    with pytest.raises(ValueError, match=message):
        plan_interior_point(Grid((0.0,), (9.0,), 1.0), InteriorPoint(method), budget, neighbors, b"")


@pytest.mark.parametrize("values", [{"method": "best"}, {"failure": 0.0}])
def test_bad_parameters_are_named(values):
    with pytest.raises(ValueError, match=rf"params\.{next(iter(values))} is"):
        InteriorPoint(**values)


def test_several_columns_are_refused():
    with pytest.raises(ValueError, match=r"domain\.lower has 2 values"):
        plan_interior_point(Grid((0.0, 0.0), (9.0, 9.0), 1.0), InteriorPoint(), BUDGET, ADD, b"")


WIDE = Grid((2**60 + 1,), (2**60 + 2**62,), 1)


@pytest.mark.parametrize("method", HUGE)
def test_the_widest_axis_is_served_exactly(method):
    """A point mass between lone extremes: what is found lies among 20,000 records, and is exact."""
    plan = plan_interior_point(WIDE, InteriorPoint(method), BUDGET, REPLACE, bytes(16))
    values = np.array([2**61 + 1] * 10_000 + [2**61 + 3] * 10_000)
    block = Block(WIDE.quantize(values[:, None]), np.arange(len(values), dtype=np.uint64))
    found = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(1)).result(WIDE)
    assert type(found["point"]) is int
    assert 2**61 + 1 <= found["point"] <= 2**61 + 3


@pytest.mark.parametrize("method", METHODS[1:])
def test_no_machine_holds_more_records_than_are_used(method):
    grid = Grid((0.0,), (2.0**30,), 1.0)
    plan = plan_interior_point(grid, InteriorPoint(method), BUDGET, REPLACE, bytes(16))
    [step], most = plan.rounds, plan.promises["records_needed"]
    rng, total = np.random.default_rng(0), None
    for number in range(12):
        points = rng.integers(10**6, 10**8, (4096, 1))
        part = step.summarize(Block(points, np.arange(4096, dtype=np.uint64) + np.uint64(number << 12)), None)
        total = part if total is None else total + part
        assert len(total.points) <= most
    assert step.floor is None
    assert isinstance(total, Sample)
    assert len(total.points) == min(most, 12 * 4096)
    assert 10**6 <= step.release(total, None, SeededNoise(0)).step <= 10**8
    assert any(f"{most:,} records" in note and "one machine" in note for note in plan.notes)


@pytest.mark.parametrize("method", METHODS[1:])
def test_what_is_drawn_does_not_depend_on_records_beyond_the_sample(method):
    """The same draws on the sample alone and on all records: the rest of them was not looked at."""
    plan = plan_interior_point(
        Grid((0.0,), (2.0**20,), 1.0), InteriorPoint(method), BUDGET, REPLACE, bytes(16)
    )
    [step] = plan.rounds
    points = np.random.default_rng(2).integers(0, 2**20, (30_000, 1))
    block = Block(points, np.arange(30_000, dtype=np.uint64))
    least = step.summarize(block, None)
    alone = Block(least.points[:, None], least.ids)
    assert step.summarize(alone, None) == least
    noises = RecordingNoise(SeededNoise(5)), RecordingNoise(SeededNoise(5))
    found = [
        run_in_memory([step], [rows], None, noise) for rows, noise in zip((block, alone), noises, strict=True)
    ]
    assert found[0] == found[1]
    assert len(noises[0].calls) == len(noises[1].calls) > 0


def test_one_cluster_is_refused_where_distances_do_not_fit():
    with pytest.raises(ValueError, match=r"params\.method is one_cluster: .* 2\^31 grid points"):
        plan_interior_point(WIDE, InteriorPoint("one_cluster"), BUDGET, REPLACE, bytes(16))
    plan = plan_interior_point(WIDE, InteriorPoint(), BUDGET, REPLACE, bytes(16))
    assert set(plan.alternatives) == {"heavy_paths", "tree_log"}
