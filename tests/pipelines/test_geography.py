"""Jobs on latitude and longitude, from the job file to what is shown and screened."""

import copy
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest

from pipelines.answers.text import number, on_grid
from pipelines.job.job import check_job
from pipelines.quantities import Degrees, Metres
from tests.pipelines.every_plan import changed_job

GEOD = pyproj.Geod(ellps="WGS84")
CENTER, WITHIN, HELD, OTHERS = (-17.5, 179.95), 20_000.0, 1500, 3000
WORLD: dict[str, Any] = {"geography": "wgs84"}
FIJI: dict[str, Any] = {"geography": "wgs84", "lower": [-22, 175], "upper": [-12, -175], "step": 5}


def rows(units: bool = False) -> pa.Table:
    """Rows about a place on the date line, of which half have longitudes above 180, and others anywhere."""
    rng = np.random.default_rng(5)
    far, turns = WITHIN * np.sqrt(rng.uniform(size=HELD)), rng.uniform(0, 360, HELD)
    lon, lat, _ = GEOD.fwd(np.full(HELD, CENTER[1]), np.full(HELD, CENTER[0]), turns, far)
    lon[::2] = np.where(lon[::2] < 0, lon[::2] + 360, lon[::2])
    lat = np.concatenate([lat, np.degrees(np.arcsin(rng.uniform(-1, 1, OTHERS)))])
    lon = np.concatenate([lon, rng.uniform(-180, 180, OTHERS)])
    lat[-30:], lon[-20:] = np.nan, np.inf
    lat[-50:-30] = 95.0
    return pa.table({"lat": lat, "lon": lon, **({"who": np.arange(len(lat)) // 2} if units else {})})


@pytest.fixture
def bench(bench):
    bench.rows.unlink()
    pq.write_table(rows(), bench.rows.with_name("places.parquet"), row_group_size=700)
    bench.job |= {"domain": dict(WORLD), "params": {"target": HELD}}
    bench.job["input"]["columns"] = ["lat", "lon"]
    return bench


def far_from(middle, places):
    ones = np.ones(len(places[0]))
    return GEOD.inv(middle[1] * ones, middle[0] * ones, places[1], places[0])[2]


@pytest.mark.parametrize(
    ("task", "domain"), [("one_cluster", WORLD), ("one_cluster", FIJI), ("k_cover", WORLD)]
)
def test_a_ball_across_the_date_line_is_found_and_screened(bench, task, domain):
    more = {"params": {"k": 1, "target": HELD}} if task == "k_cover" else {}
    result = bench.run({"task": task, "domain": dict(domain), **more})
    assert result.exit_code == 0, result.output
    release = bench.release()
    found = release["result"]["balls"][0] if task == "k_cover" else release["result"]
    places = [np.nan_to_num(column.to_numpy(), nan=0.0, posinf=0.0) for column in rows().columns[:2]]
    known = np.isfinite(rows()["lat"]) & np.isfinite(rows()["lon"])
    far = far_from(found["center"], [np.clip(places[0], -90, 90), places[1]])
    assert far_from(CENTER, [np.array([each]) for each in found["center"]])[0] < WITHIN
    assert found["radius"] < 1.5 * WITHIN
    # A promised error fails with probability 0.02; four times as large an error, 0.02^4 < 2e-7.
    error = 4 * release["accuracy"]["promises"]["count_error"]
    assert np.count_nonzero(far[known] <= 0.99 * found["radius"]) - error <= found["count"]
    assert found["count"] <= np.count_nonzero(far[known] <= 1.01 * found["radius"]) + error
    assert " km" in result.stdout and f"{on_grid(Degrees(found['center'][0], 10), 10)[:5]}" in result.stdout
    page = (bench.folder / "out" / "report.html").read_text()
    assert "distances on the Earth (wgs84)" in page and " km" in page
    inside = bench.folder / "screened"
    assert (
        bench.shoal("screen", str(bench.folder / "out"), str(bench.rows.parent), str(inside)).exit_code == 0
    )
    held = pq.read_table(inside / "inside")
    screened = far_from(found["center"], [held["lat"].to_numpy(), held["lon"].to_numpy()])
    assert screened.max() <= 1.01 * found["radius"] + 20
    assert held.num_rows >= np.count_nonzero(far[known] <= 0.99 * found["radius"])


def test_what_is_left_out_and_moved_is_counted_by_column(bench):
    bench.run({"input.checks": 0.5, "privacy.epsilon": 20.0})
    checks = bench.release()["checks"]
    assert checks["left_out"] == pytest.approx([30, 20], abs=5)
    assert checks["moved"] == pytest.approx([20, 0], abs=5)  # no longitude is out of bounds: they go around


@pytest.mark.parametrize("keep", ["one", "mean"])
def test_places_of_a_unit_become_one(bench, keep):
    pq.write_table(rows(units=True), bench.rows.with_name("places.parquet"), row_group_size=700)
    more = {"params.target": HELD // 2, "privacy.epsilon": 10.0}
    result = bench.run({"input.unit": "who", "input.keep": keep, **more})
    assert result.exit_code == 0, result.output
    found = bench.release()["result"]
    assert far_from(CENTER, [np.array([each]) for each in found["center"]])[0] < WITHIN
    assert found["count"] > 0.8 * HELD / 2


@pytest.mark.parametrize("task", ["k_means", "k_median"])
def test_centers_are_places(bench, task):
    result = bench.run({"task": task, "params": {"k": 1}, "domain": {**WORLD, "step": 100}})
    assert result.exit_code == 0, result.output
    release = bench.release()
    (center,) = release["result"]["centers"]
    assert abs(center[0]) <= 90 and abs(center[1]) <= 180
    assert "°" in result.stdout and "similar ranges" not in result.stdout


def test_a_plan_says_what_points_are_and_shows_metres(bench):
    for domain, says in (
        (WORLD, "points of a sphere, 10 m apart"),
        (FIJI, "points of an equal-area map of the dom"),
    ):
        plan = bench.shoal("plan", bench.write(bench.changed({"domain": dict(domain)})))
        assert plan.exit_code == 0 and says in " ".join(plan.stdout.split())
        assert " m if that is larger" in " ".join(plan.stdout.split())
        assert ("up to 1,500 km" in " ".join(plan.stdout.split())) == (domain is WORLD)
    described = json.loads(bench.shoal("plan", bench.write(bench.job), "--json").stdout)
    assert described["domain"]["lower"] == [-90, -180] and described["domain"]["step"] == 10


def test_whole_and_written_bounds_are_one_job():
    short = changed_job({"input.columns": ["lat", "lon"], "domain": dict(WORLD)})
    whole = {**WORLD, "lower": [-90, -180], "upper": [90, 180], "step": 10}
    assert (
        check_job(short).hash()
        == check_job(changed_job({"input.columns": ["lat", "lon"], "domain": whole})).hash()
    )


EARTH: dict[str, Any] = {"input.columns": ["lat", "lon"], "domain": {**WORLD, "step": 100}}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"input.columns": ["x", "y"]}, "input.columns is ['x', 'y'] and domain.geography is wgs84: give"),
    ({"input.columns": ["lon", "lat"]}, "the column of the latitude and then that of the longitude"),
    ({"input.columns": ["platform", "lonely"]}, "with names such as lat and lon"),
    ({"input.columns": ["lat"]}, "input.columns has 1 columns and domain.lower 2 values"),
    ({"input.columns": ["lat", "lon", "height"]}, "input.columns has 3 columns and domain.lower 2 values"),
    ({"domain.lower": [-90]}, "domain.lower has 1 values: with geography give the bound of latitude"),
    ({"domain.lower": [-91, 0]}, "domain.lower has -91.0: a latitude is a number from -90 to 90 degrees"),
    ({"domain.upper": [90, 181]}, "domain.upper has 181.0: a longitude is a number from -180 to 180 degrees"),
    ({"domain.lower": ["2013-01-01", 0]}, "a latitude is a number"),
    ({"domain.step": 0}, "domain.step is 0.0: with geography it must be a finite number"),
    ({"domain.step": -5}, "metres, at least 0.001"),
    ({"domain.step": "1 km"}, "metres, at least 0.001"),
    ({"domain.step": 5e-324}, "metres, at least 0.001"),
    ({"domain.step": 0.001}, "domain.step is 0.001, which makes more than 2^31 steps"),
    ({"domain.lower": [float("nan"), 0]}, "a latitude is a number"),
    ({"domain.lower": None}, "domain.lower is None"),
    ({"domain.step": 1e8}, "larger than the region"),
    ({"domain.geography": "mars"}, "domain.geography is 'mars': it must be 'wgs84'"),
    ({"domain.ball": {"center": [0, 0], "radius": 1}}, "domain.ball is given beside domain.geography"),
    ({"task": "histogram", "params": {"cells": [4, 4]}}, "wgs84, but histogram is not about distances"),
    ({"task": "statistics", "params": {"measures": ["count"]}}, "ask one of one_cluster, k_cover, k_means"),
    ({"input.unit": "who", "input.keep": "max"}, "a place has no max, so use one, last or mean"),
    (
        {"privacy.neighbors": "replace_one", "privacy.policy": {"distance": 100}},
        "privacy.policy with domain.geography is not supported",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), WRONG, ids=[str(changes) for changes, _ in WRONG])
def test_wrong_jobs_are_refused_in_one_sentence(bench, refused, changes, says):
    assert says in refused(bench.run(copy.deepcopy({**EARTH, **changes})))


def test_names_of_columns_have_the_words():
    for names in (
        ["lat", "lon"],
        ["pickup_latitude", "pickup_longitude"],
        ["homeLat", "homeLng"],
        ["LAT", "LONG"],
    ):
        check_job(changed_job({**copy.deepcopy(EARTH), "input.columns": names}))


def test_a_domain_without_geography_keeps_its_hash_and_its_keys():
    job = check_job(changed_job({}))
    assert "geography" not in job.model_dump(mode="json")["domain"]


def test_places_and_distances_show_themselves():
    assert [number(Degrees(each, 10)) for each in (-90.0, 45.4281612, 0.1)] == ["-90°", "45.42816°", "0.1°"]
    assert number(Degrees(45.4281612, 5000)) == "45.43°"
    assert [number(Metres(each, 10)) for each in (10, 364.32, 129_041.776, 2e7)] == [
        "10 m",
        "364.3 m",
        "129 km",
        "20,000 km",
    ]
    assert [on_grid(Metres(each, 10), 10) for each in (10, 364.32, 129_041.776)] == [
        "10 m",
        "364 m",
        "129.04 km",
    ]
    assert math.isclose(Metres(5.0, 10) + 1, 6)
