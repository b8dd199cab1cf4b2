"""RecConcave against brute force, its sensitivities, and its promise."""

import math

import numpy as np
import pytest

from core.mechanisms.a_dist import ADist
from core.mechanisms.rec_concave import (
    Search,
    Steps,
    levels,
    log_star,
    quality_promise,
    rec_concave,
)
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


def random_steps(rng, last, pieces, spread=50):
    starts = np.append(0, 1 + np.sort(rng.choice(last, pieces - 1, replace=False)))
    return Steps(starts, rng.integers(-spread, spread, pieces), last)


def dense(steps):
    return steps.at(np.arange(steps.last + 1))


def peak(rng, last, pieces, height):
    """Quasi-concave steps: rising by random amounts to `height`, then falling."""
    steps = random_steps(rng, last, pieces)
    top = int(rng.integers(pieces))
    falls = rng.integers(1, max(2, height // 4), pieces)
    distance = np.array([falls[min(i, top) : max(i, top)].sum() for i in range(pieces)])
    return Steps(steps.starts, np.maximum(height - distance, -height), last)


@pytest.mark.parametrize("seed", range(20))
def test_window_minima_are_those_of_all_windows(seed):
    rng = np.random.default_rng(seed)
    steps = random_steps(rng, last=int(rng.integers(40, 130)), pieces=int(rng.integers(1, 30)))
    values, lengths = dense(steps), [1, 2, 3, 8, 16, 32, steps.last + 1]
    windows = [np.lib.stride_tricks.sliding_window_view(values, n) for n in lengths]
    assert steps.window_minima(lengths) == [w.min(axis=1).max() for w in windows]


@pytest.mark.parametrize("seed", range(10))
def test_steps_keep_their_values(seed):
    rng = np.random.default_rng(seed)
    steps = random_steps(rng, last=90, pieces=30, spread=3)
    assert np.array_equal(dense(steps.merged()), dense(steps))
    assert np.array_equal(dense(steps.extended(128, -7)), np.append(dense(steps), np.full(38, -7)))
    starts, lengths, values = steps.within([(3, 20), (50, 51)])
    points = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)])
    assert np.array_equal(points, np.append(np.arange(3, 20), 50))
    assert np.array_equal(np.repeat(values, lengths), dense(steps)[points])


def test_log_star():
    assert [log_star(x) for x in (1, 2, 4, 16, 17, 2**16, 2**17, 2.0**64)] == [0, 1, 2, 3, 4, 4, 5, 5]


def test_levels_follow_the_recursion():
    assert [levels(last, 5) for last in (32, 33, 2**32, 2**32 + 1)] == [0, 1, 1, 2]
    assert levels(2**40, 1) == 0
    assert levels(2**40, 2) == 1


