"""A job of several questions: one charge, one pipeline, one release with the answers of all."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.budget import Budget, spend
from core.rounds import Strand, run_in_memory
from pipelines.errors import JobError
from pipelines.job.job import check_job, check_several, load_job
from pipelines.job.questions import question_tasks
from pipelines.job.schema import schema
from pipelines.joint_plan import check_joint_spend, make_joint_plan, questions_of
from pipelines.joint_release import check_stored, draft_joint_release, write_answer
from pipelines.ledger.ledger import create_ledger, new_ledger, now, read_ledger
from pipelines.plan import make_plan
from pipelines.run import joint_run
from pipelines.run.joint_run import prepare_questions, read_records
from pipelines.run.run import run_job
from pipelines.storage.locate import open_folder
from tests.engines.golden import NOISELESS, Recorded, Trace
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes
from transforms import read_once
from transforms.bound_units import Bounding, bound_in_memory
from transforms.contributions import Contributing
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import open_source
from transforms.read_blocks import ReadBlocks, Reader, list_row_groups
from transforms.run_rounds import RunStrands

SQUARE = {"lower": [0, 0], "upper": [1, 1], "step": 2.0**-12}
LINE = {"lower": [0], "upper": [1], "step": 2.0**-12}

QUESTIONS: dict[str, dict[str, Any]] = {
    "spot": {
        "task": "one_cluster",
        "columns": ["x", "y"],
        "domain": SQUARE,
        "params": {"target": 1500},
        "share": 2,
    },
    "centers": {
        "task": "k_means",
        "columns": ["y", "x"],
        "domain": SQUARE,
        "params": {"k": 3},
        "checks": 0.0,
    },
    "spend": {"task": "quantiles", "columns": ["y"], "domain": LINE, "params": {"probabilities": [0.1, 0.5]}},
    "wide": {
        "task": "median",
        "columns": ["z"],
        "domain": {"lower": [0], "upper": [2.0**40], "step": 1.0},
        "params": {},
    },
    "cells": {"task": "histogram", "columns": ["x", "y"], "domain": SQUARE, "params": {"cells": [8, 8]}},
    "sparse": {
        "task": "histogram",
        "columns": ["x"],
        "domain": LINE,
        "params": {"cells": [64], "method": "sparse"},
    },
}

GROUPED: dict[str, dict[str, Any]] = {
    "by_city": {
        "task": "statistics",
        "columns": ["y"],
        "domain": LINE,
        "group_by": {"columns": ["city"], "keys": "private"},
        "params": {"measures": ["count", "mean"]},
    },
    "by_kind": {
        "task": "statistics",
        "columns": ["x"],
        "domain": LINE,
        "group_by": {"columns": ["kind", "city"], "keys": {"kind": [0, 1, 9], "city": ["a", "c"]}},
        "params": {"measures": ["units", "sum"]},
    },
    "whole": {
        "task": "statistics",
        "columns": ["y", "x"],
        "domain": SQUARE,
        "params": {"measures": ["count", "variance"]},
        "checks": 0.0,
    },
}


@pytest.fixture
def several(bench: Bench) -> dict[str, Any]:
    """A job of several questions on the bench's rows, which get a wide column, units and times."""
    rng = np.random.default_rng(1)
    rows = pq.read_table(bench.rows)
    n = len(rows)
    more = {"z": rng.integers(0, 2**40, n), "who": rng.integers(0, n // 3, n), "t": rng.integers(0, 99, n)}
    x = rows.column("x").to_numpy().copy()
    x[::17], x[::19] = np.nan, 1.5
    keys = {"city": np.array(["a", "b", "c"])[more["t"] % 3], "kind": more["t"] % 4}
    table = pa.table({"x": x, "y": rows.column("y"), **more, **keys})
    pq.write_table(table, bench.rows, row_group_size=1000)
    return {
        "input": {"path": bench.job["input"]["path"]},
        "privacy": {"epsilon": 2.0, "delta": 1e-6},
        "questions": json.loads(json.dumps(QUESTIONS)),
        "output": bench.job["output"],
    }


def with_units(job: dict[str, Any]) -> dict[str, Any]:
    job["input"]["unit"] = "who"
    job["questions"]["spend"]["keep"] = "mean"
    job["questions"]["wide"] |= {"keep": "last", "order": "t"}
    job["questions"]["cells"]["keep"] = "max"
    return job


def with_groups(job: dict[str, Any]) -> dict[str, Any]:
    """Return the job with statistics among its questions; with units some of their rows remain records."""
    job["questions"] |= copy.deepcopy(GROUPED)
    if "unit" in job["input"]:
        bounds = {"by_city": {"groups": 2, "rows": 2}, "by_kind": {"groups": 3}, "whole": {"rows": 4}}
        for name, given in bounds.items():
            job["questions"][name]["contributions"] = given
    return job


def blocks_alone(prepared: Any, name: str) -> list[Any]:
    """Return the records that a run of this question alone reads."""
    job = prepared.job.jobs[name]
    preparation = job.input.preparation()
    path, columns, own = job.input.path, job.input.columns, (job.unit, job.order)
    source = open_source(path, columns, *own, preparation=preparation, groups=job.group_keys)
    number = list(prepared.job.jobs).index(name)
    if prepared.bounding is not None and job.bounds is not None:
        bounding = Bounding.of(source, job.grid, "one", prepared.salt, job.checks > 0)
        bounds = (job.bounds.groups, job.bounds.rows)
        return list(bound_in_memory(source, Contributing.of(source, bounding, *bounds)))
    if prepared.bounding is not None:
        return list(bound_in_memory(source, prepared.bounding.bounds[number]))
    reader = Reader.of(source, job.grid, job.checks > 0)
    parts = [part for file in source.files for part in list_row_groups(file)]
    return [block for part in parts for block in reader.blocks(part)]


MODES = {
    "one_thread": {"direct_num_workers": 1, "direct_running_mode": "in_memory"},
    "two_processes": {"direct_num_workers": 2, "direct_running_mode": "multi_processing"},
}


PREPARED = {"where": "y > 0.4 or halved < 0.1", "derive": {"halved": "x / 2", "late": "t > 50"}}


@pytest.mark.parametrize(
    ("mode", "units", "rows"),
    [
        *(("one_thread", units, rows) for units in (False, True) for rows in ({}, PREPARED)),
        ("two_processes", False, PREPARED),
        ("two_processes", True, {}),
    ],
)
def test_each_question_has_the_aggregates_of_a_run_of_its_own(
    several: dict[str, Any], tmp_path: Path, mode: str, units: bool, rows: dict[str, Any]
) -> None:
    several["input"] |= rows
    with_groups(with_units(several) if units else several)
    if rows:
        several["questions"]["sparse"]["columns"] = ["halved"]
        late = {"columns": ["late", "city"], "keys": {"late": [True], "city": ["a", "c"]}}
        several["questions"]["by_kind"]["group_by"] = late
    assert_as_alone(several, tmp_path, **MODES[mode])


GRAPHS: dict[str, dict[str, Any]] = {
    name: {"task": name, "columns": ["x", "y"], "domain": SQUARE | {"step": 2.0**-4}, "params": {}}
    for name in ("triangles", "mst_cost")
}
GRAPHS["mst_cost"] |= {
    "columns": ["x", "y", "t"],
    "domain": {"lower": [0, 0, 0], "upper": [1, 1, 1], "step": 2.0**-4},
}


@pytest.mark.parametrize("room", [0, 10_000, 30_000, 60_000, 1 << 30])
@pytest.mark.parametrize("threads", [1, 2])
def test_questions_that_take_steps_of_their_own_have_all_rows(
    several: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, threads: int, room: int
) -> None:
    """However many blocks find room on the disk for temporary files, in whatever order they come.

    Strands with an examination read the rows in passes of their own, of which the others know nothing.
    """
    monkeypatch.setattr(read_once, "room", lambda: room)
    kept: list[object] = []
    real = read_once.stored
    monkeypatch.setattr(read_once, "stored", lambda *args: kept.append(args) or real(*args))
    with_groups(several)["questions"] = {**GRAPHS, **several["questions"]}
    assert_as_alone(several, tmp_path, direct_num_workers=threads, direct_running_mode="multi_threading")
    assert bool(kept), "the test is not of blocks that are kept"


def assert_as_alone(several: dict[str, Any], tmp_path: Path, **options: Any) -> None:
    """Assert that each question has the aggregates of a run of its own in memory."""
    job = check_several(several)
    prepared = prepare_questions(job, "FnApiRunner", [], None)
    strands = [
        Strand(tuple(map(Recorded, strand.rounds)), Trace((), strand.start)) for strand in prepared.strands
    ]
    output = tmp_path / "states"
    output.mkdir()

    def keep(last: tuple[int, object]) -> None:
        with (output / str(last[0])).open("xb") as file:
            pickle.dump(last[1], file)

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **options)) as pipeline:
        elements, records = read_records(
            prepared, pipeline | ReadBlocks(next(iter(prepared.sources.values())))
        )
        elements | RunStrands(strands, NOISELESS, records) | beam.Map(keep)
    for number, name in enumerate(job.jobs):
        got = pickle.loads((output / str(number)).read_bytes())
        blocks = blocks_alone(prepared, name)
        expected = run_in_memory(strands[number].rounds, blocks, strands[number].start, NOISELESS)
        assert len(got.aggregates) == len(expected.aggregates) > 0
        for ours, theirs in zip(got.aggregates, expected.aggregates, strict=True):
            assert repr(ours) == repr(theirs)
        assert repr(got.state) == repr(expected.state)
        if prepared.job.jobs[name].checks and name in ("spot", "sparse"):
            assert got.state.left_out[0] > 0 or job.unit
        if name == "by_city":
            labels = np.concatenate([block.labels[block.groups] for block in blocks])
            assert set(labels) == {b'["a"]', b'["b"]', b'["c"]'}


