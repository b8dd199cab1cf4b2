"""Records that are not plain rows: those of groups, of units, of counted rows, and rows under a policy.

A kind is a task whose records come to be in another way. Its promises are measured like those of plain rows,
on the six shapes, also with few records and with very small and large epsilons.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.budget import Budget
from core.domain import Points
from core.each_group import strands_of
from core.errors import InvalidValue
from core.grouping import Contributions, Grouping
from core.groups import GroupedPlan, plan_groups
from core.labels import Labels
from core.neighbors import Neighbors
from core.plan import Plan
from core.policy import Attribute, Distance, DistancePerAxis, Full, KnownCount, Partition, Policy
from core.rounds import Block, run_in_memory
from core.statistics.found import Groups, Totals
from pipelines.simulation.measure import INFINITE
from pipelines.simulation.measures import MEASURES
from pipelines.simulation.shapes import SHAPES, unit_records
from pipelines.simulation.simulate import run_often
from pipelines.simulation.statistics_measure import StatisticsMeasure
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.measured.cases import RELATIONS, SALT, Case, grids_of
from tests.measured.trials import Runs, Trial, records_of, runs_of
from transforms.bound_units import Bounding
from transforms.count_records import copies

EPSILONS = (0.01, 0.1, 1.0, 10.0)
SIZES = (20, 500, 5_000)
MOST_IN_LINE = 1 << 20
"""Grid points of a line at most."""

PARTS = {"half": 0.5, "a tenth": 0.1, "one record": 0.0, "empty": 0.0}
"""Groups, and their parts of the records. Records of other groups are left out."""

LABELS = tuple(f'["{name}"]' for name in PARTS)

NEAR = "near 8"

POLICIES: dict[str, Callable[[Points, tuple[int, ...]], Policy]] = {
    "near 1": lambda points, extents: Policy(Distance(1)),
    NEAR: lambda points, extents: Policy(Distance(8)),
    "parts": lambda points, extents: Policy(Partition((8,) * len(extents))),
    "one axis": lambda points, extents: Policy(DistancePerAxis((8, *(0 for _ in extents[1:])))),
    "attribute": lambda points, extents: Policy(Attribute()),
    "a known count": lambda points, extents: Policy(Full(), (half(points, extents, 0),)),
    "known halves": lambda points, extents: Policy(
        Full(), (half(points, extents, 0), half(points, extents, 1))
    ),
}


def half(points: Points, extents: tuple[int, ...], which: int) -> KnownCount:
    """Return how many records are in the lower (0) or upper (1) half of the first axis, as it is known."""
    middle = extents[0] // 2
    low, high = ((0, middle), (middle + 1, extents[0]))[which]
    inside = int(((points[:, 0] >= low) & (points[:, 0] <= high)).sum())
    return KnownCount((low, *(0 for _ in extents[1:])), (high, *extents[1:]), inside)


@dataclass(frozen=True)
class UnitsMeasure(StatisticsMeasure):
    """Statistics of records whose units are given."""

    units: NDArray[np.int64] | None = None

    @property
    def _units(self) -> Any:
        return np.unique(np.arange(0) if self.units is None else self.units, return_inverse=True)[1]


def _plan(
    case: Case, method: str, budget: Budget | None = None, policy: Policy | None = None, **more: Any
) -> Plan:
    core = TASKS[case.task].core
    choice = {} if core.choice is None else {core.choice: method}
    relation = "add_or_remove_one" if budget is not None else case.relation
    return core.plan(
        case.grid,
        core.params(**{**case.params, **choice, **more}),
        budget or Budget(case.epsilon, case.delta),
        Neighbors(relation, policy),
        SALT,
    )


def _plans(case: Case, planned: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    """Yield the plan of each method that serves a case."""
    for method in case.methods():
        try:
            yield method, planned(method)
        except InvalidValue:
            continue


def _in_groups(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the group of each of n records, -1 of those that are in none."""
    ends = np.cumsum([round(part * n) for part in PARTS.values()])
    place = rng.permutation(n)
    groups = np.searchsorted(ends, place, side="right")
    groups[groups >= 2] = -1
    groups[place == n - 1] = 2
    return groups


