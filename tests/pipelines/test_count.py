"""`input.count`: a row that stands for several records is as many rows, for every task of rows."""

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.domain import Grid
from core.rounds import Block, run_in_memory
from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.ledger.ledger import create_ledger, new_ledger, read_ledger
from pipelines.plan import make_plan
from pipelines.report.report import render
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.pipelines.conftest import planted
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import changes
from transforms.count_records import MOST_COPIES, MOST_FILES, copies, records_of
from transforms.list_files import InputError
from transforms.open_source import open_source
from transforms.read_blocks import Reader, list_row_groups, read_blocks

ROWS_TASKS = [task for task in TASKS if not TASKS[task].subsamples]
SQUARE = Grid((0, 0), (1, 1), 2.0**-10)


def write(path: Path, table: dict[str, Any], size: int = 300) -> Path:
    """Write a Parquet file, and return its path."""
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(table), path, row_group_size=size)
    return path


@pytest.fixture
def counted(tmp_path: Path) -> tuple[Path, Path]:
    """A file with counts, also bad ones, and the file in which each record is a row."""
    rng = np.random.default_rng(5)
    x, y = planted(1500).T
    counts = [None if c == 5 else int(c) - 1 for c in rng.integers(0, 6, len(x))]
    table = {"x": x, "y": y, "w": rng.random(len(x)), "kind": rng.choice(["a", "b"], len(x))}
    rows = np.repeat(np.arange(len(x)), [max(0, c or 0) for c in counts])
    expanded = {name: values[rows] for name, values in table.items()}
    one = write(tmp_path / "counts" / "rows.parquet", {**table, "n": pa.array(counts, pa.int16())})
    return one, write(tmp_path / "rows" / "rows.parquet", expanded)


def records(path: Path, job: Any, count: str | None) -> list[Block]:
    """Return the blocks of a file."""
    source = open_source(str(path), job.input.columns, groups=job.group_keys, count=count)
    reader = Reader.of(source, job.grid, job.checks > 0)
    groups = (list_row_groups(file) for file in source.files)
    return [block for file in groups for group in file for block in read_blocks(reader, group)]


def with_ids(blocks: list[Block], ids: np.ndarray) -> list[Block]:
    """Return the blocks with other identities, in order."""
    ends = np.cumsum([len(block.ids) for block in blocks])
    parts = np.split(ids, ends[:-1])
    return [dataclasses.replace(block, ids=part) for block, part in zip(blocks, parts, strict=True)]


@pytest.mark.parametrize("task", ROWS_TASKS)
def test_counts_are_the_same_as_rows(counted, task: str) -> None:
    """All rounds of the file with counts and of the expanded one have equal aggregates and answers."""
    job = check_job(changed_job({**changes(task), "privacy.epsilon": 5.0}))
    plan = make_plan(job, bytes(16))
    ours, theirs = records(counted[0], job, "n"), records(counted[1], job, None)
    ids = np.concatenate([block.ids for block in ours])
    assert len(np.unique(ids)) == len(ids)
    theirs = with_ids(theirs, ids)
    seen: list[list[Any]] = [[], []]
    found = []
    for blocks, totals in zip((ours, theirs), seen, strict=True):
        rounds = [_Seen(round_, totals) for round_ in plan.rounds]
        found.append(run_in_memory(rounds, blocks, plan.start, SeededNoise(3)))
    assert len(seen[0]) >= len(plan.rounds)
    assert repr(seen[0]) == repr(seen[1])
    one, other = (getattr(state, "state", state) for state in found)
    assert one.result(job.grid) == other.result(job.grid)


class _Seen:
    """A round that keeps the aggregates that it releases."""

    def __init__(self, round_: Any, totals: list[Any]) -> None:
        self._round, self._totals = round_, totals

    def __getattr__(self, name: str) -> Any:
        return getattr(self._round, name)

    def release(self, aggregate: Any, state: Any, noise: Any) -> Any:
        """Keep the aggregate, and release it."""
        self._totals.append(_plain(aggregate))
        return self._round.release(aggregate, state, noise)


