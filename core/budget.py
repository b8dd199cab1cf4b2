"""Privacy budgets: what a mechanism spends, what a run spends, and scales that spend it exactly."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np

from core.errors import InvalidValue

WHOLE = 1 - 1e-12  # times delta: its parts, rounded one by one, never add up to more than delta

_ORDERS = [1 + 10 ** (i / 40) for i in range(-80, 241)]  # Rényi orders; the best one grows as rho falls
_USABLE = np.array([order for order in _ORDERS if order > 1.01])  # nearer to 1 the conversion is not stable
_LEAST, _MOST = 1e-9, 700.0  # epsilon of one mechanism: less counts as this much, more has no such accountant
_NEGLIGIBLE = 5e-5  # of epsilon, and part of it: what composition must be able to gain before it is computed
_KNOWN = 1024  # results that are kept: methods that are compared begin with the same shares
_LARGEST_POWER = 700.0  # e to more than this is no float
_GRID = 1e-4  # discretization of the privacy loss; pessimistic, so a coarser one is sound but looser


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) to spend.

    Raises:
        InvalidValue: epsilon or delta is out of range.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise InvalidValue("epsilon", self.epsilon, "it must be a finite number above 0")
        if not 0 <= self.delta < 1:
            raise InvalidValue("delta", self.delta, "it must be at least 0 and below 1")


@dataclass(frozen=True)
class Cost:
    """What a draw of noise costs, and the only place where group privacy is computed.

    Neighbors that are k changes apart see k times epsilon, the sum of e^(i epsilon) delta over i < k, and k^2
    times rho (Dwork and Roth 2014, Theorem 2.2; Bun and Steinke 2016, Proposition 1.9).

    Args:
        epsilon: pure part; 0 for a Gaussian.
        delta: additive part.
        rho: zero-concentrated guarantee (zCDP) of a Gaussian; 0 otherwise.
    """

    epsilon: float = 0.0
    delta: float = 0.0
    rho: float = 0.0

    def amplified(self, rate: float) -> "Cost":
        """Return the cost of the same draw on a secret Poisson sample; see `sampled`.

        Raises:
            ValueError: a Gaussian on a sample, whose amplification nothing here accounts for.
        """
        if rate >= 1:
            return self
        if self.rho:
            raise ValueError("A Gaussian draw on a sample is not accounted for.")
        return Cost(sampled(self.epsilon, rate), rate * self.delta)

    def grouped(self, changes: int) -> "Cost":
        """Return what a draw that costs this for one change costs between neighbors `changes` apart."""
        delta = sum(_exp(i * self.epsilon) * self.delta for i in range(changes)) if self.delta else 0.0
        return Cost(changes * self.epsilon, delta, changes**2 * self.rho)

    def per_change(self, changes: int) -> "Cost":
        """Return what a draw may cost for one change so that it costs this between neighbors `changes` apart.

        It inverts `grouped`, but for powers of e that no float holds: calibrations try such epsilons too.
        """
        powers = sum(math.exp(min(i * self.epsilon / changes, _LARGEST_POWER)) for i in range(changes))
        return Cost(self.epsilon / changes, self.delta / powers, self.rho / changes**2)


def _exp(x: float) -> float:
    return math.exp(x) if x <= _LARGEST_POWER else math.inf


@dataclass(frozen=True)
class Mechanism:
    """One draw of noise as it will really happen, and what it costs.

    Args:
        round: name of the round that draws it.
        mechanism: what it is, in the field's words.
        scale: scale of the noise, in units of the noisy quantity.
        sensitivity: how much that quantity may change between neighbors, same units, in the noise's norm.
        epsilon: pure part of the guarantee; 0 for a Gaussian.
        delta: additive part of the guarantee.
        rho: zero-concentrated guarantee (zCDP) of a Gaussian; 0 otherwise.
        kind: the kind of draw alone, as its `core.draws.Draw` names it.
    """

    round: str
    mechanism: str
    scale: float
    sensitivity: float
    epsilon: float = 0.0
    delta: float = 0.0
    rho: float = 0.0
    kind: str = ""

    @property
    def cost(self) -> Cost:
        """What it costs."""
        return Cost(self.epsilon, self.delta, self.rho)

    def under_replacement(self) -> "Mechanism":
        """Return what a guarantee for one record more or less is worth where one is replaced.

        A replacement is two changes: a removal and an addition.
        """
        cost = self.cost.grouped(2)
        return replace(
            self, sensitivity=2 * self.sensitivity, epsilon=cost.epsilon, delta=cost.delta, rho=cost.rho
        )


class Accountant(StrEnum):
    """How costs of several draws are added up."""

    BASIC = "basic composition"
    PLD = "privacy loss distribution"
    ZCDP = "zCDP"
    QUESTIONS = "basic composition of the questions"
    RENYI = "Rényi filter"
    GROUP = "group privacy"


@dataclass(frozen=True)
class Spend:
    """Total of a run: its epsilon and delta, and the accountants that proved them together.

    Args:
        epsilon: what is spent; infinite where delta does not suffice.
        accountants: how it was added up; none where nothing could be proven.
        delta: what is spent; 0 where pure draws were added up, whatever the run may spend.
        order: of a Rényi filter.
    """

    epsilon: float
    accountants: tuple[Accountant, ...] = ()
    delta: float = 0.0
    order: float | None = None

    @property
    def accountant(self) -> str:
        """The accountants in words."""
        names = " and ".join(self.accountants) or "none"
        return names if self.order is None else f"{names} of order {self.order:.4g}"

    def plus(self, epsilon: float) -> "Spend":
        """Return the spend of one more epsilon-private draw, added by basic composition."""
        more = () if Accountant.BASIC in self.accountants else (Accountant.BASIC,)
        return replace(self, epsilon=self.epsilon + epsilon, accountants=(*self.accountants, *more))


def spend(mechanisms: Sequence[Mechanism], delta: float) -> Spend:
    """Compose what the mechanisms spend, adaptively, by the tightest accountant that fits.

    Pure mechanisms are composed by their privacy loss distribution (randomized response dominates
    every epsilon-private mechanism), Gaussians by zCDP, whose total then enters the former as one
    (epsilon, delta) mechanism with half of the delta that is left, or is added to the sum of the pure
    ones. That they are drawn in turn does no harm: interactive mechanisms compose concurrently as they
    do one after the other (Lyu 2022). Without additive deltas, zCDP alone (epsilon^2 / 2 for a pure
    mechanism) is tried too. The smallest counts.

    A few draws are summed, since no accountant could gain anything. All k of them have their largest loss at
    once with probability P >= 2^-k (randomized response). So if they spend e in all, their true epsilon at
    delta is at least e + ln(1 - delta / P). This takes none of the imports that cost a second.

    Args:
        mechanisms: every draw of the run.
        delta: total delta; the mechanisms' own deltas are taken from it first.

    Returns:
        The spend. Its epsilon is infinite where delta does not suffice. Its delta is that of the mechanisms
        alone where they are added up, and all of delta otherwise.
    """
    own = sum(m.delta for m in mechanisms)
    left = delta - own
    pure = [m.epsilon for m in mechanisms if m.epsilon > 0]
    rho = sum(m.rho for m in mechanisms)
    if left < 0 or (rho > 0 and left <= 0):
        return Spend(math.inf)
    basic = Spend(sum(pure), (Accountant.BASIC,), own)
    few = len(pure) <= 1 or left * 2 ** min(len(pure), 60) <= _NEGLIGIBLE * min(1.0, basic.epsilon)
    if left == 0 or (few and rho == 0):
        return basic if rho == 0 else Spend(math.inf)
    if rho == 0:
        candidates = [basic, Spend(_pld(tuple(pure), left), (Accountant.PLD,), delta)]
    else:
        joint = _zcdp(rho, left / 2)
        candidates = [Spend(sum(pure) + _zcdp(rho, left), (Accountant.BASIC, Accountant.ZCDP), delta)]
        if _least((*pure, joint), left / 2) < candidates[0].epsilon:
            composed = _pld((*pure, joint), left / 2)
            candidates.append(Spend(composed, (Accountant.PLD, Accountant.ZCDP), delta))
    if own == 0:
        total = rho + sum(e**2 / 2 for e in pure)
        candidates.append(Spend(_zcdp(total, left), (Accountant.ZCDP,), delta))
    return min(candidates, key=lambda s: s.epsilon)


def _least(epsilons: Sequence[float], delta: float) -> float:
    """Return what `_pld` finds at least; see `spend`."""
    lost = delta * 2 ** min(len(epsilons), 60)
    return sum(epsilons) + math.log1p(-lost) if lost < 1 else 0.0


@lru_cache(_KNOWN)
def _pld(epsilons: tuple[float, ...], delta: float) -> float:
    # Imported here: it takes a second, and sums settle a few draws.
    from dp_accounting import dp_event, privacy_accountant
    from dp_accounting.pld import pld_privacy_accountant

    # Randomized response is defined for replaced records; here it only stands for its loss distribution.
    relation = privacy_accountant.NeighboringRelation.REPLACE_ONE
    accountant = pld_privacy_accountant.PLDAccountant(relation, value_discretization_interval=_GRID)
    if max(epsilons) > _MOST:
        return math.inf
    for epsilon in epsilons:
        flip = 2 / (1 + math.exp(max(epsilon, _LEAST)))
        accountant.compose(dp_event.RandomizedResponseDpEvent(noise_parameter=flip, num_buckets=2))
    return float(accountant.get_epsilon(delta))


@lru_cache(_KNOWN)
def _zcdp(rho: float, delta: float) -> float:
    """Return epsilon at delta > 0 of a rho-zCDP mechanism.

    The least of rho a + ln(1 - 1 / a) - ln(delta a) / (a - 1) over Rényi orders a (Canonne, Kamath and
    Steinke 2020, Proposition 12). It is 0 where 1 - exp(-rho a) < delta^2 for one of them, because total
    variation is then below delta (Bretagnolle and Huber 1978). dp-accounting finds the same.
    """
    if delta**2 + math.expm1(-rho * _ORDERS[0]) > 0:
        return 0.0
    bounds = rho * _USABLE + np.log1p(-1 / _USABLE) - np.log(delta * _USABLE) / (_USABLE - 1)
    return max(0.0, float(bounds.min()))


def calibrate(budget: Budget, build: Callable[[float], Sequence[Mechanism]]) -> float:
    """Find the largest multiplier whose mechanisms spend at most the budget, to 1e-4 of it.

    Args:
        budget: what may be spent.
        build: mechanisms for a multiplier of their shares; spends more as it grows.

    Returns:
        The multiplier.

    Raises:
        InvalidValue: the budget's delta does not cover the mechanisms' own deltas.
    """
    low, high = 0.0, 1.0
    while high < 64 and spend(build(high), budget.delta).epsilon <= budget.epsilon:
        low, high = high, high * 1.5
    if low == 0 and not math.isfinite(spend(build(high), budget.delta).epsilon):
        raise InvalidValue("delta", budget.delta, "this task needs a larger delta")
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if spend(build(middle), budget.delta).epsilon <= budget.epsilon:
            low = middle
        else:
            high = middle
    return low


def sampled(epsilon: float, rate: float) -> float:
    """Epsilon, to add or remove one, of an epsilon-private mechanism on a Poisson sample of rate q.

    ln(1 + q (e^epsilon - 1)), and delta becomes q delta (Li, Qardaji and Su 2012).
    """
    return math.log1p(rate * math.expm1(epsilon))


def before_sampling(epsilon: float, rate: float) -> float:
    """Invert `sampled`: what may be spent on the sample so that `epsilon` is spent in all."""
    return math.log1p(math.expm1(epsilon) / rate)
