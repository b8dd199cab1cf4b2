"""Measure what automatic choices cost and whether promises hold, over a grid of settings and shapes of data.

For each task a sample of its settings is drawn by a public seed, and each is run on all shapes. Regret is the
median error of the method that `auto` takes, over that of the best method. Run by `make bench-auto`.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.measured.cases import Case, settings
from tests.measured.measures import MEASURES
from tests.measured.trials import FACTOR, Runs, measure

Measured = tuple[Case, dict[str, Runs], str | None]


def _measured(job: tuple[Case, int, bool]) -> Measured:
    case, trials, all_methods = job
    return case, *measure(case, trials, all_methods)


def _sample(task: str, count: int, most: int, seed: int) -> list[Case]:
    """Return all shapes of `count` settings of at most `most` records."""
    small = [cases for cases in settings(task) if cases[0].n <= most]
    random.Random(f"{seed} {task}").shuffle(small)
    return [case for cases in small[:count] for case in cases]


def _regrets(measured: Iterable[Measured]) -> Iterator[tuple[float, Case, str, str]]:
    """For each case that several methods serve: regret, the case, what was taken and what was best."""
    for case, runs, taken in measured:
        if taken in runs and len(runs) > 1:
            best = min(runs, key=lambda name: runs[name].error)
            yield runs[taken].error / runs[best].error, case, taken, best


def _regret_table(measured: dict[str, list[Measured]]) -> Table:
    table = Table(title="regret of auto: its median error over that of the best method")
    for header in ("task", "cases", "median", "95%", "worst", "where, taken, best"):
        table.add_column(header, justify="left" if header in ("task", "where, taken, best") else "right")
    for task, found in measured.items():
        regrets = list(_regrets(found))
        if not regrets:
            continue
        worst, case, taken, best = max(regrets, key=lambda each: each[0])
        ratios = [regret for regret, *_ in regrets]
        figures = (float(np.median(ratios)), float(np.quantile(ratios, 0.95)), worst)
        where = f"{case.name}: {taken}, {best}" if worst > 1.5 else ""
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
            setting = case.name.replace(f" {case.shape}", "", 1)
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
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(MEASURES))
    parser.add_argument("--settings", type=int, default=12, help="of each task; each is run on all shapes")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--most", type=int, default=1_000_000, help="most records of a case")
    parser.add_argument("--seed", type=int, default=1, help="of the sample of settings")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--promising", action="store_true", help="leave out methods that promise nothing")
    given = parser.parse_args()
    measured: dict[str, list[Measured]] = {}
    with ProcessPoolExecutor(given.workers) as pool:
        for task in given.tasks.split(","):
            cases = _sample(task, given.settings, given.most, given.seed)
            jobs = [(case, given.trials, not given.promising) for case in cases]
            measured[task] = list(pool.map(_measured, jobs))
    console = Console(width=230)
    for table in (_regret_table(measured), _coverage_table(measured), _looseness_table(measured)):
        console.print(table)


if __name__ == "__main__":
    main()
