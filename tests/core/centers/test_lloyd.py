"""Lloyd's iteration: sensitivities by brute force over neighbors under every policy, totality, utility."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from core.budget import Budget
from core.centers.found import Centers
from core.centers.iteration import SHARE_UNIT, Assignment, Iteration
from core.centers.params import KMeans
from core.centers.parts import PartAverage, PartCounts, Parts
from core.centers.solver import Solver, squared_distances
from core.centers.space import Space
from core.centers.task import K_MEANS
from core.domain import Grid
from core.neighbors import Neighbors
from core.policy import Attribute, Distance, Full, Graph, KnownCount, Partition, Policy
from core.rounds import run_in_memory
from tests.core.centers.test_coreset import BUDGET, ONE, SALT, block, charged, cube, losses, neighbor
from tests.core.seeded import SeededNoise

REPLACE = Neighbors("replace_one")
LINE = Grid((0.0,), (100.0,), 1.0)
SQUARE = Grid((0.0, 0.0), (11.0, 8.0), 1.0)


def under(secrets):
    return Neighbors("replace_one", Policy(secrets))


def all_points(grid):
    return np.array(list(itertools.product(*(range(e + 1) for e in grid.extents))), dtype=np.int64)


def edges(grid, secrets):
    """Every secret pair of a small grid, by its definition."""
    points = all_points(grid)
    i, j = np.triu_indices(len(points), 1)
    x, y = points[i], points[j]
    if isinstance(secrets, Distance):
        kept = np.abs(x - y).sum(axis=1) <= secrets.theta
    elif isinstance(secrets, Attribute):
        kept = (x != y).sum(axis=1) == 1
    elif isinstance(secrets, Partition):
        kept = (x // secrets.widths == y // secrets.widths).all(axis=1)
    elif isinstance(secrets, Graph):
        listed = set(secrets.edges)
        kept = np.array([(tuple(a), tuple(b)) in listed for a, b in zip(x.tolist(), y.tolist(), strict=True)])
    else:
        kept = np.ones(len(x), dtype=bool)
    return x[kept], y[kept]


def contributions(assignment, space, points):
    """What one record alone adds: pulls (n, k d) and shares (n, k), rounded as the round rounds them."""
    records = next(space.chunks(points, 1))
    shares = assignment.shares(records)
    pulls = [assignment.pull(records, j)[0] * shares[:, j, None] for j in range(len(assignment.centers))]
    return np.rint(np.concatenate(pulls, axis=1)), np.rint(shares * SHARE_UNIT)


def random_assignments(space, softness, count, k=3):
    rng = np.random.default_rng(8)
    for _ in range(count):
        positions = space.inside(rng.uniform(-1, 1, (k, space.grid.dimension)) * space.reach)
        yield Assignment(positions, int(rng.uniform(0.2, 1) * space.reach), softness * space.reach)


@pytest.mark.parametrize("softness", [0.0, 0.05, 0.3])
@pytest.mark.parametrize(
    ("grid", "secrets"),
    [
        (LINE, Distance(1)),
        (LINE, Distance(5)),
        (LINE, Distance(40)),
        (LINE, Full()),
        (SQUARE, Distance(1)),
        (SQUARE, Distance(4)),
        (SQUARE, Attribute()),
        (SQUARE, Graph((((0, 0), (2, 1)), ((5, 5), (6, 5))))),
        (SQUARE, Full()),
    ],
)
def test_no_neighbor_exceeds_the_sensitivity(grid, secrets, softness):
    """Every secret pair of the grid, 30 random iterations: the bounds hold, and some pair comes near."""
    space, relation = Space(grid), under(secrets)
    x, y = edges(grid, secrets)
    reach = secrets.reach(grid.extents) << space.bits
    nearest_to_bound = 0.0
    for assignment in random_assignments(space, softness, 30):
        before, after = (contributions(assignment, space, p) for p in (x, y))
        sums = np.linalg.norm(before[0] - after[0], axis=1).max()
        shares = np.linalg.norm(before[1] - after[1], axis=1).max()
        bound = assignment.sum_sensitivity(relation, reach)
        assert sums <= bound
        assert shares <= assignment.share_sensitivity(relation, reach)
        nearest_to_bound = max(nearest_to_bound, sums / bound)
    # an explicit graph of two short edges need not come near: its pairs may miss every border
    assert nearest_to_bound > (0 if isinstance(secrets, Graph) else 0.4)


@pytest.mark.parametrize("softness", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("secrets", [Distance(1), Distance(4), Attribute(), Full()])
def test_no_neighbor_exceeds_the_sensitivity_in_l1(secrets, softness):
    """As above, for the Laplace noise of a budget without delta."""
    space, relation = Space(SQUARE), under(secrets)
    x, y = edges(SQUARE, secrets)
    reach = secrets.reach(SQUARE.extents) << space.bits
    nearest_to_bound = 0.0
    for hard in random_assignments(space, softness, 30):
        assignment = replace(hard, l1=True)
        before, after = (contributions(assignment, space, p) for p in (x, y))
        sums = np.abs(before[0] - after[0]).sum(axis=1).max()
        shares = np.abs(before[1] - after[1]).sum(axis=1).max()
        bound = assignment.sum_sensitivity(relation, reach)
        assert sums <= bound
        assert shares <= assignment.share_sensitivity(relation, reach)
        assert shares > 0.2 * assignment.share_sensitivity(relation, reach)
        added = contributions(assignment, space, all_points(SQUARE))
        assert np.abs(added[0]).sum(axis=1).max() <= assignment.sum_sensitivity(ONE, 0)
        assert np.abs(added[1]).sum(axis=1).max() <= assignment.share_sensitivity(ONE, 0)
        nearest_to_bound = max(nearest_to_bound, sums / bound)
    assert nearest_to_bound > 0.3


@pytest.mark.parametrize(
    "relation", [ONE, REPLACE, under(Distance(1)), under(Partition((3, 4))), under(Partition((1, 2)))]
)
def test_without_delta_all_noise_is_laplace_noise(relation):
    plan = K_MEANS.plan(SQUARE, KMeans(2), Budget(1.0, 0.0), relation, SALT)
    assert plan.method == "lloyd"
    assert all(draw.rho == 0 and draw.delta == 0 for draw in plan.mechanisms)
    last = plan.rounds[-1]
    if isinstance(last, PartAverage):  # in L1, two values of a part
        assert last.sums.sensitivity == relation.secrets.reach(SQUARE.extents) << last.parts.space.bits
    else:  # in L1, a replaced record
        assert last.counts.sensitivity == relation.changes
    assert plan.spend.epsilon == pytest.approx(1.0, rel=1e-3)
    assert plan.spend.epsilon <= 1.0
    database = [block(np.random.default_rng(1).integers(0, 9, (4000, 2)))]
    found = run_in_memory(plan.rounds, database, plan.start, SeededNoise(3))
    assert found.result(SQUARE).centers


@pytest.mark.parametrize("softness", [0.0, 0.1])
def test_no_record_exceeds_the_sensitivity_of_adding_it(softness):
    space = Space(SQUARE)
    for assignment in random_assignments(space, softness, 30):
        pulls, shares = contributions(assignment, space, all_points(SQUARE))
        assert np.linalg.norm(pulls, axis=1).max() <= assignment.sum_sensitivity(ONE, 0)
        assert np.linalg.norm(shares, axis=1).max() <= assignment.share_sensitivity(ONE, 0)


@pytest.mark.parametrize("l1", [True, False])
def test_rounding_of_many_shares_is_charged(l1):
    """Of 2,048 centers nearly equally far, about half of the shares round up, and others after a move."""
    space, rng = Space(SQUARE), np.random.default_rng(5)
    centers = space.inside(rng.uniform(-1, 1, (2048, 2)) * space.reach)
    assignment = Assignment(centers, space.reach, 1e9, l1)
    shares = contributions(assignment, space, np.array([[0, 0], [11, 8]]))[1]
    change = np.linalg.norm(shares[1] - shares[0], ord=1 if l1 else 2)
    bound = assignment.share_sensitivity(REPLACE, space.reach * 2)
    assert 0.3 * bound < change <= bound


def test_sums_of_hard_clusters_do_not_have_the_published_sensitivity():
    """Centers 49 and 52, theta = 1: moving 50 to 51 changes the cluster sums by 50 + 51, not by 2 theta.

    Lemma 6.1 of He, Machanavajjhala and Ding 2014 would charge 2. What is charged here covers the change
    of the pulls, hard and soft; soft shares charge less for it than hard ones.
    """
    space, relation = Space(LINE), under(Distance(1))
    steps, labels = np.array([50, 51]), np.abs(np.array([50, 51])[:, None] - [49, 52]).argmin(axis=1)
    sums = np.array([np.where(labels == j, steps, 0) for j in (0, 1)])
    assert np.abs(sums[:, 0] - sums[:, 1]).sum() == 101

    unit = 1 << space.bits
    centers = (np.array([[49], [52]]) - space.middle) * unit
    charge = {}
    for softness in (0.0, 20.0):
        assignment = Assignment(centers, 40 * unit, softness * unit)
        pulls, _ = contributions(assignment, space, np.array([[50], [51]]))
        charge[softness] = assignment.sum_sensitivity(relation, unit)
        assert np.linalg.norm(pulls[0] - pulls[1]) <= charge[softness]
    assert charge[20.0] < 0.1 * charge[0.0]


def test_sensitivity_shrinks_with_the_distance_of_secrets():
    assignment = next(random_assignments(Space(SQUARE), 0.3, 1))
    bounds = [assignment.sum_sensitivity(REPLACE, reach) for reach in (0, 10, 100, 1000, 10**9)]
    assert bounds == sorted(bounds)
    assert bounds[0] < 10
    assert bounds[-1] == pytest.approx(2 * assignment.radius, abs=10)


@pytest.mark.parametrize("relation", [ONE, REPLACE, under(Distance(4)), under(Attribute())])
def test_iterations_cost_what_the_plan_charges(relation):
    """All secret pairs; the charge of the shares under `add_or_remove_one` is met."""
    plan = K_MEANS.plan(SQUARE, KMeans(3, method="lloyd"), BUDGET, relation, SALT)
    rng, worst = np.random.default_rng(9), np.zeros(3)
    charge = charged(plan, plan.rounds[0].name)
    for _ in range(6):
        step = plan.rounds[0]
        assert isinstance(step, Iteration)
        space = step.space
        positions = space.inside(rng.uniform(-1, 1, (3, 2)) * space.reach)
        state = Centers(space, positions, np.full(3, rng.uniform(0.1, 0.6) * space.reach), np.zeros(3, int))
        database = rng.integers(0, 9, (10, 2))
        x, y = edges(SQUARE, relation.secrets if relation.policy else Full())
        for i in rng.choice(len(x), 60):
            loss = losses(step, *neighbor(database, relation, x[i], y[i]), state)
            worst = np.maximum(worst, loss)
    assert (worst <= charge * (1 + 1e-9)).all()
    assert worst[0] >= 0.15 * charge[0]
    if relation is ONE:
        assert (worst[1:] >= 0.8 * charge[1:]).all()


@pytest.mark.parametrize("widths", [(3, 4), (12, 9), (1, 2), (40, 30)])
def test_parts_hide_what_lies_in_them(widths):
    """All secret pairs: counts are equal, sums meet their charge; between parts, counts differ."""
    partition = Partition(widths)
    relation = under(partition)
    plan = K_MEANS.plan(SQUARE, KMeans(2, method="lloyd", iterations=2), BUDGET, relation, SALT)
    first, second = plan.rounds[:2]
    assert isinstance(first, PartCounts)
    assert isinstance(second, PartAverage)
    database = np.random.default_rng(10).integers(0, 9, (20, 2))
    state = first.release(first.summarize(block(database), None), None, SeededNoise(0))
    x, y = edges(SQUARE, partition)
    worst = 0.0
    for a, b in zip(x[:400], y[:400], strict=True):
        pair = neighbor(database, relation, a, b)
        assert losses(first, *pair, None).tolist() == [0.0]
        counts, sums = losses(second, *pair, state)
        assert counts == 0
        worst = max(worst, sums)
    charge = charged(plan, second.name).sum()
    assert 0.99 * charge <= worst <= charge * (1 + 1e-9)


def test_parts_are_numbered_and_found_again():
    parts = Parts(Space(SQUARE), Partition((3, 4)))
    points = all_points(SQUARE)
    keys = parts.keys(points)
    assert len(np.unique(keys)) == 4 * 3
    steps = parts.middles(keys) / (1 << parts.space.bits) + parts.space.middle
    for key in np.unique(keys):  # the last part of an axis may be narrower
        here = points[keys == key]
        assert (steps[keys == key] == (here.min(axis=0) + here.max(axis=0)) / 2).all()


@pytest.mark.parametrize(("wide", "numbered"), [(15, True), (16, False), (17, False)])
def test_parts_whose_numbers_fit_no_key_are_not_numbered(wide, numbered):
    """There are 2^59 parts, or 2^63, or 2^67, which would wrap."""
    grid = Grid((0.0,) * 4, (2.0**wide - 1,) * 4, 1.0)
    assert Parts(Space(grid), Partition((1, 1, 1, 2))).can_be_numbered is numbered


def test_centers_without_records_stay():
    """Their sums are noise alone: by parts their counts are exactly 0, and by iterations clearly so."""
    for relation, records in ((under(Partition((3, 4))), [[0, 0]] * 50), (ONE, np.empty((0, 2)))):
        plan = K_MEANS.plan(SQUARE, KMeans(2, method="lloyd"), Budget(0.1, 1e-6), relation, SALT)
        step, space = plan.rounds[1], Space(SQUARE)
        positions = (np.array([[0, 0], [11, 8]]) - space.middle) << space.bits
        state = Centers(space, positions, np.full(2, space.reach / 2), np.zeros(2, int))
        moved = step.release(step.summarize(block(records), state), state, SeededNoise(1))
        assert (moved.positions[1] == positions[1]).all()


@pytest.mark.parametrize(
    "relation", [ONE, REPLACE, under(Distance(3)), under(Attribute()), under(Partition((2, 3)))]
)
@pytest.mark.parametrize("k", [1, 2, 40])
def test_extreme_databases_end_in_an_answer(relation, k):
    plan = K_MEANS.plan(SQUARE, KMeans(k, method="lloyd"), BUDGET, relation, SALT)
    for points in (np.empty((0, 2)), np.zeros((1, 2)), np.full((500, 2), 8), all_points(SQUARE)):
        state = run_in_memory(plan.rounds, [block(points)], plan.start, SeededNoise(0))
        answer = state.result(SQUARE)
        centers = np.array(answer.centers)
        assert centers.shape == (k, 2)
        assert (centers >= 0).all()
        assert (centers <= [11, 8]).all()
        assert len(answer.counts) == k


@pytest.mark.parametrize("relation", [ONE, REPLACE, under(Distance(20)), under(Partition((16, 16)))])
@pytest.mark.parametrize("budget", [BUDGET, Budget(0.2, 1e-8)])
def test_the_budget_is_spent_and_not_overspent(relation, budget):
    plan = K_MEANS.plan(cube(2, 2.0**-7), KMeans(3, method="lloyd"), budget, relation, SALT)
    assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon


def test_policies_beat_full_privacy_where_records_are_few():
    """1,000 records, four groups, epsilon 0.5: excess cost over 15 runs, medians."""
    grid, rng = cube(2, 2.0**-8), np.random.default_rng(11)
    middles = np.array([[-0.6, -0.5], [0.6, -0.6], [0.5, 0.6], [-0.5, 0.5]])
    values = np.clip(middles[rng.integers(4, size=1000)] + rng.normal(0, 0.15, (1000, 2)), -1, 1)
    least = squared_distances(values, Solver(2).centers(values, np.ones(1000), 4)).min(axis=1).sum()
    excess = {}
    for name, relation in {
        "full": REPLACE,
        "distance": under(Distance(26)),  # 0.1 of the data's unit
        "partition": under(Partition((26, 26))),
    }.items():
        plan = K_MEANS.plan(grid, KMeans(4, method="lloyd"), Budget(0.2, 1e-6), relation, SALT)
        costs = []
        for seed in range(15):
            state = run_in_memory(plan.rounds, [block(grid.quantize(values))], plan.start, SeededNoise(seed))
            centers = np.array(state.result(grid).centers)
            costs.append(squared_distances(values, centers).min(axis=1).sum() / least - 1)
        excess[name] = float(np.median(costs))
    assert excess["distance"] < 0.7 * excess["full"]
    assert excess["partition"] < 0.1 * excess["full"]


def test_auto_takes_lloyd_where_parts_are_small():
    grid = cube(2, 2.0**-7)
    methods = {
        width: K_MEANS.plan(grid, KMeans(3), BUDGET, under(Partition((width, width))), SALT).method
        for width in (8, 200)
    }
    assert methods == {8: "lloyd", 200: "coreset"}
    plan = K_MEANS.plan(grid, KMeans(3), BUDGET, under(Distance(2)), SALT)
    assert plan.method == "coreset"
    assert set(plan.alternatives) == {"lloyd"}


def test_parts_of_a_third_of_the_radius_are_small():
    """The domain's radius is 27 steps, and the largest distance within parts of 10 values is 9."""
    line = Grid((0.0,), (54.0,), 1.0)
    methods = [
        K_MEANS.plan(line, KMeans(3), BUDGET, under(Partition((width,))), SALT).method for width in (10, 11)
    ]
    assert methods == ["lloyd", "coreset"]
    far = K_MEANS.plan(line, KMeans(3), BUDGET, under(Distance(1)), SALT)
    assert far.chosen.errors == pytest.approx({"coreset": 9, "lloyd": 27}, rel=0.05)


def test_what_lloyd_cannot_do_is_refused():
    constrained = Neighbors("replace_one", Policy(constraints=(KnownCount((0, 0), (1, 1), 3),)))
    for method in ("lloyd", "coreset"):
        with pytest.raises(ValueError, match=r"constraints is set"):
            K_MEANS.plan(SQUARE, KMeans(2, method=method), BUDGET, constrained, SALT)
    with pytest.raises(ValueError, match=r"partition has 1 widths"):
        K_MEANS.plan(SQUARE, KMeans(2), BUDGET, under(Partition((4,))), SALT)
    with pytest.raises(ValueError, match=r"shares is set"):
        K_MEANS.plan(SQUARE, KMeans(2, method="lloyd", shares={"sums": 1.0}), BUDGET, ONE, SALT)


def test_shares_sum_to_one_and_turn_hard():
    space = Space(SQUARE)
    records = next(space.chunks(all_points(SQUARE), 1))
    hard, soft = (next(random_assignments(space, s, 1)).shares(records) for s in (0.0, 1e-4))
    assert soft.sum(axis=1) == pytest.approx(1.0)
    assert (np.abs(hard - soft).max(axis=1) < 0.01).mean() > 0.9
    assert math.isclose(hard.sum(), len(records))
