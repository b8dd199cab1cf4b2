"""Two checks of every plan that a job can ask for: it draws as charged, and releases nothing but noise.

*As charged*: a planned task is run with a noise that notes every draw. Each draw is one that its round holds,
at the scale that it says, and none is made more often than it says. A plan lists what its rounds hold.

*Nothing but noise*: each round's release is run on one aggregate, and what the noise answered is noted. The
same answers are then replayed on unrelated aggregates. The state that comes out, the draws, their order and
their units must be the same: then all that a release shows is what draws answered, which is what is charged.
Answers are scripted too, so that every branch is met: draws that may answer "nothing" do.
"""

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pytest

from core.budget import Mechanism, spend
from core.draws import Additive, Draw, Gaussian, Laplace, charged
from core.groups import GroupedPlan
from core.mechanisms.a_dist import ADist
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.choosing import Choosing
from core.mechanisms.exponential import Exponential
from core.mechanisms.partition_selection import CountThreshold
from core.mechanisms.random_path import RandomPath
from core.mechanisms.splits import Splits
from core.mechanisms.stability import StabilityHistogram
from core.mechanisms.stability_axes import StabilityAxes
from core.mechanisms.within_cell import WithinCell
from core.noise import Lengths, Noise
from core.rounds import Block, examined, looks_of, parts_of, total_in_memory
from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.plan import make_plan
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import (
    CHOICES,
    SALT,
    SETTINGS_OF,
    Setting,
    blocks,
    choices,
    jobs_of,
    joint_plans,
    settings,
)

T = TypeVar("T")

Script = Callable[[Draw], Any]


def drawn(draw: Draw) -> Any:
    """Script: every answer is really drawn."""
    return ...


def nothing(draw: Draw) -> Any:
    """Script: every draw that may answer "nothing" does."""
    if isinstance(draw, AboveThreshold | ADist | Choosing):
        return None
    return ...


def first(draw: Draw) -> Any:
    """Script: the first candidate wins."""
    return 0 if isinstance(draw, AboveThreshold) else ...


SHAPES = ("uniform", "one_value", "two_clumps", "few", "empty")


@cache
def covered() -> dict[str, Setting]:
    """Return all settings by name."""
    return {setting.name: setting for setting in settings()}


@cache
def different() -> tuple[str, ...]:
    """Return the names of the covered settings, one for all that have equal rounds."""
    rounds = {
        repr((s.job.task, s.plan.rounds, s.plan.start)): name for name, s in reversed(covered().items())
    }
    return tuple(sorted(rounds.values()))


def named(name: str) -> Setting:
    return covered()[name]


@dataclasses.dataclass
class Answer:
    """What one draw was asked and answered, and which scales of noise that took."""

    draw: Draw
    unit: Any
    value: Any
    scales: list[tuple[str, float]]


class NotingNoise(Noise):
    """Seeded noise that notes every draw, and refuses noise outside of one."""

    def __init__(self, seed: int, script: "Script", factor: float) -> None:
        self._inner = SeededNoise(seed, factor)
        self._script = script
        self._open: Answer | None = None
        self.answers: list[Answer] = []

    def answer(self, draw: object, sample: Callable[[], T], unit: object = 1.0) -> T:
        assert isinstance(draw, Draw)
        assert self._open is None, "a draw inside of a draw"
        self._open = Answer(draw, unit, None, [])
        scripted = self._script(draw)
        value: Any = sample() if scripted is ... else scripted
        self._open.value = value
        self.answers.append(self._open)
        self._open = None
        return value

    def _note(self, kind: str, scale: float) -> None:
        assert self._open is not None, f"{kind} noise of scale {scale} that no draw asked for"
        self._open.scales.append((kind, scale))

    def laplace(self, values: Any, scale: float) -> Any:
        self._note("laplace", scale)
        return self._inner.laplace(values, scale)

    def gaussian(self, values: Any, scale: float) -> Any:
        self._note("gaussian", scale)
        return self._inner.gaussian(values, scale)

    def select(self, scores: Any, scale: float) -> int:
        self._note("select", scale)
        return self._inner.select(scores, scale)

    def select_run(self, scores: Any, lengths: Lengths, scale: float) -> int:
        self._note("select", scale)
        return self._inner.select_run(scores, lengths, scale)

    def below(self, bound: int) -> int:
        self._note("below", 0.0)
        return self._inner.below(bound)


