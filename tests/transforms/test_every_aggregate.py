"""Every class with a `+`: no grouping, order, pickle, file or repeated bundle changes a bit of a sum."""

import inspect
import pickle
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import core
import transforms.merge_aggregates as merging
from core.aggregate import Aggregate, CellCounts, Counts, Sample, Tally
from core.counted_points import StoredOrder
from core.gaps import Order
from core.graphs.components import spanning_forest
from core.graphs.edges import Edges, WeightedEdges, compact
from core.graphs.wedges import Wedges
from core.input_checks import Beside
from core.mechanisms.offers import Offer, Offers
from core.one_cluster.paper.weighted import Weighted
from core.rounds import Block
from core.sample_and_aggregate.outputs import Outputs
from core.sections import Sectioned
from core.side_by_side import SideBySide
from core.statistics.quantities import Quantity
from core.statistics.stored_totals import StoredTotals, TotalsInSections
from core.statistics.totals import GroupTotals
from core.stored import InMemory, Stored
from transforms.merge_aggregates import Made, SpilledSum, Sum
from transforms.spill import Place, Spill

PARTS = 7
SEEDS = range(2)
Parts = list[Any]
Random = np.random.Generator

LABELS = np.array([f'["{"x" * (i % 5)}{i}"]'.encode() for i in range(30)])
QUANTITIES = (Quantity("rows"), Quantity("sum", 1, 16, 8))


def sizes(rng: Random) -> list[int]:
    """Return how many records each part has: some none, one many."""
    return [*rng.permutation([0, 0, 1, 30, 40, 200, int(rng.integers(60))])]


def of_keys(make: Callable[[Any], Any]) -> Callable[[Random], Parts]:
    return lambda rng: [make(rng.integers(0, 400, size) ** 2) for size in sizes(rng)]


def of_points(make: Callable[[Any], Any], most: int, columns: int) -> Callable[[Random], Parts]:
    return lambda rng: [make(rng.integers(0, most, (size, columns))) for size in sizes(rng)]


def of_cells(most: int) -> Callable[[Random], Parts]:
    """Return counts of few cells or of many, so that they are in tables of several types, or sparse."""
    return lambda rng: [CellCounts.of(rng.integers(0, rng.choice([1, 9, most]), n), most) for n in sizes(rng)]


def of_samples(rng: Random) -> Parts:
    """Return samples of records, of which some share identities."""
    ids = [rng.integers(0, 50, size).astype(np.uint64) for size in sizes(rng)]
    return [Sample.of(20, rng.integers(0, 9, len(some)), some, bytes(16)) for some in ids]


def of_groups(kind: type[GroupTotals], labeled: bool) -> Callable[[Random], Parts]:
    def make(rng: Random) -> Parts:
        blocks = [
            Block(
                rng.integers(0, 20, (size, 2)),
                rng.integers(0, 99, size).astype(np.uint64),
                groups=rng.integers(0, rng.integers(1, 31), size),
                labels=LABELS,
            )
            for size in sizes(rng)
        ]
        return [kind.of(block, QUANTITIES, labeled, (0, 1)) for block in blocks]

    return make


def sections_of(rng: Random) -> Parts:
    whole = TotalsInSections.merged(of_groups(TotalsInSections, labeled=True)(rng))
    return [StoredTotals.of(part) for part in whole.split(PARTS)]


def of_shards(make: Callable[[Counts], Any]) -> Callable[[Random], Parts]:
    return lambda rng: [make(shard) for shard in Counts.merged(of_keys(Counts.of)(rng)).split(PARTS)]


def sectioned(keys: Any) -> Sectioned:
    cuts = np.array([30, 31, 5000, 90_000])
    return Sectioned(Counts.of(keys), 2, 0, 100_000, cuts, np.arange(5))


def of_offers(rng: Random) -> Parts:
    offers = [
        Offer(
            low,
            *(
                rng.integers(1, 9, shape).tolist() if not shape else rng.integers(1, 9, shape)
                for shape in ((), 3, 3, 3)
            ),
        )
        for low in range(PARTS)
    ]
    return [Offers(()), *(Offers((offer,)) for offer in offers)]


def of_pairs(rng: Random) -> Parts:
    return [Wedges.of(size, *rng.integers(0, 12, (2, size))) for size in sizes(rng)]


def of_answers(rng: Random) -> Parts:
    """Return answers of blocks, of which a repeated one may answer twice."""
    return [
        Outputs.of(rng.integers(0, 90, n).astype(np.uint64), rng.integers(0, 4, (n, 2))) for n in sizes(rng)
    ]


