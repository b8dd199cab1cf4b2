"""Ledgers of a policy: which runs they admit, what their runs hide together, and old files."""

import itertools
import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from core.neighbors import Neighbors
from core.policy import Distance, Policy
from pipelines.errors import JobError
from pipelines.job.job import check_job, check_raw
from pipelines.joint_plan import planned_as
from pipelines.ledger.ledger import Ledger, LedgerRefusal, charge_run, create_ledger, read_ledger
from pipelines.ledger.policy import LedgerPolicy
from pipelines.plan import make_plan
from tests.pipelines.jobs import LINE, REPLACED, changes
from tests.pipelines.ledger.test_ledger import clock

NEAR = {**changes("cdf"), **REPLACED, "privacy.policy": {"distance": 2.0**-10}, "domain.step": 2.0**-10}
KNOWN = {"secrets": "full", "constraints": [{"lower": [0.0], "upper": [0.25], "count": 100}]}
COUNTED = {**changes("histogram"), **LINE, "params": {"cells": [8]}, **REPLACED, "privacy.policy": KNOWN}


@pytest.fixture
def books(bench):
    return Books(bench)


class Books:
    """Ledgers made by the command, and jobs that are charged to them."""

    def __init__(self, bench) -> None:
        self.bench, self.path = bench, str(bench.folder / "ledger.json")

    def create(self, job=None, *options):
        given = () if job is None else ("--policy", self.bench.write(self.bench.changed(job)))
        return self.bench.shoal(
            "ledger", "create", self.path, "--epsilon", "2.5", "--delta", "1e-5", *given, *options
        )

    def charge(self, run_id: str, **job):
        job = check_job(self.bench.changed({**job, "privacy.ledger": self.path, "run_id": run_id}))
        return charge_run(self.path, job, make_plan(job, bytes(16)), clock)


def test_runs_of_one_policy_add_up(books):
    assert books.create(NEAR).exit_code == 0
    books.charge("monday", **NEAR)
    books.charge("tuesday", **{**NEAR, "params": {}})
    assert read_ledger(books.path).spent().epsilon == 2.0
    with pytest.raises(LedgerRefusal, match=r"would come to epsilon 3 by basic composition\."):
        books.charge("wednesday", **NEAR)


def test_a_unit_has_one_type_in_all_runs(books):
    """Else texts such as `7` and `07` would be two units of one run, and one of a run that reads integers."""
    assert books.create(None, "--unit", "who").exit_code == 0
    books.charge("monday", **{"input.unit": "who"})
    books.charge("tuesday", **{"input.unit": "who", "input.types": {"who": "text", "y": "integer"}})
    for kind in ("integer", "number", "boolean", "date", "timestamp"):
        with pytest.raises(LedgerRefusal, match=f"makes it {kind}, so that several of its texts"):
            books.charge("wednesday", **{"input.unit": "who", "input.types": {"who": kind}})


def test_runs_of_a_ledger_of_replace_one_read_the_same_rows(books):
    """The number of rows that have all values is exact there; it must not be that of those with 0 or 1."""
    assert books.create(None, "--neighbors", "replace_one").exit_code == 0
    same = {"privacy.neighbors": "replace_one"}
    books.charge("monday", **same, **{"input.types": {"x": "number", "other": "integer"}})
    for kind in ("integer", "boolean", "timestamp"):
        with pytest.raises(LedgerRefusal, match=r"input\.types gives x another type"):
            books.charge("tuesday", **same, **{"input.types": {"x": kind}})
    days = {"domain.lower": ["2020-01-01T00:00:00"] * 2, "domain.upper": ["2021-01-01T00:00:00"] * 2}
    days["domain.step"] = "1 hour"
    books.charge("tuesday", **same, **days, **{"input.types": {"x": "timestamp"}})