class Replay(Noise):
    """Answers as noted, whatever the exact values are, which it never looks at."""

    def __init__(self, answers: list[Answer]) -> None:
        self._left = list(answers)

    def answer(self, draw: object, sample: Callable[[], T], unit: object = 1.0) -> T:
        assert self._left, f"one draw more: {draw}"
        noted = self._left.pop(0)
        assert noted.draw == draw, f"{draw} instead of {noted.draw}"
        assert same(noted.unit, unit), f"{draw} in units of {unit} instead of {noted.unit}"
        return noted.value

    def finish(self) -> None:
        assert not self._left, f"draws that were not made: {[noted.draw for noted in self._left]}"


def same(one: Any, other: Any) -> bool:
    """Say whether two public values are equal, arrays and dataclasses within them too."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.shape(one) == np.shape(other) and bool(np.all(np.asarray(one) == np.asarray(other)))
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        names = [field.name for field in dataclasses.fields(one)]
        return type(one) is type(other) and all(same(getattr(one, n), getattr(other, n)) for n in names)
    if isinstance(one, tuple | list):
        pairs = zip(one, other, strict=True)
        return type(one) is type(other) and len(one) == len(other) and all(same(*pair) for pair in pairs)
    return bool(one == other) or (one != one and other != other)


def aggregate(step: Any, data: list[Block], state: Any, copies: int = 1) -> Any:
    if looks_of(step):
        return total_in_memory(step, data, state, SeededNoise(0))
    total = step.summarize(data[0], state)
    for block in data[1:]:
        total = total + step.summarize(block, state)
    if copies > 1:
        total = dataclasses.replace(total, counts=total.counts * copies)
    return examined(step, total, state, SeededNoise(0))


def released(step: Any, total: Any, state: Any, noise: Noise) -> Any:
    """Release as a pipeline does: in parts, where a round has parts; then return the states of all parts."""
    if parts_of(step) == 1:
        return step.release(total, state, noise)
    shards = total.split(step.parts)
    return tuple(step.release_part(number, shard, state, noise) for number, shard in enumerate(shards))


Trial = tuple[Any, Any, list[Answer], Any]
"""A round, the state before it, what the noise answered, and the state after it."""


def trials(setting: Setting, shape: str, script: Script = drawn, factor: float = 1.0) -> Iterator[Trial]:
    """Run the rounds of a plan on records of one shape; give every round with what it was answered.

    Args:
        setting: see `Setting`.
        shape: see `blocks`.
        script: answers for a draw, or ... for what it really draws.
        factor: of the noise; the scales that are noted are those that were asked for.
    """
    plan = setting.plan
    data, state = blocks(setting, shape), plan.start
    for number, step in enumerate(plan.rounds):
        noise = NotingNoise(number, script, factor)
        after = released(step, aggregate(step, data, state, setting.copies), state, noise)
        yield step, state, noise.answers, after
        state = after


SCRIPTS: dict[str, Script] = {"drawn": drawn, "nothing": nothing, "first": first}


_OF_ONE_SCALE = (
    ADist
    | Additive
    | Choosing
    | CountThreshold
    | Exponential
    | Splits
    | StabilityAxes
    | StabilityHistogram
    | WithinCell
)


def scales_of(draw: Draw, unit: Any) -> set[float] | None:
    """Return the scales that a draw's noise may have; None for those that have a test of their own."""
    if isinstance(draw, Exponential | Splits) and isinstance(unit, tuple):
        unit = unit[0]  # the others are of the universe
    units = np.unique(np.asarray(unit, dtype=float)).tolist()
    if isinstance(draw, AboveThreshold):
        return {draw.threshold_scale, draw.query_scale}
    if isinstance(draw, _OF_ONE_SCALE):
        return {draw.scale * u for u in units}
    if isinstance(draw, RandomPath):
        return {draw.noise_scale}
    return None


def test_what_is_covered() -> None:
    """Every task, method, aggregator and noise that there is, under both relations."""
    jobs = [setting.job for setting in covered().values()]
    relations = itertools.product(TASKS, ("add_or_remove_one", "replace_one"))
    assert {(job.task, job.privacy.neighbors) for job in jobs} == set(relations)
    named = {(job.task, key, getattr(job.params, key, None)) for job in jobs for key in CHOICES}
    for task in TASKS:
        for choice in choices(task):
            assert {(task, key, value) for key, value in choice.items()} <= named
    assert len(covered()) > 600
    # Under known counts neighbors differ in several records: only a histogram's sensitivity is that of them.
    assert {job.task for job in jobs if job.privacy.policy and job.privacy.policy.constraints} == {
        "histogram"
    }
    assert len(different()) > 150


