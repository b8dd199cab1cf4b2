"""The published 1-cluster with its published constants: GoodRadius with RecConcave, then GoodCenter."""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from core.draws import Charged
from core.errors import InvalidValue
from core.one_cluster.found import Promises
from core.one_cluster.paper.good_center import CenterScales, GoodCenter
from core.one_cluster.paper.good_radius import GoodRadius, RadiusScales
from core.one_cluster.params import OneCluster
from core.task import Accuracy, Method
from core.tightness import Tightness

_EVENTS = 9  # GoodRadius fails with beta, GoodCenter with at most 8 beta
_MOST_EPSILON = 16  # up to here Theorem 4.7 and the Gaussian stay within their shares for any delta
_MOST_RECORDS = 2**45  # promises hold for tables of at most so many records; they depend on ln(n)


_TIGHTNESS = Tightness(
    "The promise adds up what the proofs of Lemmas 4.6 and 4.12 allow each step to lose, on any data. Balls "
    "are usually several times smaller, and lack several times fewer rows.",
    reached=False,
)


@dataclass(frozen=True)
class _Guarantee:
    """What holds with probability 1 - failure for every table of at most 2^45 records.

    Args:
        missing: if the target is at least `smallest_target`, the ball holds target - missing records or more.
        smallest_target: smallest target for which anything is promised.
        radius_factor: the released radius is at most this times that of the smallest ball.
    """

    missing: int
    smallest_target: int
    radius_factor: float


class Paper(Method[OneCluster]):
    """The published 1-cluster (Nissim, Stemmer and Vadhan 2016, Theorem 3.2).

    GoodRadius and GoodCenter get half of epsilon and delta each. The number of records n is public under
    `replace_one`, so the rounds compute the constants that depend on n from the data. The seed of the shifts
    and rotations is a hash of the salt; privacy does not rest on its secrecy.
    """

    name: ClassVar[str] = "paper"
    calibrated: ClassVar[bool] = False

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        neighbors, budget = self.setting.neighbors, self.setting.budget
        if neighbors.name != "replace_one":
            return InvalidValue(
                "neighbors",
                neighbors.name,
                "method paper uses the number of records as a public figure, so it supports only "
                "replace_one; use method practical",
            )
        if budget.delta <= 0:
            return InvalidValue("delta", 0, "method paper chooses among boxes, which needs a delta above 0")
        if budget.epsilon > _MOST_EPSILON:
            return InvalidValue(
                "epsilon",
                budget.epsilon,
                f"method paper composes as published, which needs at most {_MOST_EPSILON}; use method "
                "practical",
            )
        if self.setting.params.shares and self.setting.params.method == self.name:
            splits = "method paper splits the budget as published; leave it out"
            return InvalidValue("shares", self.setting.params.shares, splits, "is set")
        try:
            _ = self._guarantee
        except (ArithmeticError, ValueError):  # its constants overflow
            return InvalidValue(
                "epsilon", budget.epsilon, "method paper needs a larger one; use method practical"
            )
        return None

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        grid, target = self.setting.grid, self.setting.params.target
        seed = int.from_bytes(hashlib.sha256(b"shifts and rotations" + self.setting.salt).digest())
        expected = (
            target - 3 * self._radius_scales.gamma
        )  # what some ball of the released radius holds at least
        return (
            GoodRadius(target, self._radius_scales),
            GoodCenter(grid, expected, self._center_scales, seed),
        )

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        The error is infinite, so a job gets this method only if it names it: time and memory grow with the
        cube and the square of the number of distinct points.
        """
        holds = self._guarantee
        promises = Promises(missing=None, radius_factor=None)
        if self.setting.params.target >= holds.smallest_target:
            promises = Promises(holds.missing, holds.radius_factor * self.setting.grid.stretch)
        bounds = ("missing", "radius_factor") if promises.missing is not None else ()
        return Accuracy(
            promises, math.inf, self._notes(), holds.smallest_target, dict.fromkeys(bounds, _TIGHTNESS)
        )

    @property
    def _beta(self) -> float:
        return self.setting.params.failure / _EVENTS

    @property
    def _radius_scales(self) -> RadiusScales:
        budget = self.setting.budget
        return RadiusScales(self.setting.grid, budget.epsilon / 2, budget.delta / 2, self._beta)

    @property
    def _center_scales(self) -> CenterScales:
        budget = self.setting.budget
        return CenterScales(self.setting.grid.dimension, budget.epsilon / 2, budget.delta / 2, self._beta)

    @cached_property
    def _guarantee(self) -> _Guarantee:
        """Follow the proofs of Lemmas 4.6 and 4.12 with the noise really drawn.

        1. GoodRadius: some ball of radius z about a record holds t - 3 Gamma records, and z <= 4 r_opt.
        2. AboveThreshold stops, because its margin 100 / epsilon ln(2 n / beta) exceeds its error. At the
           shift where it stops, the fullest box holds at least t - 3 Gamma - margin - error records.
        3. The chosen box holds fewer than the fullest by at most twice the largest noise of n cells.
        4. Any two records of the chosen box are within 450 z sqrt(k) of each other. So they lie in at most
           two neighboring intervals of any axis. If an interval is found on every axis, the bounding ball
           holds all of these records.
        5. So all of them are within 450 z sqrt(k) of their mean, which is what the average estimates.
        """
        n, d, beta, scales = _MOST_RECORDS, self.setting.grid.dimension, self._beta, self._center_scales
        margin = 100 / scales.epsilon * scales.log(n)
        error = scales.shift.error(scales.shifts(n), beta)
        box_noise = math.ceil(scales.box.scale * math.log(n / beta))
        missing = 3 * self._radius_scales.gamma + math.ceil(margin) + error + 2 * box_noise

        average = scales.average
        count_noise = math.ceil(average.count.scale * math.log(1 / beta))
        need = max(
            scales.box.needs(n, beta),
            2 * scales.intervals.one.needs(n, beta / d) + 1,
            count_noise + math.ceil(average.count.scale * math.log(2 / average.delta)) + 1,
        )
        smallest = max(2 * missing, missing + need)

        # The average's error per unit of z, whose smallest value is half a step.
        count = max(self.setting.params.target, smallest) - missing - count_noise
        unit = math.sqrt(d) * n * scales.reach(n) / 2.0**60
        reach = scales.reach(n) + 2 + unit
        spread = average.sum.scale * (math.sqrt(d) + math.sqrt(2 * math.log(1 / beta)))
        averaging = reach * (spread + count_noise) / max(1, count) + unit
        rounding = 2 * (math.sqrt(d) / 2 + 1)
        return _Guarantee(missing, smallest, 4 * (scales.diameter(n) + averaging + rounding))

    def _notes(self) -> tuple[str, ...]:
        target, smallest = self.setting.params.target, self._guarantee.smallest_target
        notes = [
            "These are the published constants, meant for proofs: a promise needs a target of at least "
            f"{smallest:.3g} at this budget, and part of the budget stays unspent.",
            "Every pair of distinct points is compared. Time grows with the cube of the number of distinct "
            "points, memory with its square, so use the method for at most about a thousand. The guarantee "
            "does not cover the running time, nor a failure for lack of memory.",
            "The count is the number of records that were averaged, not of all records inside the ball.",
        ]
        if target < smallest:
            notes.append(
                f"The target {target} is too small for a promise: expect not_found, or a wide "
                "ball. The privacy guarantee is the same."
            )
        return tuple(notes)
