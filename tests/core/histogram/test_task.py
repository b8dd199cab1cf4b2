"""Dense and sparse histograms: what neighbors cost, promises, results and refusals."""

import math
from itertools import product

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.histogram.cells import Cells
from core.histogram.found import Table
from core.histogram.params import Histogram
from core.histogram.task import HISTOGRAM
from core.marks import Mark
from core.mechanisms.tails import largest_of
from core.policy import Attribute, Distance, KnownCount, Partition
from core.rounds import Block, run_in_memory
from tests.core.exact import fits, laplace_mass
from tests.core.histogram.square import BUDGET, ONE, REPLACE, SQUARE, block, under
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

RELATIONS = {
    "add or remove": (ONE, None),
    "replace": (REPLACE, lambda x, y: True),
    "attribute": (under(Attribute()), lambda x, y: sum(a != b for a, b in zip(x, y, strict=True)) == 1),
    "distance": (under(Distance(1)), lambda x, y: sum(abs(a - b) for a, b in zip(x, y, strict=True)) <= 1),
    "parts inside cells": (
        under(Partition((3, 2))),
        lambda x, y: (x[0] // 3, x[1] // 2) == (y[0] // 3, y[1] // 2),
    ),
    "parts across cells": (
        under(Partition((2, 2))),
        lambda x, y: (x[0] // 2, x[1] // 2) == (y[0] // 2, y[1] // 2),
    ),
}


def released(plan, points):
    """Return what is released, in units of its noise, or as it is where there is none."""
    noise = RecordingNoise(SeededNoise(0, factor=0.0))
    step = plan.rounds[0]
    table = step.release(step.summarize(block(points), None), None, noise)
    if not noise.calls:
        return table.counts.astype(float)
    return np.concatenate([values / scale for _, values, scale in noise.calls])


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_privacy_loss_is_what_is_charged(relation):
    """Over all pairs of values; it is met, so the scale could not be smaller."""
    neighbors, hidden = RELATIONS[relation]
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2, method="dense"), BUDGET, neighbors, bytes(16))
    values = list(product(range(7), range(5)))
    if hidden is None:
        losses = [np.abs(released(plan, [x]) - released(plan, [])).sum() for x in values]
    else:
        losses = [
            np.abs(released(plan, [x]) - released(plan, [y])).sum()
            for x, y in product(values, repeat=2)
            if hidden(x, y)
        ]
    charged = sum(mechanism.epsilon for mechanism in plan.mechanisms)
    assert max(losses) == pytest.approx(charged)
    assert charged == (0 if relation == "parts inside cells" else BUDGET.epsilon)
    assert plan.spend.epsilon == charged


def test_what_costs_nothing_is_exact():
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2), Budget(0.1, 0.0), under(Partition((3, 2))), bytes(16))
    table = run_in_memory(plan.rounds, [block([[0, 0]] * 5 + [[6, 4]] * 3)], None, SeededNoise(1))
    assert table.counts.tolist() == [5, 0, 0, 3]
    assert "exact and cost nothing" in plan.notes[0]
    huge = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-20)
    sparse = HISTOGRAM.plan(
        huge, Histogram(cells=2**18), Budget(0.1, 0.0), under(Partition((4, 4))), bytes(16)
    )
    assert sparse.method == "sparse"
    found = run_in_memory(sparse.rounds, [block([[0, 0], [9, 9], [9, 8]])], None, SeededNoise(1))
    assert sorted(found.counts.tolist()) == [1, 2]


@pytest.mark.parametrize("cells", [(2, 1), (3, 1), (2, 2)])
def test_constraints_cost_more_however_few_cells_there_are(cells):
    """A row leaves the known part and another one enters it; both go from the first cell to the last."""
    neighbors = under(Partition((7, 5)), KnownCount((0, 0), (6, 2), 2))
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=cells, method="dense"), BUDGET, neighbors, bytes(16))
    moves = ([(0, 0), (0, 2), (0, 4)], [(6, 4), (0, 2), (6, 0)])
    loss = np.abs(released(plan, moves[0]) - released(plan, moves[1])).sum()
    assert loss == pytest.approx(BUDGET.epsilon)


def test_constraints_cost_what_their_longest_change_moves():
    """Two rectangles and the outside: three records of a neighbor change."""
    known = KnownCount((0, 0), (2, 1), 4), KnownCount((3, 2), (6, 4), 2)
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2), BUDGET, under(Attribute(), *known), bytes(16))
    assert plan.mechanisms[0].sensitivity == 6
    assert plan.rounds[0].count.scale == pytest.approx(6 / BUDGET.epsilon)
    moves = ([(0, 0), (3, 2), (0, 4)], [(3, 2), (6, 0), (0, 0)])
    loss = np.abs(released(plan, moves[0]) - released(plan, moves[1])).sum()
    assert loss <= BUDGET.epsilon
    assert "any minimal set of changes" in " ".join(plan.notes)
    assert "change by at most 6 in all" in " ".join(plan.notes)
    edges = under(Attribute(), *known, semantics="edge_moves")
    assert "every change is a secret pair" in " ".join(
        HISTOGRAM.plan(SQUARE, Histogram(cells=2), BUDGET, edges, bytes(16)).notes
    )