def of_rows(case: Case, trials: int, rng: np.random.Generator) -> Iterator[Runs]:
    """Run a question about plain rows, with parameters that its grid of settings does not have."""
    truth = MEASURES[case.task](case, records_of(case, rng))
    for method, plan in _plans(case, lambda method: _plan(case, method)):
        yield runs_of(case, method, plan, truth, trials, int(rng.integers(1 << 62)))


def by_group(case: Case, trials: int, rng: np.random.Generator, units_in: int = 1) -> Iterator[Runs]:
    """Run a question about each group by itself, as a job with `group_by` does."""
    points = records_of(case, rng)
    groups = _in_groups(len(points), rng)
    changes = 2 if case.relation == "replace_one" else 1
    of_a_column = case.grid.extents[0] + 1 if case.grid.dimension == 1 else 0
    budget = Budget(case.epsilon, case.delta)

    def planned(method: str) -> GroupedPlan:
        return plan_groups(lambda part: _plan(case, method, part), budget, changes, units_in)

    for method, plan in _plans(case, planned):
        strands = strands_of(plan.rounds, plan.start, len(PARTS), of_a_column)
        own = [points[groups == number] for number in range(len(PARTS))]
        blocks = [Block(part, np.arange(len(part), dtype=np.uint64)) for part in own]
        if len(strands) == 1:  # all groups in one pass
            kept = groups >= 0
            blocks = [Block(points[kept], np.flatnonzero(kept).astype(np.uint64), None, groups[kept])]
        found: list[list[Any]] = [[] for _ in PARTS]
        for trial in range(trials):
            noise = SeededNoise(int(rng.integers(1 << 62)) + trial)
            several = zip(strands, blocks, strict=True)
            last = [run_in_memory(each.rounds, [block], each.start, noise) for each, block in several]
            last = [state for _, state in sorted(last[0])] if len(strands) == 1 else last
            for states, state in zip(found, last, strict=True):
                states.append(state)
        for name, part, states in zip(PARTS, own, found, strict=True):
            truth = MEASURES[case.task](replace(case, n=len(part)), part)
            done = tuple(Trial(0.0, dict(truth.figures(each, plan.each.promises))) for each in states)
            promises = dict(plan.each.promises)
            yield Runs(case, f"{method}, {name}", promises, plan.each.failure, done, truth.most)


def under_policy(case: Case, trials: int, rng: np.random.Generator) -> Iterator[Runs]:
    """Run a question under each policy that serves it; the number of records is public."""
    case = replace(case, relation="replace_one")
    points = records_of(case, rng)
    truth = MEASURES[case.task](case, points)
    serve = {each.name for each in TASKS[case.task].core.methods if each.uses_policy}
    for name, made in POLICIES.items():
        policy = made(points, case.grid.extents)
        for method, plan in _plans(case, lambda method, policy=policy: _plan(case, method, policy=policy)):
            if method in serve or name == NEAR:  # without use of a policy, runs are the same under each
                runs = runs_of(case, method, plan, truth, trials, int(rng.integers(1 << 62)))
                yield replace(runs, method=f"{method}, {name}")


def of_means(case: Case, trials: int, rng: np.random.Generator) -> Iterator[Runs]:
    """Run a question about units, each with the mean of its rows, which lie between grid points.

    Promises are about means that are rounded to the grid.
    """
    rows = 1 + rng.integers(0, 5, case.n)
    units = np.repeat(np.arange(case.n), rows)
    values = unit_records(case.shape, (len(units), case.grid.dimension), rng) * case.grid.extents
    names = tuple(f"x{axis}" for axis in range(case.grid.dimension))
    bounding = Bounding(names, case.grid, "unit", "mean", SALT)
    batch = pa.record_batch(dict(zip(names, np.ascontiguousarray(values.T), strict=True)))
    gathered: dict[int, list[bytes]] = {}
    for number, piece in bounding.split(batch, pa.array(units)):
        gathered.setdefault(number, []).append(piece)
    blocks = [
        block
        for number, parts in gathered.items()
        for block in bounding.reader.blocks(bounding.bound(number, parts))
    ]
    points, ids = (np.concatenate([getattr(each, name) for each in blocks]) for name in ("points", "ids"))
    steps = np.rint(values)  # rows are rounded, and then their mean: whatever the order of the rows
    true = np.floor([np.bincount(units, axis) / rows + 0.5 for axis in steps.T]).astype(np.int64).T
    assert np.array_equal(np.sort(points, axis=0), np.sort(true, axis=0))
    truth = MEASURES[case.task](case, true)
    for method, plan in _plans(case, lambda method: _plan(case, method)):
        yield runs_of(case, method, plan, truth, trials, int(rng.integers(1 << 62)), Block(points, ids))


