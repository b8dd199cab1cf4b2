"""A dry run and a run make the same checks; a refusal charges nothing and writes nothing."""

import copy
import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pipelines import terminated
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from pipelines.release import REPORT
from pipelines.run import run as runs
from pipelines.terminated import Terminated
from tests.pipelines.conftest import Bench


@pytest.fixture
def books(bench) -> Bench:
    """Return a bench whose jobs have a ledger."""
    path = str(bench.folder / "books" / "ledger.json")
    create_ledger(path, Ledger(epsilon=5.0, delta=1e-5))
    bench.job["privacy"]["ledger"] = path
    bench.job["run_id"] = "monday"
    return bench


def everything(folder: Path) -> dict[str, bytes | None]:
    """Return the content of each file and folder but the job."""
    places = (place for place in folder.rglob("*") if place.name != "job.yaml")
    return {str(place): None if place.is_dir() else place.read_bytes() for place in places}


def refusal(bench: Bench, changes: dict) -> tuple[int, str]:
    """Return exit code and message of a run and of a dry run, which are the same and write nothing."""
    before = everything(bench.folder)
    said = []
    for flags in (["--dry-run"], []):
        result = bench.run(changes, *flags)
        assert result.stdout == ""
        assert everything(bench.folder) == before
        said.append((result.exit_code, result.stderr))
    assert said[0] == said[1]
    return said[0]


def rewrite_ledger(bench: Bench, change: Callable[[dict], None]) -> None:
    path = Path(bench.job["privacy"]["ledger"])
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_a_run_id_of_another_job(books):
    assert books.run().exit_code == 0
    changes = {"privacy.epsilon": 0.5, "output": str(books.folder / "other")}
    code, says = refusal(books, changes)
    assert (code, "contains a run of another job with this id" in says) == (2, True)


def test_a_release_that_is_lost(books):
    assert books.run().exit_code == 0
    release = books.folder / "out"
    release.rename(books.folder / "backup")
    code, says = refusal(books, {})
    assert (code, "its release is no longer in" in says) == (3, True)
    (books.folder / "backup").rename(release)
    assert books.run().exit_code == 0


def test_a_charge_for_another_folder(books):
    assert books.run().exit_code == 0
    rewrite_ledger(books, lambda ledger: ledger["charges"][0].update(release=None))
    shutil.rmtree(books.folder / "out")
    code, says = refusal(books, {})
    assert (code, "for another folder than the one now at" in says) == (3, True)


def test_a_charge_for_other_noise(books):
    assert books.run().exit_code == 0
    shutil.rmtree(books.folder / "out")

    def cheapen(ledger: dict) -> None:
        ledger["charges"][0]["draws"][0] = [0.0, 0.0, 0.0]

    rewrite_ledger(books, cheapen)
    code, says = refusal(books, {})
    assert (code, "for other noise than this version" in says) == (3, True)


def test_a_foreign_id_of_the_output(books):
    (books.folder / "out").mkdir()
    (books.folder / "out" / "output.id").write_text("hello")
    code, says = refusal(books, {})
    assert (code, "output.id exists, but no run wrote it" in says) == (2, True)


def test_a_release_that_the_ledger_does_not_know(books):
    assert books.run().exit_code == 0
    rewrite_ledger(books, lambda ledger: ledger.update(charges=[]))
    code, says = refusal(books, {})
    assert (code, "contains no charge of run monday" in says) == (2, True)


def test_a_ledger_with_two_names(books):
    os.link(books.job["privacy"]["ledger"], books.folder / "books" / "link.json")
    code, says = refusal(books, {})
    assert (code, "has 2 hard links" in says) == (2, True)


