"""The ledger: what it admits, what it refuses, and that it is charged once."""

import json
import re
import shutil
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.ledger.content import Entry
from pipelines.ledger.ledger import (
    Ledger,
    LedgerRefusal,
    charge_run,
    check_release,
    create_ledger,
    mark_released,
    new_ledger,
    now,
    read_ledger,
)
from pipelines.plan import make_plan
from pipelines.run import run as runs
from pipelines.storage.locate import open_file

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def clock() -> datetime:
    return NOON


class Books:
    """A ledger, and jobs that are charged to it."""

    def __init__(self, bench, path: str) -> None:
        self.bench, self.path = bench, path

    def job(self, run_id: str, **changes):
        return check_job(self.bench.changed({"privacy.ledger": self.path, "run_id": run_id, **changes}))

    def charge(self, run_id: str, **changes):
        job = self.job(run_id, **changes)
        return charge_run(self.path, job, make_plan(job, bytes(16)), clock)


@pytest.fixture
def books(bench) -> Books:
    path = str(bench.folder / "books" / "ledger.json")
    create_ledger(path, Ledger(epsilon=2.0, delta=1e-5))
    return Books(bench, path)


def test_a_run_is_charged_once(books):
    first = books.charge("monday")
    assert books.charge("monday") == first
    ledger = read_ledger(books.path)
    assert [entry.run_id for entry in ledger.charges] == ["monday"]
    assert (first.at, first.epsilon, first.release) == (NOON, 1.0, None)
    assert (first.task, first.output) == ("one_cluster", books.job("monday").output)
    draws = make_plan(books.job("monday"), bytes(16)).mechanisms
    assert first.delta == sum(draw.delta for draw in draws)
    assert 0.9e-6 < first.delta <= 1e-6  # its draws are added up, and spend nearly all that they may
    assert ledger.spent().epsilon == 1.0


def test_what_does_not_fit_is_refused_and_leaves_no_trace(books):
    books.charge("monday")
    books.charge("tuesday")
    before = Path(books.path).read_bytes()
    with pytest.raises(
        LedgerRefusal, match=r"epsilon 2 .* 2 charges; .* would come to epsilon 3 by basic composition\."
    ):
        books.charge("wednesday")
    with pytest.raises(LedgerRefusal, match="delta would be exceeded"):
        books.charge("wednesday", **{"privacy.epsilon": 1e-3, "privacy.delta": 1e-4})
    assert Path(books.path).read_bytes() == before


def test_a_run_id_belongs_to_one_job(books):
    """Also once it is released."""
    books.charge("monday")
    for _ in range(2):
        with pytest.raises(JobError, match=r"run_id is monday: .* another job"):
            books.charge("monday", **{"privacy.epsilon": 0.5})
        mark_released(books.path, "monday", "a" * 64)


@pytest.mark.parametrize("given", ["a" * 32, "b" * 32, None])
@pytest.mark.parametrize("charged", ["a" * 32, None])
def test_a_charge_serves_the_folder_that_it_names(books, charged, given):
    """A folder without an id is another one; a charge of an earlier version names none."""
    job = books.job("monday")
    plan = make_plan(job, bytes(16))
    entry = charge_run(books.path, job, plan, clock, charged)
    assert entry.output_id == charged
    if charged in (None, given):
        assert charge_run(books.path, job, plan, clock, given) == entry
    else:
        with pytest.raises(LedgerRefusal, match="for another folder than the one now"):
            charge_run(books.path, job, plan, clock, given)
    assert read_ledger(books.path).charges == (entry,)


def test_the_time_of_a_charge_is_in_utc():
    assert now().utcoffset() == timedelta(0) and now().microsecond == 0


def test_a_retry_that_plans_more_noise_than_was_charged_is_refused(books):
    job = books.job("monday")
    plan = make_plan(job, bytes(16))
    charge_run(books.path, job, plan, clock)
    costlier = replace(plan, rounds=(*plan.rounds, plan.rounds[-1]))
    with pytest.raises(LedgerRefusal, match="other noise"):
        charge_run(books.path, job, costlier, clock)
    assert len(read_ledger(books.path).charges) == 1


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("cost", ["epsilon", "delta", "rho"])
def test_a_charge_covers_no_draw_that_costs_more_in_any_way(place, cost):
    """A Gaussian draw has epsilon 0, and a draw of one kind may be followed by those of another."""
    charged = ((0.5, 1e-9, 0.1), (0.0, 1e-8, 0.2))
    names = ("epsilon", "delta", "rho")
    entry = Entry.model_construct(draws=charged)
    planned = [SimpleNamespace(**dict(zip(names, draw, strict=True))) for draw in charged]
    assert entry.covers(SimpleNamespace(mechanisms=planned))
    for others in (planned[:1], [*planned, planned[0]]):
        assert not entry.covers(SimpleNamespace(mechanisms=others))
    setattr(planned[place], cost, 1.01 * getattr(planned[place], cost) or 0.01)
    assert not entry.covers(SimpleNamespace(mechanisms=planned))


