"""The interior_point task: promises of every method, what auto takes, and what is refused."""

import itertools
import random

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Grid
from core.errors import InvalidValue
from core.gaps import Order
from core.interior_point.params import InteriorPoint
from core.interior_point.task import INTERIOR_POINT
from core.neighbors import Neighbors
from core.policy import Distance, Full, KnownCount, Policy
from core.rounds import Block, run_in_memory
from tests.core.interior_point.universe import ADD, BUDGET, HUGE, METHODS, REPLACE, planned
from tests.core.seeded import SeededNoise

WIDE = Grid((2**60 + 1,), (2**60 + 2**62,), 1)


def database(rng, bits, n):
    """Points in a random window of a random width: from a point mass to the whole universe."""
    low, width = rng.randrange(1 << bits), 1 << rng.randrange(bits)
    if rng.random() < 0.2:
        return [low] * (n - n // 4) + [rng.randrange(1 << bits) for _ in range(n // 4)]
    return [min((1 << bits) - 1, low + rng.randrange(width)) for _ in range(n)]


def test_a_search_that_is_as_far_off_as_it_may_be_needs_one_more_record():
    """Of an even number of records, such a search may end at n / 2 more than the median: beyond all."""
    near = Neighbors("replace_one", Policy(Distance(1)))
    plan = INTERIOR_POINT.plan(Grid((0.0,), (99.0,), 1.0), InteriorPoint("ordered"), BUDGET, near, bytes(16))
    off = plan.rounds[0].search.largest_error(1, 0.1)
    assert plan.promises["records_needed"] / 2 > off


@pytest.mark.parametrize("part", [0.4, 0.6])
def test_a_search_is_for_the_median(part):
    near = Neighbors("replace_one", Policy(Distance(1)))
    plan = INTERIOR_POINT.plan(Grid((0.0,), (99.0,), 1.0), InteriorPoint("ordered"), BUDGET, near, bytes(16))
    points = np.repeat([10, 80], [round(1000 * part), 1000 - round(1000 * part)])[:, None]
    block = Block(points, np.arange(1000, dtype=np.uint64))
    found = run_in_memory(plan.rounds, [block], None, SeededNoise(0, factor=1e-6))
    assert found.step == (10 if part > 0.5 else 80)


def successes(method, bits, runs):
    plan, rng, good = planned(method, 1 << bits), random.Random(bits), 0
    for seed in range(runs):
        points = database(rng, bits, plan.promises["records_needed"])
        found = plan.rounds[0].finder.find(Order.of(points), SeededNoise(seed))
        good += found is not None and min(points) <= found <= max(points)
    return good


@pytest.mark.parametrize(
    ("method", "bits"),
    [
        ("exponential", 16),
        ("exponential", 64),
        ("exponential", 1000),
        ("heavy_paths", 64),
        ("tree_log", 16),
        ("one_cluster", 20),
    ],
)
def test_the_promised_number_of_records_suffices(method, bits):
    """20 runs that each fail with probability at most 0.1: 13 or fewer successes have probability < 1e-3."""
    assert successes(method, bits, 20) >= 14


@pytest.mark.audit
@pytest.mark.parametrize(
    ("method", "bits"), [*itertools.product(HUGE, [16, 64, 4096]), ("one_cluster", 16), ("one_cluster", 30)]
)
def test_promise_holds(method, bits):
    """300 runs (60 on the largest universe): at most 0.1 + 3 standard deviations fail."""
    runs = 60 if bits > 1000 else 300
    assert runs - successes(method, bits, runs) <= 0.1 * runs + 3 * (0.09 * runs) ** 0.5


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_not_overspent(method):
    for budget in (BUDGET, Budget(0.1, 1e-9), Budget(5.0, 1e-4)):
        plan = INTERIOR_POINT.plan(
            Grid((0.0,), (2.0**30,), 1.0), InteriorPoint(method), budget, REPLACE, bytes(16)
        )
        assert 0.95 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
        assert sum(m.delta for m in plan.mechanisms) <= budget.delta


def test_auto_takes_what_needs_fewest_records():
    plan = INTERIOR_POINT.plan(Grid((0.0,), (2.0**30,), 1.0), InteriorPoint(), BUDGET, REPLACE, bytes(16))
    assert plan.method == "exponential"
    assert set(plan.alternatives) == set(METHODS[1:])
    assert all(
        other["records_needed"] > plan.promises["records_needed"] for other in plan.alternatives.values()
    )
    assert not INTERIOR_POINT.plan(
        Grid((0.0,), (9.0,), 1.0), InteriorPoint(), BUDGET, ADD, bytes(16)
    ).alternatives
    needs = [planned(method, 1 << 8192).promises["records_needed"] for method in HUGE]
    assert needs[1] < needs[0]


@pytest.mark.parametrize(
    ("method", "budget", "neighbors", "message"),
    [
        ("tree_log", BUDGET, ADD, r"^method is tree_log: .* replace_one only"),
        ("heavy_paths", Budget(1.0, 0.0), REPLACE, r"^delta is 0: method heavy_paths needs one above 0"),
    ],
)
def test_what_a_method_does_not_serve_is_refused(method, budget, neighbors, message):
    with pytest.raises(InvalidValue, match=message):
        INTERIOR_POINT.plan(Grid((0.0,), (9.0,), 1.0), InteriorPoint(method), budget, neighbors, bytes(16))


def test_several_columns_are_refused():
    with pytest.raises(InvalidValue, match=r"columns has 2 columns: interior_point takes one"):
        INTERIOR_POINT.plan(Grid((0.0, 0.0), (9.0, 9.0), 1.0), InteriorPoint(), BUDGET, ADD, bytes(16))


def test_known_counts_are_refused():
    known = KnownCount((0,), (4,), 7)
    with pytest.raises(InvalidValue, match="constraints is set: interior_point does not support them"):
        INTERIOR_POINT.plan(
            Grid((0.0,), (9.0,), 1.0),
            InteriorPoint(),
            BUDGET,
            Neighbors("replace_one", Policy(Full(), (known,))),
            bytes(16),
        )


@pytest.mark.parametrize("method", HUGE)
def test_the_widest_axis_is_served_exactly(method):
    """A point mass between lone extremes: what is found lies among 20,000 records, and is exact."""
    plan = INTERIOR_POINT.plan(WIDE, InteriorPoint(method), BUDGET, REPLACE, bytes(16))
    values = np.array([2**61 + 1] * 10_000 + [2**61 + 3] * 10_000)
    block = Block(WIDE.quantize(values[:, None]), np.arange(len(values), dtype=np.uint64))
    found = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(1)).result(WIDE)
    assert type(found.point) is int
    assert 2**61 + 1 <= found.point <= 2**61 + 3
