"""The counts of the records nearest to each center, and how far the promise says that they are off."""

import math

import numpy as np
import pytest

from core.centers.center_counts import CountNearest
from core.centers.space import Space
from core.domain import Grid
from core.draws import Gaussian, Laplace


@pytest.mark.parametrize("failure", [0.5, 0.1, 1e-6])
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_counts_are_farther_off_as_rarely_as_stated(kind, k, failure):
    """Exactly, from the probabilities of discrete noise; two records less would not do."""
    counts = kind(what="counts", scale=6.0, sensitivity=1)
    step = CountNearest(Space(Grid((0.0,), (9.0,), 1.0)), k, counts)
    support = np.arange(-400, 401)
    weights = np.exp(-np.abs(support) / 6 if kind is Laplace else -((support / 6) ** 2) / 2)
    mass = weights / weights.sum()

    def some(beyond):
        return -math.expm1(k * math.log1p(-mass[np.abs(support) > beyond].sum()))

    assert some(step.error(failure)) <= failure < some(step.error(failure) - 2)
