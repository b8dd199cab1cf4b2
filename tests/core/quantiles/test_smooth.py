"""The rounds and the plan of the median and the minimum."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.graphs.params import Median, Minimum
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.noise import Noise
from core.order_statistics import Rank, smooth_sensitivity
from core.quantiles.median_plan import plan_median, plan_minimum
from core.quantiles.smooth import ExponentialQuantile, FindWindow, SmoothQuantile, Window, choose_by_rank
from core.rounds import Block, run_in_memory
from tests.core.exact import excess
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

RELATIONS = [Neighbors("add_or_remove_one"), Neighbors("replace_one")]
SMALL = Grid((0.0,), (100.0,), 0.5)
LARGE = Grid((-1e6,), (1e6,), 1e-3)
PURE = Budget(1.0, 0.0)
UNIT = Exponential(what="a value", scale=1.0, spread=2)


def block(steps):
    points = np.asarray(steps, dtype=np.int64).reshape(-1, 1)
    return Block(points, np.arange(len(points), dtype=np.uint64))


def released(plan, steps, seed=0):
    return run_in_memory(plan.rounds, [block(steps)], plan.start, SeededNoise(seed))


class Scores(Noise):
    """Keeps the scores of a selection and its scale; the first candidate wins."""

    def select(self, scores, scale):
        self.scores, self.scale = np.array(scores), scale
        return 0

    def select_run(self, scores, lengths, scale):
        self.scores, self.lengths, self.scale = np.array(scores), np.array(lengths), scale
        return 0

    def below(self, bound):
        return 0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("quantile", "inside"), [(0.0, 0), (0.0, 1), (0.0, 2), (0.3, 0), (0.5, 0), (1.0, 0), (1.0, 1), (1.0, 2)]
)
def test_rank_scores_move_by_one(relation, quantile, inside):
    """All databases of up to 4 values in 0..3 and their neighbors: exact output masses within e^epsilon."""
    epsilon, upper, rank = 0.7, 3, replace(Rank.of_quantile(quantile), inside=inside)

    def masses(values):
        noise = Scores()
        choose_by_rank(
            Counts.of(np.array(values, dtype=np.int64)),
            upper,
            rank,
            Exponential.of("value", epsilon, 2),
            noise,
        )
        gaps = [v for v in range(upper + 1) if v not in values]
        weights = np.exp(noise.scores / noise.scale)
        by_value = {}
        # Runs come as gaps in order, then values in order.
        order = [run for run in _runs(gaps)] + [[v] for v in sorted(set(values))]
        for run, weight in zip(order, weights, strict=True):
            by_value.update(dict.fromkeys(run, weight))
        p = np.array([by_value[v] for v in range(upper + 1)])
        return p / p.sum()

    worst = 0.0
    for size in range(5):
        for values in itertools.combinations_with_replacement(range(upper + 1), size):
            adds = relation.name == "add_or_remove_one"
            kept = values if adds else values[1:]
            if not adds and size == 0:
                continue
            for other in range(upper + 1):
                p, q = masses(values), masses((*kept, other))
                assert excess(p, q, epsilon) <= 1e-12
                assert excess(q, p, epsilon) <= 1e-12
                worst = max(worst, float(np.abs(np.log(p / q)).max()))
    assert worst > 0.4 * epsilon


def _runs(values):
    runs = []
    for v in values:
        if runs and runs[-1][-1] == v - 1:
            runs[-1].append(v)
        else:
            runs.append([v])
    return runs


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rank", [Rank(1, 2), Rank(0, 1, inside=7), Rank(1, 1, inside=7)])
def test_window_scores_move_by_one(relation, rank):
    rng = np.random.default_rng(0)
    find = FindWindow(bits=4, extent=255, rank=rank, margin=5, end=UNIT)
    moves = set()
    for _ in range(200):
        values = rng.integers(0, 256, rng.integers(1, 30))
        kept = values if relation.name == "add_or_remove_one" else values[1:]
        seen = []
        for database in (values, np.append(kept, rng.integers(0, 256))):
            noise = Scores()
            find.release(find.summarize(block(database), Window(0, 255)), Window(0, 255), noise)
            seen.append(noise.scores)
        moves |= set((seen[0] - seen[1]).tolist())
    assert moves == {-1, 0, 1}


@pytest.mark.parametrize("method", ["smooth", "exponential"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("grid", [SMALL, LARGE])
@pytest.mark.parametrize("budget", [PURE, Budget(0.1, 1e-9), Budget(3.0, 1e-5)])
def test_the_budget_is_spent_and_no_more(method, relation, grid, budget):
    plan = plan_median(grid, Median(method=method, scale_share=0.2), budget, relation, b"")
    assert 0.995 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
    assert [step.name for step in plan.rounds] == (["release"] if grid is SMALL else ["window", "release"])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("quantile", [0.5, 0.0, 1.0])
def test_draws_are_scaled_as_charged(relation, quantile):
    """Every recorded draw has the scale that the plan declares; a halved scale would not."""
    plan = plan_median(LARGE, Median(quantile, method="exponential"), PURE, relation, b"")
    noise = RecordingNoise(SeededNoise(0))
    run_in_memory(plan.rounds, [block(np.arange(1000) * 1000)], plan.start, noise)
    scales = [scale for kind, _, scale in noise.calls if kind in ("select", "select_run")]
    assert scales == [m.scale for m in plan.mechanisms]
    assert sum(2 / scale for scale in scales) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("relation", RELATIONS)
def test_smooth_noise_has_the_scale_of_the_sensitivity(relation, monkeypatch):
    plan = plan_median(SMALL, Median(method="smooth", scale_share=0.3), PURE, relation, b"")
    (last,) = plan.rounds
    assert isinstance(last, SmoothQuantile)
    values = np.arange(200)
    drawn = []
    monkeypatch.setattr(
        "core.mechanisms.admissible.rounded", lambda density, scale, source: drawn.append(scale) or 0
    )
    noise = last.smooth.noise
    recording = RecordingNoise(SeededNoise(0))
    answer = last.release(last.summarize(block(values), plan.start), plan.start, recording)
    smooth = smooth_sensitivity(Counts.of(values), 200, last.rank, noise.beta, relation)
    assert drawn == [smooth / noise.alpha]
    assert answer.value == pytest.approx(99 * 0.5)
    ((kind, level, scale),) = recording.calls
    assert kind == "laplace"
    assert scale == pytest.approx(1 / plan.mechanisms[1].epsilon)
    assert level[0] == math.ceil(math.log(smooth) / (1.001 * noise.beta))


def test_the_released_scale_is_near_the_true_one():
    params = Median(method="smooth", noise="student", scale_share=0.9)
    plan = plan_median(SMALL, params, Budget(50.0, 0.0), RELATIONS[1], b"")
    (last,) = plan.rounds
    values = np.arange(0, 201, 2)
    smooth = smooth_sensitivity(Counts.of(values), 200, last.rank, last.smooth.noise.beta, RELATIONS[1])
    scale = released(plan, values).scale
    true = last.smooth.noise.scale(smooth) * 0.5
    beta = last.smooth.noise.beta
    assert true * math.exp(-0.01) <= scale <= true * math.exp(2.1 * beta)


@pytest.mark.parametrize("method", ["smooth", "exponential"])
@pytest.mark.parametrize("grid", [SMALL, LARGE])
@pytest.mark.parametrize("relation", RELATIONS)
def test_dense_data_are_answered_well(method, grid, relation):
    """20,000 values about the median: nearly always within 1% of the spread, both rounds."""
    extent = grid.extents[0]
    values = np.clip(np.random.default_rng(1).normal(0.6, 0.05, 20_001) * extent, 0, extent).astype(np.int64)
    truth = float(grid.restore(np.array([np.median(values)]))[0])
    plan = plan_median(grid, Median(method=method), PURE, relation, b"")
    errors = [abs(released(plan, values, seed).value - truth) for seed in range(20)]
    assert np.median(errors) <= max(grid.step, 0.001 * extent * grid.step)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("method", ["smooth", "exponential"])
def test_minimum_and_maximum(largest, method):
    values = np.concatenate([np.full(500, 2), np.full(500, 198)])  # near the bounds, which others may take
    plan = plan_minimum(SMALL, Minimum(largest=largest, method=method), PURE, RELATIONS[0], b"")
    answers = [released(plan, values, seed).value for seed in range(20)]
    assert abs(np.median(answers) - (99.0 if largest else 1.0)) <= 1.5


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("grid", [SMALL, LARGE])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_an_extreme_is_not_beyond_all_records(largest, grid, relation):
    """Flake rate: 200 runs with failure 1e-8 each. Aimed at the extreme itself, nearly all would fail."""
    extent = grid.extents[0]
    values = np.random.default_rng(3).integers(extent // 4, 3 * extent // 4, 2000)
    plan = plan_minimum(grid, Minimum(largest=largest, failure=1e-8), PURE, relation, b"")
    inward = np.sort(values)[::-1] if largest else np.sort(values)
    last = inward[plan.promises["rank_error"]]
    for seed in range(25):
        step = grid.quantize(np.array([[released(plan, values, seed).value]]))[0, 0]
        assert min(inward[0], last) <= step <= max(inward[0], last)
    same = np.full(2000, extent // 3)
    assert all(released(plan, same, seed).value == grid.restore(same[:1])[0] for seed in range(5))


@pytest.mark.parametrize("method", ["smooth", "exponential"])
@pytest.mark.parametrize("grid", [SMALL, LARGE])
@pytest.mark.parametrize("values", [[], [0], [200], [200] * 50])
def test_releases_are_total(method, grid, values):
    plan = plan_median(grid, Median(method=method, scale_share=0.1), PURE, RELATIONS[0], b"")
    result = released(plan, values).result(grid)
    assert grid.lower[0] <= result["value"] <= grid.upper[0]
    assert (result["scale"] is None) == (method == "exponential")


def test_the_window_holds_the_ranks_and_the_second_round_few_values():
    plan = plan_median(LARGE, Median(method="smooth"), PURE, RELATIONS[0], b"")
    values = np.random.default_rng(0).integers(0, LARGE.extents[0], 100_000)
    first, last = plan.rounds
    window = first.release(first.summarize(block(values), plan.start), plan.start, SeededNoise(0))
    ranks = np.searchsorted(np.sort(values), [window.lower, window.upper])
    assert ranks[0] <= 50_000 - 300 and ranks[1] >= 50_000 + 300
    assert len(last.summarize(block(values), window).keys) < 20_000


def test_summaries_are_free_of_order():
    last = ExponentialQuantile(grid=SMALL, rank=Rank(1, 2), value=UNIT)
    window, values = Window(20, 150), np.random.default_rng(0).integers(0, 201, 500)
    parts = [last.summarize(block(part), window) for part in np.array_split(values, 7)]
    forward, backward = (sum(p[1:], p[0]) for p in (parts, parts[::-1]))
    assert forward == backward == last.summarize(block(values), window)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Median(quantile=1.5), "params.quantile"),
        (lambda: Median(failure=0.0), "params.failure"),
        (lambda: Median(method="best"), "params.method"),
        (lambda: Median(noise="gauss"), "params.noise"),
        (lambda: Minimum(scale_share=1.0), "params.scale_share"),
        (lambda: plan_median(Grid((0, 0), (1, 1), 0.1), Median(), PURE, RELATIONS[0], b""), "input.columns"),
        (
            lambda: plan_median(SMALL, Median(method="smooth", noise="laplace"), PURE, RELATIONS[0], b""),
            "params.noise",
        ),
    ],
)
def test_bad_parameters_say_so(make, field):
    with pytest.raises(ValueError, match=field.replace(".", r"\.")):
        make()
