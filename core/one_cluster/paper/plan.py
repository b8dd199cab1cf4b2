"""Plan of the published 1-cluster: GoodRadius with RecConcave, then GoodCenter, literal constants."""

import hashlib
import math
from dataclasses import dataclass

from core.budget import Budget, spend
from core.domain import Grid
from core.draws import charged
from core.neighbors import Neighbors
from core.one_cluster.paper.good_center import CenterScales, GoodCenter
from core.one_cluster.paper.good_radius import GoodRadius, RadiusScales
from core.one_cluster.params import OneCluster
from core.plan import Plan

_EVENTS = 9  # GoodRadius fails with beta, GoodCenter with at most 8 beta
_MOST_EPSILON = 16  # Theorem 4.7 and the Gaussian then stay within their shares for any delta
_MOST_RECORDS = 2**45  # promises hold for any table up to here; n enters by its logarithm


@dataclass(frozen=True)
class _Setting:
    """Everything a plan is made from."""

    grid: Grid
    params: OneCluster
    budget: Budget

    @property
    def beta(self) -> float:
        return self.params.failure / _EVENTS

    @property
    def radius(self) -> RadiusScales:
        return RadiusScales(self.grid, self.budget.epsilon / 2, self.budget.delta / 2, self.beta)

    @property
    def center(self) -> CenterScales:
        d = self.grid.dimension
        return CenterScales(d, self.budget.epsilon / 2, self.budget.delta / 2, self.beta)

    @property
    def expected(self) -> int:
        """How many records some ball of the released radius holds at least: t - 3 Gamma."""
        return self.params.target - 3 * self.radius.gamma


@dataclass(frozen=True)
class _Accuracy:
    """What holds with probability 1 - failure for every table of at most 2^45 records.

    Args:
        missing: the released ball holds at least target - missing records,
        smallest_target: if target is at least this.
        radius_factor: and its radius is at most this times the best one.
    """

    missing: int
    smallest_target: int
    radius_factor: float


def _accuracy(setting: _Setting) -> _Accuracy:
    """Follow the proofs of Lemmas 4.6 and 4.12 with the noise really drawn.

    GoodRadius: some ball of radius z about a record holds t - 3 Gamma, and z <= 4 r_opt. AboveThreshold
    then stops, as its margin 100 / epsilon ln(2 n / beta) exceeds its error, at a shift where the fullest
    box holds t - 3 Gamma less margin and error; the chosen box loses twice the largest noise of n cells.
    Its records lie within 450 z sqrt(k) of each other, hence in at most two intervals of any axis, hence
    all in the bounding ball if every axis finds an interval; so within 450 z sqrt(k) of their mean.
    """
    n, d, beta, scales = _MOST_RECORDS, setting.grid.dimension, setting.beta, setting.center
    margin = 100 / scales.epsilon * scales.log(n)
    error = scales.shift.error(scales.shifts(n), beta)
    box_noise = math.ceil(scales.box.scale * math.log(n / beta))
    missing = 3 * setting.radius.gamma + math.ceil(margin) + error + 2 * box_noise

    average = scales.average
    count_noise = math.ceil(average.count.scale * math.log(1 / beta))
    need = max(
        scales.box.needs(n, beta),
        2 * scales.intervals.one.needs(n, beta / d) + 1,
        count_noise + math.ceil(average.count.scale * math.log(2 / average.delta)) + 1,
    )
    smallest = max(2 * missing, missing + need)

    # The average's error per unit of z, whose smallest value is half a step.
    count = max(setting.params.target, smallest) - missing - count_noise
    unit = math.sqrt(d) * n * scales.reach(n) / 2.0**60
    reach = scales.reach(n) + 2 + unit
    spread = average.sum.scale * (math.sqrt(d) + math.sqrt(2 * math.log(1 / beta)))
    averaging = reach * (spread + count_noise) / max(1, count) + unit
    rounding = 2 * (math.sqrt(d) / 2 + 1)
    return _Accuracy(missing, smallest, 4 * (scales.diameter(n) + averaging + rounding))


def _notes(setting: _Setting, accuracy: _Accuracy) -> tuple[str, ...]:
    notes = [
        "These are the published constants, meant for proofs: a promise needs a target of at least "
        f"{accuracy.smallest_target:.3g} at this budget, and they leave part of it unspent.",
        "Every pair of distinct points is compared, in time that grows with the cube of their number and "
        "memory that grows with its square: made for about a thousand at most. Time, and failure for want of "
        "memory, are not covered by the guarantee.",
        "The count is that of the records averaged, not of all records inside the ball.",
    ]
    if setting.params.target < accuracy.smallest_target:
        notes.append(
            f"The target {setting.params.target} is too small for a promise: expect not_found, or a wide "
            "ball. What is released is as private as ever."
        )
    return tuple(notes)


def plan_paper(
    grid: Grid, params: OneCluster, budget: Budget, neighbors: Neighbors, salt: bytes = b""
) -> Plan:
    """Plan the published 1-cluster (Nissim, Stemmer and Vadhan 2016, Theorem 3.2).

    GoodRadius and GoodCenter get half of epsilon and delta each. The number of records n is public under
    `replace_one`, so the constants that need it are computed when the data are there.

    Args:
        grid: the universe.
        params: target and failure probability.
        budget: what the run may spend.
        neighbors: `replace_one`, as in the paper.
        salt: a public seed of the shifts and rotations is hashed from it; privacy does not rest on it.

    Returns:
        Rounds and promises: `missing` (the ball holds at least target - missing records) and `radius_factor`
        (its radius is at most this times that of the smallest ball holding the target). Both are None below
        the smallest target.

    Raises:
        ValueError: another relation, known counts, delta 0, epsilon above 16, or shares.
    """
    grid.check_distances()
    neighbors.count()  # refuses known counts, under which neighbors differ in more than one record
    if neighbors.name != "replace_one":
        raise ValueError(
            f"privacy.neighbors is {neighbors.name}: method paper uses the number of records as a public "
            "figure, so it supports only replace_one; use method practical."
        )
    if budget.delta <= 0:
        raise ValueError("privacy.delta is 0: method paper chooses among boxes, which needs a delta above 0.")
    if budget.epsilon > _MOST_EPSILON:
        raise ValueError(
            f"privacy.epsilon is {budget.epsilon}: method paper composes as published, which needs at most "
            f"{_MOST_EPSILON}; use method practical."
        )
    if params.shares:
        raise ValueError("params.shares is set: method paper splits the budget as published; leave it out.")
    setting = _Setting(grid, params, budget)
    accuracy = _accuracy(setting)
    promised = params.target >= accuracy.smallest_target
    seed = int.from_bytes(hashlib.sha256(b"shifts and rotations" + salt).digest())
    rounds = (
        GoodRadius(params.target, setting.radius),
        GoodCenter(grid, setting.expected, setting.center, seed),
    )
    mechanisms = charged(rounds)
    return Plan(
        method="paper",
        rounds=rounds,
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises={
            "missing": accuracy.missing if promised else None,
            "radius_factor": accuracy.radius_factor if promised else None,
        },
        failure=params.failure,
        smallest_target=accuracy.smallest_target,
        notes=_notes(setting, accuracy),
    )
