"""An interior point through the 1-cluster: a small ball has an interior point among few candidates.

Nissim, Stemmer and Vadhan 2016, Algorithm 3: the reduction by which finding small clusters is as hard as
finding interior points.
"""

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from core.budget import Budget
from core.domain import Grid
from core.draws import Charged, Draw
from core.errors import InvalidValue
from core.gaps import Order
from core.interior_point.sampled import SampledMethod
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
_LARGEST = 2**31  # most grid points on which the 1-cluster measures distances


@dataclass(frozen=True)
class OneClusterReduction:
    """Find an interior point under `replace_one`.

    1. The 1-cluster finds a ball that holds the middle records.
    2. The ball is cut into pieces too short to hold all of them, so an end of some piece lies between two
       middle records. Its depth min(#{x <= v}, #{x >= v}) is at least the number of records left out on
       either side.
    3. The exponential mechanism picks an end v by that depth.

    Privacy. The middle records of neighbors are neighbors, so the 1-cluster is private. A replacement raises
    or lowers the depth of each end by at most 1, so the change of the scores has range 2. The ball is
    public when an end is picked, so both compose adaptively.

    Args:
        ball: rounds of the 1-cluster; its target is the number of middle records.
        middle: that number.
        resolution: radius in grid steps up to which every point of the ball is a candidate.
        factor: the ball is at most this many times as wide as the smallest one.
        end: chooses the end of a piece.
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
        """See `Finder.draws`."""
        return (*(draw for step in self.ball for draw in step.draws()), self.end)

    def records_needed(self, failure: float) -> int:
        """See `Finder.records_needed`; half of `failure` is the 1-cluster's."""
        depth = math.ceil(self.end.scale * math.log(2 * self.most_candidates / failure))
        return self.middle + 2 * depth

    def candidates(self, center: int, radius: int) -> list[int]:
        """Return the ends of the pieces of the ball; pieces are single steps where the ball is small."""
        piece = 1 if radius <= self.resolution else max(1, math.floor(radius / self.factor))
        return [*range(center - radius, center + radius, piece), center + radius]

    def find(self, order: Order, noise: Noise) -> int | None:
        """Release a point, or None where there are too few records or no ball was found."""
        beside = (order.total - self.middle) // 2
        if beside < 0:
            return None  # the number of records is public
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


class OneClusterMethod(SampledMethod):
    """The reduction to the 1-cluster on a random subset of the records, at the smallest target it promises.

    Half of epsilon and all of delta are the 1-cluster's; the other half of epsilon chooses the end.
    """

    name: ClassVar[str] = "one_cluster"
    tightness: ClassVar[str] = (
        "Hardly fewer rows suffice, on any data: the target of the 1-cluster follows from their number, "
        "and with fewer it finds nothing."
    )
    calibrated: ClassVar[bool] = False

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        refusal = super().refusal()
        if refusal is not None:
            return refusal
        if self.size > _LARGEST:
            return InvalidValue(
                "method",
                self.name,
                f"it measures distances, on at most 2^31 grid points, not on {self.size:,}; use exponential",
            )
        if self._target is None:
            return InvalidValue(
                "epsilon",
                self.setting.budget.epsilon,
                f"it is too small for method {self.name}; use exponential",
            )
        return None

    def finder(self, share: float) -> OneClusterReduction:
        """See `SampledMethod.finder`."""
        return self._finder

    @cached_property
    def _finder(self) -> OneClusterReduction:
        if self._target is None:
            raise ValueError("There is no finder where the method is refused.")
        ball = self._ball(self._target)
        return OneClusterReduction(
            ball=tuple(_with_own_names(step) for step in ball.rounds),
            middle=self._target,
            resolution=math.ceil(ball.promises["resolution"]),
            factor=float(ball.promises["radius_factor"]),
            end=Exponential.of("end of a piece", self.setting.budget.epsilon / 2, 2),
        )

    @cached_property
    def _target(self) -> int | None:
        return self._ball(1).smallest_target

    def _ball(self, target: int) -> Plan:
        """Plan the 1-cluster on whole grid steps."""
        setting = self.setting
        grid, budget = (
            Grid((0,), (self.size - 1,), 1),
            Budget(setting.budget.epsilon / 2, setting.budget.delta),
        )
        params = OneCluster(target, setting.params.failure / 2)
        inner = Setting(grid, params, budget, _REPLACE, setting.salt)
        # Records are numbered by rank here: a second execution with this salt would sample the same ranks.
        return planned(Practical(inner, bounded=True, samples=False))


def _with_own_names(step: Any) -> Any:
    """Name a round's draws after it, so that those of several rounds can be told apart in one."""
    held = {f.name: getattr(step, f.name) for f in fields(step)}
    named = {
        name: replace(draw, what=f"{draw.what}, {step.name}")
        for name, draw in held.items()
        if isinstance(draw, Draw)
    }
    return replace(step, **named)
