"""Two releases of the same rows hardly ever differ by more than noise explains; those of other rows do."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from core.mechanisms.tails import variance
from core.rounds import Block
from core.secure_noise import SecureNoise
from pipelines.compare.compare import Side, _change, _changes, _planned, compare, read_side
from pipelines.compare.estimate import Estimate
from pipelines.compare.estimates import _OF_TASK, estimates
from pipelines.figures import questions
from pipelines.job.job import check_raw
from pipelines.release import draft_release, read_rows, write_release
from pipelines.simulation.simulate import run_often
from pipelines.storage.locate import open_folder
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import LINE, changes

JUDGED = [task for task in TASKS if task not in ("sample_and_aggregate", "triangles")]
KNOWN = ["histogram", "cdf", "ranges", "quantiles", "median", "statistics", "mst_cost"]
"""Tasks whose answers come with errors."""

CITIES = {"groups": 1, "rows": 3}


def released(tmp_path, task, points, changed=None, noise=None):
    """Return the folder of a release of some records."""
    (question,) = questions(check_raw(changed_job({**changes(task), **(changed or {})})))
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    (finding,) = run_often(question.plan, block, [noise or SecureNoise()])
    folder = tmp_path / f"release-{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    draft = draft_release(question.job, question.plan)
    write_release(open_folder(str(folder)), draft, finding, question.job.grid)
    return str(folder)


def records(task, seed, n=3000, share=1.0):
    """Return records in the lowest share of each axis of a task's small job."""
    (question,) = questions(check_raw(changed_job(changes(task))))
    extents = np.asarray(question.job.grid.extents)
    spread = np.random.default_rng(seed).uniform(0, share, (n, len(extents)))
    return (spread * (extents + 1)).astype(np.int64)


@pytest.mark.parametrize("task", JUDGED)
def test_noise_explains_the_changes_between_releases_of_the_same_rows(tmp_path, task):
    """At most a fifth of the pairs fails: 8 of 12 do with probability below 1e-3; seeded."""
    points = records(task, 1)
    sides = [read_side(released(tmp_path, task, points, noise=SeededNoise(seed))) for seed in range(24)]
    found = [compare(one, other) for one, other in zip(sides[::2], sides[1::2], strict=True)]
    assert all(each["job"] == each["plan"] == [] for each in found)
    assert all(each["answers"] for each in found)
    assert sum(each["larger"] > 0 for each in found) < 8
    known = any(change["larger"] is not None for each in found for change in each["answers"])
    assert known == (task in KNOWN)


@pytest.mark.parametrize("task", KNOWN)
def test_noise_does_not_explain_other_rows(tmp_path, task):
    """Eight times as many rows in a part of the domain change every kind of figure."""
    one = released(tmp_path, task, records(task, 1))
    other = released(tmp_path, task, records(task, 2, 24_000, 0.25))
    assert compare(read_side(one), read_side(other))["larger"] >= 1


DRAWN = {
    "histogram": ({"params": {"cells": [24]}}, True),
    "median": ({}, False),
    "statistics": ({"params": {"measures": ["count", "mean"]}, "contributions": CITIES}, True),
}
"""What is asked of people whose rows each run draws anew, and whether anything is known of its changes."""