def of_counts(case: Case, trials: int, rng: np.random.Generator) -> Iterator[Runs]:
    """Run a question about rows that stand for several records each, or for none, by `input.count`."""
    rows = max(4, case.n // 5)
    points = records_of(replace(case, n=rows), rng)
    counts = np.floor(10 * unit_records(case.shape, (rows, 1), rng)[:, 0]).astype(np.int64) - 1
    counts[0] = case.n
    batch = pa.record_batch({str(axis): points[:, axis] for axis in range(points.shape[1])} | {"n": counts})
    parts = list(copies(batch, np.arange(rows, dtype=np.uint64), "n", 1_000))
    read = np.concatenate(
        [np.stack([each[i].to_numpy() for i in range(points.shape[1])], 1) for each, _ in parts]
    )
    block = Block(read, np.concatenate([ids for _, ids in parts]))
    true = np.repeat(points, np.maximum(0, counts), axis=0)
    truth = MEASURES[case.task](replace(case, n=len(true)), true)
    for method, plan in _plans(case, lambda method: _plan(case, method)):
        yield runs_of(case, method, plan, truth, trials, int(rng.integers(1 << 62)), block)


def of_units(
    case: Case, trials: int, rng: np.random.Generator, bounds: Contributions, keys: str | None
) -> Iterator[Runs]:
    """Run statistics of units with several rows, in several groups or without groups.

    Args:
        case: the setting.
        trials: runs of each method.
        rng: where records come from.
        bounds: what units contribute. They have no more, so that all rows are kept.
        keys: `public`, `private`, or None without groups.
    """
    many = max(4, case.n // bounds.rows)
    rows = rng.integers(1, bounds.rows + 1, many)
    of_unit = np.repeat(np.arange(many), rows)
    groups = np.tile(_in_groups(many, rng), (bounds.groups, 1))
    for other in range(1, bounds.groups):  # a unit is in further groups
        groups[other] = np.where(rng.random(many) < 0.3, other - 1, -1)
        groups[other][(groups[:other] == groups[other]).any(axis=0)] = -1
    units = np.tile(of_unit, bounds.groups)
    group = np.concatenate([each[of_unit] for each in groups]) if keys else np.zeros(len(units), np.int64)
    kept = group >= 0
    units, group = units[kept], group[kept]
    points = records_of(replace(case, n=len(units)), rng)
    order = np.argsort(units, kind="stable")
    units, group, points = units[order], group[order], points[order]
    labels = Labels(LABELS)
    grouping = Grouping(("key",), labels if keys == "public" else None, (None,)) if keys else None
    block = Block(points, units.astype(np.uint64), None, group if keys else None, labels.array)
    more = {"grouping": grouping, "contributions": bounds}
    numbers = range(len(PARTS) if keys else 1)
    truths = [
        UnitsMeasure(replace(case, n=1, bounds=bounds), points[group == at], units[group == at])
        for at in numbers
    ]
    for method, plan in _plans(case, lambda method: _plan(case, method, **more)):
        found = [[] for _ in numbers]
        for state in run_often(plan, block, [SeededNoise(int(rng.integers(1 << 62))) for _ in range(trials)]):
            for at in numbers:
                found[at].append(_figures(state, LABELS[at].encode(), truths[at], plan, keys))
        if keys != "private":  # promises cover all groups at once
            found = [[_largest(of_groups) for of_groups in zip(*found, strict=True)]]
        for at, each in enumerate(found):
            trial = tuple(Trial(0.0, figures) for figures in each)
            name = f"{method}, {list(PARTS)[at]}" if keys == "private" else method
            yield Runs(case, name, dict(plan.promises), plan.failure, trial)


def _largest(of_groups: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the largest figure of all groups for each promise."""
    names = {name for figures in of_groups for name in figures}
    return {name: max(figures[name] for figures in of_groups if name in figures) for name in names}


def _figures(state: Any, label: bytes, truth: UnitsMeasure, plan: Plan, keys: str | None) -> dict[str, float]:
    """Return the figures of one group, or of all records. Of a missing group, that it is missing."""
    of = state
    if isinstance(state, Groups):
        places = np.flatnonzero(state.labels == label)
        many, least = len(np.unique(truth._units)), plan.promises["found_from"]
        found = {} if least is None or many < least else {"found_from": least if len(places) else INFINITE}
        if not len(places):
            return found
        at = slice(places[0], places[0] + 1)
        of = Totals(state.totals[at], state.reading, state.steps[at])
        return {**found, **truth.figures(of, plan.promises)}
    return dict(truth.figures(of, plan.promises))


@dataclass(frozen=True)
class Kind:
    """A kind of records.

    Args:
        task: that is asked about them.
        runs: returns the runs of each method on a case.
        params: of the task; None for those of its grid of settings.
    """

    task: str
    runs: Callable[[Case, int, np.random.Generator], Iterator[Runs]]
    params: tuple[dict[str, Any], ...] | None = None


def _of_statistics(
    bounds: Contributions, keys: str | None, params: tuple[dict[str, Any], ...] | None = None
) -> Kind:
    several = (
        {"measures": ("count", "units", "sum", "mean")},
        {"measures": ("mean",)},
        {"measures": ("sum",)},
    )
    ranks = ({"measures": ("count", {"quantiles": (0.1, 0.5, 0.9)}, "minimum", "maximum")},)
    return Kind(
        "statistics",
        lambda *given: of_units(*given, bounds, keys),
        several + ranks if params is None else params,
    )


SUMS = ({"measures": ("sum", "count")}, {"measures": ("sum",)})

COVERS = ({"k": 2, "target": 300}, {"k": 2, "coverage": 0.3}, {"k": 3, "coverage": 0.9})

KINDS: dict[str, Kind] = {
    "k_cover of few rows": Kind("k_cover", of_rows, COVERS),
    **{f"{task} by group": Kind(task, by_group) for task in ("quantiles", "histogram", "cdf", "ranges")},
    "quantiles by group of units": Kind("quantiles", lambda *given: by_group(*given, 3)),
    **{f"{task} under policies": Kind(task, under_policy) for task in ("k_means", "k_median", "histogram")},
    **{f"{task} of means": Kind(task, of_means) for task in ("quantiles", "statistics", "histogram")},
    **{
        f"{task} of counted rows": Kind(task, of_counts)
        for task in ("quantiles", "statistics", "histogram", "cdf", "k_means")
    },
    "statistics of contributions": _of_statistics(Contributions(1, 5), None),
    "statistics of clamped contributions": _of_statistics(Contributions(1, 5, "unit"), None, SUMS),
    "statistics by public group": _of_statistics(Contributions(2, 5), "public"),
    "statistics by private group": _of_statistics(Contributions(1, 1), "private"),
    "statistics by private group of units": _of_statistics(Contributions(2, 5), "private"),
}
"""Names and kinds."""


def settings_of_kind(name: str) -> list[tuple[Case, ...]]:
    """Return the settings of a kind: for each, one case of each shape."""
    kind = KINDS[name]
    grids, params, _ = grids_of(kind.task)
    grids = [grid for grid in grids if max(grid.extents) < MOST_IN_LINE]
    every = itertools.product(grids, kind.params or params, EPSILONS, RELATIONS, SIZES)
    return [
        tuple(Case(kind.task, grid, given, epsilon, relation, shape, n, kind=name) for shape in SHAPES)
        for grid, given, epsilon, relation, n in every
    ]


def measure_kind(case: Case, trials: int) -> dict[str, Runs]:
    """Run every method on a case of a kind; by the method, and by the group or the policy."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    return {runs.method: runs for runs in KINDS[case.kind].runs(case, trials, rng)}
