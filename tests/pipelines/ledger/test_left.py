"""What a plan says of its ledger is what the ledger then does."""

import json
import shutil
from pathlib import Path

import pytest

import shoal
from pipelines.errors import JobError
from pipelines.job.job import check_job, check_raw
from pipelines.joint_plan import planned_as
from pipelines.ledger.ledger import LedgerRefusal, charge_run, create_ledger, new_ledger, now, read_ledger
from pipelines.ledger.left import Left, left_for, look_ahead
from pipelines.ledger.table import describe_ledger
from pipelines.plan import make_plan
from tests.pipelines.jobs import LINE, changes

TOTAL = {"neighbors": "add_or_remove_one", "unit": None, "epsilon": 2.0, "delta": 1e-5}
SMALL = {**changes("histogram"), **LINE, "params": {"cells": [8], "method": "dense"}}


@pytest.fixture
def path(bench) -> str:
    return str(bench.folder / "ledger.json")


@pytest.mark.parametrize("accountant", ["basic", "renyi"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "method"),
    [
        (0.3, 0.0, "dense"),
        (0.25, 2e-6, "dense"),
        (0.5, 0.0, "dense"),
        (0.1, 0.0, "dense"),  # whose sums are rounded
        (0.1, 4e-6, "dense"),
        (3.0, 0.0, "dense"),
        (0.1, 4e-6, "sparse"),  # whose draws spend delta, which runs out first
    ],
)
def test_so_many_runs_fit(bench, path, accountant, epsilon, delta, method):
    """The ledger is charged until it refuses: as often as was said, and one fewer is left after each."""
    create_ledger(path, new_ledger(TOTAL, accountant))
    given = {**SMALL, "privacy.epsilon": epsilon, "privacy.delta": delta, "privacy.ledger": path}
    given["params"] = {"cells": [8], "method": method}
    jobs = (check_job(bench.changed({**given, "run_id": f"run-{i}"})) for i in range(100))
    job = next(jobs)
    plan = make_plan(job, bytes(16))
    said = [left_for(path, job, plan).runs]
    with pytest.raises(LedgerRefusal):
        while True:
            charge_run(path, job, plan, now)
            said.append(left_for(path, job, plan).runs)
            job = next(jobs)
    assert said == list(range(len(said) - 1, -1, -1))
    assert (len(said) == 1) == (epsilon > 2)
    assert method == "dense" or said[0] == {"basic": 2, "renyi": 1}[accountant]


@pytest.mark.parametrize("accountant", ["basic", "renyi"])
def test_a_plan_and_its_ledger_say_that_the_same_is_left(bench, path, accountant):
    create_ledger(path, new_ledger(TOTAL, accountant))
    given = {**SMALL, "privacy.ledger": path, "params": {"cells": [8], "method": "sparse"}}
    job, other = (check_job(bench.changed({**given, "privacy.epsilon": 0.1, "run_id": id_})) for id_ in "ab")
    charge_run(path, job, make_plan(job, bytes(16)), now)
    left, ledger = left_for(path, other, make_plan(other, bytes(16))), describe_ledger(read_ledger(path))
    assert (left.left, left.left_delta) == (ledger["left"], ledger["left_delta"])


def test_runs_count_twice_where_records_are_replaced(bench, path):
    """As the ledger counts them: in what is left, in how many runs fit, and in the table of the charges."""
    create_ledger(path, new_ledger({**TOTAL, "neighbors": "replace_one"}, "basic"))
    given = {**SMALL, "params": {"cells": [8], "method": "sparse"}, "privacy.epsilon": 0.25}
    given |= {"privacy.delta": 5e-7, "privacy.ledger": path}
    jobs = [check_job(bench.changed({**given, "run_id": f"run-{i}"})) for i in range(5)]
    plan = make_plan(jobs[0], bytes(16))
    for charged, job in enumerate(jobs[:4]):
        ledger, left = read_ledger(path), left_for(path, job, plan)
        told = describe_ledger(ledger)
        fits = [look_ahead(path, ledger, asked) for asked in ([job, None] if charged else [job])]
        assert {left.runs, *(each["fits"]["runs"] for each in fits)} == {4 - charged}
        assert (left.left, left.left_delta) == (told["left"], told["left_delta"])
        assert left.left == 2.0 - 0.5 * charged
        assert told["spent_delta"] >= 2 * charged * plan.spend.delta
        assert [each["counted"] for each in told["charges"]] == [0.5] * charged
        charge_run(path, job, plan, now)
    with pytest.raises(LedgerRefusal, match=r"this run's epsilon 0\.5 "):
        charge_run(path, jobs[4], plan, now)


