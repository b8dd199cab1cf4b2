"""What a function is tried on, and what is said of its answers; `tests/pipelines` has the whole command."""

import math
import struct
from dataclasses import replace

import numpy as np
import pytest

from core.domain import Grid
from pipelines.job.job import check_job
from pipelines.run.check_function import Finding, _judge, _made_up, show
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes
from transforms.run_function import Function

PLANE = Function("m:f", Grid((0.0, -2.0), (4.0, 2.0), 0.5), seconds=10.0)
GOOD = Finding("1,000 uniform rows", (1.0,), 0.1, "")


def test_a_function_runs_with_all_that_its_job_says(bench: Bench) -> None:
    given = changes("sample_and_aggregate")
    own = {"arguments": {"k": 2}, "time_limit": 7.0, "memory_limit": 77, "constant_time": True}
    params = {**given["params"], **own, "isolation": "sandbox", "function": "f.py:f", "code": "f = len"}
    function = check_job(bench.changed({**given, "params": params})).untrusted()
    grid = Grid((-1.0,), (1.0,), 2.0**-10)
    expected = Function("f.py:f", grid, {"k": 2}, 7.0, 77, True, "f = len", "sandbox", function.unseen)
    assert function == expected and str(bench.folder / "out") in function.unseen


def judged(*answer: float, seconds: float = 0.1, function: Function = PLANE) -> str:
    """Return the problem of an answer; a mild one begins with `mild`."""
    raw = b"".join(struct.pack("<d", value) for value in answer)
    found, took, problem, mild = _judge(function, raw, seconds)
    assert (found, took) == (answer, seconds) or np.isnan(answer).any()
    return f"{'mild ' * mild}{problem}"


def test_rows_of_every_kind_lie_within_their_bounds() -> None:
    bounds = np.array([[-1.0, 3.0], [10.0, 11.0]])
    made = dict(_made_up(("a", "b"), bounds))
    values = {
        kind: np.stack([batch.column(name).to_numpy(zero_copy_only=False) for name in "ab"], axis=1)
        for kind, batch in made.items()
    }
    uniform, again, holes, ends, same, one = values.values()
    assert np.array_equal(uniform, again) and len(uniform) == len(holes) == len(ends) == len(same) == 1000
    spread = (uniform - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0])
    assert 0 <= spread.min() < 0.01 < 0.99 < spread.max() <= 1
    assert (np.abs(spread.mean(axis=0) - 0.5) < 0.05).all()
    assert (np.abs(np.isnan(holes).mean(axis=0) - 0.1) < 0.05).all()
    assert np.array_equal(holes[~np.isnan(holes)], uniform[~np.isnan(holes)])
    assert made["a tenth of the values null"].column("a").null_count > 50
    for axis, both in enumerate(bounds):
        assert set(ends[:, axis]) == set(both)
    assert {tuple(row) for row in same} == {tuple(uniform[0])} == {tuple(row) for row in one}
    assert len(one) == 1


def test_an_answer_may_be_at_a_bound_and_not_beyond() -> None:
    assert judged(0.0, -2.0) == judged(4.0, 2.0) == ""
    for answer, which in (((4.001, 0.0), [0]), ((1.0, -2.001), [1]), ((-1e300, 9.0), [0, 1])):
        assert (
            judged(*answer)
            == f"mild Values {which} lie outside params.outputs and are clamped to its bounds."
        )


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_replaced(wrong: float) -> None:
    assert judged(1.0, wrong) == "The answer is not finite, so the default replaces it."


def test_time_counts_where_it_is_limited() -> None:
    constant = replace(PLANE, constant_time=True)
    assert judged(1.0, 1.0, seconds=4.9) == judged(1.0, 1.0, seconds=10.0, function=constant) == ""
    assert "more than half of params.time_limit" in judged(1.0, 1.0, seconds=5.1)
    says = {seconds: _judge(PLANE, b"", seconds)[2] for seconds in (9.9, 10.0)}
    assert "exceeded params.time_limit" in says[10.0] and "ended without an answer" in says[9.9]
    assert "ended without an answer" in _judge(constant, b"", 10.0)[2]
    assert _judge(PLANE, bytes(16) + b" KeyError: 'a'", 0.1)[2] == "The function raised KeyError: 'a'."


def test_what_is_said_at_the_end_follows_from_every_kind_of_rows() -> None:
    again, one = replace(GOOD, rows="1,000 uniform rows again"), replace(GOOD, rows="one row")
    assert show([GOOD, again, one])[-1] == "The function works on all of these rows."
    assert not any("differently" in line for line in show([GOOD, again]))
    assert any("differently" in line for line in show([GOOD, replace(again, answer=(1.5,))]))
    assert not any("differently" in line for line in show([replace(GOOD, answer=(math.nan,))] * 2))
    assert "does not work" in show([GOOD, replace(again, problem="It fails.")])[-1]
    extreme = show([GOOD, again, replace(one, problem="It fails.", answer=None)])
    assert "on extreme ones (one row)" in extreme[-1] and "none in 0.1 s" in extreme[-3]
    mild = show([GOOD, replace(again, problem="Outside.", mild=True)])
    assert "give wider bounds" in mild[-1] and "extreme" not in mild[-1]
