"""Progress: each round once in the log, what workers have done on a terminal, and no change to a round."""

import base64
import io
import json
import pickle
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.rounds import (
    Looking,
    Round,
    RoundInParts,
    RoundInSections,
    examination_of,
    looks_of,
    parts_of,
    sections_of,
)
from pipelines.console.events import Events
from pipelines.console.progress import Progress
from pipelines.job.job import check_job, check_raw
from pipelines.ledger.ledger import now
from pipelines.run import progress
from pipelines.run.joint_run import steps_of_questions
from pipelines.run.prepared import steps_of
from pipelines.run.progress import Announced, announced, watched
from pipelines.run.run import prepare_run, run_job
from tests.pipelines.jobs import changes
from transforms.count_done import count_done, counted


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


@dataclass(frozen=True)
class Everything(Step):
    """A round that is of every kind."""

    parts: int = 5
    looks: int = 2
    sections: int = 7
    examination: str = "how workers examine it"
    near: int = 0

    def coarse(self, state):
        return replace(self, near=1 + state)

    def finer(self, aggregate, state):
        return replace(self, near=self.near + aggregate * state)

    def examine(self, section, state, noise, store):
        return section, state, noise, store, self.near

    def release_part(self, number, aggregate, state, noise):
        return number, aggregate, state, noise


def test_an_announced_round_is_of_the_kinds_of_the_round(monkeypatch) -> None:
    """Also after its looks, which give copies of it: they are told of as well."""
    kinds = (Round, RoundInParts, RoundInSections, Looking)
    names = {name for kind in kinds for name in dir(kind) if not name.startswith("_")} | {"examination"}
    assert names <= set(dir(Everything())) & set(dir(Announced(Everything(), "here")))
    heard: list[str] = []
    monkeypatch.setitem(progress._LISTENERS, "here", heard.append)
    round_ = Everything()
    step: Any = Announced(round_, "here")
    for _ in range(2):
        for name in ("name", "purpose", "floor"):
            assert getattr(step, name) == getattr(round_, name)
        for of in (looks_of, parts_of, sections_of, examination_of):
            assert of(step) == of(round_)
        assert step.examine(1, 2, 3, 4) == round_.examine(1, 2, 3, 4)
        step, round_ = step.coarse(2).finer(3, 4), round_.coarse(2).finer(3, 4)
        assert round_.near == 15
    assert heard == []
    assert step.release(3, 2, None) == 6 and heard == ["step"]


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
    assert [step.release_part(number, 2, 5, None) for number in range(2)] == [(0, 10), (1, 10)]
    assert heard == []
    assert step.release_part(2, 2, 5, None) == (2, 10)
    assert heard == ["step"]


def test_a_round_of_several_strands_is_told_once_it_has_released_in_all_of_them():
    heard = io.StringIO()
    with announced([Step("one"), Step("two")], Events(heard, now), times=3) as (one, two):
        told = []
        for step in (one, one, two, one, two, two):
            step.release(1, 1, None)
            told.append([json.loads(line)["round"] for line in heard.getvalue().splitlines()])
    assert told == [[], [], [], ["one"], ["one"], ["one", "two"]]


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


WIDE = {"input.columns": ["z"], "domain": {"lower": [0], "upper": [2**40], "step": 1}}
BY_CITY = {"group_by": {"columns": ["city"], "keys": ["a", "b"]}}


@pytest.mark.parametrize(
    ("task", "more"),
    [
        ("histogram", {}),
        ("histogram", BY_CITY),
        ("median", WIDE),
        ("median", {**WIDE, "input.unit": "who"}),
        ("median", {**WIDE, **BY_CITY}),
        ("one_cluster", {"input.unit": "who"}),
        ("sample_and_aggregate", {"params.blocks": 20}),
    ],
)
def test_a_run_counts_every_piece_of_the_steps_that_are_expected(bench, task: str, more: dict) -> None:
    rng = np.random.default_rng(3)
    rows = {name: rng.uniform(size=700) for name in "xyw"} | {"who": rng.integers(0, 200, 700)}
    rows |= {"z": rng.integers(0, 2**40, 700), "city": ["a", "b"] * 350}
    pq.write_table(pa.table(rows), bench.rows, row_group_size=100)
    job = check_job(bench.changed({**changes(task), **more}))
    expected = {step.name: step.pieces for step in steps_of(prepare_run(job))}
    assert 7 in expected.values() or task == "median"  # whose rounds look at the rows several times
    before = counted()
    run_job(job)
    assert dict(counted() - before) == expected


