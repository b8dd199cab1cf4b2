"""Parameters of the cover by k balls."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.errors import InvalidValue
from core.one_cluster.params import check_shares, check_target
from core.plan import check_failure

MAX_K = 50


@dataclass(frozen=True)
class KCover:
    """Look for `k` small balls, one after the other, that together hold most of the records.

    Give `target` or `coverage`, not both.

    Args:
        k: how many balls, at most.
        target: how many records each ball should hold, not counting those in earlier balls.
        coverage: share of all records that the balls should hold together.
        failure: probability with which a promise may fail, beta.
        method: `practical` (k times the practical 1-cluster), or `auto`, which is the same.
        shares: how each ball's epsilon is split among its rounds: weights by the names that one_cluster uses.
            Rounds that are not named keep their default weights.

    Raises:
        InvalidValue: a value is out of range, or `target` and `coverage` are both given or both missing.
    """

    k: int = field(metadata={"example": 3})
    target: int | None = field(default=None, metadata={"example": 500})
    coverage: float | None = None
    failure: float = 0.1
    method: str = "auto"
    shares: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.k <= MAX_K:
            raise InvalidValue("k", self.k, f"it must be a whole number from 1 to {MAX_K}")
        if (self.target is None) == (self.coverage is None):
            both = f"is {self.target} and coverage {self.coverage}"
            raise InvalidValue("target", self.target, "give one of them", both)
        if self.target is not None:
            check_target(self.target)
        if self.coverage is not None and not 0 < self.coverage <= 1:
            raise InvalidValue("coverage", self.coverage, "it must be above 0 and at most 1")
        check_failure(self.failure)
        check_shares(self.shares)