def write(bench: Bench, job: dict[str, Any]) -> str:
    return bench.write(json.dumps(job))  # JSON is YAML


def test_one_release_has_all_answers(bench: Bench, several: dict[str, Any]) -> None:

    result = bench.shoal("run", write(bench, several))
    assert result.exit_code == 0, result.stderr
    for name in QUESTIONS:
        assert f"{name}:\n" in result.stdout
    release, out = bench.release(), bench.folder / "out"
    assert list(release)[:4] == ["schema", "task", "run_id", "outcome"]
    assert list(release["answers"]) == list(QUESTIONS)
    assert {file.name for file in out.iterdir()} == {
        "release.json", "report.html", "cells.parquet", "sparse.parquet",
    }  # fmt: skip
    alone = bench.changed({"output": str(bench.folder / "alone"), "input.checks": 0.01})
    assert bench.shoal("run", bench.write(alone)).exit_code == 0
    own = bench.release("alone")
    shared = {"schema", "run_id", "job", "software"}
    assert set(release["answers"]["spot"]) == set(own) - shared
    assert release["privacy"]["spent"] <= 2.0
    assert release["privacy"]["factor"] >= 1.0
    draws = [draw for answer in release["answers"].values() for draw in answer["mechanisms"]]
    assert len(draws) > 20
    parts = [answer["privacy"]["epsilon"] for answer in release["answers"].values()]
    assert sum(parts) == pytest.approx(2.0 * release["privacy"]["factor"])
    for name in ("cells", "sparse"):
        (table,) = release["answers"][name]["table"]
        stored = pq.read_table(out / table["name"])
        assert table["rows"] == len(stored)
        inside = json.loads(pq.read_schema(out / table["name"]).metadata[b"release"])
        assert {**inside["answer"], "table": [table]} == release["answers"][name]
        assert inside["question"] == name and inside["job"] == release["job"]
    page = (out / "report.html").read_text()
    for name in QUESTIONS:
        assert f'<a href="#{name}">' in page and f'<article id="{name}">' in page
    assert "all cells are in cells.parquet" in page and "result.parquet" not in page
    (out / "report.html").unlink()
    bench.rows.unlink()  # the stored release is returned, and no row is read
    again = bench.shoal("run", write(bench, several))
    assert again.exit_code == 0 and bench.release() == release
    assert (out / "report.html").read_text() == page
    assert bench.shoal("report", str(out)).exit_code == 0
    assert (out / "report.html").read_text() == page


