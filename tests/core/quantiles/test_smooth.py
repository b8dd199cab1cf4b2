"""One value with noise by its smooth sensitivity."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.order_statistics import Rank, ranks_that_matter, smooth_sensitivity
from core.quantiles.params import Median
from core.quantiles.smooth import SmoothQuantile
from core.quantiles.task import MEDIAN
from tests.core.quantiles.values import LARGE, PURE, RELATIONS, SMALL, block, released
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("grid", [SMALL, LARGE])
def test_noise_has_the_scale_of_the_sensitivity(relation, grid, monkeypatch):
    plan = MEDIAN.plan(grid, Median(method="smooth", scale_share=0.3), PURE, relation, bytes(16))
    (last,) = plan.rounds
    assert isinstance(last, SmoothQuantile)
    values, upper = np.arange(200), grid.extents[0]
    drawn = []
    monkeypatch.setattr(
        "core.mechanisms.admissible.rounded", lambda density, scale, source: drawn.append(scale) or 0
    )
    noise = last.smooth.noise
    recording = RecordingNoise(SeededNoise(0))
    found = last.release(last.summarize(block(values), None), None, recording)
    smooth = smooth_sensitivity(Counts.of(values), upper, Rank(1, 2), noise.beta, relation)
    assert drawn == [smooth / noise.alpha]
    assert found.step == 99
    ((kind, level, scale),) = recording.calls
    assert kind == "laplace"
    assert scale == pytest.approx(1 / plan.mechanisms[1].epsilon)
    assert level[0] == math.ceil(math.log(smooth) / (1.001 * noise.beta))


@pytest.mark.parametrize("relation", RELATIONS)
def test_all_ranks_that_matter_are_looked_at_and_no_others(relation):
    """In a domain of any width, each of many records in a cell of its own."""
    plan = MEDIAN.plan(Grid((0,), (2**30,), 1), Median(method="smooth"), PURE, relation, bytes(16))
    (last,) = plan.rounds
    matter, below = ranks_that_matter(2**30, last.smooth.noise.beta), np.arange(1000)
    hot = last.hot(SimpleNamespace(below=below, upto=below + 1), 1000, None)
    assert 20 < matter < 490 and last.near == (2 * matter + 1,)
    assert hot.tolist() == (np.abs(below + 1 - 500) <= matter).tolist()


def test_the_released_scale_is_near_the_true_one():
    params = Median(method="smooth", noise="student", scale_share=0.9)
    plan = MEDIAN.plan(SMALL, params, Budget(50.0, 0.0), RELATIONS[1], bytes(16))
    (last,) = plan.rounds
    values = np.arange(0, 201, 2)
    smooth = smooth_sensitivity(Counts.of(values), 200, last.rank, last.smooth.noise.beta, RELATIONS[1])
    scale = released(plan, values).result(SMALL).scale
    true = last.smooth.noise.scale(smooth) * 0.5
    beta = last.smooth.noise.beta
    assert true * math.exp(-0.01) <= scale <= true * math.exp(2.1 * beta)


def test_wide_universes_are_for_the_exponential_mechanism():
    wide = Grid((0,), (2**61,), 1)
    with pytest.raises(ValueError, match=r"step is 1, .* smooth takes at most 2\^31 steps"):
        MEDIAN.plan(wide, Median(method="smooth"), PURE, RELATIONS[0], bytes(16))
    plan = MEDIAN.plan(wide, Median(), PURE, RELATIONS[0], bytes(16))
    assert (plan.method, plan.alternatives) == ("exponential", {})
    values = 2**60 + np.arange(1000)
    assert 2**60 + 400 <= released(plan, values).result(wide).value <= 2**60 + 600
