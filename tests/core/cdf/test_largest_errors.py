"""Bounds on errors that are learned from simulated noise."""

import math

import numpy as np
import pytest

from core.budget import Budget
from core.cdf.largest_errors import PILOTS, TRIALS, made_up, simulated
from core.cdf.params import Cdf
from core.cdf.task import CDF
from core.neighbors import Neighbors
from tests.core.exact import laplace_mass
from tests.measured.cases import line


def walks(seed, size=20):
    """Errors of counts that add up: the sums of normal steps, as many as simulations need."""
    steps = np.random.default_rng(seed).normal(size=(PILOTS + TRIALS, size))
    return 10 * steps.cumsum(axis=1)


@pytest.mark.parametrize("failure", [0.3, 0.1, 0.05])
def test_both_bounds_hold_at_once_and_are_not_far_off(failure):
    """Learned from 1,100 walks, tested on 4,400 others; a bound that is a fifth smaller fails too often."""
    bound = simulated(walks(0))(failure)
    others = np.concatenate([walks(seed) for seed in (1, 2, 3, 4)])
    others = np.concatenate([np.zeros((len(others), 1)), others], axis=1)
    counts, ranges = np.abs(others).max(axis=1), np.ptp(others, axis=1)

    def broken(part):
        return ((counts > part * bound.count) | (ranges > part * bound.range)).mean()

    assert broken(1.0) <= failure
    assert broken(0.8) > failure


def test_few_simulations_do_not_show_rare_errors():
    assert simulated(walks(0))(1e-3).count == math.inf
    assert simulated(walks(0))(1e-6).count == math.inf


def test_errors_of_half_a_record_are_rounded_up():
    bound = simulated([np.array([2.5, 0.0, -1.5])] * (PILOTS + TRIALS))(0.1)
    assert (bound.count, bound.range) == (3.0, 5.0)


def test_made_up_noise_is_discrete_laplace():
    noise = made_up(3.0, 200_000, np.random.default_rng(1))
    support, mass = laplace_mass(3.0, 60)
    for low, high in ((-60, -4), (-3, -1), (0, 0), (1, 3), (4, 60)):
        expected = mass[(support >= low) & (support <= high)].sum()
        assert ((noise >= low) & (noise <= high)).mean() == pytest.approx(expected, abs=0.006)
    assert made_up(0.0, 3, np.random.default_rng(1)).tolist() == [0, 0, 0]


def test_a_rarer_failure_is_never_promised_a_smaller_error():
    promised = [
        CDF.plan(line(100), Cdf(failure=failure), Budget(1.0, 0.0), Neighbors("replace_one"), b"").promises
        for failure in (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-6)
    ]
    for name in ("kolmogorov_records", "range_error"):
        figures = [each[name] for each in promised]
        assert figures == sorted(figures)
