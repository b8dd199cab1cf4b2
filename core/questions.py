"""Several questions about the same records, asked with one budget: their plans, and what all of them cost.

Each question gets a part of the budget by its share, and is planned with it as if it were asked alone. Their
draws together then often cost less than the sum of the parts. So all parts are raised by one common factor,
as far as the joint composition stays within the budget.

Why the joint spend holds. Fix two neighbors. Each question makes its own records of the rows:

- Without units, the records of a question are the rows that have all of its columns, and with groups also a
  group. One row more or less is at most one record more or less in each question.
- With units, the record of a unit in a question is a function of the unit's own rows; see
  `transforms.bound_units.Bounding`. Questions may differ in their columns and in `keep`. Still a unit has at
  most one record in each question, which no other unit changes. So all rows of one unit together change at
  most one record of each question.
- In a question with contributions a unit has several records, in several groups, as many as its bounds allow;
  see `transforms.contributions.Contributing`. These, too, are a function of the unit's own rows. All draws of
  such a question are made for a change of all of them.
- A question about each of several groups by itself is many runs on disjoint records. A neighbor changes the
  records of some of them, and the draws of the others have the same distribution for both neighbors, whatever
  was drawn before. So only the draws of the changed groups compose with those of other questions. These are
  `core.groups.GroupedPlan.mechanisms`.
- Under `replace_one` the number of records is public: of each question its own, but for those with groups or
  contributions, whose draws are made for any replacement. Neighbors are databases that differ in one row (or
  unit) and have the same number of records in every question in which it is public.
- Under a policy a question has its own universe, and so its own secret pairs of points. Two rows are a secret
  pair of the job if in every question their points are equal or a secret pair of that question. Neighbors
  differ in one row, replaced by another that forms a secret pair of the job with it. In a question that makes
  no use of the policy any replacement costs what its plan says, so this one does, too. Known counts are
  refused, because under them neighbors of one question may differ in several records.

So neighbors of the job are neighbors of, or equal for, every question, and each draw of a question costs what
its plan says. The rounds of a question use the answers of its own earlier draws, and no answer of another
question. Questions draw their noise, and their secret samples, independently. Therefore the run is the same
as all rounds of the first question, then all of the second, and so on: an adaptive composition of draws on
the same records, whose total `core.budget.spend` bounds. The order in which strands really run has no effect
on what is released.

Two questions may not share the key of their samples. A record that is in both samples, or in neither, would
suffer both draws at once, and the amplification of the one would no longer be independent of the other. So
each question gets a salt of its own.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from core.budget import WHOLE, Accountant, Budget, Mechanism, Spend, spend
from core.draws import Charged
from core.errors import InvalidValue
from core.policy import Policy
from core.privacy_filter import at_most
from core.rounds import State

_MOST = 64.0  # a factor above it is not looked for
_WORTH = 1.01  # what planning again must be able to gain
_SAFE = 1 - 1e-3  # of an estimated factor: plans do not scale exactly, as with samples
_EXACT = 1e-3  # relative precision of an estimated factor
_TRIES = 6  # most plans of each question


class Planned(Protocol):
    """The plan of a question: a `core.plan.Plan`, or that of each of several groups."""

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Every draw of its rounds that may tell neighbors apart."""

    @property
    def rounds(self) -> tuple[Charged, ...]:
        """The rounds of the question, or of each group."""

    @property
    def start(self) -> State:
        """The state before the first round."""

    @property
    def method(self) -> str:
        """The method that will run."""

    @property
    def hides(self) -> str | None:
        """What the answer hides, in words, if that is less than the neighbor relation says; else None."""

    @property
    def policy(self) -> Policy | None:
        """The policy that the promise needs; None where every pair of values is hidden."""


PlanOne = Callable[[Budget], Planned]
"""Plans one question with a budget."""


