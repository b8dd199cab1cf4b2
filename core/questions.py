"""Several questions about the same records, asked with one budget: their plans, and what all of them cost.

Each question gets a part of the budget by its share, and is planned with it as if it were asked alone. Their
draws together then often cost less than the sum of the parts. So all parts are raised by one common factor,
as far as the joint composition stays within the budget.

Why the joint spend holds. Fix two neighbors. Each question makes its own records of the rows:

- Without units, the records of a question are the rows that have all of its columns. One row more or less is
  at most one record more or less in each question.
- With units, the record of a unit in a question is a function of the unit's own rows; see
  `transforms.bound_units.Bounding`. Questions may differ in their columns and in `keep`. Still a unit has at
  most one record in each question, which no other unit changes. So all rows of one unit together change at
  most one record of each question.
- Under `replace_one` the number of records is public: of each question its own. Neighbors are databases that
  differ in one row (or unit) and have the same number of records in every question.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.budget import Budget, Mechanism, Spend, spend
from core.draws import charged
from core.plan import Plan

_MOST = 64.0  # factor; no composition of so few questions gains more
_WORTH = 1.01  # a factor below it is not worth planning again
_EXACT = 2e-3  # relative precision of the factor
_TRIES = 6  # most plans of each question

PlanOne = Callable[[Budget], Plan]
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

    plans: Mapping[str, Plan]
    budgets: Mapping[str, Budget]
    factor: float
    spend: Spend

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Every draw of noise that the rounds of all questions hold."""
        return tuple(draw for plan in self.plans.values() for draw in plan.mechanisms)

    @property
    def hides(self) -> str | None:
        """What the release hides, in words, if a question hides less than the neighbor relation says."""
        less = dict.fromkeys(plan.hides for plan in self.plans.values() if plan.hides is not None)
        return "; and ".join(less) or None

    @property
    def policy(self) -> None:
        """The policy that the promise needs: none, because questions take no policy."""
        return None

    def recomputed(self, delta: float) -> Spend:
        """Return what the draws spend that the rounds really hold."""
        draws = [charged(plan.rounds) for plan in self.plans.values()]
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
            name: Budget(factor * part * budget.epsilon, _part(part, budget.delta))
            for name, part in parts.items()
        }
        plans = {name: plan(budgets[name]) for name, (_, plan) in questions.items()}
        draft = JointPlan(plans, budgets, factor, Spend(math.inf, "none"))
        return replace(draft, spend=draft.recomputed(budget.delta))

    best, low, high = None, 0.0, math.inf
    draft = planned(1.0)
    for _ in range(_TRIES):
        if draft.spend.epsilon <= budget.epsilon:
            best, low = draft, draft.factor
        else:
            high = draft.factor
        factor = draft.factor * _more(draft, budget)
        if not low < factor < high:
            factor = (low + high) / 2
        if best is not None and factor < low * (_WORTH if low == 1 else 1 + _EXACT):
            break
        draft = planned(factor)
    return planned(_SAFE * low) if best is None else best
