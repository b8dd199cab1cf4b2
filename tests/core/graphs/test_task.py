"""Triangles and spanning trees: budgets, worst cases against what is charged, totality."""

import itertools
import math

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Ball, Grid
from core.graphs.cuts import Cuts
from core.graphs.params import MstCost, Triangles
from core.graphs.task import MST_COST, TRIANGLES
from core.mechanisms.smooth_bound import FLOOR
from core.neighbors import Neighbors
from core.policy import Full, Policy
from core.rounds import Block, run_in_memory
from tests.core.graphs.test_edges import edges
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
PURE = Budget(1.0, 0.0)
QUIET = Budget(1e6, 0.0)


def ids(nodes):
    return Grid((0.0, 0.0), (nodes - 1.0, nodes - 1.0), 1.0)


def weighted(nodes, cap, lower=0.0):
    return Grid((0.0, 0.0, lower), (nodes - 1.0, nodes - 1.0, lower + cap), 1.0)


def released(plan, rows, axes, seed=0):
    points = np.array(rows, dtype=np.int64).reshape(-1, axes)
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    return run_in_memory(plan.rounds, [block], plan.start, SeededNoise(seed))


def test_a_missing_edge_weighs_the_upper_bound():
    """With private edges, an edge of the largest weight and none are the same; a lost node costs one."""
    grid, rows = weighted(5, 9), [(0, 1, 2), (1, 2, 3), (2, 3, 1), (3, 4, 2), (4, 0, 7), (1, 3, 4)]
    (step,) = MST_COST.plan(grid, MstCost(method="smooth"), PURE, ADD, b"").rounds
    with_it, without = (Cuts.of(edges(r), 9) for r in ([*rows, (0, 2, 9)], rows))
    assert step.cost(with_it) == step.cost(without) == (8, 4)
    assert step.sensitivity(with_it) == step.sensitivity(without) < 9
    assert step.sensitivity(with_it) >= with_it.local(0, 0.0) > FLOOR
    apart = Cuts.of(edges(rows[:3]), 9)
    assert step.cost(apart) == (6 + 9, 4)
    assert step.sensitivity(apart) == 9
    assert step.cost(Cuts.of(edges([]), 9)) == (4 * 9, 4)
    (public,) = MST_COST.plan(grid, MstCost(change="weight", method="smooth"), PURE, REPLACE, b"").rounds
    assert public.cost(apart) == (6, 3)
    assert public.sensitivity(Cuts.of(edges([]), 9)) == FLOOR


def test_replacing_public_weights_is_one_change_and_an_edge_two():
    grid = weighted(5, 9)
    one = MST_COST.plan(grid, MstCost(change="weight", method="smooth"), PURE, REPLACE, b"")
    two = MST_COST.plan(grid, MstCost(method="smooth"), PURE, REPLACE, b"")
    value, scale = one.mechanisms
    assert value.epsilon == pytest.approx(0.9, rel=1e-3)
    assert scale.epsilon == pytest.approx(0.1, rel=1e-3)
    assert two.mechanisms[0].epsilon == pytest.approx(0.9, rel=1e-3)
    assert two.rounds[0].smooth.noise.cost_of_one().epsilon == pytest.approx(0.45, rel=1e-3)
    assert two.rounds[0].smooth.noise.alpha < 0.6 * one.rounds[0].smooth.noise.alpha


@pytest.mark.parametrize(("relation", "changes"), [(ADD, 1), (REPLACE, 2)])
def test_a_replaced_edge_is_two_changes_of_triangles(relation, changes):
    plan = TRIANGLES.plan(ids(5), Triangles(), PURE, relation, b"")
    noise, level = plan.rounds[0].smooth.draws()
    assert (noise.changes, level.changes) == (changes, changes)
    assert noise.cost_of_one().epsilon == pytest.approx(0.9 / changes, rel=1e-3)
    assert level.cost_of_one().epsilon == pytest.approx(0.1 / changes, rel=1e-3)


@pytest.mark.parametrize("method", ["global", "smooth"])
def test_costs_and_scales_are_in_data_units(method):
    """In steps of a quarter, the cost above the lower bounds is a quarter, and so is the noise."""
    rows, found = [(0, 1, 2), (1, 2, 3), (2, 3, 1), (3, 4, 2), (4, 0, 7)], []
    for step in (1.0, 0.25):
        grid = Grid((0.0, 0.0, 5.0), (4 * step, 4 * step, 5.0 + 9 * step), step)
        plan = MST_COST.plan(grid, MstCost(method=method), QUIET, ADD, b"")
        found.append(released(plan, rows, 3))
    assert [each.value for each in found] == [4 * 5 + 8, 4 * 5 + 2]
    assert found[1].scale == pytest.approx(found[0].scale / 4)


@pytest.mark.parametrize(("change", "says"), [("edge", None), ("weight", "the weight of one row")])
def test_a_plan_says_where_it_hides_weights_alone(change, says):
    params = MstCost(change=change, method="smooth")
    hidden = MST_COST.plan(weighted(5, 9), params, PURE, REPLACE, b"").hides
    assert hidden is None if says is None else hidden.startswith(says)


@pytest.mark.parametrize("budget", [PURE, Budget(0.2, 1e-9), Budget(2.0, 1e-5)])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("noise", ["auto", "cauchy", "student", "laplace"])
def test_the_budget_is_spent_and_no_more(budget, relation, noise):
    if noise == "laplace" and budget.delta == 0:
        with pytest.raises(ValueError, match=r"noise is laplace"):
            TRIANGLES.plan(ids(50), Triangles(noise=noise), budget, relation, b"")
        return
    for plan in (
        TRIANGLES.plan(ids(50), Triangles(noise=noise), budget, relation, b""),
        MST_COST.plan(
            weighted(50, 9), MstCost(method="smooth", noise=noise, scale_share=0), budget, relation, b""
        ),
    ):
        assert 0.995 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
        assert sum(m.delta for m in plan.mechanisms) <= budget.delta * (1 + 1e-9)


