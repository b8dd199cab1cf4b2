"""The report of a job by group: each group has its own answer, and its draws the budget of one group."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.grouped_release import answers_by_group
from pipelines.report import report
from pipelines.report.report import render_groups
from tests.pipelines.jobs import LINE, changes

PLACES = {"a": 0.125, "b": 0.5, "c": 0.875}


@pytest.fixture
def release(bench):
    """Medians of three groups that are far apart; a unit is in two of them, so each has half."""
    rows = {"x": np.repeat([*PLACES.values()], 600), "c": np.repeat([*PLACES], 600)}
    rows["u"] = np.arange(1800) % 900
    pq.write_table(pa.table(rows), bench.rows)
    asked = {**changes("median"), **LINE, "input.unit": "u", "contributions": {"groups": 2, "rows": 1}}
    asked |= {"group_by": {"columns": ["c"], "keys": [*PLACES]}, "privacy.epsilon": 40.0, "input.checks": ...}
    ran = bench.run(asked)
    assert ran.exit_code == 0, ran.output
    return bench.release()


def test_every_group_has_its_own_answer_in_the_index_and_in_its_part(release, monkeypatch):
    """A report has parts of the first groups alone, and all in its index."""
    each, whole = release["each_group"]["epsilon"], release["privacy"]["epsilon"]
    assert each < 0.6 * whole
    for parts in (1, 2, 50):
        monkeypatch.setattr(report, "_MOST_PARTS", parts)
        page = render_groups(release, answers_by_group(release, None))
        rows = re.findall(r'<th scope="row">(?:<a[^>]*>)?(\w+)(?:</a>)?</th><td class="words">([^<]*)<', page)
        said = {name: re.search(r"about ([\d.]+)", answer)[1] for name, answer in rows}
        assert {name: float(value) for name, value in said.items()} == pytest.approx(PLACES, abs=0.01)
        articles = re.findall(r"<article[^>]*>\s*<h2>Group (\w+)</h2>(.*?)</article>", page, re.S)
        assert [name for name, _ in articles] == [*PLACES][:parts]
        for name, part in articles:
            assert re.findall(r"about ([\d.]+)", part)[0] == said[name]
        assert f"ε {each:g} of {each:g}" in re.sub(r"\s+", " ", re.sub("<[^>]*>", "", page))
