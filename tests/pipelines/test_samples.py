"""Every sample of every plan is drawn by identity, under the run's salt, independently of the other samples.

Whatever holds the salt in the rounds of a plan is found by a search through their fields. A sampler of a kind
that is not known here fails the search, so no new kind goes unseen. Each sampler is run on made-up
identities. The salts are fixed, so these tests never flake. Under a random salt each comparison of a count
with its mean, within 5 standard deviations, would fail with probability 6e-7.
"""

import math
import pickle
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from core.interior_point.rounds import FindInSample
from core.k_cover.repeated import BallSearch
from core.one_cluster.practical.locate import PoissonSample
from core.rounds import Block
from core.sections import InSections
from pipelines.job.job import check_job
from pipelines.plan import make_plan
from tests.pipelines.every_plan import SALT, Setting, settings
from transforms.split_units import Splitting, gather, split_batch
from transforms.unit_records import keep_one
from transforms.unit_rows import UnitRows

N = 20_000
IDS = np.random.default_rng(5).permutation(np.arange(10**6, dtype=np.uint64))[:N]
OTHER_SALT = b"another 16 bytes"
TARGET = 10**7
"""Target of a cover's rounds, whose samples are small then."""

RATE = 0.3
"""Rate at which a sampler is tried that keeps everything as planned: rounds must be independent at any."""

Sampler = PoissonSample | FindInSample | InSections
Picked = NDArray[np.bool_]


def samplers(value: Any, place: str = "") -> Iterator[tuple[str, Sampler]]:
    """Return all that samples in the rounds of a plan, and where it stands."""
    if isinstance(value, BallSearch):
        yield from samplers(value.step(TARGET), f"{place}.step")
        return
    if isinstance(value, tuple | list):
        for number, one in enumerate(value):
            yield from samplers(one, f"{place}[{number}]")
    elif is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, Sampler):
            yield place, value
        else:
            assert not hasattr(value, "salt"), (
                f"{place} is a {type(value).__name__}: teach this test to run it"
            )
        for field in fields(value):
            yield from samplers(getattr(value, field.name), f"{place}.{field.name}")


def rate(sampler: Sampler) -> float:
    if isinstance(sampler, InSections):
        return sampler.sampled / N
    return sampler.rate if isinstance(sampler, PoissonSample) else sampler.records / N


def at_work(sampler: Sampler) -> Sampler:
    """Return the sampler with a rate that leaves something out."""
    if isinstance(sampler, FindInSample):
        return replace(sampler, records=int(RATE * N))
    if isinstance(sampler, InSections):
        return sampler
    return sampler if 0.01 < sampler.rate < 1 else replace(sampler, rate=RATE)


def picked(sampler: Sampler, points: NDArray[np.int64] | None = None, ids: Any = IDS) -> Picked:
    """Return which of the records are sampled; their points are their numbers, unless given."""
    if isinstance(sampler, FindInSample | InSections):
        points = np.zeros(len(ids), dtype=np.int64) if points is None else points
        first = sampler.coarse(None) if isinstance(sampler, InSections) else sampler
        return np.isin(ids, first.summarize(Block(points[:, None], ids), None).ids)
    kept = np.zeros(len(ids), dtype=np.bool_)
    kept[sampler.of(Block(np.arange(len(ids))[:, None], ids))[:, 0]] = True
    return kept


def agrees(count: int, chance: float, n: int = N) -> bool:
    return abs(count - chance * n) <= 5 * math.sqrt(n * chance * (1 - chance))


def large(task: str, params: dict[str, Any]) -> Setting:
    """A setting whose planned rates are below 1."""
    raw = {
        "task": task,
        "input": {"path": "/nowhere/rows.parquet", "columns": ["x", "y"], "checks": 0.0},
        "domain": {"lower": [0, 0], "upper": [1, 1], "step": 2.0**-10},
        "privacy": {"epsilon": 1.0, "delta": 1e-6},
        "params": params,
        "output": "/nowhere/out",
    }
    return Setting(f"large {task}", check_job(raw))


@cache
def sampled() -> dict[str, Setting]:
    """Return the settings that sample: one for each task and set of samplers."""
    found: dict[str, Setting] = {}
    every = (
        large("one_cluster", {"target": 10**6}),
        large("k_cover", {"k": 3, "target": 10**6}),
        *settings(),
    )
    for setting in every:
        held = [(place, getattr(one, "tweak", None)) for place, one in samplers(setting.plan.rounds)]
        if held:
            found.setdefault(repr((setting.job.task, setting.plan.method, held)), setting)
    return {setting.name: setting for setting in found.values()}


def of(name: str) -> list[Sampler]:
    return [sampler for _, sampler in samplers(sampled()[name].plan.rounds)]


