"""The cover: what its rounds see and cost, against what the plan charges, and utility in memory."""

import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from core.balls import Balls
from core.budget import Budget, sampled, spend
from core.domain import Grid
from core.k_cover.found import Cover
from core.k_cover.params import KCover
from core.k_cover.rounds import CoverRound
from core.k_cover.task import K_COVER
from core.neighbors import Neighbors
from core.one_cluster.found import Found, NotFound
from core.one_cluster.params import SHARES, OneCluster
from core.one_cluster.practical.lattice import CountBall, FitBall
from core.one_cluster.practical.locate import FindRadiusAndRegion, Located
from core.one_cluster.practical.refine import FitRadius, MoveToMean, candidate_radii
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import Block, run_in_memory
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

BUDGET = Budget(1.0, 1e-6)
ONE, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
RELATIONS = [ONE, REPLACE]
SALT = b"a salt of 16 byt"
MODES = [{"target": 1900}, {"target": 9000}, {"coverage": 0.8}]


def unit_cube(d, step=2.0**-10):
    return Grid((0.0,) * d, (1.0,) * d, step)


def block(points):
    points = np.asarray(points, dtype=np.int64)
    return Block(points, np.arange(len(points), dtype=np.uint64))


def clusters(grid, sizes, spread=0.01, background=300, seed=0):
    """Points about one center each of `sizes`, and a uniform background."""
    d, rng = grid.dimension, np.random.default_rng(seed)
    centers = rng.permutation(np.linspace(0.15, 0.85, len(sizes)))[:, None] * np.ones(d)
    parts = [
        c + rng.uniform(-spread, spread, (n, d)) / math.sqrt(d) for c, n in zip(centers, sizes, strict=True)
    ]
    return grid.quantize(np.concatenate([*parts, rng.uniform(size=(background, d))]))


def plan_for(grid, neighbors=ONE, k=3, budget=BUDGET, salt=SALT, **kwargs):
    return K_COVER.plan(grid, KCover(k, **kwargs), budget, neighbors, salt)


def run(points, plan, seed=0, factor=1.0):
    return run_in_memory(plan.rounds, [block(points)], plan.start, SeededNoise(seed, factor))


def charged(plan, name, what):
    (found,) = [m for m in plan.mechanisms if m.round == name and what in m.mechanism]
    return found


# What is charged


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("d", "k"), [(2, 1), (2, 4), (9, 3)])
def test_the_budget_is_spent_and_not_overspent(relation, mode, d, k):
    plan = plan_for(unit_cube(d), relation, k, **mode)
    again = spend(plan.mechanisms, BUDGET.delta).epsilon
    assert 0.99 <= again <= 1.0
    assert plan.spend.epsilon == again
    assert sum(m.delta for m in plan.mechanisms) <= BUDGET.delta
    names = [step.name for step in plan.rounds]
    each = 3 if any("fit_ball" in name for name in names) else 4
    assert len(set(names)) == len(names) == each * k + ("coverage" in mode)
    assert {m.round for m in plan.mechanisms} == set(names) - ({"total"} if relation is REPLACE else set())


def released(step, points, state, noise):
    """Summarize and release one round."""
    aggregate = step.summarize(block(points), state)
    if step.floor is not None:
        aggregate = aggregate.above(step.floor)
    return step.release(aggregate, state, noise)


def scales(draws):
    return [scale for _, _, scale in draws]


def check_good_radius(inner, draws, rate, moves, charge, state):
    ((kind, _, scale),) = draws
    assert kind == "select"
    assert moves * sampled(2 / scale, rate) == pytest.approx(charge("level").epsilon)


def check_good_center(inner, draws, rate, moves, charge, state):
    ((kind, scores, scale),) = draws
    cost, most = charge("choosing"), inner.regions.most_keys
    assert kind == "select_run"
    assert moves * sampled(1 / scale, rate) == pytest.approx(cost.epsilon)
    per_move = rate * most / (most + math.exp((scores[-1] - 1) / scale))  # the last score is that of nothing
    group = sum(math.exp(i * cost.epsilon / moves) for i in range(moves))
    assert group * per_move <= cost.delta * (1 + 1e-9)


