"""What the practical 1-cluster promises: thresholds of its rounds, and what then holds."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from core.one_cluster.found import Promises
from core.one_cluster.practical.budget_split import CENTER_SAMPLE, RADIUS_SAMPLE, BudgetSplit, Draws
from core.one_cluster.practical.refine import candidate_radii


@dataclass(frozen=True)
class Guarantee:
    """Thresholds of the rounds, and what then holds with probability 1 - failure.

    Args:
        threshold: count, in the sample of the first round, at which a level is good.
        target: count at which the fitted radius is good.
        missing: the ball holds at least target - missing records, where `found`.
        found: whether it is promised that a ball is found.
        count_error: the released count is off by at most that.
    """

    threshold: int
    target: int
    missing: int
    found: bool
    count_error: int

    def promises(self, split: BudgetSplit) -> Promises:
        """Return what is promised of the rounds of `split`; in a projection, nothing of the radius."""
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
    """Return how many of `count` records a sample keeps, but for probability e^-log (Chernoff)."""
    mean = max(0.0, count * rate)
    return mean if rate >= 1 else mean - math.sqrt(2 * mean * log)


def _fewest(sampled: float, rate: float, log: float) -> float:
    """Return the fewest records of which `sampled` are kept, but for probability e^-log (Bernstein)."""
    if rate >= 1:
        return sampled
    half = math.sqrt((1 - rate) * log / 2)
    root = math.sqrt(max(0.0, half**2 + sampled - 2 * log / 3)) - half
    return max(0.0, root) ** 2 / rate


def guarantee(split: BudgetSplit, draws: Draws) -> Guarantee:
    """Derive thresholds and promises by a union bound over nine events, each of failure / 9.

    Let t be the target and a the finest level whose boxes hold every ball of radius r_opt(t).

    - The sample of `FindRadius` keeps enough of that ball for the round to stop by level a. At the level
      where it stops, some box shows at least the threshold less the error, hence truly holds `first`.
    - The sample of `FindBox` keeps enough of that box. The chosen box shows less by at most the mechanism's
      loss, hence truly holds `second`.
    - `FitRadius` tries radii up to the diameter of that box, so its ball holds the fitted target less the
      error, or `second`.
    """
    t, boxes = split.target, split.boxes
    log = math.log(9 / split.setting.params.failure)
    # Every box of every level, or of one level and all offsets, at most.
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
    """Say whether the target is promised, with at least half of it in the ball."""
    holds = guarantee(split, draws)
    return holds.found and holds.missing <= split.target / 2


def smallest_target(works: Callable[[int], bool]) -> int | None:
    """Return the smallest target below 2^40 that works; None where there is none.

    Args:
        works: says whether a target works; all targets above one that works do too.
    """
    targets = range(1, 1 << 40)
    at = bisect_left(targets, True, key=works)
    return None if at == len(targets) else targets[at]
