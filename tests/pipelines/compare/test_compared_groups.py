"""Two groups of a release, or of two, hardly ever differ by more than noise explains where they are alike."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest

import shoal
from pipelines.compare.compare import compare, read_sides
from tests.pipelines.jobs import FITTED, GROUPED, changes


@pytest.mark.parametrize("task", [*GROUPED, "statistics", "sample_and_aggregate"])
def test_groups_of_every_task_can_be_compared(bench, task):
    """Of one release and of two, also as JSON. Noise leaves none of them out but with probability e^-24."""
    asked = {**changes(task), "input.derive": {"half": "x > 0.5"}, "privacy.epsilon": 50.0}
    if task in FITTED:
        asked["params"] = FITTED[task]
    if task == "statistics":
        asked["params"] = {"measures": ["count", "mean", {"quantiles": [0.5]}, "minimum"]}
    keys = {"columns": ["half"], "keys": [False, True]}
    outputs = [str(bench.folder / name) for name in ("one", "two")]
    assert bench.run({**asked, "group_by": keys, "output": outputs[0]}).exit_code == 0
    shutil.copytree(*outputs)
    both = json.loads(bench.shoal("diff", *outputs, "--json").stdout)
    one = json.loads(bench.shoal("diff", outputs[0], "--groups", "false", "true", "--json").stdout)
    two = json.loads(bench.shoal("diff", *outputs, "--groups", "true", "true", "--json").stdout)
    assert one["groups"] == ["false", "true"] and two["groups"] == ["true", "true"]
    names = {f"{each['name']} of {key}" for each in one["answers"] for key in ("false", "true")}
    assert names and names <= {each["name"] for each in both["answers"]}
    assert bench.shoal("diff", outputs[0], "--groups", "false", "true").exit_code == 0
    assert sum(each["larger"] is True for each in both["answers"]) == both["larger"]


def by_group(tmp_path, number, rows, changed):
    """Return the folder of a release of groups a and b."""
    job = {
        "task": "statistics",
        "input": {"columns": ["x"]},
        "domain": {"lower": [0], "upper": [100], "step": 1},
        "params": {"measures": ["count", "mean", {"quantiles": [0.5]}]},
        "group_by": {"columns": ["c"], "keys": ["a", "b"]},
        "privacy": {"epsilon": 1.0, "delta": 0.0},
        "output": str(tmp_path / str(number)),
    }
    shoal.run({**job, **changed}, rows)
    return job["output"]


@pytest.mark.usefixtures("seeded")
def test_noise_explains_how_alike_groups_differ(tmp_path):
    """By the limits for 24 releases: more than 5 of them fail with probability below 1e-3; seeded.

    Of groups of unlike rows, all figures differ in nearly every release.
    """
    x = np.random.default_rng(5).integers(0, 101, 2_000)
    alike = pa.table({"x": np.repeat(x, 2), "c": ["a", "b"] * 2_000})
    found = [
        compare(*read_sides(by_group(tmp_path, number, alike, {}), None, ("a", "b"))) for number in range(24)
    ]
    assert all(each["larger"] is not None for one in found for each in one["answers"])
    assert sum(one["larger"] > 0 for one in found) <= 5
    unlike = pa.table({"x": np.append(x, x[:500] // 2), "c": ["a"] * 2_000 + ["b"] * 500})
    found = compare(*read_sides(by_group(tmp_path, "unlike", unlike, {}), None, ("a", "b")))
    assert found["larger"] == 3


def test_groups_of_one_release_have_the_rows_that_it_kept(bench):
    """So errors of their means are known; of another run, which keeps others, they are not."""
    rows = pa.table({"x": np.arange(4_000) % 101, "c": ["a", "b"] * 2_000, "who": np.arange(4_000) // 4})
    changed = {"input": {"columns": ["x"], "unit": "who"}, "contributions": {"groups": 1, "rows": 2}}
    one, two = (by_group(bench.folder, number, rows, changed) for number in range(2))
    for sides, known in (((one, None), True), ((one, f"{one}/release.json"), True), ((one, two), False)):
        found = compare(*read_sides(*sides, ("a", "b")))
        mean = next(each for each in found["answers"] if each["name"] == "mean")
        assert (mean["larger"] is not None) == known and found["drawn_anew"]
    said = " ".join(bench.shoal("diff", one, "--groups", "a", "b").stdout.split())
    assert "may be a smaller part of one group" in said and "On the same rows" not in said
    assert "The plans are the same." not in said and "it is not known" not in said
    said = " ".join(bench.shoal("diff", one, two, "--groups", "a", "b").stdout.split())
    assert "Of 2 more it is not known." in said
    said = " ".join(bench.shoal("diff", one, two, "--groups", "a", "a").stdout.split())
    assert "On the same rows none does" in said


def test_groups_that_are_not_there(bench, refused):
    rows = pa.table({"x": np.arange(400) % 101, "c": ["a", "b"] * 200})
    one = by_group(bench.folder, "one", rows, {})
    job = bench.write(bench.changed({}))
    for arguments, text in (
        ((one, "--groups", "a", "c"), f'{one} has no group "c"; it has 2, such as "a", "b".'),
        ((one, "--groups", "a", "a"), "--groups has a twice"),
        ((one, f"{one}/release.json", "--groups", "b", "b"), "--groups has b twice"),
        ((job, "--groups", "a", "b"), "is a job, and --groups compares groups of releases"),
        ((one,), "B is missing: give a second job or release, or --groups with two groups of A."),
    ):
        assert text in refused(bench.shoal("diff", *arguments))
    assert bench.run({**changes("median"), "output": str(bench.folder / "two")}).exit_code == 0
    said = refused(bench.shoal("diff", str(bench.folder / "two"), "--groups", "a", "b"))
    assert "it has no groups" in said


def test_groups_whose_texts_are_alike_and_those_without_figures(bench, refused):
    """Two columns of keys may be one text; and a mean of no rows is no figure, but the group is there."""
    keys = [["a, b", "c"], ["a", "b, c"], ["d", "e"], ["f", "g"]]
    rows = pa.table({"x": [50.0] * 900, "c": ["a, b"] * 300 + ["a"] * 600, "d": ["c"] * 300 + ["b, c"] * 600})
    changed = {
        "group_by": {"columns": ["c", "d"], "keys": keys},
        "params": {"measures": ["mean"]},
        "privacy": {"epsilon": 20.0, "delta": 0.0},
    }
    one = by_group(bench.folder, "one", rows, changed)
    assert "is the text of several groups" in refused(bench.shoal("diff", one, "--groups", "a, b, c", "d, e"))
    assert 'has no group "h"; it has 3' in refused(bench.shoal("diff", one, "--groups", "h", "d, e"))
    done = bench.shoal("diff", one, "--groups", "d, e", "f, g")
    assert done.exit_code == 0, done.stderr


def test_groups_of_a_table_in_parts_are_not_compared(bench, refused):
    rows = pa.table({"x": np.arange(400) % 101, "c": ["a", "b"] * 200})
    params = {"measures": ["count"], "parts": 2}
    one = by_group(bench.folder, "one", rows, {"params": params})
    said = refused(bench.shoal("diff", one, "--groups", "a", "b"))
    assert f"the table of {one} is in parts" in said
