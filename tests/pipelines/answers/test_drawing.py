"""What the report draws: round ticks, the ball at its true size, no outside parts."""

import itertools
import re

import numpy as np
import pytest

from pipelines.answers.drawing import (
    Axis,
    draw_close_up,
    draw_intervals,
    draw_overview,
    draw_profiles,
    ticks,
)
from pipelines.answers.plots import draw_curve

X, Y = Axis("lon", -180.0, 180.0, -84.0), Axis("lat", -90.0, 90.0, 38.0)


def numbers(svg: str, tag: str, style: str) -> dict[str, float]:
    found = re.search(f'<{tag} class="{style}" ([^>]*)/>', svg)
    assert found is not None
    return {key: float(value) for key, value in re.findall(r'(\w+)="([-\d.]+)"', found[1])}


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-180, 180), (0.02094, 0.02106), (-1e9, 3e9), (5, 5.001)])
def test_ticks_are_few_round_and_inside(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 9
    slack = 1e-6 * (high - low)
    assert all(low - slack <= tick <= high + slack for tick in found)
    steps = {round((b - a) / (high - low), 6) for a, b in itertools.pairwise(found)}
    assert len(steps) == 1


@pytest.mark.parametrize("base", [0.0, 1e15, 3.0e18, -3.0e18])
@pytest.mark.parametrize("spread", [0.0, 1.0, 600.0])
def test_a_curve_is_drawn_though_float64_hardly_tells_its_ends_apart(base, spread):
    x = np.array([base, base + spread / 2, base + spread])
    svg = str(draw_curve(x, np.array([0.25, 0.5, 0.75]), "x", "share"))
    frame = numbers(svg, "rect", "frame")
    places = [float(at) for at in re.findall(r"H([-\d.]+)V", svg)]
    assert all(frame["x"] - 1 <= at <= frame["x"] + frame["width"] + 1 for at in places)


def test_the_overview_shows_the_ball_to_scale():
    svg = str(draw_overview(X, Y, 30.0))
    frame, ball = numbers(svg, "rect", "frame"), numbers(svg, "ellipse", "ball")
    assert ball["rx"] / frame["width"] == pytest.approx(30 / 360, rel=1e-2)
    assert ball["ry"] / frame["height"] == pytest.approx(30 / 180, rel=1e-2)
    assert (ball["cx"] - frame["x"]) / frame["width"] == pytest.approx(96 / 360, rel=1e-2)
    assert (ball["cy"] - frame["y"]) / frame["height"] == pytest.approx(52 / 180, rel=1e-2)
    assert "ring" not in svg
    assert "ring" in draw_overview(X, Y, 0.5)


def test_the_close_up_has_its_radius_and_a_scale_bar():
    svg = str(draw_close_up(X, Y, 2.5, 0.01))
    assert "radius 2.50" in svg
    assert 'class="rule"' in svg
    assert 'class="radius"' not in draw_close_up(X, Y, 0.0, 0.01)


def test_intervals_stay_in_the_domain():
    column = Axis("a", 0.0, 1.0, 0.98)
    svg = str(draw_intervals([column], 0.1, 0.01))
    track, span = numbers(svg, "rect", "track"), numbers(svg, "rect", "span")
    assert span["x"] + span["width"] == pytest.approx(track["x"] + track["width"], abs=0.1)
    assert (span["x"] - track["x"]) / track["width"] == pytest.approx(0.88, abs=1e-3)


def test_names_are_escaped():
    hostile = Axis("<script>", 0.0, 1.0, 0.5)
    for svg in (
        draw_overview(hostile, Y, 1.0),
        draw_close_up(hostile, Y, 1.0, 0.1),
        draw_intervals([hostile], 0.1, 0.1),
    ):
        assert "<script>" not in svg
        assert "http" not in svg


def test_profiles_name_the_columns():
    names = ["age", "yearly income before tax", "<visits>"]
    domain = {"columns": names, "lower": [0, 0, 0], "upper": [1, 1, 1]}
    svg = str(draw_profiles(domain, [(0.0, 0.5, 1.0)]))
    for shown in ("age", "yearly inco…", "&lt;visits&gt;"):
        assert f'text-anchor="middle">{shown}</text>' in svg
    assert "1.5" not in re.findall(r"middle\">([^<]*)<", svg)
    many = {"columns": [f"c{i}" for i in range(30)], "lower": [0] * 30, "upper": [1] * 30}
    assert 3 <= len(re.findall(r'middle">c\d+<', str(draw_profiles(many, [(0.5,) * 30])))) <= 6
