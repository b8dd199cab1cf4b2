"""Thresholds of a wide axis, examined in sections: exactly the choice that all thresholds together give."""

import itertools
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import core.threshold.exponential
from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.focus import CELLS
from core.mechanisms.offers import Offers
from core.neighbors import Neighbors
from core.noise import Noise
from core.policy import Attribute, Policy
from core.rounds import Block, run_in_memory, total_in_memory
from core.sections import MOST_SECTIONS
from core.stored import InMemory
from core.threshold.exponential import ExponentialLearner, LearnInSections
from core.threshold.params import Threshold
from core.threshold.task import THRESHOLD
from tests.core.exact import fits
from tests.core.seeded import SeededNoise
from tests.core.threshold.scores import among

Examples = list[tuple[int, int]]


class Every(Noise):
    """Draws number `place` of what is equally likely, and run number `run`; notes the runs it may choose."""

    def __init__(self, place: int = 0, run: int = 0) -> None:
        self.place, self.run = place, run

    def below(self, bound: int) -> int:
        return min(self.place, bound - 1)

    def select_run(self, scores: Any, lengths: Any, scale: float) -> int:
        self.asked = np.array(scores), np.array(lengths), scale
        return self.run


def step_of(size: int, far: int, scale: float = 1.0) -> LearnInSections:
    return LearnInSections(1, ExponentialLearner(size, among(scale)), far, salt=bytes(16))


def cut(step: LearnInSections, cuts: list[int]) -> LearnInSections:
    """Return the step after a look that cuts the axis there."""
    return replace(step, cuts=np.array(cuts, dtype=np.int64), before=np.zeros(len(cuts) + 1, dtype=np.int64))


def block(examples: Examples) -> Block:
    points = np.array(examples, dtype=np.int64).reshape(len(examples), 2)
    return Block(points, np.arange(len(examples), dtype=np.uint64))


def offers(step: LearnInSections, examples: Examples, noise: Noise, order: int = 1) -> Offers:
    """Return what the sections of a cut axis offer, added up in either order."""
    sections = step.summarize(block(examples), None).split(len(step.cuts) + 1)
    found = [step.examine(section, None, noise, InMemory()) for section in sections][::order]
    return sum(found[1:], found[0])


def scores_and_chances(step: LearnInSections, examples: Examples) -> tuple[Any, Any]:
    """Return of each threshold its score, and its exact probability, by all that may be drawn."""
    size = step.size
    drawn: dict[tuple[int, int], int] = {}
    for place in range(size + 1):
        noise = Every(place)
        step.release(offers(step, examples, noise), None, noise)
        scores, lengths, scale = noise.asked
        for run in range(len(scores)):
            if place < lengths[run]:
                noise.run = run
                drawn[run, place] = step.release(offers(step, examples, noise), None, noise).step
    assert sorted(drawn.values()) == list(range(size + 1)), "a threshold is missing, or there twice"
    of, chances = np.zeros(size + 1), np.zeros(size + 1)
    weights = lengths * np.exp((scores - scores.max()) / scale)
    for (run, _), threshold in drawn.items():
        of[threshold] = scores[run]
        chances[threshold] = weights[run] / weights.sum() / lengths[run]
    return of, chances


def errors_of(examples: Examples, size: int) -> Any:
    return np.array([sum((x >= t) != bool(y) for x, y in examples) for t in range(size + 1)])


