"""Columns of a table in data units: a distance counts the unit in which the step is written, not steps."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from core.marks import Mark
from pipelines.dates import grid_of
from pipelines.table import table_of


@pytest.mark.parametrize(("step", "amount"), [("6 hours", 6), ("90 seconds", 90), ("1 day", 1)])
@pytest.mark.parametrize("zone", ["", "Z"])
def test_distances_and_positions_have_the_units_of_the_domain(step: str, amount: int, zone: str) -> None:
    ends = {"lower": [f"2013-01-01T00:00:00{zone}"], "upper": [f"2013-12-31T00:00:00{zone}"]}
    grid = grid_of({**ends, "step": step})
    found = SimpleNamespace(column_marks=lambda _: {"off": (Mark.LENGTH, 0), "at": (Mark.POSITION, 0)})
    columns = {"off": np.array([0.5, 2.0]), "at": np.array([0, 4]), "count": np.array([3, 4])}
    table = table_of(found, columns, grid)
    assert table["off"].tolist() == [0.5 * amount, 2.0 * amount]
    assert table["count"].tolist() == [3, 4]
    length = {"6 hours": 6 * 3600, "90 seconds": 90, "1 day": 86_400}[step]
    first = np.datetime64("2013-01-01T00:00:00")
    at = np.asarray(table["at"].cast(pa.timestamp("s")) if zone else table["at"])
    assert at.tolist() == np.array([first, first + 4 * length]).astype(at.dtype).tolist()
