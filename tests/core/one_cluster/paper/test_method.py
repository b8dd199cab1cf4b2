"""The published 1-cluster: sensitivities by brute force, scales against the plan, and its promise."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.one_cluster.found import Found, NotFound
from core.one_cluster.paper.good_center import CenterScales, GoodCenter
from core.one_cluster.paper.good_radius import (
    Radius,
)
from core.one_cluster.paper.weighted import Weighted
from core.one_cluster.params import OneCluster
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

BUDGET = Budget(1.0, 1e-6)
REPLACE = Neighbors("replace_one")
SALT = bytes(range(16))


def unit_cube(d, bits):
    return Grid((0.0,) * d, (1.0,) * d, 2.0**-bits)


def plan_for(grid, target, budget=BUDGET):
    return ONE_CLUSTER.plan(grid, OneCluster(target, method="paper"), budget, REPLACE, SALT)


def clustered(grid, d, rng, cluster, points=60, background=40, spread=12):
    """Weighted points: a cluster of `cluster` records in a ball of radius `spread`, the rest spread out."""
    extent = grid.extents[0]
    middle = rng.integers(extent // 4, extent // 2, size=d)
    offsets = rng.normal(size=(points, d))
    offsets *= (spread * rng.uniform(0, 1, points) / np.linalg.norm(offsets, axis=1))[:, None]
    near = middle + np.floor(np.abs(offsets)).astype(np.int64) * np.sign(offsets).astype(np.int64)
    far = rng.integers(0, extent + 1, size=(background, d))
    shares = np.full(points, cluster // points)
    shares[0] += cluster - shares.sum()
    counts = np.append(shares, rng.integers(1, cluster // 200, background))
    return Weighted.merged(np.concatenate([near, far]), counts)


def best_radius_at_least(data, target):
    """Half the smallest radius about a data point that holds the target: no ball is smaller than that."""
    squares = ((data.points[:, None] - data.points[None]) ** 2).sum(axis=2)
    for square in np.unique(squares):
        if ((squares <= square) @ data.counts).max() >= target:
            return math.sqrt(square) / 2
    raise AssertionError


def held(data, found):
    inside = ((data.points - found.center) ** 2).sum(axis=1) <= found.radius**2
    return int(data.counts[inside].sum())


def run_on(plan, data, noise):
    state = plan.start
    for step in plan.rounds:
        state = step.release(data, state, noise)
    return state


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_it_keeps_its_promise_on_enough_data(d, seed):
    """A cluster of 2 10^10 records, wide enough for the promised radius to mean something.

    At failure 0.001 all twelve runs fail with probability at most 0.012, and repeat by their seeds.
    """
    grid = unit_cube(d, 24)
    target = 2 * 10**10
    params = OneCluster(target, failure=0.001, method="paper")
    plan = ONE_CLUSTER.plan(grid, params, BUDGET, REPLACE, SALT)
    assert plan.smallest_target <= target
    rng = np.random.default_rng([d, seed])
    data = clustered(grid, d, rng, target, spread=12 if seed else 400)
    found = run_on(plan, data, SeededNoise(seed))
    assert isinstance(found, Found)
    assert held(data, found) >= target - plan.promises["missing"]
    widest = plan.promises["radius_factor"] * 2 * best_radius_at_least(data, target)
    assert found.radius <= widest  # twice the lower bound of r_opt is at least r_opt
    assert found.radius < grid.extents[0] / 10
    assert found.count <= data.total + 10**4
    assert found.result(grid).count == found.count


def test_it_keeps_its_promise_with_real_noise():
    """Fails with probability at most 1e-6, by its own promise."""
    grid, target = unit_cube(2, 24), 2 * 10**10
    plan = ONE_CLUSTER.plan(grid, OneCluster(target, failure=1e-6, method="paper"), BUDGET, REPLACE, SALT)
    data = clustered(grid, 2, np.random.default_rng(0), target)
    found = run_on(plan, data, SecureNoise())
    assert held(data, found) >= target - plan.promises["missing"] > 0
    assert found.radius < grid.extents[0] / 10


def test_many_equal_records_give_radius_zero():
    grid, target = unit_cube(2, 24), 2 * 10**10
    data = Weighted(np.array([[5, 7], [900, 4]]), np.array([target + 5, 10**6]))
    found = run_on(plan_for(grid, target), data, SeededNoise(1))
    assert isinstance(found, Found)
    assert (found.center.tolist(), found.radius) == ([5, 7], 0)
    assert abs(found.count - target) < 10**4


def test_it_draws_the_scales_of_the_plan():
    """Every real draw's scale is one the plan lists, as often as the plan lists it at most."""
    grid, target = unit_cube(2, 24), 2 * 10**10
    plan = plan_for(grid, target)
    noise = RecordingNoise(SeededNoise(0))
    data = clustered(grid, 2, np.random.default_rng(0), target)
    radius = plan.rounds[0].release(data, plan.start, noise)
    radius_calls, noise.calls = noise.calls, []
    plan.rounds[1].release(data, radius, noise)
    reach = min(
        math.ceil(plan.rounds[1].scales.reach(data.total) * radius.half_steps / 2),
        2 * grid.bounding_radius,
    )
    for name, calls in (("good_radius", radius_calls), ("good_center", noise.calls)):
        listed = [m for m in plan.mechanisms if m.round == name]
        interval = plan.rounds[1].scales.intervals.scale
        assert sum(scale == interval for _, _, scale in calls) == (2 if name == "good_center" else 0)
        listed += [m for m in listed if m.scale == interval]  # one entry for both axes
        for kind, _, scale in calls:
            if name == "good_center" and scale == pytest.approx(16 / (BUDGET.epsilon / 2)):
                continue  # AboveThreshold lists its threshold's scale
            expected = [m.scale * (reach if kind == "gaussian" else 1) for m in listed]
            match = next(i for i, e in enumerate(expected) if scale >= e * (1 - 1e-12) and scale <= e * 1.01)
            del listed[match]
        assert not listed