def test_each_question_of_a_job_reads_the_same_rows(books):
    """Whichever question a type is of."""
    assert books.create(None, "--neighbors", "replace_one").exit_code == 0
    domain = {"lower": [0], "upper": [1], "step": 2.0**-10}
    asked = {name: {"task": "median", "columns": [name], "domain": domain} for name in "xy"}
    job = {"input": {"path": "rows"}, "questions": asked, "output": str(books.bench.folder / "out")}
    job["privacy"] = {"epsilon": 1.0, "delta": 0.0, "neighbors": "replace_one", "ledger": books.path}
    for name in "xy":
        given = check_raw({**job, "input": {**job["input"], "types": {name: "integer"}}})
        with pytest.raises(LedgerRefusal, match=rf"input\.types gives {name} another type"):
            charge_run(books.path, given, planned_as(given)[0], clock)


OTHERS = [
    ({"privacy.policy": {"distance": 2.0**-9}}, r"another privacy\.policy"),
    ({"domain.step": 2.0**-11}, "another domain"),
    ({"domain.upper": [2]}, "another domain"),
    ({"input.columns": ["y"]}, r"another input\.columns"),
]


@pytest.mark.parametrize(("other", "says"), OTHERS)
def test_another_policy_is_refused(books, other, says):
    books.create(NEAR)
    before = Path(books.path).read_bytes()
    with pytest.raises(LedgerRefusal, match=f"{says}: epsilons add up only under one policy"):
        books.charge("monday", **{**NEAR, **other})
    assert Path(books.path).read_bytes() == before


def test_full_privacy_suffices_for_a_policy(books):
    books.create(NEAR)
    books.charge("median", **changes("median"), **REPLACED, **{"domain.step": 2.0**-3})
    books.charge("added", **changes("one_cluster"), **{"privacy.epsilon": 0.5})  # one added is half a change
    wide = {**NEAR, "privacy.policy": {"secrets": "full"}, "privacy.epsilon": 0.5}
    books.charge("every_pair", **wide)
    assert read_ledger(books.path).spent().epsilon == 2.5


def test_a_policy_is_refused_by_a_ledger_of_full_privacy(books):
    books.create(None, "--neighbors", "replace_one")
    with pytest.raises(LedgerRefusal, match=r"hides less: charge it to a ledger made with --policy"):
        books.charge("monday", **NEAR)


def test_a_run_that_was_charged_is_refused_where_its_plan_now_hides_less(books):
    """Another version may plan the same costs and hide less."""
    books.create(None, "--neighbors", "replace_one")
    full = {**NEAR, "params": {"method": "hierarchical_whole"}}
    entry = books.charge("monday", **full)
    near = check_job(books.bench.changed({**NEAR, "privacy.ledger": books.path, "run_id": "monday"}))
    plan = make_plan(near, bytes(16))
    charged = entry.model_copy(
        update={"job": near.hash(), "draws": tuple((d.epsilon, d.delta, d.rho) for d in plan.mechanisms)}
    )
    ledger = read_ledger(books.path).model_copy(update={"charges": (charged,)})
    Path(books.path).write_bytes(ledger.bytes())
    with pytest.raises(LedgerRefusal, match="hides less"):
        charge_run(books.path, near, plan, clock)


def test_known_counts_are_of_one_input_and_need_their_own_noise(books):
    assert books.create(COUNTED).exit_code == 0
    books.charge("monday", **COUNTED)
    with pytest.raises(LedgerRefusal, match=r"another input\.path"):
        books.charge("tuesday", **{**COUNTED, "input.path": f"{books.bench.folder}/part-*.parquet"})
    with pytest.raises(LedgerRefusal, match="hides a change of one row: give the job"):
        books.charge("tuesday", **{**COUNTED, "privacy.policy": ...})


def test_ledgers_that_cannot_be_made(books):
    def said(*given):
        result = books.create(*given)
        assert result.exit_code == 2
        return result.output

    assert "--policy is a job without privacy.policy" in said(changes("cdf"))
    assert "--neighbors is add_or_remove_one: a policy refines replace_one" in said(
        NEAR, "--neighbors", "add_or_remove_one"
    )
    assert "--unit is user: a policy is about the values of single rows" in said(NEAR, "--unit", "user")
    assert not Path(books.path).exists()


