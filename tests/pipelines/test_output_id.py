"""A charge pays for one draw in one folder: in another folder at its place nothing is drawn again."""

import inspect
from pathlib import Path

import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.ledger.ledger import Ledger, LedgerRefusal, create_ledger, read_ledger
from pipelines.release import OUTPUT_ID, identify_output, read_output_id
from pipelines.run import delivery
from pipelines.run import run as runs
from pipelines.storage.folder import StorageError
from pipelines.storage.locate import open_folder


@pytest.fixture
def job(bench):
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=5.0, delta=1e-5))
    return check_job(bench.changed({"privacy.ledger": path, "run_id": "monday"}))


def fail(*_: object) -> None:
    raise StorageError("The ledger does not answer.")


def test_a_release_that_was_seen_before_its_charge_was_marked_is_not_drawn_again(bench, job, monkeypatch):
    """The run dies between the release and the mark; then its folder is moved away."""
    out = bench.folder / "out"
    with monkeypatch.context() as dying:
        dying.setattr(delivery, "mark_released", fail)
        with pytest.raises(StorageError, match="does not answer"):
            runs.run_job(job)
    assert (out / "release.json").exists()
    assert read_ledger(job.privacy.ledger).charges[0].release is None
    out.rename(bench.folder / "seen")
    with pytest.raises(LedgerRefusal, match="for another folder than the one now at"):
        runs.run_job(job)
    assert not out.exists(), "a refusal writes nothing, so that the folder can be moved back"
    (bench.folder / "seen").rename(out)
    release = (out / "release.json").read_bytes()
    runs.run_job(job)
    assert (out / "release.json").read_bytes() == release
    assert read_ledger(job.privacy.ledger).charges[0].release is not None


def test_two_machines_with_disks_of_their_own_draw_once(bench, job, monkeypatch):
    """Both are charged before either releases: the second one's folder is not the one that was charged."""
    out, first = bench.folder / "out", bench.folder / "first"

    def meanwhile(*_: object) -> bool:
        out.rename(first)
        with pytest.raises(LedgerRefusal, match="for another folder"):
            runs.run_job(job)
        first.rename(out)
        return True

    with monkeypatch.context() as slow:
        slow.setattr(runs, "submit", meanwhile)
        with pytest.raises(runs.RunError, match="is not visible from this machine"):
            runs.run_job(job)
    assert runs.run_job(job) is not None
    assert len(read_ledger(job.privacy.ledger).charges) == 1


def test_two_machines_that_are_charged_at_the_same_time_draw_once(bench, job, monkeypatch):
    """Both have found no charge before; by the second charge both folders have ids of their own."""
    charge = runs.charge_run

    def late(*arguments):
        charge(*arguments[:-1], "0" * 32)
        return charge(*arguments)

    monkeypatch.setattr(runs, "charge_run", late)
    with pytest.raises(LedgerRefusal, match="for another folder than the one now at"):
        runs.run_job(job)
    assert not (bench.folder / "out" / "release.json").exists()
    (entry,) = read_ledger(job.privacy.ledger).charges
    assert entry.output_id == "0" * 32


def test_a_run_is_not_charged_for_a_folder_that_another_run_is_charged_for(bench, job, monkeypatch):
    """Both have found the folder empty; it holds one release, so one of them would pay for nothing."""
    other = check_job(bench.changed({"privacy.ledger": job.privacy.ledger, "run_id": "tuesday"}))
    charge = runs.charge_run

    def late(path, _, plan, *rest):
        charge(path, job, plan, *rest)
        return charge(path, other, plan, *rest)

    with monkeypatch.context() as racing:
        racing.setattr(runs, "charge_run", late)
        with pytest.raises(LedgerRefusal, match=r"has charged run monday for a release in .*/out, which"):
            runs.run_job(other)
    with pytest.raises(LedgerRefusal, match="let that run end, or give another output"):
        runs.prepare_run(other)
    assert [entry.run_id for entry in read_ledger(job.privacy.ledger).charges] == ["monday"]
    assert runs.run_job(job) is not None  # it costs nothing more


def test_a_run_takes_the_id_that_was_charged_to_its_workers(bench, job, monkeypatch):
    """Between its charge and its release another folder comes to its place."""
    out, submit = bench.folder / "out", runs.submit

    def meanwhile(*arguments):
        out.rename(bench.folder / "charged")
        out.mkdir()
        return submit(*arguments)

    monkeypatch.setattr(runs, "submit", meanwhile)
    with pytest.raises(runs.RunError, match="on the worker is not the folder of the machine that submitted"):
        runs.run_job(job)
    assert not [*out.iterdir()]


WRITERS = [
    name
    for name, each in vars(delivery).items()
    if name.startswith("write_") and each.__module__ == delivery.__name__
]


def test_there_are_writers():
    assert {"write_whole", "write_one_part", "write_table", "write_one_answer", "write_answers"} < {*WRITERS}


@pytest.mark.parametrize("name", WRITERS)
def test_a_worker_with_another_disk_writes_nothing(job, tmp_path, name):
    """Whatever it would write: each writer asks first, before it looks at what it is given."""
    there = delivery.Delivery(open_folder(str(tmp_path / "disk")), "monday", job.hash(), None, None, "0" * 32)
    writer = getattr(delivery, name)
    given = {key: (0, None) for key in inspect.signature(writer).parameters} | {"delivery": there}
    with pytest.raises(StorageError, match="on the worker is not the folder of the machine that"):
        writer(**given)
    assert not (tmp_path / "disk").exists()


def test_a_folder_keeps_its_id(tmp_path):
    folder = open_folder(str(tmp_path / "out"))
    assert read_output_id(folder) is None
    first = identify_output(folder)
    assert identify_output(folder) == read_output_id(folder) == first
    assert identify_output(open_folder(str(tmp_path / "other"))) != first
    Path(folder.locate(OUTPUT_ID)).write_text("mine")
    with pytest.raises(JobError, match=r"output\.id exists, but no run wrote it: give another folder\.$"):
        identify_output(folder)


def test_a_run_without_a_ledger_leaves_no_id(bench):
    assert bench.run().exit_code == 0
    assert not (bench.folder / "out" / OUTPUT_ID).exists()