@pytest.mark.parametrize(("change", "relation"), [("edge", ADD), ("edge", REPLACE), ("weight", REPLACE)])
def test_the_global_noise_is_what_the_worst_edge_needs(change, relation):
    """A bridge of weight 0 that becomes one of weight 9: the loss of one changed weight is the charge."""
    plan = MST_COST.plan(weighted(4, 9), MstCost(change=change), PURE, relation, b"")
    assert plan.method == "global"
    drawn = []
    for weight in (0, 9):
        noise = RecordingNoise(SeededNoise(0))
        points = np.array([(0, 1, weight), (1, 2, 3), (2, 3, 3)])
        block = Block(points, np.arange(3, dtype=np.uint64))
        answer = run_in_memory(plan.rounds, [block], None, noise)
        ((_, value, scale),) = noise.calls
        drawn.append(int(value[0]))
        assert answer.scale == scale
    assert abs(drawn[0] - drawn[1]) / scale == pytest.approx(plan.spend.epsilon) == 1.0
    assert plan.promises["error"] == math.ceil(9 * math.log(10))


def test_answers_without_noise_to_speak_of():
    rows = [(u, v) for u, v in itertools.combinations(range(9), 2)]
    plan = TRIANGLES.plan(ids(9), Triangles(), QUIET, ADD, b"")
    assert released(plan, rows, 2).result(ids(9)).value == 84
    grid = weighted(5, 9, lower=-3.0)
    tree = MST_COST.plan(grid, MstCost(method="smooth"), QUIET, ADD, b"")
    rows = [(0, 1, 2), (1, 2, 3), (2, 3, 1), (3, 4, 2), (4, 0, 7)]
    assert released(tree, rows, 3).value == pytest.approx(8 - 4 * 3)
    heavy = [(u, v, 8) for u, v, _ in rows]  # of a tree that costs more than one edge may
    assert released(tree, heavy, 3).value == pytest.approx(4 * 8 - 4 * 3)


class Shifted(SeededNoise):
    """Adds 10 to what gets Laplace noise, or nothing."""

    def laplace(self, values, scale):
        return np.array(values) + int(10 * self._factor)


def test_a_scale_and_what_follows_from_it_are_those_of_a_noisy_level():
    rows = [(0, 1, 2), (1, 2, 3), (2, 3, 1), (3, 4, 2), (4, 0, 7)]
    for task, params, grid in (
        (TRIANGLES, Triangles(), ids(5)),
        (MST_COST, MstCost(method="smooth"), weighted(5, 9)),
    ):
        plan, axes = task.plan(grid, params, PURE, ADD, b""), grid.dimension
        block = Block(np.array(rows, dtype=np.int64)[:, :axes], np.arange(5, dtype=np.uint64))
        still, moved = (run_in_memory(plan.rounds, [block], None, Shifted(0, factor)) for factor in (0, 1))
        times = math.exp(10 * 1.001 * plan.rounds[0].smooth.noise.beta)
        assert moved.scale == pytest.approx(times * still.scale)
        assert moved.within - 0.5 == pytest.approx(times * (still.within - 0.5))


@pytest.mark.parametrize("rows", [[], [(1, 1, 3)], [(0, 1, 3)], [(0, 1, 9)] * 4])
def test_releases_are_total(rows):
    kinds = itertools.product((("edge", ADD), ("weight", REPLACE)), ("smooth", "global"))
    for (change, relation), method in kinds:
        params = MstCost(change=change, method=method)
        plan = MST_COST.plan(weighted(6, 9), params, PURE, relation, b"")
        assert 0 <= released(plan, rows, 3).value <= 45
    plan = TRIANGLES.plan(ids(6), Triangles(), PURE, ADD, b"")
    assert 0 <= released(plan, [row[:2] for row in rows], 2).value <= 20


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: TRIANGLES.plan(weighted(5, 9), Triangles(), PURE, ADD, b""), "columns has"),
        (lambda: MST_COST.plan(ids(5), MstCost(method="smooth"), PURE, ADD, b""), "columns has"),
        (
            lambda: TRIANGLES.plan(Grid((0, 0), (5, 6), 1.0), Triangles(), PURE, ADD, b""),
            "upper has 5.0 for u",
        ),
        (
            lambda: TRIANGLES.plan(Grid((0, 0), (5, 5), 1.0, Ball((1, 1), 2.0)), Triangles(), PURE, ADD, b""),
            "ball is set",
        ),
        (
            lambda: MST_COST.plan(weighted(5, 9), MstCost(change="weight", method="smooth"), PURE, ADD, b""),
            "change",
        ),
        (
            lambda: TRIANGLES.plan(ids(5), Triangles(), PURE, Neighbors("replace_one", Policy(Full())), b""),
            "policy",
        ),
        (lambda: MstCost(change="node"), "change"),
        (lambda: Triangles(failure=1.0), "failure"),
    ],
)
def test_bad_parameters_say_so(make, field):
    with pytest.raises(ValueError, match=field.replace(".", r"\.")):
        make()


def test_a_round_says_what_its_own_noise_follows():
    (smooth,) = MST_COST.plan(weighted(5, 9), MstCost(method="smooth"), PURE, ADD, b"").rounds
    (by_bound,) = MST_COST.plan(weighted(5, 9), MstCost(method="global"), PURE, ADD, b"").rounds
    assert "follows how much one row could change it" in smooth.purpose
    assert "the most that one row can change any cost" in by_bound.purpose
