"""One process answers many subsamples by functions of Shoal alone, each as a process of its own would."""

import ast
import importlib
import inspect
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.domain import Grid
from transforms import run_function
from transforms.function_messages import PROCESS, SANDBOX, SHARING, exchange
from transforms.run_function import (
    _EACH_BYTE,
    _EACH_SECOND,
    _EACH_VALUE,
    _LEAST,
    Function,
    FunctionRunner,
)
from transforms.split_units import stream

LINEAR = "shoal.analyses.regression:linear"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of functions are Linux's")


def blocks(seed: int, count: int) -> list[bytes]:
    """Return subsamples of three columns: of many sizes and ranges, with nulls, ties and columns alike."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        n = int(rng.integers(1, 3000))
        x = rng.normal(size=(3, n)) * 10.0 ** rng.integers(-6, 7, (3, 1)) + 10.0 ** rng.integers(-3, 5)
        if number % 5 == 0:
            x[1] = 2 * x[0]
        if number % 7 == 0:
            x[0] = 0.1
        x[2, rng.random(n) < 0.1] = np.nan
        columns = {"a": pa.array(np.round(x[0]) if number % 3 else x[0]), "b": x[1], "c": x[2]}
        made.append(stream(pa.record_batch(columns)))
    return made


def processes(runner: FunctionRunner) -> Iterator[int]:
    """Yield the children of the process that forks them, for process isolation."""
    pid = runner._process.pid
    yield from map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def made(place: str, isolation: str = PROCESS, **more: object) -> FunctionRunner:
    size = 2 if place == LINEAR else 3 if place.endswith(":correlation") else 1
    limits = {"isolation": isolation, "megabytes": 300, **more}
    return FunctionRunner(Function(place, Grid((-1.0,) * size, (1.0,) * size, 2.0**-9), **limits))


@pytest.mark.parametrize("isolation", [PROCESS, SANDBOX])
@pytest.mark.parametrize("place", SHARING)
def test_answers_have_the_same_bits_in_any_order_and_in_a_process_of_their_own(
    place: str, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = blocks(1, 30)
    order = np.random.default_rng(2).permutation(len(rows))
    with made(place, isolation) as runner:
        found = [runner.ask(each) for each in rows]
        others = dict(zip(order.tolist(), [runner.ask(rows[i]) for i in order], strict=True))
    assert [others[i] for i in range(len(rows))] == found
    monkeypatch.setattr(run_function, "SHARING", ())
    with made(place, isolation) as runner:
        assert [runner.ask(each) for each in rows] == found
    assert sum(map(bool, found)) > 25


@pytest.mark.parametrize("place", SHARING)
def test_answers_do_not_follow_from_where_rows_lie_in_memory(place: str) -> None:
    module, name = place.split(":")
    function = getattr(importlib.import_module(module), name)
    rng = np.random.default_rng(3)
    for n in (7, 64, 129, 1000, 4099):
        values = rng.normal(size=(4, n))
        answers = set()
        for offset in range(0, 128, 8):
            memory = [pa.py_buffer(bytes(offset) + column.tobytes()).slice(offset) for column in values]
            columns = [pa.Array.from_buffers(pa.float64(), n, [None, each]) for each in memory]
            answers.add(np.asarray(function(pa.table(dict(zip("abcd", columns, strict=True))))).tobytes())
        assert len(answers) == 1


def test_the_modules_of_shared_functions_call_no_blas_and_draw_nothing() -> None:
    """Whose bits may follow from alignment. A name that is looked up is enough."""
    refused = {"dot", "vdot", "inner", "matmul", "einsum", "tensordot", "linalg", "cov", "corrcoef", "random"}
    refused |= {"empty", "empty_like", "scipy", "sklearn", "global", "nonlocal", "cache"}
    modules = {place.split(":")[0] for place in SHARING} | {"shoal.analyses.rows"}
    for name in modules:
        tree = ast.parse(inspect.getsource(importlib.import_module(name)))
        for node in ast.walk(tree):
            assert not isinstance(node, ast.MatMult | ast.Global | ast.Nonlocal), name
            assert getattr(node, "attr", getattr(node, "id", None)) not in refused, name


def test_one_process_answers_until_one_fails_and_that_has_no_answer() -> None:
    good, bad = blocks(1, 4)[1:3], stream(pa.record_batch({"a": [1.0], "b": [2.0], "c": [3.0]}))
    with made(LINEAR) as runner:
        first = runner.ask(good[0])
        (one,) = processes(runner)
        runner.ask(good[1])
        assert list(processes(runner)) == [one]
        assert runner.run(bad) is None
        assert list(processes(runner)) == []
        assert runner.ask(good[0]) == first
        (other,) = processes(runner)
        assert other != one
        assert runner.run(b"") is None
        assert list(processes(runner)) == [other]


def test_what_was_killed_takes_no_answer_with_it() -> None:
    good = blocks(1, 4)[1:3]
    with made(LINEAR) as runner:
        expected = runner.ask(good[1])
        (one,) = processes(runner)
        os.kill(one, signal.SIGKILL)
        assert runner.ask(good[1]) == expected
        runner._process.kill()
        runner._process.wait()
        assert runner.ask(good[1]) == expected


def test_an_answer_that_nobody_waited_for_is_not_that_of_the_next_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = blocks(1, 4)[1:3]

    def interrupted(*_: object) -> bytes:
        exchange(*_)
        raise KeyboardInterrupt

    with made(LINEAR) as runner:
        expected = [runner.ask(each) for each in rows]
        with monkeypatch.context() as patched:
            patched.setattr(run_function, "exchange", interrupted)
            with pytest.raises(KeyboardInterrupt):
                runner.ask(rows[0])
        assert runner._child is None
        assert runner.ask(rows[1]) == expected[1] != expected[0]


SIZE = 1 << 18
LARGE = stream(pa.record_batch({name: np.arange(SIZE) % (power + 2) < 1 for power, name in enumerate("bcx")}))
"""Bits, of which the functions make floats."""

NEEDED = 3 * SIZE * 128 + 4 * len(LARGE) >> 20


@pytest.mark.parametrize(
    ("more", "shares"),
    [
        ({}, True),
        ({"constant_time": True, "seconds": 1.0}, False),
        ({"megabytes": 65 + NEEDED}, True),
        ({"megabytes": 64 + NEEDED}, False),
        ({"seconds": 1.001 * (SIZE * 9 / 2**22 + 1 / 16)}, True),
        ({"seconds": 0.999 * (SIZE * 9 / 2**22 + 1 / 16)}, False),
        ({"place": "tests.transforms.attacks:mean"}, False),
    ],
)
def test_a_subsample_is_answered_alone_where_it_could_meet_a_limit_or_is_of_another_function(
    more: dict[str, object], shares: bool
) -> None:
    place = str(more.pop("place", LINEAR))
    with made(place, **more) as runner:
        assert runner.run(LARGE) is not None
        assert len(list(processes(runner))) == shares


@pytest.mark.parametrize("columns", [2, 3, 24])
@pytest.mark.parametrize("place", SHARING)
def test_a_subsample_that_may_share_takes_less_than_half_of_either_limit(place: str, columns: int) -> None:
    """The largest one of bits, in a process of its own."""
    n = _EACH_SECOND // columns**2
    rng = np.random.default_rng(4)
    rows = stream(pa.record_batch({f"c{i}": rng.random(n) < 0.5 for i in range(columns)}))
    needed = _LEAST + _EACH_BYTE * len(rows) + _EACH_VALUE * n * columns
    size = {"linear": columns - 1, "correlation": columns * (columns - 1) // 2}.get(place.split(":")[1], 1)
    function = Function(
        place, Grid((-1.0,) * size, (1.0,) * size, 2.0**-9), seconds=0.5, megabytes=needed >> 21
    )
    with FunctionRunner(function) as runner:
        assert runner.run(rows) is not None
        assert list(processes(runner)) == []


def test_a_limit_of_milliseconds_which_even_a_small_subsample_meets_is_that_of_its_own_process() -> None:
    small = stream(pa.record_batch({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}))
    with made("shoal.analyses.association:threshold", seconds=0.05) as runner:
        assert runner.run(small) is not None
        assert list(processes(runner)) == []


def test_a_file_that_is_named_like_a_function_of_shoal_is_answered_alone(tmp_path: Path) -> None:
    text = "seen = []\ndef linear(rows):\n    seen.append(0)\n    return [len(seen) / 4, 0]\n"
    with made(LINEAR, text=text) as runner:
        assert [runner.run(LARGE).tolist() for _ in range(3)] == [[640, 512]] * 3


def test_a_module_of_another_folder_that_is_named_like_one_of_shoal_shares_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a notebook runs in a folder with another version of Shoal."""
    analyses = tmp_path / "shoal" / "analyses"
    analyses.mkdir(parents=True)
    for folder in (analyses, analyses.parent):
        (folder / "__init__.py").write_text("")
    text = "seen = []\ndef linear(rows):\n    seen.append(0)\n    return [len(seen) / 4, 0]\n"
    (analyses / "regression.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with made(LINEAR) as runner:
        assert [runner.run(LARGE).tolist() for _ in range(3)] == [[640, 512]] * 3


def test_the_time_of_each_subsample_counts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they take longer than the limit."""
    place = "tests.transforms.attacks:mean_slowly"
    monkeypatch.setattr(run_function, "SHARING", (place,))
    with made(place, seconds=1.0, arguments={"waits": 0.0, "computes": 0.4}) as runner:
        found = {(*runner.run(LARGE), *processes(runner)) for _ in range(4)}
        assert len(found) == 1