def test_it_is_said_by_the_plan_and_the_dry_run(bench, path):
    create_ledger(path, new_ledger(TOTAL, "basic"))
    job = bench.write(bench.changed({**SMALL, "privacy.epsilon": 0.5, "privacy.ledger": path, "run_id": "a"}))
    says = f"privacy.ledger {path} has epsilon 2 and delta 1e-5 left: 4 runs like this one fit."
    planned = json.loads(bench.shoal("plan", job, "--json").stdout)["ledger"]
    assert (planned["runs"], planned["left"], planned["charged"], planned["says"]) == (4, 2.0, False, says)
    for command in (("plan", job), ("run", job, "--dry-run")):
        assert says in " ".join(bench.shoal(*command).stdout.split())
    assert bench.shoal("run", job).exit_code == 0
    again = " ".join(bench.shoal("plan", job).stdout.split())
    assert "has epsilon 1.5" in again and "3 runs like this one fit" in again
    assert "This run is charged already: in the same folder it costs nothing more." in again


def test_a_run_id_that_would_be_refused_is_said(bench, path):
    """Of another job, or of the same one with less noise than what was charged."""
    create_ledger(path, new_ledger(TOTAL, "basic"))
    asked = {**SMALL, "privacy.epsilon": 0.5, "privacy.ledger": path, "run_id": "a"}
    assert bench.shoal("run", bench.write(bench.changed(asked))).exit_code == 0
    other = bench.write(bench.changed({**asked, "privacy.epsilon": 0.25}))
    charged = json.loads(Path(path).read_text())
    charged["charges"][0]["release"] = None
    for draw in charged["charges"][0]["draws"]:
        draw[0] /= 2
    for reason in ("another job", "other noise than this version of Shoal plans"):
        says = f"Its run_id is charged for {reason}, so a run is refused: give another run_id."
        planned = bench.shoal("plan", other, "--json")
        ledger = json.loads(planned.stdout)["ledger"]
        assert says in ledger["says"] and not ledger["charged"] and ledger["refused"] == reason
        assert bench.shoal("run", other).exit_code != 0
        Path(path).write_text(json.dumps(charged))
        shutil.rmtree(bench.folder / "out", ignore_errors=True)
        other = bench.write(bench.changed(asked))


def test_a_released_run_is_not_refused_for_the_noise_that_it_had(bench, path):
    """Its release is what a run in the same folder returns; without one it would have to be drawn again."""
    create_ledger(path, new_ledger(TOTAL, "basic"))
    job = check_job(bench.changed({**SMALL, "privacy.ledger": path, "run_id": "a"}))
    plan = make_plan(job, bytes(16))
    charge_run(path, job, plan, now)
    charged = json.loads(Path(path).read_text())
    (entry,) = charged["charges"]
    entry["draws"] = [[epsilon / 2, delta, rho] for epsilon, delta, rho in entry["draws"]]
    for entry["release"], refused in (("0" * 64, ""), (None, "other noise than this version of Shoal plans")):
        Path(path).write_text(json.dumps(charged))
        left = left_for(path, job, plan)
        assert (left.refused, left.charged) == (refused, not refused)


@pytest.mark.parametrize("delta", [0.0, 1e-8])
def test_gaussian_noise_is_named_where_the_job_can_have_it(bench, path, delta):
    create_ledger(path, new_ledger(TOTAL, "renyi"))
    given = {**changes("statistics"), **LINE, "params": {"measures": ["count"]}, "privacy.ledger": path}
    job = check_job(bench.changed({**given, "privacy.epsilon": 0.3, "privacy.delta": delta, "run_id": "a"}))
    plan = make_plan(job, bytes(16))
    assert plan.method == "laplace" and left_for(path, job, plan).gaussian == (delta > 0)


