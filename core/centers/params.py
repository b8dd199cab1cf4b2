"""Parameters of the k-centers tasks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from core.errors import InvalidValue
from core.plan import check_failure

MAX_K = 1000


@dataclass(frozen=True)
class KCenters:
    """What the parameters of k-means and k-median share; `KMeans` and `KMedian` describe them.

    Raises:
        InvalidValue: a value is out of range.
    """

    power: ClassVar[int]
    """Power of the distance in the cost: 2 for means, 1 for medians."""

    k: int = field(metadata={"example": 4})
    method: str = "auto"
    iterations: int | None = None
    failure: float = 0.1
    shares: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.k <= MAX_K:
            raise InvalidValue("k", self.k, f"it must be a whole number from 1 to {MAX_K}")
        if self.iterations is not None and not 1 <= self.iterations <= 100:
            raise InvalidValue("iterations", self.iterations, "it must be a whole number from 1 to 100")
        check_failure(self.failure)
        for name, share in (self.shares or {}).items():
            if not (math.isfinite(share) and share > 0):
                raise InvalidValue(f"shares.{name}", share, "it must be a finite number above 0")


@dataclass(frozen=True)
class KMeans(KCenters):
    """Look for `k` centers with a small sum of squared distances from the records to the nearest one.

    Args:
        k: how many centers.
        method: `coreset`, `lloyd` (noisy iterations alone, which Blowfish policies can help and which need no
            delta), or `auto`.
        iterations: how many rounds improve the centers; by default the method's own choice.
        failure: probability with which a promise may fail, beta.
        shares: weights of the rounds in the budget; those not named keep their defaults.

    Raises:
        InvalidValue: a value is out of range.
    """

    power: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()


@dataclass(frozen=True)
class KMedian(KCenters):
    """Look for `k` centers with a small sum of distances from the records to the nearest one.

    Args:
        k: how many centers.
        method: `coreset`, or `auto`, which is the same.
        iterations: how many rounds improve the centers; by default the method's own choice.
        failure: probability with which a promise may fail, beta.
        shares: weights of the rounds in the budget; those not named keep their defaults.

    Raises:
        InvalidValue: a value is out of range.
    """

    power: ClassVar[int] = 1

    method: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
