"""Aggregates that are split before they are merged: nothing of them is lost, also where a step runs again."""

import pickle

import numpy as np
import pytest

from core.aggregate import Counts
from core.graphs.edges import Edges
from core.rounds import total_of
from core.stored import Stored
from transforms.merge_aggregates import Made, Sum, _divide, _split, _store
from transforms.plain_errors import RoundError
from transforms.spill import Spill

POINTS = np.random.default_rng(0).integers(0, 60, (5, 200, 2))
EDGES = [Edges.of(points) for points in POINTS]


def test_edges_that_are_divided_again_and_merged_again_are_all_edges() -> None:
    """A bundle that runs again has its elements anew, and its first results may have been merged already."""
    spill, add = Spill(), Sum()
    sent = [pickle.dumps((7, Made(each, b"mark"))) for each in EDGES]
    runs = [_divide(pickle.loads(each), 7, 4) for each in [*sent, *sent[:2]]]
    assert all([shard for shard, _ in run] == [28, 29, 30, 31] for run in runs)
    merged = [(28 + shard, total_of(run[shard][1] for run in runs)) for shard in range(4)]
    stored = [[_store(each, 7, spill) for _ in range(2)][again] for again, each in enumerate(merged[:2])]
    stored += [_store(each, 7, spill) for each in merged[2:]]
    assert {strand for strand, _ in stored} == {7}
    accumulators = [add.add_input(add.create_accumulator(), made) for _, made in reversed(stored)]
    made = add.extract_output(add.merge_accumulators(accumulators))
    assert isinstance(made.aggregate, Stored) and made.mark == b"mark"
    assert total_of(made.aggregate) == total_of(EDGES)
    assert len(made.aggregate) == len(total_of(EDGES))


def test_edges_of_one_shard_are_not_divided_and_stay() -> None:
    made = Made(EDGES[0], b"mark")
    for _ in range(2):
        assert _divide((3, made), 3, 1) == [(3, made)]
    assert made.aggregate is EDGES[0]


def test_what_was_dropped_is_never_taken_for_nothing() -> None:
    """Should a runner divide one object twice, the run fails: it does not go on with what is left."""
    made = Made(Counts.of(np.arange(9)), b"mark")
    assert len(_divide((0, made), 0, 4)) == 4
    for again in (lambda: _divide((0, made), 0, 4), lambda: _split((0, made), {0: 1}, 4)):
        with pytest.raises(RoundError, match="Merging failed"):
            again()