def test_a_replaced_record_is_no_added_one(books):
    with pytest.raises(LedgerRefusal, match="replace_one makes it public"):
        books.charge("monday", **{"privacy.neighbors": "replace_one"})


def test_an_added_record_counts_twice_where_one_is_replaced(books):
    path = str(books.bench.folder / "replaced.json")
    create_ledger(path, Ledger(neighbors="replace_one", epsilon=2.5, delta=1e-5))
    other = Books(books.bench, path)
    other.charge("monday")
    assert read_ledger(path).spent().epsilon == 2.0
    with pytest.raises(LedgerRefusal, match="this run's epsilon 2 "):
        other.charge("tuesday")
    other.charge("wednesday", **{"privacy.epsilon": 0.25})
    assert read_ledger(path).spent().epsilon == 2.5


def test_a_released_run_is_marked_once(books):
    books.charge("monday")
    books.charge("sunday")
    mark_released(books.path, "monday", "a" * 64)
    assert [entry.release for entry in read_ledger(books.path).charges] == ["a" * 64, None]
    before = Path(books.path).read_bytes()
    mark_released(books.path, "monday", "a" * 64)
    assert Path(books.path).read_bytes() == before
    with pytest.raises(JobError, match="another release"):
        mark_released(books.path, "monday", "b" * 64)
    with pytest.raises(JobError, match="no charge of run tuesday"):
        mark_released(books.path, "tuesday", "a" * 64)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"schema": 2, "epsilon": 1, "delta": 0}', "[]", '{"epsilon": -1}']
)
def test_files_that_are_no_ledgers(books, text):
    Path(books.path).write_text(text)
    with pytest.raises(JobError, match=r"not a ledger of schema 1, .*: give one that `shoal ledger cre"):
        books.charge("monday")
    assert Path(books.path).read_text() == text


def test_a_ledger_that_is_gone_after_a_release_is_restored(books):
    """Whoever creates a new one in its place forgets what was spent."""
    Path(books.path).unlink()
    for call in (mark_released, check_release):
        with pytest.raises(
            JobError, match="although the release of run monday is visible: restore"
        ) as caught:
            call(books.path, "monday", "a" * 64)
        assert "ledger create" not in str(caught.value)


def test_where_no_ledger_can_be(bench):
    def said(*command):
        result = bench.shoal("ledger", *command)
        assert result.exit_code == 2
        return result.output

    options = ("--epsilon", "1", "--delta", "0")
    assert "/proc/x.json cannot be written (" in said("create", "/proc/x.json", *options)
    assert "--unit is empty" in said("create", str(bench.folder / "l.json"), *options, "--unit", "")
    assert f"{bench.folder} cannot be read (Is a directory)" in said("show", str(bench.folder))


def test_runs_that_race_never_overspend(books):
    path = str(books.bench.folder / "race.json")
    create_ledger(path, Ledger(epsilon=35.0, delta=7e-6))
    race = Books(books.bench, path)
    costly = {"privacy.epsilon": 5.0}  # so large that plain sums are the tightest
    plan = make_plan(race.job("run", **costly), bytes(16))
    outcomes: list[str] = []

    def enter(number: int) -> None:
        try:
            charge_run(path, race.job(f"run-{number}", **costly), plan, clock)
            outcomes.append("accepted")
        except LedgerRefusal:
            outcomes.append("refused")

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("accepted"), outcomes.count("refused")) == (7, 13)
    assert read_ledger(path).spent().epsilon == 35.0


def ledger_commands(bench, *options: str):
    return bench.shoal("ledger", "create", str(bench.folder / "ledger.json"), *options)


