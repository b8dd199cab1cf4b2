"""Thresholds of the practical 1-cluster's rounds, and the promises that follow from them."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.exponential import Exponential
from core.mechanisms.tails import excess, largest_of, largest_sum_of_two
from core.one_cluster.found import Promises
from core.one_cluster.practical.budget_split import CENTER_SAMPLE, MOST_FIT, RADIUS_SAMPLE, BudgetSplit, Draws
from core.one_cluster.practical.lattice import Candidates
from core.one_cluster.practical.refine import candidate_radii, wide_radii
from core.one_cluster.practical.regions import Regions

_LEAST_LEVEL = 0.66  # part of the target that a region should hold even where noise is large
_NATS = 2  # a further candidate radius of a lattice costs this many scales of the noise
_MOST = 0.7  # all of them together cost at most this part of the target
_MAY_LACK = 1 / 3  # part of the target that may be missing at most where a radius is promised
_LOOSE = 2.2  # the fit aims low by this fraction of the records that the region may lack
_LOW = 0.04  # part of the target by which the fit aims low at most, but for large noise
_SMALL = 32  # sides of regions below which the radii of a lattice are rounded much
_FITS = (0.8, 1.0, 1.3, 1.7)  # multiples of the usual share of the fit that are tried
_LEANS = (0.35, 0.45, 0.55, 0.65)  # parts of the level in the share of level and region that are tried


@dataclass(frozen=True)
class Guarantee:
    """Thresholds of the rounds, and what holds under them with probability 1 - failure.

    Args:
        level_target: count in the sample of the level from which on a region is large enough.
        region_floor: clipping floor of the counts of regions. No region of fewer records is chosen.
        target: count that the fitted ball should reach.
        missing: if `found`, the ball holds at least t - missing records, where t is the target of the job.
        found: whether it is promised that a ball is found.
        count_error: the released count is off by at most this.
        excess: the released count is too large by more than this with probability `failure` at most.
        penalty: of a further candidate radius of a lattice; 0 without one.
        widens: whether the fit tries balls wider than the chosen region. Then no radius is promised.
        certifies: whether the released level certifies the radius; see `certified_factor`.
        lacks: how many records of the target the chosen region may lack.
    """

    level_target: int
    region_floor: int
    target: int
    missing: int
    found: bool
    count_error: int
    excess: int
    penalty: int = 0
    widens: bool = False
    certifies: bool = False
    lacks: float = math.inf

    def promises(self, split: BudgetSplit) -> Promises:
        """Return what the rounds of `split` promise. In a projection they promise no radius."""
        regions = split.regions
        radius = self.found and not self.widens and not regions.projected
        more, from_radius = _lattice_radii(regions) if split.lattice else (1.0, regions.resolution)
        more *= split.setting.grid.stretch
        return Promises(
            missing=self.missing if self.found else None,
            radius_factor=more * regions.factor if radius else None,
            resolution=more * max(from_radius, regions.resolution) * split.setting.grid.step
            if radius
            else None,
            count_error=self.count_error,
        )


@lru_cache(64)
def _lattice_radii(regions: Regions) -> tuple[float, int]:
    """Return how many times wider than the region a ball of a lattice may be, and from which radius on."""
    large = [level for level in regions.levels if regions.side(level) >= _SMALL] or [regions.levels[-1]]
    ratios = []
    for level in large:
        of = Candidates(regions, level)
        widest = (int(of.radii[-1]) + math.sqrt(regions.dimension)) * of.cell / 2 + 1
        ratios.append(widest / regions.radius(level))
    return max(ratios), regions.radius(large[0])


@lru_cache(64)
def _balls_of_lattice(regions: Regions) -> tuple[int, int]:
    """Return the largest numbers of radii and of balls that a lattice has."""
    of = [Candidates(regions, level) for level in regions.levels]
    radii = max(len(each.radii) for each in of)
    return radii, max(len(each.centers) * len(each.radii) for each in of)


@lru_cache(64)
def _queries(regions: Regions, *, widens: bool) -> int:
    """Return the largest number of radii that a fit tries."""
    return max(
        len(candidate_radii(regions, level, widens=widens)) + len(wide_radii(regions, level, widens=widens))
        for level in regions.levels
    )


def _at_least(count: float, rate: float, log: float) -> float:
    """Return a lower bound on how many of `count` records a sample keeps; fails with e^-log (Chernoff)."""
    mean = max(0.0, count * rate)
    return mean if rate >= 1 else mean - math.sqrt(2 * mean * log)


def _fewest(sampled: float, rate: float, log: float) -> float:
    """Return how many records there are at least if a sample keeps `sampled` of them.

    The bound fails with probability e^-log (Bernstein).
    """
    if rate >= 1:
        return sampled
    half = math.sqrt((1 - rate) * log / 2)
    root = math.sqrt(max(0.0, half**2 + sampled - 2 * log / 3)) - half
    return max(0.0, root) ** 2 / rate


def guarantee(split: BudgetSplit, draws: Draws) -> Guarantee:
    """Derive thresholds and promises by a union bound over the rounds, and over what their samples keep.

    Let t be the target. Let B be the smallest ball that holds t records, and let a be the finest level at
    which some region holds any ball of the radius of B.

    1. The sample of `FindRadius` keeps enough records of B. So at level a and above, some region exceeds the
       target of `FindRadius` by more than the error of its choice. So the chosen level is a or a finer one.
    2. At the chosen level some region has a count in the sample of `FindRegion` that is hardly below the
       target of `FindRadius`; see `_seen`.
    3. So this count exceeds the floor of `FindRegion` by more than the score of "nothing" and its error, and
       some region is chosen. Counts at or below the floor have no score. So the chosen region has a count
       above the floor, whatever else competes. In addition, its count is below the largest one by at most
       the error of the choice among all regions. The larger of the two is what it surely holds.
    4. The fit tries balls about the chosen region; see `_fitted`.

    Where 3 leaves too few records, the fit tries wider balls too; see `_widened`.
    """
    t, regions = split.target, split.regions
    q1, q2 = split.rate(RADIUS_SAMPLE), split.rate(CENTER_SAMPLE)
    # Parts of the failure probability: of the level, that a region is found, what it lacks, the fit, the
    # count, and each sample.
    part = split.setting.params.failure / (0.9 + 0.1 * (q1 < 1) + 0.1 * (q2 < 1))
    sampled, levels = -math.log(0.05 * part), math.log(len(regions.levels))

    shown = _at_least(t, q1, sampled)
    error = draws.level.scale * (levels - math.log(0.2 * part))
    level_target = max(1, round(max(_LEAST_LEVEL * q1 * t, shown - error - 1)))
    stops = shown - level_target > error
    ends = shown - level_target >= draws.level.scale * -math.log(0.2 * part)

    floor = split.floor(CENTER_SAMPLE)
    reached = _seen(split, draws, level_target, 0.2 * part, sampled) - draws.region.nothing
    chooses = reached >= floor
    if split.clips and chooses:
        floor = math.floor(reached)
    every = draws.region.scale * regions.all_keys
    counted = max(floor + 1, _seen(split, draws, level_target, 0.1 * part, sampled) - every)
    second = _fewest(counted, q2, sampled + regions.all_keys)

    target, penalty, held = _fitted(split, draws.fit, second, 0.2 * part)
    failure = split.setting.params.failure
    outside = 0.0 if q1 >= 1 else 0.05 * part
    certain = len(regions.levels) * math.exp(-max(0.0, shown - level_target) / draws.level.scale) + outside
    bounded = Guarantee(
        level_target=level_target,
        region_floor=floor,
        target=target,
        missing=math.ceil(t - held),
        found=stops and chooses and held > 0,
        count_error=largest_of(1, draws.count.scale, 0.2 * part),
        excess=excess(draws.count.scale, failure),
        penalty=penalty,
        certifies=certain <= failure,
        lacks=t - second,
    )
    if split.bounded or regions.projected or isinstance(draws.fit, Exponential):
        return bounded
    return _widened(split, draws.fit, bounded, found=ends and chooses, failure=0.2 * part)


def _seen(split: BudgetSplit, draws: Draws, level_target: int, failure: float, sampled: float) -> float:
    """Bound the largest count in the second sample of a region of the chosen level, minus a tail of a choice.

    The chosen level has a score of at least -e, but for probability levels e^(-e / s_1), where s_1 is the
    scale of its choice. So some region of the level has a count in the first sample of at least the target
    of the round minus e. That holds for e up to two thirds of this target, where scores are clipped.

    A choice of scale s_2 among the regions then loses more than some x with probability K e^(-x / s_2), for
    any such count, where K depends on what it must not choose. So the sum of both errors, less
    s_1 ln(levels) and s_2 ln(K), has the tail of a sum of two independent exponential variables of means s_1
    and s_2. This function subtracts that tail, and the caller subtracts s_2 ln(K).

    Where a round sees a sample, the step between the counts is not linear, and each error has half of
    `failure` for itself.

    Args:
        split: the split.
        draws: its draws.
        level_target: the target of `FindRadius`.
        failure: probability that the bound may fail, but for what samples keep.
        sampled: minus the logarithm of the probability that one sample keeps too few.

    Returns:
        The bound; minus infinity where the clipping of the scores matters.
    """
    q1, q2 = split.rate(RADIUS_SAMPLE), split.rate(CENTER_SAMPLE)
    one, two = draws.level.scale, draws.region.scale
    least = level_target - one * math.log(len(split.regions.levels))
    if q1 >= 1 and q2 >= 1:
        bound = least - largest_sum_of_two(one, two, failure)
        return bound if 3 * bound >= level_target else -math.inf
    tail = -math.log(failure / 2)
    least -= one * tail
    if 3 * least < level_target:
        return -math.inf
    first = _fewest(least, q1, sampled + split.regions.all_keys)
    return _at_least(first, q2, sampled) - two * tail


def _widened(
    split: BudgetSplit, fit: AboveThreshold, bounded: Guarantee, *, found: bool, failure: float
) -> Guarantee:
    """Return the guarantee of a fit that tries wider balls, unless `bounded` promises enough records.

    If at least t records exist, the widest ball holds them, whatever the chosen region holds. So the released
    ball holds at least the fitted target minus the error of the fit.
    """
    t = split.target
    if bounded.found and bounded.missing <= _MAY_LACK * t:
        return bounded
    target = _aim(t, fit, 0.0)
    held = target - fit.shortfall(_queries(split.regions, widens=True), failure)
    return replace(bounded, target=target, missing=t - held, found=found and held > 0, widens=True)


def _aim(t: int, fit: AboveThreshold, lacks: float) -> int:
    """Return the count that a fit should reach.

    It is below t, because the last few records may be far out. It is lower where the region may lack many
    records. Then the records that are usually missing are no small part of the promised ones.
    """
    scale = fit.query_scale
    return max(1, round(t - max(3 * scale, min(_LOW * t, max(10 * scale, lacks / _LOOSE)))))


def _fitted(
    split: BudgetSplit, fit: AboveThreshold | Exponential, second: float, failure: float
) -> tuple[int, int, float]:
    """Return target and penalty of the fit, and how many records its ball holds, but for `failure`.

    - A lattice has a ball that contains the chosen region. With all penalties, its score is min(second, t)
      minus all penalties at least. The score of the chosen ball is smaller by at most the error of the
      choice, and no ball's score exceeds its count.
    - Otherwise the ball holds at least the fitted target minus the error, or contains the whole chosen
      region. In a projection it then holds everything.
    """
    t, regions = split.target, split.regions
    if isinstance(fit, Exponential):
        radii, balls = _balls_of_lattice(regions)
        penalty = max(1, round(min(_NATS * fit.scale, _MOST * t / radii)))
        return t, penalty, min(second, t) - penalty * radii - fit.scale * math.log(balls / failure)
    target = _aim(t, fit, 0.0 if regions.projected else t - second)
    held: float = target - fit.shortfall(_queries(regions, widens=False), failure)
    return target, 0, held if regions.projected else min(held, second)


def tuned(split: BudgetSplit) -> BudgetSplit:
    """Return the split with the shares that promise most, or the same split where shares promise nothing.

    Shares that promise a radius come first. Then the promised `missing` plus the records that the chosen
    region may lack is minimized, because the latter decide about the radius. Only public parameters are used.
    """
    if split.lattice or split.regions.projected:
        return split
    fits = {min(MOST_FIT, split.usual_fit * multiple) for multiple in _FITS}
    tried = [replace(split, tuned=(fit, lean)) for fit in sorted(fits) for lean in _LEANS]
    holds = [(each, guarantee(each, each.draws(1.0))) for each in tried]
    worth = [
        (holding.widens, holding.missing + holding.lacks, each) for each, holding in holds if holding.found
    ]
    return min(worth, key=lambda one: one[:2])[2] if worth else split


def serves(split: BudgetSplit, draws: Draws) -> bool:
    """Say whether it is promised that a ball is found, and that it holds at least half of the target."""
    holds = guarantee(split, draws)
    return holds.found and holds.missing <= split.target / 2


def smallest_target(works: Callable[[int], bool]) -> int | None:
    """Return the smallest target up to 2^40 that works; None where there is none.

    Args:
        works: says whether a target works. If a target works, all larger ones must work too.
    """
    enough = next((1 << bits for bits in range(41) if works(1 << bits)), None)
    if enough is None:
        return None
    targets = range(enough // 2 + 1, enough)
    return targets.start + bisect_left(targets, True, key=works)
