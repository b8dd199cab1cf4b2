"""Statistics: exhaustive sensitivity, exact totals, errors as stated, and which method is better."""

import itertools
import math

import numpy as np
import pytest

from core.aggregate import shard_of
from core.budget import Budget
from core.domain import Grid
from core.errors import InvalidValue
from core.grouping import Contributions, Grouping
from core.labels import Labels
from core.mechanisms.partition_selection import CountThreshold, OptimalSelection, SumsThreshold
from core.neighbors import Neighbors
from core.policy import Distance, Policy
from core.rounds import Block, run_in_memory
from core.statistics.params import Statistics
from core.statistics.quantities import Change, Quantity, drawn_together
from core.statistics.task import STATISTICS
from core.statistics.totals import GroupTotals
from tests.core.seeded import SeededNoise

GRID = Grid((10.0, -3.0), (20.0, 5.0), 0.5)
ONE, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
BUDGET = Budget(1.0, 1e-6)
EVERY = ("count", "units", "sum", "mean", "variance")
PUBLIC = Grouping(("city",), Labels(['["a"]', '["b"]', '["nobody"]']), (None,))
PRIVATE = Grouping(("city",), None, (None,))


def plan(measures=EVERY, budget=BUDGET, neighbors=ONE, grid=GRID, **more):
    return STATISTICS.plan(grid, Statistics(tuple(measures), **more), budget, neighbors, bytes(16))


def rows(n, groups=None, seed=0, grid=GRID):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, np.asarray(grid.extents) + 1, (n, grid.dimension))
    labels = np.array([b'["a"]', b'["b"]', b'["nobody"]'])
    members = None if groups is None else rng.integers(0, groups, n)
    return Block(points, np.arange(n, dtype=np.uint64), None, members, None if groups is None else labels)


def split(block, at):
    parts = (slice(None, at), slice(at, None))
    return [
        Block(
            block.points[p],
            block.ids[p],
            None,
            None if block.groups is None else block.groups[p],
            block.labels,
        )
        for p in parts
    ]


