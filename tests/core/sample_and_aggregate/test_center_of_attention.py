"""The center of attention: its sensitivity against brute force, its noise against what is charged."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.budget import Budget
from core.domain import Grid
from core.mechanisms.calibrate_noise import heavy_tailed
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.sample_and_aggregate.center_of_attention import (
    CenterOfAnswers,
    CenterOfAttention,
    attention,
    majority,
)
from core.sample_and_aggregate.outputs import Outputs
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.stable_radius import StableRadius
from core.task import Setting
from tests.core.seeded import SeededNoise

SIZE = 30


def aggregator(grid, blocks, beta=0.3, epsilon=2.0):
    noise = heavy_tailed("cauchy", beta, epsilon, grid.dimension)
    radius = StableRadius(grid, blocks // 2, 1, Exponential(what="radius", scale=1.0, spread=2))
    default = tuple(np.array(grid.bounding_center).astype(int).tolist())
    return CenterOfAttention(
        grid=grid, blocks=blocks, default=default, failures=None, noise=noise, radius=radius
    )


def cube(d):
    return Grid((0.0,) * d, (float(SIZE),) * d, 1.0)


def answers(seed, m, d):
    """Return some answers in a crowd, some anywhere, and the same with one other."""
    rng = np.random.default_rng(seed)
    crowd = rng.integers(m // 2, m + 1)
    points = rng.integers(0, SIZE + 1, (m, d))
    points[:crowd] = np.clip(rng.integers(0, SIZE, d) + rng.integers(-1, 2, (crowd, d)), 0, SIZE)
    other = points.copy()
    other[rng.integers(m)] = rng.choice([rng.integers(0, SIZE + 1, d), np.zeros(d), np.full(d, SIZE)])
    return points, other.astype(np.int64)


def test_two_majorities_share_an_unchanged_answer():
    for m in range(3, 50):
        assert 2 * (majority(m) - 1) > m - 1
        assert 2 * (majority(m) - 2) <= m - 1


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 10**9), st.integers(3, 14), st.sampled_from([1, 2, 3]), st.sampled_from([0.05, 0.3]))
def test_it_is_smooth_and_bounds_the_move(seed, m, d, beta):
    step = aggregator(cube(d), m, beta)
    centers, bounds = [], []
    for points in answers(seed, m, d):
        center, local = attention(points, step.diameter)
        assert (np.diff(local) >= 0).all()
        centers.append(center)
        bounds.append(step.sensitivity(local))
    assert abs(math.log(bounds[0] / bounds[1])) <= beta + 1e-9
    assert np.abs(centers[0] - centers[1]).sum() <= min(bounds) + 1e-9


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.integers(3, 9), st.sampled_from([1, 2]))
def test_local_sensitivities_by_definition(seed, m, d):
    """rho_(k+2)(t0 + k + 1) from all distances; on a line half the shortest interval, rounded up."""
    points, _ = answers(seed, m, d)
    center, local = attention(points, SIZE * d)
    t0, expected = majority(m), []
    distances = np.sort(np.abs(points[:, None] - points[None]).sum(axis=2), axis=1)
    line = sorted(points[:, 0].tolist())

    def half_of_shortest(t):
        return math.ceil(min(line[i + t - 1] - line[i] for i in range(m - t + 1)) / 2)

    radii = np.sort(np.abs(points - center).sum(axis=1))
    assert radii[t0 - 1] == (half_of_shortest(t0) if d == 1 else distances[:, t0 - 1].min())
    for k in range(m - t0):
        t = t0 + k + 1
        radius = half_of_shortest(t) if d == 1 else int(np.sort(distances[:, t - 1])[k + 1])
        expected.append(min(2 * radius, SIZE * d))
    assert local.tolist() == expected


@pytest.mark.parametrize("held", [1, 50, 10**6])
def test_the_center_does_not_depend_on_how_many_distances_are_held_at_a_time(held, monkeypatch):
    points, _ = answers(5, 23, 2)
    center, local = attention(points, 2 * SIZE)
    monkeypatch.setattr("core.sample_and_aggregate.center_of_attention._DISTANCES", held)
    monkeypatch.setattr(
        np, "empty", lambda shape, dtype: np.full(shape, -1, dtype)
    )  # or chance might be right
    again, bounds = attention(points, 2 * SIZE)
    assert np.array_equal(center, again) and np.array_equal(local, bounds)


def test_a_smaller_bound_would_not_do():
    """Half of A(0) is exceeded by some pair of neighbors, on a line and in the plane."""
    for d in (1, 2):
        ratios = []
        for seed in range(3000):
            points, other = answers(seed, 5, d)
            (a, local), (b, _) = attention(points, 10**6), attention(other, 10**6)
            if local[0] > 0:
                ratios.append(np.abs(a - b).sum() / local[0])
        assert 0.5 < max(ratios) <= 1.0


@pytest.mark.parametrize("d", [1, 2, 4])
def test_noise_has_the_scale_of_the_sensitivity_on_every_axis(d, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "core.mechanisms.admissible.rounded", lambda density, scale, source: drawn.append(scale) or 0
    )
    step = aggregator(cube(d), 9, 0.05)
    noise = step.noise
    points, _ = answers(3, 9, d)
    center, local = attention(points, step.diameter)
    found = step.release(Outputs.of(np.arange(9, dtype=np.uint64), points), None, SeededNoise(0))
    assert drawn == [step.sensitivity(local) / noise.alpha] * d
    assert np.array_equal(found.value, center)
    if d > 1:
        assert math.hypot(noise.alpha, noise.beta) + (d - 1) * noise.beta == pytest.approx(2.0, rel=1e-6)


def test_unanimous_answers_are_released_as_they_are():
    points = np.tile([7, 21], (200, 1))
    step = aggregator(cube(2), 200, 0.3)
    released = [
        step.release(Outputs.of(np.arange(200, dtype=np.uint64), points), None, SeededNoise(seed)).value
        for seed in range(20)
    ]
    assert all(np.array_equal(value, [7, 21]) for value in released)


def test_a_majority_is_found_whatever_the_others_answer():
    rng, grid = np.random.default_rng(0), Grid((0.0, 0.0), (1.0, 1.0), 2.0**-16)
    step = aggregator(grid, 1000, 0.05, 1.0)
    points = np.concatenate([rng.normal(0.3, 0.002, (800, 2)), rng.uniform(0.9, 1.0, (200, 2))])
    aggregate = Outputs.of(np.arange(1000, dtype=np.uint64), grid.quantize(points))
    errors = [
        np.abs(grid.restore(step.release(aggregate, None, SeededNoise(seed)).value) - 0.3).max()
        for seed in range(40)
    ]
    assert np.median(errors) < 0.05


def method_for(blocks, fraction, grid, epsilon=1.0):
    params, relation = SampleAndAggregate(blocks, stable_fraction=fraction), Neighbors("add_or_remove_one")
    return CenterOfAnswers(Setting(grid, params, Budget(epsilon, 1e-6), relation, bytes(16)))


@pytest.mark.parametrize("d", [1, 2])
def test_the_center_cannot_leave_those_that_agree_before_so_many_changes(d):
    """Those that do not agree are far away, all at one point: A(k) is 0 until then, and no longer."""
    for blocks in range(3, 30):
        for agreeing in range(majority(blocks), blocks):
            points = np.zeros((blocks, d), dtype=np.int64)
            points[agreeing:] = 498
            _, local = attention(points, 996)
            spare = method_for(blocks, 0.9, cube(d))._spare(agreeing)
            assert len(local) > spare and not local[:spare].any() and local[spare] > 0


def test_the_promised_spread_is_no_less_than_how_far_the_center_may_be():
    """Half of 12 stable answers of 21 are at (D, D), half at (-D, -D): the center is 5 D - 1 from 0."""
    wide, middle = 100, 1000
    stable = np.repeat([[wide, wide], [-wide, -wide]], 6, axis=0)
    points = middle + np.concatenate([np.tile([5 * wide - 1, wide], (9, 1)), stable])
    grid = Grid((0.0, 0.0), (2000.0, 2000.0), 1.0)
    method = method_for(21, 12 / 21, grid, 40.0)
    assert method.stable == len(stable)
    noise, (center, _) = method.rounds(1.0)[0].noise, attention(points, 4000)
    moved = np.abs(center - middle).max()
    assert moved == 5 * wide - 1
    of_noise = 2 * 4 * noise.scale(1.0) * noise.tail(method._failure)
    assert moved <= (method.accuracy(1.0).promises.spread_factor - of_noise) * wide
