"""Runs from the command to the release."""

import errno
import io
import json
import logging
import os
import pickle
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from pipelines.plan import show
from pipelines.report.report import render
from pipelines.storage.local_folder import LocalFolder
from tests.pipelines.conftest import CENTER, RADIUS, write_rows
from transforms import spill


def test_a_run_leaves_a_release_and_a_report(bench):
    """With eight times the noise none of 60 runs failed: the flake rate is about 0.05^8, below 1e-10."""
    result = bench.run({"privacy.epsilon": 4.0})
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(bench.folder / "out")) == ["release.json", "report.html"]
    release = bench.release()
    assert release["schema"] == 1
    assert release["outcome"] == "released"
    parts = {"task", "run_id", "privacy", "domain", "params", "mechanisms", "accuracy", "software"}
    assert parts <= set(release)
    assert release["privacy"]["neighbors"] == "add_or_remove_one"
    assert release["privacy"]["spent"] <= 4.0
    ball = release["result"]
    assert np.linalg.norm(np.array(ball["center"]) - CENTER) < RADIUS
    assert ball["radius"] < 2 * RADIUS
    assert abs(ball["count"] - 1500) < 300
    for draw in release["mechanisms"]:
        assert draw["scale"] > 0
        assert draw["sensitivity"] > 0


def test_the_same_run_returns_the_same_release_and_reads_no_data(bench):
    assert bench.run().exit_code == 0
    before = (bench.folder / "out" / "release.json").read_bytes()
    shutil.rmtree(bench.folder / "rows")
    (bench.folder / "out" / "report.html").unlink()
    again = bench.run()
    assert again.exit_code == 0, again.output
    assert (bench.folder / "out" / "release.json").read_bytes() == before
    assert (bench.folder / "out" / "report.html").exists()


def test_the_next_run_removes_what_killed_writers_left(bench):
    """Of every file, also of the table of a question."""
    domain = {"lower": [0], "upper": [1], "step": 2.0**-4}
    asked = {"task": "histogram", "columns": ["x"], "domain": domain, "params": {"cells": [4]}, "checks": 0}
    given = dict.fromkeys(("task", "domain", "params", "input.columns", "input.checks"), ...)
    given |= {"questions": {"cells": asked}, "run_id": "monday"}
    assert bench.run(given).exit_code == 0
    out = bench.folder / "out"
    names = [path.relative_to(out) for path in out.rglob("*") if path.suffix]
    assert len(names) == 3
    for name in names:
        (out / name).with_name(f".{name.name}.draft").write_text("left")
    assert bench.run(given).exit_code == 0
    assert sorted(path.relative_to(out) for path in out.rglob("*") if path.suffix) == sorted(names)


def test_run_ids_name_folders(bench):
    output = str(bench.folder / "releases" / "{run_id}")
    text = bench.write(bench.changed({"output": output})) and Path(bench.folder / "job.yaml").read_text()
    result = bench.shoal("run", bench.write(text + "run_id: 2026-11-20\n"))
    assert result.exit_code == 0, result.output
    assert bench.release("releases/2026-11-20")["run_id"] == "2026-11-20"
    assert bench.run({"output": output}).exit_code == 0
    others = set(os.listdir(bench.folder / "releases")) - {"2026-11-20"}
    assert len(others) == 1
    assert re.fullmatch("[0-9a-f]{16}", others.pop())


def test_overrides(bench):
    assert bench.run({}, "--set", "params.target=1200", "--set", "privacy.epsilon=2").exit_code == 0
    assert bench.release()["params"]["target"] == 1200
    assert bench.release()["privacy"]["epsilon"] == 2


def test_repeated_bundles_leave_one_value(bench):
    """Each bundle runs three times more, with fresh noise; what is released is what was drawn once."""
    result = bench.run({}, "--", "--direct_runner_bundle_repeat=3", "--direct_running_mode=in_memory")
    assert result.exit_code == 0, result.output
    ball = bench.release()["result"]
    shown = re.search(r"count +([\d,]+)", result.stdout)
    assert int(shown[1].replace(",", "")) == ball["count"]
    assert sorted(os.listdir(bench.folder / "out")) == ["release.json", "report.html"]


