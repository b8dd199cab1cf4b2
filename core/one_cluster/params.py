"""Parameters of the 1-cluster task."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from core.plan import check_failure

Method = Literal["auto", "practical", "paper"]


@dataclass(frozen=True)
class OneCluster:
    """What to look for: a small ball that holds about `target` records.

    Args:
        target: how many records the ball should hold, t.
        failure: probability with which a promise may fail, beta.
        method: `practical`, `paper` (the published constants), or `auto`.
        shares: weights of the rounds' epsilon; those not named keep their defaults.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    target: int
    failure: float = 0.1
    method: Method = "auto"
    shares: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.target < 2**53:
            raise ValueError(f"params.target is {self.target}: it must be a whole number from 1 to 2^53.")
        check_failure(self.failure)
        if self.method not in get_args(Method):
            raise ValueError(f"params.method is {self.method!r}: it must be auto, practical or paper.")
        for name, share in (self.shares or {}).items():
            if not (math.isfinite(share) and share > 0):
                raise ValueError(f"params.shares.{name} is {share}: it must be a finite number above 0.")
