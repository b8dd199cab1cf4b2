"""One question about each of several groups of records, with one budget.

Groups are known by public keys, and a record is in one group or in none. So a record more or less changes the
records of one group. The answers of the groups follow from disjoint records, with noise of their own, and no
group uses the answer of another one. They compose in parallel: whatever one group spends for a record more or
less, all groups together spend (McSherry 2009, Theorem 4). An order in which groups really run, or draws that
follow from earlier ones of the same group, change nothing.

Two relations of a job are more than one such change:

- `replace_one`. A replaced record may change its group: one group loses a record, and another one gains one.
  Or it stays in its group, which then loses one and gains one. Both are a removal and an addition, that is
  two changes of the database of all groups. If the run is (e, d)-private for one change, group privacy gives
  (2 e, (1 + e^e) d) for two (Dwork and Roth 2014, Theorem 2.2). So each group gets half of epsilon, and a
  little less than half of delta. Half of delta would be enough for two groups, but not for one record that
  stays in its group. Nor may a group be planned for `replace_one`: its number of records is not public.
- Units with a record in each of up to L groups. A unit more or less then changes L groups, each by one
  record. Their draws compose as those of L questions do.

Where both hold, a replaced unit is two changes of L groups each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from core.budget import Accountant, Budget, Cost, Mechanism, Spend, spend
from core.draws import Charged
from core.plan import Plan
from core.questions import JointPlan, plan_together
from core.rounds import State

PlanOne = Callable[[Budget], Plan]
"""Plans one group with a budget, for a record more or less."""


@dataclass(frozen=True)
class GroupedPlan:
    """The plan that every group has, and what all groups spend together.

    Args:
        each: the plan of each group, for a record more or less.
        budget: what each group may spend for a record more or less.
        changes: additions and removals between neighbors: 1, or 2 under `replace_one`.
        copies: how many groups one addition or removal may change.
        spend: what the run spends between neighbors.
    """

    each: Plan
    budget: Budget
    changes: int
    copies: int
    spend: Spend

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The draws that may tell neighbors apart, each with what it costs between neighbors.

        Those of other groups are made from the same records.
        """
        draws = self.each.mechanisms
        if self.changes == 2:
            draws = tuple(draw.under_replacement() for draw in draws)
        return draws * self.copies

    @property
    def method(self) -> str:
        """The method of every group."""
        return self.each.method

    @property
    def rounds(self) -> tuple[Charged, ...]:
        """The rounds of every group."""
        return self.each.rounds

    @property
    def start(self) -> State:
        """The state of every group before its first round."""
        return self.each.start

    @property
    def hides(self) -> str | None:
        """What the release hides, in words, if that is less than the neighbor relation says; else None."""
        return self.each.hides

    @property
    def policy(self) -> None:
        """The policy that the promise needs: none, because groups take no policy."""
        return None


AnyPlan = Plan | JointPlan | GroupedPlan
"""The plan of a run: of one question, of several, or of one question about each of several groups."""


def for_one_change(budget: Budget, changes: int) -> Budget:
    """Return what all groups may spend for one change, so that they spend `budget` for several."""
    cost = Cost(budget.epsilon, budget.delta).per_change(changes)
    return Budget(cost.epsilon, cost.delta)


def plan_groups(plan_one: PlanOne, budget: Budget, changes: int, copies: int) -> GroupedPlan:
    """Plan one question about each of several groups.

    Args:
        plan_one: plans the question about one group.
        budget: what all groups may spend together, between neighbors.
        changes: see `GroupedPlan`.
        copies: see `GroupedPlan`.

    Raises:
        InvalidValue: the question can't be planned with its part of the budget.
    """
    one = for_one_change(budget, changes)
    if copies == 1:
        each, part, spent = plan_one(one), one, None
    else:
        planned = cache(plan_one)  # all copies have one budget, and so one plan
        together = plan_together({str(i): (1.0, planned) for i in range(copies)}, one)
        each, part, spent = planned(together.budgets["0"]), together.budgets["0"], together.spend
    spent = each.spend if spent is None else spent
    draft = GroupedPlan(each, part, changes, copies, spent)
    if changes == 1:
        return draft
    cost = Cost(spent.epsilon, spent.delta).grouped(changes)
    apart = Spend(cost.epsilon, (*spent.accountants, Accountant.GROUP), min(cost.delta, budget.delta))
    total = min(spend(draft.mechanisms, budget.delta), apart, key=lambda each: each.epsilon)
    return GroupedPlan(each, part, changes, copies, total)
