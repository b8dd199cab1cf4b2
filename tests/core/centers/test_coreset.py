"""Cells, second moments and the coreset: exactness, sensitivity against what the plan charges, totality."""

import itertools
import math

import numpy as np
import pytest

from core.aggregate import CellCounts
from core.budget import Budget
from core.centers.cells import AXIS_UNIT, Frame
from core.centers.center_averages import CenterAverages
from core.centers.found import Centers
from core.centers.iteration import scattered
from core.centers.moments import MAX_DIMENSION, Moments, public_half, random_frame
from core.centers.params import KMeans, KMedian
from core.centers.solver import Solver, squared_distances
from core.centers.space import Space, nearest
from core.centers.task import K_MEANS, K_MEDIAN
from core.domain import Ball, Grid
from core.neighbors import Neighbors
from core.noise import Noise
from core.rounds import Block, run_in_memory
from tests.core.seeded import SeededNoise
from tests.measured.cases import Case
from tests.measured.cases import cube as grid_of
from tests.measured.trials import measure

BUDGET = Budget(1.0, 1e-6)
ONE = Neighbors("add_or_remove_one")
RELATIONS = [ONE, Neighbors("replace_one")]
SALT = b"a salt of 16 byt"


def cube(d, step=2.0**-10):
    return Grid((-1.0,) * d, (1.0,) * d, step)


def block(points):
    points = np.asarray(points, dtype=np.int64)
    return Block(points, np.arange(len(points), dtype=np.uint64))


class Replay(Noise):
    """Answers as scripted, or with noise; keeps the exact values and the scales of each draw."""

    def __init__(self, answers=None):
        self.given, self.answers, self.drawn = answers, [], []
        self.inner = SeededNoise(0)

    def answer(self, draw, sample, unit=1.0):
        self.drawn.append([])
        own = sample()
        if not self.drawn[-1]:  # without noise, the answer is all of the exact values
            self.drawn[-1].append((own, None))
        self.answers.append(own if self.given is None else self.given[len(self.answers)])
        return self.answers[-1]

    def gaussian(self, values, scale):
        self.drawn[-1].append((np.array(values), scale))
        return self.inner.gaussian(values, scale)


def losses(step, first, second, state):
    """zCDP loss of every draw of `step`, given that both databases are seen to give the same answers."""
    before = Replay()
    step.release(step.summarize(block(first), state), state, before)
    after = Replay(before.answers)
    step.release(step.summarize(block(second), state), state, after)
    return np.array([loss(*pair) for pair in zip(before.drawn, after.drawn, strict=True)])


def loss(before, after):
    """zCDP loss of one draw, from its exact values and scales on two databases."""
    total = 0.0
    for (a, scale), (b, other) in zip(before, after, strict=True):
        assert scale == other
        difference = (np.array(a) - np.array(b)).astype(float)
        total += (difference**2).sum() / (2 * scale**2) if scale else np.inf if difference.any() else 0.0
    return total


def charged(plan, name):
    return np.array([m.rho for m in plan.mechanisms if m.round == name])


def neighbor(database, relation, before, after):
    if relation.name == "add_or_remove_one":
        return database, np.concatenate([database, [after]])
    return np.concatenate([database, [before]]), np.concatenate([database, [after]])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("ball", [None, 0.7])
