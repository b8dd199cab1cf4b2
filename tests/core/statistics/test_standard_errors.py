"""A standard error is how far the noise of all totals moves a measure, computed here total by total."""

import numpy as np
import pytest

from core.rounds import run_in_memory
from core.statistics.found import Totals
from tests.core.seeded import SeededNoise
from tests.core.statistics.test_task import (
    BUDGET,
    GRID,
    ONE_COLUMN,
    REPLACE,
    SEVERAL,
    WAYS,
    of_units,
    plan,
    rows,
)

SETTINGS = {
    "moments": {},
    "moments, the number of rows is public": {"neighbors": REPLACE},
    "moments, gaussian": {"method": "gaussian"},
    "a mean alone": {"measures": ("count", "mean"), "grid": ONE_COLUMN},
    "a pair": {"measures": ("count", "sum", "mean"), "grid": ONE_COLUMN},
    **{
        f"{method} {' '.join(measures)} of units": {
            "measures": measures,
            "method": method,
            "grid": ONE_COLUMN,
            "contributions": SEVERAL,
        }
        for method, measures in WAYS
    },
}
SHAPES = {
    "even": lambda steps, extents: steps,
    "low": lambda steps, extents: steps // 5,
    "high": lambda steps, extents: extents - steps // 5,
}


def released(setting, shape):
    """Return the totals of many records without noise."""
    several = "contributions" in setting
    grid, plan_ = setting.get("grid", GRID), plan(budget=BUDGET, **setting)
    block = of_units((9_000,)) if several else rows(40_000, grid=grid)
    block.points[:] = SHAPES[shape](block.points, np.asarray(grid.extents))
    found = run_in_memory(plan_.rounds, [block], None, SeededNoise(0, 0.0))
    return grid, found


def moved(of, totals, reading):
    """Return by how much the noise of all totals moves a figure: it is linear where noise is small."""
    squares = 0.0
    for i, deviation in enumerate(reading.deviations):
        step = max(1, round(deviation))
        ends = []
        for sign in (-1, 1):
            other = totals.copy()
            other[:, i] += sign * step
            ends.append(float(of(other)))
        squares += ((ends[1] - ends[0]) / (2 * step) * deviation) ** 2
    return np.sqrt(squares)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_standard_error_is_what_the_noise_of_all_totals_moves(name: str, shape: str) -> None:
    grid, found = released(SETTINGS[name], shape)
    assert isinstance(found, Totals)
    totals, reading = found.totals, found.reading
    for number, stated in zip((reading.rows, reading.units), reading.unrounded, strict=True):
        of_number = moved(lambda t, number=number: number(t)[0][0], totals, reading)
        assert stated == pytest.approx(of_number, rel=1e-6, abs=1e-9)
    for measure, axis in reading.names():
        if axis is not None:
            stated = reading.estimate(measure, axis, totals, grid)[1][0]
            expected = moved(
                lambda t, m=measure, a=axis: reading.estimate(m, a, t, grid)[0][0], totals, reading
            )
            assert stated == pytest.approx(expected, rel=0.01), (measure, axis)
