"""A picture shows the figures of its release, and intervals where the release or its promises have them."""

from typing import Any

import numpy as np
import pytest

from pipelines.answers.picture import Row, short
from pipelines.answers.statistics import _of_groups
from pipelines.tasks import TASKS
from tests.pipelines.report.pictured import figures_of, release_of


def rows_of(name: str, mark: str, figure: int = 0) -> list[dict[str, Any]]:
    """Return the data of all marks of a kind in a picture of a release."""
    picture = figures_of(*release_of(name))[figure].picture
    layers = [layer for plot in picture.plots for layer in plot["layer"] if layer["mark"]["type"] == mark]
    return [row for layer in layers for row in layer["data"]["values"]]


def test_quantiles_have_the_band_of_their_intervals():
    result = release_of("quantiles-0")[0]["result"]
    band = [(row["y"], row["x"], row["x2"]) for row in rows_of("quantiles-0", "area")]
    assert band == list(zip(result["probabilities"], result["lows"], result["highs"], strict=True))
    assert [row["x"] for row in rows_of("quantiles-0", "point")] == result["values"]


@pytest.mark.parametrize("name", ["median-0", "median-also-0"])
def test_medians_have_their_intervals(name):
    result = release_of(name)[0]["result"]
    found = result.get("columns", [result])
    assert [row["x"] for row in rows_of(name, "point")] == [each["value"] for each in found]
    spans = [(row["x"], row["x2"]) for row in rows_of(name, "rule")]
    assert spans == [(each["low"], each["high"]) for each in found]


def test_bars_of_a_histogram_have_their_counts_and_the_promised_error():
    release, rows = release_of("histogram-also-0")
    assert rows is not None
    error = release["accuracy"]["promises"]["cell_error"]
    bars = rows_of("histogram-also-0", "rect")
    assert [bar["y"] for bar in bars] == rows["count"].tolist()
    assert np.allclose([bar["x"] for bar in bars], rows["lower_0"])
    assert [(bar["low"], bar["high"]) for bar in bars] == [(y - error, y + error) for y in rows["count"]]
    merged = rows_of("histogram-also-1", "rect")
    assert (
        len(merged) <= 60
        and sum(bar["y"] for bar in merged) == release_of("histogram-also-1")[0]["result"]["total"]
    )
    assert not rows_of("histogram-also-1", "rule")


def test_the_band_of_a_distribution_is_as_wide_as_promised():
    release, rows = release_of("cdf-0")
    assert rows is not None
    off = release["accuracy"]["promises"]["kolmogorov_records"]
    widths = {round(row["y2"] - row["y"], 9) for row in rows_of("cdf-0", "area") if row["y"] > 0}
    assert widths == {round(2 * off, 9)}
    (asked,), span = release["result"]["ranges"], rows_of("cdf-0", "rule", figure=1)[0]
    assert span["x2"] == asked["count"] + release["accuracy"]["promises"]["range_error"]


def test_statistics_have_one_standard_error_and_groups_their_names():
    values = release_of("statistics-0")[0]["result"]["values"]
    spans = [(row["x"], row["x2"]) for row in rows_of("statistics-0", "rule")]
    assert spans == [(each["value"] - each["error"], each["value"] + each["error"]) for each in values]
    _, rows = release_of("statistics-also-0")
    assert rows is not None
    dots = {row["name"]: row["x"] for row in rows_of("statistics-also-0", "point")}
    assert dots == dict(zip(rows["c"], rows["count"], strict=True))


@pytest.mark.parametrize("measure", ["minimum", "maximum", "quantile_0.5", "sum"])
def test_an_error_of_a_rank_is_no_interval_of_values(measure):
    release = {
        "domain": {"columns": ["x"], "lower": [0.0], "upper": [5.0], "step": 1.0},
        "group_by": {"columns": ["city"], "truncate": {}},
    }
    rows = {"city": np.array(["a"]), measure: np.array([3.0]), f"{measure}_error": np.array([0.5])}
    (figure,) = _of_groups(release, rows, [measure], "rows")
    layers = [layer for plot in figure.picture.plots for layer in plot["layer"]]
    ends = [(row["x"], row["x2"]) for each in layers for row in each["data"]["values"] if "x2" in row]
    assert ends == ([(2.5, 3.5)] if measure == "sum" else [])


@pytest.mark.parametrize(
    ("method", "ranges", "said"),
    [
        ("average", "tight", "mean of the answers"),
        ("average", "loose", "mean of the answers clamped to their noisy quartiles"),
        ("median", "loose", "median of the answers"),
    ],
)
def test_the_errors_of_a_value_hold_what_is_said_of_them(method: str, ranges: str, said: str) -> None:
    """A mean of clamped answers may be far from the mean of all."""
    release = dict(release_of("sample_and_aggregate-0")[0])
    release |= {"method": method, "params": release["params"] | {"ranges": ranges}}
    release["result"] = release["result"] | {"errors": [0.5] * len(release["result"]["value"])}
    answer = TASKS["sample_and_aggregate"].answers.answer(release, None)
    assert f"where the {said} is, with" in str(answer.figures[0].picture)
    assert f"the exact {said} lies within" in answer.facts[0].note


def test_rectangles_have_their_bounds_in_their_columns():
    """And in their pictures and figures."""
    release, rows = release_of("ranges-0")
    answer = TASKS["ranges"].answers.answer(release, rows)
    (asked,), (table,) = release["result"]["ranges"], answer.tables
    shown = dict(zip(table.headers, table.rows[0], strict=True))
    low, high = asked["low"], asked["high"]
    assert low < high
    assert (shown["at least"], shown["at most"]) == (f"{low:,}", f"{high:,}")
    assert answer.facts[-1].note == f"at least {low:,} and at most {high:,} with probability 90%"
    (span,) = rows_of("ranges-0", "rule", figure=1)
    assert (span["x"], span["x2"]) == (low, high)


def test_a_dot_alone_has_no_interval():
    assert len(rows_of("interior_point-0", "point")) == 1 and not rows_of("interior_point-0", "rule")
    assert Row.within("", 1.0, None) == Row.within("", 1.0, float("inf")) == Row("", 1.0)
    assert Row.within("", 1.0, 3.0, least=0) == Row("", 1.0, 0, 4.0)


def test_long_names_stay_apart():
    names = ["a" * 40 + end for end in "xyz"]
    assert short(["a", "b"]) == ["a", "b"]
    assert len(set(short(names))) == 3 and max(map(len, short(names))) < 25
