"""Files of other formats than Parquet, from the job file to the release."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.job.job import check_job, check_several
from pipelines.run.run import prepare_run
from tests.transforms.formats import WRITERS
from transforms.open_source import open_source
from transforms.read_blocks import list_row_groups

TYPES = {"input.where": "y > 0.1", "input.types": {"y": "number"}}


@pytest.fixture
def csv(bench: Any) -> str:
    """The rows of the bench as zipped CSV, in folders."""
    folder = bench.folder / "files" / "day=2013-01-31"
    folder.mkdir(parents=True)
    WRITERS[".csv.gz"](pq.read_table(bench.rows), folder / "rows.csv.gz")
    return str(bench.folder / "files")


def test_a_run_reads_csv_and_only_parquet_is_screened(bench: Any, csv: str) -> None:
    assert bench.run({"input.path": csv, **TYPES}).exit_code == 0
    release = bench.release()
    assert release["outcome"] == "released"
    assert release["rows"] == {"where": "y > 0.1", "types": {"y": "number"}}
    screened = bench.shoal("screen", str(bench.folder / "out"), csv, str(bench.folder / "screened"))
    assert (screened.exit_code, screened.stdout) == (2, "")
    assert screened.stderr.endswith(
        "input.path: day=2013-01-31/rows.csv.gz is CSV; only Parquet can be screened.\n"
    )
    whole = bench.shoal("screen", str(bench.folder / "out"), str(bench.rows), str(bench.folder / "screened"))
    assert whole.exit_code == 0, whole.output


def test_a_column_without_a_type_is_refused_before_a_run(bench: Any, csv: str, refused: Any) -> None:
    message = refused(bench.run({"input.path": csv, "input.where": "day > '2012-01-01'"}))
    assert "input.types: day has no type in day=2013-01-31/rows.csv.gz or in the job; give it one" in message
    message = refused(bench.run({"input.types": {"x": "number"}}))
    assert "input.types: x is double in part.parquet" in message


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ({}, "input.types is empty"),
        ({"x": "float"}, "'integer', 'number', 'text', 'boolean', 'date' or 'timestamp'"),
    ],
)
def test_types_that_a_job_cannot_give_are_refused(
    bench: Any, refused: Any, types: Any, expected: str
) -> None:
    message = refused(bench.run({"input.types": types}))
    assert "input.types" in message and expected in message


def asked(folder: Path, path: str, questions: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "input": {"path": path},
        "privacy": {"epsilon": 1.0, "delta": 1e-6},
        "questions": questions,
        "output": str(folder / "out"),
    }


def test_questions_about_csv_share_its_types(bench: Any, csv: str, refused: Any) -> None:
    """One question reads floats; another is about a domain whose points float64 does not hold."""
    narrow = {"task": "median", "columns": ["y"], "domain": {"lower": [0], "upper": [1], "step": 0.01}}
    wide = {"task": "quantiles", "columns": ["y"], "domain": {"lower": [0], "upper": [2**60], "step": 1}}
    wide["params"] = {"probabilities": [0.5]}
    job = asked(bench.folder, csv, {"one": narrow, "two": wide})
    message = refused(bench.shoal("run", bench.write(job)))
    assert "y has no type" in message and "is used as double and as int64; give it one in input" in message
    job["input"]["types"] = {"y": "integer"}
    prepared = prepare_run(check_several(job))
    assert {source.inexact for source in prepared.sources.values()} == {()}


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".avro"])
def test_no_number_of_rows_is_in_a_pipeline(bench: Any, ending: str) -> None:
    rows = pq.read_table(bench.rows)
    found = []
    for number, n in enumerate((0, 1, 4000)):
        WRITERS[ending](rows.slice(0, n), bench.folder / f"{number}{ending}")
        source = open_source(str(bench.folder / f"{number}{ending}"), ["x"])
        parts = list_row_groups(source.files[0])
        found.append([(part.row_group, part.first_row) for part in parts] + [source.row_groups])
    assert found == [[(0, 0), 1]] * 3


def test_the_hash_of_a_job_without_types_is_as_before(bench: Any) -> None:
    job = bench.changed({})
    assert "types" not in check_job(job).model_dump(mode="json")["input"]


def test_a_run_and_its_check_say_what_is_not_read(bench: Any, csv: str) -> None:
    (bench.folder / "files" / "more").symlink_to("day=2013-01-31")
    says = f"shoal: input.path {csv} has what is not read; symbolic links, which are not followed: 1.\n"
    job = {"input.path": csv, **TYPES}
    assert bench.run(job, "--dry-run").stderr == says
    assert bench.run(job).stderr == says
    assert "not read;" not in bench.run(job).stderr  # the stored release is shown, and nothing is listed
    again = {**job, "run_id": "again", "output": str(bench.folder / "again")}
    (event,) = [
        json.loads(line)
        for line in bench.run(again, "--json-logs").stderr.splitlines()
        if '"not_read"' in line
    ]
    assert (event["severity"], event["message"]) == ("WARNING", says.removeprefix("shoal: ").strip())