@pytest.mark.parametrize("task", DRAWN)
@pytest.mark.usefixtures("seeded")
def test_rows_that_each_run_draws_anew_explain_changes_of_counts(tmp_path, task):
    """Six runs on the same 6,000 rows of 600 people: by noise alone, nearly every pair has a cell too many.

    Each of the three pairs has a change that is too large with probability below 5%: two of them have one
    with probability below 1%; seeded.
    """
    rng = np.random.default_rng(7)
    rows = pa.table(
        {
            "x": rng.integers(0, 24, 6_000),
            "who": rng.integers(0, 600, 6_000),
            "c": rng.choice(["a", "b"], 6_000),
        }
    )
    more, known = DRAWN[task]
    job = (
        {
            "task": task,
            "input": {"columns": ["x"], "unit": "who"},
            "domain": {"lower": [0], "upper": [23], "step": 1},
            "privacy": {"epsilon": 50.0, "delta": 0.0},
        }
        | more
        | ({"group_by": {"columns": ["c"], "keys": ["a", "b"]}} if task == "statistics" else {})
    )
    sides = []
    for number in range(6):
        shoal.run(job | {"output": str(tmp_path / str(number))}, rows)
        sides.append(read_side(str(tmp_path / str(number))))
    found = [compare(one, other) for one, other in zip(sides[::2], sides[1::2], strict=True)]
    assert all(each["drawn_anew"] for each in found)
    assert sum(each["larger"] > 0 for each in found) < 2
    assert any(change["larger"] is not None for each in found for change in each["answers"]) == known
    if task == "histogram":  # by noise alone they would be
        error = json.loads((tmp_path / "0" / "release.json").read_text())["accuracy"]["promises"][
            "standard_error"
        ]
        moved = [abs(c["after"] - c["before"]) for each in found for c in each["answers"]]
        assert max(moved) > 10 * error


def test_standard_errors_have_the_right_size(tmp_path):
    """The limit for one figure is 2.1 standard errors of the difference, and for 100 figures 5.4."""
    for figures, times in ((1, 2.118), (100, 5.375), (10**6, 11.887)):
        change = _change("x", Estimate("x", 0.0, 3.0), Estimate("x", 0.0, 4.0), figures)
        assert math.isclose(change.limit, 5 * times, rel_tol=1e-3)
    unknown = [Estimate(f"y{number}", 0.0) for number in range(99)]
    changes, _ = _changes(*[{"": [Estimate("x", 0.0, error), *unknown]} for error in (3.0, 4.0)])
    assert math.isclose(changes[0].limit, 5 * 2.118, rel_tol=1e-3), "figures that are not compared count"
    draws = np.random.default_rng(1).laplace(size=(200_000, 2)) @ [1, -1]
    limit = _change("x", *[Estimate("x", 0.0, math.sqrt(2))] * 2, 1).limit
    assert 0.005 < np.mean(np.abs(draws) > limit) < 0.05


@pytest.mark.parametrize("figures", [1, 4, 20, 100])
def test_noise_that_is_mostly_zero_explains_a_step(figures):
    """Whole noise has heavier tails than a Laplace variable of its deviation, where that is below 1."""
    rng, trials = np.random.default_rng(figures), 400_000 // figures
    for epsilon in (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0):
        drawn = rng.geometric(-math.expm1(-epsilon), (4, trials, figures))
        error = math.sqrt(variance(1 / epsilon))
        limit = _change("x", *[Estimate("x", 0, error, counts=True, one=1.0)] * 2, figures).limit
        changed = np.abs(drawn[0] - drawn[1] + drawn[2] - drawn[3])
        assert np.mean((changed > limit).any(axis=1)) < 0.052, epsilon
    assert (limit < 1) == (figures < 100), "one step is beyond noise that is hardly ever one"


@pytest.mark.parametrize(("epsilon", "ones"), [(2.5, 1500), (3.0, 0), (3.5, 300), (4.0, 1500), (5.0, 1500)])
def test_noise_that_is_mostly_zero_explains_changes_of_means(epsilon, ones):
    """A mean of zeros and ones from two noisy sums; `one` is as `_statistics` has it."""
    drawn = np.random.default_rng(ones).geometric(-math.expm1(-epsilon), (4, 2, 3000))
    above, below = np.moveaxis(drawn[:2] - drawn[2:], 1, 0) + np.array([ones, 3000 - ones])[:, None, None]
    means = np.clip(above / (above + below), 0, 1)
    noise = math.sqrt(variance(1 / epsilon))
    errors = noise * np.hypot(means, 1 - means) / (above + below)
    runs = [
        [Estimate("x", *each, one=each[1] / noise) for each in zip(*both, strict=True)]
        for both in zip(means.tolist(), errors.tolist(), strict=True)
    ]
    larger = [_change("x", *pair, 1).larger for pair in zip(*runs, strict=True)]
    assert np.mean(larger) < 0.065  # 4 deviations


