"""What a run will cost, predicted from runs on made-up rows."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_job, check_several
from pipelines.run.cost import ROWS, Cost, _memory, made_up, predict, trial, try_rows
from pipelines.run.usage import Usage, descendants, memory_of, run_command
from pipelines.tasks import TASKS
from tests.pipelines.conftest import Bench, Refused
from tests.pipelines.every_plan import joint_plans
from tests.pipelines.jobs import LINE, changes

FEW = (3000, 6000)


@pytest.mark.parametrize("task", TASKS)
def test_made_up_rows_are_rows_of_the_job(bench: Bench, task: str) -> None:
    """They fill the domain, and are in no file of the job."""
    job = check_job(bench.changed(changes(task)))
    rows = made_up(job, 100, 500)
    assert tuple(rows) == job.input.columns and {len(column) for column in rows.values()} == {500}
    if not TASKS[task].subsamples:
        points = np.stack([*rows.values()], axis=1)
        low, high = np.array(job.grid.lower), np.array(job.grid.upper)
        assert (points >= low).all() and (points <= high).all()
        assert (np.ptp(points, axis=0) > 0.9 * (high - low)).all()


@pytest.mark.parametrize("upper", [2**40, 2**62, 2**64 - 1])
def test_rows_of_wide_domains_are_whole_numbers(bench: Bench, upper: int) -> None:
    lower = upper - 2**40
    line = {"input.columns": ["x"], "domain.lower": [lower], "domain.upper": [upper], "domain.step": 1}
    job = check_job(bench.changed({**changes("median"), **line}))
    (values,) = made_up(job, 0, 200).values()
    assert values.dtype.kind in "iu" and lower <= int(values.min()) < int(values.max()) <= upper


def test_units_have_ten_rows(bench: Bench) -> None:
    last = {"input.unit": "who", "input.keep": "last", "input.order": "when"}
    rows = made_up(check_job(bench.changed({**changes("median"), **last})), 0, 95)
    assert np.unique(rows["who"], return_counts=True)[1].tolist() == [10] * 9 + [5]
    assert (np.diff(rows["when"]) == 1).all()


@pytest.mark.parametrize("keys", ["private", [["a", "2013-01-05"], ["b", "2013-01-06"]]])
def test_keys_of_groups(bench: Bench, keys: Any) -> None:
    """A run on them finds the public keys, or private ones of two columns."""
    groups = {"columns": ["city", "day"], "keys": keys, "truncate": {"day": "day"}}
    job = check_job(bench.changed({**changes("statistics"), "group_by": groups}))
    rows = made_up(job, 0, 500)
    assert {"x", "y", "city", "day"} == set(rows) and rows["day"].dtype.kind == "M"
    assert job.group_keys is not None
    found, labels = job.group_keys.read(pa.record_batch({k: pa.array(v) for k, v in rows.items()}))
    assert (found >= 0).all() and (len(labels) == 2 or keys == "private")


@pytest.mark.parametrize("task", ["histogram", "sample_and_aggregate"])
def test_a_trial_differs_in_its_places_alone(bench: Bench, task: str) -> None:
    asked = bench.changed({**changes(task), "privacy.ledger": str(bench.folder / "ledger.json")})
    values = trial(check_job(asked), bench.folder / "trial")
    job = check_job(values)
    assert job.privacy.ledger is None and job.task_params == check_job(asked).task_params
    assert job.input.path.startswith(str(bench.folder / "trial")) and job.output.startswith(
        str(bench.folder / "trial")
    )


@pytest.mark.parametrize("task", ["k_means", "histogram"])
def test_half_of_the_rows_lie_in_clumps_where_clusters_are_looked_for(bench: Bench, task: str) -> None:
    """Of even rows, the fullest hundred of ten thousand squares hold about two in a hundred."""
    job = check_job(
        bench.changed({**changes(task), "domain": {"lower": [0, 0], "upper": [1, 1], "step": 2**-20}})
    )
    x, y = made_up(job, 0, 20_000).values()
    squares = np.histogram2d(x, y, bins=100, range=[[0, 1], [0, 1]])[0]
    fullest = np.sort(squares.ravel())[-100:].sum() / 20_000
    assert 0.1 < fullest < 0.3 if task == "k_means" else fullest < 0.04
    assert min(x.min(), y.min()) >= 0 and max(x.max(), y.max()) <= 1


def test_made_up_rows_are_used_as_they_are(bench: Bench) -> None:
    """They have the columns of the task, so nothing is left out, derived or joined."""
    given = {
        "input.where": "z > 1",
        "input.derive": {"x": "z"},
        "input.join": {"path": "t.parquet", "on": "z"},
    }
    job = check_job(trial(check_job(bench.changed(given)), bench.folder / "trial"))
    assert not job.input.preparation()
    assert tuple(made_up(job, 0, 5)) == ("x", "y")


def test_what_is_predicted(bench: Bench) -> None:
    """The input is not there, and a ledger is not looked at."""
    shutil.rmtree(bench.rows.parent)
    asked = {**changes("histogram"), "privacy.ledger": str(bench.folder / "ledger.json")}
    small, large = predict(check_job(bench.changed(asked)), (10**6, 10**9), FEW)
    assert (small.rows, small.rows_read, small.shuffled) == (10**6, 10**6, 0)
    assert 0.3 < small.processor <= large.processor and 5e7 < small.memory <= large.memory
    assert not (bench.folder / "out").exists() and not (bench.folder / "ledger.json").exists()


def test_rows_of_units_go_through_the_runner(bench: Bench) -> None:
    asked = {**changes("median"), "input.unit": "who"}
    (cost,) = predict(check_job(bench.changed(asked)), (10**6,), FEW)
    assert cost.rows_read == 10**6 and cost.shuffled == cost.disk > 0


def test_units_are_of_the_type_that_they_have_in_the_files(bench: Bench) -> None:
    """They are texts where nobody can say."""
    for unit, is_text in (("u", False), ("who", True)):
        asked = {**changes("median"), "input.unit": unit}
        table = pq.read_table(bench.rows)
        kept = table.drop_columns([name for name in ("u", "who") if name in table.column_names])
        added = kept.append_column("u", pa.array(np.arange(len(table))))
        pq.write_table(added.append_column("who", pa.array(["a"] * len(table))), bench.rows)
        path = bench.folder / f"{unit}.parquet"
        pq.write_table(pq.read_table(bench.rows), path)
        job = check_job(bench.changed({**asked, "input.path": str(path)}))
        assert isinstance(made_up(job, 0, 20)[unit], pa.Array) == is_text
    far = check_job(bench.changed({**changes("median"), "input.unit": "u", "input.path": "gs://b/a.parquet"}))
    assert isinstance(made_up(far, 0, 20)["u"], pa.Array)


DAYS = {"lower": ["2020-01-01"], "upper": ["2021-01-01"], "step": "1 day"}
BY_DAY = {"group_by": {"columns": ["d"], "keys": ["2020-01-01", "2020-01-02"]}}
BY_MONTH = {"group_by": {"columns": ["d"], "keys": ["2020-01"], "truncate": {"d": "month"}}}
WITH_DATES: dict[str, list[dict[str, Any]]] = {
    "value and key": [{"columns": ["d"], "domain": DAYS, **BY_DAY}],
    "value of one question, key of another": [{"columns": ["d"], "domain": DAYS}, BY_DAY],
    "cut and uncut": [BY_MONTH, BY_DAY],
    "uncut and cut": [BY_DAY, BY_MONTH],
}


@pytest.mark.parametrize("uses", WITH_DATES)
def test_a_date_may_be_a_value_and_a_key(bench: Bench, uses: str) -> None:
    line = {"columns": ["x"], "domain": {"lower": [0], "upper": [10], "step": 1}}
    least = {"task": "statistics", "params": {"measures": ["minimum"]}, **line}
    asked = [least | own for own in WITH_DATES[uses]]
    several = {
        "input": {"path": str(bench.folder / "rows")},
        "privacy": {"epsilon": 3.0, "delta": 1e-6},
        "questions": {f"q{number}": own for number, own in enumerate(asked)},
        "output": str(bench.folder / "out"),
    }
    assert try_rows(check_several(several), 100).code == 0


def test_a_trial_ends_with_its_command() -> None:
    """A signal may come to the command alone."""
    wait = "import time; time.sleep(60)"
    code = f"from pipelines.run.usage import run_command; run_command(['python3', '-c', {wait!r}])"
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        default = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "  # not that of nohup
        begin = f"{default}import pipelines.terminated as t; t.listen(); "
        with subprocess.Popen([sys.executable, "-c", begin + code], stderr=subprocess.DEVNULL) as command:
            while len(running := descendants(command.pid)) < 2:
                time.sleep(0.05)
            command.send_signal(sent)
            command.wait(20)
        until = time.monotonic() + 20
        while left := [each for each in running if memory_of(each)]:
            assert time.monotonic() < until, left
            time.sleep(0.05)


def test_a_folder_for_temporary_files_that_is_none(
    bench: Bench, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(bench.folder / "none"))
    said = refused(bench.shoal("cost", bench.write(bench.job)))
    assert said.startswith(f"shoal: TMPDIR is {bench.folder / 'none'}, where rows wait")
    planned = bench.shoal("plan", bench.write(bench.job))
    assert planned.exit_code == 0 and "refused. TMPDIR is " in planned.stderr


def test_looks_are_passes(bench: Bench) -> None:
    line = {**LINE, "domain.lower": [0], "domain.upper": [2**30], "domain.step": 1}
    (cost,) = predict(check_job(bench.changed({**changes("median"), **line})), (1000,), FEW)
    assert cost.rows_read == 2000


def test_the_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def predicted(job: object, rows: tuple[int, ...]) -> list[Cost]:
        asked.append(tuple(rows))
        return [Cost(n, 3 * n, 0, 4.5, 3.9, 5.6, 2e8, 7e9) for n in rows]

    monkeypatch.setattr("pipelines.run.cost.predict", predicted)
    shown = bench.shoal("cost", bench.write(bench.job))
    assert shown.exit_code == 0 and "100,000,000" in shown.stdout and "200 MB" in shown.stdout
    assert "4.5 (3.9 to 5.6)" in shown.stdout and "7,000 MB" in shown.stdout
    as_json = bench.shoal("cost", bench.write(bench.job), "--rows", "5", "--rows", "7", "--json")
    assert [each["rows_read"] for each in json.loads(as_json.stdout)] == [15, 21]
    assert asked == [ROWS, (5, 7)]


@pytest.mark.parametrize("rows", ["0", str(1 << 53), "9" * 400])
def test_wrong_numbers_of_rows(bench: Bench, refused: Refused, rows: str) -> None:
    said = refused(bench.shoal("cost", bench.write(bench.job), "--rows", rows))
    assert said.startswith("shoal: --rows is ") and said.endswith(": give whole numbers from 1 to 2^53 - 1.")


@pytest.mark.parametrize("where", ["tempfile.mkdtemp", "pathlib.Path.write_text"])
def test_a_full_disk_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Not only where rows are written."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    job = check_job(bench.job)
    monkeypatch.setattr(where, full)
    with pytest.raises(JobError, match=r"^10 made-up rows could not be .* \(No space left on device\): let"):
        try_rows(job, 10)


def test_a_run_that_the_system_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.run.cost.run_command", lambda _: Usage(0, 0, 0, 0, -signal.SIGKILL, ""))
    with pytest.raises(JobError, match=r"was ended by SIGKILL: where memory is full, the system does so\.$"):
        try_rows(check_job(bench.job), 10)


def test_a_function_that_is_not_there(bench: Bench, refused: Refused) -> None:
    asked = bench.changed(changes("sample_and_aggregate"))
    asked["params"]["function"] = "nowhere:nothing"
    said = refused(bench.shoal("cost", bench.write(asked)))
    assert said.startswith("shoal: A run on made-up rows failed. ") and "nowhere" in said


def test_a_peak_between_two_looks_is_seen(monkeypatch):
    monkeypatch.setattr("pipelines.run.usage._EVERY", 0.6)
    code = "import time; held = bytearray(300 << 20); del held; time.sleep(1)"
    used = run_command([sys.executable, "-I", "-c", code])
    assert 300 << 20 < used.memory < 360 << 20 and used.seconds > 1


def test_usage_counts_children() -> None:
    """A child that takes 50 MB and a fifth of a second of the processor."""
    busy = "t = time.process_time()\nwhile time.process_time() < t + .2: pass"
    child = f"import time\nx = bytearray(50 << 20)\n{busy}"
    used = run_command(["sh", "-c", f"python3 -c '{child}'; true"])
    assert used.code == 0 and used.processor >= 0.2 and used.memory > 50 << 20 and used.seconds >= 0.2
    assert used.disk == 0
    assert run_command(["sh", "-c", "echo wrong >&2; exit 3"]).error == "wrong\n"


def test_usage_counts_temporary_files() -> None:
    """Those without a name, of all processes, each once."""
    write = "import os, tempfile, time\nf = tempfile.TemporaryFile()\nf.write(bytes(20 << 20)); f.flush()"
    fork = "os.fork()\ntime.sleep(.3)"
    used = run_command(["sh", "-c", f"python3 -c '{write}\n{fork}'; true"])
    assert used.code == 0 and 20 << 20 <= used.disk < 21 << 20


def test_what_may_be_predicted_where_two_runs_differ_little(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that cost nothing beside noise have a wide range, those that cost much a narrow one."""

    def used(processor: float, disk: int) -> Usage:
        return Usage(processor, 9.0, 300_000_000, disk, 0, "")

    runs = {2_000_000: used(2.0, 16_000_000), 8_000_000: used(2.1, 64_000_000)}
    monkeypatch.setattr("pipelines.run.cost.try_rows", lambda job, n: runs[n])
    (cost,) = predict(check_job(bench.job), (98_000_000,), (2_000_000, 8_000_000))
    assert cost.processor == pytest.approx(2.1 + 15 * 0.1) and cost.disk == pytest.approx(98 * 8e6)
    assert cost.processor_low == pytest.approx(2.1 * 0.9)  # rows may cost nothing
    assert cost.processor_high == pytest.approx(2.1 * 1.1 + 15 * (2.1 * 1.1 - 2.0 * 0.9))
    runs[8_000_000] = used(20.0, 64_000_000)
    (cost,) = predict(check_job(bench.job), (98_000_000,), (2_000_000, 8_000_000))
    assert 0.85 * cost.processor < cost.processor_low < cost.processor_high < 1.15 * cost.processor


