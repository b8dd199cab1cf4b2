"""Every wrong job or input: exit code 2, one clear sentence that names the field or file, nothing written."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pipelines.errors import JobError
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from pipelines.storage.folder import StorageError
from pipelines.storage.local_folder import LocalFolder
from tests.pipelines.conftest import write_rows
from tests.pipelines.jobs import changes

WRONG_JOBS = [
    ({"task": "one_clusters"}, "task"),
    ({"task": ...}, "task is missing"),
    ({"task": None}, "task has no value"),
    ({"domain.upper": ["2026-01-01", 1]}, "domain.lower has 0.0 beside a date"),
    ({"domain.upper": ["1_20", 1]}, "domain.upper has '1_20'"),
    ({"surprise": 1}, "surprise is not a known key"),
    ({"params.targte": 5}, "params.targte is not a known key"),
    ({"input.unit": "user"}, "input.unit: user is missing from part.parquet; its columns are x, y"),
    ({"input.unit": "x"}, "input.unit: x is double in part.parquet; give a column of integers"),
    ({"input.keep": "mean"}, "input.keep is mean, but there is no input.unit, so each row is one person"),
    ({"input.unit": "user", "input.keep": "both"}, "input.keep"),
    *(
        (
            {**changes("threshold"), "input.unit": "u", "input.keep": keep},
            "for threshold it must be one or last",
        )
        for keep in ("mean", "min", "max", "sum", "count")
    ),
    ({"input.unit": "u", "input.keep": "count"}, "input.columns has 2 columns: give one"),
    ({"input.unit": "u", "input.keep": "first"}, "input.keep is 'first'"),
    ({"input.unit": "u", "input.keep": "last"}, "input.keep is last, but there is no input.order"),
    ({"input.unit": "u", "input.order": "t"}, "input.order is t, but input.keep is one"),
    ({"input.order": "t"}, "input.order is t, but input.keep is one"),
    ({"input.unit": "u", "input.keep": "last", "input.order": ""}, "input.order is empty"),
    ({**changes("sample_and_aggregate"), "input.order": "t"}, "input.order is not a known key"),
    ({**changes("triangles"), "input.unit": "u"}, "input.unit is u: triangles hides one edge"),
    ({**changes("mst_cost"), "input.unit": "u"}, "input.unit is u: mst_cost hides one edge"),
    ({**changes("sample_and_aggregate"), "input.keep": "one"}, "input.keep is not a known key"),
    ({"privacy.ledger": "/nowhere/ledger.json"}, "privacy.ledger /nowhere/ledger.json does not exist"),
    ({"privacy.ledger": "ftp://bucket/ledger.json"}, "ftp://bucket has a scheme that is not supported"),
    ({"privacy.ledger": "gs://bucket/"}, "gs://bucket/ is a folder"),
    ({"privacy.ledger": ""}, "privacy.ledger is empty: give the path of a ledger, or leave it out"),
    ({"params.method": "magic"}, "params.method"),
    ({"params.target": ...}, "params.target is missing"),
    ({"params.target": 0}, "params.target"),
    ({"params.target": "many"}, "params.target"),
    ({"params.failure": 1.5}, "params.failure"),
    ({**changes("threshold"), "params": {"failure": 5e-324}}, "it must be at least 1e-100 and below 1"),
    (
        {**changes("histogram"), "privacy.neighbors": "replace_one", "privacy.policy": {"distance": 1e308}},
        "privacy.policy.distance has 1e+308",
    ),
    ({"params.shares": {"luck": 1.0}}, "params.shares"),
    ({"privacy.epsilon": 0}, "privacy.epsilon is 0"),
    ({"privacy.epsilon": -1}, "privacy.epsilon is -1"),
    ({"privacy.epsilon": math.inf}, "privacy.epsilon is inf"),
    ({"privacy.epsilon": math.nan}, "privacy.epsilon is nan"),
    ({"privacy.delta": 1}, "privacy.delta is 1"),
    ({"privacy.delta": 0}, "privacy.delta is 0"),
    ({"privacy.neighbors": "friends"}, "privacy.neighbors"),
    ({"params.method": "paper"}, "replace_one"),
    ({"domain.lower": [1, 0], "domain.upper": [0, 1]}, "domain.lower is 1"),
    ({"domain.lower": [math.nan, 0]}, "domain.lower is nan"),
    ({"domain.step": 2}, "domain.step is 2"),
    ({"domain.step": 1e-12}, "too large"),
    ({"domain.upper": [1]}, "domain"),
    ({"input.columns": []}, "input.columns"),
    ({"input.columns": ["x", "x"]}, "input.columns"),
    ({"input.columns": ["x"]}, "input.columns has 1"),
    ({"output": "ftp://bucket/folder"}, "ftp://bucket/folder has a scheme that is not supported"),
    ({"output": "gs:///folder"}, "gs:///folder has no bucket"),
    ({"output": "s3:///folder"}, "s3:///folder has no bucket"),
    ({"output": "az://container//folder"}, "az://container//folder is not a path"),
    ({"input.path": "ftp://bucket/folder"}, "input.path ftp://bucket/folder has a scheme"),
    ({"run_id": "../other"}, "run_id"),
    ({"run_id": "."}, "of which the first is a letter or digit"),
    ({"input.unit": ""}, "input.unit is empty"),
    ({"input.path": "a\0b"}, "it has control characters"),
    ({"output": "a\0b"}, "it has control characters"),
    ({"privacy.ledger": "/"}, "/ is a folder"),
    ({"privacy.ledger": "/usr/bin"}, "/usr/bin cannot be read (Is a directory)"),
    ({"privacy.delta": 1e-308}, "privacy.delta is 1e-308: it must be 0, or at least 1e-100"),
    (
        {**changes("cdf"), "params.ranges": [[0.5]]},
        "params.ranges[0] is [0.5]: it must be a list of two values",
    ),
    ({**changes("cdf"), "params.ranges": [[]]}, "params.ranges[0] is []: it must be a list of two values"),
    ({**changes("cdf"), "params.ranges": [[0, 0.5, 1]]}, "it must be a list of two values"),
    (
        {**changes("histogram"), "params.cells": "a"},
        "params.cells is 'a': it must be a whole number, or a list.",
    ),
    (
        {
            **changes("histogram"),
            "privacy.neighbors": "replace_one",
            "privacy.policy": {"secrets": "full", "constraints": [{"lower": [0, 0], "count": 1}]},
        },
        "privacy.policy.constraints[0].upper is missing: privacy.policy.constraints[0] needs lower, upper",
    ),
]


@pytest.mark.parametrize(("changes", "says"), WRONG_JOBS, ids=[str(changes) for changes, _ in WRONG_JOBS])
def test_wrong_jobs(bench, refused, changes, says):
    assert says in refused(bench.run(changes))


@pytest.mark.parametrize(
    "text", ["", "just words", "a: [1", "- 1\n- 2", "task: one_cluster\ntask: other", "{[1]: 2}"]
)
def test_files_that_are_no_jobs(bench, refused, text):
    assert "job" in refused(bench.shoal("run", bench.write(text)))


def test_missing_job_file(bench, refused):
    assert "nowhere.yaml" in refused(bench.shoal("run", str(bench.folder / "nowhere.yaml")))


@pytest.mark.parametrize("override", ["privacy.epsilon", "privacy.epsilon=0", "privacy.epsilon.x=1", "x=1"])
def test_wrong_overrides(bench, refused, override):
    refused(bench.run({}, "--set", override))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nowhere", "nowhere does not exist"),
        ("rows/*.csv", "matches no files"),
        ("empty", "is a folder without such files"),
    ],
)
def test_files_that_are_not_there_may_come_later(bench, refused, path, says):
    """Exit code 1, by which a schedule tries again, and no charge."""
    (bench.folder / "empty").mkdir()
    ledger = str(bench.folder / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=5, delta=1e-6))
    wrong = {"input.path": str(bench.folder / path), "privacy.ledger": ledger}
    for options in ((), ("--dry-run",)):
        assert says in refused(bench.run(wrong, *options), 1)
    assert read_ledger(ledger).charges == ()


def test_not_parquet(bench, refused):
    bench.rows.write_text("x,y\n1,2\n")
    assert "part.parquet is not Parquet" in refused(bench.run())


def test_truncated_parquet(bench, refused):
    """It may be written just now, so a schedule should try again: exit code 1."""
    bench.rows.write_bytes(bench.rows.read_bytes()[:-200])
    assert "part.parquet is truncated" in refused(bench.run(), 1)
    bench.rows.write_bytes(b"")
    assert "part.parquet is not Parquet: it is empty" in refused(bench.run(), 1)
    empty = bench.folder / "rows.csv"
    empty.touch()
    assert "rows.csv is not CSV: it is empty" in refused(bench.run({"input.path": str(empty)}), 1)
    bench.rows.write_bytes(b"x,y\n1,2\n")
    assert "part.parquet is not Parquet;" in refused(bench.run(), 2)


def test_parquet_damaged_in_the_middle(bench):
    """Found while reading, not at the footer: a sentence about the file, exit code 1, and no release."""
    data = bytearray(bench.rows.read_bytes())
    data[4:2000] = bytes(1996)
    bench.rows.write_bytes(data)
    result = bench.run()
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "shoal: input.path: part.parquet can no longer be read, or is damaged.\n"
    assert not (bench.folder / "out").exists()


def test_missing_column(bench, refused):
    assert "z is missing from part.parquet" in refused(bench.run({"input.columns": ["x", "z"]}))


def test_text_column(bench, refused):
    pq.write_table(pa.table({"x": ["a", "b"], "y": [1.0, 2.0]}), bench.rows)
    assert "x is string in part.parquet" in refused(bench.run())


def test_units_of_different_kinds(bench, refused):
    for name, unit in (("other.parquet", 1), ("part.parquet", "a")):
        table = pa.table({"x": [1.0], "y": [1.0], "u": [unit]})
        pq.write_table(table, bench.rows.with_name(name))
    said = refused(bench.run({"input.unit": "u"}))
    assert "other.parquet" in said
    assert "part.parquet" in said


@pytest.mark.parametrize("runner", ["DaskRunner", "SparkRunner", "nonsense"])
def test_runners_that_may_draw_again(bench, refused, runner):
    assert f"--runner is {runner}" in refused(bench.run({}, "--runner", runner))


def test_output_of_another_job(bench):
    assert bench.run({"run_id": "monday"}).exit_code == 0
    before = (bench.folder / "out" / "release.json").read_bytes()
    for run_id, says in (
        ("another", "another job (run monday); give another folder, such as one with {run_id} in its name."),
        (
            "monday",
            "this run, monday, and the job has changed since: undo the change (`shoal diff` shows it, "
            "unless it is one of paths or of the ledger), or give another run_id",
        ),
    ):
        result = bench.run({"privacy.epsilon": 2.0, "run_id": run_id})
        assert result.exit_code == 2
        assert f"already holds a release of {says}" in result.stderr
    assert (bench.folder / "out" / "release.json").read_bytes() == before


@pytest.mark.parametrize("kind", [StorageError, JobError])
def test_a_report_that_cannot_be_written_leaves_the_release(bench, monkeypatch, kind):
    """The same run writes it later, without another draw. The system fails, or denies it to the account."""
    create = LocalFolder.create

    def full(folder, name, data):
        if name == "report.html":
            raise kind("report.html cannot be written (No space left on device).")
        return create(folder, name, data)

    with monkeypatch.context() as disk:
        disk.setattr(LocalFolder, "create", full)
        failed = bench.run()
    assert failed.exit_code == kind.exit_code
    assert "No space left on device). The release itself is complete; the same run again" in failed.stderr
    before = (bench.folder / "out" / "release.json").read_bytes()
    assert bench.run().exit_code == 0 and (bench.folder / "out" / "report.html").exists()
    assert (bench.folder / "out" / "release.json").read_bytes() == before


@pytest.mark.parametrize("as_folder", [False, True])
def test_another_report_is_refused_before_the_charge(bench, as_folder):
    """It would be taken for that of the run, or the release would be without one."""
    report = bench.folder / "out" / "report.html"
    report.parent.mkdir()
    if as_folder:
        report.mkdir()
    else:
        report.write_text("mine")
    ledger = bench.folder / "ledger.json"
    made = bench.shoal("ledger", "create", str(ledger), "--epsilon", "5", "--delta", "1e-3")
    assert made.exit_code == 0
    before = ledger.read_bytes()
    result = bench.run({"privacy.ledger": str(ledger)})
    assert result.exit_code == 2 and "report.html" in result.stderr
    assert "exists, but there is no release beside it" in result.stderr or as_folder
    assert ledger.read_bytes() == before
    assert sorted(each.name for each in report.parent.iterdir()) == ["report.html"]


def test_output_that_is_a_file(bench):
    (bench.folder / "taken").write_text("mine")
    result = bench.run({"output": str(bench.folder / "taken")})
    assert result.exit_code == 2
    assert (bench.folder / "taken").read_text() == "mine"


WITHIN = [
    ({"output": "rows/out"}, "output is {}/rows/out: it lies in input.path {}/rows,"),
    ({"output": "rows"}, "output is {}/rows: it lies in"),
    ({"output": "link/out"}, "output is {}/link/out: it lies in"),
    ({"input.path": "link", "output": "rows/out"}, "it lies in input.path {}/link,"),
    ({"input.path": "**/*.parquet", "output": "out/{run_id}"}, "it lies in input.path {}/**/*.parquet,"),
    ({"privacy.ledger": "rows/ledger.json"}, "privacy.ledger is {}/rows/ledger.json: it lies in"),
    ({"input.path": "rows/*", "privacy.ledger": "rows/ledger.json"}, "privacy.ledger is {}/rows/ledger.json"),
]


@pytest.mark.parametrize(("given", "says"), WITHIN, ids=[says for _, says in WITHIN])
def test_nothing_is_written_where_the_input_is(bench, refused, given, says):
    """A later run on the same input would read it, or fail on it."""
    (bench.folder / "link").symlink_to(bench.folder / "rows")
    ledger = str(bench.folder / given.get("privacy.ledger", "ledger.json"))
    create_ledger(ledger, Ledger(epsilon=2.0, delta=1e-5))
    places = {
        key: f"{bench.folder}/{place}" for key, place in {"privacy.ledger": "ledger.json", **given}.items()
    }
    for more in ([], ["--dry-run"]):
        assert says.format(bench.folder, bench.folder) in refused(bench.run(places, *more))
    assert read_ledger(ledger).charges == ()
    assert sorted(path.name for path in bench.rows.parent.iterdir()) in (
        ["part.parquet"],
        ["ledger.json", "part.parquet"],
    )


def test_an_output_that_a_glob_does_not_cover_is_allowed(bench):
    result = bench.run(
        {"input.path": f"{bench.folder}/rows/*.parquet", "output": f"{bench.folder}/rows/out/x"}
    )
    assert result.exit_code == 0, result.output
    assert bench.release("rows/out/x")["outcome"]


def test_a_link_counts_no_row_twice(bench):
    """Noise of scale 1/20 on a total strays by more than 100 with probability e^-2000."""
    (bench.folder / "rows/self").symlink_to(".")
    (bench.folder / "rows/latest.parquet").symlink_to("part.parquet")
    result = bench.run({**changes("histogram"), "privacy.epsilon": 20.0})
    assert result.exit_code == 0, result.output
    assert abs(bench.release()["result"]["total"] - 4000) < 100


ODD_ROWS = {
    "nan": np.full((50, 2), np.nan),
    "infinite": np.full((50, 2), np.inf),
    "out of bounds": np.full((50, 2), 1e300),
    "empty": np.empty((0, 2)),
}


@pytest.mark.parametrize("name", ODD_ROWS)
def test_odd_rows_are_no_errors(bench, name):
    write_rows(bench.rows, ODD_ROWS[name])
    result = bench.run()
    assert result.exit_code == 0, result.output
    assert bench.release()["outcome"] == "not_found"
    assert bench.release()["result"] is None
    assert (bench.folder / "out" / "report.html").exists()


def test_null_rows_are_no_records(bench):
    columns = {name: pa.array([None] * 100 + [0.5] * 100, pa.float32()) for name in ("x", "y")}
    pq.write_table(pa.table(columns), bench.rows)
    result = bench.run({"params.target": 10_000})
    assert result.exit_code == 0, result.output
    assert bench.release()["outcome"] == "not_found"


def test_target_beyond_the_rows_is_no_error(bench):
    result = bench.run({"params.target": 10**9})
    assert result.exit_code == 0, result.output
    assert bench.release()["outcome"] == "not_found"


def test_numbers_without_a_dot_are_numbers(bench):
    text = yaml.safe_dump(bench.changed({})).replace("delta: 1.0e-06", "delta: 1e-6")
    assert "delta: 1e-6" in text
    assert bench.shoal("plan", bench.write(text)).exit_code == 0


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("gs://foo", "gs://foo is a folder: give the name of a file."),
        ("ftp://foo/ledger.json", "has a scheme that is not supported"),
        ("s3://foo", "s3://foo is a folder: give the name of a file."),
        ("", "The path of a file is empty"),
        ("~nobody_xyz/ledger.json", "begins with the home folder of an unknown user"),
    ],
)
def test_a_ledger_is_never_made_at_another_place_than_was_asked(bench, path, says):
    made = bench.shoal("ledger", "create", path, "--epsilon", "1", "--delta", "0")
    assert made.exit_code == 2
    assert says in made.stderr
    assert bench.shoal("ledger", "show", path).exit_code == 2


def test_a_number_of_threads_that_no_runner_has(bench, refused):
    for threads in (-1, 300):
        said = refused(bench.run({}, "--", f"--direct_num_workers={threads}"))
        assert (
            f"--direct_num_workers is {threads}: it must be from 1 to 128, or 0 for one thread per core."
            in said
        )


@pytest.mark.parametrize("width", [1e300, 2.0**63, 2.0**64, 1e30])
def test_a_part_wider_than_any_domain_is_all_of_it(bench, width):
    changes = {
        "task": "histogram",
        "params": {"cells": 4},
        "domain.step": 0.25,
        "privacy.neighbors": "replace_one",
        "privacy.policy": {"partition": [width, width]},
    }
    planned = bench.shoal("plan", bench.write(bench.changed(changes)))
    assert planned.exit_code == 0, planned.output


def test_a_damaged_table_of_a_release_is_one_sentence(bench):
    given = {"task": "histogram", "params": {"cells": 4}}
    assert bench.run(given).exit_code == 0
    table = bench.folder / "out" / "result.parquet"
    table.write_bytes(table.read_bytes()[:-100])
    said = bench.shoal("report", str(bench.folder / "out"))
    assert said.exit_code == 2
    assert "result.parquet is damaged" in said.stderr


def test_units_that_may_be_written_in_many_ways_are_refused(bench, refused):
    rows = pq.read_table(bench.rows)
    texts = pa.array(["{}"] * len(rows), pa.string())
    pq.write_table(rows.append_column("u", pa.ExtensionArray.from_storage(pa.json_(), texts)), bench.rows)
    said = refused(bench.run({"input.unit": "u"}))
    assert "input.unit: u is " in said