def some_examples(size: int, rng: np.random.Generator) -> list[Examples]:
    alternating = [(x, x % 2) for x in range(size)]
    backwards = [(x, int(x < size // 2)) for x in range(size)]
    mixed = list(zip(rng.integers(0, size, 9).tolist(), rng.integers(0, 2, 9).tolist(), strict=True))
    return [[], [(0, 0)], [(size - 1, 1)], [(2, 0)] * 3 + [(2, 1)] * 2, alternating, backwards, mixed]


@pytest.mark.parametrize("far", [1, 2, 50])
@pytest.mark.parametrize("size", [3, 8])
def test_every_threshold_has_its_exact_probability(size: int, far: int) -> None:
    """Wherever the axis is cut, also by sections without values."""
    for examples in some_examples(size, np.random.default_rng(size)):
        errors = errors_of(examples, size)
        weights = np.exp(-np.minimum(errors, errors.min() + far) / 1.5)
        for cuts in ([], [1], [size - 1], [2, 2], [1, 2], list(range(1, size))):
            step = cut(step_of(size, far, 1.5), cuts)
            _, chances = scores_and_chances(step, examples)
            assert np.allclose(chances, weights / weights.sum(), rtol=1e-12, atol=0), (examples, cuts)
            assert offers(step, examples, Every()) == offers(step, examples, Every(), order=-1)


def test_scores_that_end_move_by_at_most_one_in_one_direction() -> None:
    """Scores are known up to a constant, so a move is the range of the changes of all thresholds."""
    size, rng = 6, np.random.default_rng(1)
    step = cut(step_of(size, 2), [2, 4])
    labeled = list(itertools.product(range(size), (0, 1)))
    for examples in some_examples(size, rng):
        scores = {
            more: scores_and_chances(step, examples + ([more] if more else []))[0]
            for more in (None, *labeled)
        }
        for one, other in itertools.combinations(scores, 2):
            moved = np.ptp(scores[one] - scores[other])
            alike = one is None or one[1] == other[1]  # a policy keeps labels public
            assert moved <= (1 if alike else 2)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Domains of more than 8 points are wide."""
    monkeypatch.setattr(core.threshold.exponential, "CELLS", 8)


def planned(size: int, epsilon: float, neighbors: Neighbors) -> LearnInSections:
    grid, params = Grid((0.0, 0.0), (size - 1.0, 1.0), 1.0), Threshold(method="exponential")
    plan = THRESHOLD.plan(grid, params, Budget(epsilon, 0.0), neighbors, bytes(16))
    (step,) = plan.rounds
    assert isinstance(step, LearnInSections)
    assert step.far > plan.promises["errors"]
    return step


def test_a_run_of_two_passes_has_the_distribution(narrow: None) -> None:
    """1,000 runs, chi-square at 1e-6; half the scale is rejected with power above 1 - 1e-6."""
    size, examples = 9, [(1, 0), (2, 0), (3, 1), (4, 0), (5, 1), (8, 1)]
    step = planned(size, 0.5, Neighbors("add_or_remove_one"))
    data = [block(examples[:4]), replace(block(examples[4:]), ids=np.arange(4, 6, dtype=np.uint64))]
    noise = SeededNoise(1)
    drawn = [run_in_memory([step], data, None, noise).step for _ in range(1000)]
    counts, errors = np.bincount(drawn, minlength=size + 1), errors_of(examples, size)
    assert fits(counts, np.exp(-errors / 2.0))
    assert not fits(counts, np.exp(-errors / 1.0))


def test_where_an_axis_is_wide_is_public_and_so_is_what_is_charged(narrow: None) -> None:
    labels = Policy(Attribute())
    for neighbors, spread in (
        (Neighbors("add_or_remove_one"), 1),
        (Neighbors("replace_one"), 2),
        (Neighbors("replace_one", labels), 2),
    ):
        choice = planned(10, 0.1, neighbors).learner.choice
        assert choice.spread <= spread and choice.scale == pytest.approx(choice.spread / 0.1)


@pytest.mark.parametrize(
    ("values", "labels"),
    [("spread", "alternating"), ("in one place", "random"), ("in one place", "right")],
)
def test_few_numbers_are_held_whatever_the_data(values: str, labels: str) -> None:
    """A quarter of a million distinct values: what the private stage holds, and what a section has."""
    rng, size, n = np.random.default_rng(0), 1 << 40, 1 << 18
    step = planned(size, 1.0, Neighbors("add_or_remove_one"))
    points = np.sort(rng.integers(0, size, n)) if values == "spread" else size // 3 + np.arange(n)
    ones = {
        "alternating": np.arange(n) % 2,
        "random": rng.integers(0, 2, n),
        "right": np.arange(n) > n // 3,
    }[labels]
    data = Block(np.stack([points, ones], axis=1), rng.permutation(n).astype(np.uint64))
    sample = step.coarse(None).summarize(data, None)
    assert len(sample.points) <= 8 * MOST_SECTIONS
    step = step.coarse(None).finer(sample, None)
    sections = step.summarize(data, None).split(step.sections)
    assert max(map(len, sections)) < 5 * n / MOST_SECTIONS
    noise = SeededNoise(0)
    held = [step.examine(section, None, noise, InMemory()) for section in sections]
    total = sum(held[1:], held[0])
    assert sum(len(offer.points) for offer in total.sections) <= step.most_counts <= CELLS
    tracemalloc.start()
    step.release(total, None, noise)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 * step.most_counts


def test_a_smaller_budget_has_fewer_sections() -> None:
    neighbors = Neighbors("add_or_remove_one")
    sections = [planned(1 << 40, epsilon, neighbors).sections for epsilon in (1.0, 0.02, 1e-6)]
    assert sections[0] == MOST_SECTIONS > sections[1] > sections[2] == 16


@pytest.mark.parametrize("epsilon", [1e-16, 5.83e-18, 1e-18, 1e-300])
def test_errors_end_below_the_largest_integer_whatever_epsilon_is(epsilon: float) -> None:
    """A record more changes no score by more than 1, also where the noise hides all records there are."""
    size = 1 << 40
    grid, params = Grid((0.0, 0.0), (size - 1.0, 1.0), 1.0), Threshold(method="exponential")
    plan = THRESHOLD.plan(grid, params, Budget(epsilon, 0.0), Neighbors("add_or_remove_one"), bytes(16))
    (step,) = plan.rounds
    assert isinstance(step, LearnInSections) and step.most_counts <= size + 1
    seen = []
    for n in (1023, 1024):
        noise = Every(0, 0)
        run_in_memory([step], [block([(size - 1, 1)] * n)], None, noise)
        seen.append(np.ptp(noise.asked[0]))
    assert seen == [1023, 1024]


def test_without_records_there_is_an_answer(narrow: None) -> None:
    step = planned(10, 1.0, Neighbors("add_or_remove_one"))
    drawn = {run_in_memory([step], [block([])], None, SeededNoise(seed)).step for seed in range(300)}
    assert drawn == set(range(11))


def test_where_the_axis_is_cut_is_in_no_plan() -> None:
    """Cuts are secret: no text of a round shows them."""
    step = planned(1 << 40, 1.0, Neighbors("add_or_remove_one"))
    looked = step.coarse(None).finer(step.coarse(None).summarize(block([(7, 0), (9, 1)]), None), None)
    assert len(looked.cuts) and repr(looked) == repr(step)
    total = total_in_memory(step, [block([(7, 0), (9, 1)])], None, SeededNoise(0))
    assert isinstance(total, Offers)
    assert Counts.of(np.array([14, 19])) == step.summarize(block([(7, 0), (9, 1)]), None).counts


@pytest.mark.parametrize("most", [1, 2, 3, 16])
@pytest.mark.parametrize("cuts", [[], [4], [1, 2, 5, 8]])
def test_a_split_has_every_point_once(cuts: list[int], most: int) -> None:
    """With fewer sections than there are cuts for, and with more."""
    step = replace(cut(step_of(9, 2), cuts), before=np.arange(len(cuts) + 1))
    whole = step.summarize(block([(x, x % 2) for x in range(9)]), None)
    parts = whole.split(most)
    assert len(parts) == most
    assert [point for part in parts for point in range(part.low, part.high)] == list(range(9))
    for part in parts:
        assert part.counts.keys.tolist() == [2 * x + x % 2 for x in range(part.low, part.high)]
        if part.low < part.high:
            assert part.before.tolist() == [[0, *cuts].index(part.low)]
    assert Counts.joined([part.counts for part in parts]) == whole.counts