def test_noise_explains_changes_of_many_cells_at_a_large_epsilon(tmp_path):
    """Of a hundred cells at epsilon 5, some cell changes by a row or two in 93% of the pairs; seeded."""
    changed = {"domain.upper": [99, 99], "params": {"cells": [100, 1]}, "privacy.epsilon": 5.0}
    points = records("histogram", 1)
    sides = [
        read_side(released(tmp_path, "histogram", points, changed, SeededNoise(seed))) for seed in range(16)
    ]
    found = [compare(one, other) for one, other in zip(sides[::2], sides[1::2], strict=True)]
    assert sum(each["larger"] > 0 for each in found) < 4


@pytest.mark.parametrize(
    ("a", "b", "larger"),
    [
        (Estimate("x", 1.0, 0.1), Estimate("x", 2.0, 0.1), True),
        (Estimate("x", 1.0, 0.1), Estimate("x", 1.1, 0.1), False),
        (Estimate("x", 10, bound=3), Estimate("x", 16, bound=3), False),
        (Estimate("x", 10, bound=3), Estimate("x", 17, bound=3), True),
        (Estimate("x", 5, interval=(4, 6)), Estimate("x", 8, interval=(6, 9)), False),
        (Estimate("x", 5, interval=(4, 6)), Estimate("x", 8, interval=(7, 9)), True),
        (
            Estimate("x", "2020-01-05", interval=("2020-01-01", "2020-01-09")),
            Estimate("x", "2020-02-05", interval=("2020-02-01", "2020-02-09")),
            True,
        ),
        (Estimate("x", "2020-01-05"), Estimate("x", "2020-02-05"), None),
        (Estimate("x", 1.0, 0.1), Estimate("x", 2.0), None),
    ],
)
def test_a_change_is_judged_by_what_is_known_of_its_errors(a, b, larger):
    assert _change("x", a, b, 1).larger is larger


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_figures(tmp_path, task):
    points = records(task, 3, 400 if task != "sample_and_aggregate" else 100)
    folder = open_folder(released(tmp_path, task, points, {"privacy.epsilon": 8.0}))
    release = json.loads(folder.read("release.json"))
    found = estimates(release, read_rows(folder, release))
    assert found or release["result"] is None
    assert len({each.name for each in found}) == len(found)


def test_every_task_says_which_figures_are_compared():
    assert set(_OF_TASK) == set(TASKS)


def test_a_step_of_noise_moves_a_moment_by_its_error_over_the_deviation(tmp_path):
    """The smallest noise of the round is that of the checks or of a total: none is left out."""
    changed = {"params.measures": ["count", "mean"], "privacy.epsilon": 4.0}
    folder = released(tmp_path, "statistics", records("statistics", 1), changed)
    draws = json.loads((Path(folder) / "release.json").read_text())["mechanisms"]
    least = min(math.sqrt(variance(draw["scale"])) for draw in draws)
    known = read_side(folder).figures[""]
    assert {each.one for each in known if each.counts} == {1.0}
    for each in known:
        assert each.counts or each.one == pytest.approx(each.error / least)


