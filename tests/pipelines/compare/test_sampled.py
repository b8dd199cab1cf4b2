"""Figures of two samples of alike people hardly ever differ by more than noise and sampling explain."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from pipelines.compare.compare import compare, read_sides
from pipelines.compare.estimate import SAMPLED, Estimate, sampled
from pipelines.compare.estimates import estimates
from tests.pipelines.jobs import changes

MOMENTS = ["count", "sum", "mean", "variance"]
NOISE = {"count": 3.0, "sum": 40.0, "mean": 0.5, "variance": 2.0}
VALUES = {"count": 403.0, "sum": 8060.0, "mean": 20.0, "variance": 98.0}


def release(**more: Any) -> dict[str, Any]:
    return {"privacy": {}, "domain": {"lower": [0], "upper": [100]}, **more}


def figures(*names: str, **values: float) -> list[Estimate]:
    """Return measures of a column from 0 to 100."""
    return [
        Estimate(
            name,
            values.get(name, VALUES[name]),
            NOISE[name],
            counts=name == "count",
            moment=(name, 0),
        )
        for name in names
    ]


def added(found: list[Estimate]) -> dict[str, float]:
    """Return the variances that sampling adds."""
    return {each.name: each.error**2 - NOISE[each.name] ** 2 for each in found if each.error is not None}


def test_what_sampling_adds() -> None:
    """With released values one error of their noise to the side where the bound is larger."""
    found = added(sampled(figures(*MOMENTS), release()))
    assert found == pytest.approx(
        {
            "count": 406,
            "sum": 406 * (100 + 20.5**2),
            "mean": 100 / 400,
            "variance": 100 * (80.5**2 - 100) / 400,
        }
    )
    without = added(sampled(figures("count", "mean"), release()))
    assert without == pytest.approx({"count": 406, "mean": 20.5 * 79.5 / 400})
    without = added(sampled(figures("count", "sum"), release()))  # its mean is off by 40 / 403
    assert without["sum"] == pytest.approx(406 * ((20 + 40 / 403) * (80 - 40 / 403) + (20 + 40 / 403) ** 2))
    wide = added(sampled(figures("count", "variance", variance=6000.0), release()))
    assert wide["variance"] == pytest.approx(2500 * (100**2 - 2500) / 400)
    half = added(sampled(figures("count", "mean", "variance", mean=50.0, variance=3000.0), release()))
    assert half["variance"] == pytest.approx((50.5**2 / 2) ** 2 / 400), "the largest of v (R^2 - v)"
    ends = added(sampled(figures("count", "mean", mean=-4.0), release()))
    assert ends["mean"] == 0, "a mean at a bound is that of equal values"


@pytest.mark.parametrize(
    ("privacy", "contributions", "count", "mean"),
    [
        ({"unit": "who", "keep": "one"}, None, 1, 1),
        ({"unit": "who"}, {"groups": 1, "rows": 3}, 3, 3),
        ({"unit": "who"}, {"groups": 2, "rows": 3}, 3, 6),
    ],
)
def test_units_are_sampled_with_all_of_their_rows(
    privacy: dict[str, Any], contributions: dict[str, int] | None, count: int, mean: int
) -> None:
    more: dict[str, Any] = {} if contributions is None else {"contributions": contributions}
    units = Estimate("units", 403.0, 3.0, counts=True, moment=("units", 0))
    asked = [*figures(*MOMENTS), units]
    alone, found = sampled(asked, release()), sampled(asked, release(privacy=privacy, **more))
    times = {
        each.name: (each.error**2 - noise.error**2) / (one.error**2 - noise.error**2)
        for one, each, noise in zip(alone, found, asked, strict=True)
        if one.error is not None and each.error is not None and noise.error is not None
    }
    assert times == pytest.approx(
        {"count": count, "units": 1, **dict.fromkeys(["sum", "mean", "variance"], mean)}
    )


def test_of_what_nothing_is_known() -> None:
    """Nothing is known of few records, without a count, of times, and of figures that are no sums."""
    assert set(added(sampled(figures(*MOMENTS, count=32.0), release()))) == {"count"}
    assert set(added(sampled(figures(*MOMENTS, count=33.0), release()))) == set(MOMENTS)
    assert not added(sampled(figures("mean", "variance"), release()))
    times = release(domain={"lower": ["2026-01-01"], "upper": ["2026-02-01"]})
    assert set(added(sampled(figures(*MOMENTS), times))) == {"count"}
    counted = release(privacy={"count": "persons"})
    assert not added(sampled(figures(*MOMENTS), counted)), "a row is sampled with all of its records"
    assert added(sampled(figures(*MOMENTS), release(contributions=None)))
    other = Estimate("value", 5.0, 1.0, 2.0, (3.0, 7.0))
    assert sampled([other], release()) == [Estimate("value", 5.0)]
    [alone] = sampled([replace(figures("count")[0], error=None)], release())
    assert alone.error is None


def test_each_group_and_column_has_its_own(tmp_path) -> None:
    rng = np.random.default_rng(3)
    columns = {"x": rng.integers(0, 11, 30_000), "y": rng.integers(40, 101, 30_000)}
    keys = rng.choice(["a", "b"], 30_000, p=[0.9, 0.1])
    rows = pa.table({**columns, "c": keys})
    job = asked(tmp_path / "one", {"privacy": {"epsilon": 100.0, "delta": 0.0}})
    job |= {"input": {"columns": ["x", "y"]}, "domain": {"lower": [0, 0], "upper": [100, 100], "step": 1}}
    shoal.run(job, rows)
    [a, b] = read_sides(str(tmp_path / "one"), None, ("a", "b"), sampled=True)
    for key, side in (("a", a), ("b", b)):
        found = {each.name: each.error for each in side.figures[""]}
        for number, name in enumerate("xy"):
            held = columns[name][keys == key]
            expected = held.std() / math.sqrt(len(held))
            assert found[f"mean_{number}"] == pytest.approx(expected, rel=0.1)


def asked(output: Any, changed: dict[str, Any]) -> dict[str, Any]:
    """Return a job of statistics of groups a and b."""
    return {
        "task": "statistics",
        "input": {"columns": ["x"]},
        "domain": {"lower": [0], "upper": [100], "step": 1},
        "params": {"measures": ["count", "mean", "variance"]},
        "group_by": {"columns": ["c"], "keys": ["a", "b"]},
        "privacy": {"epsilon": 2.0, "delta": 0.0},
        "output": str(output),
        **changed,
    }


OF_PEOPLE = {"input": {"columns": ["x"], "unit": "who"}}
ASKED = {
    "rows": {},
    "some rows of people": OF_PEOPLE | {"contributions": {"groups": 2, "rows": 3}},
    "a row of each": OF_PEOPLE | {"contributions": {"groups": 1, "rows": 1}},
}


def people(rng: np.random.Generator, apart: float = 0.0) -> pa.Table:
    """Return rows of people, each near a place of its own; those of group b are `apart` farther up."""
    places = np.minimum(np.exp(rng.normal(2.5, 0.8, rng.poisson(1_500))), 90)
    who = np.repeat(np.arange(len(places)), rng.integers(1, 6, len(places)))
    group = rng.choice(["a", "b"], len(who))
    x = np.clip(places[who] + rng.normal(0, 1, len(who)) + apart * (group == "b"), 0, 100)
    return pa.table({"x": x, "c": group, "who": who})


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.usefixtures("seeded")
def test_sampling_explains_how_samples_differ(tmp_path, name) -> None:
    """Of 12 pairs of samples more than 4 have a figure too far apart with probability below 1e-3; seeded.

    Rows of a person are alike, so without people they are no independent rows: those take one row of each.
    By noise alone nearly all pairs would differ. Other people do: their means are 8 standard errors apart.
    """
    rng = np.random.default_rng(17)
    found: list[Any] = []
    by_noise = 0
    for number in range(13):
        rows = people(rng, apart=8.0 if number == 12 else 0.0)
        if name == "rows":
            rows = rows.take(np.unique(rows["who"], return_index=True)[1])
        output = tmp_path / str(number)
        shoal.run(asked(output, ASKED[name]) | {"privacy": {"epsilon": 50.0, "delta": 0.0}}, rows)
        found.append(compare(*read_sides(str(output), None, ("a", "b"), sampled=True)))
        by_noise += compare(*read_sides(str(output), None, ("a", "b")))["larger"] > 0
    assert all(each["larger"] is not None for one in found for each in one["answers"])
    assert sum(one["larger"] > 0 for one in found[:12]) <= 4
    assert by_noise > 8
    [mean] = [each for each in found[12]["answers"] if each["name"] == "mean"]
    assert mean["larger"]


def test_the_command(bench, refused) -> None:
    rows = people(np.random.default_rng(1))
    outputs = [str(bench.folder / name) for name in ("one", "two")]
    for output in outputs:
        shoal.run(asked(output, {}), rows)
    found = json.loads(bench.shoal("diff", *outputs, "--sampled", "--json").stdout)
    assert found["sampled"] and len(found["answers"]) == 6
    by_noise = json.loads(bench.shoal("diff", *outputs, "--json").stdout)
    assert not by_noise["sampled"]
    for one, other in zip(found["answers"], by_noise["answers"], strict=True):
        assert one["limit"] > other["limit"]
    said = " ".join(bench.shoal("diff", outputs[0], "--groups", "a", "b", "--sampled").stdout.split())
    assert "figures differ by more than noise and sampling explain. If both were independent samples" in said
    job = bench.write(bench.changed({}))
    assert "is a job, and --sampled compares releases" in refused(
        bench.shoal("diff", outputs[0], job, "--sampled")
    )


def test_a_variance_that_is_missing_is_asked_for(bench) -> None:
    """Of a mean that is not beyond a limit, and not of a column of zeros and ones, whose mean tells it."""
    rows = people(np.random.default_rng(1))
    said = {}
    for name, measures, step in (
        ("all", ["count", "mean", "variance"], 1),
        ("mean", ["count", "mean"], 1),
        ("two", ["count", "mean"], 100),
    ):
        domain = {"lower": [0], "upper": [100], "step": step}
        output = str(bench.folder / name)
        shoal.run(asked(output, {"params": {"measures": measures}, "domain": domain}), rows)
        said[name] = " ".join(bench.shoal("diff", output, "--groups", "a", "b", "--sampled").stdout.split())
    assert "For mean no variance was released" in said["mean"]
    assert "no variance was released" not in said["all"]
    assert "no variance was released" not in said["two"]


def test_samples_of_other_domains_are_no_alike_ones(bench) -> None:
    rows = people(np.random.default_rng(1))
    for upper in (100, 20):
        shoal.run(
            asked(bench.folder / str(upper), {"domain": {"lower": [0], "upper": [upper], "step": 1}}), rows
        )
    said = " ".join(
        bench.shoal("diff", str(bench.folder / "100"), str(bench.folder / "20"), "--sampled").stdout.split()
    )
    assert "the jobs ask for different things" in said and "none would" not in said


def test_a_key_may_be_called_an_error(tmp_path) -> None:
    rows = people(np.random.default_rng(1)).rename_columns(["x", "std_error", "who"])
    keys = {"columns": ["std_error"], "keys": ["a", "b"]}
    shoal.run(asked(tmp_path / "one", {"group_by": keys}), rows)
    found = compare(*read_sides(str(tmp_path / "one"), None, ("a", "b")))
    assert [each["name"] for each in found["answers"]] == ["count", "mean", "variance"]


def test_other_tasks_have_counts_alone(bench) -> None:
    """The noisy counts of a histogram are those of samples; a median is not known."""
    for task, known in (("histogram", True), ("median", False)):
        output = bench.folder / task
        assert bench.run({**changes(task), "output": str(output)}).exit_code == 0
        written = json.loads((output / "release.json").read_text())
        table = shoal.Release.open(str(output)).table if task == "histogram" else None
        columns = None if table is None else {name: table[name].to_numpy() for name in table.column_names}
        found = estimates(written, columns, SAMPLED)
        assert found and all((each.error is not None) == known for each in found)
