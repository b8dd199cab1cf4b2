"""A simulation is a run but for its rows: its noise is real, promises hold, and it leaves nothing behind."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.domain import Grid
from core.k_cover.found import Cover
from core.one_cluster.found import NotFound
from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise
from pipelines.errors import JobError
from pipelines.figures import questions
from pipelines.job.job import check_raw
from pipelines.simulation import simulate as simulation
from pipelines.simulation.made_up import MOST_ROWS, MadeUp, parse_made_up
from pipelines.simulation.measures import MEASURES
from pipelines.simulation.shapes import SHAPES, records, records_for
from pipelines.simulation.shown import simulate_job
from pipelines.simulation.simulate import RUNS, run_often, simulate
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.measured.cases import Case, cube
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import LINE, changes
from tests.pipelines.test_nearest import QUESTIONS_JOB

ROOT = Path(__file__).parents[3]

MOVED = {"domain.lower": [-3, -3], "domain.upper": [5, 5], "domain.step": 2.0**-7}
MOVED_LINE = {"domain.lower": [-3], "domain.upper": [5], "domain.step": 2.0**-7}
LABELED = {"domain.lower": [-3, 0], "domain.upper": [5, 1], "domain.step": 2.0**-7}
MOVED_OF = {
    "threshold": LABELED,
    "mst_cost": {"domain.lower": [-3, -3, 2], "domain.upper": [5, 5, 4], "domain.step": 2.0**-2},
    "triangles": {**MOVED, "domain.step": 2.0**-2},
    "sample_and_aggregate": {"params.outputs": {"lower": [-3], "upper": [5], "step": 2.0**-7}},
    "ranges": {**MOVED, "params": {"ranges": [[[0.25, 0.5], [0, 1]]]}},
}


def moved(task):
    """Return a job whose domain begins below 0 and whose step is not 1, so that units cannot be mixed up."""
    own = MOVED_OF.get(task, MOVED_LINE if changes(task).get("domain.lower") == [0] else MOVED)
    return check_raw(changed_job({**changes(task), **own}))


@pytest.mark.parametrize("task", TASKS)
def test_promises_hold_on_made_up_rows_in_any_units(task, monkeypatch):
    """Of 40 runs, more than 14 break a promise of 90% with probability below 1e-5; the noise is seeded."""
    seeds = iter(range(1000))
    monkeypatch.setattr(simulation, "SecureNoise", lambda: SeededNoise(next(seeds)))
    (question,) = questions(moved(task))
    broken = []
    for shape in ("uniform", "ties_50", "clumps"):
        found = simulate(question, MadeUp(1500, shape))
        assert found.found <= found.runs == RUNS
        for each in found.figures:
            if each.promised is not None and each.kept < 26 / RUNS:
                broken.append((shape, each))
            assert each.least <= each.median <= each.most
    assert not broken


@pytest.mark.parametrize("task", ["statistics", "histogram", "cdf", "median", "k_means"])
def test_errors_are_those_of_the_noise(task, monkeypatch):
    """With a third of the noise they are about a third."""

    def medians(factor):
        seeds = iter(range(1000))
        monkeypatch.setattr(simulation, "SecureNoise", lambda: SeededNoise(next(seeds), factor))
        (question,) = questions(check_raw(changed_job({**changes(task), "privacy.epsilon": 0.05})))
        return [
            each.median for each in simulate(question, MadeUp(3000)).figures if math.isfinite(each.median)
        ]

    whole, less = medians(1.0), medians(1 / 3)
    assert any(value > 0 for value in whole)
    assert all(b <= 0.6 * a + 1 for a, b in zip(whole, less, strict=True)), (whole, less)


def test_the_noise_is_real(monkeypatch):
    """Each run of each simulation draws anew, from the source of a real run."""
    made = []
    monkeypatch.setattr(simulation, "SecureNoise", lambda: made.append(SecureNoise()) or made[-1])
    (question,) = questions(check_raw(changed_job(changes("histogram"))))
    one, other = (simulate(question, MadeUp(1000)) for _ in range(2))
    assert len(made) == 2 * RUNS and len({id(noise) for noise in made}) == 2 * RUNS
    assert not np.array_equal(one.finding.counts, other.finding.counts)


@pytest.mark.parametrize("task", ["one_cluster", "k_means", "k_cover"])
def test_a_simulated_run_has_all_rounds_of_a_run(task):
    (question,) = questions(check_raw(changed_job({**changes(task), "privacy.epsilon": 20.0})))
    plan, points = question.plan, records("clumps", 800, question.job.grid, np.random.default_rng(2))
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    assert len(plan.rounds) > 1
    many = [
        state.result(question.job.grid) for state in run_often(plan, block, [SeededNoise(i) for i in (1, 2)])
    ]
    alone = [run_in_memory(plan.rounds, [block], plan.start, SeededNoise(i)) for i in (1, 2)]
    assert many == [state.result(question.job.grid) for state in alone]


LONG = {
    "threshold": {"domain.lower": [0, 0], "domain.upper": [2**22, 1], "input.columns": ["x", "label"]},
    "histogram": {"params": {"cells": 4096}},
    "cdf": {"domain.step": 2**10},
}
"""What a job of a long axis has beside it."""


@pytest.mark.parametrize(
    ("task", "method"),
    [("threshold", "exponential"), ("threshold", "interior_point"), ("quantiles", "recursive")]
    + [(task, None) for task in ("median", "minimum", "interior_point", "cdf", "histogram", "statistics")],
)
def test_a_simulated_run_on_a_long_axis_is_a_run(task, method):
    """There rounds look several times, or are examined in sections, which draw."""
    asked = {**changes(task), "domain.lower": [0], "domain.upper": [2**22], "domain.step": 1}
    asked |= {"input.columns": ["x"], "privacy.epsilon": 5.0, **LONG.get(task, {})}
    if method is not None:
        asked["params"] = {**asked.get("params", {}), "method": method}
    (question,) = questions(check_raw(changed_job(asked)))
    plan, grid = question.plan, question.job.grid
    points = records_for(task, "clumps", 3_000, grid, np.random.default_rng(2))
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    noises, others = ([SeededNoise(i) for i in (1, 2)] for _ in range(2))
    many = [state.result(grid) for state in run_often(plan, block, noises)]
    alone = [run_in_memory(plan.rounds, [block], plan.start, noise).result(grid) for noise in others]
    assert many == alone


HOOK = """
import json, sys
from pathlib import Path
seen = []
def hook(event, given):
    if event == "open":
        path, mode, flags = given
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (mode is None and flags & 0o3):
            seen.append(str(path))
    elif event in ("os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.truncate", "os.chmod"):
        seen.append(event)
    elif event.startswith("socket.connect"):
        seen.append(event)
