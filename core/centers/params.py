"""Parameters of the k-centers tasks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from core.plan import check_failure

Method = Literal["auto", "coreset", "lloyd"]

MAX_K = 1000


@dataclass(frozen=True)
class KMeans:
    """Look for `k` centers with a small sum of squared distances from the records to the nearest one.

    Args:
        k: how many centers.
        method: `coreset`, `lloyd` (noisy iterations alone, which Blowfish policies can help), or `auto`.
        iterations: how many rounds improve the centers; by default the method's own choice.
        failure: probability with which a promise may fail, beta.
        shares: weights of the rounds in the budget; those not named keep their defaults.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    k: int
    method: Method = "auto"
    iterations: int | None = None
    failure: float = 0.1
    shares: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        _check(self.k, self.iterations, self.failure, self.shares)
        if self.method not in get_args(Method):
            raise ValueError(f"params.method is {self.method!r}: it must be auto, coreset or lloyd.")


@dataclass(frozen=True)
class KMedian:
    """Look for `k` centers with a small sum of distances from the records to the nearest one.

    Args:
        k: how many centers.
        method: `coreset`, or `auto`, which is the same.
        iterations: how many rounds improve the centers; by default the method's own choice.
        failure: probability with which a promise may fail, beta.
        shares: weights of the rounds in the budget; those not named keep their defaults.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    k: int
    method: Literal["auto", "coreset"] = "auto"
    iterations: int | None = None
    failure: float = 0.1
    shares: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        _check(self.k, self.iterations, self.failure, self.shares)
        if self.method not in ("auto", "coreset"):
            raise ValueError(f"params.method is {self.method!r}: k_median must be auto or coreset.")


def _check(k: int, iterations: int | None, failure: float, shares: Mapping[str, float] | None) -> None:
    if not 1 <= k <= MAX_K:
        raise ValueError(f"params.k is {k}: it must be a whole number from 1 to {MAX_K}.")
    if iterations is not None and not 1 <= iterations <= 100:
        raise ValueError(f"params.iterations is {iterations}: it must be a whole number from 1 to 100.")
    check_failure(failure)
    for name, share in (shares or {}).items():
        if not (math.isfinite(share) and share > 0):
            raise ValueError(f"params.shares.{name} is {share}: it must be a finite number above 0.")
