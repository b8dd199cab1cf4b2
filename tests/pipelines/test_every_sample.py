"""Every round that sees a sample, in every task: at the rate that is charged, of its own, by the secret salt.

A task's rounds are run on two clumps that it finds. In each state every round that is charged for a Poisson
sample is given single records, to see which of them it keeps. Of 800 records and some dozens of figures,
one strays by 6 standard deviations with probability 1e-7.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from core.aggregate import Sample
from core.rounds import Block
from core.secure_noise import secret_salt
from core.side_by_side import SideBySide
from pipelines.job.job import check_job
from pipelines.plan import make_plan
from pipelines.run import run
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import SALT, changed_job
from tests.pipelines.jobs import changes
from tests.pipelines.test_every_plan import aggregate, different, named

OTHER_SALT = b"another 16 bytes"
RECORDS = 800

SAMPLING: dict[str, dict[str, Any]] = {
    "one_cluster": {"params.target": 40_000},
    "k_cover": {"params": {"k": 2, "target": 40_000}},
}
"""What changes in a task's small job so that its rounds sample."""


def plan_of(task: str, salt: bytes) -> Any:
    job = check_job(changed_job(changes(task) | SAMPLING[task]))
    return make_plan(job, salt)


def clumps(n: int) -> Block:
    at = np.where(np.arange(n)[:, None] % 2, 300, 700)
    points = np.repeat(at, 2, axis=1) + np.arange(n)[:, None] % 7
    return Block(points.astype(np.int64), np.arange(n, dtype=np.uint64) + (1 << 30))


def by_sample(counted: Any) -> np.ndarray:
    """Return how many records a round counted in each of its samples, which it draws from in this order."""
    samples = counted.samples if isinstance(counted, SideBySide) else (counted,)
    return np.array([sample.counts.sum() for sample in samples])


@cache
def kept(task: str, salt: bytes) -> dict[str, tuple[float, np.ndarray]]:
    """Return by sample the charged rate, and which of the records with ids 0, 1, ... it keeps."""
    plan = plan_of(task, salt)
    data, state, found = [clumps(200_000)], plan.start, {}
    for number, step in enumerate(plan.rounds):
        rates = [draw.rate for draw in step.draws() if draw.rate < 1]
        if rates:
            both = data[0].points[:2]  # one in each clump, of which an earlier ball may hold one
            nothing = by_sample(step.summarize(Block(both[:0], np.zeros(0, dtype=np.uint64)), state))
            here = [
                np.not_equal(
                    by_sample(step.summarize(Block(both, np.array([i, i], dtype=np.uint64)), state)), nothing
                )
                for i in range(RECORDS)
            ]
            for place, rate in enumerate(rates):
                found[f"{step.name}, sample {place + 1}"] = rate, np.array(here)[:, place]
            assert len(rates) == len(nothing)
        state = step.release(aggregate(step, data, state), state, SeededNoise(number, 0.0))
    return found


def close(share: float, probability: float) -> bool:
    return abs(share - probability) < 6 * math.sqrt(probability * (1 - probability) / RECORDS)


@pytest.mark.parametrize("task", SAMPLING)
def test_a_sample_is_of_the_rate_that_is_charged(task: str) -> None:
    for name, (rate, here) in kept(task, SALT).items():
        assert close(here.mean(), rate), name


@pytest.mark.parametrize("task", SAMPLING)
def test_rounds_sample_independently(task: str) -> None:
    samples = kept(task, SALT)
    assert len(samples) == {"one_cluster": 2, "k_cover": 4}[task]
    for (one, (p, ours)), (other, (q, theirs)) in itertools.combinations(samples.items(), 2):
        assert close((ours & theirs).mean(), p * q), f"{one} and {other}"


@pytest.mark.parametrize("task", SAMPLING)
def test_another_salt_is_another_sample(task: str) -> None:
    ours, theirs = kept(task, SALT), kept(task, OTHER_SALT)
    for name, (rate, here) in ours.items():
        assert close((here & theirs[name][1]).mean(), rate**2), name


def test_a_subset_follows_from_the_salt() -> None:
    """Of every round that looks at a subset of a public size."""
    checked = 0
    for name in different():
        setting = named(name)
        other = make_plan(setting.job, OTHER_SALT)
        for step, again in zip(setting.plan.rounds, other.rounds, strict=True):
            if not hasattr(step, "records"):
                continue
            n = 10 * step.records
            block = Block(np.arange(n, dtype=np.int64)[:, None], np.arange(n, dtype=np.uint64))
            samples = [each.summarize(block, None) for each in (step, again)]
            assert isinstance(samples[0], Sample)
            ours, theirs = (set(sample.ids.tolist()) for sample in samples)
            assert len(ours & theirs) < 0.3 * step.records, name
            checked += 1
    assert checked >= 2


def texts(value: Any) -> Iterator[str]:
    """Give the texts of all that a plan is made of."""
    yield repr(value)
    if dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            held = getattr(value, each.name)
            if dataclasses.is_dataclass(held):
                yield from texts(held)


def test_the_salt_is_in_no_text_of_a_plan() -> None:
    for name in different():
        plan = named(name).plan
        for text in itertools.chain([repr(plan)], *map(texts, plan.rounds)):
            assert repr(SALT) not in text, name
    for task in SAMPLING:
        for step in plan_of(task, SALT).rounds:
            assert all(repr(SALT) not in text for text in texts(step))


def test_every_run_has_a_salt_of_its_own(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of one job, and of jobs that differ in nothing but the run id."""
    assert len({secret_salt() for _ in range(100)}) == 100 and len(secret_salt()) == 16
    salts = []
    for run_id in ("monday", "monday", "tuesday"):
        prepared = run.prepare_run(check_job(bench.changed({"run_id": run_id})))
        samples = [sample for step in prepared.plan.rounds for sample in getattr(step, "samples", ())]
        assert {sample.salt for sample in samples} == {prepared.salt}
        salts.append(prepared.salt)
    assert len(set(salts)) == 3
