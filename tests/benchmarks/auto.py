"""Measure what automatic choices cost and whether promises hold, over a grid of settings and shapes of data.

For each task a sample of its settings is drawn by a public seed, and each is run on all shapes. Regret is the
mean error of the method that `auto` takes, over that of the best method. A rule that sees public parameters
alone takes one method for all shapes of a setting. The least regret that any such rule could have is printed
beside that of `auto`. Run by `make bench-auto`.
"""

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.table import Table

from pipelines.simulation.measures import MEASURES
from tests.measured.cases import Case, settings
from tests.measured.kinds import KINDS, measure_kind, settings_of_kind
from tests.measured.trials import FACTOR, Runs, measure

Measured = tuple[Case, dict[str, Runs], str | None]


@dataclass(frozen=True)
class Sample:
    """What of a task's grid is run.

    Args:
        settings: of the grid, each run on all shapes.
        trials: runs of each method on each case.
        seed: public, by which the settings are drawn.
        most: records of a case.
        promising: whether methods that promise nothing are left out.
    """

    settings: int = 6
    trials: int = 300
    seed: int = 1
    most: int = 1_000_000
    promising: bool = False


SAMPLES = {
    **{task: Sample() for task in MEASURES},
    "one_cluster": Sample(
        promising=True
    ),  # `paper` promises nothing at such targets, and takes seconds a run
    "quantiles": Sample(promising=True),
    "k_cover": Sample(most=30_000),
    "k_means": Sample(trials=100, most=30_000),
    "k_median": Sample(trials=100, most=30_000),
    "mst_cost": Sample(most=500),
    "triangles": Sample(most=500),
    "sample_and_aggregate": Sample(settings=24, trials=100, seed=5),
    "cdf": Sample(seed=7),
    "histogram": Sample(settings=128, trials=60),  # 128 are the whole grid
    **{kind: Sample(settings=24, trials=100) for kind in KINDS},
}
"""What `make bench-auto` runs of each task."""


def _measured(job: tuple[Case, int, bool]) -> Measured:
    case, trials, all_methods = job
    if case.kind:
        return case, measure_kind(case, trials), None
    return case, *measure(case, trials, all_methods)


def _cases(task: str, sample: Sample) -> list[Case]:
    """Return all shapes of the settings that are drawn."""
    every = settings_of_kind(task) if task in KINDS else settings(task)
    small = [cases for cases in every if cases[0].n <= sample.most]
    random.Random(f"{sample.seed} {task}").shuffle(small)
    return [case for cases in small[: sample.settings] for case in cases]


def _regrets(measured: Iterable[Measured]) -> list[list[tuple[Case, str, dict[str, float]]]]:
    """For all that `auto` sees, the cases: each with what was taken, and the regret of every method."""
    settings: dict[str, list[tuple[Case, str, dict[str, float]]]] = defaultdict(list)
    for case, runs, taken in measured:
        if taken in runs and len(runs) > 1:
            least = min(each.error for each in runs.values())
            regrets = {method: each.error / least for method, each in runs.items()}
            settings[_public(case)].append((case, taken, regrets))
    return list(settings.values())


def _setting(case: Case) -> str:
    return case.name.replace(f" {case.shape}", "", 1)


def _public(case: Case) -> str:
    """Return what `auto` sees: not the shape, and not the number of records."""
    return _setting(case).replace(f" n={case.n}", "", 1)


def _at(regrets: Sequence[float], share: float) -> float:
    """Return the smallest bound that holds for this share of the regrets."""
    return float(np.quantile(regrets, share, method="inverted_cdf"))


def least_regret(settings: Sequence[Sequence[Mapping[str, float]]], share: float) -> float:
    """Return the least that a rule's regret can be at a share of all cases.

    A rule takes one method for each setting, without regard to the shape. A bound b holds for a share of the
    cases if and only if few enough cases exceed it. The number that exceeds it is a sum over the settings. So
    for each b the best rule takes, in each setting, the method that exceeds b least often. The bounds that
    matter are the regrets themselves.

    Args:
        settings: for each setting, the regret of each method in each case.
        share: part of all cases in which the bound must hold.
    """
    allowed = (1 - share) * sum(map(len, settings)) + 1e-9
    bounds = sorted({regret for cases in settings for case in cases for regret in case.values()})
    exceeding = (sum(_fewest(cases, bound) for cases in settings) for bound in bounds)
    return next(bound for bound, count in zip(bounds, exceeding, strict=True) if count <= allowed)


