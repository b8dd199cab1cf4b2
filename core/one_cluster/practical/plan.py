"""Plan of the practical 1-cluster: shares, noise scales, promises; from public parameters alone."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

from core.budget import Budget, Cost, Mechanism, before_sampling, calibrate, spend
from core.domain import Grid
from core.draws import Additive, Charged, Gaussian, Laplace, charged
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.choosing import Choosing
from core.neighbors import Neighbors
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.boxes import Boxes
from core.one_cluster.practical.rounds import (
    FitRadius,
    GoodCenter,
    GoodRadius,
    NoisyAverage,
    Thinning,
    candidate_radii,
)
from core.plan import Plan

_RADIUS_SAMPLE, _CENTER_SAMPLE = 2000, 8000  # records of the target that the samples keep, expected
_SUM = 0.85  # an average spends this part on the sum and the rest on the count
_AVERAGES = ("average_1", "average_2")
_NAMES = ("good_radius", "good_center", *_AVERAGES, "fit_radius", "count")


@dataclass(frozen=True)
class Draws:
    """Every draw of a run; see the rounds for the sensitivities."""

    level: AboveThreshold
    box: Choosing
    sums: tuple[Additive, ...]
    counts: tuple[Laplace, ...]
    radius: AboveThreshold
    count: Laplace


@dataclass(frozen=True)
class Setting:
    """Everything a plan is made from.

    Args:
        grid: the universe.
        params: target and failure probability.
        budget: what the run may spend.
        neighbors: the relation.
        changes: how many changes of that relation lie between neighbors.
    """

    grid: Grid
    params: OneCluster
    budget: Budget
    neighbors: Neighbors
    changes: int = 1

    @property
    def boxes(self) -> Boxes:
        """The boxes of the grid, at all scales."""
        return Boxes(self.grid)

    def rate(self, sample: int) -> float:
        """Poisson rate at which the target keeps about `sample` records."""
        return min(1.0, sample / self.params.target)

    def floor(self, sample: int) -> int:
        """Records in a box below which a round does not send it on."""
        return int(self.rate(sample) * self.params.target / 8)

    @property
    def choice_delta(self) -> float:
        """What choosing a box spends of delta."""
        return self.budget.delta / 4

    @property
    def _gaussian_factor(self) -> float:
        return math.sqrt(2 * math.log(1.25 / (self.budget.delta / 4)))

    @property
    def gaussian(self) -> bool:
        """Whether Gaussian noise is smaller than Laplace noise on a sum of d coordinates."""
        return math.sqrt(2 * self.grid.dimension) > self._gaussian_factor

    def shares(self) -> dict[str, float]:
        """Shares of epsilon; by default the fit gets what makes its error a 20th of the target."""
        fit = min(0.45, max(0.2, 200 / (self.params.target * self.budget.epsilon)))
        average = (1 - 0.15 - 0.10 - 0.06 - fit) / 2
        shares = dict(zip(_NAMES, (0.15, 0.10, average, average, fit, 0.06), strict=True))
        for name, share in (self.params.shares or {}).items():
            if name not in shares:
                raise ValueError(f"params.shares has {name!r}: its keys are {', '.join(_NAMES)}.")
            shares[name] = share
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()}

    def draws(self, multiplier: float) -> Draws:
        """Return the draws at `multiplier` times the shares.

        A replacement is 2 additions or removals: what is calibrated for one of these gets the part that
        `Cost.per_change` leaves it.
        """
        epsilon = {k: v * self.budget.epsilon * multiplier for k, v in self.shares().items()}
        moves, one = self._moves, self.changes * self.neighbors.count()
        radius_rate, center_rate = self.rate(_RADIUS_SAMPLE), self.rate(_CENTER_SAMPLE)
        radius = 2 / before_sampling(epsilon["good_radius"] / moves, radius_rate)
        center = Cost(epsilon["good_center"], self.choice_delta).per_change(moves)
        fit = 2 * moves / epsilon["fit_radius"]
        return Draws(
            level=AboveThreshold(
                what="level",
                threshold_scale=radius,
                query_scale=radius,
                monotone=True,
                rate=radius_rate,
                changes=moves,
            ),
            box=Choosing.of(
                "box",
                before_sampling(center.epsilon, center_rate),
                center.delta / center_rate,
                len(self.boxes.offsets(fine=True)),
                rate=center_rate,
                changes=moves,
            ),
            sums=tuple(self._sum(name, _SUM * epsilon[name]) for name in _AVERAGES),
            counts=tuple(
                Laplace.of(f"count of {name}", (1 - _SUM) * epsilon[name], one) for name in _AVERAGES
            ),
            radius=AboveThreshold(
                what="radius", threshold_scale=fit, query_scale=fit, monotone=True, changes=moves
            ),
            count=Laplace.of("count", epsilon["count"], one),
        )

    @property
    def _moves(self) -> int:
        """How many additions or removals lie between neighbors."""
        return self.changes * self.neighbors.moves

    def _sum(self, name: str, epsilon: float) -> Additive:
        """Return the noise of a sum, Gaussian or Laplace, for a share of about `epsilon`."""
        what, moves = f"sum of {name}, per step of the ball's radius", self._moves
        if self.gaussian:
            return Gaussian.of(what, (epsilon / self._gaussian_factor) ** 2 / 2, moves)
        return Laplace.of(what, epsilon, moves * math.sqrt(self.grid.dimension))

    def rounds(self, draws: Draws, salt: bytes) -> tuple[Charged, ...]:
        """Return the rounds that draw so."""
        return rounds_of(self, draws, accuracy_of(self, draws), salt)

    def mechanisms(self, multiplier: float) -> tuple[Mechanism, ...]:
        """Return what a run at `multiplier` times the shares is charged for."""
        return charged(rounds_of(self, self.draws(multiplier), _ANY, bytes(16)))

    def serves(self, target: int) -> bool:
        """Whether this target instead is promised, with at least half of it in the ball."""
        tried = replace(self, params=replace(self.params, target=target))
        accuracy = accuracy_of(tried, tried.draws(1.0))
        return accuracy.found and accuracy.missing <= target / 2


@dataclass(frozen=True)
class Accuracy:
    """Thresholds, and what holds with probability 1 - failure (`found`: whether it is promised)."""

    threshold: int
    target: int
    missing: int
    found: bool
    count_error: int


_ANY = Accuracy(threshold=1, target=1, missing=0, found=False, count_error=0)
"""Thresholds where only the draws matter, which don't depend on them."""


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


