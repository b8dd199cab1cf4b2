"""Cells of dates of an older release, which ended between two days, are those of a newer one by name."""

import numpy as np

from pipelines.compare.estimates import estimates

DOMAIN = {"columns": ["day"], "lower": ["2026-01-05"], "upper": ["2026-11-01"], "step": "1 day", "ball": None}
OLD = {
    "lower_0": np.array(["2026-01-11T23:26:31"], "datetime64[s]"),
    "upper_0": np.array(["2026-01-18T22:53:01"], "datetime64[s]"),
}
NEW = {"lower_0": np.array(["2026-01-12"], "M8[D]"), "upper_0": np.array(["2026-01-19"], "M8[D]")}


def test_cells_that_ended_between_days_are_those_that_end_at_the_next_ones():
    promises = {"standard_error": 1.0}
    release = {"task": "histogram", "domain": DOMAIN, "result": {}, "accuracy": {"promises": promises}}
    names = [
        [each.name for each in estimates(release, rows | {"count": np.array([7])})] for rows in (OLD, NEW)
    ]
    assert names == [["cell from 2026-01-12 to 2026-01-19"]] * 2
