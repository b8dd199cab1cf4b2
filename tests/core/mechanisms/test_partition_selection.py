"""Which private groups are released: exact odds, the (epsilon, delta) bound by enumeration, and power."""

import itertools
import math

import numpy as np
import pytest

from core.errors import InvalidValue
from core.mechanisms.partition_selection import CountThreshold, OptimalSelection, SumsThreshold
from core.secure_noise import SecureNoise
from tests.core.exact import excess, fits
from tests.core.seeded import SeededNoise

WHOLE = 2.0**63
SETTINGS = [(1.0, 1e-3), (0.1, 1e-2), (3.0, 1e-6), (0.5, 0.2)]


def coin(epsilon, delta, groups=1):
    return OptimalSelection(what="groups", epsilon=epsilon, delta=delta, groups=groups)


def published(epsilon, delta, n):
    """The recursion of Desfontaines, Voss, Gipson and Mandayam (2022), Theorem 1, in floating point."""
    odds = [0.0]
    for _ in range(n):
        last = odds[-1]
        odds.append(min(math.exp(epsilon) * last + delta, 1 - math.exp(-epsilon) * (1 - last - delta), 1.0))
    return odds


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_the_odds_are_those_of_the_paper(epsilon, delta):
    odds = [q / WHOLE for q in coin(epsilon, delta).odds]
    assert odds == pytest.approx(published(epsilon, delta, len(odds) - 1), rel=1e-9)
    assert odds[0] == 0 and odds[1] == pytest.approx(delta) and odds[-1] == 1


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_neighboring_counts_are_indistinguishable(epsilon, delta):
    """Every pair of neighboring counts, in both directions, and no smaller delta would do."""
    odds = [q / WHOLE for q in coin(epsilon, delta).odds]
    losses = []
    for q, p in itertools.pairwise([*odds, 1.0]):
        one, other = np.array([q, 1 - q]), np.array([p, 1 - p])
        losses += [excess(one, other, epsilon), excess(other, one, epsilon)]
    assert max(losses) <= delta * (1 + 1e-9)
    assert max(losses) >= delta * (1 - 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_no_odds_are_larger(epsilon, delta):
    """One more in any place breaks the bound: what is released is optimal."""
    odds = [q / WHOLE for q in coin(epsilon, delta).odds]
    for n in range(1, len(odds) - 1):
        more = odds[n] * 1.001 + 1e-6
        before = np.array([odds[n - 1], 1 - odds[n - 1]])
        assert excess(np.array([more, 1 - more]), before, epsilon) > delta or (
            excess(before, np.array([more, 1 - more]), epsilon) > delta
        )


def test_a_coin_is_drawn_with_its_odds():
    """40,000 groups of each of three counts, by the real noise, in one test; flake rate below 1e-6."""
    draw = coin(1.0, 1e-2)
    observed: list[int] = []
    expected: list[float] = []
    for n in (2, 4, 5):
        counts = np.full(40_000, n)
        labels = np.arange(40_000)
        found = len(draw.released(labels, counts, SecureNoise()))
        chance = draw.odds[n] / WHOLE
        observed += found, 40_000 - found
        expected += chance, 1 - chance
    assert fits(np.array(observed), np.array(expected))


def test_empty_and_full_groups_are_certain():
    draw = coin(1.0, 1e-2)
    counts = np.array([0] * 1000 + [10**12] * 1000)
    assert draw.released(np.arange(2000), counts, SecureNoise()).tolist() == list(range(1000, 2000))
    assert len(draw.released(np.arange(0), np.arange(0), SecureNoise())) == 0


def test_more_groups_compose():
    assert coin(0.25, 1e-4, groups=4).cost.epsilon == 1.0
    assert coin(0.25, 1e-4, groups=4).cost.delta == pytest.approx(4e-4)


def test_a_tiny_epsilon_is_refused():
    with pytest.raises(InvalidValue, match="larger epsilon"):
        coin(1e-9, 1e-12)


def threshold(scale, delta, groups=1, gaussian=False):
    return CountThreshold.of("groups", scale, 1.0, delta, groups, gaussian)


def masses(scale, gaussian, reach):
    support = np.arange(-reach, reach + 1)
    weights = np.exp(-(support**2) / (2 * scale**2) if gaussian else -np.abs(support) / scale)
    return support, weights / weights.sum()


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("scale", "delta", "groups"), [(1.0, 1e-4, 1), (5.0, 1e-6, 3), (20.0, 0.01, 100)])
def test_a_group_of_one_unit_is_released_with_delta_at_most(gaussian, scale, delta, groups):
    """All groups of a unit alone, from the probabilities of the noise; a threshold less would be too much."""
    draw = threshold(scale, delta, groups, gaussian)
    support, mass = masses(scale, gaussian, round(40 * scale) + 200)

    def some(least):
        return 1 - (1 - mass[support >= least - 1].sum()) ** groups

    assert some(draw.threshold) <= delta < some(draw.threshold - 1) * (1 + 1e-6)
    assert draw.cost.delta == pytest.approx(some(draw.threshold), rel=1e-6)