def beside(parts: Callable[[Random], Parts]) -> Callable[[Random], Parts]:
    return lambda rng: [Beside(part, Tally(rng.integers(0, 9, 4))) for part in parts(rng)]


def two(keys: Any) -> SideBySide:
    return SideBySide((Counts.of(keys), Counts.of(keys[::2])))


EXAMPLES: dict[str, tuple[type, Callable[[Random], Parts]]] = {
    "counts": (Counts, of_keys(Counts.of)),
    "shards": (Counts, of_shards(lambda shard: shard)),
    "few cells": (CellCounts, of_cells(64)),
    "many cells": (CellCounts, of_cells(4096)),
    "side by side": (SideBySide, of_keys(two)),
    "stored side by side": (SideBySide, of_shards(lambda shard: SideBySide((Stored.of(shard),) * 2))),
    "samples": (Sample, of_samples),
    "tallies": (Tally, lambda rng: [Tally(rng.integers(-9, 9, 5)) for _ in range(PARTS)]),
    "stored": (Stored, of_shards(Stored.of)),
    "stored order": (StoredOrder, of_shards(lambda shard: StoredOrder.of(shard, InMemory()))),
    "sections": (Sectioned, of_keys(sectioned)),
    "groups": (GroupTotals, of_groups(GroupTotals, labeled=False)),
    "labeled groups": (GroupTotals, of_groups(GroupTotals, labeled=True)),
    "groups in sections": (TotalsInSections, of_groups(TotalsInSections, labeled=True)),
    "stored groups": (StoredTotals, sections_of),
    "edges": (Edges, of_points(Edges.of, 25, 2)),
    "weighted edges": (WeightedEdges, of_points(WeightedEdges.of, 25, 3)),
    "forests": (WeightedEdges, of_points(lambda points: WeightedEdges.of(points, forest=True), 25, 3)),
    "wedges": (Wedges, of_pairs),
    "offers": (Offers, of_offers),
    "answers": (Outputs, of_answers),
    "points": (Weighted, of_points(Weighted.of, 6, 2)),
    "beside": (Beside, beside(of_keys(Counts.of))),
    "made": (Made, lambda rng: [Made(part, b"mark") for part in of_keys(Counts.of)(rng)]),
}
"""Of each class, parts of records as workers make them: some have no records, some share keys."""


def held(value: Any) -> Any:
    """Return what an aggregate says, where it may be held in several forms."""
    if isinstance(value, CellCounts):
        return value.size, value.counts()
    if isinstance(value, Stored):
        return len(value), value.whole()
    if isinstance(value, StoredTotals):
        return value.totals, value.distinct, value.whole()
    if isinstance(value, StoredOrder):
        orders: list[Order] = sorted(map(value.store.get, value.parts), key=lambda order: order.values[0])
        return orders, np.sort(value.totals), np.sort(value.ends, axis=0)
    if isinstance(value, WeightedEdges) and value.forest:
        order = value.by_weight()
        u, v, nodes = compact(value.keys)
        kept = np.sort(order[spanning_forest(u[order], v[order], nodes)])
        return value.keys[kept], value.weights[kept]
    return None


def bits(value: Any) -> Any:
    """Return all that an aggregate holds, to the bit and with the types of arrays; labels of any width."""
    other = held(value)
    if other is not None:
        return type(value).__name__, bits(other)
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype.kind == "S" else (value.dtype.str, value.shape, value.tobytes())
    if is_dataclass(value):
        return type(value).__name__, [bits(getattr(value, each.name)) for each in fields(value)]
    return [bits(each) for each in value] if isinstance(value, tuple | list) else value


NOT_BEFORE_STORED = "stored side by side"
"""It is merged and split before it is stored."""


def of_examples(wanted: Callable[[type], bool]) -> pytest.MarkDecorator:
    """Run a test for the examples of wanted classes only."""
    names = [name for name, (kind, _) in EXAMPLES.items() if name != NOT_BEFORE_STORED and wanted(kind)]
    made = [(name, seed) for name in names for seed in SEEDS]
    return pytest.mark.parametrize("parts", made, indirect=True, ids=lambda of: f"{of[0]}-{of[1]}")


def merges_parts(kind: type) -> bool:
    merged = getattr(kind, "merged", None)
    return merged is not None and list(inspect.signature(merged).parameters) == ["parts"]


