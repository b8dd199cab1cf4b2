"""What the practical method promises, and what a release certifies."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from core.budget import Budget
from core.domain import Grid
from core.mechanisms.choosing import ChoiceOfKeys
from core.one_cluster.found import Found, NotFound
from core.one_cluster.params import OneCluster
from core.one_cluster.practical import guarantee
from core.one_cluster.practical.locate import Located, Scaled, certified_factor
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import run_in_memory, total_in_memory
from core.task import Setting
from tests.core.one_cluster.practical.steps import steps
from tests.core.one_cluster.practical.test_method import (
    BUDGET,
    ONE,
    SALT,
    Recorder,
    block,
    plan_for,
    planted,
    unit_cube,
)
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize(("d", "t", "runs"), [(2, 3000, 100), (2, 500, 100), (5, 3000, 10), (2, 10_000, 10)])
def test_promise_holds(d, t, runs):
    """A promise at failure 0.1 is broken in at most 0.1 + 3 standard deviations of the runs.

    The targets are one with a promised radius, one without, one in many dimensions, and one with samples.
    Whatever is certified of a radius holds too, with the same probability.
    """
    grid, n, r = unit_cube(d), t + 3000, 0.003 * d
    params = OneCluster(target=t, failure=0.1)
    plan = ONE_CLUSTER.plan(grid, params, BUDGET, ONE, SALT)
    promises = plan.promises
    assert promises["missing"] < t / 2
    assert (promises["radius_factor"] is None) == (t == 500)
    broken, uncertain = 0, 0
    for seed in range(runs):
        points, _ = planted(grid, n, t, r, seed)
        if t > 8000:  # samples are chosen by the salt
            plan = ONE_CLUSTER.plan(grid, params, BUDGET, ONE, seed.to_bytes(16, "little"))
        found = run_in_memory(plan.rounds, [block(points)], plan.start, SeededNoise(seed))
        if not isinstance(found, Found):
            broken += 1
            continue
        inside = int((np.linalg.norm(points - found.center, axis=1) <= found.radius).sum())
        wide = t != 500 and found.radius * grid.step > max(
            promises["radius_factor"] * r, promises["resolution"]
        )
        off = abs(found.count - inside) > promises["count_error"]
        broken += inside < t - promises["missing"] or wide or off
        assert found.radius_factor is not None
        uncertain += found.radius * grid.step > found.radius_factor * r
    assert max(broken, uncertain) <= runs * 0.1 + 3 * math.sqrt(runs * 0.09)


@pytest.mark.parametrize("log", [0.7, 3.0, 12.0])
def test_samples_keep_fewer_or_more_than_is_said_as_rarely_as_stated(log):
    """Against exact probabilities; of each bound, a part is needed."""
    for rate, count in itertools.product((0.01, 0.3, 0.9), (100, 3000, 40_000)):
        kept = stats.binom(count, rate)
        assert kept.cdf(math.ceil(guarantee._at_least(count, rate, log)) - 1) <= math.exp(-log)
        sampled = int(kept.mean())
        fewest = math.ceil(guarantee._fewest(sampled, rate, log)) - 1  # so many are said to be too few
        assert fewest < count
        assert stats.binom(max(0, fewest), rate).sf(sampled - 1) <= math.exp(-log)
    assert guarantee._at_least(50, 1.0, log) == guarantee._fewest(50, 1.0, log) == 50


@pytest.mark.parametrize("least", [1, 2, 3, 4, 5, 7, 8, 9, 1000, 2**40])
def test_the_smallest_target_is_the_first_that_works(least):
    assert guarantee.smallest_target(lambda target: target >= least) == least
    assert guarantee.smallest_target(lambda target: False) is None


@pytest.mark.parametrize(
    ("d", "epsilon", "target"), [(2, 1.0, 500), (2, 4.0, 300), (3, 1.0, 800), (3, 1.0, 2000)]
)
def test_tuned_shares_promise_a_radius_where_some_do_and_then_most(d, epsilon, target):
    grid = Grid((0.0,) * d, (1.0,) * d, 2.0**-10)
    split = guarantee.BudgetSplit(Setting(grid, OneCluster(target), Budget(epsilon, 1e-6), ONE, SALT))
    tried = [
        guarantee.replace(split, tuned=(min(guarantee.MOST_FIT, split.usual_fit * fit), lean))
        for fit in guarantee._FITS
        for lean in guarantee._LEANS
    ]
    holds = [guarantee.guarantee(each, each.draws(1.0)) for each in tried]
    best = guarantee.tuned(split)
    held = guarantee.guarantee(best, best.draws(1.0))
    found = [each for each in holds if each.found]
    assert held.widens == all(each.widens for each in found)
    alike = [each.missing + each.lacks for each in found if each.widens == held.widens]
    assert held.missing + held.lacks == min(alike)


def test_a_center_mostly_stays_where_its_count_may_be_noise_alone():
    """Noise exceeds three times its scale in 1 of 40 draws, and 0 in half of them; the seeds are given."""
    _, *averages, _ = ONE_CLUSTER.plan(unit_cube(2), OneCluster(3000), BUDGET, ONE, SALT).rounds
    state, moved = Located(np.array([300, 500]), 90, 4, np.array([0, 0])), []
    for step, seed in itertools.product(averages, range(20)):
        none = step.summarize(block(np.empty((0, 2), dtype=np.int64)), state)
        moved.append(step.release(none, state, SeededNoise(seed)).center.tolist() != [300, 500])
    assert len(moved) == 40 and sum(moved) <= 4


def test_a_plan_says_how_far_below_the_count_its_bound_may_be():
    """Noise may make a count too small by its promised error, and the bound is below that by the excess."""
    plan = ONE_CLUSTER.plan(unit_cube(2), OneCluster(3000), BUDGET, ONE, SALT)
    below = plan.promises["count_error"] + plan.rounds[-1].excess
    assert any(f"at most {below:,} below" in note for note in plan.notes)


def test_a_certified_radius_is_that_of_the_next_finer_level():
    """No ball of the target is smaller than what a region of the next finer level is sure to hold."""
    regions = steps(plan_for(unit_cube(2), ONE))[0].regions
    for level in regions.levels[1:]:
        factor = certified_factor(regions, level, regions.radius(level))
        assert factor == pytest.approx(regions.radius(level) / regions.holds(level - 1))
        assert factor <= regions.factor or regions.radius(level) <= regions.resolution
    assert certified_factor(regions, regions.bottom, 5) is None
    assert certified_factor(None, 5, 5) is None
    assert certified_factor(steps(plan_for(unit_cube(9), ONE))[0].regions, 5, 5) is None
    assert certified_factor(regions, 10, 1) == 1


def test_no_radius_is_certified_where_the_level_may_be_too_coarse():
    """At a tiny budget the choice of the level is hardly better than a guess."""
    for d, place in ((2, "regions"), (3, "certifies")):
        poor = ONE_CLUSTER.plan(unit_cube(d), OneCluster(50), Budget(0.1, 1e-6), ONE, SALT).rounds[-1]
        assert not getattr(poor, place)
        good = plan_for(unit_cube(d), ONE, target=500 if d == 3 else 200).rounds[-1]
        assert getattr(good, place)


@pytest.mark.parametrize("d", [2, 5])
def test_what_a_target_is_promised_a_larger_one_is_too(d):
    """So the smallest workable target can be found by bisection. From some target on a radius is promised.

    Just below the smallest workable target a radius may be promised too, with a ball of few records.
    """
    targets = [*range(360, 500, 35), 800, 1200, 7900, 8100, 20_000, 1_000_000]
    plans = [ONE_CLUSTER.plan(unit_cube(d), OneCluster(t), BUDGET, ONE, SALT) for t in targets]
    workable = [
        p.promises["missing"] is not None and p.promises["missing"] <= t / 2
        for p, t in zip(plans, targets, strict=True)
    ]
    assert workable == sorted(workable)
    assert {p.smallest_target for p in plans} == {plans[0].smallest_target}
    smallest = plans[0].smallest_target
    assert smallest is not None
    assert workable == [t >= smallest for t in targets]
    radius = [p.promises["radius_factor"] is not None for p in plans]
    for able, bounded, plan in zip(workable, radius, plans, strict=True):
        says = any(note.startswith("No radius is promised") for note in plan.notes)
        assert says == (not bounded) or not able
    first = workable.index(True)
    assert radius[first:] == sorted(radius[first:])
    assert radius[targets.index(1200)]
    for p, t in zip(plans[first:], targets[first:], strict=True):
        if p.promises["radius_factor"] is not None:
            assert p.promises["missing"] <= t / 3


@pytest.mark.parametrize("d", [2, 3])
def test_a_fit_that_widens_tries_balls_up_to_the_whole_domain(d):
    """And one that does not stays about the chosen region."""
    grid = unit_cube(d, 2.0**-10)
    for target, widens in ((500, True), (3000, False)):
        fit = plan_for(grid, ONE, target=target).rounds[-1]
        assert fit.widens == widens
        level = fit.regions.levels[5]
        corner = np.full(d, 500)
        center, radius = fit.regions.ball(level, corner)
        points = np.concatenate([np.tile(center, (100, 1)), np.tile([0] * d, (5000, 1))])
        state = Located(center, radius, level, corner)
        found = fit.release(fit.summarize(block(points), state), state, SeededNoise(0, factor=0))
        assert (found.radius == radius and found.count == 100) if not widens else found.count == 5100


@pytest.mark.parametrize("failure", [0.1, 0.5])
@pytest.mark.parametrize(("d", "t"), [(1, 800), (2, 500), (2, 800), (2, 5000), (3, 1500), (5, 2000)])
def test_some_region_is_chosen_on_the_worst_data(d, t, failure):
    """The probability of none is exact for data in which one place holds less than the first round asks for.

    All levels but one show this place as their fullest region, and it is the only region above the floor.
    The bound is used: on the worst of these data, none is chosen with a good part of what is allowed.
    """
    level, region, *_ = steps(
        ONE_CLUSTER.plan(unit_cube(d), OneCluster(t, failure=failure), BUDGET, ONE, SALT)
    )
    assert region.floor > t / 16
    lacking = np.arange(0, level.target // 2)
    weight = (len(level.regions.levels) - 1) * np.exp(-lacking / level.level.scale)
    margin = level.target - lacking - region.floor - region.region.nothing
    none = weight / (1 + weight) / (1 + np.exp(margin / region.region.scale))
    allowed = 0.2 * failure / 0.9
    assert 0.1 * allowed <= none.max() <= allowed


def test_no_region_at_or_below_the_floor_is_chosen():
    """However many there are: the regions about 59 places compete with those about one that holds more."""
    round_ = steps(plan_for(unit_cube(1), ONE, target=800))[1]
    level = next(i for i in round_.regions.levels if round_.regions.radius(i) >= 8)
    points = np.repeat(np.arange(1, 61) * 1000, round_.floor)[:, None]
    state, noise = Scaled(level), SeededNoise(1)
    aggregate = total_in_memory(round_, [block(points)], state)
    assert len(aggregate.keys) == 0
    assert all(isinstance(round_.release(aggregate, state, noise), NotFound) for _ in range(20))
    more = np.concatenate([points, np.full((100, 1), 30_000)])
    aggregate = total_in_memory(round_, [block(more)], state)
    for _ in range(20):
        found = round_.release(aggregate, state, noise)
        assert abs(int(found.center[0]) - 30_000) <= found.radius


def test_what_a_promise_owes_to_the_fineness_of_the_grid():
    """A finer grid has more levels, and far more regions. Only the number of levels lowers the promise."""
    fine = (2.0**-10, 2.0**-16, 2.0**-22)
    plans = [ONE_CLUSTER.plan(unit_cube(2, step), OneCluster(1500), BUDGET, ONE, SALT) for step in fine]
    missing = [plan.promises["missing"] for plan in plans]
    levels = [len(steps(plan)[0].regions.levels) for plan in plans]
    scale = steps(plans[0])[0].level.scale
    assert missing == sorted(missing)
    # Twice: for the level that is too coarse, and for the level that is too fine.
    assert missing[-1] - missing[0] <= 2 * scale * math.log(levels[-1] / levels[0]) + 3


class AskedForKeys(Recorder):
    """Keeps the scores among which a key is chosen."""

    def answer(self, draw, sample, unit=1.0):
        if isinstance(sample, ChoiceOfKeys):
            self.scores = {
                int(key): int(score) for part in sample.parts() for key, score in zip(*part, strict=True)
            }
        return sample()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_scores_above_the_floor_depend_on_their_own_counts(d):
    """One record more raises the scores of at most `most_keys` regions, each by 1, and changes no other."""
    choice = plan_for(unit_cube(d), ONE, target=800).rounds[0].region
    level = next(i for i in choice.regions.levels if choice.regions.radius(i) >= 8)
    two = np.repeat(np.array([[1000] * d, [60_000] * d]), [choice.floor + 301, choice.floor + 100], axis=0)

    def scores(points):
        recorder = AskedForKeys()
        choice.release(choice.regions.tally(points), Scaled(level), recorder)
        assert recorder.drawn[0][1][-1] == choice.region.nothing
        return recorder.scores

    before, after = scores(two), scores(np.concatenate([two, [[1000] * d]]))
    assert before.keys() == after.keys()
    change = [after[key] - before[key] for key in before]
    assert set(change) == {0, 1}
    assert sum(change) <= choice.regions.most_keys
