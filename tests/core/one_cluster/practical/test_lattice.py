"""The lattice of balls: what a record moves, what a ball holds, and what the plan charges."""

import math

import numpy as np
import pytest

from core.aggregate import Tally
from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.one_cluster.found import Found, NotFound
from core.one_cluster.params import OneCluster
from core.one_cluster.practical import guarantee
from core.one_cluster.practical.lattice import Candidates, CountBall, FitBall, Placed
from core.one_cluster.practical.locate import Located
from core.one_cluster.practical.refine import candidate_radii, wide_radii
from core.one_cluster.practical.regions import regions_of
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import Block
from tests.core.exact import fits
from tests.core.one_cluster.practical.steps import steps
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

RELATIONS = [Neighbors("add_or_remove_one"), Neighbors("replace_one")]
LEVELS = [0, 1, 2, 3, 5, 6, 7, 9]


def grid(d):
    return Grid((0.0,) * d, (1.0,) * d, 2.0**-10)


def block(points):
    return Block(np.asarray(points, dtype=np.int64), np.arange(len(points), dtype=np.uint64))


def plan_for(d, relation=RELATIONS[0], target=100):
    return ONE_CLUSTER.plan(grid(d), OneCluster(target), Budget(1.0, 1e-6), relation, bytes(16))


def side_of(d, level):
    return regions_of(grid(d)).side(level)


def located(d, level, corner):
    corner, side = np.full(d, corner), side_of(d, level)
    return Located(np.clip(corner + side // 2, 0, 1024), side, level, corner)


def records(d, level, corner, seed=0):
    """Records in and about a box, some far from it."""
    rng, side = np.random.default_rng(seed), side_of(d, level)
    near = corner + rng.integers(-side, 2 * side + 1, (200, d))
    return np.clip(np.concatenate([near, rng.integers(0, 1025, (50, d))]), 0, 1024)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("corner", [-3, 300, 1020])
def test_a_ball_contains_the_records_that_it_is_scored_by(d, level, corner):
    """Also about centers outside of the domain, which are moved into it."""
    candidates, where = Candidates(regions_of(grid(d)), level), located(d, level, corner)
    points = records(d, level, corner)
    within = candidates.within(candidates.count(points, where))
    assert within.shape == (len(candidates.centers), len(candidates.radii))
    assert (np.diff(within, axis=1) >= 0).all()
    for number in np.random.default_rng(1).integers(0, within.size, 100):
        center, radius = candidates.ball(int(number), where)
        assert ((center >= 0) & (center <= 1024)).all()
        assert (np.linalg.norm(points - center, axis=1) <= radius).sum() >= within.ravel()[number]


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("level", LEVELS)
def test_counts_are_those_of_cells_whose_middles_a_ball_holds(d, level):
    candidates, where = Candidates(regions_of(grid(d)), level), located(d, level, 300)
    points = records(d, level, 300)
    cells = (points - candidates.corner(where)) // candidates.cell
    cells = cells[((cells >= 0) & (cells < candidates.per_axis)).all(axis=1)]
    within = candidates.within(candidates.count(points, where))
    for number, center in enumerate(candidates.centers):
        away = 2 * np.linalg.norm(cells - center, axis=1)
        expected = [(away <= radius + 1e-9).sum() for radius in candidates.radii]
        assert within[number].tolist() == expected


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("level", LEVELS)
def test_some_ball_contains_the_whole_box(d, level):
    candidates, where = Candidates(regions_of(grid(d)), level), located(d, level, 300)
    ends = where.corner + np.array(np.meshgrid(*[[0, side_of(d, level) - 1]] * d)).reshape(d, -1).T
    within = candidates.within(candidates.count(ends, where))
    assert within.max() == len(ends)
    assert within[:, -1].max() == len(ends)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2])
def test_the_ball_costs_what_the_plan_charges(relation, d):
    """An added record raises scores by 0 or 1, up to the target; the range of 1 is met."""
    plan = plan_for(d, relation)
    fit = steps(plan)[2]
    assert isinstance(fit, FitBall)
    where, points = located(d, 8, 300), records(d, 8, 300)
    seen = set()
    for extra in (points[0], where.corner, where.corner + 128, np.zeros(d, dtype=np.int64)):
        scores = []
        for database in (points, [*points, extra]):
            noise = RecordingNoise(SeededNoise(0))
            fit.release(fit.summarize(block(database), where), where, noise)
            ((kind, values, scale),) = noise.calls
            assert kind == "select"
            scores.append(np.array(values))
        seen |= set((scores[1] - scores[0]).tolist())
    assert seen == {0, 1}
    (charge,) = [m for m in plan.mechanisms if m.round == "fit_ball"]
    assert relation.changes / scale == pytest.approx(charge.epsilon)


def test_balls_are_drawn_with_their_weights():
    """600 draws over the radii about one point; power over 0.999 against halved noise, seen at the end."""
    fit = steps(plan_for(1))[2]
    where = located(1, 2, 300)
    points = np.repeat([[301], [302], [303]], [20, 5, 5], axis=0)
    candidates = Candidates(fit.regions, 2)
    tally = fit.summarize(block(points), where)
    earned = np.minimum(candidates.within(tally.totals), fit.target)
    scores = (earned - fit.penalty * np.arange(len(candidates.radii))).ravel()
    expected = np.exp((scores - scores.max()) / fit.ball.scale)
    balls = {}
    for number in range(len(scores)):
        center, radius = candidates.ball(number, where)
        balls.setdefault((int(center[0]), radius), []).append(number)

    def observed(factor):
        drawn = [fit.release(tally, where, SeededNoise(seed, factor)) for seed in range(600)]
        drawn = [(int(ball.center[0]), ball.radius) for ball in drawn]
        return np.array([drawn.count(ball) for ball in balls])

    weights = np.array([expected[numbers].sum() for numbers in balls.values()])
    assert fits(observed(1.0), weights)
    assert not fits(observed(0.5), weights)