def test_units_run_too(bench: Bench, several: dict[str, Any]) -> None:
    result = bench.shoal("run", write(bench, with_units(several)))
    assert result.exit_code == 0, result.stderr
    answers = bench.release()["answers"]
    assert [answer["privacy"]["keep"] for answer in answers.values()] == [
        "one",
        "one",
        "mean",
        "last",
        "max",
        "one",
    ]
    assert {answer["privacy"]["unit"] for answer in answers.values()} == {"who"}


def test_statistics_by_group_stand_beside_other_questions(bench: Bench, several: dict[str, Any]) -> None:
    """Three cities of a thousand units or more, whose counts have noise of some tens."""
    several["privacy"]["epsilon"] = 40.0
    several["questions"] = {name: QUESTIONS[name] for name in ("spot", "spend")}
    several["input"]["unit"] = "who"
    with_groups(several)
    shown = bench.shoal("plan", write(bench, several))
    assert shown.exit_code == 0 and "A group in which at least" in shown.stdout, shown.stderr
    result = bench.shoal("run", write(bench, several))
    assert result.exit_code == 0, result.stderr
    release, out = bench.release(), bench.folder / "out"
    answer = release["answers"]["by_city"]
    assert answer["contributions"] == {"groups": 2, "rows": 2, "clamp": "row"}
    assert answer["privacy"]["keep"] is None
    assert answer["group_by"] == {"columns": ["city"], "public_keys": None, "truncate": {}}
    assert {name: len(pq.read_table(out / f"{name}.parquet")) for name in ("by_city", "by_kind")} == {
        "by_city": 3,
        "by_kind": 6,
    }
    rows = pq.read_table(bench.rows)
    owned = rows.group_by(["who", "city"]).aggregate([([], "count_all")]).column("count_all").to_pylist()
    most = sum(min(each, 2) for each in owned)  # a unit with rows in three cities keeps two of them
    table = pq.read_table(out / "by_city.parquet")
    assert table.column("city").to_pylist() == ["a", "b", "c"]
    assert 0.7 * most < sum(table.column("count").to_pylist()) < most + 100
    assert np.abs(table.column("mean").to_numpy() - np.mean(rows["y"].to_numpy())).max() < 0.1
    whole = {value["measure"]: value for value in release["answers"]["whole"]["result"]["values"]}
    assert whole["count"]["value"] > 100 and release["answers"]["spend"]["outcome"] == "released"
    assert 0 < release["privacy"]["spent"] <= 40.0
    page = (out / "report.html").read_text()
    assert "all groups are in by_city.parquet" in page and "rows of any one group is within" in page