def accuracy_of(setting: Setting, draws: Draws) -> Accuracy:
    """Derive thresholds and promises by a union bound over nine events, each of failure / 9.

    Let t be the target and a the finest level whose boxes hold every ball of radius r_opt(t).
    GoodRadius' sample keeps enough of that ball for it to stop by level a, and where it stops some box
    shows the threshold less its error, hence truly holds `first`. GoodCenter's sample keeps enough of
    that box; the chosen one shows at most its own loss less, hence truly holds `second`. FitRadius looks
    as far as that box is wide, so its ball holds the fitted target less its error, or `second`.
    """
    t, boxes = setting.params.target, setting.boxes
    log = math.log(9 / setting.params.failure)
    # Every box of every level, or of one level and all offsets, at most.
    every_box = log + math.log(2.0) * (boxes.index_bits + 1) + math.log(len(boxes.offsets(fine=True)))
    q1, q2 = setting.rate(_RADIUS_SAMPLE), setting.rate(_CENTER_SAMPLE)
    failure = math.exp(-log)

    radius_error = draws.level.error(len(boxes.levels), failure)
    threshold = max(0.6 * q1 * t, _at_least(t, q1, log) - radius_error)
    stops = threshold <= _at_least(t, q1, log) - radius_error + 1
    first = _fewest(max(0.0, threshold - radius_error), q1, every_box)

    shown = _at_least(first, q2, log)
    chooses = shown - setting.floor(_CENTER_SAMPLE) >= draws.box.nothing + draws.box.scale * log
    second = _fewest(max(0.0, shown - draws.box.scale * every_box), q2, every_box)

    fit, candidates = draws.radius.query_scale, max(len(candidate_radii(boxes, a)) for a in boxes.levels)
    slack = min(10 * fit, max(4 * fit, 0.05 * t))
    target = max(1, round(t - slack))
    held: float = target - draws.radius.error(candidates, failure)
    if not boxes.projected:
        held = min(held, second)
    return Accuracy(
        threshold=round(threshold),
        target=target,
        missing=math.ceil(t - held),
        found=stops and chooses and held > 0,
        count_error=math.ceil(draws.count.scale * log),
    )