@pytest.fixture(
    params=[(name, seed) for name in EXAMPLES for seed in SEEDS], ids=lambda of: f"{of[0]}-{of[1]}"
)
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Parts:
    """Return parts of a class, while what is done to large aggregates alone is done to small ones, too."""
    monkeypatch.setattr("core.aggregate._SLICE", 16)
    monkeypatch.setattr("core.graphs.edges._MANY", 8)
    name, seed = request.param
    kind, make = EXAMPLES[name]
    made = make(np.random.default_rng(seed))
    assert len(made) >= PARTS and all(type(part) is kind for part in made)
    return made


def classes() -> set[type]:
    """Return every class that has a `+` of its own, or of one of ours that it extends."""
    names = [module.name for module in pkgutil.walk_packages(core.__path__, "core.")]
    modules = [merging, *map(import_module, names)]
    found = (each for module in modules for _, each in inspect.getmembers(module, inspect.isclass))
    return {each for each in found if any("__add__" in vars(base) for base in each.__mro__ if is_ours(base))}


def is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] in ("core", "transforms")


def in_any_grouping(parts: Sequence[Any], rng: Random) -> Any:
    """Return the sum, of neighbors at random in a random order."""
    some = [parts[place] for place in rng.permutation(len(parts))]
    while len(some) > 1:
        place = int(rng.integers(len(some) - 1))
        some[place : place + 2] = [some[place] + some[place + 1]]
    return some[0]


def test_every_class_with_a_sum_is_here() -> None:
    assert classes() - {Aggregate} == {kind for kind, _ in EXAMPLES.values()}


def test_any_grouping_and_order_gives_the_same_bits(parts: Parts) -> None:
    """And what is added stays as it was: an engine may add it again."""
    before = bits(list(parts))
    first, *others = parts
    expected = bits(sum(others, first))
    for seed in range(8):
        assert bits(in_any_grouping(parts, np.random.default_rng(seed))) == expected
    assert bits(list(parts)) == before


@of_examples(merges_parts)
def test_what_is_merged_at_once_is_the_sum(parts: Parts) -> None:
    merged = type(parts[0]).merged
    for count in range(1, len(parts) + 1):
        first, *others = parts[:count]
        before = bits(parts[:count])
        assert bits(merged(parts[:count])) == bits(merged(parts[:count][::-1])) == bits(sum(others, first))
        assert bits(parts[:count]) == before


def test_neither_a_pickle_nor_a_file_changes_anything(parts: Parts) -> None:
    spill = Spill()
    for part in [*parts, in_any_grouping(parts, np.random.default_rng(0))]:
        place = spill.put(part)
        assert isinstance(place, Place)
        assert bits(spill.get(place)) == bits(pickle.loads(pickle.dumps(part))) == bits(part)
    first, *others = parts
    kept = [spill.get(spill.put(part)) for part in parts]
    assert bits(in_any_grouping(kept, np.random.default_rng(1))) == bits(sum(others, first))


@of_examples(lambda kind: hasattr(kind, "split"))
def test_shards_of_a_sum_are_sums_of_shards(parts: Parts) -> None:
    for shards in (1, 3, 64):
        split = [part.split(shards) for part in parts]
        whole = in_any_grouping(parts, np.random.default_rng(shards)).split(shards)
        sums = [in_any_grouping(its, np.random.default_rng(0)) for its in zip(*split, strict=True)]
        if getattr(parts[0], "forest", False):  # a shard may keep edges that others have made superfluous
            sums, whole = ([sum(shards[1:], shards[0])] for shards in (sums, whole))
        for shard, its in zip(whole, sums, strict=True):
            assert bits(shard) == bits(its)


def test_no_tree_of_workers_changes_a_sum(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accumulators are merged again, as in a repeated bundle; some wait in a file, which may be full."""
    first, *others = parts
    expected = bits(sum(others, first))
    for seed, (most_held, room) in enumerate(((1 << 22, 1 << 30), (30, 1 << 30), (0, 1 << 30), (30, 1500))):
        monkeypatch.setattr(merging, "_MOST_HELD", most_held)
        rng = np.random.default_rng(seed)
        for adds in (Sum(), SpilledSum(Spill(lambda most=room: most))):
            workers = [adds.create_accumulator() for _ in range(3)]
            dealt = rng.permutation([0, 1, 2, *rng.integers(0, 3, len(parts) - 3)])
            for part, worker in zip(parts, dealt, strict=True):
                workers[worker] = adds.add_input(workers[worker], part)
            workers = [adds.compact(each) if rng.integers(2) else each for each in workers]
            some = adds.merge_accumulators(workers[:2])
            for _ in range(2):
                assert bits(adds.extract_output(adds.merge_accumulators([some, workers[2]]))) == expected
            assert bits(adds.extract_output(adds.merge_accumulators(workers))) == expected