def test_directrunner_is_the_embedded_one(bench):
    assert bench.run({}, "--runner", "DirectRunner").exit_code == 0


def test_nothing_of_the_rows_leaves_but_the_release(bench, caplog, capfd):
    """Rows of one value that stands nowhere else: it is in no output, log or file but the rows' own."""
    marked = np.full((3181, 2), 0.777_123_456)
    write_rows(bench.rows, np.concatenate([marked, np.random.default_rng(0).uniform(size=(37, 2))]))
    with caplog.at_level(logging.DEBUG):
        result = bench.run({"domain.step": 0.25, "params.target": 10**6})
    assert result.exit_code == 0, result.output
    captured = capfd.readouterr()
    left = result.output + caplog.text + captured.out + captured.err
    left += "".join(p.read_text() for p in (bench.folder / "out").iterdir())
    # A count would stand alone: four digits within a digest or a long fraction are chance.
    for trace in ("777123", r"0\.7771", r"(?<![\w.])3,?181(?!\w)", r"(?<![\w.])3,?218(?!\w)"):
        assert not re.search(trace, left)


def test_errors_of_rounds_are_not_quoted(bench, monkeypatch):
    from core.one_cluster.practical.locate import FindRadiusAndRegion

    def fail(self, block, state):
        raise RuntimeError(f"secret row {block.points[0]}")

    monkeypatch.setattr(FindRadiusAndRegion, "summarize", fail)
    result = bench.run({}, "--", "--direct_running_mode=in_memory")
    assert result.exit_code == 1
    assert "secret" not in result.output
    assert "Traceback" not in result.output
    assert not (bench.folder / "out" / "release.json").exists()


def test_plan_reads_no_rows(bench):
    shutil.rmtree(bench.folder / "rows")
    path = bench.write(bench.job)
    shown = bench.shoal("plan", path)
    assert shown.exit_code == 0, shown.output
    assert "good_radius" in shown.stdout
    planned = json.loads(bench.shoal("plan", path, "--json").stdout)
    assert planned["method"] == "practical"
    assert planned["privacy"]["spent"] <= 1
    assert not (bench.folder / "out").exists()


def test_plan_release_and_report_name_each_draw(bench):
    """The kind of draw and the whole label; the tables show the label alone."""
    changes = {"task": "k_means", "params": {"k": 2}}
    assert bench.run(changes).exit_code == 0
    drawn = bench.release()["mechanisms"]
    path = str(bench.folder / "job.yaml")
    planned = json.loads(bench.shoal("plan", path, "--json").stdout)
    assert planned["mechanisms"] == drawn
    console = Console(width=200, file=io.StringIO())
    show(planned, console)
    shown, report = console.file.getvalue(), (bench.folder / "out" / "report.html").read_text()
    assert {draw["kind"] for draw in drawn} == {"discrete Gaussian"}
    for draw in drawn:
        label = draw["mechanism"]
        assert label.startswith(f"{draw['kind']}: ")
        assert f">{label}</td>" in report
        assert label in shown


def test_plan_of_the_published_method_says_how_large_it_must_be(bench):
    changes = {"privacy.neighbors": "replace_one", "params.method": "paper"}
    planned = bench.shoal("plan", bench.write(bench.changed(changes)), "--json")
    assert planned.exit_code == 0, planned.output
    assert json.loads(planned.stdout)["accuracy"]["smallest_target"] > 10**8


@pytest.mark.parametrize("method", ["auto", "practical", "paper"])
def test_replace_one_runs(bench, method):
    changes = {"privacy.neighbors": "replace_one", "params.method": method, "domain.step": 2.0**-4}
    result = bench.run(changes)
    assert result.exit_code == 0, result.output
    assert bench.release()["privacy"]["neighbors"] == "replace_one"


def test_schema_is_json(bench):
    schema = json.loads(bench.shoal("schema").stdout)
    assert "one_cluster" in json.dumps(schema)


def test_report_is_made_from_the_release_alone(bench):
    assert bench.run().exit_code == 0
    page = (bench.folder / "out" / "report.html").read_text()
    assert page == render(bench.release())
    assert "<svg" in page
    for outside in ("<script src", "<link", "@import", 'src="http', "url(http"):
        assert outside not in page
    moved = bench.folder / "elsewhere"
    moved.mkdir()
    shutil.copy(bench.folder / "out" / "release.json", moved)
    assert bench.shoal("report", str(moved)).exit_code == 0
    assert (moved / "report.html").read_text() == page
    assert bench.shoal("report", str(bench.folder / "nowhere")).exit_code == 2


