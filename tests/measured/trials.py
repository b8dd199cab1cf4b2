"""Runs of every method on a case: what the choice costs, and how often promises hold."""

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.domain import Points
from core.plan import Plan
from core.rounds import Block
from pipelines.simulation.measure import Measure
from pipelines.simulation.measures import MEASURES
from pipelines.simulation.shapes import records_for
from pipelines.simulation.simulate import run_often
from tests.core.seeded import SeededNoise
from tests.measured.cases import Case

FACTOR = 3.0
"""Most that a promise should exceed the measured quantile where data are friendliest to it."""


@dataclass(frozen=True)
class Trial:
    """One run of one method: its error, and the figures that its promises speak of."""

    error: float
    figures: dict[str, float]


@dataclass(frozen=True)
class Runs:
    """Runs of one method on one case.

    Args:
        case: the setting, and the shape of the data.
        method: name of the method.
        promises: the plan's.
        failure: probability with which any promise may fail.
        trials: the runs.
        most: see `Measure.most`.
    """

    case: Case
    method: str
    promises: dict[str, Any]
    failure: float
    trials: tuple[Trial, ...]
    most: float = math.inf

    @property
    def error(self) -> float:
        """The mean error.

        It is finite with any noise, because every answer lies in the domain. A median would be chance where
        an answer is exact in about half of the runs, as where released values are clipped or records tied.
        """
        return float(np.mean([trial.error for trial in self.trials]))

    def kept(self) -> float:
        """Share of the runs in which every promise held."""
        return float(np.mean([not self.broken(trial) for trial in self.trials]))

    def broken(self, trial: Trial) -> list[str]:
        """Names of the promises that a run broke. A promise of None promises nothing."""
        return [
            name
            for name, measured in trial.figures.items()
            if self.promises[name] is not None and measured > allowed(self.promises[name]) * (1 + 1e-9)
        ]

    def required(self) -> float:
        """Smallest share that so many runs may show if promises hold as stated: three deviations below."""
        deviation = math.sqrt(self.failure * (1 - self.failure) / len(self.trials))
        return 1 - self.failure - 3 * deviation

    def looseness(self) -> Iterator[tuple[str, float, float]]:
        """For each promise that says something: its name, what is promised, and the measured quantile.

        The quantile is that at 1 - failure.
        """
        for name in {name for trial in self.trials for name in trial.figures}:
            promised = self.promises[name]
            if promised is not None and allowed(promised) < self.most:
                measured = [trial.figures[name] for trial in self.trials if name in trial.figures]
                yield (
                    name,
                    allowed(promised),
                    float(np.quantile(measured, 1 - self.failure, method="higher")),
                )


def allowed(promised: Any) -> float:
    """Return the largest figure that keeps a promise; one for each axis is measured as a part of 1."""
    return 1.0 if isinstance(promised, tuple) else float(promised)


def measure(
    case: Case, trials: int, all_methods: bool = True, points: Points | None = None
) -> tuple[dict[str, Runs], str | None]:
    """Run every method on a case.

    Args:
        case: the setting and the shape.
        trials: runs of each method, each with noise of its own on the same records.
        all_methods: if not, those that promise nothing are left out.
        points: the records, if they are others than those of the case's shape.

    Returns:
        The runs of each method that serves the setting, and the method that `auto` takes; None where no
        method serves it.
    """
    seed = zlib.crc32(case.name.encode())
    truth = MEASURES[case.task](
        case, records_of(case, np.random.default_rng(seed)) if points is None else points
    )
    chosen = case.plan()
    if chosen is None:
        return {}, None
    found = {}
    for method in case.methods():
        plan = chosen if method == chosen.method else case.plan(method)
        if plan is not None and (all_methods or any(value is not None for value in plan.promises.values())):
            found[method] = runs_of(case, method, plan, truth, trials, seed)
    return found, chosen.method


def records_of(case: Case, rng: np.random.Generator) -> Points:
    """Return the records of a case."""
    return records_for(case.task, case.shape, case.n, case.grid, rng)


def runs_of(
    case: Case,
    method: str,
    plan: Plan,
    truth: Measure,
    trials: int,
    seed: int,
    block: Block | None = None,
) -> Runs:
    """Run a plan, each time with noise of its own; on the records of the truth, or on those of a block."""
    block = block or Block(truth.points, np.arange(len(truth.points), dtype=np.uint64))
    noises = [SeededNoise(seed + number) for number in range(trials)]
    done = [
        Trial(max(truth.least, truth.error(state)), dict(truth.figures(state, plan.promises)))
        for state in run_often(plan, block, noises)
    ]
    return Runs(case, method, dict(plan.promises), plan.failure, tuple(done), truth.most)