LINE_EXTENT = 3
LINE_QUANTITIES = (
    Quantity("rows"),
    Quantity("units"),
    Quantity("sum", 0, LINE_EXTENT, LINE_EXTENT // 2),
    Quantity("sum", 0, LINE_EXTENT, 0),
    Quantity("sum", 0, LINE_EXTENT, -2),
    Quantity.squares(0, LINE_EXTENT),
)


def contributions(groups, most_groups, most_rows):
    """Every way in which one unit can contribute: rows by group, as sorted values."""
    ways = [()]
    for count in range(1, most_rows + 1):
        ways += itertools.combinations_with_replacement(range(LINE_EXTENT + 1), count)
    for chosen in itertools.product(ways, repeat=groups):
        if sum(1 for way in chosen if way) <= most_groups:
            yield chosen


def totals_of(contribution, quantity):
    found = []
    for way in contribution:
        points = np.array(way, dtype=np.int64).reshape(-1, 1)
        unit = min(1, len(way))
        if quantity.kind in ("missing", "excess"):
            found.append(int(quantity.of_counts(np.array(len(way)), np.array(unit))))
        else:
            found.append(unit if quantity.kind == "units" else int(quantity.values(points).sum()))
    return np.array(found)


@pytest.mark.parametrize(("most_groups", "most_rows"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("quantity", LINE_QUANTITIES, ids=lambda q: f"{q.kind}{q.center}")
def test_sensitivity_by_exhaustive_search(quantity, most_groups, most_rows):
    """Largest change of the totals of three groups by one unit more, or one replaced: bound, and tight."""
    every = [totals_of(each, quantity) for each in contributions(3, most_groups, most_rows)]
    added = np.unique(np.array(every), axis=0)
    one = Change(most_groups, most_rows, 1, False, 0)
    two = Change(most_groups, most_rows, 2, False, 0)
    l1, l2 = np.abs(added).sum(axis=1).max(), np.sqrt((added**2).sum(axis=1).max())
    assert one.l1(quantity) == l1 and one.l2(quantity) == pytest.approx(l2)
    moved = added[:, None, :] - added[None, :, :]
    l1, l2 = np.abs(moved).sum(axis=2).max(), np.sqrt((moved**2).sum(axis=2).max())
    if 2 * most_groups <= 3:
        assert two.l1(quantity) == l1
    assert l1 <= two.l1(quantity) and l2 <= two.l2(quantity) * (1 + 1e-12) <= 1.5 * l2


@pytest.mark.parametrize(("most_groups", "most_rows"), [(1, 1), (1, 2), (2, 1)])
def test_the_two_sums_of_a_pair_change_by_the_extent_together(most_groups, most_rows):
    """Largest L1 change of both sums in three groups by one unit more, or one replaced."""
    pair = (Quantity("above", 0, LINE_EXTENT), Quantity("below", 0, LINE_EXTENT))
    every = contributions(3, most_groups, most_rows)
    added = np.array([np.concatenate([totals_of(each, q) for q in pair]) for each in every])
    change = Change(most_groups, most_rows, 1, False, 0)
    assert change.l1(pair[0]) == np.abs(added).sum(axis=1).max() == most_groups * most_rows * LINE_EXTENT
    moved = np.abs(added[:, None, :] - added[None, :, :]).sum(axis=2).max()
    assert moved <= Change(most_groups, most_rows, 2, False, 0).l1(pair[0])


def together(way, quantities):
    return np.concatenate([totals_of(way, quantity) for quantity in quantities])


@pytest.mark.parametrize(("most_groups", "most_rows"), [(1, 2), (2, 2), (1, 3)])
def test_the_rows_that_a_unit_could_still_have_cost_nothing(most_groups, most_rows):
    """Largest L1 change of sums that are drawn together, by one unit with any rows more, or one replaced."""
    missing = Quantity("missing", 0, 1, rows=most_rows)
    pair = (Quantity("above", 0, LINE_EXTENT), Quantity("below", 0, LINE_EXTENT))
    triple = (*pair, Quantity("missing", 0, LINE_EXTENT, rows=most_rows))
    for quantities in ((Quantity("rows"), missing), triple):
        assert drawn_together(quantities) == [slice(0, len(quantities))]
        one = most_rows * quantities[-1].extent
        ways = contributions(2, most_groups, most_rows)
        added = np.unique([together(way, quantities) for way in ways], axis=0)
        assert added.min() == 0 and set(added.sum(axis=1)) <= {0, one, 2 * one}
        alone = Change(most_groups, most_rows, 1, False, 0).l1(quantities[0])
        assert (
            alone == Change(most_groups, most_rows, 1, False, 0).l1(quantities[0]) == added.sum(axis=1).max()
        )
        moved = np.abs(added[:, None, :] - added[None, :, :]).sum(axis=2).max()
        assert moved <= Change(most_groups, most_rows, 2, False, 0).l1(quantities[0])


@pytest.mark.parametrize(("most_groups", "most_rows"), [(1, 2), (1, 3), (2, 2), (2, 4)])
def test_rows_about_the_middle_of_what_a_unit_may_have(most_groups, most_rows):
    """Largest change by one unit more, or one replaced, in L1 and L2: bounds, and tight for one unit more."""
    quantity = Quantity("excess", rows=most_rows)
    ways = itertools.product(range(most_rows + 1), repeat=3)
    rows_ = np.array([way for way in ways if sum(map(bool, way)) <= most_groups])
    added = quantity.of_counts(rows_, np.minimum(1, rows_))
    one, two = (Change(most_groups, most_rows, changes, False, 0) for changes in (1, 2))
    assert one.l1(quantity) == np.abs(added).sum(axis=1).max() == most_groups * (most_rows - 1)
    assert one.l2(quantity) == pytest.approx(np.sqrt((added**2).sum(axis=1).max()))
    moved = added[:, None, :] - added[None, :, :]
    assert np.abs(moved).sum(axis=2).max() == two.l1(quantity)
    assert np.sqrt((moved**2).sum(axis=2).max()) == pytest.approx(two.l2(quantity))


ONE_COLUMN = Grid((-3.0,), (13.0,), 0.25)
SEVERAL = Contributions(groups=2, rows=3)


def of_units(sizes, seed=0):
    """Groups of so many units with one to three rows each; the first unit of a group is also in the next."""
    rng = np.random.default_rng(seed)
    ids, groups = [], []
    for group, size in enumerate(sizes):
        for unit in range(size):
            many = rng.integers(1, 4)
            ids += [(group << 20) + unit] * many
            groups += [group] * many
    points = rng.integers(0, ONE_COLUMN.extents[0] + 1, (len(ids), 1))
    labels = np.array([f'["{i}"]'.encode() for i in range(len(sizes))])
    return Block(points, np.array(ids, dtype=np.uint64), None, np.array(groups), labels)


KINDS = {
    "laplace": {
        ("count", "units"): ["rows", "missing"],
        ("count", "units", "mean", "variance"): ["rows", "missing", "sum", "squares"],
        ("count", "units", "sum", "mean"): ["above", "below", "missing"],
    },
    "gaussian": {
        ("count", "units"): ["units", "excess"],
        ("count", "units", "mean", "variance"): ["units", "excess", "sum", "squares"],
        ("count", "units", "sum", "mean"): ["units", "excess", "sum"],
    },
}
WAYS = [(method, measures) for method, of in KINDS.items() for measures in of]


@pytest.mark.parametrize("grouping", [PUBLIC, PRIVATE])
@pytest.mark.parametrize(("method", "measures"), WAYS)
def test_without_noise_measures_of_units_with_several_rows_are_exact(method, measures, grouping):
    block, labels = of_units((400, 300)), np.array([b'["a"]', b'["b"]'])
    block = Block(block.points, block.ids, None, block.groups, labels)
    more = {"grid": ONE_COLUMN, "contributions": SEVERAL, "budget": Budget(4.0, 1e-6)}
    plan_ = plan(measures, grouping=grouping, method=method, **more)
    assert [q.kind for q in plan_.rounds[0].reading.quantities] == KINDS[method][measures]
    table = run_in_memory(plan_.rounds, [block], None, SeededNoise(0, 0.0)).table(ONE_COLUMN)
    values = ONE_COLUMN.restore(block.points)[:, 0]
    for place in range(2):
        here = block.groups == place
        assert table["count"][place] == here.sum() and table["units"][place] == (400, 300)[place]
        for name, truth in (("sum", values[here].sum()), ("mean", values[here].mean())):
            assert name not in measures or table[name][place] == pytest.approx(truth)
    if grouping is PUBLIC:
        assert table["count"][2] == table["units"][2] == 0


@pytest.mark.parametrize("epsilon", [1.0, 20.0])
@pytest.mark.parametrize(("method", "measures"), WAYS)
def test_errors_of_units_with_several_rows_are_as_stated(method, measures, epsilon):
    """500 runs at failure 0.3: root mean squares, and no promise is broken too often."""
    block = of_units((900,))
    budget, grouping = Budget(epsilon, 1e-6), Grouping(("city",), Labels(['["0"]']), (None,))
    more = {"grid": ONE_COLUMN, "contributions": SEVERAL, "failure": 0.3, "grouping": grouping}
    plan_ = plan(measures, budget, method=method, **more)
    aggregate, values = plan_.rounds[0].summarize(block, None), ONE_COLUMN.restore(block.points)[:, 0]
    truth = {"count": len(values), "units": 900, "sum": values.sum(), "mean": values.mean()}
    units = {"count": 1, "units": 1, "sum": 13.0, "mean": 8.0 / len(values)}
    tables = [plan_.rounds[0].release(aggregate, None, SeededNoise(i)).table(ONE_COLUMN) for i in range(500)]
    for name in truth.keys() & set(measures):
        off = np.array([table[name][0] for table in tables]) - truth[name]
        stated = tables[0][f"{name}_error"][0]
        assert np.sqrt(np.mean(off**2)) <= 1.12 * stated, name
        assert stated < 0.5 or np.sqrt(np.mean(off**2)) >= (0.88 if stated > 2 else 0.6) * stated, name
        broken = np.abs(off) > plan_.promises[f"{name}_error"] * units[name] * (1.02 if name == "mean" else 1)
        assert np.mean(broken) <= 0.3 / len(set(measures) - {"variance"}) + 0.05, name


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_the_number_of_units_costs_no_error_of_the_number_of_rows(method):
    """And is as good as that of a release of its own with at least a third of the budget."""
    more = {"method": method, "grouping": PUBLIC, "contributions": Contributions(2, 3), "grid": ONE_COLUMN}

    def errors(*measures):
        round_ = plan(measures, **more).rounds[0]
        block = Block(np.zeros((0, 1), np.int64), np.zeros(0, np.uint64), None, np.zeros(0, np.int64))
        table = run_in_memory((round_,), [block], None, SeededNoise(0)).table(ONE_COLUMN)
        return [table[f"{name}_error"][0] for name in measures]

    (alone,), both, (units,) = errors("count"), errors("count", "units"), errors("units")
    assert both[0] <= 1.02 * alone and both[1] <= math.sqrt(3) * units
    summed, with_units = errors("count", "sum", "mean"), errors("count", "sum", "mean", "units")
    assert with_units[0] <= 1.05 * summed[0] and with_units[1] <= 1.05 * summed[1]


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_private_keys_cost_units_with_several_rows_little(method):
    """Errors of found groups are at most a tenth larger than with public keys; delta pays for the keys."""
    more = {"method": method, "contributions": Contributions(2, 3), "grid": ONE_COLUMN}
    rounds = [plan(("count", "sum", "mean"), grouping=each, **more).rounds[0] for each in (PUBLIC, PRIVATE)]
    empty = np.zeros((0, 3), np.int64)
    public, private = (round_.reading.rows(empty[:, : len(round_.noises)])[1] for round_ in rounds)
    assert private <= (1.0 if method == "laplace" else 1.1) * public


@pytest.mark.parametrize(
    ("bounds", "epsilon"),
    [(Contributions(6, 2), 2.0), (Contributions(10, 1), 1.0), (Contributions(30, 2), 1.0)],
)
def test_auto_loses_little_over_found_and_missing_private_groups(bounds, epsilon):
    """Measured: counts and sums of 300 groups of log-even sizes, of which a missing one is empty."""
    given = {
        "grouping": PRIVATE,
        "contributions": bounds,
        "grid": ONE_COLUMN,
        "budget": Budget(epsilon, 1e-6),
    }
    auto = plan(("count", "sum", "mean"), **given)
    sizes = np.random.default_rng(0).uniform(0, math.log(3 * auto.promises["found_from"]), 300)
    counts = np.ceil(np.exp(sizes)).astype(np.int64)
    many, of_row = int(counts.sum()), np.arange(300).repeat(counts)
    points = np.random.default_rng(1).integers(0, ONE_COLUMN.extents[0] + 1, (many, 1))
    labels = np.array([b'["%03d"]' % i for i in range(300)])
    block = Block(points, np.arange(many, dtype=np.uint64), None, of_row, labels)
    sums = np.bincount(of_row, ONE_COLUMN.restore(points)[:, 0])
    largest = max(map(abs, (*ONE_COLUMN.lower, *ONE_COLUMN.upper)))
    asked = (("count", counts, 1.0), ("sum", sums, largest))

    def error(method):
        rounds, squares = plan(("count", "sum", "mean"), method=method, **given).rounds, []
        for seed in range(20):
            found = run_in_memory(rounds, [block], None, SeededNoise(seed))
            table, there = found.table(ONE_COLUMN) or {}, [int(label[2:5]) for label in found.labels]
            for name, truth, unit in asked:
                off = truth.astype(np.float64)
                off[there] -= table.get(name, 0.0)
                squares.append(np.mean((off / unit) ** 2))
        return math.sqrt(np.mean(squares))

    errors = {method: error(method) for method in ("laplace", "gaussian")}
    assert errors[auto.method] <= 1.1 * min(errors.values()), errors


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_unit_with_any_rows_in_a_group_of_its_own_does_not_show(method, most):
    """20,000 groups of one unit with some of at most three rows, at delta 1e-6."""
    many = 20_000
    block = Block(
        np.zeros((many * most, 1), np.int64),
        np.arange(many, dtype=np.uint64).repeat(most),
        None,
        np.arange(many).repeat(most),
        np.array([f'["{i}"]'.encode() for i in range(many)]),
    )
    for measures in (("count",), ("count", "mean")):
        made = plan(measures, grouping=PRIVATE, contributions=SEVERAL, grid=ONE_COLUMN, method=method)
        assert run_in_memory(made.rounds, [block], None, SeededNoise(0)).result(ONE_COLUMN) is None


def test_numbers_that_would_not_fit_are_not_summed_up():
    """The rows that units could still have, times the extent, would not fit into int64."""
    wide = Grid((0.0,), (2.0**30,), 1.0)
    for most, kinds in ((2, ["above", "below", "missing"]), (3, ["rows", "missing", "sum"])):
        bounds = Contributions(1, most)
        made = plan(("count", "mean"), grouping=PRIVATE, contributions=bounds, grid=wide, method="laplace")
        assert [q.kind for q in made.rounds[0].reading.quantities] == kinds


def test_no_number_is_below_0():
    """Nor a sum of numbers that are not; errors are those of the noise, which are larger."""
    block = of_units((0, 1))
    for low, high in ((0.0, 16.0), (-16.0, 0.0), (-3.0, 13.0)):
        grid, found, counts = Grid((low,), (high,), 0.25), [], []
        plan_ = plan(("count", "sum"), grouping=PUBLIC, grid=grid)
        for seed in range(100):
            table = run_in_memory(plan_.rounds, [block], None, SeededNoise(seed)).table(grid)
            counts.append(table["count"])
            found.append(table["sum"])
        assert np.min(counts) == 0 and np.mean(np.array(counts)[:, 2] == 0) > 0.4
        assert np.all(table["count_error"] > 1)
        assert (np.min(found) < 0) == (low < 0) and (np.max(found) > 0) == (high > 0)
        assert any("released as 0" in note for note in plan_.notes)


@pytest.mark.parametrize("measures", [("count", "mean"), ("count", "mean", "variance")])
@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_no_mean_is_out_of_bounds_and_no_variance_is_larger_than_they_allow(measures, method):
    """A few rows, whose mean the noise would often take beyond them."""
    plan_ = plan(measures, Budget(0.3, 1e-6), grid=ONE_COLUMN, method=method)
    block = rows(8, grid=ONE_COLUMN)
    found = {name: [] for name in measures}
    for seed in range(200):
        result = run_in_memory(plan_.rounds, [block], None, SeededNoise(seed)).result(ONE_COLUMN)
        for value in result.values:
            if value.value is not None:
                found[value.measure].append(value.value)
    for name, (low, high) in {"mean": (-3.0, 13.0), "variance": (0.0, 8.0**2)}.items():
        if name in measures:
            assert min(found[name]) == low and max(found[name]) == high


def runs_of(plan_, block, many, noise=1.0):
    """Return the errors of many releases, and the errors stated and the truth, by measure."""
    aggregate = plan_.rounds[0].summarize(block, None)
    column = ONE_COLUMN.restore(block.points)[:, 0]
    truth = {"count": len(column), "sum": column.sum(), "mean": column.mean()}
    off, stated = {}, {}
    for seed in range(many):
        for v in plan_.rounds[0].release(aggregate, None, SeededNoise(seed, noise)).result(ONE_COLUMN).values:
            off.setdefault(v.measure, []).append(v.value - truth[v.measure])
            stated[v.measure] = v.error
    return {name: np.array(each) for name, each in off.items()}, stated, truth


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_a_pair_states_its_errors_and_keeps_its_promises(epsilon):
    """1500 runs at failure 0.3: root mean squares within 10%, and no promise broken too often."""
    block = rows(3000, grid=ONE_COLUMN)
    block.points[:] //= 3  # a mean that is not in the middle
    plan_ = plan(("count", "sum", "mean"), Budget(epsilon, 0.0), grid=ONE_COLUMN, failure=0.3)
    assert [q.kind for q in plan_.rounds[0].reading.quantities] == ["above", "below"]
    off, stated, truth = runs_of(plan_, block, 1500)
    for name, errors in off.items():
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(stated[name], rel=0.1), name
    promises = plan_.promises
    units = {"count": 1, "sum": 13.0, "mean": 8.0 / (off["count"] + truth["count"])}
    for name, unit in units.items():
        assert np.mean(np.abs(off[name]) > promises[f"{name}_error"] * unit) <= 0.1 + 0.03, name
    assert np.all(off["count"] == np.rint(off["count"]))


def test_a_pair_halves_the_variance_of_two_halves_of_epsilon():
    off, _, truth = runs_of(plan(("count", "mean"), grid=ONE_COLUMN), rows(3000, grid=ONE_COLUMN), 2500)
    assert np.mean(off["count"] ** 2) == pytest.approx(8 / 2, rel=0.15)
    centered = (off["mean"] * truth["count"]) ** 2  # the mean is the middle, all but
    assert np.mean(centered) == pytest.approx(2 * 16.0**2 / 2, rel=0.15)


def test_without_noise_a_pair_is_exact():
    block = rows(900, 2, grid=ONE_COLUMN)
    plan_ = plan(("count", "sum", "mean"), grouping=PUBLIC, grid=ONE_COLUMN)
    table = run_in_memory(plan_.rounds, split(block, 400), None, SeededNoise(0, 0.0)).table(ONE_COLUMN)
    values = ONE_COLUMN.restore(block.points)[:, 0]
    for place in range(2):
        column = values[block.groups == place]
        assert table["count"][place] == len(column)
        assert table["sum"][place] == pytest.approx(column.sum())
        assert table["mean"][place] == pytest.approx(column.mean())
    assert table["count"][2] == table["sum"][2] == 0 and np.isnan(table["mean"][2])


def test_private_groups_are_found_by_their_pair():
    """A release without noise is exact, and one with noise finds what the plan promises."""
    sizes = np.array([5, 60, 80, 200])
    plan_ = plan(("count", "sum", "mean"), grouping=PRIVATE, grid=ONE_COLUMN)
    draw = plan_.rounds[0].selection
    assert isinstance(draw, SumsThreshold) and draw.extent == 64 and plan_.promises["found_from"] <= 60
    block = rows(345, 1, grid=ONE_COLUMN)
    labels = np.array([f'["{i}"]'.encode() for i in range(4)])
    block = Block(block.points, block.ids, None, np.repeat(np.arange(4), sizes), labels)
    exact = run_in_memory(plan_.rounds, split(block, 200), None, SeededNoise(0, 0.0)).table(ONE_COLUMN)
    values = ONE_COLUMN.restore(block.points)[:, 0]
    assert exact["city"].tolist() == ["1", "2", "3"] and exact["count"].tolist() == [60, 80, 200]
    assert exact["mean"] == pytest.approx([values[block.groups == i].mean() for i in (1, 2, 3)])
    off = []
    for seed in range(300):
        table = run_in_memory(plan_.rounds, [block], None, SeededNoise(seed)).table(ONE_COLUMN)
        assert {"1", "2", "3"} <= set(table["city"].tolist())
        off.append(table["count"][-1] - 200)
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(table["count_error"][0], rel=0.2)


@pytest.mark.parametrize(
    ("measures", "more"),
    [
        (("count",), {}),
        (("sum",), {}),  # from 0, without a count
        (("mean", "variance"), {}),
        (("mean",), {"grid": GRID}),
        (("mean",), {"neighbors": REPLACE}),
        (("mean",), {"method": "gaussian"}),
    ],
)
def test_where_a_pair_does_not_serve(measures, more):
    kinds = {q.kind for q in plan(measures, **{"grid": ONE_COLUMN, **more}).rounds[0].reading.quantities}
    assert not kinds & {"above", "below"}


@pytest.mark.parametrize("reach", [1, 2, 5, 20])
def test_a_policy_limits_a_replaced_record(reach):
    extent = 20
    for quantity in (Quantity("sum", 0, extent, 10), Quantity("squares", 0, extent, 7, 2, 10)):
        numbers = quantity.values(np.arange(extent + 1)[:, None])
        pairs = itertools.product(range(extent + 1), repeat=2)
        most = max(abs(int(numbers[a] - numbers[b])) for a, b in pairs if abs(a - b) <= reach)
        change = Change(1, 1, 2, True, reach)
        assert most <= change.l1(quantity) <= most + 2
        assert change.l1(Quantity("rows")) == 0


def test_squares_of_wide_columns_fit():
    quantity = Quantity.squares(0, 2**31 - 1)
    low, high = quantity.ends
    assert quantity.bound <= 2**30 and quantity.width <= 2**31
    ends = quantity.values(np.array([[0], [2**31 - 1], [2**30 - 1]]))
    assert ends.min() >= low and ends.max() <= high


@pytest.mark.parametrize("groups", [None, PUBLIC, PRIVATE])
@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_without_noise_the_measures_are_exact(groups, method):
    block = rows(900, None if groups is None else 2)
    plan_ = plan(grouping=groups, method=method)
    found = run_in_memory(plan_.rounds, split(block, 400), None, SeededNoise(0, 0.0))
    values = GRID.restore(block.points)
    if groups is None:
        released = {(v.measure, v.column): v.value for v in found.result(GRID).values}
        assert released["count", None] == released["units", None] == 900
        for axis in range(2):
            column = values[:, axis]
            assert released["sum", axis] == pytest.approx(column.sum())
            assert released["mean", axis] == pytest.approx(column.mean())
            assert released["variance", axis] == pytest.approx(column.var())
        return
    table = found.table(GRID)
    assert table["city"].tolist() == (["a", "b", "nobody"] if groups is PUBLIC else ["a", "b"])
    for place, number in enumerate(range(2)):
        column = values[block.groups == number, 1]
        assert table["count"][place] == len(column)
        assert table["mean_1"][place] == pytest.approx(column.mean())
        assert table["variance_1"][place] == pytest.approx(column.var())
    if groups is PUBLIC:
        assert table["count"][2] == 0 and np.isnan(table["mean_0"][2])


@pytest.mark.parametrize("neighbors", [ONE, REPLACE])
@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_standard_errors_are_those_of_many_runs(neighbors, method):
    """600 runs; each root mean square is within 15% of what is stated (5 deviations)."""
    block = rows(5000)
    plan_ = plan(neighbors=neighbors, method=method)
    values, truth = GRID.restore(block.points), {}
    for axis in range(2):
        column = values[:, axis]
        truth |= {
            ("sum", axis): column.sum(),
            ("mean", axis): column.mean(),
            ("variance", axis): column.var(),
        }
    truth |= {("count", None): 5000, ("units", None): 5000}
    aggregate = plan_.rounds[0].summarize(block, None)
    off, stated = {}, {}
    for seed in range(600):
        for v in plan_.rounds[0].release(aggregate, None, SeededNoise(seed)).result(GRID).values:
            off.setdefault((v.measure, v.column), []).append(v.value - truth[v.measure, v.column])
            stated[v.measure, v.column] = v.error
    for name, errors in off.items():
        assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(stated[name], rel=0.15, abs=1e-9), name


def test_halved_noise_is_noticed():
    """The test above has the power to see it."""
    block, plan_ = rows(5000), plan(("count", "mean"))
    aggregate = plan_.rounds[0].summarize(block, None)
    runs = [
        plan_.rounds[0].release(aggregate, None, SeededNoise(seed, 0.5)).result(GRID).values[0]
        for seed in range(600)
    ]
    assert np.std([v.value for v in runs]) < 0.6 * runs[0].error


def test_counts_are_public_only_without_groups_under_replace_one():
    scales = {m.mechanism: m.scale for m in plan(("count", "sum"), neighbors=REPLACE).mechanisms}
    assert not any("number of records" in name for name in scales)
    grouped = plan(("count", "sum"), neighbors=REPLACE, grouping=PUBLIC).mechanisms
    (count,) = (m for m in grouped if "number of records" in m.mechanism)
    assert count.sensitivity == 2  # a row may change its group


@pytest.mark.parametrize("measure", ["sum", "mean"])
def test_public_counts_take_no_part_of_the_failure_probability(measure):
    alone, beside = (plan(given, neighbors=REPLACE) for given in ([measure], ["count", "units", measure]))
    assert beside.promises[f"{measure}_error"] == alone.promises[f"{measure}_error"] > 0
    assert beside.promises["count_error"] == beside.promises["units_error"] == 0


def test_a_policy_makes_sums_less_noisy_but_not_those_of_groups():
    line = Grid((0.0,), (100.0,), 1.0)
    near = Neighbors("replace_one", Policy(Distance(5)))
    full, less = (plan(("sum",), neighbors=n, grid=line).mechanisms[0].scale for n in (REPLACE, near))
    assert less == pytest.approx(full * 5 / 100)
    grouped = plan(("sum",), neighbors=near, grid=line, grouping=PUBLIC)
    assert grouped.policy is None
    assert grouped.mechanisms == plan(("sum",), neighbors=REPLACE, grid=line, grouping=PUBLIC).mechanisms


def test_what_finds_private_groups():
    assert type(plan(("count",), grouping=PRIVATE).rounds[0].selection) is CountThreshold
    line = Grid((0.0,), (100.0,), 1.0)
    for measures in (("sum",), ("count", "mean")):
        assert isinstance(plan(measures, grouping=PRIVATE, grid=line).rounds[0].selection, SumsThreshold)
    made = plan(("count",), grouping=PRIVATE, contributions=SEVERAL, method="laplace").rounds[0]
    assert isinstance(made.selection, SumsThreshold) and made.selection.extent == 3
    line_of = {"grouping": PRIVATE, "contributions": SEVERAL, "method": "laplace", "grid": line}
    made = plan(("mean",), **line_of).rounds[0]
    assert (made.selection.sums, made.selection.extent) == (3, 300)
    made = plan(({"quantiles": (0.5,)},), **line_of).rounds[0]
    assert isinstance(made.selection, OptimalSelection)
    many = plan(("count",), grouping=PRIVATE, contributions=Contributions(groups=200)).rounds[0]
    assert isinstance(many.selection, CountThreshold) and many.selection.gaussian


def test_a_coin_looks_at_numbers_of_units_alone():
    """1,000 units at 0: their sum finds no group, and neither do 9 units of the largest sum."""
    line, size = Grid((0.0,), (100.0,), 1.0), np.array([1000, 9])
    once = Contributions(rows=3, clamp="unit")
    plan_ = plan(("sum",), Budget(1.0, 1e-9), grouping=PRIVATE, contributions=once, grid=line)
    assert isinstance(plan_.rounds[0].selection, OptimalSelection)
    points, labels = np.repeat([0, 100], size)[:, None], np.array([b'["a"]', b'["b"]'])
    block = Block(points, np.arange(1009, dtype=np.uint64), None, np.repeat([0, 1], size), labels)
    found = run_in_memory(plan_.rounds, [block], None, SeededNoise(0))
    assert found.labels.tolist() == [b'["a"]']


def test_a_group_of_one_unit_does_not_show():
    """10,000 private groups of one row: at delta 1e-6 none is released, but for probability 0.01."""
    block = Block(
        np.zeros((10_000, 2), np.int64),
        np.arange(10_000, dtype=np.uint64),
        None,
        np.arange(10_000),
        np.array([f'["{i}"]'.encode() for i in range(10_000)]),
    )
    plan_ = plan(grouping=PRIVATE)
    assert run_in_memory(plan_.rounds, [block], None, SeededNoise(0)).result(GRID) is None


def test_gaussian_is_better_for_many_groups_and_laplace_for_few():
    few, many = (plan(("count", "sum"), grouping=PUBLIC, contributions=Contributions(g)) for g in (1, 100))
    assert (few.method, many.method) == ("laplace", "gaussian")
    assert few.spend.epsilon <= 1 + 1e-9 and many.spend.epsilon <= 1 + 1e-9
    assert many.chosen.errors["gaussian"] < 0.5 * many.chosen.errors["laplace"]


def test_sums_are_centered_where_that_is_better():
    """A sum alone needs no count, so its center is 0; a mean's is the middle."""
    line = Grid((0.0,), (100.0,), 1.0)
    (alone,) = plan(("sum",), grid=line).mechanisms
    assert alone.sensitivity == 100
    with_mean = plan(("mean", "variance"), grid=line, method="laplace").mechanisms
    assert [m.sensitivity for m in with_mean[:2]] == [1, 50]


def test_units_are_counted_once_in_each_group():
    block = Block(
        np.zeros((6, 2), np.int64),
        np.array([7, 7, 7, 8, 8, 9], dtype=np.uint64),
        None,
        np.array([0, 0, 1, 0, 1, 1]),
        np.array([b'["a"]', b'["b"]']),
    )
    totals = GroupTotals.of(block, (Quantity("rows"), Quantity("units")), labeled=True)
    assert totals.totals.tolist() == [[3, 2], [3, 3]]


def test_totals_merge_and_split():
    rng = np.random.default_rng(0)
    names = np.array([f'["{"x" * (i % 9)}{i}"]'.encode() for i in range(500)])
    blocks = [
        Block(
            rng.integers(0, 9, (3000, 2)),
            np.arange(3000, dtype=np.uint64),
            None,
            rng.integers(0, 400 + 50 * i, 3000),
            names,
        )
        for i in range(3)
    ]
    quantities = (Quantity("rows"), Quantity("sum", 1, 16, 8))
    parts = [GroupTotals.of(block, quantities, labeled=True) for block in blocks]
    whole = GroupTotals.merged(parts)
    assert whole == parts[2] + (parts[0] + parts[1])
    assert whole.totals[:, 0].sum() == 9000 and (np.diff(whole.totals[:, 0] >= 0) == 0).all()
    shards = whole.split(7)
    assert sum(map(len, shards)) == len(whole) and min(map(len, shards)) > 20
    joined = GroupTotals.merged(shards)
    assert joined == whole
    padded = whole.keys.astype("S99")
    assert (shard_of(padded, 7) == shard_of(whole.keys, 7)).all()
    assert (whole.at(whole.keys[::5]) == whole.totals[::5]).all()
    assert (whole.at(np.array([b"none"])) == 0).all()


def test_parts_release_every_public_key_once():
    labels = tuple(f'["{i}"]' for i in range(100))
    plan_ = plan(("count",), grouping=Grouping(("c",), Labels(labels), (None,)), parts=7)
    empty = Block(
        np.zeros((0, 2), np.int64), np.zeros(0, np.uint64), None, np.zeros(0, np.int64), np.zeros(0, "S1")
    )
    table = run_in_memory(plan_.rounds, [empty], None, SeededNoise(0)).table(GRID)
    assert sorted(table["c"].tolist(), key=int) == [str(i) for i in range(100)]
    assert len(plan_.mechanisms) == 1  # parts see disjoint groups


@pytest.mark.parametrize("public", [True, False])
def test_without_noise_parts_give_each_group_its_own_measures(public: bool) -> None:
    names = [f'["{i}"]' for i in range(30)]
    grouping = Grouping(("c",), Labels(names) if public else None, (None,))
    measures = ("count", "mean", {"quantiles": (0.5,)}, "maximum")
    plan_ = plan(measures, Budget(50.0, 1e-6), grouping=grouping, parts=7)
    groups = np.repeat(np.arange(30), 100)
    points = np.stack([groups % 20, groups % 16], axis=1)  # all rows of a group are alike
    labels = np.array([name.encode() for name in names])
    block = Block(points, np.arange(3000, dtype=np.uint64), None, groups, labels)
    table = run_in_memory(plan_.rounds, [block], None, SeededNoise(0, 0.0)).table(GRID)
    group = table["c"].astype(int)
    assert sorted(group) == list(range(30)) and (table["count"] == 100).all()
    for axis, column in enumerate((10 + group % 20 / 2, -3 + group % 16 / 2)):
        for measure in ("mean", "quantile_0.5", "maximum"):
            assert table[f"{measure}_{axis}"] == pytest.approx(column), measure


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"measures": ()}, "measures is []"),
        ({"measures": ("count", "count")}, "each once"),
        ({"measures": ("average",)}, "measures has 'average'"),
        ({"measures": ("count",), "parts": 0}, "parts is 0"),
        ({"measures": ("count",), "parts": 2}, "parts is 2"),
    ],
)
def test_wrong_parameters(given, says):
    with pytest.raises(InvalidValue, match=says.replace("[", r"\[")):
        Statistics(**given)