@pytest.mark.parametrize("sums", [2, 3])
@pytest.mark.parametrize(("extent", "epsilon", "groups"), [(1, 1.0, 1), (3, 0.5, 2), (10, 2.0, 1)])
def test_a_group_of_one_unit_is_released_by_its_sums_with_delta_at_most(extent, epsilon, groups, sums):
    """From the probabilities of the sum of several noises; a threshold less would be too much."""
    scale, delta = groups * extent / epsilon, 1e-5
    draw = SumsThreshold.of("g", scale, groups * extent, delta, groups, False, extent=extent, sums=sums)
    support, one = masses(scale, False, round(30 * scale) + 50)
    of_both, mass = support, one
    for _ in range(sums - 1):
        mass = np.convolve(mass, one)
        of_both = np.arange(of_both[0] + support[0], of_both[-1] + support[-1] + 1)

    def some(least):
        return 1 - (1 - mass[of_both >= least - extent].sum()) ** groups

    assert some(draw.threshold) <= delta < some(draw.threshold - 1) * (1 + 1e-6)
    assert draw.cost.delta == pytest.approx(some(draw.threshold), rel=1e-6)
    assert draw.cost.epsilon == pytest.approx(epsilon)
    found = draw.found_from(0.01)
    assert mass[found * extent + of_both < draw.threshold].sum() <= 0.01
    assert mass[(found - 1) * extent + of_both < draw.threshold].sum() > 0.01


def test_the_joint_release_of_a_pair_is_private():
    """A group with its noisy pair, before and after one row more, wherever the row is."""
    extent, epsilon, delta = 2, 1.0, 1e-3
    draw = SumsThreshold.of("groups", extent / epsilon, extent, delta, 1, False, extent=extent)
    support, mass = masses(draw.scale, False, 60)
    sums = np.add.outer(np.arange(-80, 81), np.arange(-80, 81))

    def output(pair):
        seen = np.zeros((161, 161))
        if any(pair):
            rows_, columns = (slice(each + 20, each + 20 + len(support)) for each in pair)
            seen[rows_, columns] = np.outer(mass, mass)
            seen[sums < draw.threshold] = 0
        return np.append(seen.ravel(), 1 - seen.sum())

    for x in range(extent + 1):
        for before in ((0, 0), (1, 1), (4, 0)):
            after = (before[0] + x, before[1] + extent - x)
            for a, b in ((before, after), (after, before)):
                assert excess(output(a), output(b), epsilon) <= delta * (1 + 1e-6) + 1e-9
    assert excess(output((2, 0)), output((0, 0)), 5.0) == pytest.approx(draw.cost.delta, rel=0.01)
    assert excess(output((6, 0)), output((4, 0)), 0.5) > delta


def test_the_joint_release_of_rows_and_missing_rows_is_private():
    """A group with both noisy numbers, before and after one unit with any of at most three rows more."""
    most, epsilon, delta = 3, 1.0, 1e-3
    draw = SumsThreshold.of("groups", most / epsilon, most, delta, 1, False, extent=most)
    support, mass = masses(draw.scale, False, 90)
    sums = np.add.outer(np.arange(-120, 121), np.arange(-120, 121))

    def output(rows, missing):
        seen = np.zeros((241, 241))
        if rows:
            places = (slice(each + 30, each + 30 + len(support)) for each in (rows, missing))
            seen[tuple(places)] = np.outer(mass, mass)
            seen[sums < draw.threshold] = 0
        return np.append(seen.ravel(), 1 - seen.sum())

    for rows in range(1, most + 1):
        for before in ((0, 0), (1, 2), (3, 0), (5, 7)):
            after = (before[0] + rows, before[1] + most - rows)
            for a, b in ((before, after), (after, before)):
                assert excess(output(*a), output(*b), epsilon) <= delta * (1 + 1e-6) + 1e-9
        assert excess(output(rows, most - rows), output(0, 0), 5.0) == pytest.approx(
            draw.cost.delta, rel=0.01
        )
    assert excess(output(9, 0), output(6, 0), 0.5) > delta


def test_a_large_scale_has_a_sound_bound():
    draw = threshold(5000.0, 1e-5, 2, gaussian=True)
    support, mass = masses(5000.0, True, 60_000)
    exact = 1 - (1 - mass[support >= draw.threshold - 1].sum()) ** 2
    assert exact <= draw.cost.delta <= 1.01 * exact


@pytest.mark.parametrize("gaussian", [False, True])
def test_joint_release_is_private(gaussian):
    """A group with its noisy count, before and after one unit more, against epsilon and delta."""
    scale, delta = 2.0, 1e-3
    draw = threshold(scale, delta, gaussian=gaussian)
    support, mass = masses(scale, gaussian, 300)

    def output(count):
        seen = np.zeros(800)
        if count:
            seen[support + count + 350] = mass
            seen[: draw.threshold + 350] = 0
        seen[0] = 1 - seen.sum()
        return seen

    epsilon = 1 / scale if not gaussian else None
    for a, b in ((1, 0), (0, 1), (2, 1), (1, 2), (9, 8)):
        if epsilon is not None:
            assert excess(output(a), output(b), epsilon) <= delta
    assert excess(output(1), output(0), 5.0) == pytest.approx(draw.cost.delta, rel=0.01)
    assert excess(output(20), output(19), 0.1) > delta  # without noise of this size it would show


