"""Stability histograms of several axes: what they spend together, and what they release."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.mechanisms.stability_axes import StabilityAxes
from core.neighbors import Neighbors
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

REPLACE = Neighbors("replace_one")


def test_they_spend_the_less_of_basic_and_advanced_composition():
    few, many = (StabilityAxes.of("any", 0.01, 1e-9, REPLACE, axes=d, slack=1e-6) for d in (3, 3000))
    one = few.one.cost
    assert few.cost.epsilon == pytest.approx(0.03)
    assert few.cost.delta == pytest.approx(3 * one.delta)
    assert many.cost.epsilon == pytest.approx(0.6 + 0.01 * math.sqrt(6000 * math.log(1e6)))
    assert many.cost.delta == pytest.approx(3000 * one.delta + 1e-6)
    assert replace(many, scale=many.scale / 2).cost.epsilon > 1.9 * many.cost.epsilon


def test_one_histogram_an_axis_is_drawn():
    draw = StabilityAxes.of("any", 1.0, 1e-6, REPLACE, axes=2, slack=1e-6)
    noise = RecordingNoise(SeededNoise(0))
    axes = [(np.array([-3, 8]), np.array([5, 9000])), (np.array([1, 2**60]), np.array([0, 9000]))]
    assert draw.fullest(axes, noise) == (8, 2**60)
    assert [(kind, values.tolist(), scale) for kind, values, scale in noise.calls] == [
        ("laplace", [5, 9000], 2.0),
        ("laplace", [9000], 2.0),
    ]
    assert draw.fullest([axes[0], (np.array([4]), np.array([1]))], noise) is None
