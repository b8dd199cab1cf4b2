"""Thresholds of the practical 1-cluster's rounds, and the promises that follow from them."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from core.one_cluster.found import Promises
from core.one_cluster.practical.budget_split import CENTER_SAMPLE, RADIUS_SAMPLE, BudgetSplit, Draws
from core.one_cluster.practical.refine import candidate_radii


@dataclass(frozen=True)
class Guarantee:
    """Thresholds of the rounds, and what holds under them with probability 1 - failure.

    Args:
        threshold: count in the first round's sample that some box of a level must reach.
        target: count that the ball of the fitted radius must reach.
        missing: if `found`, the ball holds at least t - missing records, where t is the target of the job.
        found: whether it is promised that a ball is found.
        count_error: the released count is off by at most this.
    """

    threshold: int
    target: int
    missing: int
    found: bool
    count_error: int

    def promises(self, split: BudgetSplit) -> Promises:
        """Return what the rounds of `split` promise. In a projection they promise no radius."""
        boxes, grid = split.boxes, split.setting.grid
        root = math.sqrt(grid.dimension)
        radius = self.found and not boxes.projected
        return Promises(
            missing=self.missing if self.found else None,
            radius_factor=4 * root / boxes.fits if radius else None,
            resolution=(1 << boxes.bottom) * root * grid.step if radius else None,
            count_error=self.count_error,
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
    """Derive thresholds and promises by a union bound over nine events, each of failure / 9.

    Let t be the target. Let B be the smallest ball that holds t records, and let a be the finest level at
    which some box holds any ball of the radius of B.

    1. The sample of `FindRadius` keeps enough records of B for the round to stop at level a or a finer one.
    2. At the level where the round stops, some box has a count in the sample of at least the threshold minus
       the error. So this box holds at least `first` records.
    3. The sample of `FindBox` keeps enough records of this box. The chosen box has a count in the sample that
       is smaller by at most the error of the choice. So the chosen box holds at least `second` records.
    4. `FitRadius` tries radii up to the diameter of the chosen box. So the released ball holds at least the
       fitted target minus the error, or the whole chosen box and with it `second` records.
    """
    t, boxes = split.target, split.boxes
    log = math.log(9 / split.setting.params.failure)
    # Union bound over every box of every level, or over every box of one level at all offsets.
    every_box = log + math.log(2.0) * (boxes.index_bits + 1) + math.log(len(boxes.offsets(fine=True)))
    q1, q2 = split.rate(RADIUS_SAMPLE), split.rate(CENTER_SAMPLE)
    failure = math.exp(-log)

    radius_error = draws.level.error(len(boxes.levels), failure)
    threshold = max(0.6 * q1 * t, _at_least(t, q1, log) - radius_error)
    stops = threshold <= _at_least(t, q1, log) - radius_error + 1
    first = _fewest(max(0.0, threshold - radius_error), q1, every_box)

    shown = _at_least(first, q2, log)
    chooses = shown - split.floor(CENTER_SAMPLE) >= draws.box.nothing + draws.box.scale * log
    second = _fewest(max(0.0, shown - draws.box.scale * every_box), q2, every_box)

    fit, candidates = draws.radius.query_scale, max(len(candidate_radii(boxes, a)) for a in boxes.levels)
    slack = min(10 * fit, max(4 * fit, 0.05 * t))
    target = max(1, round(t - slack))
    held: float = target - draws.radius.error(candidates, failure)
    if not boxes.projected:
        held = min(held, second)
    return Guarantee(
        threshold=round(threshold),
        target=target,
        missing=math.ceil(t - held),
        found=stops and chooses and held > 0,
        count_error=math.ceil(draws.count.scale * log),
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