def test_report_escapes(bench):
    assert bench.run().exit_code == 0
    release = bench.release()
    release["domain"]["columns"] = ["<b>x</b>", "y"]
    release["run_id"] = "<script>alert(1)</script>"
    page = render(release)
    assert "<b>x</b>" not in page
    assert "<script>alert" not in page


@pytest.mark.parametrize("d", [1, 3, 40])
def test_report_of_other_dimensions(bench, d):
    assert bench.run().exit_code == 0
    release = bench.release()
    release["domain"].update(columns=[f"c{i}" for i in range(d)], lower=[0.0] * d, upper=[1.0] * d)
    release["result"]["center"] = [0.5] * d
    assert f"c{d - 1}" in render(release)


def test_one_of_many_writers_creates(tmp_path):
    folder = LocalFolder(str(tmp_path / "release"))
    won: list[int] = []

    def write(number: int) -> None:
        if folder.create("release.json", str(number).encode() * 10_000):
            won.append(number)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert folder.read("release.json") == str(won[0]).encode() * 10_000
    assert os.listdir(tmp_path / "release") == ["release.json"]
    assert pickle.loads(pickle.dumps(folder)) == folder


def test_help_comes_at_once():
    command = [os.path.join(os.path.dirname(sys.executable), "shoal"), "--help"]
    seconds = []  # of the processor: other work on the machine takes none of them
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert "demo" in done.stdout
    assert min(seconds) < 0.5


def test_demo_runs_twice(tmp_path, bench):
    first = bench.shoal("demo", "--out", str(tmp_path / "demo"))
    assert first.exit_code == 0, first.output
    again = bench.shoal("demo", "--out", str(tmp_path / "demo"))
    assert again.stdout == first.stdout
    names = ("by_country", "latitudes", "hot_spot", "centers", "cover")
    assert all(f"\n{name}:\n" in f"\n{first.stdout}" for name in names)
    (folder,) = (tmp_path / "demo" / "releases").iterdir()
    answers = json.loads((folder / "release.json").read_text())["answers"]
    assert tuple(answers) == names
    assert all(answer["outcome"] == "released" for answer in answers.values())
    report = (folder / "report.html").read_text()
    assert all(f'href="#{name}"' in report for name in names)


def test_a_stored_release_is_announced(bench):
    """The default run id is made from the job, so a run on new data could return an old answer unnoticed."""
    first = bench.run()
    assert "released before" not in first.stderr
    again = bench.run()
    assert again.stdout == first.stdout
    assert "was released before" in again.stderr
    assert "give another run_id" in again.stderr


@pytest.mark.parametrize("json_logs", [False, True])
def test_a_full_disk_is_told_once_the_release_is_there(bench, monkeypatch, json_logs):
    """Whatever could not wait in a file waited in memory. A run that needs no file says nothing."""
    monkeypatch.setattr(spill, "_FULL", set())
    written, more = os.pwrite, ["--json-logs"] * json_logs
    before = bench.run({"output": str(bench.folder / "before")}, *more)
    assert "The disk of" not in before.stderr and "disk_full" not in before.stderr

    def full(file, data, offset):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", full)
    told = bench.run({}, *more)
    monkeypatch.setattr(os, "pwrite", written)
    assert told.exit_code == 0 and bench.release()["outcome"] == "released"
    if json_logs:
        lines = [json.loads(line) for line in told.stderr.splitlines()]
        assert [line["folder"] for line in lines if line["event"] == "disk_full"] == [tempfile.gettempdir()]
    else:
        assert f"The disk of {tempfile.gettempdir()} was full or failed" in told.stderr


def test_a_stored_release_is_read_once(bench, monkeypatch):
    assert bench.run().exit_code == 0
    read, names = LocalFolder.read, []
    monkeypatch.setattr(LocalFolder, "read", lambda self, name: names.append(name) or read(self, name))
    assert bench.run().exit_code == 0
    assert names.count("release.json") == 1