@pytest.mark.parametrize("d", [1, 2])
def test_the_count_is_of_the_released_ball(d):
    plan = plan_for(d)
    count = steps(plan)[3]
    assert isinstance(count, CountBall)
    points = records(d, 8, 300)
    ball = Placed(np.full(d, 400), 90, 8)
    inside = (np.linalg.norm(points - 400, axis=1) <= 90).sum()
    found = count.release(count.summarize(block(points), ball), ball, SeededNoise(0, factor=0))
    assert found.count == inside
    assert found.at_least == max(0, inside - count.excess)
    (charge,) = [m for m in plan.mechanisms if m.round == "count"]
    assert charge.epsilon == pytest.approx(1 / count.count.scale)


def test_nothing_found_stays_nothing():
    for step in steps(plan_for(2))[2:]:
        tally = step.summarize(block([[1, 2]]), NotFound())
        assert tally == Tally(np.zeros(1, dtype=np.int64))
        assert step.release(tally, NotFound(), RecordingNoise(SeededNoise(0))) == NotFound()


@pytest.mark.parametrize("d", [1, 2])
def test_the_largest_domain_is_served(d):
    """Boxes of side 2^31: lengths are in cells, so no square wraps."""
    side = 2.0**31 - 1 if d == 1 else float(math.isqrt(2**61))
    wide = Grid((0.0,) * d, (side,) * d, 1.0)
    regions = regions_of(wide)
    for level in (regions.levels[-1], regions.levels[-2], regions.bottom):
        candidates = Candidates(regions, level)
        where = Located(np.zeros(d, dtype=np.int64), 1, level, np.zeros(d, dtype=np.int64))
        points = np.array([[0] * d, wide.extents])
        within = candidates.within(candidates.count(points, where))
        center, radius = candidates.ball(within.size - 1, where)
        assert within.min() >= 0 and within.max() <= 2
        assert radius >= 0 and (center <= np.asarray(wide.extents)).all()


def test_a_lattice_is_used_where_noise_is_large():
    names = [step.name for step in plan_for(2, target=399).rounds]
    assert names == ["good_radius_and_center", "fit_ball", "count"]
    assert "average_1" in [step.name for step in plan_for(2, target=400).rounds]
    assert "fit_ball" in [step.name for step in plan_for(2, RELATIONS[1], target=799).rounds]
    assert "average_1" in [step.name for step in plan_for(3, target=100).rounds]


def test_a_lattice_promises_no_more_than_it_keeps():
    """Of 40 runs, none misses more records than the bound, which fails with probability 1e-6."""
    plan = plan_for(2, Neighbors("replace_one"), target=790)
    fit, rng = steps(plan)[2], np.random.default_rng(0)
    where, points = located(2, 8, 300), 300 + rng.integers(0, side_of(2, 8), (790, 2))
    tally = fit.summarize(block(points), where)
    bound = fit.penalty * len(Candidates(fit.regions, 8).radii) + fit.ball.scale * math.log(1e4 / (1e-6 / 40))
    for seed in range(40):
        ball = fit.release(tally, where, SeededNoise(seed))
        inside = (np.linalg.norm(points - ball.center, axis=1) <= ball.radius).sum()
        assert inside >= 790 - bound
    assert not isinstance(ball, Found)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("bits", [4, 10, 16])
def test_promises_of_a_lattice_are_those_of_its_worst_level(d, bits):
    """The widest ball that can be released beside its region, from the first one of 32 steps on."""
    regions = regions_of(Grid((0.0,) * d, (1.0,) * d, 2.0**-bits))
    most_radii, most_balls = guarantee._balls_of_lattice(regions)
    ratio, least = guarantee._lattice_radii(regions)
    anywhere = Located(np.zeros(d, dtype=np.int64), 0, 0, np.zeros(d, dtype=np.int64))
    for level in regions.levels:
        each = Candidates(regions, level)
        assert len(each.radii) <= most_radii and len(each.radii) * len(each.centers) <= most_balls
        if regions.side(level) >= 32:
            assert least <= regions.radius(level)
            assert each.ball(len(each.radii) - 1, anywhere)[1] <= ratio * regions.radius(level)


def test_a_radius_is_promised_from_where_regions_and_lattices_are_fine_enough():
    regions = regions_of(grid(2))
    ratio, least = guarantee._lattice_radii(regions)
    plan = ONE_CLUSTER.plan(grid(2), OneCluster(390), Budget(1.0, 1e-6), RELATIONS[0], bytes(16))
    assert isinstance(plan.rounds[1], FitBall) and least < regions.resolution
    assert plan.promises["resolution"] == pytest.approx(ratio * regions.resolution * 2.0**-10)


@pytest.mark.parametrize("widens", [False, True])
def test_as_many_radii_are_reckoned_with_as_a_fit_tries(widens):
    """All but the last one, which is released where no other is."""
    regions = regions_of(grid(3))
    tried = [
        len(candidate_radii(regions, level, widens=widens))
        + len(wide_radii(regions, level, widens=widens))
        - 1
        for level in regions.levels
    ]
    assert max(tried) <= guarantee._queries(regions, widens=widens) <= max(tried) + 1