def test_statistics_by_group_are_compared_group_by_group():
    release = {
        "task": "statistics",
        "result": {"values": []},
        "group_by": {"columns": ["c"], "truncate": {}},
        "domain": {"columns": ["x"]},
    }
    rows = {
        "c": np.array(["a", "b"]),
        "count": np.array([3, 4]),
        "count_error": np.array([1.0, 1.0]),
        "quantile_0.5": np.array([0.5, 0.6]),
        "quantile_0.5_error": np.array([9.0, 9.0]),
        "quantile_0.5_low": np.array([0.4, 0.5]),
        "quantile_0.5_high": np.array([0.6, 0.7]),
    }
    found = {each.label: each for each in estimates(release, rows)}
    count = Estimate("count", 4, 1.0, counts=True, moment=("count", 0), group="b", one=1.0)
    assert found["count of b"] == count
    assert found["quantile_0.5 of a"] == Estimate("quantile_0.5", 0.5, interval=(0.4, 0.6), group="a")
    assert all(type(end) is float for end in found["quantile_0.5 of b"].interval), "is no JSON"
    days = {
        **rows,
        **{f"quantile_0.5{end}": np.array(["2013-01-02"] * 2, "M8[D]") for end in ("", "_low", "_high")},
    }
    found = {each.label: each for each in estimates(release, days)}
    assert found["quantile_0.5 of a"].value == "2013-01-02" == found["quantile_0.5 of a"].interval[1]


def test_what_two_jobs_ask_for_and_what_is_planned(bench):
    one = bench.write(bench.changed({**changes("median"), "privacy.epsilon": 0.5}))
    other = bench.folder / "other.json"
    other.write_text(json.dumps(bench.changed({**changes("median"), **LINE, "params": {"quantile": 0.25}})))
    found = json.loads(bench.shoal("diff", one, str(other), "--json").stdout)
    assert {each["name"]: (each["a"], each["b"]) for each in found["job"]} == {
        "params.quantile": (0.5, 0.25),
        "privacy.epsilon": (0.5, 1.0),
    }
    assert {"promised rank_error", "spent"} <= {each["name"] for each in found["plan"]}
    assert "answers" not in found
    shown = bench.shoal("diff", one, str(other))
    assert shown.exit_code == 0 and "params.quantile" in shown.stdout
    same = bench.shoal("diff", one, one).stdout
    assert "The jobs ask for the same." in same and "The plans are the same." in same


def test_a_run_and_its_job_have_the_same_plan(bench):
    """So a release can be compared with the job of the next one."""
    job = bench.write(bench.changed({**changes("histogram"), "run_id": "one"}))
    assert bench.shoal("run", job).exit_code == 0
    shown = bench.shoal("diff", str(bench.folder / "out"), job)
    assert "The jobs ask for the same." in shown.stdout and "The plans are the same." in shown.stdout
    assert (
        bench.shoal(
            "run", job, "--set", "output=" + str(bench.folder / "two"), "--set", "run_id=two"
        ).exit_code
        == 0
    )
    text = bench.shoal("diff", str(bench.folder / "out" / "release.json"), str(bench.folder / "two")).stdout
    assert (
        "cell from 0.0, 0.0 to 0." in text
        and "of 64 figures changed by more than noise explains" in " ".join(text.split())
    )


def test_jobs_that_ask_for_different_things_give_no_verdict_about_the_same_rows(bench):
    """Another quantile, other rows, or cells of another size differ on the same rows, too."""

    def verdict(task, *changed):
        for name, more in zip("ab", changed, strict=True):
            own = {**changes(task), **more, "output": str(bench.folder / name), "run_id": name}
            assert bench.shoal("run", bench.write(bench.changed(own))).exit_code == 0
        text = bench.shoal("diff", *(str(bench.folder / name) for name in "ab")).stdout
        for name in "ab":
            shutil.rmtree(bench.folder / name)
        return " ".join(text.split())

    same, other = "On the same rows none does", "But the jobs ask for different things"
    assert same in verdict("median", {}, {"privacy.epsilon": 2.0})
    for more in ({"params.quantile": 0.9}, {"input.where": "x > 0.5"}):
        text = verdict("median", {}, more)
        assert other in text and same not in text
    assert "cell from" not in verdict("histogram", {"params.cells": [4, 4]}, {"params.cells": [8, 8]})


