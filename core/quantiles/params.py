"""What quantiles, a median or a minimum are asked for."""

from dataclasses import dataclass, field
from itertools import pairwise

from core.errors import InvalidValue
from core.mechanisms.calibrate_noise import SHARE, Choice, check_noise, is_share
from core.plan import check_failure

_MOST = 10_000  # quantiles

INTERVAL_SHARE = 0.05
"""Part of epsilon that pays for the interval of one quantile, unless a job asks for another part."""


@dataclass(frozen=True)
class Quantiles:
    """Which quantiles to release.

    Args:
        probabilities: of the quantiles, ascending, each between 0 and 1.
        method: `recursive` (splits into cells, counts of the cells, then a search inside them), `tree`
            (counts of ever finer cells), `ordered` (a search over cumulative counts, under a policy), or
            `auto`.
        failure: probability with which a promise may fail.

    Raises:
        InvalidValue: a value is out of range.
    """

    probabilities: tuple[float, ...] = field(metadata={"example": (0.1, 0.5, 0.9)})
    method: str = "auto"
    failure: float = 0.1

    def __post_init__(self) -> None:
        given = self.probabilities
        if not 1 <= len(given) <= _MOST:
            raise InvalidValue(
                "probabilities", given, f"give 1 to {_MOST:,} of them", f"has {len(given)} values"
            )
        for p in given:
            if not 0 < p < 1:
                raise InvalidValue("probabilities", given, "each must be above 0 and below 1", f"has {p}")
        if any(a >= b for a, b in pairwise(given)):
            raise InvalidValue("probabilities", list(given), "they must ascend, each only once")
        check_failure(self.failure)


@dataclass(frozen=True)
class Median:
    """A quantile of one column, or of each of several, by default the median.

    The medians of several columns together are the 1-median in L1: no point has a smaller sum of L1 distances
    to all records. The columns share the budget such that all have about the same promised error.

    Args:
        quantile: from 0 (minimum) to 1 (maximum); the smooth method takes it to a millionth, as the value of
            rank max(1, ceil(quantile n)).
        failure: probability with which a promise may fail, beta.
        method: `smooth` (noise by smooth sensitivity), `exponential` (the exponential mechanism), `ordered`
            (a search over cumulative counts, under a policy), or `auto`.
        noise: density of the smooth method's noise, `cauchy`, `student`, `laplace` (needs delta), or `auto`.
        scale_share: part of the smooth method's epsilon spent on releasing the scale of its noise; 0 keeps
            it secret.
        interval_share: part of the exponential method's epsilon spent on an interval that holds the true
            quantile; 0 for none. By default 0.05, and 0 for an extreme, which can have none.

    Raises:
        InvalidValue: a value is out of range.
    """

    quantile: float = 0.5
    failure: float = 0.1
    method: str = "auto"
    noise: Choice = "auto"
    scale_share: float = 0.0
    interval_share: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.quantile <= 1:
            raise InvalidValue("quantile", self.quantile, "it must be from 0 to 1")
        if not is_share(self.interval_share or 0.0):
            raise InvalidValue("interval_share", self.interval_share, SHARE)
        if self.interval_share and self.quantile in (0, 1):
            raise InvalidValue(
                "interval_share",
                self.interval_share,
                "it must be 0 for an extreme, because no private interval holds the smallest or largest row",
            )
        _check(self)

    @property
    def interval(self) -> float:
        """Part of epsilon that is spent on an interval."""
        if self.interval_share is None:
            return 0.0 if self.quantile in (0, 1) else INTERVAL_SHARE
        return self.interval_share


@dataclass(frozen=True)
class Minimum:
    """The smallest value of one column, or the largest, or those of each of several columns.

    Args:
        largest: whether the maximum is wanted.
        failure: probability with which a promise may fail, beta.
        method: `smooth` (noise by smooth sensitivity), `exponential` (the exponential mechanism), `ordered`
            (a search over cumulative counts, under a policy), or `auto`.
        noise: density of the smooth method's noise, `cauchy`, `student`, `laplace` (needs delta), or `auto`.
        scale_share: part of the smooth method's epsilon spent on releasing the scale of its noise; 0 keeps
            it secret.

    Raises:
        InvalidValue: a value is out of range.
    """

    largest: bool = False
    failure: float = 0.1
    method: str = "auto"
    noise: Choice = "auto"
    scale_share: float = 0.0

    def __post_init__(self) -> None:
        _check(self)

    @property
    def quantile(self) -> float:
        """The quantile that this is."""
        return float(self.largest)

    @property
    def interval(self) -> float:
        """No interval is released beside an extreme; see `core.quantiles.exponential.ExponentialByRank`."""
        return 0.0


OneValue = Median | Minimum
"""Parameters of one quantile, which may be an extreme."""


def _check(params: OneValue) -> None:
    check_failure(params.failure)
    check_noise(params.noise, params.scale_share)
