"""Parameters of sample and aggregate."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from core.errors import InvalidValue
from core.plan import check_failure

Ranges = Literal["tight", "loose"]

_MOST_BLOCKS = 10_000


@dataclass(frozen=True)
class SampleAndAggregate:
    """Release the answer that most blocks of the data agree on.

    Args:
        blocks: number of disjoint subsamples, k; each gives one answer.
        aggregator: `median` and `smooth_median` (per axis) and `center_of_attention` need a majority of
            blocks that agree. `one_cluster` also works where only a minority agrees. `average` needs no
            agreement. `auto` takes the one with the smallest expected error, and `one_cluster` where
            stable_fraction is at most 1/2.
        stable_fraction: part of the blocks expected to answer nearly the same.
        ranges: what `average` clamps answers to: `tight` (the domain) or `loose` (private quartiles).
        failure: probability with which a promise may fail, beta.
        default: public answer of a block where the function fails; by default the middle of `outputs`.

    Raises:
        InvalidValue: a value is out of range.
    """

    blocks: int = field(metadata={"example": 200})
    aggregator: str = "auto"
    stable_fraction: float = 0.8
    ranges: Ranges = "tight"
    failure: float = 0.1
    default: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not 3 <= self.blocks <= _MOST_BLOCKS:
            raise InvalidValue("blocks", self.blocks, f"it must be a whole number from 3 to {_MOST_BLOCKS:,}")
        if not 1 / _MOST_BLOCKS <= self.stable_fraction <= 1:
            allowed = f"it must be at least {1 / _MOST_BLOCKS:g} and at most 1"
            raise InvalidValue("stable_fraction", self.stable_fraction, allowed)
        if self.ranges not in get_args(Ranges):
            raise InvalidValue("ranges", repr(self.ranges), "it must be tight or loose")
        check_failure(self.failure)