def test_rows_of_units_wait_on_disk(bench: Bench) -> None:
    """Points of 8 bytes and keys of 16, of two million rows, and their records."""
    asked = {**changes("median"), "input.unit": "who"}
    assert 2e6 * 24 <= try_rows(check_job(bench.changed(asked)), 2_000_000).disk <= 2e6 * 32


@pytest.mark.parametrize(
    ("rows", "peaks", "memory"),
    [
        (1, (300e6, 306e6), 306e6),  # it does not grow
        (100_000_000, (300e6, 390e6), 390e6),  # or by no more than runs of the same rows differ
        (10, (1e9, 4e9), 250e6),
        (1_000_000, (1e9, 4e9), 1e9 / 2),  # in proportion, above the line
        (1_000_000, (2e9, 4e9), 3e9 / 2),  # on the line, above the proportion
        (4_000_000, (1e9, 4e9), 2.5e9),
        (10_000_000, (1e9, 4e9), 7e9),
    ],
)
def test_memory_is_predicted_for_fewer_rows_than_were_tried(
    rows: int, peaks: tuple[float, float], memory: float
) -> None:
    assert _memory(rows, (2_000_000, 6_000_000), peaks) == pytest.approx(memory)


def test_a_trial_has_the_code_of_a_function(bench: Bench) -> None:
    """Its values have a digest of the text, which is no Python."""
    text = "def first(rows):\n    return [0.5]\n"
    params = {**changes("sample_and_aggregate")["params"], "function": "own.py:first", "code": text}
    job = check_job(bench.changed({**changes("sample_and_aggregate"), "params": params}))
    assert trial(job, bench.folder)["params"]["code"] == text


