"""Thresholds of the practical 1-cluster's rounds, and the promises that follow from them."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.exponential import Exponential
from core.mechanisms.tails import excess, largest_of
from core.one_cluster.found import Promises
from core.one_cluster.practical.budget_split import CENTER_SAMPLE, RADIUS_SAMPLE, BudgetSplit, Draws
from core.one_cluster.practical.lattice import Candidates
from core.one_cluster.practical.refine import candidate_radii

_LEAST_LEVEL = 0.6  # part of the target that a box should hold even where noise is large
_NATS = 2  # a further candidate radius of a lattice costs this many scales of the noise
_MOST = 0.7  # all of them together cost at most this part of the target


@dataclass(frozen=True)
class Guarantee:
    """Thresholds of the rounds, and what holds under them with probability 1 - failure.

    Args:
        level_target: count in the first round's sample from which on a side is wide enough.
        target: count that the fitted ball should reach.
        missing: if `found`, the ball holds at least t - missing records, where t is the target of the job.
        found: whether it is promised that a ball is found.
        count_error: the released count is off by at most this.
        excess: the released count is too large by more than this with probability `failure` at most.
        penalty: of a further candidate radius of a lattice; 0 without one.
    """

    level_target: int
    target: int
    missing: int
    found: bool
    count_error: int
    excess: int
    penalty: int = 0

    def promises(self, split: BudgetSplit) -> Promises:
        """Return what the rounds of `split` promise. In a projection they promise no radius."""
        boxes, grid, widest = split.boxes, split.setting.grid, _widest(split)
        radius = self.found and not boxes.projected
        return Promises(
            missing=self.missing if self.found else None,
            radius_factor=4 * widest / boxes.fits if radius else None,
            resolution=2 * widest * (1 << boxes.bottom) * grid.step if radius else None,
            count_error=self.count_error,
        )


def _widest(split: BudgetSplit) -> float:
    """Return a bound on the radius of every ball that is tried, as a multiple of the side of the chosen box.

    It is half the diameter of the box. In a lattice it is the side, or twice the side where a box has few
    cells.
    """
    return 2.0 if split.lattice else math.sqrt(split.setting.grid.dimension) / 2


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
    """Derive thresholds and promises by a union bound over nine events, or five where nothing is sampled.

    Let t be the target. Let B be the smallest ball that holds t records, and let a be the finest level at
    which some box holds any ball of the radius of B.

    1. The sample of `FindRadius` keeps enough records of B. So at level a and above, some box exceeds the
       target of the round by more than the error of its choice. So the chosen level is a or a finer one.
    2. At the chosen level some box has a count in the sample of at least the target of the round minus the
       error. So this box holds at least `first` records.
    3. The sample of `FindBox` keeps enough records of this box. The chosen box has a count in the sample that
       is smaller by at most the error of the choice. So the chosen box holds at least `second` records.
    4. The fit tries balls that contain the chosen box, which hold `second` records; see `_fitted`.
    """
    t, boxes = split.target, split.boxes
    q1, q2 = split.rate(RADIUS_SAMPLE), split.rate(CENTER_SAMPLE)
    failure = split.setting.params.failure / (5 + 2 * (q1 < 1) + 2 * (q2 < 1))
    log = -math.log(failure)
    # Union bound over every box of every level, or over every box of one level at all offsets.
    every_box = log + math.log(2.0) * (boxes.index_bits + 1) + math.log(len(boxes.offsets(fine=True)))

    error = draws.level.scale * (log + math.log(len(boxes.levels) + 1))
    shown = _at_least(t, q1, log)
    level_target = max(1, round(max(_LEAST_LEVEL * q1 * t, shown - error - 1)))
    stops = shown - level_target > error
    first = _fewest(max(0.0, level_target - error), q1, every_box)

    shown = _at_least(first, q2, log)
    chooses = shown - split.floor(CENTER_SAMPLE) >= draws.box.nothing + draws.box.scale * log
    second = _fewest(max(0.0, shown - draws.box.scale * every_box), q2, every_box)

    target, penalty, held = _fitted(split, draws.fit, second, failure)
    return Guarantee(
        level_target=level_target,
        target=target,
        missing=math.ceil(t - held),
        found=stops and chooses and held > 0,
        count_error=largest_of(1, draws.count.scale, failure),
        excess=excess(draws.count.scale, split.setting.params.failure),
        penalty=penalty,
    )


def _fitted(
    split: BudgetSplit, fit: AboveThreshold | Exponential, second: float, failure: float
) -> tuple[int, int, float]:
    """Return target and penalty of the fit, and how many records its ball holds, but for `failure`.

    - A lattice has a ball that contains the chosen box. With all penalties, its score is min(second, t) minus
      all penalties at least. The score of the chosen ball is smaller by at most the error of the choice, and
      no ball's score exceeds its count.
    - Otherwise the ball holds at least the fitted target minus the error, or contains the whole chosen box.
      In a projection it then holds everything.
    """
    t, boxes = split.target, split.boxes
    if isinstance(fit, Exponential):
        balls = [Candidates(boxes, level) for level in boxes.levels]
        radii = max(len(each.radii) for each in balls)
        penalty = max(1, round(min(_NATS * fit.scale, _MOST * t / radii)))
        candidates = max(len(each.centers) * len(each.radii) for each in balls)
        return t, penalty, min(second, t) - penalty * radii - fit.scale * math.log(candidates / failure)
    scale, radii = fit.query_scale, max(len(candidate_radii(boxes, level)) for level in boxes.levels)
    target = max(1, round(t - min(10 * scale, max(4 * scale, 0.05 * t))))
    held: float = target - _error(fit, radii, failure)
    return target, 0, held if boxes.projected else min(held, second)


def _error(fit: AboveThreshold, queries: int, failure: float) -> int:
    """Return the least error that the noise of threshold and queries exceeds with `failure` at most."""
    return bisect_left(
        range(fit.error(queries, failure)), True, key=lambda e: fit.missed(e, queries) <= failure
    )


def serves(split: BudgetSplit, draws: Draws) -> bool:
    """Say whether it is promised that a ball is found, and that it holds at least half of the target."""
    holds = guarantee(split, draws)
    return holds.found and holds.missing <= split.target / 2


def smallest_target(works: Callable[[int], bool]) -> int | None:
    """Return the smallest target below 2^40 that works; None where there is none.

    Args:
        works: says whether a target works. If a target works, all larger ones must work too.
    """
    targets = range(1, 1 << 40)
    at = bisect_left(targets, True, key=works)
    return None if at == len(targets) else targets[at]