@pytest.mark.parametrize("accountant", ["basic", "renyi"])
def test_the_ledger_is_charged_once_for_all_draws(
    bench: Bench, several: dict[str, Any], accountant: str
) -> None:
    ledger = str(bench.folder / "books" / "ledger.json")
    create_ledger(
        ledger, new_ledger({"neighbors": "add_or_remove_one", "epsilon": 2.5, "delta": 1e-5}, accountant)
    )
    several["privacy"]["ledger"] = ledger
    dry = bench.shoal("run", write(bench, several), "--dry-run")
    assert dry.exit_code == 0 and "would start" in dry.stdout and not read_ledger(ledger).charges
    for _ in range(2):
        assert bench.shoal("run", write(bench, several)).exit_code == 0
    (entry,) = read_ledger(ledger).charges
    assert (entry.epsilon, entry.delta, entry.task) == (2.0, 1e-6, "questions")
    assert entry.release is not None
    answers = bench.release()["answers"].values()
    costs = [(d["epsilon"], d["delta"], d["rho"]) for answer in answers for d in answer["mechanisms"]]
    assert list(entry.draws) == costs
    planned = json.loads(bench.shoal("plan", "--json", write(bench, several)).stdout)
    assert planned["ledger"]["charged"] is True
    several |= {"run_id": "second", "output": str(bench.folder / "second")}
    for more in (["--dry-run"], []):
        refused = bench.shoal("run", write(bench, several), *more)
        assert refused.exit_code == 3 and "Nothing was charged" in refused.stderr
    assert not (bench.folder / "second" / "release.json").exists()


def test_a_plan_shows_each_question(bench: Bench, several: dict[str, Any]) -> None:
    shown = bench.shoal("plan", write(bench, several))
    assert shown.exit_code == 0, shown.stderr
    assert "shared by 6 questions" in shown.stdout
    for name in QUESTIONS:
        assert f"\n{name} " in shown.stdout
    planned = json.loads(bench.shoal("plan", "--json", write(bench, several)).stdout)
    assert list(planned["questions"]) == list(QUESTIONS)
    assert planned["questions"]["spot"]["share"] == 2
    assert planned["privacy"]["spent"] <= 2.0