def check_average(inner, draws, rate, moves, charge, state):
    (kind, _, scale), (_, _, count_scale) = draws
    per_step, cost = scale / state.search.radius, charge("sum")
    if kind == "laplace":
        assert moves * math.sqrt(inner.regions.grid.dimension) / per_step == pytest.approx(cost.epsilon)
    else:
        assert (moves / per_step) ** 2 / 2 == pytest.approx(cost.rho)
    assert 1 / count_scale == pytest.approx(charge("count").epsilon)


def check_fit_radius(inner, draws, rate, moves, charge, state):
    threshold, *queries, count = scales(draws)
    (query,) = {*queries}
    assert 1 / threshold + moves / query == pytest.approx(charge("Above").epsilon)
    assert 1 / count == pytest.approx(charge("count").epsilon)


def check_fit_ball(inner, draws, rate, moves, charge, state):
    ((kind, _, scale),) = draws
    assert kind == "select"
    assert moves / scale == pytest.approx(charge("ball").epsilon)


def check_count(inner, draws, rate, moves, charge, state):
    ((kind, _, scale),) = draws
    assert kind == "laplace"
    assert 1 / scale == pytest.approx(charge("count").epsilon)


def check_both(inner, draws, rate, moves, charge, state):
    level, region = draws
    rates = [part.sample.rate if rate < 1 else 1.0 for part in (inner.radius, inner.region)]
    check_good_radius(inner.radius, [level], rates[0], moves, charge, state)
    check_good_center(inner.region, [region], rates[1], moves, charge, state)


CHECKS = {FindRadiusAndRegion: check_both, MoveToMean: check_average, FitRadius: check_fit_radius,
          FitBall: check_fit_ball, CountBall: check_count}  # fmt: skip


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mode", [*MODES, {"target": 800}])
@pytest.mark.parametrize("d", [2, 9, 40])
def test_every_draw_of_a_run_has_the_noise_that_the_plan_charges(relation, mode, d):
    """With half the noise anywhere, a loss is twice its charge; what a record moves is tested elsewhere."""
    plan = plan_for(unit_cube(d), relation, k=2, **mode)
    points = clusters(unit_cube(d), [10_000, 10_000])
    state = plan.start
    for step in plan.rounds:
        before, noise = state, RecordingNoise(SeededNoise(3, factor=0))
        state = released(step, points, before, noise)
        if isinstance(step, CoverRound):
            inner = step.search.step(step.target.of(before))
            planned = "target" in mode and isinstance(inner, FindRadiusAndRegion)
            rate = inner.samples[0].rate if planned else 1.0  # whose amplification is counted on
            CHECKS[type(inner)](
                inner, noise.calls, rate, relation.changes, partial(charged, plan, step.name), before
            )
        elif relation is REPLACE:
            assert noise.calls == []
        else:
            (scale,) = scales(noise.calls)
            assert 1 / scale == pytest.approx(charged(plan, "total", "count").epsilon)
    assert len(state.balls) == 2
    assert state.rows == (len(points) if "coverage" in mode else None)


