"""Parameters of the tasks median, minimum, triangles and mst_cost."""

from dataclasses import dataclass
from typing import Literal, get_args

from core.errors import InvalidValue
from core.mechanisms.calibrate_noise import Choice
from core.plan import check_failure

Method = Literal["auto", "smooth", "exponential"]
CostMethod = Literal["auto", "smooth", "global"]
Change = Literal["edge", "weight"]


def _check(failure: float, noise: str, scale_share: float) -> None:
    check_failure(failure)
    if noise not in get_args(Choice):
        raise InvalidValue("noise", repr(noise), "it must be auto, cauchy, student or laplace")
    if not 0 <= scale_share < 1:
        raise InvalidValue("scale_share", scale_share, "it must be at least 0 and below 1")


@dataclass(frozen=True)
class Median:
    """A quantile of one column, by default the median.

    Args:
        quantile: from 0 (minimum) to 1 (maximum), to a millionth; the value of rank max(1, ceil(quantile n)).
        failure: probability with which a promise may fail, beta.
        method: `smooth` (noise by smooth sensitivity), `exponential` (the exponential mechanism), or `auto`.
        noise: density of the smooth method's noise, `cauchy`, `student`, `laplace` (needs delta), or `auto`.
        scale_share: part of the smooth method's epsilon spent on releasing the scale of its noise; 0 keeps
            it secret.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    quantile: float = 0.5
    failure: float = 0.1
    method: Method = "auto"
    noise: Choice = "auto"
    scale_share: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.quantile <= 1:
            raise ValueError(f"params.quantile is {self.quantile}: it must be from 0 to 1.")
        if self.method not in get_args(Method):
            raise ValueError(f"params.method is {self.method!r}: it must be auto, smooth or exponential.")
        _check(self.failure, self.noise, self.scale_share)


@dataclass(frozen=True)
class Minimum:
    """The smallest value of one column, or the largest.

    Args:
        largest: whether the maximum is wanted.
        failure: probability with which a promise may fail, beta.
        method: `smooth` (noise by smooth sensitivity), `exponential` (the exponential mechanism), or `auto`.
        noise: density of the smooth method's noise, `cauchy`, `student`, `laplace` (needs delta), or `auto`.
        scale_share: part of the smooth method's epsilon spent on releasing the scale of its noise; 0 keeps
            it secret.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    largest: bool = False
    failure: float = 0.1
    method: Method = "auto"
    noise: Choice = "auto"
    scale_share: float = 0.0

    def __post_init__(self) -> None:
        self.as_quantile()

    def as_quantile(self) -> Median:
        """Return the quantile that this is."""
        return Median(float(self.largest), self.failure, self.method, self.noise, self.scale_share)


@dataclass(frozen=True)
class Triangles:
    """The number of triangles of a graph whose rows are edges.

    Args:
        failure: probability with which a promise may fail, beta.
        noise: density of the noise, `cauchy`, `student`, `laplace` (needs delta), or `auto`.
        scale_share: part of epsilon spent on releasing the scale of the noise; 0 keeps it secret.

    Raises:
        InvalidValue: a value is out of range.
    """

    failure: float = 0.1
    noise: Choice = "auto"
    scale_share: float = 0.1

    def __post_init__(self) -> None:
        _check(self.failure, self.noise, self.scale_share)


@dataclass(frozen=True)
class MstCost:
    """The cost of a minimum spanning tree of a graph whose rows are edges with a weight.

    Args:
        change: what a row may change: `edge` (its nodes and weight; a missing edge weighs the upper bound and
            every id of the domain is a node) or `weight` (its weight alone; nodes and edges are public).
        failure: probability with which a promise may fail, beta.
        method: `global` (Laplace noise by the upper bound of a weight), `smooth` (noise by smooth
            sensitivity, less where every node has several light edges), or `auto`.
        noise: density of the noise, `cauchy`, `student`, `laplace` (needs delta), or `auto`.
        scale_share: part of epsilon spent on releasing the scale of the noise; 0 keeps it secret.

    Raises:
        InvalidValue: a value is out of range.
    """

    change: Change = "edge"
    failure: float = 0.1
    method: CostMethod = "auto"
    noise: Choice = "auto"
    scale_share: float = 0.1

    def __post_init__(self) -> None:
        if self.change not in get_args(Change):
            raise InvalidValue("change", repr(self.change), "it must be edge or weight")
        if self.method not in get_args(CostMethod):
            raise InvalidValue("method", repr(self.method), "it must be auto, smooth or global")
        _check(self.failure, self.noise, self.scale_share)