def test_a_ledger_that_cannot_be_written(books, monkeypatch):
    def read_only(folder: str) -> None:
        if folder.endswith("books"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("pipelines.storage.local_folder.try_folder", read_only)
    code, says = refusal(books, {})
    assert (code, "ledger.json cannot be written (Read-only file system)" in says) == (1, True)


@pytest.mark.parametrize("questions", [1, 2])
@pytest.mark.parametrize("where", ["missing", "file"])
def test_a_folder_for_waiting_rows_that_is_none(bench, where, questions, monkeypatch):
    """Python would take another one, perhaps on a disk on which no row may lie."""
    (bench.folder / "file").touch()
    if questions > 1:
        own = {key: bench.job.pop(key) for key in ("task", "domain", "params")}
        own |= {key: bench.job["input"].pop(key) for key in ("columns", "checks")}
        bench.job["questions"] = {name: copy.deepcopy(own) for name in ("one", "two")}
    monkeypatch.setenv("TMPDIR", str(bench.folder / where))
    code, says = refusal(bench, {})
    assert (code, "it is no folder that can be written to" in says) == (2, True)


def test_no_folder_for_waiting_rows(bench, monkeypatch):
    """Such as in a container that is read-only: a run would be charged, and then fail at its first row."""

    def nowhere():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    code, says = refusal(bench, {})
    assert code == 2 and "There is no folder that temporary files can be written to" in says


@pytest.mark.parametrize("spelled", [("out", "link"), ("link", "out")])
@pytest.mark.parametrize("name", ["report.html", "release.json", "result.parquet", "output.id"])
def test_a_ledger_that_has_the_name_of_a_file_of_the_output(bench, name, spelled):
    """Though one of the two is reached through a link."""
    ledger, output = spelled
    path = str(bench.folder / ledger / name)
    changes = {"privacy.ledger": path, "output": str(bench.folder / output)}
    (bench.folder / "out").mkdir()
    (bench.folder / "link").symlink_to(bench.folder / "out")
    if name in ("report.html", "output.id"):  # the others are refused as releases
        create_ledger(path, Ledger(epsilon=5.0, delta=1e-5))
    code, says = refusal(bench, changes)
    assert (code, "a run writes a file of this name to its output" in says) == (2, True)


def test_an_output_in_which_no_file_can_be_written(bench):
    (bench.folder / "file").touch()
    code, says = refusal(bench, {"output": str(bench.folder / "file" / "out")})
    assert (code, "no file can be created there" in says) == (2, True)


def test_a_report_without_a_release_is_of_no_run(bench):
    (bench.folder / "out").mkdir()
    (bench.folder / "out" / REPORT).write_text("mine")
    code, says = refusal(bench, {})
    assert (code, "report.html exists, but there is no release beside it" in says) == (2, True)


def test_a_report_replaces_nothing_but_a_report(bench):
    assert bench.run().exit_code == 0
    path = bench.folder / "out" / REPORT
    page = path.read_text()
    path.write_text("<!doctype html> of an earlier version")
    assert bench.shoal("report", str(bench.folder / "out")).exit_code == 0
    assert path.read_text() == page
    path.write_text("{}")
    refused = bench.shoal("report", str(bench.folder / "out"))
    assert (refused.exit_code, "report.html exists, but it is not a report" in refused.stderr) == (2, True)
    assert path.read_text() == "{}"


def test_a_release_counts_though_the_pipeline_failed_after_it(books, monkeypatch):
    submit = runs.submit

    def fail_late(build: Callable, consequence: str, *started: Callable) -> bool:
        assert submit(build, consequence, *started)
        raise runs.RunError(f"The pipeline failed; {consequence}.")

    monkeypatch.setattr(runs, "submit", fail_late)
    result = books.run()
    assert result.exit_code == 0, result.output
    assert read_ledger(books.job["privacy"]["ledger"]).charges[0].release is not None


@pytest.mark.parametrize("keeps_report", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda release: release.pop("privacy"),
        lambda release: release.update(task="nope"),
        lambda release: release.update(task=[]),
        lambda release: release.update(domain=1),
        lambda release: release["privacy"].update(epsilon="x"),
        lambda release: release["privacy"].update(epsilon=10**400),
    ],
)
def test_a_release_that_was_changed_is_told_in_a_sentence(bench, change, keeps_report):
    assert bench.run().exit_code == 0
    path = bench.folder / "out" / "release.json"
    if not keeps_report:
        (bench.folder / "out" / REPORT).unlink()
    release = json.loads(path.read_text())
    change(release)
    path.write_text(json.dumps(release))
    again, report = bench.run(), bench.shoal("report", str(bench.folder / "out"))
    says = rf"shoal: {path} cannot be shown \(\w+ at \w+\.py:\d+\)\. If it was changed after its run, .*\n"
    assert report.exit_code == 2 and re.fullmatch(says, report.stderr)
    if not keeps_report or "domain" not in str(change.__code__.co_consts):
        assert again.exit_code == 2 and re.fullmatch(says, again.stderr.splitlines(keepends=True)[-1])