@pytest.mark.parametrize("name", joint_plans())
def test_a_trial_of_several_questions_asks_the_same(bench: Bench, name: str) -> None:
    """Of rows that have the columns of all of them."""
    job, _ = joint_plans()[name]
    values = trial(job, bench.folder)
    again = check_several(json.loads(json.dumps(values)))
    places = {"input": {"path"}, "output": True, "run_id": True}
    asked, tried = (
        {name: each.model_dump(mode="json", exclude=places) for name, each in which.jobs.items()}
        for which in (job, again)
    )
    assert tried == asked and again.shares == job.shares
    rows = made_up(again, 0, 20)
    for each in again.jobs.values():
        keys = () if each.group_keys is None else each.group_keys.columns
        assert {*each.input.columns, *keys, *([] if each.unit is None else [each.unit])} <= set(rows)
        assert set(rows) >= set(made_up(each, 0, 20))


def test_several_questions_share_their_passes(bench: Bench) -> None:
    """A column has what its first question says. Triangles are counted in a pass by themselves."""
    domain = {"lower": [0], "upper": [2**30], "step": 1}
    square = {"columns": ["x", "y"], "domain": {"lower": [0, 0], "upper": [2**20, 1024], "step": 1}}
    nodes = {"lower": [0, 0], "upper": [999, 999], "step": 1}
    several = {
        "input": {"path": str(bench.folder / "rows")},
        "privacy": {"epsilon": 3.0, "delta": 1e-6, "ledger": str(bench.folder / "ledger.json")},
        "questions": {
            "half": {"task": "median", "columns": ["x"], "domain": domain, "params": {}},
            "hot": {"task": "one_cluster", **square, "params": {"target": 1500}},
            "net": {"task": "triangles", "columns": ["u", "v"], "domain": nodes, "params": {}},
        },
        "output": str(bench.folder / "out"),
    }
    job = check_several(several)
    rows = made_up(job, 0, 500)
    assert rows["x"].max() > 2**29 and 512 < rows["y"].max() <= 1024
    (cost,) = predict(job, (1000,), FEW)
    assert cost.rows_read == (4 + 1) * 1000
    assert cost.shuffled == 0 and cost.memory > 1e8 and not (bench.folder / "out").exists()


