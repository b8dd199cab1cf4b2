"""Aggregates that are split before they are merged: nothing of them is lost, also where a step runs again."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from core.aggregate import Counts
from core.graphs.edges import Edges
from core.graphs.task import TRIANGLES
from core.rounds import Block, total_of
from core.stored import Stored
from tests.core.graphs.test_task import ADD, PURE, ids
from transforms.merge_aggregates import Made, Sum, _split, _store
from transforms.plain_errors import RoundError
from transforms.records import Drawn, Held
from transforms.run_rounds import PassName, Step, _summarize
from transforms.spill import Spill

POINTS = dict(enumerate(np.random.default_rng(0).integers(0, 60, (5, 200, 2))))
EDGES = [Edges.of(points) for points in POINTS.values()]
NAME = PassName("counting", "counting", "counting")


class Blocks:
    """Records whose elements are lists of numbers of blocks."""

    def blocks_of(self, element: Sequence[int], due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """Yield the blocks of strand 7."""
        for number in element:
            yield 7, Block(POINTS[number], np.arange(200, dtype=np.uint64))


def summarized(numbers: Sequence[int], step: Step) -> list[tuple[int, Made]]:
    kept: Any = [(7, Held(Drawn((), b"mark")))]
    return list(_summarize(numbers, Blocks(), {7: step}, [[7]], kept, NAME, b""))


def test_shards_that_are_summed_again_and_merged_again_are_all_edges() -> None:
    """A bundle that runs again has its elements anew, and its first results may have been merged already."""
    spill, add = Spill(), Sum()
    (round_,) = TRIANGLES.plan(ids(60), TRIANGLES.params(), PURE, ADD, b"").rounds
    step, shards = Step(round_), round_.examination.shards
    runs = [summarized(numbers, step) for numbers in ([0, 1], [2], [3, 4], [2], [0, 1])]
    keys = [7 * shards + shard for shard in range(shards)]
    assert all([shard for shard, _ in run] == keys for run in runs)
    assert all(made.mark == b"mark" for run in runs for _, made in run)
    stored = [_store((key, total_of(run[i][1] for run in runs)), 7, spill) for i, key in enumerate(keys)]
    assert {strand for strand, _ in stored} == {7}
    accumulators = [add.add_input(add.create_accumulator(), made) for _, made in reversed(stored)]
    made = add.extract_output(add.merge_accumulators(accumulators))
    assert isinstance(made.aggregate, Stored) and made.mark == b"mark"
    assert total_of(made.aggregate) == total_of(EDGES)
    assert len(made.aggregate) == len(total_of(EDGES))


def test_every_shard_is_there_whatever_the_rows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of elements is public: it is the same for no edge and for many."""
    (round_,) = TRIANGLES.plan(ids(60), TRIANGLES.params(), PURE, ADD, b"").rounds
    monkeypatch.setitem(POINTS, 4, np.repeat(POINTS[0][:, :1], 2, axis=1))  # loops alone
    loops, others = (summarized([number], Step(round_)) for number in (4, 0))
    assert [shard for shard, _ in loops] == [shard for shard, _ in others]
    assert sum(len(made.aggregate) for _, made in loops) == 0 < sum(len(made.aggregate) for _, made in others)


def test_what_was_dropped_is_never_taken_for_nothing() -> None:
    """Should a runner split one object twice, the run fails: it does not go on with what is left."""
    made = Made(Counts.of(np.arange(9)), b"mark")
    assert len(_split((0, made), {0: 1}, 4)) == 4
    with pytest.raises(RoundError, match="Merging failed"):
        _split((0, made), {0: 1}, 4)
