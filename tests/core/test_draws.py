"""What draws are charged on samples, in groups and on disjoint parts, against the worst that they can cost.

The worst (epsilon, delta) mechanism comes by linear programming. Only the event that tells two databases
apart best counts. So a mechanism is one probability for each database, and its promise is a set of linear
constraints on these and on the probabilities of the complement.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from core.budget import Budget, Mechanism, before_sampling, sampled, spend
from core.draws import Cost, Gaussian, Laplace
from core.privacy_filter import Charge
from core.secure_noise import SecureNoise
from tests.core.hockey_stick import (
    Draw,
    Normal,
    Pair,
    approximate,
    cost,
    discrete_gaussian,
    laplace,
    randomized_response,
)
from tests.core.seeded import SeededNoise

EPSILONS = (0.05, 0.5, 1.0, 3.0)
PROMISES = [(epsilon, delta) for epsilon in EPSILONS for delta in (0.0, 1e-6, 1e-3)]
STEP = 1 / 1024


def most(
    databases: int,
    neighbors: Sequence[tuple[int, int]],
    promise: tuple[float, float],
    first: Sequence[float],
    second: Sequence[float],
    epsilon: float,
) -> float:
    """Return the largest P(T) - e^epsilon Q(T) that the promise leaves.

    Args:
        databases: how many there are.
        neighbors: pairs of databases between which the promise holds, either way.
        promise: the (epsilon, delta).
        first: P, as a mixture of what the mechanism answers on each database.
        second: Q.
        epsilon: see above.
    """
    e, delta = math.exp(promise[0]), promise[1]
    rows, limits = [], []
    for one, other in itertools.chain(neighbors, [(b, a) for a, b in neighbors]):
        row = np.zeros(databases)
        row[one], row[other] = 1, -e
        rows += [row, -row]  # of the event, and of its complement
        limits += [delta, delta + e - 1]
    worst = linprog(
        math.exp(epsilon) * np.asarray(second) - np.asarray(first),
        A_ub=np.array(rows),
        b_ub=limits,
        bounds=[(0, 1)] * databases,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert worst.status == 0
    return float(-worst.fun)


SOLVER = 1e-9
"""Error of the linear program's solver, at most."""


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("changes", [1, 2, 3, 5])
def test_a_group_costs_what_the_worst_draw_makes_of_it(promise: tuple[float, float], changes: int) -> None:
    """A chain of databases; tight wherever delta leaves room for the worst draw."""
    grouped = Cost(*promise).grouped(changes)
    assert grouped.epsilon == changes * promise[0]
    chain = [(i, i + 1) for i in range(changes)]
    ends = np.eye(changes + 1)
    found = most(changes + 1, chain, promise, ends[-1], ends[0], grouped.epsilon)
    assert found <= grouped.delta + SOLVER
    if grouped.delta < 0.1:
        assert found >= grouped.delta - SOLVER
    nearly = most(changes + 1, chain, promise, ends[-1], ends[0], 0.99 * grouped.epsilon)
    assert nearly > grouped.delta or grouped.delta > 0.1


