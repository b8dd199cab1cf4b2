"""A sweep is a plan at each value; its curve shows on a terminal, as JSON and on a page."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from pipelines.choose.curves import _line
from pipelines.choose.options import look
from pipelines.choose.solve import _values
from pipelines.choose.sweep import POINTS, Figure, parse_sweep, sweep
from pipelines.errors import JobError
from pipelines.figures import plan_raw
from pipelines.job.job import check_raw
from pipelines.job.text import set_key
from pipelines.simulation import simulate as simulation
from pipelines.simulation.made_up import MadeUp
from pipelines.simulation.simulate import Measured
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import changes
from tests.pipelines.test_nearest import QUESTION, QUESTIONS_JOB

EPSILON = "privacy.epsilon"


@pytest.mark.parametrize("task", TASKS)
def test_every_point_is_the_plan_at_its_value(bench, task):
    raw = changed_job({**changes(task), "privacy.epsilon": 2.0})
    (question,) = plan_raw(raw)
    promised = {name: value for name, value in question.figures().items() if value is not None}
    if not promised:
        with pytest.raises(JobError, match="nothing is promised at any of these values"):
            sweep(raw, parse_sweep(f"{EPSILON}=1.5..2", raw))
        return
    curve = sweep(raw, parse_sweep(f"{EPSILON}=1.5..2", raw))
    last = curve.points[-1]
    assert last.value == 2.0 and last.methods == [question.plan.method]
    shown = {name: last.figures[name].promised for name in curve.drawn}
    assert shown.items() <= question.figures().items()
    assert len(curve.points) == POINTS


def test_typical_errors_are_those_of_the_plan_or_of_runs():
    raw = changed_job({**changes("quantiles"), "privacy.epsilon": 1.0})
    (question,) = plan_raw(raw)
    stated = sweep(raw, parse_sweep(f"{EPSILON}=0.5..1", raw)).points[-1].figures
    assert list(stated) == ["rank_error"]
    assert stated["rank_error"].typical == question.figures()["typical_rank_error"]
    curve = sweep(raw, parse_sweep(f"{EPSILON}=0.01..1", raw), None, MadeUp(2000))
    measured = [point.figures["rank_error"] for point in curve.points]
    assert all(each.low <= each.typical <= each.high for each in measured)
    assert measured[0].typical > 5 * measured[-1].typical


@pytest.mark.parametrize(
    ("text", "first", "last", "many"),
    [
        (f"{EPSILON}=0.1..3", 0.1, 3.0, POINTS),
        (f"{EPSILON}=1..2", 1.0, 2.0, POINTS),
        ("params.target=1000..2000", 1000, 2000, POINTS),
        ("params.target=1..4", 1, 4, 4),
        ("privacy.delta=0..1e-6", 0.0, 1e-6, POINTS),
    ],
)
def test_a_range_is_cut(text, first, last, many):
    swept = parse_sweep(text, changed_job({}))
    assert (swept.values[0], swept.values[-1], len(swept.values)) == (first, last, many)
    assert list(swept.values) == sorted(swept.values)
    assert all(isinstance(value, int) for value in swept.values) == text.startswith("params")


def test_values_without_a_plan_are_told(bench):
    job = bench.write(bench.changed({**changes("histogram"), "params": {"cells": 4, "method": "sparse"}}))
    shown = bench.shoal("plan", job, "--sweep", "privacy.delta=0..1e-6")
    assert shown.exit_code == 0
    assert "No plan at privacy.delta 0. " in " ".join(shown.stdout.split())
    points = json.loads(bench.shoal("plan", job, "--sweep", "privacy.delta=0..1e-6", "--json").stdout)[
        "points"
    ]
    assert [point["refused"] is None for point in points] == [False] + [True] * (POINTS - 1)


def test_a_range_is_cut_into_equal_distances_or_ratios():
    near, wide = (parse_sweep(f"{EPSILON}={ends}", changed_job({})).values for ends in ("1..2", "0.12345..6"))
    assert np.diff(near) == pytest.approx([1 / (POINTS - 1)] * (POINTS - 1), abs=0.01)
    assert np.diff(np.log(wide)) == pytest.approx(
        [math.log(6 / 0.12345) / (POINTS - 1)] * (POINTS - 1), abs=0.02
    )
    assert wide[0] == 0.12345
    threefold, less = (parse_sweep(f"{EPSILON}={ends}", changed_job({})) for ends in ("1..3", "1..2.9"))
    assert threefold.wide and not less.wide


@pytest.mark.parametrize(
    ("task", "name", "each_axis"),
    [("histogram", "cell_error", False), ("sample_and_aggregate", "errors", True)],
)
def test_what_came_out_stands_beside_what_is_promised(monkeypatch, task, name, each_axis):
    """For each axis, figures are parts of what is promised."""
    measured = [Measured(name, None, each_axis, 0.25, 0.5, 0.75, 1.0)]
    monkeypatch.setattr(simulation, "simulate", lambda question, made_up: SimpleNamespace(figures=measured))
    raw = changed_job({**changes(task), EPSILON: 2.0})
    promised = plan_raw(raw)[0].figures()[name]
    curve = sweep(raw, parse_sweep(f"{EPSILON}=1..2", raw), name, MadeUp(10))
    parts = (promised * value if each_axis else value for value in (0.5, 0.25, 0.75))
    assert curve.points[-1].figures[name] == Figure(promised, *parts)


def test_a_promise_without_a_value_anywhere_is_told(monkeypatch):
    """And of why a value has no plan the first line; what is infinite is not drawn."""

    def planned(raw):
        if raw["privacy"]["epsilon"] < 2:
            raise JobError("It is low.", "It is lower than that.")
        figures = {"never": None, "endless": math.inf, "some": 3.0}
        plan = SimpleNamespace(method="only")
        return [SimpleNamespace(plan=plan, failure=0.1, figures=lambda: figures, named=str)]

    monkeypatch.setattr("pipelines.choose.sweep.plan_raw", planned)
    monkeypatch.setattr("pipelines.choose.sweep.find_question", lambda found, _: found[0])
    raw = changed_job(changes("median"))
    swept = parse_sweep(f"{EPSILON}=1.5..2", raw)
    curve = sweep(raw, swept)
    assert curve.drawn == ["some"] and curve.points[0].refused == "It is low."
    for promise in ("never", "endless"):
        with pytest.raises(JobError, match=f"--sweep {EPSILON}: {promise} is not promised at any of these"):
            sweep(raw, swept, promise)


def test_made_up_rows_of_the_command_are_those_of_its_curve():
    raw = changed_job(changes("median"))
    described, _, _ = look(raw, sweep=f"{EPSILON}=1..1.1", simulate="50:clumps")
    assert described["made_up"] == {"rows": 50, "shape": "clumps"}


def test_questions_have_curves(bench):
    key = "questions.middle.params.quantile"
    job = set_key(QUESTIONS_JOB, "questions.sure", {**QUESTION, "params": {"failure": 0.01}})
    curve = sweep(job, parse_sweep(f"{key}=0.25..0.5", job))
    assert curve.failures == {"middle.rank_error": 0.1, "sure.rank_error": 0.01}


def test_questions_whose_names_have_dots_have_curves():
    job = {**QUESTIONS_JOB, "questions": {"a": QUESTION, "a.b": QUESTION}}
    curve = sweep(job, parse_sweep("questions.a.b.params.failure=1e-9..0.9", job))
    promised = [{name: each.promised for name, each in point.figures.items()} for point in curve.points]
    assert promised[0]["a.b.rank_error"] > promised[0]["a.rank_error"] == promised[-1]["a.rank_error"]
    assert promised[-1]["a.b.rank_error"] < promised[-1]["a.rank_error"]
    assert _values("questions.a.b.params.target") == _values("params.target")


def test_the_page_is_drawn_as_reports_are(bench):
    job, page = bench.write(bench.changed(changes("histogram"))), bench.folder / "curve.html"
    given = ("--sweep", f"{EPSILON}=0.5..2", "--for", "cell_error", "--html", str(page))
    shown = bench.shoal("plan", job, *given)
    assert shown.exit_code == 0, shown.output
    assert "promised: " in shown.stdout and ", logarithmic" in shown.stdout
    text = page.read_text()
    assert "var(--sea)" in text and "var(--sun)" in text  # no two greens
    assert text.startswith("<!doctype html>") and text.count("<svg ") == 1
    assert "What histogram promises by privacy.epsilon" in text and "release alone" not in text
    values = re.findall(r"<td[^>]*>([^<]*)</td>", text)[::4]
    assert len(values) == POINTS and values[0] == "0.5" and values[-1] == "2"
    again = bench.shoal("plan", job, *given)
    assert again.exit_code == 0 and page.read_text() == text


def test_a_file_that_is_no_page_stays(bench, refused):
    job, page = bench.write(bench.changed(changes("histogram"))), bench.folder / "notes.txt"
    page.write_text("mine")
    given = ("--sweep", f"{EPSILON}=0.5..2", "--html", str(page))
    assert "exists, but it is not a page" in refused(bench.shoal("plan", job, *given))
    assert page.read_text() == "mine"


def test_a_line_shows_what_is_typical_and_what_is_promised():
    both = _line(Figure(100.0, 10.0), 1.0, 100.0)
    assert (both.index("●"), both.index("┤"), len(both)) == (20, 39, 40)
    assert set(both[21:39]) == {"─"}
    banded = _line(Figure(100.0, 10.0, 5.0, 20.0), 1.0, 100.0)
    assert "━" in banded[:20] and "━" in banded[21:30]
    alone = _line(Figure(100.0), 1.0, 100.0)
    assert alone == "·" * 39 + "┤"  # no line from what is typical, which is not known
    assert _line(Figure(100.0, 10.0, 1.0, 100.0), 1.0, 100.0)[-1] == "┤"
    banded = _line(Figure(None, 10.0, 1.0, 100.0), 1.0, 100.0)
    assert banded[-1] == "━" and len(banded) == 40  # up to the end of the band
    assert _line(Figure(None), 1.0, 100.0) == ""
    assert _line(Figure(3.0, 3.0), 3.0, 3.0) == "●"
    assert _line(Figure(float("inf"), float("inf")), 1.0, 2.0) == ""


WRONG = {
    "no range": (["--sweep", EPSILON], "give KEY=LOW..HIGH, such as privacy.epsilon=0.1..3"),
    "no numbers": (["--sweep", f"{EPSILON}=a..b"], "must be two numbers, the lower one first"),
    "descending": (["--sweep", f"{EPSILON}=3..1"], "must be two numbers, the lower one first"),
    "one value": (["--sweep", f"{EPSILON}=2..2"], "must be two numbers, the lower one first"),
    "no end": (["--sweep", f"{EPSILON}=2..inf"], "must be two numbers, the lower one first"),
    "another key": (["--sweep", "privacy.epsilom=1..2"], "(did you mean privacy.epsilon?)"),
    "text": (["--sweep", "params.method=1..2"], "its keys are those that have numbers"),
    "nowhere": (
        ["--sweep", f"{EPSILON}=200..300"],
        "privacy.epsilon is 200.0: it must be from",
    ),
    "another promise": (["--sweep", f"{EPSILON}=1..2", "--for", "error"], "is no promise of median"),
    "html alone": (["--html", "a.html"], "only the curve of a --sweep is written"),
    "html without a name": (["--sweep", f"{EPSILON}=1..2", "--html", ""], "--html is empty: give the name"),
    "html of a device": (["--sweep", f"{EPSILON}=1..2", "--html", "/dev/zero"], "is not a regular file"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments_are_one_sentence(bench, refused, wrong):
    arguments, says = WRONG[wrong]
    assert says in refused(bench.shoal("plan", bench.write(bench.changed(changes("median"))), *arguments))


@pytest.mark.parametrize("asked", [5, [], None, "x", {"a": 5}, {"a": None}, {"a": []}, {5: {}}])
@pytest.mark.parametrize("key", ["questions.a.share", "questions.a.params.target", "privacy.epsilon"])
def test_wrong_questions_are_one_sentence(asked, key):
    job = {"input": {"path": "a.parquet"}, "privacy": {"epsilon": 1.0}, "questions": asked, "output": "out"}
    with pytest.raises(JobError):
        look(job, sweep=f"{key}=1..3")
    with pytest.raises(JobError):
        check_raw(job)
