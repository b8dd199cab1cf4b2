"""Quantiles and extremes as measures: what they cost, how far they are off, and that promises hold."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.draws import charged
from core.errors import InvalidValue
from core.gaps import Order, Runs
from core.grouping import Contributions, Grouping
from core.labels import Labels
from core.neighbors import Neighbors
from core.quantiles.params import Quantiles
from core.quantiles.task import QUANTILES
from core.rounds import Block, run_in_memory
from core.statistics.params import Statistics
from core.statistics.quantities import Change, Quantity
from core.statistics.ranks import Sought
from core.statistics.task import STATISTICS
from core.statistics.totals import GroupTotals
from core.statistics.values import ValueCounts
from pipelines.simulation.shapes import SHAPES, records
from tests.core.seeded import SeededNoise

LINE = Grid((0.0,), (4095.0,), 1.0)
ONE, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
THREE = (0.25, 0.5, 0.9)
CITIES = Labels(f'["{i}"]' for i in range(8))
PUBLIC, PRIVATE = Grouping(("city",), CITIES, (None,)), Grouping(("city",), None, (None,))


def plan(measures, epsilon=1.0, neighbors=ONE, grid=LINE, delta=1e-6, **more):
    asked = Statistics(tuple(measures), **more)
    return STATISTICS.plan(grid, asked, Budget(epsilon, delta), neighbors, bytes(16))


def block_of(points, groups=None, ids=None):
    ids = np.arange(len(points), dtype=np.uint64) if ids is None else np.asarray(ids, dtype=np.uint64)
    labels = None if groups is None else np.array([label.encode() for label in CITIES])
    return Block(np.asarray(points, dtype=np.int64), ids, None, groups, labels)


def off(points, step, wanted):
    """Distance of a wanted rank from all ranks of a grid point."""
    return max(0.0, (points < step).sum() - wanted, wanted - (points <= step).sum())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("grouping", [None, PUBLIC, PRIVATE], ids=["whole", "public", "private"])
def test_promises_hold_in_every_group(shape, grouping):
    """Ranks and intervals of 40 runs, of all public groups at once; a promise may fail in 10%.

    Flake rate below 1e-4 a case: 16 of 40 runs would have to fail.
    """
    rng = np.random.default_rng(7)
    points = records(shape, 4000, LINE, rng)
    groups = None if grouping is None else np.minimum(rng.integers(0, 12, len(points)), 6)  # "7" is empty
    made = plan([{"quantiles": THREE}, "minimum", "maximum"], epsilon=6.0, grouping=grouping)
    aggregate = made.rounds[0].summarize(block_of(points, groups), None)
    promises, broken = made.promises, 0
    for seed in range(40):
        found = made.rounds[0].release(aggregate, None, SeededNoise(seed))
        labels = ["whole"] if grouping is None else [label.decode() for label in found.labels]
        fails = set()
        for label, steps in zip(labels, found.steps, strict=True):
            here = points[:, 0] if groups is None else points[groups == CITIES.index(label), 0]
            for (step, low, high), p in zip(steps, (*THREE, 0.0, 1.0), strict=True):
                wanted, extreme = p * len(here), p in (0.0, 1.0)
                bound = promises["extreme_error" if extreme else "rank_error"]
                fails |= {"rank"} if off(here, step, wanted) > bound else set()
                if not extreme and not (here < low).sum() <= wanted <= (here <= high).sum():
                    fails.add("interval")
                if p == 0.0 and len(here) >= 2 * bound and step < here.min():
                    fails.add("beyond")
        broken += bool(fails)
    assert broken < 16


@pytest.mark.parametrize("probabilities", [(0.5,), (0.9,), THREE])
@pytest.mark.parametrize("neighbors", [ONE, REPLACE], ids=lambda n: n.name)
def test_one_group_is_as_good_as_the_task_alone(probabilities, neighbors):
    """Quantiles as the only measure: the same rounds as the task's method, and nothing else is paid for."""
    made = plan([{"quantiles": probabilities}], neighbors=neighbors, delta=0.0)
    asked = Quantiles(probabilities, method="recursive")
    alone = QUANTILES.plan(LINE, asked, Budget(1.0, 0.0), neighbors, bytes(16))
    scales = [m.scale for m in made.mechanisms]
    assert scales == pytest.approx([m.scale for m in alone.mechanisms])
    assert made.promises["rank_error"] <= 1.3 * alone.promises["rank_error"]