@pytest.mark.parametrize("d", [4, 9, 60])
def test_moments_cost_what_the_plan_charges(relation, ball, d):
    """Nearly met: the sum by opposite far records, the squares by orthogonal ones; never exceeded."""
    grid = cube(d) if ball is None else Grid((-1.0,) * d, (1.0,) * d, 2.0**-10, Ball((0.0,) * d, ball))
    plan = K_MEANS.plan(grid, KMeans(3), BUDGET, relation, SALT)
    step = plan.rounds[0]
    signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0)
    far = np.full(d, 1.0) if ball is None else np.full(d, ball / math.sqrt(d))
    ends = grid.quantize(np.array([far, -far, far * signs, np.zeros(d)]))
    database = grid.quantize(np.random.default_rng(0).uniform(-0.2, 0.2, (50, d)))
    worst = np.zeros(2)
    for i, before in enumerate(ends):
        for after in ends[i + 1 :]:
            worst = np.maximum(worst, losses(step, *neighbor(database, relation, before, after), None))
    charge = charged(plan, "moments")
    assert (worst <= charge * (1 + 1e-9)).all()
    orthogonal = 0.9 if d % 2 == 0 or relation is ONE else 0.8
    assert (worst >= [0.9 * charge[0], orthogonal * charge[1]]).all()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_coreset_costs_what_the_plan_charges(relation, d):
    """Every level's counts change by one in the record's cell; deep in the tree the charge is met."""
    grid = cube(d)
    plan = K_MEANS.plan(grid, KMeans(3), BUDGET, relation, SALT)
    step = next(r for r in plan.rounds if r.name == "coreset")
    rng = np.random.default_rng(1)
    heaps = np.repeat(grid.quantize(np.array([[0.51] * d, [-0.51] * d])), 100_000, axis=0)
    database = np.concatenate([heaps, grid.quantize(rng.uniform(-1, 1, (500, d)))])
    state = None
    if d > 3:
        state = plan.rounds[0].release(plan.rounds[0].summarize(block(database), None), None, SeededNoise(0))
    charge = charged(plan, "coreset")
    met = losses(step, *neighbor(database, relation, heaps[0], heaps[-1]), state)
    assert met[: len(charge)] == pytest.approx(charge[: len(met)])
    assert len(met) == len(charge) or d == 8
    for after in database[rng.choice(len(database), 5)]:
        loss = losses(step, *neighbor(database, relation, heaps[0], after), state)
        assert (loss <= charge[: len(loss)] * (1 + 1e-9)).all()


@pytest.mark.parametrize("d", [1, 2, 3, 5, 100])
def test_cells_nest_and_hold_their_records(d):
    grid = cube(d)
    space = Space(grid)
    frame = Frame.of_grid(space) if d <= 3 else random_frame(space)
    points = grid.quantize(np.random.default_rng(2).uniform(-1, 1, (300, d)))
    keys = frame.keys(points)
    assert keys.min() >= 0
    assert keys.max() < 1 << len(frame.order)
    moved = next(space.chunks(points, 1)) - frame.center
    along = moved if frame.axes is None else moved @ frame.axes / (1 << 16)
    along = np.clip(along, -frame.half, frame.half)
    for level in frame.levels:
        side = 2.0 * frame.half / (1 << np.bincount(frame.order[:level], minlength=frame.dimension))
        middles = frame.centers(keys >> (len(frame.order) - level), level)
        assert (np.abs(along - middles) <= side / 2 * 1.001 + 2).all()


def test_keys_of_records_on_all_edges_are_cells():
    grid = Grid((0.0, 0.0), (7.0, 300.0), 1.0)
    frame = Frame.of_grid(Space(grid))
    corners = np.array([[0, 0], [7, 300], [0, 300], [7, 0], [3, 150]])
    assert len(np.unique(frame.keys(corners))) == 5
    assert frame.keys(corners)[0] == 0
    assert frame.keys(np.empty((0, 2), dtype=np.int64)).shape == (0,)


@pytest.mark.parametrize("d", [2, 6])
def test_aggregates_do_not_depend_on_the_split(d):
    grid = cube(d)
    points = grid.quantize(np.random.default_rng(3).normal(0, 0.3, (997, d)))
    plan = K_MEDIAN.plan(grid, KMedian(4), BUDGET, ONE, SALT)
    state = plan.start
    for number, step in enumerate(plan.rounds):
        whole = step.summarize(block(points), state)
        parts = [step.summarize(block(p), state) for p in (points[600:], points[:1], points[1:600])]
        assert parts[0] + parts[1] + parts[2] == whole
        assert step.summarize(block(points[:0]), state) + whole == whole
        state = step.release(whole, state, SeededNoise(number))