def test_known_counts_are_kept():
    known = KnownCount((0, 0), (2, 4), 40), KnownCount((3, 0), (6, 1), 7), KnownCount((1, 1), (1, 1), 0)
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2), BUDGET, under(Distance(1), *known[:2]), bytes(16))
    points = [[0, 0]] * 30 + [[0, 4]] * 10 + [[6, 0]] * 7 + [[6, 4]] * 13
    for seed in range(20):
        counts = run_in_memory(plan.rounds, [block(points)], None, SeededNoise(seed)).counts
        assert (counts[0] + counts[1], counts[2], counts.sum()) == (40, 7, 60)
        assert counts.min() >= 0
    with pytest.raises(ValueError, match="overlap"):
        HISTOGRAM.plan(SQUARE, Histogram(cells=2), BUDGET, under(Distance(2), *known), bytes(16))
    part = KnownCount((1, 1), (1, 1), 0)
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2), BUDGET, under(Distance(1), part), bytes(16))
    assert "does not keep them" in " ".join(plan.notes)
    assert not plan.tightness["cell_error"].reached  # an error of twice the noise is rare


def test_a_known_count_that_is_given_twice_is_kept():
    for box, said in ((((0, 0), (2, 4)), False), (((1, 1), (1, 1)), True)):
        relation = under(Distance(1), *(KnownCount(*box, 40),) * 2)
        plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2), BUDGET, relation, bytes(16))
        assert ("does not keep them" in " ".join(plan.notes)) == said


def test_where_known_counts_overlap_no_error_of_a_cell_is_promised():
    """Such a table is the nearest one, and how far it may be from the true one is not known."""
    known = KnownCount((0, 0), (2, 4), 40), KnownCount((2, 0), (4, 4), 30)
    relation = under(Distance(1), *known, semantics="edge_moves")
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=(7, 5)), BUDGET, relation, bytes(16))
    assert plan.promises["cell_error"] is None and "cell_error" not in plan.tightness
    assert plan.promises["standard_error"] > 0


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_the_noise_has_the_scale_and_no_other(factor):
    """10,000 cells at flake rate 1e-6; noise halved or doubled is told with certainty."""
    grid = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-20)
    plan = HISTOGRAM.plan(grid, Histogram(cells=100), Budget(0.5, 0.0), ONE, bytes(16))
    counts = run_in_memory(plan.rounds, [block([])], None, SeededNoise(3, factor=factor)).counts
    support, mass = laplace_mass(2.0, 60)
    bins = np.array([-61, -6, -3, -1, 0, 1, 2, 4, 7, 61])
    assert fits(np.histogram(counts, bins)[0], np.histogram(support, bins, weights=mass)[0]) == (factor == 1)


@pytest.mark.parametrize("method", ["dense", "sparse"])
@pytest.mark.parametrize("neighbors", [ONE, REPLACE, under(Distance(1)), under(Partition((9, 9)))])
def test_the_standard_error_is_that_of_the_counts(method, neighbors):
    """Of 10,000 cells, all of which are released; a figure that is 5% off is told with certainty."""
    grid = Grid((0.0, 0.0), (99.0, 99.0), 1.0)
    plan = HISTOGRAM.plan(grid, Histogram(cells=100, method=method), Budget(0.5, 1e-6), neighbors, bytes(16))
    exact = Counts(np.arange(10_000), np.full(10_000, 5000))
    errors = plan.rounds[0].release(exact, None, SeededNoise(3)).counts - 5000
    assert errors.std() == pytest.approx(plan.promises["standard_error"], rel=0.05)


@pytest.mark.parametrize("method", ["dense", "sparse"])
@pytest.mark.parametrize("neighbors", [ONE, REPLACE])
def test_the_promise_holds(method, neighbors):
    params = Histogram(cells=(6, 4), method=method, failure=0.2, floor=2 if method == "sparse" else 0)
    plan = HISTOGRAM.plan(SQUARE, params, Budget(1.0, 1e-4), neighbors, bytes(16))
    points = np.random.default_rng(0).binomial([6, 4], 0.3, (600, 2))
    true = np.bincount(Cells(SQUARE, (6, 4)).keys(points), minlength=24)
    broken = 0
    for seed in range(300):
        table = run_in_memory(plan.rounds, [block(points)], None, SeededNoise(seed))
        wrong = np.abs(table.counts - true[table.keys]).max(initial=0) > plan.promises["cell_error"]
        missing = np.delete(true, table.keys).max(initial=0)
        broken += wrong or missing >= (plan.promises["released_from"] or math.inf)
    assert broken <= 300 * 0.2 + 3 * math.sqrt(300 * 0.16)
    assert broken >= 10 or method == "sparse"


