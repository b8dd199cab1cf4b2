"""Balls and centers are where they are, at their true size."""

import numpy as np
import pytest

from pipelines.answers.maps import Plane, balls, close_up, colors, heat, of_colors, profiles
from pipelines.answers.picture import Picture, Spec

EARTH = {"columns": ["lat", "lon"], "lower": [-90.0, -180.0], "upper": [90.0, 180.0]}


def rows_of(picture: Picture, mark: str) -> list[Spec]:
    layers = [layer for plot in picture.plots for layer in plot["layer"] if layer["mark"]["type"] == mark]
    return [row for layer in layers for row in layer["data"]["values"]]


def test_longitude_is_to_the_right_and_a_ball_has_its_true_size():
    plane = Plane.of(EARTH)
    assert (plane.x.title, plane.y.title) == ("lon", "lat")
    outline = rows_of(balls(plane, [((38.0, -84.0), 30.0)], "the ball"), "line")
    x, y = (np.array([row[key] for row in outline]) for key in "xy")
    assert np.allclose(np.hypot(x + 84, y - 38), 30)
    assert (x.min(), x.max()) == pytest.approx((-114, -54))


def test_a_small_ball_has_a_ring_and_several_have_numbers():
    plane = Plane.of(EARTH)
    one = balls(plane, [((38.0, -84.0), 30.0)], "the ball")
    assert len(rows_of(one, "point")) == 1 and not rows_of(one, "text")
    two = balls(plane, [((38.0, -84.0), 30.0), ((0.0, 0.0), 0.5)], "a ball")
    assert len(rows_of(two, "point")) == 3
    assert [row["name"] for row in rows_of(two, "text")] == ["1", "2"] * 2  # each on a halo


def test_close_up_shows_the_radius_and_what_is_outside_of_the_domain():
    plane = Plane.of(EARTH)
    (radius,) = rows_of(close_up(plane, (38.0, -84.0), 2.5, 0.01), "rule")
    assert radius["x2"] - radius["x"] == pytest.approx(2.5)
    assert not rows_of(close_up(plane, (38.0, -84.0), 2.5, 0.01), "rect")
    whole, inside = rows_of(close_up(plane, (38.0, -179.0), 2.0, 0.01), "rect")
    assert whole["x"] < inside["x"] == -180.0 and whole["x2"] == inside["x2"]
    point = close_up(plane, (38.0, -84.0), 0.0, 0.01)
    assert not rows_of(point, "rule") and len(rows_of(point, "point")) == 1


def test_a_heat_map_has_the_counts_where_they_are():
    counts = np.array([[5.0, 0.0, -3.0], [0.0, 0.0, 7.0]])  # two cells of latitude, three of longitude
    edges = [np.array([-90.0, 0.0, 90.0]), np.array([-180.0, -60.0, 60.0, 180.0])]
    found = {
        (row["x"], row["y"]): row["count"]
        for row in rows_of(heat("", Plane.of(EARTH), edges, counts, ""), "rect")
    }
    assert found == {(-180.0, -90.0): 5.0, (60.0, 0.0): 7.0}
    fine = [np.linspace(-90, 90, 301), np.linspace(-180, 180, 201)]
    drawn = heat("", Plane.of(EARTH), fine, np.ones((300, 200)), "rows in a cell")
    assert "rows in a cell, of up to 6 x 4" in str(drawn)
    merged = rows_of(drawn, "rect")
    assert len(merged) < 60**2 and sum(row["count"] for row in merged) == 300 * 200


def test_three_columns_may_be_colors():
    assert of_colors(["R", "g", "b"]) and of_colors(["red", "green", "blue"])
    assert not of_colors(["b", "g", "r"]) and not of_colors(["x", "y", "z"])
    domain = {"columns": ["r", "g", "b"], "lower": [0, 0, 0], "upper": [255, 255, 255]}
    bars = rows_of(colors(domain, [(255.0, 128.0, 0.0)], [40], 5.0, "rows", "the true count"), "bar")
    assert [(row["color"], row["x"], row["x2"], row["x3"]) for row in bars] == [("#ff8000", 40, 35.0, 45.0)]


def test_profiles_are_shares_of_the_bounds_and_name_the_columns():
    domain = {"columns": ["age", "income", "visits"], "lower": [0, 0, 10], "upper": [100, 1, 20]}
    picture = profiles(domain, [(50.0, 0.25, 20.0)], ["center 1"])
    assert [(row["column"], row["y"]) for row in rows_of(picture, "line")] == [
        ("age", 0.5),
        ("income", 0.25),
        ("visits", 1.0),
    ]
    many = profiles(domain, [(50.0, 0.25, 20.0)] * 9, ["a center"] * 9)
    assert len({layer["mark"].get("color") for layer in many.plots[0]["layer"]}) == 2  # one is in the legend
