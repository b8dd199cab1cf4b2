"""What the notes of a plan say in numbers is what its noise does."""

import math
import re

import numpy as np
import pytest

from core.budget import Budget
from core.grouping import Contributions
from core.rounds import Block, run_in_memory
from tests.core.seeded import SeededNoise
from tests.core.statistics.test_task import GRID, PRIVATE, PUBLIC, plan

RANKS = {"quantiles": (0.2, 0.5)}


def numbers(plan_, words):
    """Return the numbers of the note that has these words."""
    (note,) = (note for note in plan_.notes if words in note)
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", note.replace(",", ""))]


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_each_bound_on_contributions_multiplies_the_noise_as_it_is_said_to(method):
    """Of counts, of quantiles, and of sums that are clamped for each unit, in 3 groups with 5 rows."""
    scales = {}
    for name, measures, clamp in (
        ("counts", ("count",), "row"),
        ("ranks", (RANKS,), "row"),
        ("clamped", ("sum",), "unit"),
    ):
        one, many = (
            plan(measures, method=method, grouping=PUBLIC, contributions=bounds)
            for bounds in (Contributions(1, 1, clamp=clamp), Contributions(3, 5, clamp=clamp))
        )
        scales[name], *others = (
            new.noise_scale / old.noise_scale
            for new, old in zip(many.rounds[0].draws(), one.rounds[0].draws(), strict=True)
        )
        assert others == pytest.approx([scales[name]] * len(others), rel=1e-3)
        most, by_groups, by_rows, *by_both = numbers(many, "multiplies the noise by")[1:]
        assert (most, by_rows) == (5, 5)
        assert by_groups == pytest.approx(3 if method == "laplace" else math.sqrt(3), rel=1e-3)
        assert by_both == ([15] if name == "ranks" else [])
    assert scales["counts"] == pytest.approx(5 * by_groups, rel=2e-3)
    assert scales["ranks"] == pytest.approx(15, rel=1e-3)
    assert scales["clamped"] == pytest.approx(by_groups, rel=1e-3)


@pytest.mark.parametrize("neither", [(), ("minimum",)])
def test_ranks_take_the_part_of_epsilon_that_is_said(neither):
    asked = plan(("count", RANKS, *neither), method="laplace")
    (part,) = numbers(asked, "pays for quantiles")
    (count, *ranks) = (draw.epsilon for draw in asked.mechanisms)
    assert 100 * sum(ranks) / (count + sum(ranks)) == pytest.approx(part, rel=0.01)


def test_extremes_are_sought_as_far_inside_as_is_said():
    asked = plan(("minimum",), method="laplace")
    inside, few = numbers(asked, "inside of the ends")
    error = asked.promises["extreme_error"]
    assert max(ranks.step.aim.inside for ranks in asked.rounds[0].reading.ranks) == inside
    assert few == math.ceil(1.5 * error) and error < 2 * inside


def test_of_how_few_rows_a_quantile_says_nothing():
    """Its interval then reaches beyond both ends of the rows, or beyond the nearer one."""
    asked = plan((RANKS,), method="laplace")
    both, one = numbers(asked, "may say nothing")
    error = asked.promises["rank_error"]
    assert (both, one) == (math.ceil(error / 0.5), math.ceil(error / 0.2))
    assert GRID.dimension == 2
    assert numbers(asked, "standard error of a quantile")[0] == pytest.approx(
        max(ranks.typical for ranks in asked.rounds[0].reading.ranks), rel=0.01
    )


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
@pytest.mark.parametrize("measures", [("count", "mean"), ("units", "sum")])
def test_small_private_groups_that_are_released_are_further_off_than_promised(method, measures):
    """Of 20,000 groups of one row less than the note says some are released, and none keeps the promise."""
    asked = plan(measures, Budget(1.0, 1e-5), method=method, grouping=PRIVATE)
    (few,) = numbers(asked, "is released only where noise makes its number too large")[-1:]
    promised = asked.promises[f"{'count' if 'count' in measures else 'units'}_error"]
    for in_each in (few - 1, few):
        members = np.repeat(np.arange(20_000), int(in_each))
        labels = np.array([f'["{name}"]'.encode() for name in range(20_000)])
        points = np.zeros((len(members), GRID.dimension), np.int64)
        block = Block(points, np.arange(len(members), dtype=np.uint64), None, members, labels)
        (counts,) = (
            each
            for name, each in run_in_memory(asked.rounds, [block], None, SeededNoise(1)).table(GRID).items()
            if name in ("count", "units")
        )
        assert len(counts) > 20
        assert (np.abs(counts - in_each) > promised).all() == (in_each < few)


@pytest.mark.parametrize(("measures", "bounds"), [(("mean",), None), (("count",), Contributions(1, 5))])
def test_of_small_private_groups_nothing_is_said_where_no_number_of_units_is_told(measures, bounds):
    asked = plan(measures, method="laplace", grouping=PRIVATE, contributions=bounds)
    assert not any("too large" in note for note in asked.notes)