def test_questions_that_only_one_has():
    one, other = ({name: {} for name in names} for names in ("xy", "x"))
    found = compare(Side("a", one, one), Side("b", other, other))
    assert found["job"] == [{"name": "y", "a": "asked", "b": "absent"}]


KEYS = {
    "privacy": ["epsilon", "delta", "neighbors", "unit", "count", "keep", "order", "policy"],
    "params": ["method", "failure", "parts", "k"],
    "domain": ["step"],
}


@pytest.mark.parametrize("key", [*KEYS["privacy"], "rows", "group_by", "contributions"])
def test_whatever_a_job_asks_for_is_compared(key):
    """A change of it is told, and makes jobs unlike that have other neighbors or other rows."""
    privacy = dict.fromkeys(("spent", "accountant", *KEYS["privacy"]), 1)
    plan = {"task": "median", "method": "m", "mechanisms": [], "accuracy": {"promises": {}}}
    one, other = {**plan, "privacy": privacy}, {**plan, "privacy": privacy}
    if key in privacy:
        other["privacy"] = {**privacy, key: 2}
    else:
        one[key], other[key] = {"where": "x > 1"}, {"where": "x > 2"}
    name = f"privacy.{key}" if key in privacy else f"{key}.where"
    found = compare(Side.of("a", {"": one}, {}), Side.of("b", {"": other}, {}))
    assert [each["name"] for each in found["job"]] == [name]
    assert found["alike"] == (key in ("epsilon", "delta", "neighbors"))


@pytest.mark.parametrize("key", [f"{section}.{key}" for section, keys in KEYS.items() for key in keys])
def test_jobs_are_alike_where_only_budgets_and_methods_differ(key):
    """In every question: another unit is another question about the same rows."""
    free = ("privacy.epsilon", "privacy.delta", "privacy.neighbors")
    free += ("params.method", "params.failure", "params.parts")
    for x, y in ((1, 0), (0, 1), (1, 1), (0, 0)):
        given = ({"x": {key: 0}, "y": {key: 0}}, {"x": {key: x}, "y": {key: y}})
        one, other = (Side("a", asked, {"x": {}, "y": {}}, {}) for asked in given)
        assert compare(one, other)["alike"] == (key in free or not (x or y))


@pytest.mark.parametrize(("a", "b"), [(True, False), (False, True), (True, True), (False, False)])
def test_rows_are_drawn_anew_where_either_run_does(a, b):
    one, other = (Side("a", {}, {}, {}, drawn) for drawn in (a, b))
    assert compare(one, other)["drawn_anew"] == (a or b)


def test_all_noise_of_a_round_is_compared():
    draws = [{"round": "r", "mechanism": "laplace", "scale": scale} for scale in (1.0, 2.0, 2.0)]
    privacy, accuracy = {"spent": 1, "accountant": "basic"}, {"promises": {}}
    plan = {"method": "m", "mechanisms": draws, "privacy": privacy, "accuracy": accuracy}
    assert _planned(plan)["noise of r, laplace"] == "1; 2 × 2"


def test_wrong_arguments_are_one_sentence(bench, refused):
    job = bench.write(bench.changed({}))
    none = str(bench.folder / "2025-W37")
    for name in (none, f"{none}/release.json"):
        said = refused(bench.shoal("diff", job, name))
        assert f"There is neither a job file {name} nor a release {none}/release.json" in said
    (bench.folder / "release.json").write_text("{}")
    assert "is not a release" in refused(bench.shoal("diff", job, str(bench.folder)))


@pytest.mark.parametrize("changed", [{"privacy": None}, {"result": {"value": 1}}, {"mechanisms": [1]}])
def test_a_changed_release_is_one_sentence(bench, refused, tmp_path, changed):
    folder = released(tmp_path / "rows", "median", records("median", 1))
    file = Path(folder) / "release.json"
    if "result" in changed:
        changed["result"] |= {"low": [], "high": 3}
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))
    assert "If it was changed after its run" in refused(bench.shoal("diff", folder, folder))
