"""What is left of a ledger, and how many runs like a planned one still fit."""

import math
from dataclasses import dataclass
from typing import Any, cast

from core.budget import Budget
from core.groups import AnyPlan, GroupedPlan
from core.plan import Plan
from core.privacy_filter import Charge, filter_delta, filter_spend, rounded_up
from core.questions import JointPlan
from pipelines.answers.text import number
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob
from pipelines.joint_plan import planned_as
from pipelines.ledger.content import Ledger
from pipelines.ledger.ledger import check_promise, entry_of, now, read_ledger
from pipelines.ledger.table import HALF


@dataclass(frozen=True)
class Left:
    """What is left of a ledger.

    Args:
        path: of the ledger.
        left: epsilon that is not spent; None where the charges exceed delta.
        left_delta: delta that is not spent; None where the charges exceed it.
        runs: how many runs like the planned one, each with a run id of its own, the ledger still admits;
            None for any number.
        charged: whether the planned run is charged already.
        refused: why its run id would be refused, for what else it is charged; empty if it would not.
        renyi: whether the ledger has a Rényi filter, which leaves half of its delta to draws.
        gaussian: whether it has one, and a question has Laplace noise that could be Gaussian, which such a
            filter often counts for less.
    """

    path: str
    left: float | None
    left_delta: float | None
    runs: int | None
    charged: bool
    refused: str = ""
    renyi: bool = False
    gaussian: bool = False

    def sentence(self) -> str:
        """Return it in words."""
        if self.left is None or self.left_delta is None:
            return f"privacy.ledger {self.path} has nothing left: its charges exceed its delta."
        fit = fit_like(self.runs, "like this one")
        left = f"epsilon {number(self.left, 6)} and delta {number(self.left_delta, 6)} left"
        charged = " This run is charged already: in the same folder it costs nothing more." * self.charged
        if self.refused:
            charged = f" Its run_id is charged for {self.refused}, so a run is refused: give another run_id."
        more = " More may fit with method gaussian in place of laplace." if self.gaussian else ""
        return f"privacy.ledger {self.path} has {left}{HALF * self.renyi}: {fit}.{charged}{more}"


def fit_like(runs: int | None, like: str) -> str:
    """Return in words how many runs fit, without a full stop: any number where it is None."""
    many = {None: "any number of runs", 0: "no further run", 1: "one run"}.get(runs, f"{runs or 0:,} runs")
    return f"{many} {like} {'fits' if runs in (0, 1) else 'fit'}"


def look_ahead(path: str, ledger: Ledger, job: Job | QuestionsJob | None) -> dict[str, Any]:
    """Return by the key `fits` how many more runs a ledger admits; nothing without a charge and a job.

    Args:
        path: of the ledger.
        ledger: its content.
        job: the job that would be run, each time with a run id of its own; None for runs like the last one.

    Raises:
        JobError: the job cannot be planned.
        LedgerRefusal: the ledger's promise is another one than the job's.
    """
    if job is not None:
        like = "of this job"
        planned = planned_as(job)[0]
        check_promise(path, ledger, job, planned)
        charge = entry_of(ledger, job, planned, now()).charge(ledger.neighbors)
    elif ledger.charges:
        last = ledger.charges[-1]
        like, charge = f"like the last one ({last.run_id})", last.charge(ledger.neighbors)
    else:
        return {}
    runs = _fitting(ledger, charge, *_spent(ledger)[:2])
    says = fit_like(runs, like)
    return {"fits": {"runs": runs, "says": f"{says[:1].upper()}{says[1:]}."}}


def left_for(path: str, job: Job | QuestionsJob, plan: AnyPlan) -> Left:
    """Return what is left of the ledger at `path` for runs like the planned one. Nothing is written.

    Raises:
        JobError: there is no ledger.
        LedgerRefusal: the ledger's promise is another one than the job's.
    """
    ledger = read_ledger(path, job)
    check_promise(path, ledger, job, plan)
    spent, delta, most = _spent(ledger)
    fits, known = math.isfinite(spent), ledger.entry(job.run_id)
    refused = ""
    if known is not None and known.release is None and not known.covers(plan):
        refused = "other noise than this version of Shoal plans"
    if known is not None and known.job != job.hash():
        refused = "another job"
    planned = entry_of(ledger, job, plan, now()).charge(ledger.neighbors)
    return Left(
        path,
        max(0.0, ledger.epsilon - spent) if fits else None,
        max(0.0, most - delta) if fits else None,
        _fitting(ledger, planned, spent, delta),
        known is not None and not refused,
        refused,
        ledger.order is not None,
        ledger.order is not None and _may_be_gaussian(plan),
    )


def _may_be_gaussian(plan: AnyPlan) -> bool:
    if isinstance(plan, JointPlan):
        return any(_may_be_gaussian(cast(Plan | GroupedPlan, own)) for own in plan.plans.values())
    each = plan.each if isinstance(plan, GroupedPlan) else plan
    return each.method == "laplace" and "gaussian" in each.alternatives


def _spent(ledger: Ledger) -> tuple[float, float, float]:
    """Return the epsilon and the delta that are spent, and the delta that may be."""
    charges = [entry.charge(ledger.neighbors) for entry in ledger.charges]
    budget = Budget(ledger.epsilon, ledger.delta)
    spent = filter_spend(charges, budget, ledger.order).epsilon
    return spent, *filter_delta(charges, budget, ledger.order)


def _fitting(ledger: Ledger, charge: Charge, spent: float, delta: float) -> int | None:
    """Return how many times a charge fits beside what is spent: both of its sums are linear."""
    budget = Budget(ledger.epsilon, ledger.delta)
    epsilon_each = filter_spend([charge], budget, ledger.order).epsilon
    delta_each, most = filter_delta([charge], budget, ledger.order)
    if not (math.isfinite(spent) and math.isfinite(epsilon_each)):
        return 0
    sums = ((ledger.epsilon, spent, epsilon_each), (most, delta, delta_each))
    times = [(rounded_up(limit) - sofar) / each for limit, sofar, each in sums if each > 0]
    return max(0, math.floor(min(times))) if times else None