def _plain(value: Any) -> Any:
    """Return an aggregate as lists, so that all of its values are compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


@pytest.mark.parametrize("task", ROWS_TASKS)
def test_every_task_runs_on_counts(bench, counted, task: str) -> None:
    given = {**changes(task), "privacy.epsilon": 5.0, "input.count": "n", "input.path": str(counted[0])}
    result = bench.run(given)
    assert result.exit_code == 0, result.output
    release = bench.release()
    assert release["rows"] == {"count": "n"}
    assert any(note.startswith("A row stands for as many records as n says") for note in release["notes"])
    assert "Records of a row" in render(release, None)


def test_a_count_is_clamped_and_a_bad_one_is_no_record() -> None:
    for kind in (pa.int64(), pa.int8(), pa.uint64(), pa.uint8()):
        assert records_of(pa.array([None, 0, 3], kind)).tolist() == [0, 0, 3]
    assert records_of(pa.array([-(2**63), -1, 2**63 - 1])).tolist() == [0, 0, MOST_COPIES]
    assert records_of(pa.array([2**64 - 1], pa.uint64())).tolist() == [MOST_COPIES]


@pytest.mark.parametrize("most", [1, 3, 7, 100])
def test_records_come_in_bounded_batches_each_with_an_identity(most: int) -> None:
    batch = pa.record_batch({"x": [1.0, 2.0, 3.0, 4.0], "n": [2, 0, 5, 1]})
    ids = np.array([0, 1, 2, (3 << 40) + 7], np.uint64)
    parts = list(copies(batch, ids, "n", most))
    assert max(part.num_rows for part, _ in parts) <= most
    assert [x for part, _ in parts for x in part["x"].to_pylist()] == [1, 1, 3, 3, 3, 3, 3, 4]
    found = np.concatenate([each for _, each in parts]).tolist()
    copied = [2 << 20 | copy for copy in range(5)]
    assert found == [0, 1, *copied, 3 << 52 | 7 << 20]
    assert all(len(own) == part.num_rows for part, own in parts)


def test_no_record_is_one_empty_batch() -> None:
    batch = pa.record_batch({"x": [1.0], "n": pa.array([0], pa.int64())})
    ((part, ids),) = copies(batch, np.zeros(1, np.uint64), "n", 10)
    assert part.num_rows == len(ids) == 0


def test_a_record_more_leaves_the_others_as_they_are() -> None:
    ids = np.arange(3, dtype=np.uint64)
    few, more = (
        {int(each) for _, own in copies(pa.record_batch({"n": counts}), ids, "n", 4) for each in own}
        for counts in ([2, 1, 3], [2, 2, 3])
    )
    assert few < more
    assert len(more - few) == 1


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_no_long_text_is_repeated(kind: pa.DataType) -> None:
    # Arrow's offsets have 32 bits: 7,200 copies of 300 kB made other bytes of all keys of the batch.
    city = pa.array(["x" * 300_000, "rome", None]).cast(kind)
    batch = pa.record_batch({"city": city, "n": [1000, 2, 1]})
    ((part, ids),) = copies(batch, np.arange(3, dtype=np.uint64), "n", 2000)
    assert part["city"].to_pylist() == [None] * 1000 + ["rome"] * 2 + [None]
    assert len(ids) == 1003
    assert part.nbytes < 100_000


def test_a_count_works_with_a_condition_and_a_derived_count(bench, counted) -> None:
    given = {"input.where": "kind == 'a'", "input.derive": {"twice": "2 * n"}, "input.count": "twice"}
    job = {**changes("statistics"), "params": {"measures": ["count"]}, "privacy.epsilon": 100.0}
    assert bench.run({**job, **given, "input.path": str(counted[0])}).exit_code == 0
    (value,) = bench.release()["result"]["values"]
    rows = pq.read_table(counted[1])
    assert abs(value["value"] - 2 * rows["kind"].to_pylist().count("a")) < 20


def test_a_record_more_is_one_record_more_whatever_a_job_may_say(bench, counted) -> None:
    """The records of a file, and of the same with one count higher, differ in one."""
    table = pq.read_table(counted[0])
    counts = [0 if count is None else count for count in table["n"].to_pylist()]
    row = next(place for place, kind in enumerate(table["kind"].to_pylist()) if kind == "a" and counts[place])
    counts[row] += 1
    more = table.set_column(table.column_names.index("n"), "n", pa.array(counts, pa.int16()))
    other = write(
        bench.folder / "more" / "rows.parquet", dict(zip(more.column_names, more.columns, strict=True))
    )
    job = check_job(
        changed_job(
            {
                **changes("statistics"),
                "input.where": "kind == 'a' and half < 0.4",
                "input.derive": {"half": "x / 2"},
                "input.columns": ["half", "y"],
                "input.count": "n",
            }
        )
    )
    found = []
    for path in (counted[0], other):
        preparation = job.input.preparation()
        source = open_source(str(path), job.input.columns, preparation=preparation, count=job.count)
        reader = Reader.of(source, job.grid)
        groups = [group for file in source.files for group in list_row_groups(file)]
        points = np.concatenate([block.points for each in groups for block in read_blocks(reader, each)])
        found.append(Counter(map(tuple, points.tolist())))
    assert (found[1] - found[0]).total() == 1 and not found[0] - found[1]


PROMISES = {"neighbors": "add_or_remove_one", "epsilon": 3.0, "delta": 1e-5}


def test_a_ledger_of_records_is_charged_by_runs_with_its_count_alone(bench, counted) -> None:
    ledger = str(bench.folder / "ledger.json")
    asked = {**changes("statistics"), "params": {"measures": ["count"]}, "privacy.ledger": ledger}
    asked |= {"input.path": str(counted[0])}
    made = bench.shoal("ledger", "create", ledger, "--epsilon", "3", "--delta", "1e-5", "--count", "n")
    assert made.exit_code == 0, made.stderr
    assert bench.run({**asked, "input.count": "n"}).exit_code == 0
    (entry,) = read_ledger(ledger).charges
    assert entry.epsilon == 1.0
    shown = bench.shoal("ledger", "show", ledger)
    assert "a row is as many records as n says, of which one is hidden" in " ".join(shown.stdout.split())
    whole = bench.run({**asked, "output": str(bench.folder / "whole")})
    assert whole.exit_code == 3
    assert "hide one of the records of a row, which n counts, but the job hides whole rows" in whole.stderr
    rows = str(bench.folder / "rows.json")
    create_ledger(rows, new_ledger(PROMISES, "basic"))
    refused = bench.run(
        {**asked, "input.count": "n", "privacy.ledger": rows, "output": str(bench.folder / "o")}
    )
    assert refused.exit_code == 3
    assert "promises to hide whole rows, but the job hides one of the records of a row" in refused.stderr
    assert "made with --count n" in refused.stderr
    assert not read_ledger(rows).charges


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"unit": "who"}, "--count is n: it says which records a row stands for, but a unit or a policy"),
        ({"count": ""}, "--count is empty"),
    ],
)
def test_a_ledger_of_records_has_no_unit(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(JobError, match=re.escape(says)):
        new_ledger({**PROMISES, "count": "n", **fields}, "basic")


def test_the_guarantee_is_that_of_a_record(bench, counted) -> None:
    """A row of 1,000 records may lose a thousand times as much, so nothing may say that a row is hidden."""
    asked = {**changes("statistics"), "params": {"measures": ["count"]}}
    asked |= {"input.path": str(counted[0]), "input.count": "n"}
    done = bench.run(asked)
    assert done.exit_code == 0, done.stderr
    release, page = bench.release(), (bench.folder / "out" / "report.html").read_text()
    planned = " ".join(bench.shoal("plan", bench.write(bench.changed(asked))).stdout.split())
    for text in (release["privacy"]["hides"], page, planned):
        assert "one record more or one record less" in text
    assert release["privacy"]["count"] == "n" and "If one record is removed" in page
    for text in (*release["privacy"]["hides"].split(";"), page, planned, done.stdout):
        assert "one row more" not in text and "each row counts" not in text.lower()


def test_a_ledger_without_a_count_is_written_as_before() -> None:
    assert b"count" not in new_ledger(PROMISES, "basic").bytes()


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        write(tmp_path / f"{number}.parquet", {"x": [0.5], "n": [1]})
    monkeypatch.setattr("transforms.open_source.MOST_FILES", 1)
    with pytest.raises(InputError, match=r"input\.count is n, but input\.path has 2 files"):
        open_source(str(tmp_path), ["x"], count="n")
    assert MOST_FILES * 2**32 * MOST_COPIES == 2**64


KINDS = {"path": "/nowhere.parquet", "on": "kind"}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"input.count": "w"}, "input.count: w is double in rows.parquet; give a column of integers"),
    ({"input.count": "m"}, "input.count: m is missing from rows.parquet"),
    ({"input.count": ""}, "input.count is empty"),
    ({"input.count": 3}, "input.count is 3: it must be text"),
    ({"input.count": "n", "input.unit": "kind"}, "input.count is n and input.unit is kind"),
    ({"input.count": "n", "privacy.neighbors": "replace_one"}, "privacy.neighbors is replace_one"),
    (
        {
            **changes("histogram"),
            "input.count": "n",
            "input.checks": 0,
            "privacy.neighbors": "replace_one",
            "privacy.policy": {"distance": 0.5},
        },
        "input.count is n and privacy.policy is given",
    ),
    (
        {"input.count": "m", "input.derive": {"m": "2 * n"}, "privacy.ledger": "/ledger.json"},
        "input.count is m and privacy.ledger is given: a ledger hides records that a column of the files",
    ),
    ({"input.count": "n", "input.columns": ["x", "n"]}, "input.columns has n, of which input.count is made"),
    ({"input.count": "n", "input.where": "x > 0.1 and n > 2"}, "input.where has n, of which input.count"),
    ({"input.count": "n", "input.derive": {"m": "n + 1"}}, "input.derive.m has n, of which input.count"),
    (
        {"input.count": "m", "input.derive": {"m": "2 * n"}, "input.where": "n > 2"},
        "input.where has n, of which input.count is made",
    ),
    (
        {"input.count": "m", "input.derive": {"m": "2 * n"}, "input.where": "m > 2"},
        "input.where has m, of which input.count is made",
    ),
    (
        {"input.count": "n", "input.join": {"path": "/nowhere.parquet", "on": "n"}},
        "input.join.on has n, of which input.count is made",
    ),
    ({"input.count": "n", "input.join": KINDS}, "input.join has no columns: the count may be one of them"),
    (
        {"input.count": "k", "input.where": "kind == 'a'", "input.join": {**KINDS, "columns": ["k"]}},
        "input.where has kind, of which input.count is made",
    ),
    (
        {
            "input.count": "m",
            "input.derive": {"m": "2 * k"},
            "input.where": "v > 1",
            "input.join": {**KINDS, "columns": ["k", "v"]},
        },
        "input.where has v, of which input.count is made",
    ),
    (
        {
            **changes("statistics"),
            "params": {"measures": ["count"]},
            "input.count": "n",
            "group_by": {"columns": ["kind", "n"], "keys": "private"},
        },
        "group_by.columns has n, of which input.count is made",
    ),
    (
        {
            **changes("mst_cost"),
            "input.columns": ["x", "y", "w"],
            "input.count": "n",
            "params": {"change": "weight"},
        },
        "params.change is weight",
    ),
]


@pytest.mark.parametrize(("given", "says"), WRONG)
def test_a_wrong_count_is_refused_in_one_sentence(
    bench, refused, counted, given: dict[str, Any], says: str
) -> None:
    assert says in refused(bench.run({"input.path": str(counted[0]), **given}))


def test_questions_share_one_count(bench, refused, counted) -> None:
    """One of them is grouped; both are of the records, and a question has no count of its own."""
    wide = {"lower": [0], "upper": [1], "step": 0.001}
    asked = {
        "all": {"task": "statistics", "columns": ["x"], "domain": wide, "params": {"measures": ["count"]}},
        "by_kind": {
            "task": "statistics",
            "columns": ["y"],
            "domain": wide,
            "params": {"measures": ["count"]},
            "group_by": {"columns": ["kind"], "keys": ["a", "b"]},
        },
    }
    job = {
        "input": {"path": str(counted[0]), "count": "n"},
        "privacy": {"epsilon": 50.0, "delta": 1e-6},
        "questions": asked,
        "output": str(bench.folder / "out"),
    }
    wrong = {**job, "questions": {"all": {**asked["all"], "count": "n"}}}
    refusal = refused(bench.shoal("run", bench.write(json.dumps(wrong))))
    assert "questions.all.count is not a known key" in refusal
    result = bench.shoal("run", bench.write(json.dumps(job)))
    assert result.exit_code == 0, result.output
    rows = pq.read_table(counted[1])["kind"].to_pylist()
    (value,) = bench.release()["answers"]["all"]["result"]["values"]
    assert abs(value["value"] - len(rows)) < 20
    table = pq.read_table(bench.folder / "out" / "by_kind.parquet").to_pylist()
    assert all(abs(row["count"] - rows.count(row["kind"])) < 20 for row in table)
    assert len(table) == 2