@pytest.mark.parametrize(("groups", "rows_"), [(0, 1), (1, 0), (2**31, 1), (2**16, 2**16)])
def test_wrong_contributions(groups, rows_):
    with pytest.raises(InvalidValue, match="contributions has groups"):
        Contributions(groups, rows_)


def test_delta_is_needed_for_private_keys_and_for_gaussian_noise():
    with pytest.raises(InvalidValue, match="private keys need"):
        plan(grouping=PRIVATE, budget=Budget(1.0, 0.0))
    with pytest.raises(InvalidValue, match="gaussian needs"):
        plan(method="gaussian", budget=Budget(1.0, 0.0))
    assert plan(budget=Budget(1.0, 0.0)).method == "laplace"


def test_a_mean_is_not_known_without_rows():
    empty = Block(np.zeros((0, 2), np.int64), np.zeros(0, np.uint64))
    values = run_in_memory(plan(("mean",)).rounds, [empty], None, SeededNoise(0, 0.0)).result(GRID).values
    assert [v.value for v in values] == [None, None]
    assert all(math.isfinite(v.error or 0) for v in values)


@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 0.3 * 1e-6])
def test_parts_of_delta_are_never_more_than_it(delta):
    """A tenth of 1e-5, ten times, is more than 1e-5 by its last bit."""
    for groups in (1, 5, 10, 13, 20, 33, 53):
        for neighbors, method in ((ONE, "laplace"), (REPLACE, "laplace"), (ONE, "gaussian")):
            bounds = Contributions(groups, 1)
            grouped = {"grouping": PRIVATE, "contributions": bounds, "method": method}
            for measure in ("units", {"quantiles": (0.5,)}):
                found = plan([measure], Budget(1.0, delta), neighbors, Grid((0.0,), (100.0,), 1.0), **grouped)
                assert 0 < found.spend.delta <= delta
