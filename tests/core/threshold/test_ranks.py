"""The four rounds of interior_point on a wide axis draw from the numbers that one machine would draw from."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import core.focus
import core.threshold.ranks
from core.budget import Budget
from core.domain import Grid
from core.gaps import Order, Runs
from core.interior_point.params import InteriorPoint
from core.interior_point.task import INTERIOR_POINT
from core.neighbors import Neighbors
from core.rounds import Block, run_in_memory, total_in_memory
from core.threshold.examples import Examples, labeled, ranked
from core.threshold.params import Threshold
from core.threshold.task import THRESHOLD
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

SIZE = 300


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Domains of more than 32 points are wide."""
    monkeypatch.setattr(core.focus, "CELLS", 32)
    monkeypatch.setattr(core.threshold.ranks, "CELLS", 32)


def planned(relation: str, epsilon: float, size: int = SIZE) -> Any:
    grid, params = Grid((0.0, 0.0), (size - 1.0, 1.0), 1.0), Threshold(method="interior_point")
    return THRESHOLD.plan(grid, params, Budget(epsilon, 0.0), Neighbors(relation), bytes(16))


def databases() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    spread, clump = rng.integers(0, SIZE, 400), 77 + rng.integers(0, 9, 400)
    return {
        "nothing": np.zeros((0, 2), dtype=np.int64),
        "one value": np.stack([np.full(300, 50), rng.integers(0, 2, 300)], axis=1),
        "alternating": np.stack([spread, spread % 2], axis=1),
        "right": np.stack([clump, clump > 81], axis=1),
    }


def blocks(points: Any) -> list[Block]:
    ids = np.arange(len(points), dtype=np.uint64)
    return [Block(points[part], ids[part]) for part in np.array_split(np.arange(len(points)), 3)]


@pytest.mark.parametrize("name", databases())
@pytest.mark.parametrize("beyond", [-70, 0, 90])
@pytest.mark.parametrize("step", [1, 7])
def test_every_rank_has_the_errors_of_its_cut(name: str, beyond: int, step: int) -> None:
    """Also where the noisy number of examples is too small or too large, and wherever the axis is cut."""
    points = databases()[name]
    about = max(1, len(points) + beyond)
    examples = Examples.of_counts(labeled(points, 1))
    _, choose, _, _ = planned("add_or_remove_one", 20.0).rounds
    choose = replace(choose, learner=replace(choose.learner, step=step))
    offers = total_in_memory(choose, blocks(points), about, SeededNoise(0))
    noise = RecordingNoise(SeededNoise(0))
    rank = choose.release(offers, about, noise)
    ((_, scores, scale),), (lengths,) = noise.calls, noise.lengths
    expected = examples.errors_of_cuts(step * np.arange(-(-about // step) + 1))
    assert rank % step == 0 and scale == choose.learner.rank.scale
    assert sorted(-np.repeat(scores, lengths)) == sorted(expected - examples.zeros.total)
    before, held = 0, []  # each entry holds a rank of its own loss
    for offer in offers.sections:
        assert (expected[offer.points] - examples.zeros.total == before + offer.losses).all()
        before += offer.change
        held += offer.points.tolist()
    assert len(set(held)) == len(held)
    assert len(lengths) <= choose.most_counts


@pytest.mark.parametrize("name", databases())
@pytest.mark.parametrize("rank", [0, 40, 200, 400, 1000])
def test_the_window_and_the_candidates_are_those_of_all_examples(name: str, rank: int) -> None:
    points = databases()[name]
    _, _, find, choose = planned("replace_one", 200.0).rounds
    assert find.looks >= 1
    data, window, seen = blocks(points), find.learner.window, []

    class Watched:
        def find(self, order: Order, noise: Any) -> int:
            seen.append(order)
            return 3

    watched = replace(find, learner=replace(find.learner, finder=Watched()))
    counts = total_in_memory(find, data, rank)
    assert watched.release(counts, rank, SeededNoise(0)) == 3
    examples = Examples.of_counts(labeled(points, 1))
    (order,), expected = seen, ranked(examples.all, rank - window, rank + window)
    assert order.values.tolist() == expected.values.tolist()
    assert order.ranks.tolist() == expected.ranks.tolist()
    errors = total_in_memory(choose, data, 80)
    assert errors.totals.tolist() == examples.errors(np.array([0, 80, 81, SIZE])).tolist()


@pytest.mark.parametrize("relation", ["add_or_remove_one", "replace_one"])
def test_a_plan_has_the_draws_and_the_promise_of_one_round(
    relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = planned(relation, 0.3)
    monkeypatch.setattr(core.threshold.ranks, "CELLS", SIZE)
    one = planned(relation, 0.3)
    assert [len(wide.rounds), len(one.rounds)] == [4, 1]
    assert wide.promises == one.promises and wide.spend == one.spend
    draws = [draw for step in wide.rounds for draw in step.draws()]
    assert tuple(draws) == one.rounds[0].draws()


def test_few_counts_are_held() -> None:
    """Hardly any noise, and labels that change once: the threshold is found in a domain of 2^40 values."""
    n, size = 1 << 15, 1 << 40
    points = size // 3 + np.arange(n) * 1000
    data = Block(np.stack([points, np.arange(n) >= n // 2], axis=1), np.arange(n, dtype=np.uint64))
    plan = planned("add_or_remove_one", 50.0, size)
    for step, state in zip(plan.rounds, (None, n, n // 2, int(points[n // 2 - 1])), strict=True):
        now = step.coarse(state) if getattr(step, "looks", 0) else step
        for look in range(getattr(step, "looks", 0)):
            counted = now.summarize(data, state)
            held = [getattr(counted, each, ()) for each in ("points", "totals", "keys")]
            assert 0 < max(map(len, held)) <= 1 << 13
            now = now.finer(counted, state)
            assert repr(now) == repr(step) or look + 1 < step.looks
    found = run_in_memory(plan.rounds, [data], None, SeededNoise(0)).step
    errors = Examples.of_counts(labeled(data.points, 1)).errors(np.array([found]))
    assert errors[0] <= plan.promises["errors"]


@pytest.mark.parametrize("relation", ["add_or_remove_one", "replace_one"])
def test_as_many_values_are_near_as_the_plan_says(relation: str) -> None:
    """Of single records, one at each point; see `core.focus.Focused.near`."""
    order = Order.of(range(100_000))
    near = planned(relation, 0.5, 10**6).rounds[2]
    median = INTERIOR_POINT.plan(
        Grid((0.0,), (1e6,), 1.0), InteriorPoint("exponential"), Budget(0.5, 0.0), Neighbors(relation), b""
    ).rounds[0]
    for step, state in ((near, 40_000), (replace(median, finder=replace(median.finder, far=300)), None)):
        found = step.hot(Runs.between(order, 0, 10**6), order.total, state).sum()
        assert sum(step.near) - 2 <= found <= sum(step.near)
