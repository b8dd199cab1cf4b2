"""`where`, `derive` and `join` from the job file to the release, for every task."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.job.job import check_job
from pipelines.job.schema import schema
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from pipelines.report.report import render
from pipelines.tasks import TASKS
from tests.pipelines.conftest import planted
from tests.pipelines.jobs import changes
from tests.pipelines.test_element_counts import elements

N = 4000

WHERE = {
    "input.where": "kind in ['a', 'b'] and not (hour(when) < 6)",
    "input.derive": {"x": "raw_x / 4", "`y` is no name": "raw_x"},
}


@pytest.fixture
def bench(bench):
    """Rows of which a part is asked for, and whose x is four times too large."""
    rng = np.random.default_rng(5)
    x, y = planted(N).T
    columns = {
        "raw_x": 4 * x,
        "y": y,
        "w": rng.random(N),
        "kind": rng.choice(["a", "b", "c"], N),
        "when": pa.array(rng.integers(0, 10**15, N), pa.timestamp("us")),
        "who": [f"person {i}" for i in rng.integers(0, 1500, N)],
    }
    pq.write_table(pa.table(columns), bench.rows, row_group_size=900)
    return bench


def filtered(bench: Any, folder: str) -> str:
    """Write the file that the preparation of `WHERE` makes of the rows; return its folder."""
    rows = pq.read_table(bench.rows)
    hours = np.array([when.hour for when in rows["when"].to_pylist()])
    rows = rows.filter(pa.array(np.isin(rows["kind"].to_pylist(), ["a", "b"]) & (hours >= 6)))
    path = bench.folder / folder / "part.parquet"
    path.parent.mkdir()
    table = {"x": rows["raw_x"].to_numpy() / 4, "y": rows["y"], "w": rows["w"], "who": rows["who"]}
    pq.write_table(pa.table(table), path)
    return str(path.parent)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_runs_on_prepared_rows(bench, task: str) -> None:
    given = {**changes(task), **WHERE, "privacy.epsilon": 5.0}
    result = bench.run(given)
    assert result.exit_code == 0, result.output
    release = bench.release()
    assert release["rows"] == {"where": WHERE["input.where"], "derive": WHERE["input.derive"]}
    assert any(
        note.startswith("Only rows for which input.where is true are used: kind in")
        for note in release["notes"]
    )
    assert "kind in [&#39;a&#39;, &#39;b&#39;]" in render(release, None)


def test_what_is_counted_are_the_rows_that_are_asked_for(bench) -> None:
    """Noise of scale 1/20 on a total strays by more than 100 with probability e^-2000."""
    given = {**changes("histogram"), "privacy.epsilon": 20.0}
    assert bench.run({**given, **WHERE, "input.checks": 0.5}).exit_code == 0
    release = bench.release()
    rows = pq.read_metadata(Path(filtered(bench, "filtered")) / "part.parquet").num_rows
    assert release["result"]["total"] == pytest.approx(rows, abs=100)
    assert 1000 < rows < N - 1000
    assert release["checks"]["left_out"] == [pytest.approx(0, abs=50)] * 2


def test_the_plan_needs_no_file_and_says_what_is_prepared(bench) -> None:
    bench.rows.unlink()
    plan = bench.shoal("plan", bench.write(bench.changed({**WHERE})), "--json")
    assert plan.exit_code == 0, plan.output
    described = json.loads(plan.stdout)
    assert described["rows"]["where"] == WHERE["input.where"]
    assert "x = raw_x / 4" in " ".join(described["notes"])


ROWS_JOB: dict[str, Any] = {
    "task": "one_cluster",
    "input": {"path": "/data/rows", "columns": ["x", "y"]},
    "domain": {"lower": [0, 0], "upper": [1, 1], "step": 0.001},
    "privacy": {"epsilon": 1.0, "delta": 1e-6},
    "params": {"target": 1500},
    "output": "/data/out",
}
FUNCTION_JOB: dict[str, Any] = {
    **{key: ROWS_JOB[key] for key in ("input", "privacy", "output")},
    "task": "sample_and_aggregate",
    "params": {
        "function": "shoal.analyses.association:correlation",
        "blocks": 100,
        "outputs": {"lower": [-1], "upper": [1], "step": 0.001},
    },
}


@pytest.mark.parametrize(
    ("job", "run_id"), [(ROWS_JOB, "4255eb1c859dbcd5"), (FUNCTION_JOB, "d6cd6c83c8cddff3")]
)
def test_jobs_without_preparation_keep_their_hash(job: dict[str, Any], run_id: str) -> None:
    """These ids are those of the version before there was a preparation."""
    assert check_job(job).run_id == run_id


def test_every_part_of_the_preparation_is_a_part_of_the_hash(bench) -> None:
    given: list[dict[str, Any]] = [
        {},
        {"input.where": "x > 1"},
        {"input.where": "x > 2"},
        {"input.derive": {"z": "x"}},
        {"input.derive": {"z": "y"}},
        {"input.join": {"path": "/public/t.parquet", "on": "k"}},
        {"input.join": {"path": "/public/t.parquet", "on": "k", "columns": ["c"]}},
    ]
    assert len({check_job(bench.changed(each)).hash() for each in given}) == len(given)


def test_the_schema_has_the_preparation() -> None:
    described = json.dumps(schema())
    for name in ("where", "derive", "join"):
        assert f'"{name}"' in described


LEDGER: dict[str, Any] = {"input.unit": "who", "input.derive": {"who": "lower(name)"}}

WRONG = [
    ({"input.where": "x >"}, "input.where: it cannot be read as an expression"),
    ({"input.where": "sum(x) > 1"}, "input.where: it calls sum, but an expression sees one row"),
    ({"input.where": "1 == 1"}, "input.where: it names no column"),
    ({"input.where": "x.__class__ == 1"}, "input.where: it has a part that the language does not have"),
    ({"input.where": 5}, "input.where is 5: it must be text"),
    ({"input.where": "contry == 'a'"}, "input.where, for part.parquet: it names the column contry"),
    ({"input.where": "kind > 1"}, "input.where, for part.parquet: > takes values of one kind"),
    (
        {"input.where": "raw_x + 1"},
        "input.where, for part.parquet: it gives a number, but must be true or false",
    ),
    ({"input.derive": {"z": "mean(x)"}}, "input.derive.z: it calls mean, but an expression sees one row"),
    ({"input.derive": {"z": "kind + 1"}}, "input.derive.z, for part.parquet: + takes numbers"),
    ({"input.derive": {"y": "raw_x"}}, "input.derive.y: part.parquet has a column y, too"),
    ({"input.derive": {"": "raw_x"}}, "input.derive has a column without a name"),
    ({"input.derive": {"z": 5}}, "input.derive.z is 5: it must be text"),
    ({"input.derive": {}}, "input.derive has 0 columns: give 1 to 100"),
    ({"input.derive": "x"}, "input.derive is 'x': it must be a mapping"),
    ({"input.join": {"path": "", "on": "kind"}}, "input.join has an empty path or an empty key"),
    ({"input.join": {"path": "a.parquet"}}, "input.join.on is missing"),
    ({"input.join": {"path": "a", "on": "k", "columns": ["k"]}}, "input.join.columns is ['k']"),
    (
        {"input.join": {"path": "/nowhere/t.parquet", "on": "kind"}},
        "input.join.path: t.parquet does not exist",
    ),
    (
        {"input.join": {"path": "ftp://a/t.parquet", "on": "kind"}},
        "input.join.path ftp://a/t.parquet has a scheme that is not",
    ),
    (
        {"input.where": "raw_x > 1", "privacy.neighbors": "replace_one"},
        "input.where is given and privacy.neighbors is replace_one",
    ),
    (
        {"input.derive": {"z": "if(y > 0.5, raw_x, null)"}, "privacy.neighbors": "replace_one"},
        "input.derive is given and privacy.neighbors is replace_one",
    ),
    (
        {"input.join": {"path": "t.parquet", "on": "kind"}, "privacy.neighbors": "replace_one"},
        "input.join is given and privacy.neighbors is replace_one",
    ),
    (
        {
            **changes("histogram"),
            "input.derive": {"x": "raw_x"},
            "privacy.neighbors": "replace_one",
            "privacy.policy": {"distance": 0.5},
        },
        "privacy.policy is about the values of columns of the input, so leave out input.derive",
    ),
    (
        {
            **changes("mst_cost"),
            "input.columns": ["raw_x", "y", "w"],
            "input.where": "w > 0.5",
            "params": {"change": "weight"},
        },
        "params.change is weight: which edges there are is public",
    ),
    ({**LEDGER, "privacy.ledger": "/ledger.json"}, "input.unit is who and privacy.ledger is given"),
    (
        {"input.unit": "u", "input.join": {"path": "t", "on": "k"}, "privacy.ledger": "/ledger.json"},
        "input.unit is u and privacy.ledger is given",
    ),
]


@pytest.mark.parametrize(("given", "says"), WRONG)
def test_a_wrong_preparation_is_refused_in_one_sentence(
    bench, refused, given: dict[str, Any], says: str
) -> None:
    columns = {} if "input.columns" in given or "input.derive" in given else {"input.columns": ["raw_x", "y"]}
    assert says in refused(bench.run({**columns, **given}))


def test_nothing_is_spent_on_an_expression_that_does_not_fit(bench, refused) -> None:
    ledger = bench.folder / "ledger.json"
    create_ledger(str(ledger), Ledger(epsilon=5.0, delta=1e-5))
    given = {"privacy.ledger": str(ledger), "input.derive": {"x": "raw_x > kind"}}
    assert "input.derive.x" in refused(bench.run(given))
    assert not read_ledger(str(ledger)).charges


def test_nothing_is_spent_on_a_day_that_no_folder_has(bench, refused) -> None:
    ledger = str(bench.folder / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=5.0, delta=1e-5))
    (bench.rows.parent / "day=2026-11-03").mkdir()
    bench.rows.rename(bench.rows.parent / "day=2026-11-03" / "part.parquet")
    given = {**changes("histogram"), "input.types": {"day": "date"}, "input.derive": {"x": "raw_x / 4"}}
    given |= {"privacy.ledger": ledger, "input.where": "y > 0 and day == '2026-12-03'"}
    assert "shoal: input.where: no folder below input.path " in refused(bench.run(given))
    assert not read_ledger(ledger).charges
    result = bench.run({**given, "input.where": "y > 0 and day == '2026-11-03'"})
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("task", ["quantiles", "median"])
@pytest.mark.usefixtures("seeded")
def test_quantiles_of_no_rows_say_that_they_say_nothing(bench, task: str) -> None:
    given = {**changes(task), "input.derive": {"x": "raw_x / 4"}, "input.where": "y > 2"}
    result = bench.run(given)
    assert result.exit_code == 0, result.output
    says = "the whole domain, as is usual where there are no rows"
    assert says in result.stdout and says in (bench.folder / "out" / "report.html").read_text()
    assert says not in bench.run({**given, "input.where": "y >= 0", "output": f"{bench.folder}/all"}).stdout


def test_a_joined_table_in_the_input_is_refused(bench, refused) -> None:
    path = bench.rows.parent / "towns.parquet"
    pq.write_table(pa.table({"kind": ["a"], "size": [1]}), path)
    given = {"input.columns": ["raw_x", "y"], "input.join": {"path": str(path), "on": "kind"}}
    assert f"input.join.path is {path}: it lies in input.path" in refused(bench.run(given))


def test_a_function_may_get_prepared_rows_under_replace_one(bench) -> None:
    """How many rows a function gets is not public, so a condition gives nothing away."""
    given = {
        **changes("sample_and_aggregate"),
        **WHERE,
        "privacy.neighbors": "replace_one",
        "privacy.epsilon": 9.0,
    }
    assert bench.run(given).exit_code == 0


@pytest.mark.parametrize(
    ("task", "unit"), [("one_cluster", None), ("cdf", "who"), ("sample_and_aggregate", None)]
)
def test_the_number_of_elements_does_not_depend_on_what_is_kept(bench, task: str, unit: str | None) -> None:
    """Engines publish how many elements pass between steps."""
    given: dict[str, Any] = {"input.unit": unit} if unit else {}
    if task == "sample_and_aggregate":
        given["params.blocks"] = 20
    seen = []
    for least in (-1, 0.5, 2):
        own = {"input.where": f"w > {least}", "output": str(bench.folder / f"above {least}")}
        seen.append(elements(bench, task, 700, **given, **own))
    assert seen[0] == seen[1] == seen[2]


def test_a_joined_column_may_be_an_axis(bench) -> None:
    path = bench.folder / "towns.parquet"
    pq.write_table(pa.table({"kind": ["a", "b"], "size": [0.25, 0.75]}), path)
    given = {
        **changes("median"),
        "input.columns": ["size"],
        "input.join": {"path": str(path), "on": "kind"},
        "input.where": "kind != 'a'",
        "privacy.epsilon": 5.0,
    }
    result = bench.run(given)
    assert result.exit_code == 0, result.output
    assert bench.release()["result"]["value"] == pytest.approx(0.75, abs=0.01)


def test_screening_uses_the_rows_of_the_release(bench) -> None:
    given = {**WHERE, "privacy.epsilon": 5.0, "params.target": 400}
    assert bench.run(given).exit_code == 0
    out = bench.folder / "screened"
    screened = bench.shoal("screen", str(bench.folder / "out"), str(bench.rows.parent), str(out))
    assert screened.exit_code == 0, screened.output
    inside, outside = (pq.read_table(out / side) for side in ("inside", "outside"))
    assert 100 < len(inside) == N - len(outside)
    assert set(inside["kind"].to_pylist()) == {"a", "b"}
    assert min(when.hour for when in inside["when"].to_pylist()) >= 6
    ball = bench.release()["result"]
    x, y = inside["raw_x"].to_numpy() / 4 - ball["center"][0], inside["y"].to_numpy() - ball["center"][1]
    assert np.hypot(x, y).max() <= ball["radius"] + 2.0**-12
    assert "kind in ['a', 'b']" in (out / "README.txt").read_text()


def test_questions_share_one_preparation(bench, refused) -> None:
    """Noise of scale 1/5 on a total strays by more than 100 with probability e^-500."""
    domain = {"lower": [0], "upper": [1], "step": 0.001}
    question = {"task": "histogram", "columns": ["x"], "domain": domain, "params": {"cells": [4]}}
    job = {
        "input": {
            "path": bench.job["input"]["path"],
            "where": WHERE["input.where"],
            "derive": WHERE["input.derive"],
        },
        "privacy": {"epsilon": 20.0, "delta": 1e-6},
        "questions": {"across": question, "up": {**question, "columns": ["y"]}},
        "output": str(bench.folder / "out"),
    }
    wrong = {**job, "input": {**job["input"], "where": "sum(raw_x) > 1"}}
    assert "input.where: it calls sum" in refused(bench.shoal("run", bench.write(json.dumps(wrong))))
    wrong = {**job, "input": {**job["input"], "where": "kind > 1"}}
    assert "input.where, for part.parquet: > takes" in refused(
        bench.shoal("run", bench.write(json.dumps(wrong)))
    )
    result = bench.shoal("run", bench.write(json.dumps(job)))
    assert result.exit_code == 0, result.output
    rows = pq.read_metadata(Path(filtered(bench, "filtered")) / "part.parquet").num_rows
    for answer in bench.release()["answers"].values():
        assert answer["rows"]["where"] == WHERE["input.where"]
        assert answer["result"]["total"] == pytest.approx(rows, abs=100)
