"""A job that is asked about each group by itself: each answer is what a run on its rows alone would give."""

import copy
import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.aggregate import Tally
from core.budget import Budget
from core.each_group import EachGroup, in_one_pass
from core.groups import for_one_change
from core.input_checks import Checked
from core.rounds import Block, Strand, run_in_memory
from core.sampling import siphash
from pipelines.answers.statistics import _where
from pipelines.errors import JobError
from pipelines.grouped_plan import check_groups_spend, make_grouped_plan
from pipelines.grouped_release import draft_grouped_release, write_grouped_release
from pipelines.job.groups import MOST_GROUPS
from pipelines.job.job import check_job, load_job
from pipelines.ledger.ledger import create_ledger, new_ledger, read_ledger
from pipelines.plan import make_plan
from pipelines.run.prepared import Prepared
from pipelines.run.run import prepare_run, read_groups, run_job
from pipelines.storage.locate import open_folder
from tests.core.seeded import SeededNoise
from tests.engines.golden import Fixed, Trace, traced
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import FITTED, GROUPED, IN_ONE_PASS, changes
from transforms import split_groups
from transforms.bound_units import Bounding, bound_in_memory
from transforms.contributions import Contributing
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import open_source
from transforms.read_blocks import ReadBlocks, Reader, list_row_groups
from transforms.run_rounds import RunStrands

KEYS = ["a", "b", "nowhere"]
BY_CITY = {"group_by": {"columns": ["city"], "keys": KEYS}}
UNITS = {"input.unit": "who", "input.checks": 0.0, "contributions": {"groups": 2}}


NOISELESS = Fixed(0, factor=0.0)
ONE_THREAD = {"direct_num_workers": 1, "direct_running_mode": "in_memory"}
TWO_PROCESSES = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}


