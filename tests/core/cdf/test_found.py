"""The ordered mechanism, isotonic regression, and the plan, result and refusals of cdf."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.budget import Budget
from core.cdf.found import Cumulative, Kolmogorov, Range, Reading, monotone
from core.cdf.params import Cdf
from core.cdf.task import CDF
from core.domain import Grid
from core.mechanisms.tails import largest_of, largest_sum, log_moment, variance
from core.neighbors import Neighbors
from core.policy import Attribute, Distance, Graph, KnownCount, Partition, Policy
from core.rounds import Block, run_in_memory
from tests.core.exact import laplace_mass
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

PURE = Budget(0.7, 0.0)
ONE, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")


def block(values):
    points = np.asarray(values, dtype=np.int64).reshape(-1, 1)
    return Block(points, np.arange(len(points), dtype=np.uint64))


def line(size):
    return Grid((0.0,), (size - 1.0,), 1.0)


def within(theta):
    return Neighbors("replace_one", Policy(Distance(theta)))


ESTIMATES = st.lists(st.integers(-30, 60), min_size=1, max_size=12).map(lambda x: np.array(x, dtype=float))


@settings(max_examples=200, deadline=None)
@given(ESTIMATES, st.one_of(st.none(), st.integers(0, 40)))
def test_monotone_is_the_clipped_max_min_of_means(estimates, total):
    size = len(estimates)
    expected = [
        max(min(estimates[a : b + 1].mean() for b in range(max(a, i), size) if b >= i) for a in range(i + 1))
        for i in range(size)
    ]
    fitted = monotone(estimates, total)
    assert np.abs(fitted - np.clip(expected, 0, total)).max() <= 0.5 + 1e-9
    assert (np.diff(fitted) >= 0).all()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=12, max_size=12),
    st.lists(st.integers(-9, 9), min_size=12, max_size=12),
)
def test_monotone_makes_no_error_worse(counts, noise):
    """Neither the largest nor the sum of squares, but for the rounding."""
    true, noise = np.cumsum(counts), np.array(noise)
    error = monotone((true + noise).astype(float), int(true[-1])) - true
    assert np.abs(error).max() <= np.abs(noise).max()
    assert math.sqrt((error**2).sum()) <= math.sqrt((noise**2).sum()) + 0.5 * math.sqrt(12)


RELATIONS = {
    "distance 1": (within(1), lambda x, y: abs(x - y) <= 1),
    "distance 4": (within(4), lambda x, y: abs(x - y) <= 4),
    "replace": (REPLACE, lambda x, y: True),
    "attribute": (Neighbors("replace_one", Policy(Attribute())), lambda x, y: True),
    "parts of 3": (Neighbors("replace_one", Policy(Partition((3,)))), lambda x, y: x // 3 == y // 3),
    "graph": (
        Neighbors("replace_one", Policy(Graph((((2,), (7,)), ((1,), (2,)))))),
        lambda x, y: {x, y} in ({2, 7}, {1, 2}),
    ),
}


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_ordered_mechanism_costs_what_is_charged(relation):
    neighbors, hidden = RELATIONS[relation]
    plan = CDF.plan(line(12), Cdf(method="ordered"), PURE, neighbors, b"")
    step = plan.rounds[0]

    def drawn(value):
        noise = RecordingNoise(SeededNoise(0, factor=0.0))
        step.release(step.summarize(block([value, 5]), None), None, noise)
        ((kind, values, scale),) = noise.calls
        assert kind == "laplace"
        return values / scale

    pairs = [(x, y) for x, y in product(range(12), repeat=2) if hidden(x, y)]
    assert max(np.abs(drawn(x) - drawn(y)).sum() for x, y in pairs) == pytest.approx(PURE.epsilon)
    assert plan.spend.epsilon == pytest.approx(PURE.epsilon)


@pytest.mark.parametrize("neighbors", [ONE, REPLACE, within(1), within(5), RELATIONS["parts of 3"][0]])
@pytest.mark.parametrize("method", ["ordered", "hierarchical"])
@pytest.mark.parametrize("size", [2, 3, 40])
def test_without_noise_the_counts_are_exact(neighbors, method, size):
    if method == "ordered" and neighbors is ONE:
        return
    if neighbors.policy and neighbors.secrets == Distance(5) and size <= 5:
        return
    values = np.random.default_rng(1).integers(0, size, 300)
    plan = CDF.plan(line(size), Cdf(method=method), PURE, neighbors, b"")
    parts = [block(values[:100]), block(values[100:]), block([])]
    found = run_in_memory(plan.rounds, parts, plan.start, SeededNoise(0, factor=0.0))
    assert np.array_equal(found.counts, np.cumsum(np.bincount(values, minlength=size)))


@pytest.mark.parametrize("theta", [1, 4])
def test_the_promise_of_the_ordered_mechanism_is_exact_before_inference(theta):
    """Failure 0.2 of the largest of 39 draws, 2000 trials, flake rate 1e-6; at half the scale it is 0.01."""
    plan = CDF.plan(line(40), Cdf(method="ordered", failure=0.2), PURE, within(theta), b"")
    scale, bound = plan.rounds[0].count.scale, plan.promises["kolmogorov_records"]

    def broken(scale):
        noise = SeededNoise(5).laplace(np.zeros((2000, 39), dtype=np.int64), scale)
        return int((np.abs(noise).max(axis=1) > bound).sum())

    exact = 1 - (1 - 2 * laplace_mass(scale, 2000)[1][2000 + bound + 1 :].sum()) ** 39
    assert 0.1 < exact <= 0.2
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], 2000, exact)
    assert low <= broken(scale) <= high
    assert broken(scale / 2) < low


@pytest.mark.parametrize("neighbors", [within(1), within(7)])
def test_the_promise_holds(neighbors):
    plan = CDF.plan(line(60), Cdf(method="ordered", failure=0.2), PURE, neighbors, b"")
    values = np.random.default_rng(4).binomial(59, 0.3, 500)
    true = np.cumsum(np.bincount(values, minlength=60))
    broken = 0
    for seed in range(300):
        found = run_in_memory(plan.rounds, [block(values)], plan.start, SeededNoise(seed))
        broken += np.abs(found.counts - true).max() > plan.promises["kolmogorov_records"]
        assert found.counts[-1] == 500
    assert broken <= 300 * 0.2 + 3 * math.sqrt(300 * 0.16)


def test_tails():
    support, mass = laplace_mass(2.5, 400)
    assert variance(2.5) == pytest.approx((support**2 * mass).sum())
    assert log_moment(0.3, 2.5) == pytest.approx(math.log((np.exp(0.3 * support) * mass).sum()))
    assert log_moment(0.41, 2.5) == math.inf
    assert (variance(0), log_moment(0.3, 0), largest_of(9, 0, 0.1)) == (0, 0, 0)
    bound = largest_of(7, 2.5, 0.05)
    within_bound = [mass[np.abs(support) <= m].sum() ** 7 for m in (bound, bound - 1)]
    assert within_bound[0] >= 0.95 > within_bound[1]


@pytest.mark.parametrize("weights", [[1.0] * 6, [1.0, -0.5, 0.25, 0.8], [0.7] * 20])
def test_the_bound_on_a_sum_is_sound_and_not_far_off(weights):
    """200,000 draws: exceeded less often than stated, and 0.6 of it more often."""
    noise = SeededNoise(2).laplace(np.zeros((200_000, len(weights)), dtype=np.int64), 3.0)
    sums = np.abs(noise @ np.array(weights))
    spread = np.array([variance(3.0) * sum(w**2 for w in weights)])
    bound = largest_sum(spread, 3.0, 0.01)
    assert (sums > bound).mean() <= 0.01
    assert (sums > 0.6 * bound).mean() > 0.01
    assert largest_sum(np.repeat(spread, 10), 3.0, 0.01) == pytest.approx(largest_sum(spread, 3.0, 0.001))


def test_auto_takes_the_smaller_promise_and_lists_the_other():
    near = CDF.plan(line(200), Cdf(), PURE, within(1), b"")
    far = CDF.plan(line(200), Cdf(), PURE, within(100), b"")
    assert (near.method, far.method) == ("ordered", "hierarchical_whole")
    assert near.alternatives["hierarchical"]["kolmogorov_records"] > near.promises["kolmogorov_records"]
    assert far.alternatives["ordered"]["kolmogorov_records"] > far.promises["kolmogorov_records"]
    assert CDF.plan(line(200), Cdf(), PURE, ONE, b"").alternatives == {}


def test_auto_never_promises_less_for_a_weaker_policy():
    promised = [
        CDF.plan(line(2000), Cdf(), PURE, neighbors, b"").promises["kolmogorov_records"]
        for neighbors in (*map(within, (1, 3, 10, 100, 500, 1500)), REPLACE)
    ]
    assert promised == sorted(promised)
    plan = CDF.plan(line(2000), Cdf(), PURE, within(1500), b"")
    assert (plan.method, plan.rounds[0].forest.blocks) == ("hierarchical_whole", 1)
    assert "hierarchical" in plan.alternatives


def test_a_policy_buys_accuracy():
    errors = [
        CDF.plan(line(1000), Cdf(), PURE, neighbors, b"").promises["range_standard_error"]
        for neighbors in (within(1), within(10), within(100), REPLACE)
    ]
    assert errors == sorted(errors)
    assert errors[0] * 10 < errors[-1]


def test_ranges_are_read_in_data_units():
    grid = Grid((-1.0,), (1.0,), 0.1)
    ranges = ((-1.0, 1.0), (0.0, 0.1), (0.04, 0.06), (-9.0, -0.9), (0.95, 30.0), (5.0, 6.0))
    plan = CDF.plan(grid, Cdf(ranges=ranges), PURE, within(3), b"")
    values = np.repeat(np.arange(21), np.arange(21))
    found = run_in_memory(plan.rounds, [block(values)], plan.start, SeededNoise(0, factor=0.0))
    result = found.result(grid)
    assert [each.count for each in result.ranges] == [210, 10 + 11, 0, 0 + 1, 20, 0]
    assert [(each.low, each.high) for each in result.ranges] == list(ranges)
    errors = [each.standard_error for each in result.ranges]
    assert errors[0] == errors[2] == errors[5] == 0  # the public total, and nothing
    assert min(errors[1], errors[3], errors[4]) > 0
    assert result.total == 210
    points = [(each.first, each.last) for each in result.ranges]
    assert points[2] == points[5] == (None, None)
    asked = [points[i] for i in (0, 1, 3, 4)]
    assert np.array(asked) == pytest.approx(np.array([(-1.0, 1.0), (0.0, 0.1), (-1.0, -0.9), (1.0, 1.0)]))


def test_the_range_of_a_single_point_far_from_0_holds_its_records():
    grid, values = Grid((5_000_000.1,), (5_000_030.1,), 0.1), np.repeat(np.arange(301), 2)
    points = tuple((end, end) for end in grid.restore(np.arange(301)[:, None])[:, 0].tolist())
    plan = CDF.plan(grid, Cdf(ranges=points), Budget(600.0, 0.0), REPLACE, b"")
    found = run_in_memory(plan.rounds, [block(values)], plan.start, SeededNoise(1)).result(grid)
    assert {each.count for each in found.ranges} == {2}


def test_ranges_are_closed_and_share_no_point_if_each_begins_a_step_after_the_last():
    """Ranges of equal ends count them twice, as documented; ranges of one step apart tile the domain."""
    grid, values = Grid((0.0,), (30.0,), 1.0), np.repeat(np.arange(31), 3)

    def counts(*ranges):
        plan = CDF.plan(grid, Cdf(ranges=ranges), PURE, REPLACE, b"")
        found = run_in_memory(plan.rounds, [block(values)], plan.start, SeededNoise(0, factor=0.0))
        return [each.count for each in found.result(grid).ranges]

    assert counts((0.0, 10.0), (10.0, 20.0), (20.0, 30.0)) == [33, 33, 33]
    assert counts((0.0, 10.0), (11.0, 20.0), (21.0, 30.0)) == [33, 30, 30]
    assert counts((7.0, 7.0), (0.5, 1.5), (29.5, 99.0)) == [3, 3, 3]


@pytest.mark.parametrize(
    ("neighbors", "method"), [(within(1), "ordered"), (within(9), "hierarchical"), (ONE, "auto")]
)
def test_error_bars_are_those_of_the_noise(neighbors, method):
    """Steep counts leave isotonic regression nothing to do, so 800 runs show the noise, 15% off at most."""
    ranges = ((3.0, 17.0), (5.0, 24.0))
    plan = CDF.plan(line(40), Cdf(method=method, ranges=ranges), PURE, neighbors, b"")
    values = np.repeat(np.arange(40), 400)
    runs = [
        run_in_memory(plan.rounds, [block(values)], plan.start, SeededNoise(seed)).result(line(40)).ranges
        for seed in range(800)
    ]
    for i, true in enumerate((15 * 400, 20 * 400)):
        spread = math.sqrt(np.mean([(run[i].count - true) ** 2 for run in runs]))
        stated = runs[0][i].standard_error
        assert spread < 1.15 * stated
        assert spread > 0.85 * stated


@pytest.mark.parametrize(
    ("neighbors", "method"), [(within(1), "ordered"), (within(3), "hierarchical"), (ONE, "hierarchical")]
)
def test_the_standard_error_of_a_random_range_is_the_mean_of_all(neighbors, method):
    """Before inference, which makes that of each range smaller."""
    ranges = tuple((float(a), float(b)) for a in range(12) for b in range(a, 12))
    plan = CDF.plan(line(12), Cdf(method=method, ranges=ranges), PURE, neighbors, b"")
    errors = np.array([each.standard_error for each in plan.rounds[0].reading.ranges])
    mean, promised = math.sqrt((errors**2).mean()), plan.promises["range_standard_error"]
    assert 0.6 * promised < mean <= promised * (1 + 1e-9)
    assert method != "ordered" or mean == pytest.approx(promised)


def test_kolmogorov_distances():
    errors = {"error": 30.0, "half_error": 40.0, "range_error": 50.0, "half_range_error": 70.0}
    reading = Reading((), failure=0.1, **errors, total_public=True)
    found = Cumulative(np.array([10, 1000]), reading).result(line(2))
    assert found.kolmogorov.data == 0.03
    assert found.kolmogorov.population == pytest.approx(0.04 + math.sqrt(math.log(40) / 2000))
    noisy = Reading((), failure=0.1, **errors, total_public=False)
    found = Cumulative(np.array([10, 1000]), noisy).result(line(2))
    assert found.kolmogorov.data == 0.05
    assert found.kolmogorov.population == pytest.approx(0.07 + math.sqrt(math.log(40) / 1920))
    for nothing in (0, 20):
        few = Cumulative(np.array([0, nothing]), noisy).result(line(2))
        assert few.kolmogorov == Kolmogorov(1.0, 1.0)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=8), st.data())
def test_where_the_total_is_noisy_the_error_of_ranges_bounds_the_distance(true, data):
    """For any errors of the counts: the distance is that of two cumulative distributions."""
    errors = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=len(true), max_size=len(true))))
    counts = np.maximum.accumulate(np.maximum(np.cumsum(true) + errors, 0))
    if sum(true) == 0 or counts[-1] == 0:
        return
    error = int(np.ptp(np.append(0, counts - np.cumsum(true))))
    reading = Reading((), 0.1, error, error, error, error, total_public=False)
    distance = np.abs(counts / counts[-1] - np.cumsum(true) / sum(true)).max()
    assert distance <= Cumulative(counts, reading).result(line(len(true))).kolmogorov.data + 1e-12


def test_the_population_is_as_near_as_stated():
    """300 samples of 400 from a known law: further away in at most a failure fraction, with slack."""
    law = stats.binom.cdf(np.arange(31), 30, 0.4)
    plan = CDF.plan(line(31), Cdf(failure=0.2), Budget(2.0, 0.0), ONE, b"")
    broken = 0
    for seed in range(300):
        values = np.random.default_rng(seed).binomial(30, 0.4, 400)
        found = run_in_memory(plan.rounds, [block(values)], plan.start, SeededNoise(seed))
        distance = np.abs(found.counts / found.counts[-1] - law).max()
        broken += distance > found.result(line(31)).kolmogorov.population
    assert broken <= 300 * 0.2 + 3 * math.sqrt(300 * 0.16)


@pytest.mark.parametrize("failure", [0.3, 0.1, 0.01])
def test_all_bounds_of_the_ordered_mechanism_fail_as_rarely_as_stated(failure):
    """Exactly, for the noise of two counts: they and their difference, with all of `failure` and with half.

    Half of it is for the distance to the population, whose other half is for the sample.
    """
    plan = CDF.plan(line(3), Cdf(method="ordered", failure=failure), Budget(0.1, 0.0), within(1), b"")
    (step,) = plan.rounds
    noise, mass = laplace_mass(step.count.scale, 400)
    first, second = np.meshgrid(noise, noise)
    chance, reading = np.outer(mass, mass), step.reading
    counts = np.maximum(np.abs(first), np.abs(second))
    ends = np.stack([first, second, 0 * first])  # nothing, and the public total, are exact
    ranges = np.ptp(ends, axis=0)
    for count, range_, part in (
        (reading.error, reading.range_error, failure),
        (reading.half_error, reading.half_range_error, failure / 2),
    ):
        assert chance[(counts > count) | (ranges > range_)].sum() <= part
        assert chance[counts > count - 1].sum() > part


@pytest.mark.parametrize("neighbors", [ONE, REPLACE, within(1), within(9), RELATIONS["parts of 3"][0]])
@pytest.mark.parametrize("epsilon", [1e-4, 1e5])
def test_extreme_budgets_are_planned_and_run(neighbors, epsilon):
    plan = CDF.plan(line(30), Cdf(method="hierarchical"), Budget(epsilon, 0.0), neighbors, b"")
    found = run_in_memory(plan.rounds, [block([3] * 50)], None, SeededNoise(0))
    assert (np.diff(found.counts) >= 0).all()
    if epsilon > 1:
        assert plan.promises["kolmogorov_records"] <= 1
        assert found.counts[[2, 3]].tolist() == [0, 50]


@pytest.mark.parametrize("neighbors", [ONE, REPLACE, within(2)])
@pytest.mark.parametrize("values", [[], [0], [29], [7] * 4000])
def test_extreme_databases_end_in_an_answer(neighbors, values):
    plan = CDF.plan(line(30), Cdf(ranges=((0.0, 7.0),)), Budget(1.0, 1e-6), neighbors, b"")
    for seed in range(5):
        found = run_in_memory(plan.rounds, [block(values)], plan.start, SeededNoise(seed))
        assert (np.diff(found.counts) >= 0).all()
        assert found.counts[0] >= 0
        result, table = found.result(line(30)), found.table(line(30))
        assert 0 <= result.kolmogorov.data <= 1
        assert table["value"].tolist() == list(range(30))
        assert table["count"].dtype == np.int64


def test_the_number_of_records_is_private_without_replacement():
    plan = CDF.plan(line(30), Cdf(), PURE, ONE, b"")
    totals = {
        int(run_in_memory(plan.rounds, [block([3] * 50)], None, SeededNoise(seed)).counts[-1])
        for seed in range(20)
    }
    assert len(totals) > 10


def test_a_range_between_ends():
    reading = Reading((Range(0, 1, 0, 2, 1.0),), 0.1, 1.0, 1.0, 2.0, 2.0, True)
    counts = Cumulative(np.array([2, 5, 9]), reading)
    assert [counts.between(a, b) for a, b in ((0, 0), (0, 2), (1, 3), (3, 3))] == [0, 5, 7, 0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Cdf(failure=0), r"failure is 0"),
        (lambda: Cdf(ranges=((2.0, 1.0),)), r"ranges has \[2\.0, 1\.0\]"),
        (lambda: Cdf(ranges=((math.nan, 1.0),)), r"ranges has \[nan"),
        (lambda: Cdf(fanout=1), r"fanout is 1"),
        (lambda: CDF.plan(Grid((0, 0), (1, 1), 0.1), Cdf(), PURE, ONE, b""), "2 columns: cdf takes one"),
        (lambda: CDF.plan(line(2**22 + 1), Cdf(), PURE, ONE, b""), "use a larger one"),
        (lambda: CDF.plan(line(9), Cdf(), PURE, within(9), b""), "larger than the domain's 8"),
        (lambda: CDF.plan(line(9), Cdf(method="ordered"), PURE, ONE, b""), "changes every cumulative count"),
        (
            lambda: CDF.plan(
                line(9),
                Cdf(),
                PURE,
                Neighbors("replace_one", Policy(Distance(1), (KnownCount((1,), (2,), 3),))),
                b"",
            ),
            "cdf does not support them",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(build, message):
    with pytest.raises(ValueError, match=message):
        build()