def test_the_promise_holds_with_known_counts():
    points = np.random.default_rng(0).binomial([6, 4], 0.3, (600, 2))
    known = KnownCount((0, 0), (2, 4), int((points[:, 0] <= 2).sum()))
    neighbors = under(Distance(1), known)
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2, failure=0.2), Budget(1.0, 0.0), neighbors, bytes(16))
    true = np.bincount(Cells(SQUARE, (2, 2)).keys(points), minlength=4)
    broken = 0
    for seed in range(300):
        table = run_in_memory(plan.rounds, [block(points)], None, SeededNoise(seed))
        broken += np.abs(table.counts - true).max() > plan.promises["cell_error"]
    assert broken <= 300 * 0.2 + 3 * math.sqrt(300 * 0.16)


def test_noise_of_one_cell_against_that_of_all_others_is_covered_with_known_counts():
    """The number of all records is known: what all others have too few, the one has more."""
    everything = KnownCount((0, 0), SQUARE.extents, 24_000)
    neighbors = under(Distance(1), everything)
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=(6, 4)), Budget(1.0, 0.0), neighbors, bytes(16))
    promised, largest = plan.promises["cell_error"], largest_of(24, plan.rounds[0].count.scale, 0.1)
    noise = np.full((6, 4), -largest)
    noise[2, 3] = largest
    kept = plan.rounds[0].consistency.keep(1000 + noise, total=24_000)
    assert 1.7 * largest < np.abs(kept - 1000).max() <= promised


@pytest.mark.parametrize("few", [9, 90_000])
def test_no_count_is_further_off_than_the_largest_known_one(few):
    """Where known counts hold all cells. The promise was 2 m + 1 for noise of at most m, however few rows."""
    known = [KnownCount((0, 0), (2, 4), few), KnownCount((3, 0), (6, 4), 4)]
    plans = [
        HISTOGRAM.plan(
            SQUARE, Histogram(cells=(7, 5)), Budget(0.05, 0.0), under(Distance(1), *some), bytes(16)
        )
        for some in (known, known[:1])
    ]
    promised, alone = (plan.promises["cell_error"] for plan in plans)
    assert promised == (few if few == 9 else 2 * largest_of(35, plans[0].rounds[0].count.scale, 0.1) + 1)
    assert ("largest known count" in plans[0].tightness["cell_error"].says) == (few == 9)
    assert alone > 9  # how many rows the other cells hold is not known here
    points, shape = [[0, 0]] * 9 + [[6, 4]] * 4, (7, 5)
    if few == 9:
        true, errors = np.bincount(np.ravel_multi_index(np.array(points).T, shape), minlength=35), []
        for seed in range(50):
            table = run_in_memory(plans[0].rounds, [block(points)], None, SeededNoise(seed))
            errors.append(np.abs(table.counts - true).max())
        assert max(errors) == promised  # so it could not be smaller


def test_the_total_of_a_table_is_the_sum_of_its_counts_also_below_0():
    table = Table(Cells(SQUARE, (3, 1)), np.arange(3), np.array([-4, 1, 9]))
    assert table.result(SQUARE).total == 6


def test_tables_of_parts_are_joined_in_the_order_of_their_cells():
    cells = Cells(SQUARE, (3, 2))
    parts = [Table(cells, np.array(keys), np.array(keys) * 10) for keys in ([1, 5], [0, 3], [])]
    whole = Table.joined(parts)
    assert whole.keys.tolist() == [0, 1, 3, 5] and whole.counts.tolist() == [0, 10, 30, 50]
    assert Table.joined(parts[2:]).result(SQUARE) is None


def test_ends_of_cells_lie_between_points_where_cells_do_not_divide_an_axis():
    """Seven points have six steps, and five have four."""
    for shape, between in (((3, 3), [1]), ((7, 4), []), ((5, 5), [0]), ((4, 3), [0, 1])):
        marks = Table(Cells(SQUARE, shape), np.arange(1), np.arange(1)).column_marks(SQUARE)
        assert set(marks) == {f"{end}_{axis}" for end in ("lower", "upper") for axis in (0, 1)}
        for name, (mark, axis) in marks.items():
            assert name.endswith(str(axis))
            assert mark is (Mark.BETWEEN if axis in between else Mark.POSITION)


def test_auto_lists_the_other_method():
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2), BUDGET, ONE, bytes(16))
    assert plan.method == "dense"
    assert plan.alternatives["sparse"]["released_from"] > plan.promises["cell_error"]
    assert HISTOGRAM.plan(SQUARE, Histogram(cells=2), Budget(1.0, 0.0), ONE, bytes(16)).alternatives == {}


