"""An interior point through the 1-cluster: a small ball has an interior point among few candidates.

Nissim, Stemmer and Vadhan 2016, Algorithm 3: the reduction by which finding small clusters is as hard as
finding interior points.
"""

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from core.budget import Budget
from core.domain import Grid
from core.draws import Charged, Draw
from core.gaps import Order
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.noise import Noise
from core.one_cluster.found import Found
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.method import Practical
from core.plan import Plan
from core.rounds import Block, run_in_memory
from core.task import Setting, planned

_REPLACE = Neighbors("replace_one")


@dataclass(frozen=True)
class IntPoint:
    """Find an interior point under `replace_one`.

    A ball of the middle records, cut into pieces too short to hold them all: an end of some piece is then
    between two of them, and as deep in the database as what was left out at either side. The exponential
    mechanism picks it by min(#{x <= v}, #{x >= v}), whose change has range 2.

    The middle records of neighbors are neighbors, so the 1-cluster's guarantee and the mechanism's compose.

    Args:
        ball: rounds of the 1-cluster; its target is the number of middle records.
        middle: that number.
        resolution: radius in grid steps up to which every point of the ball is a candidate.
        factor: the ball is at most this many times as wide as the smallest one.
        end: chooses the point.
    """

    ball: tuple[Charged, ...] = field(repr=False)
    middle: int
    resolution: int
    factor: float
    end: Exponential

    @property
    def most_candidates(self) -> int:
        """Most candidates that a ball can have."""
        return 2 + max(2 * self.resolution + 1, math.ceil(4 * self.factor))

    def draws(self) -> tuple[Draw, ...]:
        """See `Finder`."""
        return (*(draw for step in self.ball for draw in step.draws()), self.end)

    def records_needed(self, failure: float) -> int:
        """Smallest n at which an interior point is promised, if the 1-cluster fails with `failure` / 2."""
        depth = math.ceil(self.end.scale * math.log(2 * self.most_candidates / failure))
        return self.middle + 2 * depth

    def candidates(self, center: int, radius: int) -> list[int]:
        """Ends of pieces of the ball, none of which holds all middle records; all points of a small ball."""
        piece = 1 if radius <= self.resolution else max(1, math.floor(radius / self.factor))
        return [*range(center - radius, center + radius, piece), center + radius]

    def find(self, order: Order, noise: Noise) -> int | None:
        """Release a point, or None where there are too few records or no ball was found."""
        beside = (order.total - self.middle) // 2
        if beside < 0:
            return None  # public: the number of records is
        points = np.repeat(order.values, np.diff(order.ranks))
        middle = points[beside : beside + self.middle, None].astype(np.int64)
        block = Block(middle, np.arange(self.middle, dtype=np.uint64))
        ball = run_in_memory(self.ball, [block], None, noise)
        if not isinstance(ball, Found):
            return None
        ends = np.array(self.candidates(int(ball.center[0]), ball.radius))
        below, upto = (np.searchsorted(points, ends, side) for side in ("left", "right"))
        depths = np.minimum(upto, order.total - below)
        return int(ends[self.end.candidate(depths, noise)])


def int_point(size: int, epsilon: float, delta: float, failure: float, salt: bytes) -> IntPoint:
    """Calibrate the reduction: half of epsilon to the 1-cluster, at the smallest target that it promises.

    Args:
        size: number of grid points, at most 2^31.
        epsilon: sum over the draws.
        delta: of the 1-cluster.
        failure: probability of missing an interior point at `records_needed`.
        salt: 16 secret bytes that choose the 1-cluster's samples.

    Raises:
        ValueError: the universe is too large for the 1-cluster, or the budget too small.
    """
    if size > 2**31:
        raise ValueError(
            f"params.method is one_cluster: it measures distances, on at most 2^31 grid points, not "
            f"on {size:,}; use exponential."
        )
    grid, budget = Grid((0,), (size - 1,), 1), Budget(epsilon / 2, delta)

    def plan(target: int) -> Plan:
        return planned(Practical(Setting(grid, OneCluster(target, failure / 2), budget, _REPLACE, salt)))

    target = plan(1).smallest_target
    if target is None:
        raise ValueError(
            f"privacy.epsilon is {epsilon}: too small for params.method one_cluster; use exponential."
        )
    ball = plan(target)
    resolution = math.ceil(ball.promises["resolution"])
    end = Exponential.of("end of a piece", epsilon / 2, 2)
    rounds = tuple(_with_own_names(step) for step in ball.rounds)
    return IntPoint(rounds, target, resolution, float(ball.promises["radius_factor"]), end)


def _with_own_names(step: Any) -> Any:
    """Name a round's draws after it, so that those of several rounds can be told apart in one."""
    held = {f.name: getattr(step, f.name) for f in fields(step)}
    named = {
        name: replace(draw, what=f"{draw.what}, {step.name}")
        for name, draw in held.items()
        if isinstance(draw, Draw)
    }
    return replace(step, **named)
