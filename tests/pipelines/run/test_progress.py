"""Progress: each round once in the log, what workers have done on a terminal, and no change to a round."""

import io
import json
import pickle
from dataclasses import dataclass

from pipelines.console.events import Events
from pipelines.ledger.ledger import now
from pipelines.run import progress
from pipelines.run.progress import Announced, announced


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


def test_a_worker_in_another_process_has_no_listener():
    assert Announced(Step(), "nowhere").release(3, 2, None) == 6


def test_without_a_log_rounds_are_not_wrapped():
    steps = [Step("one"), Step("two")]
    with announced(steps, Events(None, now)) as rounds:
        assert rounds is steps


def test_events_hear_of_rounds_by_name_alone():
    heard = io.StringIO()
    with announced([Step("one"), Step("two")], Events(heard, now).of(run_id="r")) as rounds:
        for step in rounds:
            step.release(1, 1, None)
    lines = [json.loads(line) for line in heard.getvalue().splitlines()]
    assert [(line["event"], line["run_id"], line["round"]) for line in lines] == [
        ("round_released", "r", "one"),
        ("round_released", "r", "two"),
    ]
    assert progress._LISTENERS == {}
    assert all(set(line) == {"time", "severity", "event", "run_id", "round"} for line in lines)
