"""Bounds on the errors of statistics against the probabilities of their noise."""

from typing import Any, cast

import numpy as np
import pytest

from core.domain import Grid
from core.statistics.bounds import Bounds
from core.statistics.found import Reading
from core.statistics.quantities import Quantity

LINE = Grid((0.0,), (9.0,), 1.0)


@pytest.mark.parametrize("failure", [0.3, 0.1, 1e-3])
@pytest.mark.parametrize("gaussian", [True, False])
def test_whole_noise_exceeds_a_bound_as_rarely_as_stated(failure: float, gaussian: bool) -> None:
    """Also just below a whole number, which noise without steps exceeds more rarely."""
    bounds = Bounds(LINE, (), {}, several=False, gaussian=gaussian, groups=1, failure=failure)
    z = np.arange(-4000, 4001)
    for scale in np.geomspace(0.3, 30, 200).tolist():
        mass = np.exp(-(z**2) / (2 * scale**2)) if gaussian else np.exp(-np.abs(z) / scale)
        exceeds = mass[np.abs(z) > bounds._all((scale, 0.0), 1.0, 1)].sum() / mass.sum()
        assert exceeds <= failure


@pytest.mark.parametrize("low", [-5.0, 100.0, -40.0])
@pytest.mark.parametrize("gaussian", [True, False])
def test_sums_and_means_of_all_columns_and_groups_fail_together(low: float, gaussian: bool) -> None:
    """20,000 draws of large noise at failure 0.2: 4,000 and 4.9 deviations of 57 may exceed the bound.

    A bound that is not far from what it should be is exceeded by a tenth of that or more.
    """
    columns, groups, failure = 3, 2, 0.2
    grid = Grid((low,) * columns, (low + 10,) * columns, 0.5)
    sums = [Quantity("sum", axis, 20, center=4) for axis in range(columns)]
    scales = {("rows", 0): 300.0} | {("sum", axis): 900.0 for axis in range(columns)}
    quantities = (Quantity("rows"), *sums)
    bounds = Bounds(
        grid, quantities, scales, several=False, gaussian=gaussian, groups=groups, failure=failure
    )
    rng, many = np.random.default_rng(0), (20_000, groups)
    draw = rng.normal if gaussian else rng.laplace
    rows, of_sums = draw(0, 300, (*many, 1)), draw(0, 900, (*many, columns))
    sum_off = np.abs(of_sums + (low / 0.5 + 4) * rows) / max(abs(low), abs(low + 10)) * 0.5
    mean_off = np.abs(of_sums - sums[0].bound * rows) / 10  # of half of the range; a mean is at one end
    for measure, off in (("sum", sum_off), ("mean", mean_off)):
        exceeds = (off > bounds.largest(measure)).any(axis=(1, 2)).sum()
        assert 400 < exceeds <= 4000 + 280


@pytest.mark.parametrize("scale", [1.3, 4.0, 300.0])
@pytest.mark.parametrize("kinds", [("above", "below", "missing"), ("rows", "missing"), ("units", "excess")])
def test_numbers_that_follow_from_several_sums_fail_as_rarely_as_stated(
    kinds: tuple[str, ...], scale: float
) -> None:
    """20,000 draws for two groups of up to three rows of a unit at failure 0.2, as above."""
    grid, unit = Grid((-5.0,), (5.0,), 0.5), 20 if "above" in kinds else 1
    quantities: Any = tuple(Quantity(cast(Any, kind), 0, unit, rows=3) for kind in kinds)
    scales = {(kind, 0): scale * unit for kind in kinds}
    gaussian = "excess" in kinds
    bounds = Bounds(grid, quantities, scales, several=True, gaussian=gaussian, groups=2, failure=0.2)
    rng, size = np.random.default_rng(0), (40_000, len(kinds))
    if gaussian:
        noise = np.rint(rng.normal(0, scale, size))
    else:
        noise = np.subtract(*rng.geometric(-np.expm1(-1 / (scale * unit)), (2, *size)))
    reading = Reading(("count", "units"), quantities, (0.0,) * len(kinds), 1)
    for numbers, bound in ((reading.rows, bounds.rows), (reading.units, bounds.units)):
        off = np.abs(np.floor(numbers(noise.astype(np.int64))[0] + 1 / 2)).reshape(-1, 2)
        exceeds = (off > bound).any(axis=1).sum()
        assert exceeds <= 4000 + 280
        assert scale < 100 or exceeds > 400