def test_a_key_of_one_question_may_be_a_value_of_another(bench: Bench) -> None:
    """Whichever comes first: keys are no floats."""
    line = {"columns": ["c"], "domain": {"lower": [0], "upper": [10], "step": 1}}
    values = {"task": "median", **line, "params": {}}
    by = {**values, "columns": ["x"], "group_by": {"columns": ["c"], "keys": [1, 2, 3]}}
    shared = {"input": {"path": str(bench.folder / "rows")}, "privacy": {"epsilon": 3.0, "delta": 0}}
    for questions in ({"one": values, "by": by}, {"by": by, "one": values}):
        job = check_several({**shared, "questions": questions, "output": str(bench.folder / "out")})
        keys = made_up(job, 0, 200)["c"]
        assert keys.dtype.kind == "i" and set(keys.tolist()) == {1, 2, 3}


SEVERAL_USES: dict[str, dict[str, Any]] = {
    "value and key": {"group_by": {"columns": ["x"], "keys": [0, 1, 2]}},
    "value and private key": {"group_by": {"columns": ["x"], "keys": "private"}},
    "value and order": {"input.unit": "u", "input.keep": "last", "input.order": "x"},
    "value and unit": {"input.unit": "x"},
    "key and unit": {"input.unit": "c", "group_by": {"columns": ["c"], "keys": ["a", "b"]}},
}


@pytest.mark.parametrize("uses", SEVERAL_USES)
def test_a_column_may_have_several_uses(bench: Bench, uses: str) -> None:
    statistics = {**changes("statistics"), **LINE, "params": {"measures": ["count"]}}
    line = {**statistics, "domain.upper": [10], "domain.step": 1, **SEVERAL_USES[uses]}
    if "unit" in uses and "key" in uses:
        line["contributions"] = {"groups": 1, "rows": 1}
    if uses.endswith(("order", "unit")) and "key" not in uses:
        line = {**line, **changes("median"), "params": {}}
    used = try_rows(check_job(bench.changed(line)), 100)
    assert used.code == 0


def test_groups_share_their_passes(bench: Bench) -> None:
    asked = {**changes("one_cluster"), "group_by": {"columns": ["g"], "keys": ["a", "b", "c"]}}
    (cost,) = predict(check_job(bench.changed(asked)), (1000,), FEW)
    assert cost.rows_read == 4000