@dataclass(frozen=True)
class JointPlan:
    """The plans of several questions.

    Args:
        plans: of each question, by name.
        budgets: what each question may spend by itself, by name. Deltas add up to at most the whole delta;
            epsilons may add up to more than the whole epsilon, since draws compose to less than their sum.
        factor: by which each part of epsilon was raised.
        spend: what all draws of all questions spend together.
    """

    plans: Mapping[str, Planned]
    budgets: Mapping[str, Budget]
    factor: float
    spend: Spend

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Every draw of all questions that may tell neighbors apart."""
        return tuple(draw for plan in self.plans.values() for draw in plan.mechanisms)

    @property
    def method(self) -> str:
        """The methods of all questions, in words."""
        return ", ".join(f"{plan.method} for {name}" for name, plan in self.plans.items())

    @property
    def hides(self) -> str | None:
        """What the release hides, in words, if a question hides less than the neighbor relation says."""
        less = dict.fromkeys(plan.hides for plan in self.plans.values() if plan.hides is not None)
        return "; and ".join(less) or None

    @property
    def policy(self) -> Policy | None:
        """A policy that the promise needs, that of the first question whose noise needs it; None without any.

        It is of that question's universe, so it says no more than whether the promise is weaker.
        """
        return next((plan.policy for plan in self.plans.values() if plan.policy is not None), None)

    def recomputed(self, delta: float) -> Spend:
        """Return what the draws spend that the rounds really hold."""
        draws = [plan.mechanisms for plan in self.plans.values()]
        return _joint(draws, [budget.delta for budget in self.budgets.values()], delta)


def plan_together(questions: Mapping[str, tuple[float, PlanOne]], budget: Budget) -> JointPlan:
    """Plan several questions with one budget.

    Args:
        questions: for each its share, above 0, and what plans it with a budget.
        budget: what all of them may spend together.

    Returns:
        The plans; their joint spend is at most the budget.

    Raises:
        InvalidValue: a question can't be planned with its part of the budget.
    """
    whole = math.fsum(share for share, _ in questions.values())
    parts = {name: share / whole for name, (share, _) in questions.items()}

    def planned(factor: float) -> JointPlan:
        budgets = {
            name: Budget(factor * part * budget.epsilon, WHOLE * part * budget.delta)
            for name, part in parts.items()
        }
        plans = {name: plan(budgets[name]) for name, (_, plan) in questions.items()}
        draft = JointPlan(plans, budgets, factor, Spend(math.inf))
        return replace(draft, spend=draft.recomputed(budget.delta))

    best, high, factor = None, math.inf, 1.0
    for _ in range(_TRIES):
        draft = planned(factor)
        more = _more(draft, budget)
        if at_most(draft.spend.epsilon, budget.epsilon):
            best = draft
            if more < _WORTH:
                break
        else:
            high = factor
        factor *= more * _SAFE
        low = 0.0 if best is None else best.factor
        if not low < factor < high:
            factor = (low + high) / 2
    if best is None:
        raise InvalidValue("epsilon", budget.epsilon, "the draws of all questions do not fit it together")
    return best


def _more(draft: JointPlan, budget: Budget) -> float:
    """Return by which factor the costs of all draws may grow, as if plans scaled with their epsilons."""
    draws = [plan.mechanisms for plan in draft.plans.values()]
    deltas = [each.delta for each in draft.budgets.values()]

    def fits(factor: float) -> bool:
        scaled = [_scaled(each, factor) for each in draws]
        totals = _totals(scaled, deltas, budget.delta)
        return any(total.epsilon <= budget.epsilon for total in totals)

    low, high = (1.0, _WORTH) if fits(1.0) else (0.5, 1.0)
    while low >= 1 and high < _MOST / draft.factor and fits(high):
        low, high = high, 2 * high
    while high - low > _EXACT * high:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _scaled(draws: Sequence[Mechanism], factor: float) -> list[Mechanism]:
    return [replace(draw, epsilon=factor * draw.epsilon, rho=factor**2 * draw.rho) for draw in draws]


def _joint(draws: Sequence[Sequence[Mechanism]], deltas: Sequence[float], delta: float) -> Spend:
    """Return what the draws of several questions spend together: the least of `_totals`."""
    return min(_totals(draws, deltas, delta), key=lambda total: total.epsilon)


def _totals(draws: Sequence[Sequence[Mechanism]], deltas: Sequence[float], delta: float) -> Iterator[Spend]:
    """Yield sound totals of what the draws of several questions spend together, one after the other.

    They are the composition of all draws, and the sum over the questions of what each spends at its own delta
    (basic composition).

    Args:
        draws: of each question.
        deltas: of each question; they add up to at most `delta`.
        delta: of all.
    """
    yield spend([draw for each in draws for draw in each], delta)
    if len(draws) > 1:
        each = [spend(own, part) for own, part in zip(draws, deltas, strict=True)]
        epsilon, used = math.fsum(one.epsilon for one in each), math.fsum(one.delta for one in each)
        yield Spend(epsilon, (Accountant.QUESTIONS,), used)