@pytest.fixture
def cities(bench: Bench) -> Bench:
    """The bench's rows in three cities and with units; some rows lie outside, some have no value or city."""
    rows = pq.read_table(bench.rows)
    rng, n = np.random.default_rng(3), len(rows)
    x = rows.column("x").to_numpy().copy()
    x[::17], x[::19] = np.nan, 1.5
    city = np.array(["a", "b", "c", None], dtype=object)[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    kind, day = rng.integers(0, 2, n) == 1, np.datetime64("2013-01-01") + rng.integers(0, 3, n)
    table = {"x": x, "y": rows.column("y"), "who": rng.integers(0, n // 3, n)}
    table |= {"city": pa.array(city, pa.string()), "kind": kind, "day": day, "w": rng.uniform(size=n)}
    pq.write_table(pa.table(table), bench.rows, row_group_size=1000)
    return bench


def job_of(bench: Bench, task: str, *more: dict[str, Any]) -> Any:
    given = changes(task) | {"input.checks": 0.1} | BY_CITY
    for each in more:
        given |= each
    if task in FITTED:
        given["params"] = FITTED[task]
    return check_job(bench.changed(given))


def alone(prepared: Prepared, label: str) -> list[Block]:
    """Return the records of a run on the rows of one city alone, as a condition on rows leaves them."""
    job: Any = prepared.job
    if prepared.bounding is None:
        only = job.input.model_copy(update={"where": f"city == '{label}'"})
        source = open_source(only.path, only.columns, preparation=only.preparation())
        reader = Reader.of(source, job.grid, job.checks > 0)
        parts = [part for file in source.files for part in list_row_groups(file)]
        return [block for part in parts for block in reader.blocks(part)]
    number, source, salt = KEYS.index(label), prepared.source, prepared.salt
    bounds = Contributing.of(source, Bounding.of(source, job.grid, "one", salt), job.bounds.groups, 1)
    blocks = []
    for block in bound_in_memory(source, bounds):
        mine = block.groups == number
        ids = siphash(block.ids[mine], salt, (number << 40) + split_groups._GROUP)
        blocks.append(Block(block.points[mine], ids))
    return blocks


@pytest.mark.parametrize("whose", ["rows", "replaced", "units"])
@pytest.mark.parametrize("task", GROUPED)
def test_each_group_has_the_aggregates_of_its_rows_alone(
    cities: Bench, tmp_path: Path, task: str, whose: str
) -> None:
    """In one process; `tests.engines.test_every_task` has several."""
    one_group = UNITS | {"contributions": {"groups": 1}}  # so that units in both cities lose rows
    more = {"rows": {}, "replaced": {"privacy.neighbors": "replace_one"}, "units": one_group}[whose]
    prepared = prepare_run(job_of(cities, task, more, {"privacy.epsilon": 4.0}))
    strands, output = list(map(traced, prepared.strands)), tmp_path / "states"
    output.mkdir()

    def keep(last: tuple[int, Any]) -> None:
        with (output / str(last[0])).open("xb") as file:
            pickle.dump(last[1], file)

    options = PipelineOptions([], **ONE_THREAD)
    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        elements, records = read_groups(prepared, pipeline | ReadBlocks(prepared.source))
        elements | RunStrands(strands, NOISELESS, records, 5) | beam.Map(keep)
    assert in_one_pass(prepared.strands) == (task in IN_ONE_PASS)
    for number, label in enumerate(KEYS):
        blocks = alone(prepared, label)
        assert (sum(len(block.ids) for block in blocks) > 0) == (label != "nowhere")
        strand = strands[0 if task in IN_ONE_PASS else number]
        ended = pickle.loads((output / str(0 if task in IN_ONE_PASS else number)).read_bytes())
        got = assert_as_alone(strand, ended, number, blocks)
        if isinstance(got, Checked) and label == "a":
            assert min(got.left_out[0], got.moved[0]) > 0


@pytest.mark.parametrize("whose", ["rows", "units"])
def test_a_unit_has_an_identity_of_its_own_in_each_group(cities: Bench, whose: str) -> None:
    """Groups sample with one key; see `test_a_unit_is_sampled_independently_in_its_groups`."""
    prepared = prepare_run(job_of(cities, "histogram", UNITS if whose == "units" else {}))
    _, records = read_groups(prepared, beam.Pipeline() | ReadBlocks(prepared.source))
    (split,) = records.splits
    assert split.salt == (prepared.salt if whose == "units" else None)


def assert_as_alone(strand: Strand, ended: Any, group: int, blocks: list[Block]) -> Any:
    """Check that a group has the aggregates and the last state of its rows alone; return that state.

    Args:
        strand: of the group, or of all groups; see `core.each_group`.
        ended: the last state of the strand.
        group: number of the group.
        blocks: its rows.
    """
    (first, *_) = strand.rounds
    if not isinstance(first, EachGroup):
        expected = run_in_memory(strand.rounds, blocks, strand.start, NOISELESS)
        assert_same(ended, expected)
        return ended.state
    expected, got = run_in_memory(first.rounds, blocks, first.start, NOISELESS), dict(ended)[group]
    if first.checks is None:
        assert_same(got, expected)
        return got.state
    outside = sum((block.outside for block in blocks if block.outside is not None), np.zeros(2, np.int64))
    assert first.checks.checked(None, Tally(outside), NOISELESS) == replace(got, state=None)
    assert_same(got.state, expected)
    return got


def assert_same(got: Trace, expected: Trace) -> None:
    assert len(got.aggregates) == len(expected.aggregates) > 0
    for ours, theirs in zip(got.aggregates, expected.aggregates, strict=True):
        assert repr(ours) == repr(theirs)
    assert repr(got.state) == repr(expected.state)


@pytest.mark.parametrize("task", GROUPED)
def test_a_group_has_the_plan_of_its_rows_alone(cities: Bench, task: str) -> None:
    """With the whole budget for rows; with a part of it for one more or less where a row is replaced."""
    job, salt = job_of(cities, task), bytes(16)
    only = check_job(cities.changed(_alone_as_job(job, task)))
    assert repr(make_grouped_plan(job, salt).each) == repr(make_plan(only, salt))
    replaced = job_of(cities, task, {"privacy.neighbors": "replace_one"})
    part = for_one_change(replaced.privacy.budget(), 2)
    less = {"privacy.epsilon": part.epsilon, "privacy.delta": part.delta}
    only = check_job(cities.changed(_alone_as_job(job, task) | less))
    assert repr(make_grouped_plan(replaced, salt).each) == repr(make_plan(only, salt))


def _alone_as_job(job: Any, task: str) -> dict[str, Any]:
    params = {key: value for key, value in job.model_dump(mode="json")["params"].items() if value is not None}
    return changes(task) | {"input.checks": 0.1, "params": params}


@pytest.mark.parametrize("task", GROUPED)
def test_one_release_has_an_answer_for_each_group(cities: Bench, task: str) -> None:
    job = job_of(cities, task, {"privacy.epsilon": 50.0})
    release = run_job(job)
    assert release["task"] == task and release["outcome"] == "released" and "result" not in release
    assert [group["key"] for group in release["groups"]] == [["a"], ["b"], ["nowhere"]]
    assert release["group_by"] == {"columns": ["city"], "public_keys": 3, "truncate": {}}
    assert release["each_group"]["epsilon"] == release["privacy"]["epsilon"] == 50.0
    first, second, _ = release["groups"]
    assert first["outcome"] == second["outcome"] == "released"
    assert first["result"] != second["result"]
    rows = pq.read_table(cities.rows)
    city, x = rows.column("city").to_numpy(zero_copy_only=False), rows.column("x").to_numpy()
    for group in release["groups"]:
        missing = np.count_nonzero(np.isnan(x[city == group["key"][0]]))
        assert abs(group["checks"]["left_out"][0] - missing) < 40  # of a standard error below 1
    page = (cities.folder / "out" / "report.html").read_text()
    assert "3 groups by city" in page and 'href="#group-1"' in page and "Group nowhere" in page
    if task in ("histogram", "cdf", "ranges"):
        table = pq.read_table(cities.folder / "out" / "result.parquet")
        lengths = [group["table_rows"] for group in release["groups"]]
        assert sum(lengths) == len(table) > 0
        assert table.column("city").to_pylist() == [
            key for key, length in zip(KEYS, lengths, strict=True) for _ in range(length)
        ]
        assert table.column_names[0] == "city" and len(set(table.column_names)) == len(table.column_names)
        inside = json.loads(table.schema.metadata[b"release"])
        assert inside == release
        counts = table.column("count").to_numpy()[: lengths[0]]
        counted = counts[-1] if task == "cdf" else counts.sum()
        assert abs(counted - np.count_nonzero((city == "a") & ~np.isnan(x))) < 60
    else:
        assert not (cities.folder / "out" / "result.parquet").exists()


def test_an_empty_group_is_answered_with_noise_alone(cities: Bench) -> None:
    """Noise of scale 1 is 0 in all of 64 cells, or above 60 in one, with probability below 1e-20."""
    job = job_of(cities, "histogram", {"params": {"cells": [8, 8], "method": "dense"}})
    release = run_job(job)
    table = pq.read_table(cities.folder / "out" / "result.parquet")
    last = table.column("count").to_numpy()[-release["groups"][2]["table_rows"] :]
    assert len(last) == 64 and 0 < np.abs(last).max() < 60


def test_keys_of_several_columns(cities: Bench) -> None:
    """Text, booleans and dates; the order of the keys is that of the answers."""
    keys = [["b", True, "2013-01-02"], ["a", False, "2013-01-01"]]
    groups = {"columns": ["city", "kind", "day"], "keys": keys, "truncate": {"day": "day"}}
    release = run_job(job_of(cities, "cdf", {"group_by": groups, "privacy.epsilon": 50.0}))
    assert [group["key"] for group in release["groups"]] == keys
    table, rows = pq.read_table(cities.folder / "out" / "result.parquet"), pq.read_table(cities.rows)
    assert table.schema.field("kind").type == pa.bool_() and pa.types.is_date(table.schema.field("day").type)
    for group, (city, kind, day) in zip(release["groups"], keys, strict=True):
        mine = [
            str(row["day"])[:10] == day
            and row["city"] == city
            and row["kind"] == kind
            and row["x"] == row["x"]
            for row in rows.to_pylist()
        ]
        own = table.filter(pa.compute.equal(table.column("city"), city)).column("count").to_numpy()
        assert group["outcome"] == "released" and abs(own[-1] - sum(mine)) < 30


@pytest.mark.parametrize("whose", ["rows", "replaced", "units", "replaced units"])
def test_the_ledger_is_charged_once(cities: Bench, whose: str) -> None:
    relation = "replace_one" if "replaced" in whose else "add_or_remove_one"
    ledger = str(cities.folder / "books" / "ledger.json")
    unit = "who" if "units" in whose else None
    about = {"neighbors": relation, "epsilon": 1.5, "delta": 1e-5, "unit": unit}
    create_ledger(ledger, new_ledger({k: v for k, v in about.items() if v is not None}, "renyi"))
    more = {"privacy.ledger": ledger, "privacy.neighbors": relation, **(UNITS if unit else {})}
    job = job_of(cities, "quantiles", more)
    for _ in range(2):
        release = run_job(job)
    (entry,) = read_ledger(ledger).charges
    spent = release["privacy"]["spent_delta"]
    assert (entry.epsilon, entry.delta, entry.task) == (1.0, spent, "quantiles")
    assert spent in (0.0, 1e-6)  # all draws are pure: they are added up, or composed at the whole delta
    times, grows = (2 if unit else 1), 2 if "replaced" in whose else 1
    drawn = [draw["epsilon"] * grows for draw in release["mechanisms"]] * times
    assert [draw[0] for draw in entry.draws] == pytest.approx(drawn)
    assert release["privacy"]["spent"] <= 1.0
    assert release["privacy"]["neighbors"] == relation
    hidden = {"rows": "one row more", "units": "one unit more"}.get(whose, "the ")
    assert hidden in release["privacy"]["hides"]
    assert sum(release["privacy"]["hides"] in note for note in release["notes"]) == 1


def test_a_plan_says_what_each_group_gets(cities: Bench) -> None:
    given = changes("one_cluster") | BY_CITY
    shown = cities.shoal("plan", cities.write(cities.changed(given)))
    assert shown.exit_code == 0, shown.stderr
    said = " ".join(shown.stdout.split())
    assert (
        "3 groups by city, each answered by itself. Each may spend epsilon 1 and delta 1e-6 for one row"
        in said
    )
    replaced = given | {"privacy.neighbors": "replace_one"}
    planned = json.loads(cities.shoal("plan", "--json", cities.write(cities.changed(replaced))).stdout)
    assert planned["each_group"]["epsilon"] == 0.5
    assert planned["each_group"]["delta"] == pytest.approx(1e-6 / (1 + np.exp(0.5)))
    assert planned["privacy"]["epsilon"] == 1.0 and planned["privacy"]["spent"] <= 1.0
    assert "a replaced one may change them" in planned["each_group"]["says"]


def test_a_plan_that_spends_too_much_is_refused(cities: Bench) -> None:
    job = job_of(cities, "quantiles", {"privacy.neighbors": "replace_one"})
    plan = make_grouped_plan(job, bytes(16))
    check_groups_spend(plan, job.privacy.budget())
    with pytest.raises(JobError, match=r"^privacy.epsilon is 0.9: the planned noise of all groups would"):
        check_groups_spend(plan, Budget(0.9, 1e-6))


@pytest.mark.parametrize("task", ["cdf", "median"])
def test_the_first_release_stays(cities: Bench, task: str) -> None:
    """Two draws of all groups are written; that of the first is shown, with its table."""
    job = job_of(cities, task)
    prepared = prepare_run(job)
    draft, folder = draft_grouped_release(job, prepared.plan), open_folder(job.output)
    shown = []
    for seed in (1, 2):
        noise = SeededNoise(seed)
        states = [
            (number, run_in_memory(prepared.plan.rounds, alone(prepared, label), prepared.plan.start, noise))
            for number, label in enumerate(KEYS)
        ]
        write_grouped_release(folder, draft, states[::-1])
        shown.append({path.name: path.read_bytes() for path in (cities.folder / "out").iterdir()})
    assert shown[0] == shown[1] and "release.json" in shown[0]
    assert run_job(job)["groups"] == json.loads(shown[0]["release.json"])["groups"]


def test_a_run_without_groups_keeps_its_hash(bench: Bench) -> None:
    job = {**bench.job, "output": "/nowhere/out"}
    job["input"] = {**job["input"], "path": "/nowhere/rows"}
    before = check_job(job).hash()
    assert before == "80b9dc919aeb8b160abb65c99f0eb012257b1a7a9ed8cd7367302aa8aec705c8"
    assert check_job(job | {"group_by": BY_CITY["group_by"]}).hash() != before


def test_commands_on_groups(cities: Bench) -> None:
    job = cities.changed(changes("one_cluster") | BY_CITY | {"privacy.epsilon": 20.0, "params.target": 600})
    done = cities.shoal("run", cities.write(job), "--json-logs")
    assert done.exit_code == 0, done.stderr
    released = [json.loads(line) for line in done.stderr.splitlines() if "round_released" in line]
    plan = make_grouped_plan(load_job(cities.write(job)), bytes(16))
    assert [event["round"] for event in released] == [step.name for step in plan.rounds]
    assert re.match(r"a: About [\d,]+ rows lie within .* of one point: center .*; at least", done.stdout)
    assert "All groups together spent epsilon 20" in done.stdout
    screened = cities.shoal("screen", job["output"], str(cities.rows), str(cities.folder / "screened"))
    assert screened.exit_code == 2 and "has balls of 3 groups" in screened.stderr
    report = (cities.folder / "out" / "report.html").read_bytes()
    assert cities.shoal("report", job["output"]).exit_code == 0
    assert (cities.folder / "out" / "report.html").read_bytes() == report


def test_the_terminal_shows_the_largest_groups_of_a_table(cities: Bench) -> None:
    job = cities.changed(changes("statistics") | BY_CITY | {"params.measures": ["count", "mean"]})
    done = cities.shoal("run", cities.write(job))
    assert done.exit_code == 0, done.stderr
    _, shown = done.stdout.split("The 3 groups with the largest count; all groups are in result.parquet:\n")
    header, *rows = shown.split("± is one standard error of the noise.")[0].splitlines()
    assert header.split()[0] == "city" and {row.split()[0] for row in rows} == {*KEYS}


@pytest.mark.parametrize(("keys", "told"), [([*KEYS], False), (["A", " a"], True)])
def test_keys_that_no_row_has_are_told(cities: Bench, keys: list[str], told: bool) -> None:
    """By the released counts: rows of other keys are left out, and are no error."""
    job = changes("statistics") | {"group_by": {"columns": ["city"], "keys": keys}}
    done = cities.shoal(
        "run",
        cities.write(cities.changed(job | {"params.measures": ["mean", "count"], "privacy.epsilon": 100.0})),
    )
    assert done.exit_code == 0, done.stderr
    says = "none has more rows than noise may hide: see whether the keys are written as in the files"
    assert (says in " ".join(done.stdout.split())) == told
    assert (says in (cities.folder / "out" / "report.html").read_text()) == told


def test_noise_of_many_groups_hides_no_wrong_keys() -> None:
    """Of 500 groups without a row, one is above four standard errors in more than half of the runs."""
    release: dict[str, Any] = {
        "params": {"measures": ["count"]},
        "group_by": {"public_keys": 500},
        "result": {"groups": 500},
    }
    error, rng = np.full(500, 1.36), np.random.default_rng(1)
    told = 0
    for _ in range(200):
        rows = {"count": np.rint(rng.laplace(size=500)).clip(0), "count_error": error}
        told += "see whether the keys" in _where(release, rows, "rows")
        rows["count"][7] = 30
        assert "see whether the keys" not in _where(release, rows, "rows")
    assert told > 190


def test_a_report_shows_some_groups_and_lists_all(cities: Bench) -> None:
    keys = [f"city {i}" for i in range(60)]
    release = run_job(job_of(cities, "median", {"group_by": {"columns": ["city"], "keys": keys}}))
    assert len(release["groups"]) == 60
    page = (cities.folder / "out" / "report.html").read_text()
    assert (
        page.count("<article") == 50 and "city 59" in page and "The other groups are in release.json" in page
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda release: release.update(groups=[]),
        lambda release: release["groups"].pop(),
        lambda release: release["groups"][0].update(key="a"),
        lambda release: release["groups"][0].update(key=["a", "b"]),
    ],
)
def test_changed_groups_are_one_sentence(cities: Bench, change: Callable[[dict[str, Any]], object]) -> None:
    job = cities.write(cities.changed(changes("median") | BY_CITY))
    assert cities.shoal("run", job).exit_code == 0
    path, release = cities.folder / "out" / "release.json", cities.release()
    change(release)
    path.write_text(json.dumps(release))
    for command in (["run", job], ["report", str(path)]):
        refused = cities.shoal(*command)
        assert refused.exit_code == 2 and f"{path} cannot be shown" in refused.stderr


REPLACED = {"privacy.neighbors": "replace_one"}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "private keys": (
        {"group_by.keys": "private"},
        "group_by.keys is private: one_cluster answers for public keys alone",
    ),
    "a key column of floats": (
        {"group_by.columns": ["w"]},
        "group_by.columns: w is double in part.parquet; keys are",
    ),
    "keys of floats": ({"group_by.keys": [1.5]}, "group_by.keys has 1.5: the values of a key"),
    "keys twice": ({"group_by.keys": ["a", "b", "a"]}, 'group_by.keys has ["a"] twice'),
    "no keys": ({"group_by.keys": []}, "group_by.keys has no keys: give at least one."),
    "a file of keys without a name": ({"group_by.keys": ""}, "group_by.keys is empty: give private, a list"),
    "no list of keys": ({"group_by.keys": ...}, "group_by.keys is missing"),
    "a list for another column": ({"group_by.keys": {"town": ["a"]}}, "group_by.keys has lists for town"),
    "keys of another kind": ({"group_by.keys": [1]}, "group_by.keys has 1 for city, which is"),
    "a column that is missing": ({"group_by.columns": ["town"]}, "group_by.columns: town is missing from"),
    "too many groups": (
        {"group_by.keys": [f"{i}" for i in range(MOST_GROUPS + 1)]},
        "group_by.keys has 1,001 keys: one_cluster answers for at most 1,000 groups",
    ),
    "a policy": (
        {**REPLACED, "privacy.policy": {"secrets": "full"}, "input.checks": 0.0},
        "privacy.policy and group_by are given",
    ),
    "a unit": ({"input.unit": "who"}, "input.unit is who and group_by is given: give contributions"),
    "rows of a unit": (
        {**UNITS, "contributions": {"groups": 2, "rows": 3}},
        "contributions.rows is 3: one_cluster takes one row of a unit",
    ),
    "clamped sums": (
        {**UNITS, "contributions": {"clamp": "unit"}},
        "contributions.clamp is unit: it is for sums, which one_cluster has not",
    ),
    "many groups of a unit": (
        {**UNITS, "contributions": {"groups": 21}},
        "contributions.groups is 21: for one_cluster it may be at most 20",
    ),
    "checks of units": ({**UNITS, "input.checks": 0.1}, "input.checks is 0.1, and input.unit and group_by"),
    "a record of units": ({**UNITS, "input.keep": "mean"}, "input.keep is mean and contributions is given"),
    "contributions without groups": (
        {**UNITS, "group_by": ..., "contributions": {"groups": 1}},
        "contributions is given, but one_cluster without group_by takes one record",
    ),
    "contributions without a unit": (
        {"contributions": {"groups": 2}},
        "contributions is given, but there is no input.unit",
    ),
    "a small part": ({**REPLACED, "privacy.epsilon": 1e-6}, "privacy gives each group epsilon 5e-7"),
    "a graph": ({**changes("triangles")}, "group_by is not a known key"),
    "a table in parts": (
        {**changes("histogram"), "params": {"cells": [8, 8], "parts": 3, "method": "sparse"}},
        "params.parts is 3 and group_by is given",
    ),
    "a name in the table": (
        {**changes("histogram"), "group_by.columns": ["count"]},
        "group_by.columns has count, which is the name of another column of the table",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(cities: Bench, refused: Any, name: str) -> None:
    given, expected = BAD[name]
    job = changes("one_cluster") | copy.deepcopy(BY_CITY) | copy.deepcopy(given)
    said = refused(cities.shoal("run", cities.write(cities.changed(job))))
    assert expected in said


def test_a_file_of_too_many_keys_is_refused(cities: Bench, refused: Any) -> None:
    path = cities.folder / "keys.parquet"
    pq.write_table(pa.table({"city": [f"{i}" for i in range(MOST_GROUPS + 1)]}), path)
    job = cities.changed(changes("median") | {"group_by": {"columns": ["city"], "keys": str(path)}})
    assert "median answers for at most 1,000 groups" in refused(cities.shoal("run", cities.write(job)))


@pytest.mark.parametrize("task", ["histogram", "cdf", "ranges"])
def test_names_of_table_columns_are_taken(cities: Bench, task: str) -> None:
    """The names that a key column must not have are those of every column that a table has."""
    run_job(job_of(cities, task))
    table = pq.read_table(cities.folder / "out" / "result.parquet")
    job = job_of(cities, task)
    assert [name for name in table.column_names if not job.is_in_table(name)] == ["city"]
    assert not job_of(cities, "median").is_in_table("count")


@pytest.mark.parametrize("name", ["count", "units", "mean", "count_error"])
def test_a_key_column_may_be_called_as_a_measure(cities: Bench, name: str) -> None:
    """A run that was charged and released must be shown."""
    rows = pq.read_table(cities.rows)
    pq.write_table(
        rows.rename_columns([name if each == "city" else each for each in rows.column_names]), cities.rows
    )
    job = changes("statistics") | {"group_by": {"columns": [name], "keys": [*KEYS]}}
    for measures in (["sum"], ["sum", "count"]):
        if {name, name.removesuffix("_error")} & {*measures}:
            continue  # which is refused
        given = {"params.measures": measures, "output": str(cities.folder / "-".join(measures))}
        done = cities.shoal("run", cities.write(cities.changed(job | given)))
        assert done.exit_code == 0, done.stderr
        assert "is one standard error" in done.stdout