def test_axes_are_found():
    """Variance 100 times larger along one hidden direction: the first axis is within 5 degrees of it."""
    grid, rng = cube(20), np.random.default_rng(4)
    direction = rng.normal(size=20)
    direction /= np.linalg.norm(direction)
    values = rng.normal(0, 0.01, (100_000, 20)) + rng.normal(0, 0.4, (100_000, 1)) * direction
    plan = K_MEANS.plan(grid, KMeans(3), BUDGET, ONE, SALT)
    step = plan.rounds[0]
    frame = step.release(step.summarize(block(grid.quantize(values)), None), None, SeededNoise(0))
    first = frame.axes[:, 0] / np.linalg.norm(frame.axes[:, 0])
    assert abs(first @ direction) >= math.cos(math.radians(5))
    assert frame.half[0] > 1.5 * frame.half[1]


def test_axes_of_few_records_are_public():
    """Where noise hides mean and spread, the box is public and lies about the middle; else about the mean."""
    grid = Grid((0.0,) * 16, (15.0,) * 16, 1.0)
    values = np.random.default_rng(9).normal(5, 2, (20_000, 16))
    step = K_MEANS.plan(grid, KMeans(3), Budget(0.1, 1e-6), ONE, SALT).rounds[0]
    for seed in range(5):
        frames = [
            step.release(step.summarize(block(grid.quantize(values[:n])), None), None, SeededNoise(seed))
            for n in (200, 20_000)
        ]
        assert not frames[0].center.any()
        assert (frames[0].half == public_half(step.space)).all()
        off = step.space.restore(frames[1].center[None])[0] - 5
        assert np.linalg.norm(off) < 4  # the middle is 10 away


def test_assignment_is_exact_at_the_largest_domain():
    """Two centers at almost the same distance, with coordinates near 2^22: integer arithmetic decides."""
    records = np.array([[2**21 + 1, 2**21], [2**21 - 1, 2**21]], dtype=np.int64)
    centers = np.array([[2**21 + 5, 2**21 - 7], [2**21 - 5, 2**21 - 7]], dtype=np.int64)
    exact = ((records[:, None] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(nearest(records.astype(float), centers), exact)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 10), (2, 128), (3, 300), (40, 7)])