sys.addaudithook(hook)
from typer.testing import CliRunner
from pipelines.cli import app
from pipelines.simulation.simulate import simulate
seen.clear()
for job in sys.argv[1:]:
    for arguments in ([], ["--sweep", "privacy.epsilon=1..2"])[: 1 + ("median" in job)]:
        arguments = [*arguments, "--simulate", "500:heavy"]
        ended = CliRunner().invoke(app, ["plan", job, *arguments])
        assert ended.exit_code == 0, (job, ended.output)
sys.__stdout__.write(json.dumps(seen))
"""


def test_nothing_is_written_charged_or_sent(bench):
    """No file is opened for writing, also where the job names a ledger and an output folder."""
    ledger = bench.folder / "ledger.json"
    assert bench.shoal("ledger", "create", str(ledger), "--epsilon", "3", "--delta", "1e-5").exit_code == 0
    before, jobs = ledger.read_bytes(), []
    for task in TASKS:
        if not TASKS[task].subsamples:  # whose function runs in a process with a folder of its own
            path = bench.folder / f"{task}.yaml"
            path.write_text(json.dumps(bench.changed({**changes(task), "privacy.ledger": str(ledger)})))
            jobs.append(str(path))
    kept = sorted(bench.folder.rglob("*"))
    ran = subprocess.run(
        [sys.executable, "-c", HOOK, *jobs],
        check=True,
        capture_output=True,
        text=True,
        cwd=bench.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert json.loads(ran.stdout) == []
    assert sorted(bench.folder.rglob("*")) == kept
    assert ledger.read_bytes() == before


def test_a_function_leaves_nothing_either(bench):
    job = bench.write(bench.changed(changes("sample_and_aggregate")))
    before = sorted(bench.folder.rglob("*"))
    shown = bench.shoal("plan", job, "--simulate", "2000:clumps")
    assert shown.exit_code == 0, shown.output
    assert sorted(bench.folder.rglob("*")) == before


def test_the_command_shows_the_promise_beside_what_came_out(bench):
    job = bench.write(bench.changed(changes("quantiles")))
    text = " ".join(bench.shoal("plan", job, "--simulate", "1000:ties_50").stdout.split())
    assert "These 1,000 rows are made up (ties_50)." in text and "Nothing was read, spent or written." in text
    values = json.loads(bench.shoal("plan", job, "--simulate", "1000:ties_50", "--json").stdout)
    (one,) = values["simulated"]
    promised = json.loads(bench.shoal("plan", job, "--json").stdout)["accuracy"]["promises"]["rank_error"]
    assert (one["figures"][0]["promise"], one["figures"][0]["promised"]) == ("rank_error", promised)
    assert re.search(rf"rank_error {promised} \d", text) and "quantile 0.5" in text
    assert len(one["result"]["values"]) == 3


def test_every_question_and_one_group_are_simulated():
    assert [
        each["question"] for each in simulate_job(check_raw(QUESTIONS_JOB), MadeUp(100))["simulated"]
    ] == ["middle"]
    grouped = {**changes("median"), "group_by": {"columns": ["c"], "keys": ["a", "b"]}}
    (one,) = simulate_job(check_raw(changed_job(grouped)), MadeUp(100))["simulated"]
    assert one["result"]["value"] is not None


def test_units_are_simulated_as_records():
    job = {**changes("statistics"), **LINE, "input.unit": "u", "contributions": {"rows": 3}}
    (one,) = simulate_job(check_raw(changed_job(job)), MadeUp(900))["simulated"]
    count = {value["measure"]: value["value"] for value in one["result"]["values"]}
    assert abs(count["units"] - 300) < 100 and abs(count["count"] - 900) < 300


EVERY_MEASURE = ["count", "units", "sum", "mean", "variance", "minimum", {"quantiles": [0.1, 0.9]}]
KEPT = {
    "rows": {"params.measures": EVERY_MEASURE},
    "several rows of a unit": {
        "input.unit": "u",
        "params.measures": EVERY_MEASURE,
        "contributions": {"rows": 3},
    },
    "sums of units": {
        "input.unit": "u",
        "params.measures": ["count", "units", "sum"],
        "contributions": {"rows": 4, "clamp": "unit"},
    },
}
KEYS = {
    "no groups": None,
    "public": {"columns": ["c"], "keys": {"c": ["a", "b", "d"]}},
    "private": {"columns": ["c", "day"], "keys": "private", "truncate": {"day": "month"}},
    "parts": {"columns": ["hour"], "keys": "private", "truncate": {"hour": "hour"}},
}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.usefixtures("seeded")
def test_statistics_of_units_and_groups_hold_on_made_up_rows(kept, keys):
    """Promises fail in a tenth of the runs: in more than 12 of 40 with probability below 1e-4; seeded."""
    changed = {**changes("statistics"), **LINE, **KEPT[kept], "privacy.delta": 1e-6}
    changed |= {"group_by": KEYS[keys]} if KEYS[keys] else {}
    changed |= {"params.parts": 3} if keys == "parts" else {}
    (one,) = simulate_job(check_raw(changed_job(changed)), MadeUp(900, "heavy"))["simulated"]
    assert one["found"] == one["runs"] == 40
    assert all(figure["kept"] >= 28 / 40 for figure in one["figures"]), one["figures"]
    assert {"count_error", "units_error", "sum_error"} <= {figure["promise"] for figure in one["figures"]} | (
        {"units_error"} if kept == "rows" else set()
    )
    count = next(value for value in one["result"]["values"] if value["measure"] == "count")
    assert abs(count["value"] - 900) < 8 * count["error"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows", [1, 200])
def test_a_function_that_answers_no_block_is_simulated(rows):
    """A line through one row is none. Noise may let an answer through all the same."""
    changed = {
        **changes("sample_and_aggregate"),
        "input.columns": ["i", "u"],
        "privacy.epsilon": 20.0,
        "params": {
            "function": "shoal.analyses.regression:linear",
            "blocks": 150,
            "outputs": {"lower": [-5], "upper": [5], "step": 0.001},
        },
    }
    (one,) = simulate_job(check_raw(changed_job(changed)), MadeUp(rows))["simulated"]
    assert one["runs"] == 40 and one["figures"] == []


@pytest.mark.usefixtures("seeded")
def test_a_group_that_is_not_found_breaks_no_promise():
    """It is found where its noise is large, so of those runs few keep the promise about a count."""
    changed = {**changes("statistics"), **LINE, "params.measures": ["count"], "privacy.delta": 1e-6}
    changed |= {"group_by": {"columns": ["c"], "keys": "private"}, "privacy.epsilon": 0.3, "input.checks": 0}
    (question,) = questions(check_raw(changed_job(changed)))
    found = simulate(question, MadeUp(40), runs=300)
    (count,) = (figure for figure in found.figures if figure.promise == "count_error")
    assert 0 < found.found < 60 and count.kept > 0.85


def test_what_is_made_up_is_named():
    changed = {**changes("statistics"), **LINE, **KEPT["several rows of a unit"], "group_by": KEYS["public"]}
    (one,) = simulate_job(check_raw(changed_job(changed)), MadeUp(100))["simulated"]
    assert one["many"] == "rows of 34 units of one group"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("task", ["minimum", "threshold", "histogram"])
def test_records_are_points_of_the_domain(task, shape):
    grid = Grid((-3.0, 0.0), (5.0, 1.0), 2.0**-7)
    points = records_for(task, shape, 500, grid, np.random.default_rng(1))
    assert points.shape == (500, 2) and points.dtype == np.int64
    assert points.min() >= 0 and (points.max(axis=0) <= grid.extents).all()
    if task == "minimum":
        assert points.min() >= min(grid.extents) // 4
    if task == "threshold":
        assert set(np.unique(points[:, 1])) <= {0, grid.extents[1]}


def test_shapes_are_what_they_are_called():
    grid, rng = Grid((0.0,), (9999.0,), 1.0), np.random.default_rng(1)
    found = {shape: records(shape, 4000, grid, rng)[:, 0] for shape in SHAPES}
    tied = {shape: np.unique(points, return_counts=True)[1].max() / 4000 for shape, points in found.items()}
    assert tied["uniform"] < 0.01 and tied["ties_100"] == 1
    assert abs(tied["ties_50"] - 0.5) < 0.05 and abs(tied["ties_92"] - 0.92) < 0.02
    assert np.median(found["heavy"]) < 10 and found["heavy"].max() == 9999
    assert ((found["clumps"] < 500) | (found["clumps"] > 8500)).all() and len(np.unique(found["clumps"])) > 10


REFUSED = {
    "no number": ("some", f"give a number of rows from 1 to {MOST_ROWS:,}"),
    "none": ("0", "give a number of rows from 1"),
    "too many": ("99999999999", "give a number of rows from 1"),
    "another shape": ("100:hevy", "(did you mean heavy?): the shapes are uniform, "),
    "no shape": ("100:", "the shapes are uniform, "),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_wrong_arguments_are_one_sentence(bench, refused, wrong):
    given, says = REFUSED[wrong]
    assert says in refused(bench.shoal("plan", bench.write(bench.changed({})), "--simulate", given))


def test_what_made_up_rows_do_not_have_is_one_sentence(bench, refused):
    known = {"secrets": "full", "constraints": [{"lower": [0, 0], "upper": [0.5, 1], "count": 7}]}
    counts = {**changes("histogram"), "privacy.neighbors": "replace_one", "privacy.policy": known}
    job = bench.write(bench.changed(counts))
    assert "are counts of the real rows" in refused(bench.shoal("plan", job, "--simulate", "100"))
    missing = {**changes("sample_and_aggregate"), "params.function": "no.such:function"}
    with pytest.raises(JobError, match="cannot be imported"):
        simulate_job(check_raw(changed_job(missing)), MadeUp(100))


def test_every_task_has_a_measure():
    assert set(MEASURES) == set(TASKS)


def test_a_text_is_parsed():
    assert parse_made_up("100") == (100, "uniform")
    assert parse_made_up("2000:clumps") == (2000, "clumps")


@pytest.mark.parametrize(("promised", "enough"), [(100, True), (100, False), (None, True)])
@pytest.mark.parametrize("task", ["one_cluster", "k_cover"])
def test_no_ball_at_all_breaks_a_promise_about_the_records_that_it_holds(task, promised, enough):
    """Where there is a promise, and there are as many records as it is about."""
    n, plane = 40 if enough else 39, cube(100, 2)
    case = Case(task, plane, {"target": 40, "k": 2}, 1.0, "add_or_remove_one", "uniform", n)
    measure = MEASURES[task](case, records("uniform", n, plane, np.random.default_rng(1)))
    nothing = NotFound() if task == "one_cluster" else Cover(search=NotFound())
    missing = measure.figures(nothing, {"missing": promised}).get("missing", 0.0)
    assert missing == (math.inf if promised and enough else 0.0)