def test_nothing_fits_a_ledger_that_somebody_made_smaller(bench, path):
    create_ledger(path, new_ledger(TOTAL, "basic"))
    jobs = [check_job(bench.changed({**SMALL, "privacy.ledger": path, "run_id": id_})) for id_ in "ab"]
    plan = make_plan(jobs[0], bytes(16))
    charge_run(path, jobs[0], plan, now)
    charged = json.loads(Path(path).read_text())
    Path(path).write_text(json.dumps({**charged, "epsilon": jobs[0].privacy.epsilon / 3}))
    left = left_for(path, jobs[1], plan)
    assert (left.left, left.runs) == (0.0, 0)


def test_a_plan_says_where_gaussian_noise_may_let_more_runs_fit(bench, path):
    """Many more do, with a filter that composes draws; the ledger then admits them."""
    create_ledger(path, new_ledger({**TOTAL, "epsilon": 6.0}, "renyi"))
    groups = {"group_by": {"columns": ["c"], "keys": "private"}, "params": {"measures": ["count", "mean"]}}
    given = {**changes("statistics"), **LINE, **groups, "privacy.delta": 1e-8, "privacy.ledger": path}
    runs = {}
    for method, hinted in (("auto", True), ("gaussian", False)):
        asked = {
            **given,
            "privacy.epsilon": 0.3,
            "run_id": "a",
            "params": groups["params"] | {"method": method},
        }
        job = check_job(bench.changed(asked))
        left = left_for(path, job, make_plan(job, bytes(16)))
        assert ("More may fit with method gaussian" in left.sentence()) == hinted
        runs[method] = left.runs
        plain = str(bench.folder / f"{method}.json")  # by a plain sum, Gaussian noise counts for no less
        create_ledger(plain, new_ledger({**TOTAL, "epsilon": 6.0}, "basic"))
        assert not left_for(plain, job, make_plan(job, bytes(16))).gaussian
    assert runs["gaussian"] > 2 * runs["auto"]


def test_one_question_with_laplace_noise_may_be_enough_to_fit_more_runs(bench, path):
    create_ledger(path, new_ledger(TOTAL, "renyi"))
    domain = {"lower": [0], "upper": [1], "step": 2.0**-12}
    asked = {"task": "statistics", "columns": ["x"], "domain": domain, "checks": 0}
    given = dict.fromkeys(("task", "domain", "params", "input.columns", "input.checks"), ...)
    given |= {"privacy.ledger": path, "privacy.epsilon": 0.3, "run_id": "a"}
    for methods, hinted in ((("auto", "gaussian"), True), (("gaussian", "gaussian"), False)):
        params = ({"measures": ["count"], "method": method} for method in methods)
        questions = {f"q{i}": {**asked, "params": own} for i, own in enumerate(params)}
        job = check_raw(bench.changed({**given, "questions": questions}))
        assert left_for(path, job, planned_as(job)[0]).gaussian == hinted


def test_a_plan_is_shown_where_its_ledger_refuses(bench, path):
    job = bench.write(bench.changed({**SMALL, "privacy.ledger": path}))
    missing = bench.shoal("plan", job)
    assert missing.exit_code == 0 and "by the method dense" in " ".join(missing.stdout.split())
    assert missing.stderr.startswith(
        f"shoal: A run here would be refused. privacy.ledger {path} does not exist"
    )
    create_ledger(path, new_ledger({**TOTAL, "unit": "person"}, "basic"))
    other = bench.shoal("plan", job, "--json")
    assert "ledger" not in json.loads(other.stdout)
    assert "but the job hides rows" in other.stderr and other.stderr.count("\n") == 1


