"""What every task has from its one shape: methods that are calibrated, compared, and asked for by name."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from core.budget import Budget
from core.domain import Grid
from core.draws import Charged, Laplace
from core.errors import InvalidValue
from core.k_cover.rounds import CountRows
from core.neighbors import Neighbors
from core.plan import Chosen
from core.policy import Distance, Full, KnownCount, Policy
from core.task import Accuracy, Method, Setting, Task

GRID, ONE, SALT = Grid((0.0,), (1.0,), 0.5), Neighbors("add_or_remove_one"), b"sixteen secrets!"
BUDGET = Budget(1.0, 0.0)


@dataclass(frozen=True)
class Params:
    method: str = "auto"
    failure: float = 0.1
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Promises:
    scale: float


class Coarse(Method[Params]):
    """One count, at half of what it is paid for."""

    name: ClassVar[str] = "coarse"
    part: ClassVar[float] = 0.5

    def refusal(self) -> InvalidValue | None:
        if self.name in self.setting.params.refused:
            return InvalidValue("method", self.name, "it is refused")
        return None

    def count(self, share: float) -> Laplace:
        return Laplace.of("count", self.part * share * self.setting.budget.epsilon, 1)

    def rounds(self, share: float) -> tuple[Charged, ...]:
        return (CountRows(self.count(share)),)

    def accuracy(self, share: float) -> Accuracy:
        scale = self.count(share).scale
        return Accuracy(Promises(scale), error=scale / self.part)


class Fine(Coarse):
    """The same, compared by less."""

    name: ClassVar[str] = "fine"
    part: ClassVar[float] = 1.0


TASK = Task(Params, (Coarse, Fine), "the scale of the count", lambda setting: None)


def plan(**params):
    return TASK.plan(GRID, Params(**params), BUDGET, ONE, SALT)


def test_shares_are_found_at_which_the_budget_is_spent():
    for method in ("coarse", "fine"):
        found = plan(method=method)
        assert found.spend.epsilon == pytest.approx(1.0, rel=1e-3)
        assert found.spend.epsilon <= 1.0
        assert found.promises == {"scale": found.rounds[0].draws()[0].scale}
        assert found.mechanisms[0].epsilon == found.spend.epsilon


def test_the_method_of_the_smallest_error_is_taken_and_the_other_is_told():
    best = plan()
    assert best.method == "fine"
    assert set(best.alternatives) == {"coarse"}
    assert best.chosen is not None
    assert best.chosen.errors["fine"] == pytest.approx(1.0, rel=1e-3)
    assert best.chosen.errors["coarse"] == pytest.approx(2.0, rel=1e-3)  # its scale, over its part
    assert best.chosen == Chosen("fine", "the scale of the count", best.chosen.errors)


def test_a_method_that_is_asked_for_is_taken():
    asked = plan(method="coarse")
    assert asked.method == "coarse"
    assert asked.chosen == Chosen("fine", "the scale of the count", plan().chosen.errors, "method")


def test_a_method_that_refuses_is_left_out_or_says_why():
    assert plan(refused=("fine",)).method == "coarse"
    with pytest.raises(InvalidValue, match=r"^method is fine: it is refused\.$"):
        plan(method="fine", refused=("fine",))
    with pytest.raises(InvalidValue, match=r"^method is coarse"):
        plan(refused=("fine", "coarse"))


def test_methods_that_do_not_exist_are_refused():
    with pytest.raises(InvalidValue, match=r"^method is 'best': it must be auto, coarse or fine\.$"):
        plan(method="best")


NEAR, ANY = Policy(Distance(1)), Policy(Full())


class Moving(Coarse):
    """One count that is paid for by how far a secret pair reaches."""

    name: ClassVar[str] = "moving"
    uses_policy: ClassVar[bool] = True

    def count(self, share: float) -> Laplace:
        reach = self.setting.neighbors.secrets.reach(self.setting.grid.extents)
        return Laplace.of("count", share * self.setting.budget.epsilon, reach)


@dataclass(frozen=True)
class CountExactly(CountRows):
    """Has the draws of `CountRows`, and releases more than they answer."""


class Telling(Coarse):
    """Draws the same under every policy, and uses the policy in what it computes."""

    name: ClassVar[str] = "telling"
    uses_policy: ClassVar[bool] = True

    def rounds(self, share: float) -> tuple[Charged, ...]:
        policy = self.setting.neighbors.policy
        return ((CountRows if policy is None else CountExactly)(self.count(share)),)


class Unaware(Coarse):
    """Has no use for policies, and asks for one."""

    name: ClassVar[str] = "unaware"

    def count(self, share: float) -> Laplace:
        assert self.setting.neighbors.policy is None
        return super().count(share)


def under(policy, *methods, **params):
    task = Task(Params, methods, "the scale of the count", lambda setting: None)
    return task.plan(GRID, Params(**params), BUDGET, Neighbors("replace_one", policy), SALT)


def test_the_noise_of_full_privacy_has_its_promise():
    assert under(NEAR, Coarse).policy is None  # it was planned without the policy
    assert under(NEAR, Unaware).policy is None
    assert under(ANY, Moving).policy is None  # the policy is every pair
    assert "hides every replacement" in under(ANY, Moving).notes[-1]
    assert under(NEAR, Moving).policy == NEAR


def test_what_is_computed_by_the_policy_needs_it_whatever_is_drawn():
    found = under(NEAR, Telling)
    assert found.mechanisms == under(None, Telling).mechanisms
    assert found.policy == NEAR


def test_known_counts_are_always_needed():
    known = Policy(Full(), (KnownCount((0,), (1,), 3),))
    assert under(known, Coarse).policy == known
    assert under(known, Moving).policy == known


def test_a_plan_says_what_its_policy_saves():
    found = under(NEAR, Moving, Coarse, Fine, method="moving")
    assert found.notes == (
        "The error by which methods are compared is 2 under the policy. With full privacy at the same budget "
        "the best method is fine, and its error is 1.",
    )
    assert under(None, Moving).notes == ()


def test_a_setting_keeps_its_salt_out_of_its_text():
    assert "secrets" not in repr(Setting(GRID, Params(), BUDGET, ONE, SALT))