def test_the_file_holds_the_policy_and_its_universe(books):
    books.create(NEAR)
    kept = json.loads(Path(books.path).read_text())
    assert kept["neighbors"] == "replace_one"
    assert kept["policy"]["columns"] == ["x"]
    assert kept["policy"]["domain"]["step"] == 2.0**-10
    assert kept["policy"]["policy"]["distance"] == 2.0**-10
    assert kept["policy"]["path"] is None
    shown = books.bench.shoal("ledger", "show", books.path)
    assert shown.exit_code == 0
    assert "forms a secret pair" in " ".join(shown.output.split())
    assert "The policy is distance 0.0009765625 on the columns x." in " ".join(shown.output.split())


def test_files_of_earlier_versions_promise_full_privacy(books):
    create_ledger(books.path, Ledger(epsilon=2.5, delta=1e-5, neighbors="replace_one"))
    assert "policy" not in json.loads(Path(books.path).read_text())  # earlier versions read it, too
    assert read_ledger(books.path).policy is None
    books.charge("monday", **changes("median"), **REPLACED)
    assert "policy" not in json.loads(Path(books.path).read_text())


def test_a_job_without_a_policy_has_none_for_a_ledger(bench):
    with pytest.raises(JobError, match=r"^--policy is a job without"):
        LedgerPolicy.of(check_job(bench.changed(changes("cdf"))))


VALUES = range(4)
ROWS = list(itertools.product(VALUES, repeat=2))


def _noisy_prefix(rows, cut: int, epsilon: float) -> list[float]:
    """Probabilities of the answers of one noisy prefix count, on a window that holds nearly all of them."""
    count, a = sum(row <= cut for row in rows), math.exp(-epsilon)
    return [(1 - a) / (1 + a) * a ** abs(answer - count) for answer in range(-60, 63)]


@pytest.mark.parametrize("theta", [1, 2])
def test_two_runs_under_one_policy_lose_the_sum_for_every_neighbor(theta):
    """All databases of two rows of four values; the second run is chosen by the answer of the first."""
    secret = Neighbors("replace_one", Policy(Distance(theta))).secrets
    first, second = 0.5, 0.25
    worst = 0.0
    for one, other in itertools.permutations(ROWS, 2):
        moved = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        if len(moved) != 1 or abs(moved[0][0] - moved[0][1]) > secret.reach((3,)):
            continue
        answers = [_noisy_prefix(rows, 1, first) for rows in (one, other)]
        for here, p, q in zip(range(-60, 63), *answers, strict=True):
            cut = 0 if here > 1 else 2  # adaptive
            again = [_noisy_prefix(rows, cut, second) for rows in (one, other)]
            worst = max(worst, *(math.log(p * x / (q * y)) for x, y in zip(*again, strict=True)))
    assert worst <= first + second + 1e-9
    if theta == 2:  # such a pair lies on both sides of two cuts, so the sum is attained
        assert worst == pytest.approx(first + second)


@pytest.mark.parametrize("epsilons", [(0.5, 0.25), (0.3, 0.3)])
def test_runs_about_disjoint_files_lose_the_largest_for_every_neighbor(epsilons):
    """Row 0 is in one file and row 1 in another, each with a ledger of its own: a neighbor changes one."""
    worst = 0.0
    for one, other in itertools.permutations(ROWS, 2):
        if sum(a != b for a, b in zip(one, other, strict=True)) != 1:
            continue
        loss = 0.0
        for row, epsilon in enumerate(epsilons):
            answers = [_noisy_prefix([rows[row]], 1, epsilon) for rows in (one, other)]
            loss += max(math.log(p / q) for p, q in zip(*answers, strict=True))
        worst = max(worst, loss)
    assert worst == pytest.approx(max(epsilons))


@pytest.mark.parametrize("other", ["unit", "policy"])
def test_a_ledger_of_records_of_rows_is_about_no_whole_rows(bench, other):
    policy = LedgerPolicy.of(check_job(bench.changed(NEAR)))
    given = {"unit": {"unit": "who"}, "policy": {"policy": policy, "neighbors": "replace_one"}}[other]
    assert Ledger(epsilon=1.0, delta=0.0, **given)
    with pytest.raises(ValidationError, match=r"count is visits: .* leave one of both out"):
        Ledger(epsilon=1.0, delta=0.0, count="visits", **given)