@pytest.mark.parametrize("d", [1, 2, 50, 400])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 16.0])
def test_the_spend_is_within_the_budget(d, epsilon):
    budget = Budget(epsilon, 1e-6)
    plan = plan_for(unit_cube(d, 12), 10**10, budget)
    assert 0.5 * epsilon < plan.spend.epsilon <= epsilon
    assert sum(m.delta for m in plan.mechanisms) < budget.delta
    for name in ("good_radius", "good_center"):
        listed = [m for m in plan.mechanisms if m.round == name]
        assert sum(m.epsilon for m in listed) <= epsilon / 2 * (1 + 1e-9)
        assert sum(m.delta for m in listed) <= budget.delta / 2 * (1 + 1e-9)


def gaussian_delta(scale, sensitivity, epsilon):
    """Exact delta of the Gaussian mechanism at epsilon (Balle and Wang 2018)."""
    ratio = sensitivity / scale
    high, low = (stats.norm.cdf(side * ratio / 2 - epsilon / ratio) for side in (1, -1))
    return high - math.exp(epsilon) * low


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 16.0])
def test_every_scale_costs_what_the_plan_charges(epsilon):
    plan = plan_for(unit_cube(3, 16), 10**10, Budget(epsilon, 1e-6))
    for m in plan.mechanisms:
        if m.kind == "discrete Gaussian":
            assert m.rho == pytest.approx((m.sensitivity / m.scale) ** 2 / 2)
            spent = m.rho + 2 * math.sqrt(m.rho * math.log(1 / 1e-7))
            assert gaussian_delta(m.scale, m.sensitivity, spent) <= 1e-7
            assert gaussian_delta(m.scale / 3, m.sensitivity, spent) > 1e-7
        elif m.kind == "AboveThreshold":
            query = plan.rounds[1].scales.shift.query_scale
            assert m.epsilon == pytest.approx(m.sensitivity / m.scale + 2 * m.sensitivity / query)
        elif m.kind == "stability histograms":
            assert m.epsilon == pytest.approx(3 * m.sensitivity / m.scale)
        else:
            assert m.epsilon == pytest.approx(m.sensitivity / m.scale)


