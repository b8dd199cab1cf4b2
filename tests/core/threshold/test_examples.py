"""Labeled examples: cuts against thresholds, and ranks."""

import itertools
from collections import Counter

import numpy as np

from core.aggregate import Counts
from core.threshold.examples import Examples, ranked


def test_cuts_err_as_thresholds_do_or_more():
    """At the ends of equal values a cut is a threshold; inside, one of the ends is no worse."""
    labeled = list(itertools.product(range(3), (0, 1)))
    for n in range(5):
        for chosen in itertools.combinations_with_replacement(labeled, n):
            examples = Examples.of_counts(Counts.of(np.array([2 * x + y for x, y in chosen], dtype=np.int64)))
            ordered = sorted(chosen, key=lambda example: (example[0], -example[1]))
            cuts = examples.errors_of_cuts(np.arange(n + 3))
            for rank, errors in enumerate(cuts):
                below, above = ordered[:rank], ordered[rank:]
                assert errors == sum(y == 1 for _, y in below) + sum(y == 0 for _, y in above)
            thresholds = examples.errors(np.arange(4))
            assert thresholds.min() == cuts.min()


def test_a_window_around_a_rank_changes_by_one_replacement():
    """Brute force, one example more or another one: cuts' errors move within a range of 2."""
    labeled = list(itertools.product(range(3), (0, 1)))

    def seen(chosen):
        examples = Examples.of_counts(Counts.of(np.array([2 * x + y for x, y in chosen], dtype=np.int64)))
        windows = []
        for rank in range(7):
            around = ranked(examples.all, rank - 1, rank + 2)
            windows.append(Counter(np.repeat(around.values, np.diff(around.ranks)).tolist()))
        return examples.errors_of_cuts(np.arange(7)), windows

    for n in range(4):
        for chosen in itertools.combinations_with_replacement(labeled, n):
            errors, windows = seen(chosen)
            more = [(*chosen, x) for x in labeled]
            other = [(*chosen[:i], x, *chosen[i + 1 :]) for i in range(n) for x in labeled]
            for neighbor in more + other:
                errors_there, windows_there = seen(neighbor)
                assert np.ptp(errors_there - errors) <= 2
                for here, there in zip(windows, windows_there, strict=True):
                    assert (here - there).total() <= 1 and (there - here).total() <= 1


def test_ranks_divide_ties_and_hold_every_example_once():
    examples = Examples.of_counts(Counts.of(np.array([0, 2, 2, 3, 4, 9, 9, 9])))
    whole = np.repeat(examples.all.values, np.diff(examples.all.ranks))
    for first, last in itertools.combinations_with_replacement(range(9), 2):
        block = ranked(examples.all, first, last)
        assert np.repeat(block.values, np.diff(block.ranks)).tolist() == whole[first:last].tolist()
