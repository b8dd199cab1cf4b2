"""How near the solved epsilon is to the smallest one that keeps its promise, on seven tasks.

Of each task a promise is asked for, and `solve` finds an epsilon. Beside it stand three others, each by
bisection with the noise of a run:

- in the plan: the smallest at which the plan promises what was asked;
- on hard rows: the smallest at which what was asked is kept in as many runs as promised, on rows that are
  among the hardest that are known for the method;
- on even rows: the same on rows that are spread evenly. A promise is for any rows, so this one may be far
  smaller.

Run by `make bench-auto`. Arguments: runs at each epsilon, by default 200, then names of tasks; all
without any.
"""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.domain import Grid, Points
from pipelines.choose.solve import solve
from pipelines.simulation.measures import MEASURES
from tests.measured.cases import Case, cube, line
from tests.measured.trials import records_of, runs_of

_ASKED_AT = 0.73
"""What is asked for is what the plan promises at this epsilon, which is none that `solve` tries."""

_FINE = 1.005
"""Ratio at which bisection ends."""

_EVEN = 10_000
"""Records that are spread evenly."""

Rows = Callable[[Case, float, int], Points]
"""Records, from a setting, what is asked for, and the records that the plan needs."""


@dataclass(frozen=True)
class Asked:
    """A promise, and rows that are among the hardest for it.

    Args:
        task: its name.
        grid: the universe.
        promise: the name of the promise.
        rows: the hard records.
        params: the parameters.
    """

    task: str
    grid: Grid
    promise: str
    rows: Rows
    params: Mapping[str, Any]


def _one_value(at_the_end: bool, probability: float) -> Rows:
    """Return records of one value, just as many that the rank of each other value breaks the promise."""
    return lambda case, most, _: np.full(
        (math.floor(most / probability) + 1, 1), case.grid.extents[0] if at_the_end else 0
    )


def _spread(count: int) -> Rows:
    return lambda case, most, _: np.random.default_rng(1).integers(
        0, np.array(case.grid.extents) + 1, (count, case.grid.dimension)
    )


def _everywhere(case: Case, most: float, needed: int) -> Points:
    """Return 5,000 records at every point, so that no count is clipped at 0."""
    return np.repeat(np.arange(case.grid.extents[0] + 1), 5_000)[:, None]


def _two_values(case: Case, most: float, needed: int) -> Points:
    """Return examples of two values, of which all thresholds but one break the promise."""
    wrong = math.floor(most) + 1
    return np.repeat([[0, 0], [1, 1]], [max(needed - wrong, wrong), wrong], axis=0)


ASKED = (
    Asked("median", line(1 << 10), "rank_error", _one_value(True, 0.5), {"interval_share": 0.0}),
    Asked("minimum", line(1 << 10), "rank_error", _one_value(False, 1.0), {}),
    Asked("threshold", Grid((0.0, 0.0), (1023.0, 1.0), 1.0), "errors", _two_values, {"alpha": 0.05}),
    Asked("histogram", line(1 << 10), "cell_error", _spread(100), {"cells": 64}),
    Asked("cdf", line(100), "range_error", _everywhere, {}),
    Asked("k_means", cube(1 << 10, 2), "count_error", _spread(1_000), {"k": 4}),
    Asked("mst_cost", cube(1 << 4, 3), "error", _spread(40), {}),
)
"""Tasks of which hard rows are known, of the kinds of `tests.measured.reaching`."""


def smallest(enough: Callable[[float], bool], high: float, low: float = 1e-3) -> float:
    """Return about the smallest epsilon that is enough, where `high` is and all above it are."""
    while high / low > _FINE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def measured(asked: Asked, runs: int) -> tuple[float, ...]:
    """Return what is asked for, the four epsilons, and the share of runs that keep it at the solved one."""
    case = Case(asked.task, asked.grid, asked.params, _ASKED_AT, "add_or_remove_one", "uniform", _EVEN)
    plan = case.plan()
    if plan is None:
        raise ValueError(f"{asked.task} cannot be planned")
    most = plan.promises[asked.promise]
    solved = solve(_job(case), "privacy.epsilon", asked.promise, repr(most))[1].value
    hard = asked.rows(case, most, plan.promises.get("records_needed", 0))
    even = records_of(case, np.random.default_rng(2))

    def promised(epsilon: float) -> bool:
        found = replace(case, epsilon=epsilon).plan()
        value = None if found is None else found.promises[asked.promise]
        return value is not None and value <= most

    def kept(epsilon: float, points: Points) -> float:
        own = replace(case, epsilon=epsilon)
        found = own.plan()
        if found is None:
            return 0.0
        truth = MEASURES[case.task](own, points)
        done = runs_of(own, found.method, found, truth, runs, 7)
        # where the plan needs more records it promises nothing, but the error is there
        return float(np.mean([each.figures.get(asked.promise, each.error) <= most for each in done.trials]))

    def enough(points: Points) -> Callable[[float], bool]:
        return lambda epsilon: kept(epsilon, points) >= 1 - plan.failure

    in_plan = smallest(promised, solved)
    on_hard, on_even = (smallest(enough(points), solved * 1.5, 0.02) for points in (hard, even))
    return most, solved, in_plan, on_hard, on_even, kept(solved, hard)


def _job(case: Case) -> dict[str, Any]:
    """Return the case as a job without checks of its input, which would take a part of the budget."""
    grid = case.grid
    domain = {"lower": list(grid.lower), "upper": list(grid.upper), "step": grid.step}
    return {
        "task": case.task,
        "input": {"path": "a.parquet", "columns": [f"x{i}" for i in range(grid.dimension)], "checks": 0},
        "domain": domain,
        "privacy": {"epsilon": 1.0, "delta": case.delta, "neighbors": case.relation},
        "params": dict(case.params),
        "output": "out",
    }


def main() -> None:
    """Print a line for each task."""
    runs, names = int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2:]
    print(
        "| promise | asked | solved | in the plan | ratio | hard rows | ratio | even rows | hard rows kept |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for asked in (each for each in ASKED if not names or each.task in names):
        most, solved, in_plan, on_hard, on_even, held = measured(asked, runs)
        figures = [f"{most:.4g}", f"{solved:g}", f"{in_plan:.3f}", f"{solved / in_plan:.3f}"]
        figures += [f"{on_hard:.3f}", f"{solved / on_hard:.2f}", f"{on_even:.3f}", f"{held:.1%}"]
        print(f"| {asked.task} `{asked.promise}` | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
