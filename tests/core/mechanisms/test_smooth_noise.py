"""One number with noise by its smooth sensitivity: where it stays, what is drawn, and what it costs."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from core.draws import Laplace
from core.mechanisms.calibrate_noise import heavy_tailed
from core.mechanisms.smooth_noise import SmoothNoise, calibrate_smooth
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

NOISE = heavy_tailed("student", 0.1, 1.0)
LEVEL = Laplace.of("scale of the noise", 0.1, 1)


def params(share=0.2, failure=0.1):
    return SimpleNamespace(failure=failure, noise="auto", scale_share=share)


def test_a_value_stays_in_its_range_at_both_ends():
    smooth, source = SmoothNoise(NOISE), SeededNoise(0)
    released = {smooth.value(5, 1e6, 3, 7, source) for _ in range(50)}
    assert released >= {3, 7} and min(released) == 3 and max(released) == 7


@pytest.mark.parametrize("bound", [2.0**-20, 0.3, 1.0, 12.5])
def test_noise_has_the_scale_of_the_bound_however_small_it_is(bound, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "core.mechanisms.admissible.rounded", lambda density, scale, source: drawn.append(scale) or 0
    )
    assert SmoothNoise(NOISE).value(5, bound, 0, 9, SeededNoise(0)) == 5
    assert drawn == [bound / NOISE.alpha]


@pytest.mark.parametrize("bound", [2.0**-20, 0.3, 1.0, 12.5])
def test_the_scale_is_that_of_its_noisy_level(bound):
    """The level is the next whole power of e^beta, and a next to infinite one is no error."""
    smooth, source = SmoothNoise(NOISE, LEVEL), RecordingNoise(SeededNoise(4))
    scale = smooth.scale(bound, source)
    ((kind, (level,), of_level),) = source.calls
    noisy = math.log(scale * NOISE.alpha) / (1.001 * NOISE.beta)
    assert (kind, of_level) == ("laplace", LEVEL.scale)
    assert math.log(bound) <= 1.001 * NOISE.beta * level < math.log(bound) + 1.001 * NOISE.beta
    assert noisy == pytest.approx(round(noisy)) and round(noisy) != level

    class Far(SeededNoise):
        def laplace(self, values, scale):
            return np.asarray(values) + 10**6

    assert math.isfinite(smooth.scale(bound, Far(0)))


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
def test_value_and_scale_share_what_is_spent(share, changes):
    smooth = calibrate_smooth(params(share), 2.0, 0.0, changes, 1.0)
    spent = [draw.cost.epsilon for draw in smooth.draws()]
    assert spent == pytest.approx([2.0 * (1 - share), 2.0 * share][: len(spent)], rel=1e-6)
    assert (smooth.level is None) == (share == 0) == (smooth.within(1.0) is None)
    assert smooth.scale(1.0, SeededNoise(0)) is None or share


@pytest.mark.parametrize("failure", [0.3, 0.01])
def test_a_value_is_within_its_bound_as_often_as_stated(failure):
    """By the laws of both draws, where the level is not rounded up: the worst case.

    The part that the bound leaves to the level is not known here. So the probability is summed over the noise
    of the level: that of the value is beyond its tail at what the released scale then allows.
    """
    smooth = calibrate_smooth(params(failure=failure), 1.0, 0.0, 1, 1.0)
    assert smooth.failure == failure
    unit, a = 1.001 * smooth.noise.beta, math.exp(-1 / smooth.level.scale)
    factor, missed = smooth.within(1.0) - 0.5, 0.0
    grid = np.geomspace(1e-12, 1.0, 4000)[:-1]
    tails = np.array([smooth.noise.tail(float(each)) for each in grid])
    for noise in range(-2000, 2001):
        chance = (1 - a) / (1 + a) * a ** abs(noise)
        allowed = factor * math.exp(min(unit * noise, 300.0))
        missed += chance * float(np.interp(-allowed, -tails, grid))
    assert 0 < missed <= failure


@pytest.mark.parametrize("failure", [0.3, 0.01])
def test_the_bound_is_that_of_the_best_division_of_its_failure(failure):
    """Of twentieths, by the exact law of the level's noise."""
    smooth = calibrate_smooth(params(failure=failure), 1.0, 0.0, 1, 1.0)
    a, found = math.exp(-1 / smooth.level.scale), []
    for one in failure * np.arange(1, 20) / 20:
        most = next(m for m in itertools.count() if a ** (m + 1) / (1 + a) <= one * (1 + 1e-9))
        found.append(smooth.noise.tail(failure - one) * math.exp(1.001 * smooth.noise.beta * most))
    assert smooth.within(2.0) == pytest.approx(2.0 * min(found) + 0.5)