def test_the_command_makes_and_shows_a_ledger(bench):
    path = str(bench.folder / "ledger.json")
    made = ledger_commands(bench, "--epsilon", "1.5", "--delta", "1e-5")
    assert made.exit_code == 0, made.output
    again = ledger_commands(bench, "--epsilon", "9", "--delta", "1e-5")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    job = bench.write(bench.changed({"privacy.ledger": path, "run_id": "monday"}))
    first = bench.shoal("run", job)
    assert first.exit_code == 0, first.output
    refused = bench.run({"privacy.ledger": path, "run_id": "tuesday", "output": str(bench.folder / "two")})
    assert refused.exit_code == 3
    says = r"shoal: privacy.ledger .* Nothing was charged for it\. Epsilon 0.5 is left\.\n"
    assert re.fullmatch(says, refused.stderr)
    assert not (bench.folder / "two").exists()
    shown = bench.shoal("ledger", "show", path)
    assert shown.exit_code == 0, shown.output
    for part in (
        "Spent: epsilon 1, delta 9.27342e-7.",
        "Left: epsilon 0.5, delta 9.07266e-6.",
        "monday",
        "one_cluster",
        "yes",
    ):
        assert part in shown.stdout
    described = json.loads(bench.shoal("ledger", "show", path, "--json").stdout)
    assert (described["spent"], described["left"], described["accountant"]) == (1.0, 0.5, "basic composition")
    assert described["charges"][0]["release"]
    assert described["charges"][0]["counted"] == 1.0
    assert described["charges"][0]["at"] in shown.stdout  # a table in a pipe is not cut


def test_pure_draws_are_charged_no_delta(bench):
    """Such a run fits a ledger without delta, whatever delta its job allows; others do not."""
    path = str(bench.folder / "pure.json")
    create_ledger(path, Ledger(epsilon=2.5, delta=0.0))
    domain = {"lower": [0.0], "upper": [1.0], "step": 2.0**-16}
    median = {"task": "median", "params": {}, "domain": domain, "input.columns": ["x"], "input.checks": ...}
    ran = bench.run({"privacy.ledger": path, "run_id": "pure", **median})
    assert ran.exit_code == 0, ran.output
    (entry,) = read_ledger(path).charges
    assert (entry.epsilon, entry.delta) == (1.0, 0.0)
    assert "epsilon 1, delta 0" in ran.stdout
    refused = bench.run({"privacy.ledger": path, "run_id": "other", "output": str(bench.folder / "two")})
    assert refused.exit_code == 3
    assert "its delta would be exceeded" in refused.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--epsilon", "0", "--delta", "1e-5"), "--epsilon is 0"),
        (("--epsilon", "nan", "--delta", "1e-5"), "--epsilon is nan"),
        (("--epsilon", "1", "--delta", "1"), "--delta is 1"),
        (("--epsilon", "1", "--delta", "0", "--neighbors", "friends"), "--neighbors is 'friends'"),
        (("--epsilon", "1", "--delta", "0", "--unit", "a\nb"), "--unit is 'a\\nb': it has control char"),
        (("--epsilon", "1", "--delta", "0", "--unit", "\udcff"), "--unit is '\\udcff': it has control char"),
    ],
)
def test_wrong_ledgers_are_refused(bench, options, says):
    refused = ledger_commands(bench, *options)
    assert refused.exit_code == 2
    assert says in refused.stderr
    assert not (bench.folder / "ledger.json").exists()


def test_a_lost_release_is_not_drawn_again(bench):
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=5.0, delta=1e-5))
    changes = {"privacy.ledger": path, "run_id": "monday"}
    assert bench.run(changes).exit_code == 0
    before = Path(path).read_bytes()
    shutil.rmtree(bench.folder / "out")
    again = bench.run(changes)
    assert again.exit_code == 3
    assert "has recorded that run monday was released" in again.stderr
    assert not (bench.folder / "out" / "release.json").exists()
    assert Path(path).read_bytes() == before


def test_a_release_that_comes_while_the_run_is_charged_is_taken(bench, monkeypatch):
    """Another process finishes the same run between the look at the folder and the charge."""
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=5.0, delta=1e-5))
    job = check_job(bench.changed({"privacy.ledger": path, "run_id": "monday"}))
    charge, other = runs.charge_run, []

    def late(*arguments):
        if not other:
            other.append(None)
            other.append(runs.run_job(job))
            monkeypatch.setattr(runs, "submit", None)  # nothing is drawn again
        return charge(*arguments)

    monkeypatch.setattr(runs, "charge_run", late)
    assert runs.run_job(job) == other[1]
    assert len(read_ledger(path).charges) == 1