def rounds_of(setting: Setting, draws: Draws, accuracy: Accuracy, salt: bytes) -> tuple[Charged, ...]:
    """Return the rounds, with their draws and the thresholds of `accuracy`."""
    boxes = setting.boxes
    averages = [
        NoisyAverage(
            boxes,
            in_box=boxes.projected and name == _AVERAGES[0],
            sum=sum_,
            count=count,
            smallest=math.ceil(3 * count.scale),
            name=name,
        )
        for name, sum_, count in zip(_AVERAGES, draws.sums, draws.counts, strict=True)
    ]
    radius_sample = Thinning(setting.rate(_RADIUS_SAMPLE), salt, 1)
    center_sample = Thinning(setting.rate(_CENTER_SAMPLE), salt, 2)
    radius_floor, center_floor = setting.floor(_RADIUS_SAMPLE), setting.floor(_CENTER_SAMPLE)
    return (
        GoodRadius(boxes, radius_sample, radius_floor, accuracy.threshold, draws.level),
        GoodCenter(boxes, center_sample, center_floor, draws.box),
        *averages,
        FitRadius(boxes, accuracy.target, draws.radius, draws.count),
    )


def promises_of(setting: Setting, accuracy: Accuracy) -> dict[str, float | None]:
    """Return what is promised: see `plan_practical`."""
    boxes, grid = setting.boxes, setting.grid
    root = math.sqrt(grid.dimension)
    radius = accuracy.found and not boxes.projected
    return {
        "missing": accuracy.missing if accuracy.found else None,
        "radius_factor": 4 * root / boxes.fits if radius else None,
        "resolution": (1 << boxes.bottom) * root * grid.step if radius else None,
        "count_error": accuracy.count_error,
    }


def smallest_target(serves: Callable[[int], bool]) -> int | None:
    """Return the smallest target below 2^40 that `serves`, which all larger ones do too; None without one."""
    targets = range(1, 1 << 40)
    at = bisect_left(targets, True, key=serves)
    return None if at == len(targets) else targets[at]


def _notes(setting: Setting, accuracy: Accuracy) -> tuple[str, ...]:
    notes = []
    if not accuracy.found:
        notes.append(
            f"The target {setting.params.target} is too small for a promise at this budget: the run may "
            "find nothing, or a wider ball. What is released is as private as ever."
        )
    if setting.boxes.projected:
        notes.append(
            f"With {setting.grid.dimension} columns the boxes live in a random projection: the number of "
            "records in the ball is promised, its radius is not."
        )
    for what, sample in (("radius", _RADIUS_SAMPLE), ("center", _CENTER_SAMPLE)):
        rate = setting.rate(sample)
        if rate < 1:
            notes.append(
                f"The {what} round's box counts see a secret Poisson sample of rate {rate:.4g}; its "
                "amplification is accounted."
            )
    return tuple(notes)


def plan_practical(
    grid: Grid, params: OneCluster, budget: Budget, neighbors: Neighbors, salt: bytes, changes: int = 1
) -> Plan:
    """Plan the practical 1-cluster.

    Args:
        grid: the universe.
        params: target and failure probability.
        budget: what the run may spend.
        neighbors: the relation; the number of records is never used under either.
        salt: 16 secret bytes that choose the samples.
        changes: how many changes of that relation lie between neighbors.

    Returns:
        Rounds and promises: `missing` (the ball holds at least target - missing records),
        `radius_factor` (its radius is at most this times that of the smallest ball holding the target),
        `resolution` (or this in data units, where that is larger), `count_error`.

    Raises:
        ValueError: delta is 0, or a share has an unknown name.
    """
    grid.check_distances()
    if budget.delta <= 0:
        raise ValueError("privacy.delta is 0: one_cluster chooses among boxes, which needs a delta above 0.")
    setting = Setting(grid, params, budget, neighbors, changes)
    draws = setting.draws(calibrate(budget, setting.mechanisms))
    rounds, accuracy = setting.rounds(draws, salt), accuracy_of(setting, draws)
    mechanisms = charged(rounds)
    return Plan(
        method="practical",
        rounds=rounds,
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises=promises_of(setting, accuracy),
        failure=params.failure,
        smallest_target=smallest_target(setting.serves),
        notes=_notes(setting, accuracy),
    )