@pytest.mark.parametrize("error", [MemoryError, OSError, ImportError])
def test_a_report_that_cannot_be_drawn_accuses_nobody(bench, monkeypatch, error):
    """The release is as the run wrote it, and the same run again only draws the report."""

    def fail(*_: object) -> None:
        raise error(errno.EIO, "secret")

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.run.delivery.report_page", fail)
        patched.setattr("pipelines.report.page.report_page", fail)
        for failed in (bench.run(), bench.shoal("report", str(bench.folder / "out"))):
            says = rf"shoal: .* is stored, but cannot be shown \({error.__name__} at \w+\.py:\d+\): run .*\n"
            assert failed.exit_code == 1 and re.fullmatch(says, failed.stderr.splitlines(keepends=True)[-1])
            assert "secret" not in failed.stderr
    assert bench.run().exit_code == 0 and (bench.folder / "out" / REPORT).exists()


def test_an_empty_release_is_not_run_again(bench, monkeypatch):
    assert bench.run().exit_code == 0
    (bench.folder / "out" / "release.json").write_text("")
    monkeypatch.setattr(runs, "prepare_run", None)
    for again in (bench.run(), bench.run({}, "--dry-run")):
        assert again.exit_code == 2 and "release.json is not a release of schema 1" in again.stderr


def test_an_interruption_is_an_event(bench, monkeypatch):
    for error, code in ((KeyboardInterrupt, 130), (Terminated, 143)):

        def interrupt(*_: object, error: type[BaseException] = error) -> None:
            raise error

        monkeypatch.setattr(runs, "prepare_run", interrupt)
        ended = bench.run({}, "--json-logs")
        [event] = [json.loads(line) for line in ended.stderr.splitlines()]
        assert (ended.exit_code, event["event"], event["exit_code"]) == (code, "failed", code)
        assert event["message"].endswith("a run is finished with the same run id.")
        plain = bench.run()
        assert (plain.exit_code, plain.stderr) == (code, f"shoal: {event['message']}\n")


@pytest.mark.parametrize("lost", [True, False])
def test_a_signal_whose_exception_is_lost_ends_a_run_before_its_charge(books, monkeypatch, lost):
    """Python drops an exception that a signal raises in a callback, and libraries may raise another one."""
    real = runs.prepare_run

    def prepare(*args: object, **more: object) -> object:
        with suppress(Terminated):
            terminated._terminate()
        if not lost:
            raise ValueError
        return real(*args, **more)

    monkeypatch.setattr(runs, "prepare_run", prepare)
    monkeypatch.setattr(terminated, "_asked", [])
    before = read_ledger(books.job["privacy"]["ledger"])
    ended = books.run()
    assert ended.exit_code == 143
    again = "Run the same command again; a run is finished with the same run id."
    assert ended.stderr == f"shoal: Terminated. {again}\n"
    assert read_ledger(books.job["privacy"]["ledger"]) == before


def test_a_signal_that_is_lost_while_a_run_is_charged_ends_it_before_a_row_is_read(books, monkeypatch):
    charge = runs.charge_delivery

    def charged(*args: object) -> object:
        with suppress(Terminated):
            terminated._terminate()
        return charge(*args)

    with monkeypatch.context() as signalled:
        signalled.setattr(runs, "charge_delivery", charged)
        submitted: list[object] = []
        signalled.setattr(runs, "submit", lambda *given: submitted.append(given))
        signalled.setattr(terminated, "_asked", [])
        assert books.run().exit_code == 143
    assert not submitted
    assert books.run().exit_code == 0
    assert len(read_ledger(books.job["privacy"]["ledger"]).charges) == 1
