"""In every plan with noise by smooth sensitivity, the bound S is smooth and no less than the change.

A planned release is run on databases and on their neighbors. For every draw of admissible noise the exact
values and the scale that the noise is really drawn with are recorded. S is that scale times the charged
alpha. Between neighbors, S may change by a factor of at most e^beta, with the charged beta, and the values by
at most the smaller S in L1. On some of the databases the largest term of S takes many changes to reach: equal
records, and records at the ends of domains of up to 2^40 points.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pytest

from core.domain import Grid
from core.mechanisms import admissible
from core.mechanisms.admissible import ROUNDING, Admissible
from core.mechanisms.smooth_noise import SmoothNoise
from core.quantiles.columns import FocusedColumns
from core.quantiles.smooth import SmoothQuantile
from core.rounds import Block
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import Setting
from tests.pipelines.test_every_plan import aggregate, named
from tests.pipelines.test_every_sensitivity import by_relation

T = TypeVar("T")

_WIDE = (10, 20, 40)  # bits of domains


@dataclass(frozen=True)
class Drawn:
    """One draw of admissible noise: exact values, and the scale that the noise was drawn with."""

    draw: Admissible
    values: tuple[int, ...]
    scale: float

    @property
    def smooth(self) -> float:
        return self.scale * self.draw.alpha


class Recorder(SeededNoise):
    """Notes draws of admissible noise, which it answers by what was noted before, if anything."""

    def __init__(self, answers: list[Any] | None = None) -> None:
        super().__init__(0)
        self._answers = answers
        self.answers: list[Any] = []
        self.drawn: list[Drawn] = []
        self.levels: list[int] = []

    def answer(self, draw: object, sample: Callable[[], T], unit: object = 1.0) -> T:
        if isinstance(draw, Admissible):
            with pytest.MonkeyPatch.context() as patch:
                scales: list[tuple[str, float]] = []

                def none(density: str, scale: float, source: Any) -> int:
                    scales.append((density, scale))
                    return 0

                patch.setattr(admissible, "rounded", none)
                values: Any = sample()
            assert {density for density, _ in scales} == {draw.density}
            (scale,) = {scale for _, scale in scales}
            assert len(values) == len(scales) == draw.axes
            self.drawn.append(Drawn(draw, values, scale))
            value: Any = values
        else:
            value = sample()
        self.answers.append(value)
        return value if self._answers is None else self._answers[len(self.answers) - 1]

    def laplace(self, values: Any, scale: float) -> Any:
        self.levels += np.ravel(values).tolist()
        return np.array(values)


def smooth_settings() -> list[str]:
    """Names of the settings whose rounds hold admissible noise, one for each noise that differs."""
    found = {}
    for name in by_relation():
        for step in named(name).plan.rounds:
            if any(isinstance(draw, Admissible) for draw in step.draws()):
                key = type(step), named(name).job.privacy.neighbors, step.draws()
                found.setdefault(repr(key), name)
    return sorted(found.values())


def bits_of(setting: Setting) -> tuple[int, ...]:
    task = setting.job.task
    return _WIDE if task in ("median", "minimum", "sample_and_aggregate") else (0,)


def widened(setting: Setting, bits: int) -> tuple[Any, np.ndarray]:
    """Return the round with the noise, on a line or box of 2^bits points, and its extents."""
    step, extents = setting.plan.rounds[-1], np.asarray(setting.job.grid.extents)
    if isinstance(step, SmoothQuantile):
        return replace(step, size=1 << bits), np.array([(1 << bits) - 1])
    if isinstance(step, FocusedColumns):
        columns: Any = tuple(replace(each, size=1 << bits) for each in step.columns)
        sizes = (1 << bits,) * len(columns)
        return replace(step, columns=columns, sizes=sizes), np.array(sizes) - 1
    if not bits:
        return step, extents
    top = (1 << min(bits, 30)) - 1  # distances are measured on at most 2^31 points
    grid = Grid((0.0,) * len(extents), (float(top),) * len(extents), 1.0)
    radius = step.radius and replace(step.radius, grid=grid)
    return replace(step, grid=grid, radius=radius), np.full(len(extents), top)


def databases(setting: Setting, extents: np.ndarray) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Give records and those of neighbors."""
    job, rng = setting.job, np.random.default_rng(0)
    low, high = np.zeros_like(extents), extents
    if job.task in ("triangles", "mst_cost"):
        yield from graphs(setting, extents)
        return
    if job.task == "sample_and_aggregate":
        n = setting.job.task_params.blocks
        shapes = [(n, 0, 0), (n // 2 + 2, n - n // 2 - 2, 0), (n // 2 + 40, 0, n - n // 2 - 40)]
        for middle, lower, upper in shapes:
            base = np.concatenate(
                [np.tile(extents // 3, (middle, 1)), np.tile(low, (lower, 1)), np.tile(high, (upper, 1))]
            )
            for other in (low, high, extents // 2):
                for at in (0, n - 1):
                    moved = base.copy()
                    moved[at] = other  # two such changes are grouped, see `core.draws.Draw.changes`
                    yield base, [moved]
        return
    if extents[0] >= 1 << max(_WIDE) - 1:
        yield from walk(setting, extents)
    for n in (1, 2, 3, 40, 601):
        for points in (
            np.tile(extents // 3, (n, 1)),
            np.where(np.arange(n)[:, None] < n // 2, low, high),
            np.where(np.arange(n)[:, None] < n // 3, extents // 5, extents // 3),
            np.where(np.arange(n)[:, None] < n - n // 3, extents // 5, extents // 3),
            rng.integers(0, extents + 1, (n, len(extents))),
        ):
            more = [low, high, extents // 3, extents // 3 + 1]
            at = sorted({0, n // 3, n // 2, n - 1})
            if job.privacy.neighbors == "replace_one":
                others = [np.concatenate([np.delete(points, i, 0), [point]]) for i in at for point in more]
            else:
                others = [np.concatenate([points, [point]]) for point in more]
                others += [np.delete(points, i, 0) for i in at]
            yield points, others


def walk(setting: Setting, extents: np.ndarray) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Give a chain of neighbors, from equal records until none can matter: a bound cut off anywhere jumps."""
    n = 1000
    records = [np.tile(extents // 3, (n, 1))]
    for k in range(n):
        if setting.job.privacy.neighbors == "replace_one":
            here = records[-1].copy()
            here[k] = extents
        else:
            here = np.tile(extents // 3, (k + 1, 1))
        records.append(here)
    if setting.job.privacy.neighbors != "replace_one":
        records[0] = records[1][:0]
    for before, after in itertools.pairwise(records):
        yield before, [after]


def graphs(setting: Setting, extents: np.ndarray) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Give edges and those of neighbors, one change of `CountTriangles` or `SmoothCost` apart."""
    rng, nodes, weighted = np.random.default_rng(1), int(extents[0]) + 1, len(extents) > 2
    public = setting.job.task == "mst_cost" and setting.job.task_params.change == "weight"
    few = min(nodes, 9 if weighted else 40)
    pairs = np.array(list(itertools.combinations(range(few), 2)))
    star = np.stack([np.zeros(few - 1, dtype=np.int64), np.arange(1, few)], axis=1)
    book = np.concatenate([star, np.stack([np.ones(few - 2, dtype=np.int64), np.arange(2, few)], axis=1)])
    for edges in (pairs, star, book, pairs[rng.random(len(pairs)) < 0.5], pairs[:0]):
        for weigh in ("equal", "random", "bridge") if weighted else ("",):
            rows = edges
            if weighted:
                weights = {
                    "equal": np.full(len(edges), extents[2] // 4),
                    "random": rng.integers(0, extents[2] + 1, len(edges)),
                    "bridge": np.where((edges == few - 1).any(axis=1), extents[2] // 2, 1),
                }[weigh]
                rows = np.column_stack([edges, weights])
            others = []
            for i in range(0, len(rows), max(1, len(rows) // 6)):
                if not public:
                    others.append(np.delete(rows, i, 0))
                if weighted:
                    for weight in (0, extents[2]):
                        changed = rows.copy()
                        changed[i, 2] = weight
                        others.append(changed)
            if not public:
                new = [[0, 1, *([0] if weighted else [])], [2, few - 1, *([0] if weighted else [])]]
                others += [np.concatenate([rows, [row]]) for row in new]
            yield rows, others


def released(step: Any, state: Any, points: np.ndarray, answers: list[Any] | None = None) -> Recorder:
    noise = Recorder(answers)
    block = Block(points.astype(np.int64), np.arange(len(points), dtype=np.uint64))
    step.release(aggregate(step, [block], state), state, noise)
    return noise


@pytest.mark.parametrize("name", smooth_settings())
def test_the_bound_is_smooth_and_covers_the_change(name: str) -> None:
    setting = named(name)
    for bits in bits_of(setting):
        step, extents = widened(setting, bits)
        for points, others in databases(setting, extents):
            ours = released(step, setting.plan.start, points)
            assert ours.drawn
            for other in others:
                theirs = released(step, setting.plan.start, other, ours.answers)
                for mine, its in zip(ours.drawn, theirs.drawn, strict=True):
                    assert mine.draw == its.draw
                    small, large = sorted([mine.smooth, its.smooth])
                    most = math.exp(mine.draw.beta + ROUNDING)
                    assert large <= small * most * (1 + ROUNDING), f"{bits} bits: {small} to {large}"
                    change = sum(abs(a - b) for a, b in zip(mine.values, its.values, strict=True))
                    assert change <= small * (1 + ROUNDING), f"{bits} bits: {change} of {small}"
                if isinstance(getattr(step, "smooth", None), SmoothNoise) and step.smooth.level is not None:
                    assert abs(ours.levels[-1] - theirs.levels[-1]) <= step.smooth.level.sensitivity