def test_every_salt_in_a_plan_is_found() -> None:
    """The salt is in the pickled rounds just where a sampler was found; five tasks sample records.

    Each of several questions has a salt with another last byte.
    """
    begins = SALT[:-1]
    for setting in settings():
        held = list(samplers(setting.plan.rounds))
        assert bool(held) == (begins in pickle.dumps(setting.plan.rounds)), setting.name
        assert all(sampler.salt.startswith(begins) for _, sampler in held)
        assert begins.decode() not in repr(setting.plan)
    tasks = {setting.job.task for setting in sampled().values()}
    assert tasks == {"one_cluster", "k_cover", "interior_point", "sample_and_aggregate", "threshold"}
    assert sum(sampler.rate < 1 for sampler in of("large k_cover")) == 6


@pytest.mark.parametrize("name", sampled())
def test_the_samples_of_a_run_are_independent(name: str) -> None:
    """At the planned rates, and all at one rate: every two overlap as independent samples do."""
    for trial in ([at_work(one) for one in of(name)], of(name)):
        kept = [(rate(one), picked(one)) for one in trial if rate(one) <= 1]
        for share, one in kept:
            assert agrees(int(one.sum()), share)
        for (share, one), (other_share, other) in combinations(kept, 2):
            assert agrees(int((one & other).sum()), share * other_share)


@pytest.mark.parametrize("name", sampled())
def test_samples_follow_identities_and_never_the_content(name: str) -> None:
    for sampler in map(at_work, of(name)):
        kept = picked(sampler)
        assert np.array_equal(kept, picked(sampler))  # a step that is repeated
        order = np.random.default_rng(6).permutation(N)
        assert np.array_equal(kept[order], picked(sampler, ids=IDS[order]))
        others = IDS + np.uint64(10**6)  # the same contents, other identities
        assert agrees(int((kept & picked(sampler, ids=others)).sum()), rate(sampler) ** 2)
        same = np.full((N, 1), 7)
        if isinstance(sampler, PoissonSample):
            assert len(sampler.of(Block(same, IDS))) == kept.sum()
        else:
            assert np.array_equal(kept, picked(sampler, points=same[:, 0]))


@pytest.mark.parametrize("name", sampled())
def test_runs_of_other_salts_sample_independently(name: str) -> None:
    other = make_plan(sampled()[name].job, OTHER_SALT)
    for one, (_, two) in zip(of(name), samplers(other.rounds), strict=True):
        assert two.salt == OTHER_SALT
        both = picked(at_work(one)) & picked(at_work(two))
        assert agrees(int(both.sum()), rate(at_work(one)) ** 2)


def blocks(salt: bytes, content: int = 0, count: int = 10) -> NDArray[np.int64]:
    """Return the block of each unit of `IDS`."""
    values = pa.record_batch([pa.array(np.arange(N) + content)], names=["x"])
    splitting = Splitting(("x",), "u", count, salt)
    found = np.empty(N, dtype=np.int64)
    groups = np.zeros(N, dtype=np.int64)
    for part, shard in split_batch(splitting, values, pa.array(IDS.astype(np.int64)), groups, 0, 0):
        for number, rows in gather(splitting, part, [shard]):
            found[pa.ipc.open_stream(rows).read_all()["x"].to_numpy() - content] = number
    return found


def rows_kept(salt: bytes) -> Picked:
    """Return whether each unit of `IDS` keeps the first of its two rows; all units have the same two."""
    words = np.tile(np.array([3 + (5 << 32), 900 + (2 << 32)], dtype=np.uint64), N)
    return keep_one(UnitRows([words], IDS.repeat(2), np.repeat(np.arange(N), 2), N), salt) % 2 == 0


def test_blocks_and_kept_rows_are_independent_of_samples_and_of_other_runs() -> None:
    """One salt chooses blocks, the row of a unit and samples: each by a hash of its own."""
    assert np.array_equal(blocks(SALT), blocks(SALT, content=10**9))
    assert agrees(int((blocks(SALT) == blocks(OTHER_SALT)).sum()), 1 / 10)
    assert agrees(int((rows_kept(SALT) & rows_kept(OTHER_SALT)).sum()), 1 / 4)
    chosen = [(0.1, blocks(SALT) == number) for number in range(10)] + [(0.5, rows_kept(SALT))]
    for share, one in chosen:
        assert agrees(int(one.sum()), share)
    for name in sampled():
        for sampler in map(at_work, of(name)):
            kept = picked(sampler)
            for share, one in chosen:
                assert agrees(int((one & kept).sum()), share * rate(sampler))
    for share, one in chosen[:-1]:
        assert agrees(int((one & chosen[-1][1]).sum()), share / 2)


def test_a_plan_that_samples_twice_alike_is_caught() -> None:
    """Power: rounds of one tweak overlap as one sample does with itself."""
    first, second = of("large one_cluster")
    alike = replace(at_work(second), tweak=first.tweak, rate=RATE)  # type: ignore[call-arg]
    assert not agrees(int((picked(replace(first, rate=RATE)) & picked(alike)).sum()), RATE**2)