@pytest.mark.parametrize("unit", [False, True])
def test_several_questions_are_counted_together_and_told_by_name(bench, unit: bool) -> None:
    """One of them is asked about each of two groups, and is told once for both."""
    rows = {"x": np.random.default_rng(3).uniform(size=700), "city": ["a", "b"] * 350, "who": np.arange(700)}
    pq.write_table(pa.table(rows), bench.rows, row_group_size=100)
    line = {"columns": ["x"], "domain": {"lower": [0], "upper": [1], "step": 0.25}}
    cities = {"group_by": {"columns": ["city"], "keys": ["a", "b"]}, "params": {"cells": [4]}}
    bounds = {"contributions": {"groups": 1}} if unit else {}
    questions = {
        "middle": {**line, "task": "median", "params": {}},
        "cells": {**line, "task": "histogram", **cities, **bounds},
    }
    given = dict.fromkeys(("task", "domain", "params", "input.columns", "input.checks"), ...)
    given |= {"questions": questions, **({"input.unit": "who"} if unit else {})}
    job: Any = check_raw(bench.changed(given))
    prepared = prepare_run(job)
    expected = {step.name: step.pieces for step in steps_of_questions(prepared)}
    assert 7 in expected.values() and (len({*expected.values()}) > 1) == unit
    before, log = counted(), io.StringIO()
    run_job(job, events=Events(log, now))
    assert dict(counted() - before) == expected
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    told = [(line["question"], line["round"]) for line in lines if line["event"] == "round_released"]
    asked = zip(job.jobs, prepared.questions, strict=True)
    assert sorted(told) == sorted((name, each.name) for name, its in asked for each in its[0].rounds)


class Deaf:
    """The result of a runner whose job server gives no metrics."""

    _job_id = "job"

    @property
    def _job_service(self) -> None:
        raise RuntimeError("row 4711")


class Shown:
    """A progress that is shown, and keeps what it is told."""

    shown = True

    def __init__(self) -> None:
        self.done: list[dict[str, int]] = []

    @contextmanager
    def alone(self):
        yield

    def show(self, done) -> None:
        self.done.append(dict(done))


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not done() and time.monotonic() < end:
        time.sleep(0.02)
    assert done()


def test_a_job_server_without_metrics_ends_no_run(monkeypatch) -> None:
    monkeypatch.setattr(progress, "_SHOW_EVERY", 0.01)
    monkeypatch.setattr(progress, "_ASK_EVERY", 0.01)
    shown = Shown()
    with watched(shown, PipelineOptions([])) as started:
        started(Deaf())
        count_done("a step of this test")
        wait_for(lambda: {"a step of this test": 1} in shown.done)


def looking() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "progress"]


def test_a_terminal_that_fails_is_tried_again_until_the_run_ends(monkeypatch) -> None:
    class Failing(Shown):
        def show(self, done) -> None:
            super().show(done)
            if len(self.done) < 3:
                raise (OSError, ValueError)[len(self.done) - 1]("the terminal is gone")

    monkeypatch.setattr(progress, "_SHOW_EVERY", 0.01)
    shown = Failing()
    with watched(shown, PipelineOptions([])):
        wait_for(lambda: len(shown.done) > 3)
        assert looking()
    wait_for(lambda: not looking())


def test_nobody_looks_where_nothing_is_shown() -> None:
    with watched(Progress(False), PipelineOptions([])) as started:
        started(Deaf())
        assert not looking()


def test_flink_tells_what_the_last_job_of_the_name_has_done(monkeypatch) -> None:
    """The answers are those of Flink 1.19 to a job of Beam 2.77, shortened."""
    counter = {
        "urn": "beam:metric:user:sum_int64:v1",
        "type": "beam:metrics:sum_int64:v1",
        "payload": base64.b64encode(bytes([16])).decode(),
        "labels": {"NAMESPACE": "shoal", "NAME": "good_center", "PTRANSFORM": "a"},
    }
    other = counter | {"labels": counter["labels"] | {"NAMESPACE": "another"}}
    metrics = {"metrics": {"attempted": [counter, other, {"urn": "beam:metric:new:v1", "new": 1}]}}
    jobs = [("old", "shoal-a", 1), ("new", "shoal-a", 2), ("other", "shoal-b", 3)]
    answers = {
        "http://flink:8081/jobs/overview": {
            "jobs": [{"jid": jid, "name": name, "start-time": at} for jid, name, at in jobs]
        },
        "http://flink:8081/jobs/new/accumulators": {
            "user-task-accumulators": [
                {"name": "another", "type": "IntCounter", "value": "3"},
                {"name": "__metricscontainers", "type": "MetricsAccumulator", "value": json.dumps(metrics)},
            ]
        },
    }
    monkeypatch.setattr(progress, "ask_flink", lambda url, most_bytes: answers[url])
    monkeypatch.setattr(progress, "_SHOW_EVERY", 0.01)
    monkeypatch.setattr(progress, "_ASK_EVERY", 0.01)
    shown = Shown()
    options = ["--runner=FlinkRunner", "--flink_master=flink:8081", "--job_name=shoal-a"]
    with watched(shown, PipelineOptions(options)) as started:
        started(None)
        wait_for(lambda: shown.done.count({"good_center": 16}) > 4)
    assert {each.get("good_center", 0) for each in shown.done} <= {0, 16}  # however often it was asked