def test_a_dry_run_spends_and_writes_nothing(bench):
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=1.0, delta=1e-5))
    before = sorted(bench.folder.rglob("*")), Path(path).read_bytes()
    dry = bench.run({"privacy.ledger": path}, "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "would start" in dry.stdout
    assert (
        sorted(set(bench.folder.rglob("*")) - {bench.folder / "job.yaml"}),
        Path(path).read_bytes(),
    ) == before
    assert bench.run({"privacy.ledger": path, "privacy.epsilon": 1.5}, "--dry-run").exit_code == 3
    assert bench.run({"input.path": str(bench.folder / "nowhere")}, "--dry-run").exit_code == 1
    assert bench.run({"run_id": "monday"}).exit_code == 0
    assert "is already released" in bench.run({"run_id": "monday"}, "--dry-run").stdout


def test_a_swap_needs_the_file_as_it_was_seen(bench):
    folder, name = open_file(str(bench.folder / "box" / "file"))
    assert folder.create(name, b"one")
    assert not folder.swap(name, b"two", b"three")
    assert folder.swap(name, b"one", b"two")
    assert folder.read(name) == b"two"
    assert not folder.swap("missing", b"", b"one")


def test_many_small_runs_fit_a_ledger_that_composes_draws(books):
    """60 runs at epsilon 0.1 are 6 by their sum, and below 4 by a Rényi filter."""
    path = str(books.bench.folder / "many.json")
    create_ledger(path, new_ledger({"epsilon": 4.0, "delta": 1e-3}, "renyi"))
    many = Books(books.bench, path)
    for number in range(60):
        many.charge(f"run-{number}", **{"privacy.epsilon": 0.1})
    spent = read_ledger(path).spent()
    assert spent.accountant.startswith("Rényi filter of order ")
    assert spent.epsilon < 4.0


def test_the_accountant_of_a_ledger_is_fixed_when_it_is_made(bench):
    """No run is admitted by an accountant that the ledger was not made for."""
    path = str(bench.folder / "ledger.json")
    made = ledger_commands(bench, "--epsilon", "2", "--delta", "1e-5", "--accountant", "renyi")
    assert made.exit_code == 0, made.output
    order = read_ledger(path).order
    assert order is not None
    job = bench.write(bench.changed({"privacy.ledger": path, "run_id": "monday"}))
    assert bench.shoal("run", job).exit_code == 0
    ledger = read_ledger(path)
    assert (ledger.order, len(ledger.charges)) == (order, 1)
    assert "by Rényi filter of order" in bench.shoal("ledger", "show", path).stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--epsilon", "1", "--delta", "0", "--accountant", "renyi"), "--delta is 0"),
        (("--epsilon", "1", "--delta", "1e-6", "--accountant", "pld"), "--accountant is pld"),
    ],
)
def test_wrong_accountants_are_refused(bench, options, says):
    refused = ledger_commands(bench, *options)
    assert refused.exit_code == 2
    assert says in refused.stderr
    assert not (bench.folder / "ledger.json").exists()


def test_a_ledger_that_is_charged_through_links_stays_one(books):
    """A link that a charge replaced by a file would be a second ledger, with all of the budget again."""
    link, way = books.bench.folder / "link.json", books.bench.folder / "way"
    link.symlink_to(books.path)
    way.symlink_to(Path(books.path).parent)
    Books(books.bench, str(link)).charge("monday")
    Books(books.bench, str(way / "ledger.json")).charge("tuesday")
    assert link.is_symlink()
    for path in (books.path, str(link)):
        assert [entry.run_id for entry in read_ledger(path).charges] == ["monday", "tuesday"]
        with pytest.raises(LedgerRefusal):
            Books(books.bench, path).charge("wednesday")


def test_a_ledger_of_two_hard_links_is_refused(books):
    other = str(books.bench.folder / "other.json")
    Path(other).hardlink_to(books.path)
    before = Path(books.path).read_bytes()
    for path in (books.path, other):
        with pytest.raises(JobError, match=rf"{path} has 2 hard links"):
            Books(books.bench, path).charge("monday")
    assert Path(books.path).read_bytes() == before


def test_a_ledger_is_not_made_behind_a_link_that_leads_nowhere(bench):
    link = bench.folder / "ledger.json"
    link.symlink_to(bench.folder / "gone.json")
    refused = ledger_commands(bench, "--epsilon", "1", "--delta", "0")
    assert refused.exit_code == 2
    assert "is a broken link" in refused.stderr
    assert not (bench.folder / "gone.json").exists()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o660])
def test_a_charge_keeps_the_rights_of_the_ledger(books, mode):
    Path(books.path).chmod(mode)
    books.charge("monday")
    mark_released(books.path, "monday", "a" * 64)
    for file in Path(books.path).parent.iterdir():
        assert file.stat().st_mode & 0o777 == mode