@pytest.mark.parametrize("neighbors", [ONE, REPLACE], ids=lambda n: n.name)
def test_all_groups_cost_as_much_as_one(neighbors):
    """Groups compose in parallel. Under replacement a row leaves one group and appears in another."""
    grouped = plan([{"quantiles": THREE}], neighbors=neighbors, grouping=PUBLIC, delta=0.0)
    alone = plan([{"quantiles": THREE}], delta=0.0)
    factor = neighbors.changes
    assert [m.scale for m in grouped.mechanisms] == pytest.approx(
        [m.scale * factor for m in alone.mechanisms], rel=0.05
    )
    assert grouped.spend.epsilon == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(("groups", "rows"), [(1, 2), (3, 1), (2, 5)])
def test_contributions_cost_their_product(groups, rows):
    """Group privacy: rows in which neighbors differ, and for splits twice the cost of an added row."""
    change = Change(groups, rows, 1, False, 0)
    sought = Sought(0, ("quantile_0.25", "quantile_0.5", "quantile_0.9"), THREE)
    made = sought.paid(1.0, 0.1, LINE, change, 8, True)
    one = sought.paid(1.0 / (groups * rows), 0.1, LINE, Change(1, 1, 1, False, 0), 8, True)
    costs = [(a.cost.epsilon, b.cost.epsilon) for a, b in zip(made.draws(), one.draws(), strict=True)]
    assert all(a == pytest.approx(groups * rows * b) for a, b in costs)
    assert sum(a for a, _ in costs) == pytest.approx(1.0, rel=0.02)


def test_every_draw_of_a_group_is_charged():
    """The pivot of the interval, then the value with both ends in one draw."""
    made = plan([{"quantiles": (0.5,)}], grouping=PUBLIC, delta=0.0)
    pivot, value = made.rounds[0].draws()
    assert (pivot.times, value.times) == (8, 8) and pivot.disjoint and value.disjoint
    assert pivot.cost.epsilon + value.cost.epsilon == pytest.approx(1.0)
    assert pivot.cost.epsilon == pytest.approx(0.05)
    assert made.mechanisms == charged(made.rounds)


def test_a_draw_that_a_group_makes_twice_costs_twice_as_much():
    made = plan([{"quantiles": (0.5,)}], grouping=PUBLIC, delta=0.0).rounds[0].reading.ranks[0]
    (_, once), several = made.step.draws(), 3
    both = [made.of_groups(replace(once, times=times)).cost.epsilon for times in (1, several)]
    assert both[1] == pytest.approx(several * both[0])


def test_halved_noise_of_a_choice_breaks_its_probabilities():
    """Two neighbors: the largest log ratio of the exact probabilities is what is charged, and no more.

    For the value alone; `tests.core.quantiles.test_brackets` has the joint draw of a value and its interval.
    """
    made = plan([{"quantiles": (0.5,)}], grouping=PUBLIC, delta=0.0).rounds[0].reading.ranks[0]
    draw, aim = made.draws()[1], made.step.aim

    def chances(points):
        order = Order.of_counts(Counts.of(np.sort(np.array(points))))
        runs = Runs.between(order, 0, made.step.size)
        unit = made.step.draw.scale * (1 << 28) * aim.weight
        scores = np.repeat(aim.scores(runs, order.total), runs.lengths.astype(int))
        place = np.concatenate([np.arange(s, s + n) for s, n in zip(runs.starts, runs.lengths, strict=True)])
        weights = np.exp(scores[np.argsort(place)] / unit)
        return np.log(weights / weights.sum())

    worst = 0.0
    for more in (0, 10, 11, 4095):
        worst = max(worst, np.abs(chances([10, 11]) - chances([10, 11, more])).max())
    assert 0.3 * draw.cost.epsilon <= worst <= draw.cost.epsilon * (1 + 1e-9)


