"""One shape for every task: methods serve a setting, and one piece of code calibrates, compares and picks.

A task folder of core has `params.py` (what a job may ask for), `found.py` (what is answered and promised),
one file for each method, and `task.py`, which says which methods there are.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from core.budget import Budget, Mechanism, calibrate, spend
from core.domain import Grid
from core.draws import LARGEST_SCALE, Additive, Charged, charged
from core.errors import InvalidValue
from core.mechanisms.partition_selection import CountThreshold
from core.neighbors import Neighbors
from core.plan import Chosen, Plan
from core.policy import Policy
from core.rounds import State
from core.tightness import Tightness

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Params(Protocol):
    """What the parameters of every task have."""

    @property
    def failure(self) -> float:
        """Probability with which any promise may fail."""


P = TypeVar("P", bound=Params)


@dataclass(frozen=True)
class Setting(Generic[P]):
    """What a task is asked for. Everything in it is public except the salt.

    Args:
        grid: the universe.
        params: the task's own parameters.
        budget: what the run may spend.
        neighbors: the neighbor relation, with its policy.
        salt: 16 secret bytes that choose samples.
    """

    grid: Grid
    params: P
    budget: Budget
    neighbors: Neighbors
    salt: bytes = field(repr=False)

    @property
    def without_policy(self) -> "Setting[P]":
        """The same setting, where every pair of values is secret."""
        return replace(self, neighbors=Neighbors(self.neighbors.name))


@dataclass(frozen=True)
class Accuracy:
    """What a method promises at a share of the budget.

    Args:
        promises: a dataclass of figures, each true with probability 1 - failure; see the task's `Promises`.
        error: the figure by which methods are compared, in a unit that all methods of the task share. The
            smallest wins. It is infinite where the method promises nothing.
        notes: sentences for the person who reads the plan.
        smallest_target: smallest `target` that the budget serves, or None.
        tightness: of every promised bound, by its name. See `Tightness`.
    """

    promises: "DataclassInstance"
    error: float
    notes: tuple[str, ...] = ()
    smallest_target: int | None = None
    tightness: Mapping[str, Tightness] = field(default_factory=dict)


def geometric_mean(errors: Sequence[float]) -> float:
    """Return the geometric mean of the errors that a method is expected to have on several shapes of data.

    The method with the least mean also has the least mean of its error over that of the best method.
    """
    return math.prod(math.pow(error, 1 / len(errors)) for error in errors)


@dataclass(frozen=True)
class Method(ABC, Generic[P]):
    """One way to serve a setting of a task.

    `share` scales what the draws may cost. At share 1 a method splits epsilon by basic composition.
    Calibration finds the largest share whose draws compose to the budget. It is above 1 where they compose
    to less than the sum of their epsilons.

    Args:
        setting: what is asked for.
    """

    name: ClassVar[str]
    calibrated: ClassVar[bool] = True
    """Whether `rounds` depends on the share. If not, the share is 1, and the method sets its own scales."""
    uses_policy: ClassVar[bool] = False
    """Whether a policy can change the rounds. If not, the method is planned without it; see `Task.plan`."""

    setting: Setting[P]

    def refusal(self) -> InvalidValue | None:
        """Return why the method can't serve the setting, or None where it can."""
        return None

    @property
    def served(self) -> Setting[P]:
        """The setting whose secret pairs the rounds hide: the method's own, or the same without a policy."""
        return self.setting

    def start(self) -> State:
        """Return the state before the first round, made from public parameters."""
        return None

    def hides(self) -> str | None:
        """Return in words what is hidden, if that is less than the neighbor relation says; else None.

        What a policy leaves open is not part of it: see `Plan.policy`.
        """
        return None

    @abstractmethod
    def rounds(self, share: float) -> tuple[Charged, ...]:
        """Return the rounds, with the draws that `share` of the budget pays for."""

    def charges(self, share: float) -> tuple[Mechanism, ...]:
        """Return what the rounds of `share` are charged.

        A method overrides this where `rounds` takes long and the charges can be had without it.
        """
        return charged(self.rounds(share))

    @abstractmethod
    def accuracy(self, share: float) -> Accuracy:
        """Return what the rounds of `share` promise."""


