"""Clusters and centers of databases with fewer values than are asked for: always a release."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pipelines.jobs import REPLACED

pytestmark = pytest.mark.slow

K = 3
LLOYD = {"task": "k_means", "params": {"k": K, "method": "lloyd"}}
PARTS = {**LLOYD, **REPLACED, "privacy.policy": {"partition": [0.125, 0.125]}}
COVERAGE = {"task": "k_cover", "params": {"k": K, "coverage": 0.9}}
ON_A_LINE = {
    "coreset": {"task": "k_means", "params": {"k": K, "method": "coreset"}},
    "k_median": {"task": "k_median", "params": {"k": K}},
    "lloyd": LLOYD,
    "lloyd by parts": {**PARTS, "privacy.policy": {"partition": [0.125]}},
    "target": {"task": "k_cover", "params": {"k": K, "target": 1500}},
    "coverage": COVERAGE,
}
DATABASES = {
    "empty": np.empty(0),
    "one value": np.full(20_000, 0.25),
    "two values": np.repeat([0.25, 1.0], 10_000),
}


def answer(bench, job, values, columns):
    """Run `job` on `values` in every column, and check what holds of any answer."""
    pq.write_table(pa.table({column: values for column in columns}), bench.rows)
    bounds = {"domain.lower": [0] * len(columns), "domain.upper": [1] * len(columns)}
    result = bench.run({**job, **bounds, "input.columns": columns})
    assert result.exit_code == 0, result.output
    release = bench.release()
    if job["task"] == "k_cover":
        balls = (release["result"] or {"balls": []})["balls"]
        assert release["outcome"] == ("released" if balls else "not_found")
        assert len(balls) <= K
        return np.array([ball["center"] for ball in balls])
    assert release["outcome"] == "released"
    centers = np.array(release["result"]["centers"])
    assert centers.shape == (K, len(columns))
    assert ((centers >= 0) & (centers <= 1)).all()
    assert all(count >= 0 for count in release["result"]["counts"])
    return centers


@pytest.mark.parametrize("job", ON_A_LINE.values(), ids=ON_A_LINE)
def test_two_values_of_one_column_are_found(bench, job):
    found = answer(bench, job, DATABASES["two values"], ["x"])
    for value in (0.25, 1.0):
        assert np.abs(found - value).min() < 0.1


@pytest.mark.parametrize("job", [LLOYD, PARTS, COVERAGE], ids=["lloyd", "lloyd by parts", "coverage"])
@pytest.mark.parametrize("name", ["empty", "one value"])
def test_fewer_values_than_asked_for_are_no_error(bench, job, name):
    found = answer(bench, job, DATABASES[name], ["x", "y"])
    if name == "one value":
        assert np.abs(found - 0.25).max(axis=1).min() < 0.1
    elif job is COVERAGE:
        assert len(found) == 0
