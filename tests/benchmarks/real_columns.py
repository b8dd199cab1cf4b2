"""Measure promises and automatic choices on real columns and on amounts, where shapes are nobody's design.

Ranks: median, minimum and maximum in domains of 2^20 and 2^31 points, and 49 quantiles of columns with ties,
each by every method that promises something; what `auto` takes is marked. Blocks: slopes of regressions, and
how many of the blocks' answers a released radius really holds. Real columns need `SHOAL_DATA`. Run by
`make bench-auto`.
"""

import argparse
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.rounds import run_in_memory
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.task import SAMPLE_AND_AGGREGATE
from core.secure_noise import SecureNoise, secret_salt
from shoal.analyses.regression import linear
from tests.measured.cases import Case, evenly, line
from tests.measured.trials import measure
from transforms.evaluate_subsamples import evaluate_in_memory
from transforms.open_source import open_source
from transforms.run_function import Function
from transforms.split_units import Splitting

Floats = NDArray[np.float64]

CENTS = line(1 << 31)
ADD = Neighbors("add_or_remove_one")
REGRESSIONS = {
    "flights: arr_delay on dep_delay, distance": ("flights_nyc13", ("dep_delay", "distance", "arr_delay")),
    "adult: hours on age, education": ("adult", ("age", "education_num", "hours_per_week")),
    "letter: f5 on f0 to f4": ("letter", ("f0", "f1", "f2", "f3", "f4", "f5")),
}


def made_up() -> Iterator[tuple[str, str, dict[str, bool], Floats]]:
    """Return amounts in cents: a name, a task, its parameters, the amounts."""
    rng = np.random.default_rng(20_131)
    yield "uniform cents", "minimum", {}, rng.uniform(1e6, 2e9, 10_000)
    yield "uniform cents", "minimum", {"largest": True}, rng.uniform(1e6, 2e9, 3_000)
    yield "lognormal cents", "median", {}, np.exp(rng.normal(9, 2.5, 500))
    yield "lognormal cents", "minimum", {"largest": True}, np.exp(rng.normal(9, 2, 4_000))
    yield "Pareto cents", "median", {}, 500 * (1 + rng.pareto(0.8, 2_000))


def column(folder: Path, file: str, name: str, scale: float, offset: float = 0.0) -> Floats:
    """Return the values of a column, as steps, without nulls."""
    values = pq.read_table(folder / f"{file}.parquet", columns=[name])[name].drop_null().to_numpy()
    return np.round((values.astype(np.float64) + offset) * scale)


def real_amounts(folder: Path) -> Iterator[tuple[str, str, dict[str, bool], Floats]]:
    """Return real columns as steps of a domain of 2^31 points."""
    rng = np.random.default_rng(17)
    gains = column(folder, "adult", "capital_gain", 100)
    latitudes = column(folder, "checkins_gowalla", "lat", 1e7, 90)
    weights = column(folder, "adult", "fnlwgt", 100)
    yield "capital_gain above 0, cents", "median", {}, rng.choice(gains[gains > 0], 500, replace=False)
    yield "capital_gain, cents", "minimum", {"largest": True}, gains
    yield "gowalla lat, 1e-7 degrees", "median", {}, rng.choice(latitudes, 500, replace=False)
    yield "gowalla lat, 1e-7 degrees", "minimum", {}, rng.choice(latitudes, 10_000, replace=False)
    yield "fnlwgt, hundredths", "minimum", {"largest": True}, rng.choice(weights, 3_000, replace=False)


def tied(folder: Path) -> Iterator[tuple[str, Grid, Floats]]:
    """Return real columns with ties: name, universe, values."""
    rng = np.random.default_rng(18)
    for file, name, points, scale, offset, n in (
        ("adult", "capital_gain", 1 << 17, 1, 0, 2_000),
        ("adult", "capital_gain", 1 << 17, 1, 0, 48_842),
        ("adult", "age", 100, 1, 0, 2_000),
        ("visits_gowalla", "visits", 1 << 12, 1, 0, 20_000),
        ("checkins_gowalla", "lat", 18_001, 100, 90, 20_000),
        ("flights_nyc13", "air_time", 1_000, 1, 0, 20_000),
    ):
        values = column(folder, file, name, scale, offset)
        grid = line(points)
        values = np.clip(values, 0, points - 1)
        yield f"{file} {name}, n = {n:,}", grid, rng.choice(values, n, replace=False)