@pytest.mark.parametrize("apart", [20, pytest.param(1, marks=pytest.mark.audit)])
def test_settings_have_the_plans_of_their_jobs(apart: int) -> None:
    """Settings share drafts of methods; see `shared_drafts`."""
    jobs = itertools.chain.from_iterable(map(jobs_of, SETTINGS_OF))
    for name, raw in itertools.islice(jobs, 0, None, apart):
        try:
            plan = make_plan(check_job(raw), SALT)
        except JobError:
            assert name not in covered()
        else:
            assert repr(plan) == repr(named(name).plan), name


@pytest.mark.parametrize("name", covered())
def test_a_plan_charges_for_what_its_rounds_hold(name: str) -> None:
    plan = named(name).plan
    assert plan.mechanisms == charged(plan.rounds)
    for step in plan.rounds:
        assert len(set(step.draws())) == len(step.draws()), "two equal draws can't be told apart"
    for one in named(name).plan.mechanisms:
        reach = (1 + 1e-9) * one.sensitivity / one.scale
        if one.kind in (Laplace.kind, Exponential.kind, WithinCell.kind):
            assert one.epsilon <= reach, f"{one}: its cost is that of a larger sensitivity"
        if one.kind == Gaussian.kind:
            assert one.rho <= reach * reach / 2, f"{one}: its cost is that of a larger sensitivity"


@pytest.mark.parametrize("name", different())
def test_as_charged(name: str) -> None:
    """Nothing is drawn that isn't charged, and nothing with less noise."""
    setting = named(name)
    made: Counter[Draw] = Counter()
    noisy = ("uniform", "powers", "two_clumps", "empty")
    shapes = (*((shape, 1.0) for shape in noisy), ("two_values", 0.0), ("empty", 0.0))
    for shape, factor in shapes:
        for step, _, answers, _ in trials(setting, shape, factor=factor):
            held = step.draws()
            times = Counter(answer.draw for answer in answers)
            assert set(times) <= set(held)
            assert all(times[draw] <= draw.times for draw in times)
            made += times
            for answer in answers:
                allowed = scales_of(answer.draw, answer.unit)
                if allowed is not None:
                    for kind, used in answer.scales:
                        fits = any(math.isclose(used, scale, rel_tol=1e-12) for scale in allowed)
                        assert kind == "below" or fits, answer.draw
    unused = [draw for step in setting.plan.rounds for draw in step.draws() if not made[draw]]
    assert not unused, "charged, and never drawn"


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("name", different())
def test_nothing_but_noise(name: str, script: str) -> None:
    """The state and the draws follow from the state before and from what draws answered."""
    setting = named(name)
    others = {shape: blocks(setting, shape) for shape in SHAPES}
    for shape in ("uniform", "powers", "two_clumps", "empty"):
        for step, before, answers, after in trials(setting, shape, SCRIPTS[script]):
            for other, data in others.items():
                replay = Replay(answers)
                again = released(step, aggregate(step, data, before, setting.copies), before, replay)
                replay.finish()
                assert same(after, again), f"{step.name} on {other}"


def held(plan: Any) -> list[Mechanism]:
    """Return what the rounds of a question hold, of all groups that a neighbor may change."""
    if not isinstance(plan, GroupedPlan):
        return list(charged(plan.rounds))
    draws = charged(plan.each.rounds) * plan.copies
    return [draw.under_replacement() for draw in draws] if plan.changes == 2 else list(draws)


@pytest.mark.parametrize("name", joint_plans())
def test_a_job_of_several_questions_is_charged_for_what_all_of_its_rounds_hold(name: str) -> None:
    job, plan = joint_plans()[name]
    assert list(plan.mechanisms) == [draw for each in map(held, plan.plans.values()) for draw in each]
    assert plan.spend == plan.recomputed(job.privacy.delta)
    deltas = {question: part.delta for question, part in plan.budgets.items()}
    apart = sum(spend(held(its), deltas[question]).epsilon for question, its in plan.plans.items())
    together = spend(plan.mechanisms, job.privacy.delta).epsilon
    assert plan.spend.epsilon >= min(together, apart) * (1 - 1e-9)
    assert plan.spend.epsilon <= job.privacy.epsilon * (1 + 1e-9)
    assert sum(part.delta for part in plan.budgets.values()) <= job.privacy.delta
