"""What a run tells whoever watches from afar."""

import json

import numpy as np

from pipelines.ledger.ledger import Ledger, create_ledger
from tests.pipelines.conftest import write_rows


def events_of(result) -> list[dict]:
    return [json.loads(line) for line in result.stderr.splitlines()]


def test_a_run_tells_its_steps(bench):
    result = bench.run({"run_id": "monday"}, "--json-logs")
    assert result.exit_code == 0, result.output
    events = events_of(result)
    rounds = ["good_radius_and_center", "average_1", "average_2", "fit_radius"]
    assert [event["event"] for event in events] == [
        "planned",
        "started",
        *["round_released"] * len(rounds),
        "released",
    ]
    assert [event["round"] for event in events if event["event"] == "round_released"] == rounds
    assert {event["run_id"] for event in events} == {"monday"}
    assert all({"time", "severity", "event", "run_id", "task"} <= set(event) for event in events)
    again = bench.run({"run_id": "monday"}, "--json-logs")
    assert [(event["event"], event["outcome"]) for event in events_of(again)] == [("stored", "released")]


def test_trouble_is_one_event(bench):
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=0.5, delta=1e-5))
    [refused] = events_of(bench.run({"privacy.ledger": path, "run_id": "monday"}, "--json-logs"))
    assert (refused["event"], refused["severity"], refused["exit_code"]) == ("refused", "ERROR", 3)
    assert refused["run_id"] == "monday"
    assert "Nothing was charged" in refused["message"]
    [failed] = events_of(bench.run({"privacy.epsilon": -1}, "--json-logs"))
    assert (failed["event"], failed["exit_code"]) == ("failed", 2)


def test_events_hold_no_figure_of_the_rows(bench):
    """Two tables of different sizes and places tell the same but for time and outcome."""

    def told(rows: int, place: float) -> list[dict]:
        write_rows(bench.rows, np.full((rows, 2), place))
        changes = {"params.target": 100, "output": str(bench.folder / f"out-{rows}"), "run_id": "r"}
        events = events_of(bench.run(changes, "--json-logs"))
        return [{k: v for k, v in event.items() if k not in ("time", "output")} for event in events]

    assert told(5000, 0.25) == told(3000, 0.75)