def test_a_ledger_has_an_id_that_its_charges_repeat(books):
    made = read_ledger(books.path).id
    assert re.fullmatch("[0-9a-f]{32}", made)
    assert books.charge("monday").ledger == made
    other = str(books.bench.folder / "other.json")
    create_ledger(other, Ledger(epsilon=2.0, delta=1e-5))
    assert read_ledger(other).id != made


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({}, "--delta D`. --accountant renyi admits"),
        ({"input.unit": "my user", "input.keep": "one"}, "--delta D --unit 'my user'`. --acc"),
        ({"privacy.neighbors": "replace_one"}, "--delta D --neighbors replace_one`. --acc"),
        ({"input.count": "my visits"}, "--delta D --count 'my visits'`. --acc"),
    ],
)
def test_a_missing_ledger_is_made_for_the_promise_of_the_job(books, given, options):
    Path(books.path).unlink()
    with pytest.raises(JobError) as caught:
        books.charge("monday", **given)
    assert f"create it with `shoal ledger create {books.path} --epsilon E {options}" in str(caught.value)
    with pytest.raises(JobError, match=r"--delta D`, and --unit COLUMN if the jobs have input\.unit\. --acc"):
        read_ledger(books.path)


def test_a_release_that_its_ledger_does_not_know_has_a_remedy(books):
    with pytest.raises(
        JobError, match=r"its release is visible: restore the ledger that the run was charged"
    ):
        mark_released(books.path, "monday", "a" * 64)


def test_charges_of_another_ledger_are_refused(books):
    other = Books(books.bench, str(books.bench.folder / "other.json"))
    create_ledger(other.path, Ledger(epsilon=2.0, delta=1e-5))
    books.charge("monday")
    other.charge("tuesday")
    spliced = json.loads(Path(books.path).read_text())
    spliced["charges"] += json.loads(Path(other.path).read_text())["charges"]
    Path(books.path).write_text(json.dumps(spliced))
    with pytest.raises(JobError, match="contains the charge of run tuesday, which belongs to another ledger"):
        books.charge("wednesday")
    spliced["charges"][1]["ledger"] = None
    Path(books.path).write_text(json.dumps(spliced))
    with pytest.raises(JobError, match="contains the charge of run tuesday, which belongs to another ledger"):
        read_ledger(books.path)
    del spliced["id"]
    Path(books.path).write_text(json.dumps(spliced))
    with pytest.raises(JobError, match="contains the charge of run monday, which belongs to another ledger"):
        read_ledger(books.path)


def test_a_ledger_of_an_earlier_version_gets_an_id_at_its_next_charge(books):
    books.charge("monday")
    earlier = json.loads(Path(books.path).read_text())
    del earlier["id"], earlier["charges"][0]["ledger"]
    Path(books.path).write_text(json.dumps(earlier))
    assert read_ledger(books.path).id is None
    made = books.charge("tuesday").ledger
    ledger = read_ledger(books.path)
    assert made == ledger.id
    assert {entry.ledger for entry in ledger.charges} == {made}


def test_a_release_marks_the_ledger_that_was_charged(books):
    """While the run is at work, the path comes to name another ledger, which has a run of the same id."""
    charged = books.charge("monday").ledger
    Path(books.path).unlink()
    create_ledger(books.path, Ledger(epsilon=2.0, delta=1e-5))
    books.charge("monday")
    with pytest.raises(JobError, match=rf"is another ledger .* \(id {charged}\)"):
        mark_released(books.path, "monday", "a" * 64, charged)
    assert read_ledger(books.path).charges[0].release is None


def test_a_run_does_not_mark_a_ledger_that_came_in_place_of_its_own(books, monkeypatch):
    submit = runs.submit

    def meanwhile(*arguments):
        Path(books.path).unlink()
        create_ledger(books.path, Ledger(epsilon=2.0, delta=1e-5))
        books.charge("monday")
        return submit(*arguments)

    monkeypatch.setattr(runs, "submit", meanwhile)
    with pytest.raises(JobError, match="is another ledger"):
        runs.run_job(books.job("monday"))
    assert read_ledger(books.path).charges[0].release is None


@pytest.mark.parametrize("name", ["a\nb.json", "a\u202eb.json"])
def test_a_ledger_that_no_job_could_name_is_not_made(tmp_path, name):
    with pytest.raises(JobError, match=r"LEDGER\.json is '.*it has control characters"):
        create_ledger(str(tmp_path / name), Ledger(epsilon=2.0, delta=1e-5))
    assert not list(tmp_path.iterdir())


def test_a_refusal_counts_one_charge_as_one(books):
    books.charge("monday", **{"privacy.epsilon": 1.5})
    with pytest.raises(LedgerRefusal, match=r"in all, and 1 charge; with this run's epsilon 1 "):
        books.charge("tuesday", **{"privacy.epsilon": 1.0})