def test_a_threshold_finds_large_groups_and_no_empty_ones():
    draw = threshold(3.0, 1e-6, groups=2)
    counts = np.array([0, 1, draw.found_from(1e-9)] * 500)
    labels, noisy = draw.released(np.arange(1500), counts, SeededNoise(1))
    assert labels.tolist() == list(range(2, 1500, 3))
    assert noisy.min() >= draw.threshold


@pytest.mark.parametrize("gaussian", [False, True])
def test_numbers_of_units_have_the_noise_that_is_charged(gaussian):
    """20,000 numbers: a deviation 5% off is seen, and the mean size as a part of it tells kinds apart."""
    draw, much = threshold(50.0, 1e-6, gaussian=gaussian), 10**6
    off = draw.released(np.arange(20_000), np.full(20_000, much), SeededNoise(0))[1] - much
    assert off.std() == pytest.approx(draw.deviation, rel=0.04)
    assert np.abs(off).mean() / off.std() == pytest.approx(
        (2 / math.pi if gaussian else 0.5) ** 0.5, rel=0.03
    )


@pytest.mark.parametrize("sums", [2, 3])
def test_a_group_is_found_by_its_noisy_sums(sums):
    """4,000 groups at the threshold and 4,000 a step below: half of them each, whose noisy sums reach it."""
    draw = SumsThreshold.of("groups", 4.0, 4.0, 1e-5, 1, False, extent=4, sums=sums)
    counts = np.zeros((8000, sums), np.int64)
    counts[:, 0], counts[:, -1] = 4, draw.threshold - 4 - np.arange(8000) % 2
    labels, noisy = draw.released(np.arange(8000), counts, SeededNoise(2))
    above, below = np.count_nonzero(labels % 2 == 0), np.count_nonzero(labels % 2)
    assert 0.5 < above / 4000 < 0.6 and 0.4 < below / 4000 < 0.5
    assert noisy.shape == (len(labels), sums) and noisy.sum(axis=1).min() == draw.threshold
    assert abs(noisy[:, 0].mean() - 4) > 0.5  # they are chosen by noise, which all sums have


@pytest.mark.parametrize("make", [lambda: coin(0.5, 1e-5), lambda: threshold(2.0, 1e-5)])
def test_a_group_is_found_as_promised(make):
    """At a failure of 10%; 4,000 groups, flake rate 1e-6."""
    draw = make()
    counts = np.full(4000, draw.found_from(0.1))
    found = draw.released(np.arange(4000), counts, SeededNoise(3))
    number = len(found[0] if isinstance(found, tuple) else found)
    assert number > 3600 - 5 * math.sqrt(360)
    fewer = draw.released(np.arange(4000), counts - 3, SeededNoise(3))
    assert len(fewer[0] if isinstance(fewer, tuple) else fewer) < 3600


@pytest.mark.parametrize("failure", [0.5, 0.3, 0.1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("scale", [0.5, 3.0, 20.0])
def test_no_group_of_so_many_units_is_missed_more_often_than_promised(scale, failure):
    """Exactly, from the probabilities of both noises and of the coin; one unit less would not do.

    For Gaussian noise the tail is bounded by e^(-x^2 / 2), which takes up to 1.2 scales more.
    """
    for gaussian in (False, True):
        draw = threshold(scale, 1e-6, 2, gaussian)
        support, mass = masses(scale, gaussian, round(40 * scale) + 200)
        found = draw.found_from(failure)
        assert mass[support < draw.threshold - found].sum() <= failure * (1 + 1e-9)
        fewer = found - 1 - gaussian * (2 + math.ceil(1.2 * scale))
        assert found == draw.threshold or mass[support < draw.threshold - fewer].sum() > failure
    coins = coin(1 / scale, 1e-6)
    found = coins.found_from(failure)
    assert 1 - coins.odds[found] / WHOLE <= failure < 1 - coins.odds[found - 1] / WHOLE


class Off(SeededNoise):
    """Noise that is the same number for each value."""

    def __init__(self, number):
        super().__init__(0)
        self.number = number

    def laplace(self, values, scale):
        return values + np.int64(self.number)


@pytest.mark.parametrize("wide", [1 << 20, 1 << 31])
def test_sums_that_wrap_decide_by_their_noise_alone(wide):
    """Of two databases around 2^63 no exact sum shows which one it is: noisy sums decide alone.

    With the noise that lies between them, the smaller sums give what the larger ones do.
    """
    draw = SumsThreshold.of("g", 3.0 * wide, wide, 1e-6, 1, False, extent=wide, sums=2)
    labels = np.array([b"a"])
    below, above = (np.array([[half, half]]) for half in (2**62 - wide, 2**62 + wide))
    assert below.sum() > 0 > above.sum()
    for noise in (-4 * wide, 0, 4 * wide):
        _, one = draw.released(labels, below, Off(noise))
        _, other = draw.released(labels, above, Off(noise - 2 * wide))
        assert one.tolist() == other.tolist()
