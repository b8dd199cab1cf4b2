"""Privacy filters: which runs a ledger may still admit when analysts choose runs by earlier answers.

Composition theorems hold for runs that are fixed in advance. But an analyst chooses the next run, and its
budget, by the answers so far. A filter is valid for such adaptive choices: if it admits every run, all runs
together are (epsilon, delta)-differentially private (Rogers, Roth, Ullman and Vadhan 2016).

Two valid filters must not be combined into one that admits what either of them admits. An analyst who lets
the answers decide which filter is used can make both fail, so the pair is only (epsilon, 2 delta)-private. So
a ledger has one filter, which is chosen when the ledger is made.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.budget import Accountant, Budget, Cost, Mechanism, Spend
from core.errors import InvalidValue

_ORDERS = tuple(1 + 10 ** (i / 100) for i in range(-300, 601))
"""Orders that `best_order` tries, from 1.001 to a million."""


@dataclass(frozen=True)
class Charge:
    """What one run spends of a ledger.

    Args:
        budget: the run's guarantee, by any accountant.
        mechanisms: every draw of the run.
    """

    budget: Budget
    mechanisms: tuple[Mechanism, ...]

    def under_replacement(self) -> "Charge":
        """Return the charge as it counts where a record is replaced; see `Mechanism.under_replacement`."""
        cost = Cost(self.budget.epsilon, self.budget.delta).grouped(2)
        group = Budget(cost.epsilon, min(cost.delta, math.nextafter(1.0, 0.0)))
        return Charge(group, tuple(mechanism.under_replacement() for mechanism in self.mechanisms))


def filter_spend(charges: Sequence[Charge], budget: Budget, order: float | None) -> Spend:
    """Return what runs spend of a ledger's budget; the filter admits them while that is at most its epsilon.

    Args:
        charges: the runs. Each may have been chosen by the answers of those before it.
        budget: the ledger's budget.
        order: order of the Rényi filter, above 1; None adds up the runs' epsilons and deltas.

    Returns:
        The spend. Its epsilon is a sum over the runs, and infinite where delta does not suffice.
    """
    used, _ = filter_delta(charges, budget, order)
    if order is None:
        return Spend(_basic(charges, budget), (Accountant.BASIC,), used)
    return Spend(_renyi(charges, budget, order), (Accountant.RENYI,), used, order)


def filter_delta(charges: Sequence[Charge], budget: Budget, order: float | None) -> tuple[float, float]:
    """Return the delta that runs use, and the most that they may use; see `filter_spend`.

    Under a Rényi filter these are the deltas of the draws, which may use half of the budget's delta.
    """
    if order is None:
        return math.fsum(charge.budget.delta for charge in charges), budget.delta
    draws = (draw.delta for charge in charges for draw in charge.mechanisms)
    return math.fsum(draws), budget.delta / 2


def _basic(charges: Sequence[Charge], budget: Budget) -> float:
    """Return the sum of the runs' epsilons, or infinity where the sum of their deltas exceeds the budget's.

    Source: Rogers, Roth, Ullman and Vadhan 2016, who show that this is a valid filter.
    """
    fits = at_most(*filter_delta(charges, budget, None))
    return math.fsum(charge.budget.epsilon for charge in charges) if fits else math.inf


def _renyi(charges: Sequence[Charge], budget: Budget, order: float) -> float:
    """Return the share of the budget's Rényi divergence that all draws use, times the budget's epsilon.

    The order a is fixed before the first run. Then the divergences of draws add up, however the draws are
    chosen: exp((a - 1) (loss so far - divergence so far)) is a supermartingale under the other database. So
    if the divergences add up to at most R, all draws together have a divergence of at most R (Feldman and
    Zrnic 2021; Lécuyer 2021; Haney et al. 2023 for runs that overlap). The argument fails for a filter that
    admits what any of several orders admits, as it does for two filters. A filter of exact loss distributions
    would be tighter, but is not valid when runs are chosen adaptively.

    A draw that is (e, d)-differentially private is e-private except for an event of probability d under
    either database (Kairouz, Oh and Viswanath 2015). The probabilities of these events add up (Whitehouse,
    Ramdas, Rogers and Wu 2023), and half of delta covers them. The other half covers the step from divergence
    to epsilon, `allowed_divergence`.
    """
    draws = [draw for charge in charges for draw in charge.mechanisms]
    if not at_most(*filter_delta(charges, budget, order)):
        return math.inf
    allowed = allowed_divergence(budget.epsilon, budget.delta / 2, order)
    used = math.fsum(order * draw.rho + pure_divergence(draw.epsilon, order) for draw in draws)
    if used == 0:
        return 0.0
    return math.inf if allowed <= 0 else budget.epsilon * used / allowed


def best_order(budget: Budget) -> float:
    """Return the order at which a Rényi filter of `budget` admits the most Gaussian draws.

    At order a, a Gaussian draw of rho has divergence a rho, and a small pure draw has nearly a epsilon^2 / 2.
    So the best order maximizes `allowed_divergence` / a.

    Raises:
        InvalidValue: delta is 0, or so small beside epsilon that no order allows anything.
    """

    def rate(order: float) -> float:
        return allowed_divergence(budget.epsilon, budget.delta / 2, order) / order

    order = max(_ORDERS, key=rate)
    if rate(order) <= 0:
        raise InvalidValue(
            "delta", budget.delta, "a Rényi filter needs more; basic composition works without"
        )
    return order


def allowed_divergence(epsilon: float, delta: float, order: float) -> float:
    """Return the largest Rényi divergence of an order that implies (epsilon, delta); it may be negative.

    It is epsilon = R + ln(1 - 1/a) - (ln delta + ln a) / (a - 1), solved for R.
    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    if delta <= 0:
        return -math.inf
    return epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)


def pure_divergence(epsilon: float, order: float) -> float:
    """Return the largest Rényi divergence of an order a that an epsilon-private draw has.

    Randomized response has the largest one, because every epsilon-private draw is a function of its answer
    (Kairouz, Oh and Viswanath 2015). It is [ln cosh((a - 1/2) e) - ln cosh(e / 2)] / (a - 1) for epsilon e,
    which is at most a e^2 / 2 and at most e.
    """
    return (_log_cosh((order - 0.5) * epsilon) - _log_cosh(epsilon / 2)) / (order - 1)


def _log_cosh(x: float) -> float:
    return math.log1p(2 * math.sinh(x / 2) ** 2) if x < 1 else x + math.log1p(math.exp(-2 * x)) - math.log(2)


def rounded_up(limit: float) -> float:
    """Return the largest sum that still counts as `limit`: sums of many parts are rounded."""
    return limit * (1 + 1e-9)


def at_most(value: float, limit: float) -> bool:
    """Return whether a sum is within a limit, up to the rounding of a sum of many parts."""
    return value <= rounded_up(limit)