def test_every_question_samples_with_a_secret_of_its_own(
    several: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    used: dict[str, bytes] = {}
    monkeypatch.setattr(
        joint_run,
        "make_joint_plan",
        lambda job, salts: used.update(salts) or make_joint_plan(job, salts),
    )
    prepared = prepare_questions(check_several(several), "FnApiRunner", [], None)
    assert set(used) == set(QUESTIONS)
    assert len({*used.values(), prepared.salt}) == len(QUESTIONS) + 1
    assert all(len(salt) == 16 for salt in used.values())


def test_units_are_told_apart_by_a_secret_of_each_run(several: dict[str, Any]) -> None:
    salts = [prepare_questions(check_several(several), "FnApiRunner", [], now).salt for _ in range(3)]
    assert len(set(salts)) == 3 and {len(salt) for salt in salts} == {16}


def test_the_spend_is_recomputed_from_the_rounds(several: dict[str, Any]) -> None:
    job = check_several(several)
    plan = make_joint_plan(job, {name: bytes(16) for name in job.jobs})
    check_joint_spend(plan, job.privacy.budget())
    with pytest.raises(JobError, match=r"^privacy.epsilon is 1.9: the planned noise of all questions would"):
        check_joint_spend(plan, Budget(1.9, 1e-6))
    for name, (own, its) in questions_of(job, plan).items():
        assert spend(its.mechanisms, own.privacy.delta).epsilon <= own.privacy.epsilon * 1.001, name


def test_a_stored_table_stays_and_other_noise_is_refused(bench: Bench, several: dict[str, Any]) -> None:
    job = load_job(write(bench, several))
    plan = make_joint_plan(job, {name: bytes(16) for name in job.jobs})
    draft, folder = draft_joint_release(job, plan), open_folder(job.output)
    prepared = prepare_questions(job, "FnApiRunner", [], None)
    number = list(QUESTIONS).index("cells")
    rounds = prepared.strands[number]
    blocks = blocks_alone(prepared, "cells")
    states = [run_in_memory(rounds.rounds, blocks, rounds.start, joint_run.SecureNoise()) for _ in range(2)]
    first = write_answer(folder, draft, "cells", states[0])
    stored = (bench.folder / "out" / "cells.parquet").read_bytes()
    assert write_answer(folder, draft, "cells", states[1]) == first
    for epsilon, code in ((1.0, 2), (2.0, 0)):
        several["privacy"]["epsilon"] = epsilon
        dry = bench.shoal("run", write(bench, several), "--dry-run")
        assert dry.exit_code == code and ("is of another job" in dry.stderr) == (code == 2)
    assert run_job(job) is not None  # the next attempt keeps the table of the first
    assert bench.release()["answers"]["cells"] == json.loads(json.dumps(first))
    assert (bench.folder / "out" / "cells.parquet").read_bytes() == stored
    several["privacy"]["epsilon"] = 1.0
    other = check_several(several)
    less = make_joint_plan(other, {name: bytes(16) for name in other.jobs})
    noisier = draft_joint_release(other, less)
    with pytest.raises(JobError, match="is of another job"):
        write_answer(folder, noisier, "cells", states[0])
    with pytest.raises(JobError, match="is of another job"):
        check_stored(folder, noisier)
    check_stored(folder, draft)
    noisier.whole["job"] = draft.whole["job"]
    with pytest.raises(JobError, match="planned other noise"):
        write_answer(folder, noisier, "cells", states[0])


NEAR: dict[str, dict[str, Any]] = {
    "cells": {**QUESTIONS["cells"], "params": {"cells": [4, 4]}},
    "spread": {"task": "cdf", "columns": ["y"], "domain": LINE, "params": {}},
    "mean": {"task": "statistics", "columns": ["x"], "domain": LINE, "params": {"measures": ["mean"]}},
}


def test_one_policy_is_that_of_every_question(bench: Bench, several: dict[str, Any]) -> None:
    """A row may be replaced by one that is near in every question; whoever asks without it gets less."""
    several["questions"] = copy.deepcopy(NEAR)
    several["privacy"] |= {"neighbors": "replace_one", "epsilon": 4.0}
    full = check_several(several)
    several["privacy"]["policy"] = {"distance": 2.0**-8}
    job = check_several(several)
    plans = [make_joint_plan(each, {name: bytes(16) for name in each.jobs}) for each in (full, job)]
    errors = [
        {name: its.chosen.errors[its.method] for name, its in questions.plans.items()} for questions in plans
    ]
    assert errors[1]["spread"] < errors[0]["spread"] / 2 and errors[1]["mean"] < errors[0]["mean"] / 50
    assert [its.policy is None for its in plans[1].plans.values()] == [True, False, False]
    assert plans[0].policy is None and plans[1].policy is not None
    for name, (own, its) in questions_of(job, plans[1]).items():
        alone = make_plan(own, bytes(16))
        assert repr(alone.rounds) == repr(its.rounds), name
    result = bench.shoal("run", write(bench, several))
    assert result.exit_code == 0, result.stderr
    release = bench.release()
    assert "in every question has an equal value or forms a secret pair" in release["privacy"]["hides"]
    assert release["privacy"]["policy"]["distance"] == 2.0**-8
    hidden = {name: "secret pair" in each["privacy"]["hides"] for name, each in release["answers"].items()}
    assert hidden == {"cells": False, "spread": True, "mean": True}
    assert "secret pair" in (bench.folder / "out" / "report.html").read_text()


def test_a_policy_of_questions_has_no_ledger_unless_it_has_no_effect(
    bench: Bench, several: dict[str, Any]
) -> None:
    ledger = str(bench.folder / "ledger.json")
    create_ledger(ledger, new_ledger({"neighbors": "replace_one", "epsilon": 9.0, "delta": 1e-4}, "basic"))
    several["questions"] = copy.deepcopy(NEAR)
    several["privacy"] |= {
        "neighbors": "replace_one",
        "policy": {"distance": 2.0**-8},
        "ledger": ledger,
    }
    refused = bench.shoal("run", write(bench, several))
    assert refused.exit_code == 3 and not read_ledger(ledger).charges
    assert "each question of the job has secret pairs of its own: run it without a ledger" in refused.stderr
    several["questions"] = {"cells": NEAR["cells"]}
    assert bench.shoal("run", write(bench, several)).exit_code == 0
    assert len(read_ledger(ledger).charges) == 1


def test_the_hash_is_of_all_questions(several: dict[str, Any]) -> None:
    def run_id(change: Any) -> str:
        job = copy.deepcopy(several)
        change(job)
        return str(check_several(job).run_id)

    questions = several["questions"]
    same = run_id(lambda job: None)
    assert same == run_id(lambda job: job.update(questions=dict(reversed(questions.items()))))
    others = {
        run_id(lambda job: job["questions"]["spot"].update(share=3)),
        run_id(lambda job: job["questions"].pop("cells")),
        run_id(lambda job: job["privacy"].update(epsilon=1.5)),
        run_id(lambda job: job["questions"]["wide"].update(domain=LINE)),
        run_id(lambda job: job["questions"].update(spot2=job["questions"].pop("spot"))),
    }
    assert len(others | {same}) == 6


def test_the_schema_has_questions() -> None:
    text = json.dumps(schema())
    assert "Job of several questions" in text
    assert all(f"Question of {task}" in text for task in question_tasks())


SPOT = "questions.spot"

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no questions": ({"questions": {}}, "questions is {}"),
    "a list": ({"questions": [1]}, "questions is [1]"),
    "a name": ({"questions.a/b": QUESTIONS["cells"]}, "questions has the name 'a/b'"),
    "a name that is taken": ({"questions.Result": QUESTIONS["cells"]}, "questions.Result has the name"),
    "names by case": ({"questions.Spot": QUESTIONS["cells"]}, "questions has spot and Spot"),
    "a task beside": ({"task": "histogram"}, "task is not a key of a job with questions"),
    "columns beside": ({"input.columns": ["x"]}, "input.columns is given beside questions"),
    "no task": ({f"{SPOT}.task": ...}, f"{SPOT}.task is missing"),
    "an unknown task": ({f"{SPOT}.task": "mode"}, f"{SPOT}.task is 'mode'"),
    "a function": (
        {f"{SPOT}.task": "sample_and_aggregate"},
        f"{SPOT}.task is sample_and_aggregate, which",
    ),
    "a wide axis of floats": (
        {"questions.wide.columns": ["y"], "questions.wide.domain.upper": [2**60]},
        "questions.wide.columns: y does not contain integers, and the bounds",
    ),
    "no columns": ({f"{SPOT}.columns": ...}, f"{SPOT}.columns is missing"),
    "too few columns": (
        {f"{SPOT}.columns": ["x"]},
        f"{SPOT}.columns has 1 columns and {SPOT}.domain.lower 2",
    ),
    "a column that is missing": (
        {f"{SPOT}.columns": ["x", "q"]},
        f"{SPOT}.columns: q is missing from",
    ),
    "an unknown key": ({f"{SPOT}.target": 3}, f"{SPOT}.target is not a known key"),
    "an unknown parameter": ({f"{SPOT}.params.k": 3}, f"{SPOT}.params.k is not a known key"),
    "no parameters": ({f"{SPOT}.params": ...}, f"{SPOT}.params is missing"),
    "a parameter": ({f"{SPOT}.params.target": "many"}, f"{SPOT}.params.target is 'many'"),
    "a step": ({f"{SPOT}.domain.step": -1.0}, f"{SPOT}.domain.step is -1.0"),
    "a share": ({f"{SPOT}.share": 0}, f"{SPOT}.share is 0"),
    "a small share": (
        {f"{SPOT}.share": 1e-6, "questions.cells.share": 1e6},
        f"{SPOT}.share gives it epsilon",
    ),
    "checks": ({f"{SPOT}.checks": 0.9}, f"{SPOT}.checks is 0.9"),
    "keep without a unit": ({f"{SPOT}.keep": "mean"}, f"{SPOT}.keep is mean, but there is no input.unit"),
    "a graph with a unit": (
        {"input.unit": "who", "questions.g": {"task": "triangles", "columns": ["x", "y"], "domain": SQUARE}},
        "input.unit is who: triangles",
    ),
    "two orders": (
        {
            "input.unit": "who",
            f"{SPOT}.keep": "last",
            f"{SPOT}.order": "t",
            "questions.cells.keep": "last",
            "questions.cells.order": "z",
        },
        "questions.cells.order is z, but questions.spot.order is t",
    ),
    "parts": ({"questions.sparse.params.parts": 3}, "questions.sparse asks for a table in parts"),
    "parts of groups": (
        {"questions.by_city": GROUPED["by_city"], "questions.by_city.params.parts": 3},
        "questions.by_city asks for a table in parts",
    ),
    "a key of floats": (
        {"questions.by_city": GROUPED["by_city"], "questions.by_city.group_by.columns": ["x"]},
        "questions.by_city.group_by.columns: x is double in part.parquet; keys are",
    ),
    "keys twice": (
        {"questions.by_city": GROUPED["by_city"], "questions.by_city.group_by.keys": ["a", "a"]},
        'questions.by_city.group_by.keys has ["a"] twice',
    ),
    "groups without contributions": (
        {"input.unit": "who", "questions.by_city": GROUPED["by_city"]},
        "input.unit is who and questions.by_city.group_by is given: give contributions",
    ),
    "contributions without a unit": (
        {"questions.by_city": GROUPED["by_city"], "questions.by_city.contributions": {"rows": 2}},
        "questions.by_city.contributions is given, but there is no input.unit",
    ),
    "contributions and keep": (
        {
            "input.unit": "who",
            "questions.whole": GROUPED["whole"],
            "questions.whole.contributions": {"rows": 2},
            "questions.whole.keep": "one",
        },
        "questions.whole.keep is one and questions.whole.contributions is given",
    ),
    "private keys without delta": (
        {"questions": {"by_city": GROUPED["by_city"]}, "privacy.delta": 0.0},
        "questions.by_city: privacy.delta is 0",
    ),
    "a policy of points": (
        {
            "privacy.neighbors": "replace_one",
            "privacy.policy": {"graph": [[[0.0], [0.5]]]},
        },
        "privacy.policy.graph is given beside questions: it is about points of one domain",
    ),
    "known counts": (
        {
            "privacy.neighbors": "replace_one",
            "privacy.policy": {
                "secrets": "full",
                "constraints": [{"lower": [0.0], "upper": [0.5], "count": 3}],
            },
        },
        "privacy.policy.constraints is given beside questions: it is about points of one domain",
    ),
    "a policy of other columns": (
        {
            "questions": {"spend": QUESTIONS["spend"], "cells": QUESTIONS["cells"]},
            "privacy.neighbors": "replace_one",
            "privacy.policy": {"partition": [0.25]},
        },
        "questions.cells: privacy.policy.partition has 1 widths for 2 axes",
    ),
    "a policy and groups": (
        {
            "questions": {"spend": {**QUESTIONS["spend"], "group_by": {"columns": ["city"], "keys": ["a"]}}},
            "privacy.neighbors": "replace_one",
            "privacy.policy": {"distance": 0.25},
        },
        "questions.spend: privacy.policy and group_by are given",
    ),
    "a policy and a unit": (
        {
            "questions": {"spend": QUESTIONS["spend"]},
            "input.unit": "who",
            "privacy.neighbors": "replace_one",
            "privacy.policy": {"distance": 0.25},
        },
        "input.unit is who and privacy.policy is given",
    ),
    "an epsilon": ({"privacy.epsilon": -1.0}, "privacy.epsilon is -1.0"),
    "no delta": (
        {"privacy.delta": 0.0},
        "questions.spot: privacy.delta is 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(bench: Bench, several: dict[str, Any], refused: Any, name: str) -> None:
    changes, expected = BAD[name]
    for key, value in changes.items():
        *parents, last = key.split(".")
        part = several
        for parent in parents:
            part = part[parent]
        part.pop(last, None) if value is ... else part.__setitem__(last, copy.deepcopy(value))
    said = refused(bench.shoal("run", write(bench, several)))
    assert expected in said


@pytest.mark.parametrize("table", [False, True])
def test_output_ledger_and_input_are_apart(
    bench: Bench, several: dict[str, Any], refused: Any, table: bool
) -> None:
    place = str(bench.folder / ("out/cells.parquet" if table else "rows/ledger.json"))
    several["privacy"]["ledger"] = place
    said = refused(bench.shoal("run", write(bench, several)))
    wrong = "a run writes a file of this name to its output" if table else "it lies in input.path"
    assert f"privacy.ledger is {place}: {wrong}" in said


@pytest.mark.slow
def test_every_task_of_rows_can_be_a_question(bench: Bench, several: dict[str, Any]) -> None:
    questions = {}
    for task in question_tasks():
        job = bench.changed(changes(task) | {"input.checks": ...})
        own = {"columns": job["input"]["columns"]} | {key: job[key] for key in ("task", "domain", "params")}
        questions[f"{task}.1"] = own
    table = pq.read_table(bench.rows)
    pq.write_table(table.append_column("w", table.column("y")), bench.rows)
    several |= {"questions": questions, "privacy": {"epsilon": 20.0, "delta": 1e-4}}
    result = bench.shoal("run", write(bench, several))
    assert result.exit_code == 0, result.stderr
    answers = bench.release()["answers"]
    assert [answer["task"] for answer in answers.values()] == question_tasks()
    assert [name for name, answer in answers.items() if answer["outcome"] != "released"] == []


def test_graphs_are_questions_of_their_own_steps(bench: Bench, several: dict[str, Any]) -> None:
    edges = {"task": "triangles", "columns": ["x", "y"], "domain": {**SQUARE, "step": 2.0**-4}, "checks": 0.0}
    several["questions"] = {"a": edges, "cells": QUESTIONS["cells"], "b": edges}
    result = bench.shoal("run", write(bench, several))
    assert result.exit_code == 0, result.stderr
    assert {name: answer["task"] for name, answer in bench.release()["answers"].items()} == {
        "a": "triangles", "cells": "histogram", "b": "triangles",
    }  # fmt: skip


def test_a_job_of_one_question_keeps_its_hash(bench: Bench) -> None:
    """The hash of this job was the same before there were jobs of several questions."""
    job = {**bench.job, "output": "/nowhere/out"}
    job["input"] = {**job["input"], "path": "/nowhere/rows"}
    assert check_job(job).hash() == "80b9dc919aeb8b160abb65c99f0eb012257b1a7a9ed8cd7367302aa8aec705c8"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("check-function",), "task is questions: only sample_and_aggregate has a function"),
        (
            ("ledger", "create", "books.json", "--epsilon", "1", "--delta", "0", "--policy"),
            "--policy is a job without privacy.policy",
        ),
    ],
)
def test_commands_for_one_question_refuse_in_a_sentence(
    bench: Bench, several: dict[str, Any], refused: Any, command: tuple[str, ...], says: str
) -> None:
    assert says in refused(bench.shoal(*command, write(bench, several)))