def test_without_noise_the_values_are_exact():
    """Noise that is scaled by 0 chooses a point of the best score; so ranks are nearly exact."""
    rng = np.random.default_rng(0)
    points, groups = rng.integers(0, 4096, (6000, 1)), rng.integers(0, 3, 6000)
    made = plan([{"quantiles": THREE}], epsilon=5.0, grouping=PUBLIC)
    table = run_in_memory(made.rounds, [block_of(points, groups)], None, SeededNoise(0, 0.0)).table(LINE)
    for i, city in enumerate(table["city"]):
        here = np.sort(points[groups == int(city), 0])
        for p in THREE if len(here) else ():
            assert off(here, table[f"quantile_{p}"][i], p * len(here)) <= 30
            assert (
                table[f"quantile_{p}_low"][i] <= table[f"quantile_{p}"][i] <= table[f"quantile_{p}_high"][i]
            )


def test_names_of_columns_and_values():
    grid = Grid((0.0, -30.0), (10.0, 30.0), 1.0)
    made = plan(["count", {"quantiles": (0.5,)}, "maximum"], grid=grid)
    block = block_of(np.tile([7, 27], (900, 1)))
    found = run_in_memory(made.rounds, [block], None, SeededNoise(0)).result(grid)
    assert [(v.measure, v.column) for v in found.values] == [
        ("count", None),
        *(("quantile_0.5", axis) for axis in (0, 1)),
        *(("maximum", axis) for axis in (0, 1)),
    ]
    assert [v.value for v in found.values[1:]] == [7.0, -3.0] * 2
    assert found.values[1].low is not None and found.values[3].low is None


def test_value_counts_merge_and_split_as_totals_do():
    """Any split into blocks and shards has the same counts of each group, by numbers and by labels."""
    rng = np.random.default_rng(0)
    points, groups = rng.integers(0, 50, (900, 1)), rng.integers(1, 8, 900)
    quantities = (Quantity("rows"),)
    for labeled in (False, True):
        whole = GroupTotals.of(block_of(points, groups), quantities, labeled, (0,))
        parts = [
            GroupTotals.of(block_of(points[at::3], groups[at::3]), quantities, labeled, (0,))
            for at in range(3)
        ]
        assert GroupTotals.merged(parts) == whole == parts[2] + (parts[0] + parts[1])
        shards = whole.split(3)
        assert GroupTotals.merged(shards) == whole
        for shard in (whole, *shards):
            for key, place in zip(shard.keys, shard.places(shard.keys), strict=True):
                group = CITIES.index(key.decode()) if labeled else int(key)
                assert shard.values[0].at(place) == Counts.of(np.sort(points[groups == group, 0]))
        missing = np.array([b"none"]) if labeled else np.array([0])
        assert len(whole.values[0].at(int(whole.places(missing)[0]))) == 0
    assert ValueCounts.of(groups[:0], points[:0, 0]).counts.tolist() == []


@pytest.mark.parametrize(
    ("measures", "says"),
    [
        (({"quantiles": ()},), "has 0 quantiles"),
        (({"quantiles": (0.5, 0.5)},), "they must ascend"),
        (({"quantiles": (0.0, 0.5)},), "each above 0 and below 1"),
        (({"median": (0.5,)},), "has median"),
        (({"quantiles": (0.1,)}, {"quantiles": (0.5,)}), "give all of them in one list"),
        (("minimum", "minimum"), "each once"),
    ],
)
def test_wrong_quantiles(measures, says):
    with pytest.raises(InvalidValue, match=says):
        Statistics(measures)


CLAMPED = Contributions(groups=2, rows=3, clamp="unit")
SUMS = Grid((-2.0,), (6.0,), 0.5)


