"""What is shown of a curve are the figures of its points, each in its place and with its probability."""

import io
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from pipelines.choose.curves import _picture, curve_page, describe_curve, show_curve
from pipelines.choose.sweep import Curve, Figure, Point, Swept
from pipelines.simulation.made_up import MadeUp

PLAIN, BAND = "rank_error", "8 in 10 errors on made-up rows; 0 is at the edge"


@pytest.fixture
def curve():
    one = {PLAIN: Figure(1000.0, 100.0, 10.0, 400.0), "b.cell_error": Figure(5.0)}
    last = {PLAIN: Figure(500.0, math.inf, 20.0, math.inf), "b.cell_error": Figure(4.0)}
    methods = ["tree", "flat", "tree"]  # of three questions
    points = [Point(1.0, ["tree"], one), Point(2.0, refused="It is 2."), Point(10.0, methods, last)]
    shown = SimpleNamespace(shown=lambda _, value: "none" if value is None else f"<{value:g}>")
    swept, failures = Swept("params.size", (1.0, 2.0, 10.0)), {PLAIN: 0.1, "b.cell_error": 0.04}
    return Curve(swept, points, [*failures], failures, dict.fromkeys(failures, shown), MadeUp(2000, "heavy"))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_terminal_shows_each_figure_in_its_column(curve, encoding):
    written = io.BytesIO()
    with io.TextIOWrapper(written, encoding=encoding, write_through=True) as stream:
        show_curve(curve, Console(file=stream, width=200))
        lines = [
            " ".join(line.replace("|", " ").split()) for line in written.getvalue().decode().splitlines()
        ]
    by = "typical: the median error of runs on 2,000 made-up rows (heavy), with real noise."
    assert f"rank_error, promised with probability 90%; {by}" in lines
    assert f"b.cell_error, promised with probability 96%; {by}" in lines
    assert "No plan at params.size 2. It is 2." in lines
    for begins in (
        "1 tree <1000> <100> ",
        "2 none none none",
        "10 tree, flat <500> not found ",
        "1 tree <5> none ",
    ):
        assert any(line.startswith(begins) for line in lines), begins
    assert any("<10> ... <1000>, logarithmic" in line for line in lines)


def test_of_values_without_a_plan_the_first_is_told(curve):
    written = io.StringIO()
    more = replace(curve, points=[*curve.points, Point(20.0, refused="It is 20.")])
    show_curve(more, Console(file=written, width=200))
    assert written.getvalue().splitlines()[-1] == "No plan at params.size 2. It is 2."


def test_values_have_the_probability_of_a_failure(curve):
    described = describe_curve(curve)
    assert described["failure"] == curve.failures
    assert described["points"][0]["figures"][PLAIN] == dict(
        promised=1000.0, typical=100.0, low=10.0, high=400.0
    )


def layers(picture):
    (plot,) = picture.plots
    said = {each["encoding"]["color"]["datum"]: each for each in plot["layer"] if "color" in each["encoding"]}
    return {says: each["data"]["values"] for says, each in said.items()}, plot["layer"][0]["encoding"]


def test_a_page_draws_each_figure_in_its_place(curve):
    drawn, axes = layers(_picture(curve, PLAIN))
    assert drawn == {
        BAND: [{"x": 1, "y": 10, "y2": 400}],
        "promised, with probability 90%": [{"x": 1, "y": 1000}, {"x": 10, "y": 500}],
        "median error on 2,000 made-up rows": [{"x": 1, "y": 100}],
    }
    assert [axes[axis]["scale"]["type"] for axis in "xy"] == ["log", "log"]
    assert axes["x"]["scale"]["domain"] == [1, 10]
    stated = Curve(Swept("a", (1.0, 2.0)), curve.points[:1], [PLAIN], curve.failures, curve.texts)
    drawn, axes = layers(_picture(stated, PLAIN))
    assert drawn["typical error, as the plan states it"] == [{"x": 1, "y": 100}]
    assert "type" not in axes["x"]["scale"]


def test_errors_of_0_are_at_the_edge(curve):
    """A logarithm has no 0: the smallest figure above it is where the axis begins."""
    points = [Point(1.0, ["tree"], {PLAIN: Figure(1000.0, 0.0, 0.0, 400.0)}), curve.points[2]]
    without = replace(curve, points=points)
    drawn, axes = layers(_picture(without, PLAIN))
    assert drawn[BAND] == [{"x": 1, "y": 20, "y2": 400}]
    assert drawn["median error on 2,000 made-up rows"] == [{"x": 1, "y": 20}]
    assert axes["y"]["scale"]["domain"][0] == pytest.approx(20 / 1.1)
    written = io.StringIO()
    show_curve(without, Console(file=written, width=200))
    assert "<20> ... <1000>, logarithmic" in written.getvalue()


def test_a_page_has_a_picture_and_a_table_of_every_promise(curve, monkeypatch):
    def keep(title, lead, source, figures):
        assert title == "What median promises by params.size" and "2,000 made-up rows (heavy)" in lead
        return [(name, picture.title, table.title) for name, picture, table in figures]

    monkeypatch.setattr("pipelines.report.report.render_curve", keep)
    monkeypatch.setattr("pipelines.report.page.as_page", lambda rendered: rendered)
    assert curve_page(curve, "median") == [
        (name, f"{name} by params.size", name) for name in (PLAIN, "b.cell_error")
    ]
