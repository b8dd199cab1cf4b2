"""Checks are counted beside the first round: exactly, under charged noise, and not clipped by a floor."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from core.aggregate import Counts, Tally
from core.budget import Budget, spend
from core.draws import Laplace, charged
from core.input_checks import Beside, Checked, CheckedRound, with_checks
from core.noise import Noise
from core.plan import Plan
from core.rounds import Block, examination_of, examined, run_in_memory
from core.stored import Store, Stored
from tests.core.seeded import SeededNoise

BUDGET = Budget(1.0, 1e-6)
COUNT = Laplace.of("count", 0.9, 1)


@dataclass(frozen=True)
class Step:
    """Count the records, and what two records have of one point."""

    name: str
    floor: int | None = None
    purpose: ClassVar[str] = "how many rows there are"

    def draws(self):
        return (COUNT,)

    def summarize(self, block: Block, state: int):
        return Counts.of(block.points[:, 0]) if self.floor is not None else Tally(np.array([len(block.ids)]))

    def release(self, aggregate, state: int, noise: Noise) -> int:
        totals = aggregate.counts if self.floor is not None else aggregate.totals
        return 10 * state + int(COUNT.add(totals.sum(keepdims=True), noise)[0])


def planned(*steps: Step) -> Plan:
    return Plan("m", steps, 0, spend(charged(steps), BUDGET.delta), {}, 0.1)


def block(points: list[int], outside: list[int] | None) -> Block:
    counts = None if outside is None else np.array(outside)
    return Block(np.array(points, dtype=np.int64)[:, None], np.arange(len(points), dtype=np.uint64), counts)


BLOCKS = [block([1, 1, 2], [5, 0, 1, 2]), block([], [0, 3, 0, 0]), block([1, 7], None)]


@pytest.mark.parametrize("floor", [None, 1])
def test_the_first_round_counts_and_the_task_is_what_it_was(floor):
    steps = Step("one", floor), Step("two")
    noise = SeededNoise(0, factor=0.0)
    plan = with_checks(planned(*steps), 0.1, 2, False, BUDGET)
    alone = run_in_memory(steps, BLOCKS, 0, noise)
    assert run_in_memory(plan.rounds, BLOCKS, plan.start, noise) == Checked(alone, (5, 3), (1, 2))
    assert [step.floor for step in plan.rounds] == [floor, None]
    assert "left out or moved" in plan.rounds[0].purpose and plan.rounds[1].purpose == Step.purpose


@pytest.mark.parametrize(("twice", "l1"), [(False, 3), (True, 6)])
def test_the_counts_are_charged_once_for_what_one_record_changes(twice, l1):
    alone = planned(Step("one"), Step("two"))
    plan = with_checks(alone, 0.1, 3, twice, BUDGET)
    (checks,) = [m for m in plan.mechanisms if "moved" in m.mechanism]
    assert (checks.round, checks.sensitivity, checks.epsilon) == ("one", l1, pytest.approx(0.1))
    assert checks.scale == pytest.approx(l1 / 0.1)
    assert [m for m in plan.mechanisms if m != checks] == list(alone.mechanisms)
    assert plan.spend.epsilon <= alone.spend.epsilon + 0.1 + 1e-9


def test_parts_add_up_and_a_floor_clips_the_task_alone():
    keys = np.arange(50).repeat(3)
    whole = Beside(Counts.of(keys), Tally(np.array([1, 2])))
    parts = whole.split(7)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total == whole
    assert [part.outside.totals.tolist() for part in parts[:2]] == [[1, 2], [0, 0]]
    assert whole.above(3) == Beside(Counts.of(keys).above(3), whole.outside)


@dataclass(frozen=True)
class Examined(Step):
    """A step whose total is merged in shards, and then shared out to parts."""

    examiners: int = 3
    shards: int = 1

    @property
    def examination(self):
        return self

    def summarize(self, block: Block, state: int):
        return Counts.of(block.points[:, 0])

    def arrange(self, aggregate: Stored, store: Store):
        assert len(aggregate.parts) == self.shards
        return np.array([sum(int(part.counts.sum()) for part in aggregate)])

    def examine(self, arranged, part: int):
        return Tally(arranged // self.examiners + (part < arranged % self.examiners))


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("shards", [1, 4])
def test_checks_pass_an_examination_once(counted, shards):
    step = CheckedRound(Examined("one", shards=shards), 2, COUNT if counted else None)
    total = step.summarize(BLOCKS[0], Checked(0))
    examination = examination_of(step)
    assert (examination.examiners, examination.shards) == (3, shards)
    three = Tally(np.array([3]))
    assert examined(step, total) == (Beside(three, total.outside) if counted else three)
    assert run_in_memory([step], BLOCKS, Checked(0), SeededNoise(0, factor=0.0)) == (
        Checked(5, (5, 3), (1, 2)) if counted else Checked(5)
    )
    assert examination_of(CheckedRound(Step("one"), 2, COUNT)) is None


def test_a_composition_is_named_once():
    spent = with_checks(planned(Step("one")), 0.1, 2, False, BUDGET).spend
    assert spent.epsilon == pytest.approx(0.9 + 0.1) and spent.accountant == "basic composition"
