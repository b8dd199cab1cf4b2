"""What every plan under a policy says that it hides is what its rounds hide."""

import dataclasses
from typing import Any

import pytest

from core.plan import Plan
from pipelines.errors import JobError
from pipelines.notes import hidden
from pipelines.plan import make_plan
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import SALT, Setting
from tests.pipelines.test_every_plan import covered, named


def with_policy() -> list[str]:
    return [name for name, setting in covered().items() if setting.job.privacy.policy]


def without_policy(setting: Setting) -> Plan | None:
    """Plan the same method without the policy; None where it then serves no such job."""
    job = setting.job
    privacy, params = job.privacy.model_copy(update={"policy": None}), job.params
    if TASKS[job.task].core.choice is not None:
        params = params.model_copy(update={"method": setting.plan.method})
    try:
        return make_plan(job.model_copy(update={"privacy": privacy, "params": params}), SALT)
    except JobError:
        return None


@pytest.mark.parametrize("name", with_policy())
def test_the_promise_is_full_where_the_rounds_are_those_of_full_privacy(name: str) -> None:
    setting = named(name)
    policy, plan = setting.job.neighbors.policy, setting.plan
    assert policy is not None
    assert plan.policy in (None, policy)
    says = "secret pair" in hidden(setting.job, plan)
    assert says == (plan.policy is not None)
    if policy.constraints:
        assert plan.policy == policy
        return
    if plan.method == "hierarchical_whole":  # without a policy it is called hierarchical
        assert plan.policy is None
        return
    full = without_policy(setting)
    assert (full is not None and repr(full.rounds) == repr(plan.rounds)) == (plan.policy is None)


@pytest.mark.parametrize("name", with_policy())
def test_equal_rounds_are_equal_in_all_that_they_do(name: str) -> None:
    """Rounds are compared by their fields, so a round has nothing else, and no field is left out."""
    for step in named(name).plan.rounds:
        assert dataclasses.is_dataclass(step)
        assert type(step).__eq__ is not object.__eq__
        assert all(field.compare for field in dataclasses.fields(step))
        assert set(vars(step)) <= {field.name for field in dataclasses.fields(step)} | cached(step)


def cached(step: Any) -> set[str]:
    """Return the names of cached properties."""
    return {name for name in dir(type(step)) if hasattr(getattr(type(step), name), "attrname")}