def test_the_sum_of_a_unit_is_clamped_once_more():
    """By hand: units 1 and 2 in group 0 with sums 15 and -6, unit 1 in group 1 with 1.5; bounds -2 and 6."""
    values = np.array([5.0, 5.0, 5.0, -2.0, -2.0, -2.0, 1.5])
    block = block_of(
        np.rint((values + 2) / 0.5)[:, None], np.array([0, 0, 0, 0, 0, 0, 1]), [1, 1, 1, 2, 2, 2, 1]
    )
    made = plan(["sum"], grid=SUMS, grouping=PUBLIC, contributions=CLAMPED)
    table = run_in_memory(made.rounds, [block], None, SeededNoise(0, 0.0)).table(SUMS)
    found = dict(zip(table["city"].tolist(), table["sum"].tolist(), strict=True))
    assert found == {"0": 6.0 - 2.0, "1": 1.5} | {str(i): 0.0 for i in range(2, 8)}


@pytest.mark.parametrize("neighbors", [ONE, REPLACE], ids=lambda n: n.name)
def test_clamped_sums_do_not_get_noisier_with_rows(neighbors):
    for clamp, factor in (("unit", 1), ("row", 3)):
        bounds = Contributions(2, 3, clamp)
        (sum_,) = plan(
            ["sum"], grid=SUMS, grouping=PUBLIC, contributions=bounds, neighbors=neighbors, method="laplace"
        ).mechanisms
        assert sum_.sensitivity == neighbors.changes * 2 * factor * 12  # 6 / 0.5 steps, in 2 groups


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
@pytest.mark.parametrize("measures", [["sum"], ["units", "sum"]])
def test_finding_private_keys_does_not_starve_sums_that_are_clamped(measures, method):
    """A unit of a group that is not found lacks one clamped sum, however many rows it may have."""
    promised = []
    for rows in (1, 60):
        made = plan(
            measures, grid=SUMS, grouping=PRIVATE, contributions=Contributions(3, rows, "unit"), method=method
        )
        promised.append(made.promises["sum_error"])
    listed = plan(
        measures, grid=SUMS, grouping=PUBLIC, contributions=Contributions(3, 1, "unit"), method=method
    )
    assert promised[0] == promised[1] <= 2.5 * listed.promises["sum_error"]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_sensitivity_of_clamped_sums_by_exhaustive_search(rows):
    """All ways in which a unit can be in one of three groups with up to `rows` rows, added and replaced."""
    quantity, totals = Quantity("unit_sum", 0, 4, 1), set()
    for count in range(1, rows + 1):
        for chosen in itertools.combinations_with_replacement(range(5), count):
            for group in range(3):
                block = Block(
                    np.array(chosen)[:, None], np.full(count, 7, np.uint64), None, np.full(count, group)
                )
                here = np.zeros(3, dtype=np.int64)
                here[group] = GroupTotals.of(block, (quantity,), False).totals[0, 0]
                totals.add(tuple(here.tolist()))
    every = np.array([(0, 0, 0), *totals])
    one, two = Change(1, rows, 1, False, 0), Change(1, rows, 2, False, 0)
    moved = every[:, None, :] - every[None, :, :]
    assert np.abs(every).sum(axis=1).max() == one.l1(quantity) == 3
    assert np.abs(moved).sum(axis=2).max() == two.l1(quantity)
    largest = math.sqrt((moved**2).sum(axis=2).max())
    assert largest <= two.l2(quantity) * (1 + 1e-12) <= 1.2 * largest


def test_what_clamped_sums_refuse():
    for name in ("mean", "variance"):
        with pytest.raises(InvalidValue, match=f"has {name}"):
            Statistics((name,), contributions=CLAMPED)
    with pytest.raises(InvalidValue, match="clamp"):
        Contributions(clamp="group")
    with pytest.raises(InvalidValue, match="multiples of the step"):
        plan(["sum"], grid=Grid((0.3,), (6.0,), 0.5), contributions=CLAMPED)
    for low, high in ((2.0**31 - 8, 2.0**31), (-(2.0**31), 8 - 2.0**31)):
        with pytest.raises(InvalidValue, match=r"less than 2\^31 of them from 0"):
            plan(["sum"], grid=Grid((low,), (high,), 1.0), contributions=CLAMPED)