@pytest.mark.parametrize("d", [1, 10, 100, 5000])
@pytest.mark.parametrize("delta", [1e-12, 0.4])
def test_the_axes_stay_within_their_share(d, delta):
    for epsilon in (0.01, 1.0, 8.0):
        spent = CenterScales(d, epsilon, delta, 0.1).intervals.cost
        assert spent.epsilon <= epsilon / 4
        assert spent.delta <= delta / 4


@pytest.mark.parametrize("seed", range(30))
def test_what_good_center_adds_noise_to_moves_by_what_is_charged(seed):
    """The fullest box's count by at most 1; the boxes' and intervals' counts by at most 2 in L1."""
    rng, grid = np.random.default_rng(seed), unit_cube(2, 10)
    step = GoodCenter(grid, 0, CenterScales(2, 0.5, 1e-7, 0.1), seed)
    points = np.concatenate([rng.integers(300, 340, size=(30, 2)), rng.integers(0, 1025, size=(9, 2))])
    replaced = points.copy()
    replaced[rng.integers(39)] = rng.integers(0, 1025, size=2)
    before, after = Weighted.of(points), Weighted.of(replaced)
    for number in range(3):
        counts = []
        for data in (before, after):
            cells = step._cells(step._image(data, 2), 150, number)
            tally = data.tally(cells)[1]
            counts.append(dict(zip(map(tuple, np.unique(cells, axis=0).tolist()), tally, strict=True)))
        first, second = counts
        assert abs(max(first.values()) - max(second.values())) <= 1
        assert sum(abs(first.get(c, 0) - second.get(c, 0)) for c in first | second) <= 2


def test_a_record_is_in_one_box_whatever_the_others():
    """Above 46 ln(2 n / beta) columns the boxes live in a projection, which other records do not move."""
    d, rng = 400, np.random.default_rng(0)
    grid = unit_cube(d, 12)
    step = GoodCenter(grid, 5, CenterScales(d, 0.5, 1e-7, 0.1), seed=3)
    k = step.scales.image(20)
    assert k == math.ceil(46 * math.log(2 * 20 / 0.1)) < d
    data = Weighted.of(rng.integers(0, 2**12, size=(20, d)))
    image = step._image(data, k)
    alone = [step._image(data.where(np.arange(20) == i), k)[0] for i in range(20)]
    assert np.array_equal(image, alone)
    moved = data.points[:, None] - data.points[None]
    ratio = np.square(image[:, None] - image[None]).sum(axis=2) / np.maximum(1, (moved**2).sum(axis=2))
    assert (ratio[~np.eye(20, dtype=bool)] > 0.5).all()
    assert (ratio < 1.5).all()
    assert isinstance(step.release(data, Radius(4), SeededNoise(0)), NotFound)


def test_nine_events_share_the_failure_and_the_second_round_knows_what_the_first_may_lose():
    first, second = plan_for(unit_cube(2, 16), 10**12).rounds
    assert first.scales.beta == second.scales.beta == pytest.approx(0.1 / 9)
    assert second.target == 10**12 - 3 * first.scales.gamma
    assert plan_for(unit_cube(2, 16), 10**15).promises["missing"] > 3 * first.scales.gamma


def test_the_box_is_one_of_the_chosen_shift_and_of_side_300_r(monkeypatch):
    class Third(SeededNoise):
        def answer(self, draw, sample, unit=1.0):
            return 2 if draw == scales.shift else super().answer(draw, sample, unit)

    scales, seen = CenterScales(2, 0.5, 1e-7, 0.1), []
    cells = GoodCenter._cells
    monkeypatch.setattr(GoodCenter, "_cells", lambda *given: seen.append(given[2:]) or cells(*given))
    data = Weighted(np.array([[300, 300]]), np.array([10**6]))
    GoodCenter(unit_cube(2, 10), 0, scales, 1).release(data, Radius(7), Third(0))
    assert seen == [(300 * 7 / 2, 2)]