@pytest.mark.parametrize("promise", PROMISES)
def test_what_a_ledger_of_replacements_counts_covers_the_worst_draw_and_the_worst_run(
    promise: tuple[float, float],
) -> None:
    """Database 1 lacks the record that 0 and 2 have, each another one."""
    draw = Mechanism("r", "m", 1.0, 1.0, *promise).under_replacement()
    run = Charge(Budget(*promise), ()).under_replacement().budget
    for epsilon, delta in ((draw.epsilon, draw.delta), (run.epsilon, run.delta)):
        found = most(3, [(0, 1), (1, 2)], promise, (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), epsilon)
        assert found == pytest.approx(delta, abs=SOLVER)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_two_records_of_a_sample_cost_what_they_cost_one_by_one(epsilon: float, rate: float) -> None:
    """Each of two records is kept by itself: database i has i of them."""
    draw = Laplace(what="x", scale=1 / epsilon, sensitivity=1, rate=rate, changes=2)
    kept, without = ((1 - rate) ** 2, 2 * rate * (1 - rate), rate**2), (1.0, 0.0, 0.0)
    worst = [
        most(3, [(0, 1), (1, 2)], (epsilon, 0.0), kept, without, part * draw.cost.epsilon)
        for part in (1.0, 0.99)
    ]
    assert worst[0] <= SOLVER < worst[1]


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_a_sample_costs_what_the_worst_draw_makes_of_it(promise: tuple[float, float], rate: float) -> None:
    """One record more or less, kept with `rate`: database 1 has it and database 0 has not."""
    amplified = Cost(*promise).amplified(rate)
    without, kept = (1.0, 0.0), (1 - rate, rate)
    for epsilon, tight in ((amplified.epsilon, True), (0.99 * amplified.epsilon, False)):
        ways = [most(2, [(0, 1)], promise, *way, epsilon) for way in ((kept, without), (without, kept))]
        if tight:
            assert max(ways) == pytest.approx(amplified.delta, rel=1e-3, abs=SOLVER)
        else:
            assert max(ways) > amplified.delta


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_a_replaced_record_of_a_sample_costs_at_most_two_moves(
    promise: tuple[float, float], rate: float
) -> None:
    """Database 0 has neither record, 1 and 2 have one each; these are two moves apart."""
    charge = Cost(*promise).amplified(rate).grouped(2)
    one, other = (1 - rate, rate, 0.0), (1 - rate, 0.0, rate)
    found = most(3, [(0, 1), (0, 2)], promise, one, other, charge.epsilon)
    assert found <= charge.delta + SOLVER
    if rate < 0.1:  # a record that is hardly ever sampled hides less than the two moves are charged for
        assert most(3, [(0, 1), (0, 2)], promise, one, other, 0.4 * charge.epsilon) > charge.delta


def test_amplification_is_inverted_from_the_safe_side() -> None:
    for epsilon, rate in itertools.product((1e-6, 0.01, 1.0, 20.0), (1e-6, 0.1, 0.99, 1.0)):
        inner = before_sampling(epsilon, rate)
        assert sampled(inner, rate) <= epsilon * (1 + 1e-9)
        assert sampled(inner, rate) >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize(("rate", "epsilon", "draws"), [(0.1, 1.0, 1), (0.1, 1.0, 12), (0.5, 0.3, 30)])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_samples_compose_in_both_orders_of_neighbors(
    rate: float, epsilon: float, draws: int, delta: float
) -> None:
    """Randomized response on independent samples, of which only those that keep the record differ."""
    charge = Cost(epsilon).amplified(rate)
    draw = Laplace(what="x", scale=1 / epsilon, sensitivity=1, times=draws, rate=rate)
    mechanisms = draw.mechanisms("r")
    assert [m.epsilon for m in mechanisms] == [charge.epsilon] * draws
    said = spend(mechanisms, delta).epsilon
    true = cost([randomized_response(epsilon).sampled(rate)] * draws, STEP / 4, symmetric=False)
    assert true.delta(said)[0] <= delta
    if draws == 1:
        assert true.epsilon(1e-12)[1] >= 0.99 * said
    # Replaced: one record raises the answer of the sample and the other lowers it; without both it is even.
    replaced = Laplace(what="x", scale=1 / epsilon, sensitivity=1, times=draws, rate=rate, changes=2)
    pair, even = randomized_response(epsilon), np.array([0.5, 0.5])
    both = Pair((1 - rate) * even + rate * pair.p, (1 - rate) * even + rate * pair.q)
    said = spend(replaced.mechanisms("r"), delta).epsilon
    assert cost([both] * draws, STEP / 4, symmetric=False).delta(said)[0] <= delta


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_disjoint_parts_cost_as_much_as_the_worst_way_to_change_them(kind: str, changes: int) -> None:
    """Every way to spread the changes over the parts, of which each may raise or lower its part by 1."""
    parts, delta = 4, 1e-5
    draw: Laplace | Gaussian
    if kind == "laplace":
        draw = Laplace(what="x", scale=4.0, sensitivity=1, times=parts, disjoint=True, changes=changes)
    else:
        draw = Gaussian(what="x", scale=4.0, sensitivity=1, times=parts, disjoint=True, changes=changes)
    said = spend(draw.mechanisms("r"), delta).epsilon
    true = []
    for shifts in itertools.product(range(changes + 1), repeat=parts):
        if sum(shifts) != changes:
            continue
        moved = [shift for shift in shifts if shift]
        draws = [laplace(4.0, s, 60) if kind == "laplace" else discrete_gaussian(4.0, s) for s in moved]
        true.append(cost(draws, STEP / 4))
    assert max(one.delta(said)[0] for one in true) <= delta
    assert max(one.epsilon(delta)[1] for one in true) >= 0.9 * said
    together = Laplace(what="x", scale=4.0, sensitivity=1, times=parts, changes=changes)
    assert len(together.mechanisms("r")) == parts


