"""The order in which rows, blocks and parts arrive changes nothing, in every plan and before it."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from core.rounds import Block, examined, looks_of
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import blocks
from tests.pipelines.test_every_plan import different, named, same
from tests.transforms.test_evaluate_subsamples import LINE, SALT, splitting, table
from transforms.bound_units import Bounding, bound, split_points
from transforms.keep import Keep
from transforms.read_blocks import list_row_groups
from transforms.split_units import gather, split_rows


def totals(step: Any, data: list[Block], state: Any) -> list[Any]:
    """Return what every pass of a round counts."""
    found, looks = [], looks_of(step)
    if looks:
        step = step.coarse(state)
    for _ in range(looks):
        found.append(total(step, data, state))
        step = step.finer(found[-1], state)
    return [*found, total(step, data, state)]


def total(step: Any, data: list[Block], state: Any) -> Any:
    parts = [step.summarize(block, state) for block in data]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged + part
    return merged


def shuffled(data: list[Block], seed: int) -> list[Block]:
    """Return the same records in another order, cut into other blocks between units."""
    points = np.concatenate([block.points for block in data])
    ids = np.concatenate([block.ids for block in data])
    rng = np.random.default_rng(seed)
    units, unit_of = np.unique(ids, return_inverse=True)
    part_of = rng.permutation(len(units))[unit_of] * 3 // len(units)
    first, *others = (rng.permutation(np.flatnonzero(part_of == part)) for part in range(3))
    outside = sum(block.outside for block in data if block.outside is not None)
    if data[0].groups is None:
        cut = [Block(points[part], ids[part]) for part in (*others, first)]
    else:
        groups = np.concatenate([block.groups for block in data])
        cut = [Block(points[p], ids[p], None, groups[p], data[0].labels) for p in (*others, first)]
    return [*cut[:-1], replace(cut[-1], outside=outside)]


@pytest.mark.parametrize("name", different())
def test_an_aggregate_does_not_depend_on_the_order_of_records(name: str) -> None:
    setting = named(name)
    state, data = setting.plan.start, blocks(setting, "two_clumps", 300)
    for number, step in enumerate(setting.plan.rounds):
        passes = totals(step, data, state)
        for seed in (0, 1):
            for other, whole in zip(totals(step, shuffled(data, seed), state), passes, strict=True):
                assert other == whole and same(other, whole), step.name
        state = step.release(
            examined(step, passes[-1], state, SeededNoise(0)), state, SeededNoise(number, 0.0)
        )


@pytest.mark.parametrize("unit", [None, "u"])
def test_a_block_does_not_depend_on_the_order_in_which_its_parts_arrive(tmp_path: Any, unit: str) -> None:
    n = 900
    ids = np.random.default_rng(0).integers(0, 150, n)
    source = table(tmp_path, ids, np.arange(n, dtype=float), 50, unit)
    cut = splitting(source)
    groups = [group for file in source.files for group in list_row_groups(file)]
    assert len(groups) > 5
    seen = []
    for order in (groups, groups[::-1]):
        parts: dict[int, list[Any]] = {}
        for group in order:
            for part, shard in split_rows(cut, group):
                parts.setdefault(part, []).append(shard)
        seen.append(
            {number: rows for part, some in parts.items() for number, rows in gather(cut, part, some)}
        )
    assert seen[0] == seen[1]


@pytest.mark.parametrize("keep", get_args(Keep))
def test_records_do_not_depend_on_the_order_in_which_their_rows_arrive(tmp_path: Any, keep: Any) -> None:
    n = 900
    ids = np.random.default_rng(0).integers(0, 150, n)
    source = table(tmp_path, ids, np.arange(n) % 7, 50, "u")
    source = replace(source, order="x" if keep == "last" else None)
    bounding = Bounding.of(source, LINE, keep, SALT)
    groups = [group for file in source.files for group in list_row_groups(file)]
    seen = []
    for order in (groups, groups[::-1]):
        shards: dict[int, list[bytes]] = {}
        for group in order:
            for shard, rows in split_points(bounding, group):
                shards.setdefault(shard, []).append(rows)
        seen.append({shard: bound(bounding, parts) for shard, parts in shards.items()})
    assert seen[0] == seen[1]