@dataclass(frozen=True)
class Task(Generic[P]):
    """A question that can be asked, and the methods that answer it.

    Args:
        params: dataclass of the task's own parameters, which checks its values.
        methods: the methods. Where several have the smallest error, the first of them is preferred.
        compared_by: what the methods' `Accuracy.error` measures, and its unit, in words that follow "Methods
            are compared by".
        check: raises InvalidValue where no method could serve the setting.
        choice: the parameter that may name a method, or `auto`; None where there is one method.
    """

    params: type[P]
    methods: tuple[type[Method[P]], ...]
    compared_by: str
    check: Callable[[Setting[P]], None]
    choice: str | None = "method"

    @property
    def choices(self) -> tuple[str, ...]:
        """Allowed values of the parameter that `choice` names; empty where `choice` is None."""
        return () if self.choice is None else ("auto", *(method.name for method in self.methods))

    def plan(self, grid: Grid, params: P, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
        """Plan the method that is asked for, or the one of the smallest error; see `Setting`.

        A method that makes no use of policies is planned without the policy, so it hides every pair of
        values. It is compared with the methods that use the policy.

        Raises:
            InvalidValue: no method serves the setting, or the method that is asked for doesn't.
        """
        setting = Setting(grid, params, budget, neighbors, salt)
        self.check(setting)
        asked = "auto"
        if self.choice is not None:
            asked = getattr(params, self.choice)
            if asked not in self.choices:
                *first, last = self.choices
                raise InvalidValue(self.choice, repr(asked), f"it must be {', '.join(first)} or {last}")
        drafts, refusals = _drafts(self.methods, setting)
        if asked in refusals:
            raise refusals[asked]
        if not drafts:
            raise next(iter(refusals.values()))
        errors = {each: draft[2].error for each, draft in drafts.items()}
        best = min(errors, key=errors.__getitem__)
        name = best if asked == "auto" else asked
        others = {other: _alternative(draft[2]) for other, draft in drafts.items() if other != name}
        chosen = Chosen(best, self.compared_by, errors, None if asked == "auto" else self.choice)
        plan = replace(_plan(*drafts[name]), alternatives=others, chosen=chosen)
        if neighbors.policy is None or neighbors.constraints:
            return plan
        return replace(plan, notes=(*plan.notes, self._gain(setting, plan, drafts)))

    def _gain(self, setting: Setting[P], plan: Plan, drafts: "Mapping[str, Draft]") -> str:
        """Return a sentence that compares a plan under a policy with the best one for full privacy."""
        if plan.policy is None:
            return (
                "The policy does not lower the noise of this method. The noise is that of full privacy, so "
                "the run hides every replacement of a row."
            )
        using, _ = _drafts([kind for kind in self.methods if kind.uses_policy], setting.without_policy)
        others = {name: draft for name, draft in drafts.items() if not draft[0].uses_policy}
        errors = {name: draft[2].error for name, draft in (using | others).items()}
        if not errors:
            return "Without the policy no method serves these parameters."
        best, ours = min(errors, key=errors.__getitem__), drafts[plan.method][2].error
        return (
            f"The error by which methods are compared is {_figure(ours)} under the policy. With full privacy "
            f"at the same budget the best method is {best}, and its error is {_figure(errors[best])}."
        )


Draft = tuple[Method[Any], float, Accuracy]
"""A method, the largest share that its draws can have within the budget, and what it promises."""


def _drafts(
    kinds: Sequence[type[Method[Any]]], setting: Setting[Any]
) -> tuple[dict[str, Draft], dict[str, InvalidValue]]:
    """Return the methods that serve a setting, by name, and why the others do not."""
    drafts: dict[str, Draft] = {}
    refusals: dict[str, InvalidValue] = {}
    for kind in kinds:
        sees = kind.uses_policy or setting.neighbors.constraints
        try:
            drafts[kind.name] = _calibrated(kind(setting if sees else setting.without_policy))
        except InvalidValue as refusal:
            refusals[kind.name] = refusal
    return drafts, refusals


def _figure(error: float) -> str:
    return f"{error:,.4g}" if math.isfinite(error) else "not promised"


def _calibrated(method: Method[Any]) -> Draft:
    """Return the draft of a method.

    Raises:
        InvalidValue: the method can't serve its setting.
    """
    refusal = method.refusal()
    if refusal is not None:
        raise refusal
    share = calibrate(method.setting.budget, method.charges) if method.calibrated else 1.0
    return method, share, method.accuracy(share)


def planned(method: Method[Any]) -> Plan:
    """Plan one method by itself, without a comparison: for a task that builds on another one's method.

    Raises:
        InvalidValue: the method can't serve its setting.
    """
    return _plan(*_calibrated(method))


def _check_scales(budget: Budget, rounds: Sequence[Charged]) -> None:
    """Check that noise leaves something of what it is added to.

    Raises:
        InvalidValue: it does not fit into 64 bits.
    """
    draws = [draw for step in rounds for draw in step.draws() if isinstance(draw, Additive | CountThreshold)]
    largest = max((draw.noise_scale for draw in draws), default=0.0)
    if largest >= LARGEST_SCALE:
        raise InvalidValue(
            "epsilon",
            budget.epsilon,
            f"noise of a scale of {largest:.3g} hides everything; a larger epsilon or step, or smaller "
            "contributions, make it smaller",
        )


def _alternative(accuracy: Accuracy) -> Mapping[str, Any]:
    """Return what a plan reports of a method that was not chosen."""
    promises: Mapping[str, Any] = asdict(accuracy.promises)
    smallest = accuracy.smallest_target
    return promises if smallest is None else {**promises, "smallest_target": smallest}


def _policy_of(method: Method[Any], share: float, rounds: tuple[Charged, ...]) -> Policy | None:
    """Return the policy that the promise of these rounds needs; None where they hide every pair of values.

    The rounds hide every pair if the same method makes equal rounds without the policy:

    1. A round is its fields. Equal rounds compute the same totals, and answer them by the same draws: of the
       same kind, scale and sensitivity, made as often, in the same units. So they are one algorithm.
    2. The rounds made without the policy are charged for every pair of values, in every public state.
    3. So the same charge holds for the equal rounds: they spend no more between any two databases that
       differ in one record.

    Equal draws alone would not suffice. A round may use the policy in what it computes, as where it releases
    the counts of a partition's parts exactly. Its fields then differ, and the policy is needed.

    Known counts let neighbors differ in several records, so under them the policy is always needed.
    """
    neighbors = method.served.neighbors
    if neighbors.policy is None or neighbors.constraints:
        return neighbors.policy
    full = type(method)(method.setting.without_policy)
    return None if full.refusal() is None and full.rounds(share) == rounds else neighbors.policy


def _plan(method: Method[Any], share: float, accuracy: Accuracy) -> Plan:
    rounds = method.rounds(share)
    _check_scales(method.setting.budget, rounds)
    promises: Mapping[str, Any] = asdict(accuracy.promises)
    return Plan(
        method=method.name,
        rounds=rounds,
        start=method.start(),
        spend=spend(charged(rounds), method.setting.budget.delta),
        promises=promises,
        failure=method.setting.params.failure,
        smallest_target=accuracy.smallest_target,
        notes=accuracy.notes,
        tightness=accuracy.tightness,
        hides=method.hides(),
        policy=_policy_of(method, share, rounds),
    )
