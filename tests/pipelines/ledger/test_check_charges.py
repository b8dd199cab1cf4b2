"""Whether a ledger has enough left for the last of several runs that are not charged yet."""

from pathlib import Path

import pytest

from pipelines.errors import JobError
from pipelines.ledger.ledger import Ledger, LedgerRefusal, check_charges, create_ledger
from pipelines.plan import make_plan
from tests.pipelines.ledger.test_ledger import Books, clock


@pytest.fixture
def books(bench) -> Books:
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=2.0, delta=1e-5))
    return Books(bench, path)


def runs(books: Books, *run_ids: str, **changes):
    jobs = [books.job(run_id, **changes) for run_id in run_ids]
    return [(job, make_plan(job, bytes(16))) for job in jobs]


def test_runs_are_refused_that_do_not_fit_together_and_none_is_charged(books):
    before = Path(books.path).read_bytes()
    check_charges(books.path, runs(books, "monday"), clock)
    check_charges(books.path, runs(books, "monday", "tuesday"), clock)
    with pytest.raises(LedgerRefusal, match=r"2 charges; .* would come to epsilon 3 .* Nothing was charged"):
        check_charges(books.path, runs(books, "monday", "tuesday", "wednesday"), clock)
    large = runs(books, "monday", **{"privacy.epsilon": 0.1, "privacy.delta": 2e-5})
    with pytest.raises(LedgerRefusal, match="delta would be exceeded"):
        check_charges(books.path, large, clock)
    assert Path(books.path).read_bytes() == before


def test_what_is_charged_costs_nothing_more(books):
    books.charge("monday")
    before = Path(books.path).read_bytes()
    check_charges(books.path, runs(books, "monday", "tuesday"), clock)
    with pytest.raises(LedgerRefusal, match="2 charges"):
        check_charges(books.path, runs(books, "tuesday", "wednesday"), clock)
    assert Path(books.path).read_bytes() == before
    books.charge("tuesday")
    check_charges(books.path, runs(books, "tuesday"), clock)
    with pytest.raises(LedgerRefusal, match="2 charges"):
        check_charges(books.path, runs(books, "wednesday"), clock)


def test_nothing_is_admitted_beyond_the_whole(books):
    """But for what sums of many parts are rounded by."""
    books.charge("monday")
    check_charges(books.path, runs(books, "tuesday"), clock)
    with pytest.raises(LedgerRefusal, match="would come to epsilon 2 "):
        check_charges(books.path, runs(books, "tuesday", **{"privacy.epsilon": 1 + 1e-8}), clock)


def test_without_a_ledger_there_is_nothing_to_check(books):
    Path(books.path).unlink()
    with pytest.raises(JobError, match="does not exist: create it with"):
        check_charges(books.path, runs(books, "monday"), clock)
    assert not Path(books.path).exists()