@pytest.mark.parametrize("neighbors", [ONE, REPLACE])
@pytest.mark.parametrize("method", ["dense", "sparse"])
@pytest.mark.parametrize("points", [[], [[0, 0]], [[6, 4]] * 3000])
def test_extreme_databases_end_in_an_answer(neighbors, method, points):
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2, method=method), BUDGET, neighbors, bytes(16))
    table = run_in_memory(plan.rounds, [block(points)], None, SeededNoise(1))
    result = table.result(SQUARE)
    if method == "sparse" and len(points) < 3000:
        assert result is None
        assert table.table(SQUARE) is None
    else:
        assert result.cells == (2, 2)
        assert result.released == (4 if method == "dense" else 1)
        assert abs(result.total - len(points)) < 60


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Histogram(cells=0), r"cells is 0"),
        (lambda: Histogram(cells=()), r"cells is \(\)"),
        (lambda: Histogram(cells=2, failure=1), r"failure is 1"),
        (lambda: Histogram(cells=2, floor=-1), r"floor is -1"),
        (lambda: Histogram(cells=2, floor=1), r"floor is 1"),
        (lambda: Histogram(cells=2, parts=2), r"parts is 2"),
        (lambda: Histogram(cells=2, method="sparse", parts=0), r"parts is 0"),
        (lambda: Histogram(cells=2, method="sparse", parts=4097), r"parts is 4097"),
        (
            lambda: HISTOGRAM.plan(SQUARE, Histogram(cells=(2,)), BUDGET, ONE, bytes(16)),
            "1 values for 2 columns",
        ),
        (lambda: HISTOGRAM.plan(SQUARE, Histogram(cells=8), BUDGET, ONE, bytes(16)), "axis of 7 grid points"),
        (
            lambda: HISTOGRAM.plan(
                SQUARE, Histogram(cells=2, method="sparse"), Budget(1.0, 0.0), ONE, bytes(16)
            ),
            r"delta is 0",
        ),
        (
            lambda: HISTOGRAM.plan(
                SQUARE, Histogram(cells=2, method="sparse"), Budget(1.0, 0.5), ONE, bytes(16)
            ),
            r"delta is 0\.5: sparse needs one above 0 and below 1/2",
        ),
        (
            lambda: HISTOGRAM.plan(
                Grid((0.0, 0.0), (1.0, 1.0), 1e-6),
                Histogram(cells=10**4, method="dense"),
                BUDGET,
                ONE,
                bytes(16),
            ),
            "dense takes at most",
        ),
        (
            lambda: HISTOGRAM.plan(
                Grid((0.0, 0.0), (1.0, 1.0), 1e-6), Histogram(cells=10**4), Budget(1.0, 0.0), ONE, bytes(16)
            ),
            "dense takes at most",
        ),
        (
            lambda: HISTOGRAM.plan(
                SQUARE,
                Histogram(cells=2, method="sparse"),
                BUDGET,
                under(Distance(1), KnownCount((0, 0), (1, 1), 1)),
                bytes(16),
            ),
            "does not support known counts",
        ),
        (
            lambda: HISTOGRAM.plan(
                SQUARE,
                Histogram(cells=2),
                BUDGET,
                under(Distance(1), KnownCount((0, 0), (1, 1), 1), KnownCount((0, 0), (1, 1), 2)),
                bytes(16),
            ),
            "contradict each other",
        ),
        (
            lambda: HISTOGRAM.plan(SQUARE, Histogram(cells=2), BUDGET, under(Distance(11)), bytes(16)),
            "larger than",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_cell_for_each_point_of_a_wide_axis():
    grid = Grid((2**63,), (2**63 + 1000,), 1)
    plan = HISTOGRAM.plan(grid, Histogram(cells=1001), BUDGET, ONE, bytes(16))
    values = np.array([2**63 + 7] * 3, dtype=np.uint64)
    block = Block(grid.quantize(values[:, None]), np.arange(3, dtype=np.uint64))
    table = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(0, 0)).table(grid)
    assert table["lower_0"].tolist() == table["upper_0"].tolist() == [2**63 + i for i in range(1001)]
    assert table["count"][7] == 3


def test_many_cells_without_a_policy_are_not_listed():
    grid = Grid((0,), (2**62 - 1,), 1)
    for neighbors, sensitivity in ((ONE, 1), (REPLACE, 2)):
        plan = HISTOGRAM.plan(grid, Histogram(cells=2**61), BUDGET, neighbors, bytes(16))
        assert plan.method == "sparse"
        assert plan.mechanisms[0].sensitivity == sensitivity
    assert HISTOGRAM.plan(grid, Histogram(cells=1), BUDGET, REPLACE, bytes(16)).mechanisms == ()