def rank_rows(case: Case, name: str, values: Floats, trials: int) -> Iterator[tuple[str, ...]]:
    """Return for each method what is promised, measured and kept."""
    points = values.astype(np.int64)[:, None]
    runs, taken = measure(case, trials, all_methods=False, points=points)
    for method, each in runs.items():
        errors = [trial.error for trial in each.trials]
        promised = each.promises["rank_error"]
        what = "maximum" if case.params.get("largest") else case.task
        yield (
            name,
            what,
            f"{case.epsilon:g}",
            f"{method}{' (auto)' if method == taken else ''}",
            f"{promised:,.0f}" if promised is not None else "none",
            f"{np.median(errors):.3g}",
            f"{np.quantile(errors, 0.9, method='higher'):.3g}",
            f"{each.kept():.1%}",
        )


def block_rows(folder: Path, blocks: int, bound: float, trials: int) -> Iterator[tuple[str, ...]]:
    """Return for each regression and aggregator how close the slopes are, and what its radius holds."""
    for name, (file, columns) in REGRESSIONS.items():
        path = folder / f"{file}.parquet"
        truth = linear(pq.read_table(path, columns=list(columns)).drop_null())
        grid = Grid((-bound,) * len(truth), (bound,) * len(truth), bound / 2**24)
        salt = zlib.crc32(name.encode()).to_bytes(16, "big")
        splitting = Splitting((source := open_source(str(path), columns)).columns, None, blocks, salt)
        function = Function("shoal.analyses.regression:linear", grid)
        answers = list(evaluate_in_memory(source, splitting, function))
        points = np.concatenate([answer.points for answer in answers])
        spread = np.abs(grid.restore(np.median(points, axis=0)) - truth).max()
        for aggregator in ("auto", "median", "smooth_median", "one_cluster", "average"):
            plan = SAMPLE_AND_AGGREGATE.plan(
                grid, SampleAndAggregate(blocks, aggregator), Budget(1.0, 1e-6), ADD, secret_salt()
            )
            found = [run_in_memory(plan.rounds, answers, plan.start, SecureNoise()) for _ in range(trials)]
            stable = [each for each in found if isinstance(each, Stable)]
            off = [np.abs(grid.restore(each.value) - truth).max() for each in stable]
            held = [
                (((points - each.value) ** 2).sum(axis=1) <= each.radius**2).mean()
                for each in stable
                if each.radius is not None
            ]
            promised = plan.promises["radius_blocks"]
            yield (
                name,
                f"{blocks:,}",
                f"{bound:g}",
                f"auto ({plan.method})" if aggregator == "auto" else aggregator,
                f"{np.median(off):.3g}" if stable else "not found",
                f"{spread:.3g}",
                "none" if promised is None else f"{0.8 * blocks - promised:.0f}",
                f"{np.quantile(held, 0.1, method='lower') * blocks:.0f}" if held else "none released",
            )


def shown(title: str, headers: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Table:
    """Return a table of rows, each printed at once."""
    table = Table(*headers, title=title)
    for cells in rows:
        table.add_row(*cells)
        print(*cells, sep=" | ", flush=True)
    return table


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300, help="of ranks; a tenth for blocks")
    parser.add_argument("--data", default=os.environ.get("SHOAL_DATA", ""), help="folder of real datasets")
    given = parser.parse_args()
    folder = Path(given.data)
    real = bool(given.data)
    headers = ("column", "what", "epsilon", "method", "promised", "median", "90%", "kept")

    def amounts() -> Iterator[tuple[str, ...]]:
        for name, task, params, values in [*made_up(), *(real_amounts(folder) if real else ())]:
            values = np.clip(values, 0, CENTS.extents[0])
            case = Case(task, CENTS, params, 1.0, "add_or_remove_one", "", len(values))
            yield from rank_rows(case, f"{name}, n = {len(values):,}", values, given.trials)

    def ties() -> Iterator[tuple[str, ...]]:
        for name, grid, values in tied(folder) if real else ():
            for epsilon in (0.1, 1.0):
                params = {"probabilities": evenly(49)}
                case = Case("quantiles", grid, params, epsilon, "add_or_remove_one", "", len(values))
                yield from rank_rows(case, name, values, given.trials // 5)

    def slopes() -> Iterator[tuple[str, ...]]:
        for blocks in (60, 100, 200, 1_000) if real else ():
            for bound in (2.0, 1e3, 1e5):
                yield from block_rows(folder, blocks, bound, max(given.trials // 10, 1))

    tables = [
        shown("one rank in 2^31 points, errors in rows", headers, amounts()),
        shown("49 quantiles: root mean square of errors in rows", headers, ties()),
        shown(
            "slopes by blocks, epsilon 1, delta 1e-6: largest error of a slope, and blocks in the radius",
            ("regression", "blocks", "bounds", "aggregator", "error", "of exact median", "promised", "10%"),
            slopes(),
        ),
    ]
    for table in tables:
        Console(width=190).print(table)


if __name__ == "__main__":
    main()
