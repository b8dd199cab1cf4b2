"""Progress: each round once on a terminal, nothing elsewhere, and never a change to the round."""

import io
import json
import pickle
import sys
from dataclasses import dataclass

import pytest

from pipelines.console.events import Events
from pipelines.ledger.ledger import now
from pipelines.run import progress
from pipelines.run.progress import Announced, with_progress


@dataclass(frozen=True)
class Step:
    name: str = "step"
    purpose: str = "a product"
    floor: int | None = 3

    def summarize(self, block, state):
        return block + state

    def release(self, aggregate, state, noise):
        return aggregate * state


def test_an_announced_round_is_the_round(monkeypatch):
    heard: list[str] = []
    monkeypatch.setitem(progress._LISTENERS, "here", heard.append)
    step = pickle.loads(pickle.dumps(Announced(Step(), "here")))
    assert (step.name, step.floor) == ("step", 3)
    assert step.summarize(1, 2) == 3
    assert heard == []
    assert step.release(3, 2, None) == 6
    assert heard == ["step"]


def test_a_round_in_parts_is_announced_once(monkeypatch):
    @dataclass(frozen=True)
    class InParts(Step):
        parts: int = 3

        def release_part(self, number, aggregate, state, noise):
            return number, aggregate * state

    heard: list[str] = []
    monkeypatch.setitem(progress._LISTENERS, "here", heard.append)
    step = Announced(InParts(), "here")
    assert (step.parts, Announced(Step(), "here").parts) == (3, 1)
    assert [step.release_part(number, 2, 5, None) for number in range(3)] == [(0, 10), (1, 10), (2, 10)]
    assert heard == ["step"]


def test_a_worker_in_another_process_has_no_listener():
    assert Announced(Step(), "nowhere").release(3, 2, None) == 6


@pytest.mark.parametrize("terminal", [True, False])
def test_shown_only_on_a_terminal(monkeypatch, capsys, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with with_progress([Step("one"), Step("two")], Events(None, now)) as rounds:
        assert [type(step) for step in rounds] == [Announced if terminal else Step] * 2
        for step in rounds:
            step.release(1, 1, None)
    assert progress._LISTENERS == {}
    said = capsys.readouterr()
    assert said.out == ""
    assert terminal or said.err == ""


def test_events_hear_of_rounds_by_name_alone(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    heard = io.StringIO()
    with with_progress([Step("one"), Step("two")], Events(heard, now).of(run_id="r")) as rounds:
        for step in rounds:
            step.release(1, 1, None)
    lines = [json.loads(line) for line in heard.getvalue().splitlines()]
    assert [(line["event"], line["run_id"], line["round"]) for line in lines] == [
        ("round_released", "r", "one"),
        ("round_released", "r", "two"),
    ]
    assert all(set(line) == {"time", "severity", "event", "run_id", "round"} for line in lines)