def states_with_a_ball(d):
    """The state before each round of the second ball, the first being of radius 100 about the middle."""
    first = Cover((Found(np.full(d, 512), 100, 50),), rows=900)
    located = Located(np.full(d, 300), 60, 6, np.zeros(min(d, 4 if d > 6 else d), dtype=np.int64))
    return [replace(first, search=search) for search in (None, located, located, located)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("d", [1, 2, 9])
def test_a_round_sees_exactly_the_records_that_no_ball_holds(relation, mode, d):
    """So covered records cost nothing, and a neighbor is again one for the round that is passed the rest."""
    grid = unit_cube(d)
    plan = plan_for(grid, relation, 2, **mode)
    rng = np.random.default_rng(d)
    points = np.concatenate(
        [rng.integers(0, 1024, (400, d)), np.full(d, 512) + rng.integers(-20, 20, (400, d))]
    )
    far = np.linalg.norm(points - 512, axis=1) > 100
    assert 0 < far.sum() < 800
    whole = block(points)
    rest = Block(points[far], whole.ids[far])
    states = states_with_a_ball(d)
    for step, state in zip(plan.rounds[-len(states) :], states, strict=True):
        inner = step.search.step(step.target.of(state))
        assert step.floor == inner.floor
        assert step.summarize(whole, state) == inner.summarize(rest, state.search)


@pytest.mark.parametrize("mode", MODES)
def test_aggregates_are_the_same_under_any_split_and_after_travel(mode):
    grid = unit_cube(2)
    plan = pickle.loads(pickle.dumps(plan_for(grid, k=2, **mode)))
    points = clusters(grid, [500, 500])
    whole = block(points)
    states = states_with_a_ball(2)
    for step, state in zip(plan.rounds[-len(states) :], states, strict=True):
        parts = [Block(whole.points[i::7], whole.ids[i::7]) for i in range(7)]
        aggregates = [step.summarize(part, state) for part in parts]
        total = aggregates[3]
        for i in (6, 0, 2, 5, 1, 4):
            total = total + aggregates[i]
        assert total == step.summarize(whole, pickle.loads(pickle.dumps(state)))


def test_all_samples_are_independent():
    plan = plan_for(unit_cube(2), k=4, target=20_000)
    found = [step.search.step(20_000) for step in plan.rounds if "good" in step.name]
    samples = [sample for step in found for sample in step.samples]
    assert len({sample.tweak for sample in samples}) == len(samples) == 8
    assert all(sample.rate < 1 for sample in samples)


def test_where_rows_are_counted_the_sample_is_bounded_and_its_gain_not_counted_on():
    plan = plan_for(unit_cube(2), k=1, coverage=0.8)
    both = plan.rounds[1]
    rates = [sample.rate for sample in both.search.step(10**9).samples]
    assert rates == [pytest.approx(16e3 / 1e9), pytest.approx(32e3 / 1e9)]
    assert both.search.step(10**9).draws() == both.search.step(10).draws()
    assert {draw.rate for draw in both.search.step(10).draws()} == {1}
    assert both.floor is None and both.sections == 256


# Ends


def test_a_search_that_finds_nothing_ends_all_and_draws_no_more_noise():
    plan = plan_for(unit_cube(2), k=3, target=900)
    points = clusters(unit_cube(2), [2000], background=0)
    state, drawn = plan.start, []
    for step in plan.rounds:
        noise = RecordingNoise(SeededNoise(1))
        aggregate = step.summarize(block(points), state)
        if state.ended:
            assert aggregate == step.summarize(block(points[:0]), state)
        state = step.release(
            aggregate.above(step.floor) if step.floor is not None else aggregate, state, noise
        )
        drawn.append(len(noise.calls))
    ends = next(i for i, step in enumerate(plan.rounds) if not drawn[i])
    assert 4 < ends < len(drawn)
    assert not any(drawn[ends:])
    assert state.ended
    assert 1 <= len(state.balls) < 3
    assert len(state.result(unit_cube(2)).balls) == len(state.balls)


def test_a_cover_that_is_reached_early_ends():
    step = plan_for(unit_cube(1), k=3, coverage=0.5).rounds[5]
    state = Cover((Found(np.zeros(1, dtype=np.int64), 1, 600),), rows=1000)
    noise = RecordingNoise(SeededNoise(0))
    assert isinstance(step, CoverRound)
    assert released(step, [[1000]] * 400, state, noise).ended
    assert noise.calls == []


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("d", [1, 2, 7])
def test_extreme_databases_end_in_an_answer(relation, mode, d):
    grid = unit_cube(d)
    corner = np.asarray(grid.extents)
    plan = plan_for(grid, relation, 3, **mode)
    databases = {
        "empty": np.empty((0, d)),
        "one": np.zeros((1, d)),
        "all equal": np.tile(corner, (20_000, 1)),
        "two points": np.concatenate([np.zeros((20_000, d)), np.tile(corner, (20_000, 1))]),
    }
    found = {name: run(points, plan) for name, points in databases.items()}
    assert found["empty"].result(grid) is None
    assert found["one"].result(grid) is None
    assert isinstance(found["empty"].search, NotFound)
    assert len(found["all equal"].balls) >= 1
    assert len(found["two points"].balls) >= 1


# Use


@pytest.mark.parametrize("mode", [{"target": 3000}, {"coverage": 0.9}])
@pytest.mark.parametrize("d", [1, 2, pytest.param(5, marks=pytest.mark.audit)])
def test_planted_clusters_are_covered(mode, d):
    """10 trials; each fails with probability below 0.05, so 4 failures have probability below 1e-3 x 1e-3."""
    grid = unit_cube(d, 2.0**-12)
    good = 0
    for seed in range(10):
        points = clusters(grid, [4000, 3500, 3000], seed=seed)
        state = run(points, plan_for(grid, k=3, salt=seed.to_bytes(16, "little"), **mode), seed)
        if len(state.balls) == 3:
            balls = Balls(
                np.stack([b.center for b in state.balls]), np.array([b.radius for b in state.balls])
            )
            share = balls.hold(points).mean()
            good += share >= 0.8 and max(balls.radii) * grid.step <= 0.05
    assert good >= 7


def test_promise_holds():
    """60 runs: a promise at failure 0.1 is broken in at most 0.1 + 4.5 standard deviations of them (1e-6)."""
    grid, t, r, sizes = unit_cube(2, 2.0**-12), 6000, 0.005, [7000, 7000]
    broken = 0
    for seed in range(60):
        points = clusters(grid, sizes, spread=r, seed=seed)
        plan = plan_for(grid, k=2, target=t, salt=seed.to_bytes(16, "little"))
        promises, left = plan.promises, np.ones(len(points), dtype=bool)
        widest = max(promises["radius_factor"] * r, promises["resolution"])
        assert promises["missing"] < t / 2
        balls, kept = list(run(points, plan, seed).balls), True
        for _ in range(2):
            if max(left[:7000].sum(), left[7000:14_000].sum()) < t:
                break  # no small ball holds the target any more
            if not balls:
                kept = False
                break
            ball = balls.pop(0)
            inside = left & Balls(ball.center[None], np.array([ball.radius])).hold(points)
            kept &= inside.sum() >= t - promises["missing"] and ball.radius * grid.step <= widest
            kept &= abs(int(inside.sum()) - ball.count) <= promises["count_error"]
            left &= ~inside
        broken += not kept
    assert broken <= 60 * 0.1 + 4.5 * math.sqrt(60 * 0.09)


def test_the_further_radii_stay_within_what_the_promise_left():
    """The fit aims at the target itself, and tries more radii than the 1-cluster, whose error is promised."""
    plan = plan_for(unit_cube(2, 2.0**-16), k=2, target=6000)
    step = plan.rounds[3]
    fit = step.search.step(6000)
    assert isinstance(fit, FitRadius)
    most = max(len(candidate_radii(fit.regions, level, fit.ratio)) for level in fit.regions.levels)
    error = fit.radius.error(most, 0.05 / 9)
    assert plan.promises["missing"] >= error


def test_smallest_target_is_workable_and_less_is_not():
    for mode in ({"target": 100}, {"coverage": 0.5}):
        plan = plan_for(unit_cube(2), k=3, **mode)
        assert 100 < plan.smallest_target < 20_000
        if "target" in mode:
            assert plan.promises["missing"] is None
            served = plan_for(unit_cube(2), k=3, target=plan.smallest_target)
            assert served.promises["missing"] <= plan.smallest_target / 2
            below = plan_for(unit_cube(2), k=3, target=int(0.85 * plan.smallest_target))
            assert (
                below.promises["missing"] is None
                or below.promises["missing"] > 0.85 * plan.smallest_target / 2
            )


def test_one_ball_is_the_1_cluster():
    """With the same shares. By itself the 1-cluster chooses its shares for what it promises."""
    shares = dict(zip(SHARES, (0.25, 0.3, 0.08, 0.08, 0.23, 0.06), strict=True))
    cover = plan_for(unit_cube(2), k=1, target=1000, shares=shares)
    one = ONE_CLUSTER.plan(unit_cube(2), OneCluster(1000, shares=shares), BUDGET, ONE, SALT)
    assert [m.scale for m in cover.mechanisms] == pytest.approx([m.scale for m in one.mechanisms], rel=1e-3)


def test_zero_delta_and_unknown_shares_are_refused():
    with pytest.raises(ValueError, match=r"delta is 0: k_cover"):
        plan_for(unit_cube(2), budget=Budget(1.0, 0.0), target=5)
    with pytest.raises(ValueError, match=r"shares has 'luck'"):
        plan_for(unit_cube(2), target=5, shares={"luck": 1.0})


def test_the_salt_is_not_shown():
    assert repr(SALT) not in repr(plan_for(unit_cube(2), k=2, target=9000))