@pytest.mark.parametrize("dimension", [1, 8, 200])
def test_some_shift_keeps_the_cluster_whole(dimension):
    scales = CenterScales(dimension, 0.5, 1e-7, 0.01)
    missed = 1 - 0.99 ** scales.image(10**6)
    assert missed ** scales.shifts(10**6) <= 0.01


def test_the_published_number_of_shifts_bounds_ours():
    for d, n, beta in itertools.product((1, 100, 3000), (10, 10**6, 10**12), (0.01, 0.1)):
        scales = CenterScales(d, 0.5, 1e-7, beta)
        assert scales.shifts(n) <= math.ceil(2 * n * math.log(1 / beta) / beta)


def test_above_threshold_stops_where_a_shift_keeps_the_cluster_whole():
    """The published margin 100 / epsilon ln(2 n / beta) exceeds the error of the noise really drawn."""
    for d, n, beta in itertools.product((1, 100, 3000), (10**4, 10**9, 2**45), (1e-4, 0.1)):
        for epsilon in (0.001, 8.0):
            scales = CenterScales(d, epsilon, 1e-7, beta)
            error = scales.shift.error(scales.shifts(n), beta)
            assert error <= math.floor(100 / epsilon * scales.log(n))


def test_rounds_run_on_blocks_and_do_not_depend_on_their_split():
    grid = unit_cube(2, 10)
    points = np.random.default_rng(0).integers(0, 30, size=(60, 2))
    ids = np.arange(60, dtype=np.uint64)
    whole = [Block(points, ids)]
    parts = [Block(points[i::4], ids[i::4]) for i in range(4)]
    step = plan_for(grid, 40).rounds[0]
    summed = step.summarize(parts[3], None) + step.summarize(parts[0], None)
    summed = summed + (step.summarize(parts[2], None) + step.summarize(parts[1], None))
    assert summed == step.summarize(whole[0], None)
    assert summed.total == 60
    plan = plan_for(grid, 40)
    for blocks in (whole, parts):
        state = run_in_memory(plan.rounds, blocks, plan.start, SeededNoise(0))
        assert isinstance(state, Found | NotFound)


@pytest.mark.parametrize("target", [1, 5, 10**9, 2**53 - 1])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_it_is_total(target, n):
    grid = unit_cube(1, 6)
    plan = plan_for(grid, target)
    block = Block(np.arange(n)[:, None], np.arange(n, dtype=np.uint64))
    for seed in range(3):
        state = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(seed))
        assert isinstance(state, Found | NotFound)
        if n < target:
            assert isinstance(state, NotFound)
    state = plan.rounds[1].release(Weighted.of(block.points), Radius(1 if n else 0), SeededNoise(0))
    assert isinstance(state, Found | NotFound)


def test_the_plan_says_how_large_the_target_must_be():
    small = plan_for(unit_cube(2, 16), 10**6)
    assert small.smallest_target > 10**9
    assert set(small.promises.values()) == {None}
    assert any("too small for a promise" in note for note in small.notes)
    enough = plan_for(unit_cube(2, 16), small.smallest_target)
    assert enough.promises["missing"] <= small.smallest_target / 2
    assert 1800 * math.sqrt(2) < enough.promises["radius_factor"] < 1900 * math.sqrt(2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"neighbors": Neighbors("add_or_remove_one")}, "supports only replace_one"),
        ({"budget": Budget(1.0, 0.0)}, "needs a delta above 0"),
        ({"budget": Budget(17.0, 1e-6)}, "^epsilon is 17.0: method paper"),
        ({"params": OneCluster(10, method="paper", shares={"good_radius": 1.0})}, "^shares is set"),
    ],
)
def test_what_the_paper_does_not_cover_is_refused(change, sentence):
    usual = {"params": OneCluster(10, method="paper"), "budget": BUDGET, "neighbors": REPLACE}
    with pytest.raises(ValueError, match=sentence):
        ONE_CLUSTER.plan(unit_cube(2, 8), salt=SALT, **(usual | change))