@pytest.mark.parametrize("changes", [2, 3])
def test_groups_of_noise_cost_what_their_shift_does(changes: int) -> None:
    """`changes` moves shift the noisy number by as much: pure and zCDP, alone and together."""
    pure = Laplace(what="x", scale=16.0, sensitivity=1, times=6, changes=changes)
    normal = Gaussian(what="y", scale=32.0, sensitivity=1, times=6, changes=changes)
    for draws, real in (
        ((pure,), [laplace(16.0, changes, 400)] * 6),
        ((normal,), [discrete_gaussian(32.0, changes)] * 6),
        ((pure, normal), [laplace(16.0, changes, 400)] * 6 + [Normal(6 * changes**2 / (2 * 32.0**2))]),
    ):
        mechanisms = [m for draw in draws for m in draw.mechanisms("r")]
        true: list[Draw] = list(real)
        for delta in (1e-9, 1e-4):
            said = spend(mechanisms, delta).epsilon
            found = cost(true, STEP / 4)
            assert found.delta(said)[0] <= delta
            assert found.epsilon(delta)[1] >= 0.5 * said


def test_two_changes_of_approximate_draws_compose() -> None:
    """Groups of several draws: the pair that dominates each group is the worst chain, at its epsilon."""
    charge = Cost(0.25, 1e-6).grouped(2)
    draws: list[Draw] = [approximate(charge.epsilon, charge.delta)] * 8
    mechanisms = [Mechanism("r", "m", 1, 1, epsilon=charge.epsilon, delta=charge.delta)] * 8
    assert cost(draws, STEP).delta(spend(mechanisms, 1e-4).epsilon)[0] <= 1e-4
    with pytest.raises(ValueError, match="Gaussian draw on a sample"):
        Cost(rho=0.1).amplified(0.5)


@pytest.mark.parametrize(("kind", "flat"), [(Laplace, 0.5**0.5), (Gaussian, (2 / math.pi) ** 0.5)])
def test_noise_is_of_its_kind_and_deviates_as_stated(kind: type[Laplace | Gaussian], flat: float) -> None:
    """20,000 draws: a deviation 5% off is seen, and the mean size as a part of it tells both kinds apart."""
    draw = kind(what="any", scale=50.0, sensitivity=1)
    noise = draw.add(np.zeros(20_000, dtype=np.int64), SeededNoise(0))
    assert noise.std() == pytest.approx(draw.deviation, rel=0.04)
    assert np.abs(noise).mean() / noise.std() == pytest.approx(flat, rel=0.03)
    with pytest.raises(ValueError, match="not above 0"):
        replace(draw, scale=-50.0).add(np.zeros(1, dtype=np.int64), SecureNoise())
