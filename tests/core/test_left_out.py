"""What bounds leave out of made-up units, against sums of their probabilities and against drawn units."""

import itertools
import math

import numpy as np
import pytest

from core.errors import InvalidValue
from core.grouping import Contributions
from core.left_out import Guess, left_out

MEANS = [1.0, 1.3, 3.0, 10.0]
BOUNDS = [1, 2, 3, 7, 40]


def alike(mean: float, k: int) -> float:
    """P(1 + X > k) for a Poisson number X."""
    others = mean - 1
    return 1 - math.fsum(math.exp(-others) * others**i / math.factorial(i) for i in range(k))


def heavy(mean: float, k: int) -> float:
    return mean * (mean - 1) / ((mean + k) * (mean + k - 1)) if mean > 1 else float(k == 0)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("most", BOUNDS)
def test_shares_are_those_of_the_probabilities(mean: float, most: int) -> None:
    for shape, tail in enumerate((alike, heavy)):
        kept = math.fsum(tail(mean, k) for k in range(most))
        for found in (
            left_out(Guess(groups=mean), Contributions(groups=most)).units[shape],
            left_out(Guess(rows=mean), Contributions(rows=most)).rows[shape],
        ):
            assert found == pytest.approx(1 - kept / mean, abs=1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_both_shapes_have_the_mean(mean: float) -> None:
    """The heavy tail above k adds m (m - 1) / (m + k) to the mean."""
    k = np.arange(100_000)
    assert math.fsum(alike(mean, i) for i in range(100)) == pytest.approx(mean)
    rest = mean * (mean - 1) / (mean + len(k) - 1)
    assert math.fsum(heavy(mean, int(i)) for i in k) + rest == pytest.approx(mean)


def test_drawn_units_lose_as_much() -> None:
    """200,000 units: their groups, then rows in each. A share strays by 0.01 with a chance below 1e-9."""
    rng = np.random.default_rng(1)
    guess, bounds, units = Guess(3.0, 5.0), Contributions(groups=2, rows=4), 200_000
    groups = 1 + rng.poisson(guess.groups - 1, units)
    kept = np.minimum(groups, bounds.groups)
    rows = 1 + rng.poisson(guess.rows - 1, groups.sum())
    first = np.repeat(np.cumsum(groups) - groups, groups)
    kept_group = np.arange(len(rows)) - first < np.repeat(kept, groups)
    lost = left_out(guess, bounds)
    assert lost.units[0] == pytest.approx(1 - kept.sum() / groups.sum(), abs=0.01)
    kept_rows = np.minimum(rows, bounds.rows)[kept_group].sum()
    assert lost.rows[0] == pytest.approx(1 - kept_rows / rows.sum(), abs=0.01)


def test_a_unit_with_one_of_each_loses_nothing_and_larger_bounds_lose_less() -> None:
    assert left_out(Guess(), Contributions()).rows == (0.0, 0.0)
    lost = [left_out(Guess(3.0, 4.0), Contributions(most, most)) for most in (1, 2, 4, 8)]
    for one, other in itertools.pairwise(lost):
        assert all(a > b for a, b in zip(one.rows + one.units, other.rows + other.units, strict=True))
    assert all(each.rows[0] < each.rows[1] for each in lost[1:])


@pytest.mark.parametrize("mean", [0.5, 0.0, -1.0, math.nan, math.inf])
def test_a_wrong_guess_is_refused(mean: float) -> None:
    with pytest.raises(InvalidValue, match="must be from 1 to"):
        Guess(rows=mean)