def test_an_empty_ledger_is_a_refusal_but_for_a_run_that_is_charged(bench, path):
    create_ledger(path, new_ledger(TOTAL, "basic"))
    given = {**SMALL, "privacy.epsilon": 2.0, "privacy.ledger": path}
    first, second = (
        bench.changed({**given, "run_id": name, "output": str(bench.folder / name)}) for name in "ab"
    )
    assert bench.shoal("run", bench.write(first)).exit_code == 0
    planned, ran = (bench.shoal(command, bench.write(second)) for command in ("plan", "run"))
    assert (planned.exit_code, ran.exit_code) == (0, 3)
    assert "no further run like this one fits" in " ".join(planned.stdout.split())
    (refusal,) = shoal.plan(second).refusals
    assert planned.stderr == f"shoal: A run here would be refused. {refusal}\n"
    assert ran.stderr == f"shoal: {refusal}\n" and refusal.endswith(
        "Nothing was charged for it. Epsilon 0 is left."
    )
    assert bench.shoal("plan", bench.write(first)).stderr == ""


def test_the_sentence_counts():
    assert Left("l", 1.0, 0.0, 1, False).sentence().endswith("left: one run like this one fits.")
    assert "left: no further run like this one fits." in Left("l", 0.0, 0.0, 0, False).sentence()
    assert "left: any number of runs like this one fit." in Left("l", 1.0, 0.0, None, False).sentence()
    renyi = Left("l", 1.0, 5e-7, 2, False, renyi=True).sentence()
    assert "delta 5e-7 left (the other half of delta pays for the composition): 2 runs" in renyi
    assert Left("l", None, None, 0, True).sentence() == (
        "privacy.ledger l has nothing left: its charges exceed its delta."
    )


def test_without_a_ledger_there_is_nothing_to_say(bench):
    job = check_job(bench.changed(SMALL))
    with pytest.raises(JobError, match="does not exist"):
        left_for(str(bench.folder / "none.json"), job, make_plan(job, bytes(16)))
    assert "ledger" not in json.loads(bench.shoal("plan", bench.write(bench.changed(SMALL)), "--json").stdout)


def test_a_ledger_says_how_many_more_runs_fit(bench, path):
    """Of a job, or of such runs as the last one; and a run changes it by one."""
    create_ledger(path, new_ledger(TOTAL, "basic"))
    given = {**SMALL, "privacy.epsilon": 0.5, "privacy.delta": 0, "privacy.ledger": path, "run_id": "night"}
    job = check_job(bench.changed(given))
    file = bench.write(bench.changed({**given, "privacy.epsilon": 0.125}))
    assert "fit" not in bench.shoal("ledger", "show", path).stdout
    day = check_job(bench.changed({**given, "privacy.epsilon": 0.25, "run_id": "day"}))
    for each in (day, job):
        charge_run(path, each, make_plan(each, bytes(16)), now)
    last = bench.shoal("ledger", "show", path)
    assert "2 runs like the last one (night) fit." in last.stdout
    other = json.loads(bench.shoal("ledger", "show", path, "--job", file, "--json").stdout)
    assert other["fits"] == {"runs": 10, "says": "10 runs of this job fit."}
    large = bench.write(bench.changed({**given, "privacy.epsilon": 1.75}))
    assert "No further run of this job fits." in bench.shoal("ledger", "show", path, "--job", large).stdout


def test_a_ledger_of_another_promise_refuses_to_count_runs(bench, path):
    create_ledger(path, new_ledger({**TOTAL, "unit": "person"}, "basic"))
    shown = bench.shoal("ledger", "show", path, "--job", bench.write(bench.changed(SMALL)))
    assert (shown.exit_code, shown.stdout) == (3, "")
    assert shown.stderr.count("\n") == 1 and "but the job hides rows" in shown.stderr


def test_how_many_runs_of_a_job_fit_whose_paths_name_the_run_id(bench, refused, path):
    create_ledger(path, new_ledger(TOTAL, "basic"))
    given = {**SMALL, "privacy.epsilon": 0.5, "input.path": str(bench.folder / "{run_id}.parquet")}
    job = bench.write(bench.changed(given))
    assert "give the job a run_id" in refused(bench.shoal("ledger", "show", path, "--job", job))
    shown = bench.shoal("ledger", "show", path, "--job", job, "--set", "run_id=2026-11-16")
    assert "4 runs of this job fit." in " ".join(shown.stdout.split())
    assert "give it with --job" in refused(bench.shoal("ledger", "show", path, "--set", "run_id=a"))