def draws(quality, promise, depth, seed=0):
    noise = RecordingNoise(SeededNoise(seed, factor=0))
    found = rec_concave(
        quality, promise, 0.5, Search.of(1.0, 1e-3, levels(quality.last, depth)), depth, noise
    )
    return found, noise.calls


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("last", [100, 700])
def test_scores_move_by_one_when_the_quality_does(last, seed):
    """Every score that any inner mechanism sees, given the same choices before it."""
    rng = np.random.default_rng(seed)
    steps = peak(rng, last, 60, height=4000)
    moved = Steps(steps.starts, steps.values + rng.integers(-1, 2, 60), last)
    inner = [draws(q, 3000, depth=2)[1][0][1] for q in (steps, moved)]
    assert np.abs(inner[0] - inner[1]).max() <= 1
    for length in (8, 16, 64):
        for shift in (0, length // 2):
            block = (np.arange(last + 1) + shift) // length
            best = [[dense(q)[block == b].max() for b in range(block[-1] + 1)] for q in (steps, moved)]
            assert np.abs(np.subtract(*best)).max() <= 1


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("last", [33, 64, 65, 1000, 4097])
def test_without_noise_it_finds_what_the_promise_says(last, seed):
    """The promise is far above what A_dist needs, so only the scale search can fail, and must not."""
    rng = np.random.default_rng(seed)
    quality = peak(rng, last, min(last // 2, 200), height=4000)
    found, _ = draws(quality, 4000, depth=3)
    assert found is not None
    assert quality.at(np.array([found]))[0] >= 2000


@pytest.mark.parametrize("seed", range(20))
def test_the_leading_block_is_that_of_brute_force(seed):
    """The gaps that A_dist sees are those between the two best blocks, over every point of the range."""
    rng = np.random.default_rng(seed)
    quality = peak(rng, 1000, 50, height=4000)
    _, calls = draws(quality, 4000, depth=2)
    inner = next(values for kind, values, _ in calls if kind == "select_run")
    length = 8 << int(np.argmax(inner))
    extended = np.append(dense(quality), np.full(1024 - 1000, min(0, quality.values[-1])))
    expected = []
    for shift in (0, length // 2):
        block = (np.arange(1025) + shift) // length
        best = sorted(extended[block == b].max() for b in range(block[-1] + 1))
        if len(best) > 1:
            expected.append(best[-1] - best[-2])
    assert [int(values[0]) for kind, values, _ in calls if kind == "laplace"] == expected


@pytest.mark.parametrize("last", [20, 2**16, 2**25, 2**40])
@pytest.mark.parametrize("seed", range(8))
def test_it_keeps_the_promise_of_the_theorem(last, seed):
    """Random peaks of just the promised height, down to a single point wide; failure 0.001 each."""
    rng = np.random.default_rng(seed)
    promise = math.ceil(quality_promise(last + 1, 0.5, 1.0, 1e-6, 1e-3))
    depth = log_star(last + 1)
    number = levels(last, depth)
    search = Search.of(1 / (3 * number + 1), 1e-6 / max(1, 2 * number), number)
    center, width = int(rng.integers(last)), int(2 ** rng.uniform(0, math.log2(last)))
    rise = np.unique(np.clip(center - (width * np.linspace(0, 3, 100)).astype(np.int64), 0, last))
    fall = np.unique(np.clip(center + 1 + (width * np.linspace(0, 3, 100)).astype(np.int64), 0, last))
    starts = np.unique(np.concatenate([[0], rise, fall]))
    height = promise - np.abs(starts - center) * (promise // width)
    height = np.where(starts == center, promise, np.minimum(height, promise))
    quality = Steps(starts, np.maximum(height, -promise), last)
    found = rec_concave(quality, promise, 0.5, search, depth, SeededNoise(seed))
    assert found is not None
    assert 0 <= found <= last
    assert quality.at(np.array([found]))[0] >= promise / 2


@pytest.mark.parametrize("solutions", [2**4, 2**10, 2**17, 2**33, 2**40])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("failure", [1e-6, 0.1])
def test_the_theorem_covers_the_noise_really_drawn(solutions, epsilon, delta, failure):
    """A_dist with scale 2 / epsilon and the larger threshold: the published promise has room for it."""
    promise, depth = quality_promise(solutions, 0.5, epsilon, delta, failure), log_star(solutions)
    number = levels(solutions, depth)
    count = 3 * number + 1
    share, part, beta = epsilon / count, delta / max(1, 2 * number), failure / count
    search = Search.of(share, part, number)
    promises, alphas = [promise], [0.5]
    for _ in range(number):
        promises.append(math.floor(alphas[-1] * promises[-1] / 2))
        alphas.append(0.25)
    candidates = [16.0] * number + [33.0]
    for level in range(number):
        gap = math.floor((1 - 0.25) * promises[level + 1]) - 1
        lead = search.lead.threshold + math.ceil(search.lead.scale * math.log(1 / beta))
        assert gap >= lead
    for level in range(number + 1):
        # At least K of at most 16 K candidates, or one of at most 33, have full quality.
        assert search.quality.scale * math.log(candidates[level] / beta) <= alphas[level] * promises[level]


def test_it_draws_what_is_charged():
    """Two A_dist and one selection per level, one selection at the end."""
    rng = np.random.default_rng(0)
    for last in (20, 2**20, 2**40):
        quality = peak(rng, last, 10, height=10**9)
        _, calls = draws(quality, 10**9, depth=5)
        search = Search.of(1.0, 1e-3, levels(last, 5))
        assert len([c for c in calls if c[0] == "laplace"]) <= search.lead.times
        assert len([c for c in calls if c[0] == "select_run"]) <= search.quality.times
        assert all(scale == 2.0 for _, _, scale in calls)
        assert len(search.draws()) == (2 if last > 32 else 1)


def test_points_are_chosen_from_the_released_blocks():
    """Block 0 is released although the peak is elsewhere: nothing but that block is looked at."""

    class Told(SeededNoise):
        def answer(self, draw, sample, unit=1.0):
            return 0 if isinstance(draw, ADist) else sample()

    quality = Steps(np.array([0, 900, 901]), np.array([0, 4000, 0]), 1000)
    search = Search.of(1.0, 1e-3, levels(1000, 2))
    assert rec_concave(quality, 4000, 0.5, search, 2, Told(0, factor=0)) < 8
