"""Parameters of the 1-cluster task."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.errors import InvalidValue
from core.plan import check_failure

SHARES = ("good_radius", "good_center", "average_1", "average_2", "fit_radius", "count")
"""Keys of `shares`: the rounds of the practical method, and its released count.

Where noise is large, there are no averages, and `fit_radius` is the share of the choice of the whole ball.
"""


def check_target(target: int) -> None:
    """Check how many records a ball should hold.

    Raises:
        InvalidValue: the target is out of range.
    """
    if not 1 <= target < 2**53:
        raise InvalidValue("target", target, "it must be a whole number from 1 to 2^53 - 1")


def check_shares(shares: Mapping[str, float] | None) -> None:
    """Check the weights of the practical method's rounds.

    Raises:
        InvalidValue: a name is unknown, or a weight is out of range. Far beyond it noise would be infinite.
    """
    for name, share in (shares or {}).items():
        if name not in SHARES:
            raise InvalidValue("shares", name, f"its keys are {', '.join(SHARES)}", f"has {name!r}")
        if not 1e-12 <= share <= 1e6:
            raise InvalidValue(f"shares.{name}", share, "it must be from 1e-12 to 1e6")


@dataclass(frozen=True)
class OneCluster:
    """What to look for: a small ball that holds about `target` records.

    Args:
        target: how many records the ball should hold, t.
        failure: probability with which a promise may fail, beta.
        method: `practical`, `paper` (the published constants), or `auto`.
        shares: how epsilon is split: weights of good_radius, good_center, average_1, average_2, fit_radius
            and count. Those that are left out keep their default weights, and weights of rounds that the plan
            does not have are ignored.

    Raises:
        InvalidValue: a value is out of range.
    """

    target: int = field(metadata={"example": 500})
    failure: float = 0.1
    method: str = "auto"
    shares: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        check_target(self.target)
        check_failure(self.failure)
        check_shares(self.shares)