def test_assignment_is_that_of_whole_numbers(d, k):
    """Also where the first of several centers is as near as others, in this group of 128 or in another."""
    rng, longest = np.random.default_rng(d), math.isqrt(2**44 // d)
    centers = rng.integers(-longest, longest, (k, d), endpoint=True)
    centers[k // 2 :] = centers[: k - k // 2]
    records = rng.integers(-longest, longest, (20_000, d), endpoint=True)
    records[:k], records[k : 2 * k] = centers, (centers + centers[::-1]) // 2
    exact = ((records[:, None] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(nearest(records.astype(float), centers), exact)


@pytest.mark.parametrize("d", [1, 2, 784])
def test_sums_of_2_to_the_40_records_fit(d):
    space = Space(Grid((0.0,) * d, (1.0,) * d, 2.0**-17 if d < 784 else 2.0**-16))
    assert space.reach * 2**40 < 2**62
    plan = K_MEANS.plan(Grid((0.0,) * 784, (255.0,) * 784, 1.0), KMeans(2), BUDGET, ONE, SALT)
    assert plan.rounds[0].longest ** 2 * 2**40 <= 2**62


@pytest.mark.parametrize("d", [1, 2, 3, 5, 9, 30])
@pytest.mark.parametrize("extent", [1, 2, 3, 5, 8, 1000])
def test_no_record_is_longer_in_second_moments_than_is_charged(d, extent):
    """Also where rounding to coarse units makes it longer: a corner of a small domain."""
    moments = Moments(Space(Grid((0.0,) * d, (float(extent),) * d, 1.0)), None, None)  # type: ignore[arg-type]
    corners = np.random.default_rng(d).integers(0, 2, (64, d)) * extent
    others = np.random.default_rng(d).integers(0, extent, (64, d), endpoint=True)
    upper = np.triu_indices(d)
    twice = np.where(upper[0] == upper[1], 1, 2)  # an entry off the diagonal is there twice
    for point in np.concatenate([corners, others]):
        tally = moments.summarize(Block(point[None, :], np.zeros(1, np.uint64)), None).totals
        assert math.sqrt((tally[:d] ** 2).sum()) <= moments.longest == tally[d]
        assert math.sqrt((twice * tally[d + 1 :] ** 2).sum()) <= moments.longest**2


def test_too_wide_domains_are_refused():
    with pytest.raises(ValueError, match=r"step is 1\.0, .* use a larger step"):
        K_MEANS.plan(Grid((0.0,), (2.0**24,), 1.0), KMeans(2), BUDGET, ONE, SALT)


def test_the_rho_of_levels_falls_toward_the_finest():
    """By the same factor from each level to the next, and together they have the round's part."""
    plan = K_MEANS.plan(cube(2), KMeans(3), BUDGET, ONE, SALT)
    rho = charged(plan, "coreset")
    assert rho[1:] / rho[:-1] == pytest.approx(0.7)
    part = 0.3 / ((0.3 + 0.15 + 0.3) * 1.025)
    assert rho.sum() == pytest.approx(part * sum(m.rho for m in plan.mechanisms))


def test_few_far_records_are_near_a_center():
    """Five records that noise hides in every cell. Centers near the other records alone cost 27."""
    grid = cube(2)
    rng = np.random.default_rng(8)
    values = np.concatenate([rng.normal(-0.95, 1e-3, (3_000, 2)), rng.uniform(0.4, 1, (5, 2))])
    points = grid.quantize(values)
    plan = K_MEANS.plan(grid, KMeans(4), BUDGET, ONE, SALT)
    for seed in range(5):
        found = run_in_memory(plan.rounds, [block(points)], plan.start, SeededNoise(seed)).result(grid)
        assert squared_distances(values, np.array(found.centers)).min(axis=1).sum() < 6


@pytest.mark.parametrize("shape", ["ties_92", "ties_100", "clumps"])
def test_few_records_in_ten_columns_cost_about_as_much_as_by_lloyd(shape):
    """Noise in the mean and in the axes puts the first centers far from the records. They find back."""
    case = Case("k_means", grid_of(1 << 10, 10), {"k": 4}, 1.0, "replace_one", shape, 2_000)
    runs, _ = measure(case, trials=3)
    assert runs["coreset"].error <= 1.5 * runs["lloyd"].error


def averages(d, records, scale=1.0):
    """The averages of a plan, from a center in the middle whose spread is said to be small."""
    grid = cube(d)
    plan = K_MEANS.plan(grid, KMeans(1, method="coreset"), BUDGET, ONE, SALT)
    steps, space = [step for step in plan.rounds if isinstance(step, CenterAverages)], Space(grid)
    spread = np.full(1, 0.01 * space.reach)
    state = Centers(space, np.zeros((1, d), np.int64), spread, np.array([len(records)]))
    for step in steps:
        yield step, state
        state = step.release(
            step.summarize(block(grid.quantize(records)), state), state, SeededNoise(0, scale)
        )
    yield None, state


@pytest.mark.parametrize("d", [2, 10])
def test_a_radius_grows_where_all_pulls_are_shortened(d):
    """All records are half of the universe's radius away, and the spread is said to be a hundredth of it."""
    *before, (_, found) = averages(d, np.full((5_000, d), 0.5), scale=0.0)
    lengths = [step.radii(state)[0] for step, state in before]
    assert all(1.5 * a < b for a, b in itertools.pairwise(lengths[:3]))
    first = np.linalg.norm(found.space.restore(before[0][1].positions) - 0.5)
    assert np.linalg.norm(found.space.restore(found.positions) - 0.5) < first / 3


def test_moves_that_may_be_noise_alone_are_shortened():
    """The records are at the center already. From three columns on, a step is smaller than its noise."""
    parts = {}
    for d in (1, 2, 10):
        (step, state), *_ = averages(d, np.zeros((300, d)))
        moved = []
        for seed in range(40):
            aggregate = step.summarize(block(state.space.grid.quantize(np.zeros((300, d)))), state)
            found = step.release(aggregate, state, SeededNoise(seed))
            moved.append((found.positions**2).sum() / (d * found.noise[0] ** 2))
        parts[d] = np.mean(moved)
    assert parts[1] == pytest.approx(1, abs=0.5)
    assert parts[2] == pytest.approx(1, abs=0.5)
    assert parts[10] < 0.4


def test_centers_without_a_cell_are_public_places():
    """Where the box is about few of the columns' directions, no center is left in it without a clear cell."""
    grid = cube(10)
    plan = K_MEANS.plan(grid, KMeans(6), BUDGET, ONE, SALT)
    points, state = block(grid.quantize(np.full((3_000, 10), -0.9))), None
    for step in plan.rounds[:2]:
        state = step.release(step.summarize(points, state), state, SeededNoise(1))
    bare = state.counts == 0
    assert 0 < bare.sum() < 6
    places = scattered(state.space, int(bare.sum()), 3).positions
    assert np.array_equal(state.positions[bare], places)
    assert (state.spread[bare] == state.space.reach).all()


def test_the_spread_reckons_with_noise_off_the_axes():
    """All records are one point. The frame misses it by the noise of the mean, and says so."""
    grid = cube(10)
    points = block(grid.quantize(np.full((2_000, 10), 0.4)))
    step = K_MEANS.plan(grid, KMeans(4), BUDGET, ONE, SALT).rounds[0]
    record = next(Space(grid).chunks(points.points[:1], 1))
    for seed in range(5):
        frame = step.release(step.summarize(points, None), None, SeededNoise(seed))
        axes, away = frame.axes / AXIS_UNIT, (record - frame.center)[0]
        off = away - axes @ (axes.T @ away)
        assert off @ off < 2 * frame.rest


def test_hidden_records_are_public_and_few():
    """Nothing but the noise scale sets their weight. They are even, and equal points are merged."""
    plan = K_MEANS.plan(cube(2), KMeans(3), BUDGET, ONE, SALT)
    step = plan.rounds[0]
    middles = step.frame.centers(np.arange(4), 6)
    for points in (np.zeros((0, 2)), middles):
        weights = np.full(len(points), 100.0)
        distinct, summed = step._with_hidden(step.frame, points, weights)
        assert distinct.shape == (64, 2)
        assert distinct.mean(axis=0) == pytest.approx(np.zeros(2), abs=step.frame.half[0] / 1000)
        assert summed.sum() - weights.sum() == pytest.approx(0.1 * step.counts[0].scale)
        assert np.sort(summed)[: 64 - len(points)] == pytest.approx(0.1 * step.counts[0].scale / 64)


def test_a_universe_of_few_cells_has_few_hidden_records():
    """Where there are more centers than cells, each cell has one."""
    grid = Grid((0.0, 0.0), (1.0, 1.0), 1.0)
    plan = K_MEANS.plan(grid, KMeans(6), BUDGET, ONE, SALT)
    points = np.repeat([[0, 0], [1, 1]], 500, axis=0)
    found = run_in_memory(plan.rounds, [block(points)], plan.start, SeededNoise(0)).result(grid)
    assert len(found.centers) == 6
    assert squared_distances(points.astype(float), np.array(found.centers)).min(axis=1).max() < 0.1


def test_grown_weights_are_those_of_the_cells():
    """Without noise, the tree's weights sum to the records of cells that are not lost to the threshold."""
    grid = cube(2)
    plan = K_MEANS.plan(grid, KMeans(3), BUDGET, ONE, SALT)
    step = plan.rounds[0]
    values = np.random.default_rng(5).normal(0, 0.1, (50_000, 2))
    aggregate = step.summarize(block(grid.quantize(values)), None)
    points, weights = step.grown(step.frame, aggregate, SeededNoise(0, factor=0))
    assert weights.sum() == pytest.approx(50_000, rel=1e-9)
    mean = (weights @ points / weights.sum()) * 2.0**-20  # 2^-10 data units a step, 2^-10 steps a unit
    assert np.abs(mean).max() < 0.01


@pytest.mark.parametrize("power", [1, 2])
def test_solver_finds_separate_groups(power):
    rng = np.random.default_rng(6)
    middles = rng.uniform(-100, 100, (12, 3)) * 10
    points = (middles[:, None] + rng.normal(size=(12, 40, 3))).reshape(-1, 3)
    centers = Solver(power).centers(points, np.ones(len(points)), 12)
    gaps = np.linalg.norm(middles[:, None] - centers[None], axis=2).min(axis=1)
    assert gaps.max() < 1


def test_solver_takes_few_points_and_no_weight():
    points = np.array([[0.0], [1.0], [5.0]])
    assert Solver(2).centers(points, np.zeros(3), 2).shape == (0, 1)
    assert Solver(1).centers(points, np.array([1.0, 0.0, 2.0]), 5).tolist() == [[0.0], [5.0]]


@pytest.mark.parametrize("power", [1, 2])
def test_solver_takes_nearly_as_many_centers_as_points(power):
    points = np.arange(40.0)[:, None] * 1000
    centers = Solver(power).centers(points, np.full(40, 1e6), 39)
    assert centers.shape == (39, 1)
    assert Solver(power).cost(points, np.ones(40), centers) <= 1000**power


@pytest.mark.parametrize(("params", "d", "enough"), [(KMeans, 4, 4), (KMeans, 3, 2), (KMedian, 3, 3)])
def test_small_groups_are_promised_nothing_by_few_averages(params, d, enough):
    for iterations in (1, enough - 1, enough, None, enough + 1):
        task = K_MEANS if params is KMeans else K_MEDIAN
        asked = params(5, method="coreset", iterations=iterations)
        plan = task.plan(cube(d), asked, BUDGET, ONE, SALT)
        few = iterations is not None and iterations < enough
        assert (plan.promises["smallest_group"] is None) == few
        assert any("nothing is promised of the centers of small groups" in note for note in plan.notes) == few


def test_many_columns_need_no_moments():
    d = MAX_DIMENSION + 1
    grid = Grid((0.0,) * d, (1.0,) * d, 2.0**-6)
    plan = K_MEANS.plan(grid, KMeans(2), BUDGET, ONE, SALT)
    assert plan.rounds[0].name == "coreset"
    assert any("random axes" in note for note in plan.notes)
    state = None
    points = grid.quantize(np.random.default_rng(7).uniform(size=(200, d)))
    for step in plan.rounds:
        state = step.release(step.summarize(block(points), state), state, SeededNoise(0))
    assert isinstance(state, Centers)


def test_coreset_counts_all_cells_in_one_aggregate():
    plan = K_MEANS.plan(cube(2), KMeans(2), BUDGET, ONE, SALT)
    assert plan.rounds[0].floor is None
    aggregate = plan.rounds[0].summarize(block(np.zeros((3, 2))), None)
    assert aggregate == CellCounts.of(np.zeros(3, dtype=np.int64), aggregate.size)
    assert aggregate.size <= 1 << 20
