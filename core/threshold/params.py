"""What a threshold is asked for."""

from dataclasses import dataclass

from core.errors import InvalidValue
from core.plan import check_failure

_SMALLEST_ALPHA = 1e-5  # several times what the steps between the ranks that interior_point tries can lose


@dataclass(frozen=True)
class Threshold:
    """How well to learn.

    Args:
        alpha: the released threshold may mislabel more examples than the best one by this part of all.
        method: `exponential` (choose among all thresholds), `interior_point` (find an interior point of the
            examples around a chosen rank), or `auto`, which takes the one that needs fewer examples.
        failure: probability with which a promise may fail.

    Raises:
        InvalidValue: a value is out of range.
    """

    alpha: float = 0.01
    method: str = "auto"
    failure: float = 0.05

    def __post_init__(self) -> None:
        if not _SMALLEST_ALPHA <= self.alpha < 1:
            raise InvalidValue("alpha", self.alpha, f"it must be at least {_SMALLEST_ALPHA} and below 1")
        check_failure(self.failure)
