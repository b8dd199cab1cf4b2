"""Parameters of the cover by k balls."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from core.plan import check_failure

Method = Literal["auto", "practical"]

MAX_K = 50


@dataclass(frozen=True)
class KCover:
    """Look for `k` small balls, one after the other, that together hold most of the records.

    Give `target` or `coverage`, not both.

    Args:
        k: how many balls, at most.
        target: how many records that are in no earlier ball each ball should hold.
        coverage: share of all records that the balls should hold together.
        failure: probability with which a promise may fail, beta.
        method: `practical` (k times the practical 1-cluster), or `auto`, which is the same.
        shares: weights of the rounds of each ball in epsilon, named as in one_cluster; those not named keep
            their defaults.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    k: int
    target: int | None = None
    coverage: float | None = None
    failure: float = 0.1
    method: Method = "auto"
    shares: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.k <= MAX_K:
            raise ValueError(f"params.k is {self.k}: it must be a whole number from 1 to {MAX_K}.")
        if (self.target is None) == (self.coverage is None):
            raise ValueError(
                f"params.target is {self.target} and params.coverage {self.coverage}: give one of them."
            )
        if self.target is not None and not 1 <= self.target < 2**53:
            raise ValueError(f"params.target is {self.target}: it must be a whole number from 1 to 2^53.")
        if self.coverage is not None and not 0 < self.coverage <= 1:
            raise ValueError(f"params.coverage is {self.coverage}: it must be above 0 and at most 1.")
        check_failure(self.failure)
        if self.method not in get_args(Method):
            raise ValueError(f"params.method is {self.method!r}: it must be auto or practical.")
        for name, share in (self.shares or {}).items():
            if not (math.isfinite(share) and share > 0):
                raise ValueError(f"params.shares.{name} is {share}: it must be a finite number above 0.")