def _fewest(cases: Sequence[Mapping[str, float]], bound: float) -> int:
    """Return in how many cases the method exceeds a bound that does so least often."""
    methods = {method for case in cases for method in case}
    return min(sum(case.get(method, np.inf) > bound for case in cases) for method in methods)


def _regret_table(measured: dict[str, list[Measured]]) -> Table:
    table = Table(title="regret of auto, and the least of any rule that sees public parameters alone")
    headers = ("task", "cases", "median", "best rule", "95%", "best rule", "worst", "best rule")
    for header in (*headers, "where, taken, best"):
        table.add_column(header, justify="left" if header in ("task", "where, taken, best") else "right")
    for task, found in measured.items():
        settings = _regrets(found)
        cases = [each for setting in settings for each in setting]
        if not cases:
            continue
        ratios = [regrets[taken] for _, taken, regrets in cases]
        methods = [[regrets for *_, regrets in setting] for setting in settings]
        shares = (0.5, 0.95, 1.0)
        figures = [each for share in shares for each in (_at(ratios, share), least_regret(methods, share))]
        case, taken, regrets = cases[int(np.argmax(ratios))]
        best = min(regrets, key=regrets.__getitem__)
        where = f"{case.name}: {taken}, {best}" if max(ratios) > 1.5 else ""
        table.add_row(task, str(len(ratios)), *(f"{figure:.2f}" for figure in figures), where)
    return table


def _coverage_table(measured: dict[str, list[Measured]]) -> Table:
    table = Table(title="coverage: the lowest share of a case's runs in which all promises held")
    for header in ("task", "method", "cases", "promised", "lowest", "too low", "where"):
        table.add_column(header, justify="left" if header in ("task", "method", "where") else "right")
    for task, found in measured.items():
        by_method: dict[str, list[Runs]] = defaultdict(list)
        for _, runs, _ in found:
            for method, each in runs.items():
                if any(trial.figures for trial in each.trials):
                    by_method[method].append(each)
        for method, several in by_method.items():
            lowest = min(several, key=lambda each: each.kept())
            low = sum(each.kept() < each.required() for each in several)
            where = lowest.case.name if low else ""
            promised = f"{1 - lowest.failure:.0%}"
            table.add_row(task, method, str(len(several)), promised, f"{lowest.kept():.0%}", str(low), where)
    return table


def _looseness_table(measured: dict[str, list[Measured]]) -> Table:
    table = Table(title="promised over measured at the promised share, on each setting's friendliest shape")
    for header in (
        "task",
        "method",
        "promise",
        "settings",
        "median",
        "largest",
        f"above {FACTOR:.0f}",
        "where",
    ):
        left = header in ("task", "method", "promise", "where")
        table.add_column(header, justify="left" if left else "right")
    for task, found in measured.items():
        tightest: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for case, runs, _ in found:
            setting = _setting(case)
            for method, each in runs.items():
                for name, promised, quantile in each.looseness():
                    least = 1e-3 if promised == 1.0 else 1.0  # a part of what is allowed, or records
                    ratio = max(least, promised) / max(least, quantile)
                    known = tightest[method, name]
                    known[setting] = min(known.get(setting, np.inf), ratio)
        for (method, name), ratios in tightest.items():
            values = list(ratios.values())
            above, where = sum(value > FACTOR for value in values), max(ratios, key=ratios.__getitem__)
            figures = f"{np.median(values):.2f}", f"{max(values):.2f}", str(above)
            table.add_row(task, method, name, str(len(values)), *figures, where if above else "")
    return table


def main() -> None:
    """Print the three tables of each task as it ends, and of all tasks together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(SAMPLES))
    parser.add_argument("--settings", type=int, help="of each task; each is run on all shapes")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--seed", type=int, help="of the sample of settings")
    parser.add_argument("--most", type=int, help="most records of a case")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    changed = {
        name: value
        for name in ("settings", "trials", "seed", "most")
        if (value := getattr(given, name)) is not None
    }
    measured: dict[str, list[Measured]] = {}
    with ProcessPoolExecutor(given.workers) as pool:
        for task in given.tasks.split(","):
            sample = replace(SAMPLES[task], **changed)
            jobs = [(case, sample.trials, not sample.promising) for case in _cases(task, sample)]
            measured[task] = list(pool.map(_measured, jobs))
            _print({task: measured[task]})
    if len(measured) > 1:
        _print(measured)


def _print(measured: dict[str, list[Measured]]) -> None:
    console = Console(width=230)
    for table in (_regret_table(measured), _coverage_table(measured), _looseness_table(measured)):
        if table.rows:
            console.print(table)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
