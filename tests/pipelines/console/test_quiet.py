"""Threads that run jobs at one time suppress logs, warnings and prints together."""

import io
import logging
import sys
import threading
import warnings

import pytest

from pipelines.console.quiet import quiet, stderr_in, without_stderr


def state() -> tuple[object, ...]:
    return logging.root.manager.disable, list(warnings.filters), sys.stderr


@pytest.fixture(autouse=True)
def logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let logs through, which a command that ran before in this process may have suppressed for good."""
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)


def test_what_the_first_thread_suppresses_stays_until_the_last_one_has_ended() -> None:
    """The first to come is the first to go."""
    entered, leave, before = threading.Event(), threading.Event(), state()

    def first() -> None:
        with quiet(), without_stderr():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait(10)
    with quiet(), without_stderr():
        during = state()
        leave.set()
        thread.join(10)
        assert state() == during
        assert during[0] == logging.CRITICAL
    assert state() == before
    with quiet(), without_stderr(), quiet(), without_stderr():
        assert all(one != other for one, other in zip(state(), before, strict=True))
    assert state() == before


def test_a_short_print_is_read_by_its_own_thread() -> None:
    stream, before = io.StringIO(), state()
    with stderr_in(stream), quiet():
        print("wrong", file=sys.stderr)
    assert stream.getvalue() == "wrong\n"
    assert state() == before
