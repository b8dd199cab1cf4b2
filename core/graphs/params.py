"""Parameters of the tasks triangles and mst_cost."""

from dataclasses import dataclass
from typing import Literal, get_args

from core.errors import InvalidValue
from core.mechanisms.calibrate_noise import Choice, check_noise
from core.plan import check_failure

Change = Literal["edge", "weight"]


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
        check_failure(self.failure)
        check_noise(self.noise, self.scale_share)


@dataclass(frozen=True)
class MstCost:
    """The cost of a minimum spanning tree of a graph whose rows are edges with a weight.

    Args:
        change: what of a row is private. `edge`: its nodes and its weight; every id of the domain is a node,
            and a missing edge weighs the upper bound. `weight`: only its weight; nodes and edges are public.
        failure: probability with which a promise may fail, beta.
        method: `global` (Laplace noise by the upper bound of a weight), `smooth` (noise by smooth
            sensitivity, which is small where every node has several light edges), or `auto`.
        noise: density of the noise, `cauchy`, `student`, `laplace` (needs delta), or `auto`.
        scale_share: part of epsilon spent on releasing the scale of the noise; 0 keeps it secret.

    Raises:
        InvalidValue: a value is out of range.
    """

    change: Change = "edge"
    failure: float = 0.1
    method: str = "auto"
    noise: Choice = "auto"
    scale_share: float = 0.1

    def __post_init__(self) -> None:
        if self.change not in get_args(Change):
            raise InvalidValue("change", repr(self.change), "it must be edge or weight")
        check_failure(self.failure)
        check_noise(self.noise, self.scale_share)
