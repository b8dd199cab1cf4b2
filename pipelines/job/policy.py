"""A Blowfish policy in a job file, in data units."""

import math
from collections.abc import Callable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.domain import Grid
from core.marks import Mark
from core.policy import (
    Attribute,
    Distance,
    DistancePerAxis,
    Full,
    Graph,
    KnownCount,
    Partition,
    Policy,
    Secrets,
    Semantics,
)
from pipelines.dates import written_steps
from pipelines.job.written import WrittenLength, WrittenPosition

_CLOSE = 1e-6
_MOST_STEPS = 1 << 32  # more than any axis has; longer lengths act the same


class JobPart(BaseModel):
    """A part of a job file. It is immutable and has no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Corner = Annotated[tuple[WrittenPosition, ...], Mark.AXES]
Lengths = Annotated[tuple[WrittenLength, ...], Mark.AXES]


class JobKnownCount(JobPart):
    """A public count of the records in a box."""

    lower: Corner = Field(description="Lower bounds of the box, one per column, data units.")
    upper: Corner = Field(description="Upper bounds, inclusive.")
    count: int = Field(description="The public number of records.")


class JobPolicy(JobPart):
    """Which pairs of values are secret, and which counts are public.

    Values are points of the grid of the domain: rows are clamped and rounded before the policy applies.
    """

    secrets: Literal["full", "attribute"] | None = Field(
        default=None, description="full: any two values. attribute: values that differ in one column."
    )
    distance: WrittenLength | Lengths | None = Field(
        default=None,
        description="Grid points at most this far apart (L1, data units) are secret. A list has one distance "
        "per column: grid points at most that far apart in every column are secret, and a column of "
        "distance 0 is public.",
    )
    partition: Lengths | None = Field(
        default=None,
        description="Grid points in the same part are secret: width of a part on each column, from lower on.",
    )
    graph: tuple[tuple[Corner, Corner], ...] | None = Field(
        default=None, description="Secret pairs of grid points, for small domains."
    )
    constraints: tuple[JobKnownCount, ...] = Field(default=(), description="Counts that are public.")
    semantics: Semantics = Field(
        default="literal", description="Which databases are neighbors under constraints."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [self.secrets, self.distance, self.partition, self.graph]
        if sum(value is not None for value in given) != 1:
            raise ValueError("privacy.policy needs exactly one of secrets, distance, partition and graph.")
        return self

    def build(self, grid: Grid) -> Policy:
        """Return the policy in grid steps.

        Raises:
            ValueError: one sentence that names the field.
        """
        if grid.ball is not None:
            raise ValueError(
                "privacy.policy with domain.ball is not supported: the projection would change secret pairs."
            )
        if grid.geography is not None:
            raise ValueError(
                "privacy.policy with domain.geography is not supported: policies are about single columns."
            )
        if grid.wide:
            raise ValueError(
                "privacy.policy needs a domain of at most 2^31 steps on each axis, with bounds and a step "
                "that float64 represents exactly."
            )
        known = tuple(_known(box, grid) for box in self.constraints)
        policy = Policy(self._secrets(grid), known, self.semantics)
        policy.check(grid.extents)
        return policy

    def _secrets(self, grid: Grid) -> Secrets:
        if isinstance(self.distance, tuple):
            thetas = written_steps(Lengths, self.distance, grid, "distance")
            return DistancePerAxis(
                tuple(0 if theta == 0 else _steps(theta, grid, "privacy.policy.distance") for theta in thetas)
            )
        if self.distance is not None:
            theta = written_steps(WrittenLength, self.distance, grid, "distance")
            return Distance(_steps(theta, grid, "privacy.policy.distance"))
        if self.partition is not None:
            widths = written_steps(Lengths, self.partition, grid, "partition")
            return Partition(tuple(_steps(width, grid, "privacy.policy.partition") for width in widths))
        if self.graph is not None:
            ends = [[written_steps(Corner, end, grid, "graph") for end in edge] for edge in self.graph]
            return Graph(tuple((_inside(a, grid, round), _inside(b, grid, round)) for a, b in ends))
        return Full() if self.secrets == "full" else Attribute()


def _known(box: JobKnownCount, grid: Grid) -> KnownCount:
    lowest, highest = (written_steps(Corner, end, grid, "constraints") for end in (box.lower, box.upper))
    axes = zip(lowest, highest, grid.lower, grid.upper, strict=False)
    if any(lower > high or upper < low for lower, upper, low, high in axes):
        raise ValueError(
            f"privacy.policy.constraints has the box from {list(lowest)} to {list(highest)}: it lies outside "
            "the domain."
        )
    return KnownCount(_inside(lowest, grid, math.ceil), _inside(highest, grid, math.floor), box.count)


def _steps(length: float, grid: Grid, field: str) -> int:
    """Return a length in steps.

    Raises:
        ValueError: it is not a whole number of steps.
    """
    ratio = length / grid.step
    steps = round(ratio) if math.isfinite(ratio) else 0
    if steps < 1 or abs(steps * grid.step - length) > _CLOSE * grid.step:
        raise ValueError(
            f"{field} has {length}: it must be 1, 2, 3, ... times domain.step, {grid.named_step}."
        )
    return min(steps, _MOST_STEPS)


def _inside(corner: tuple[float, ...], grid: Grid, to_int: Callable[[float], int]) -> tuple[int, ...]:
    """Return a corner in grid steps, clamped to the domain."""
    if len(corner) != grid.dimension or not all(map(math.isfinite, corner)):
        raise ValueError(
            f"privacy.policy has the point {list(corner)}: give one finite value per column, "
            f"{grid.dimension} in all."
        )
    return tuple(
        min(max(to_int(round(min(max((value - low) / grid.step, -1.0), extent + 1.0), 6)), 0), extent)
        for value, low, extent in zip(corner, grid.lower, grid.extents, strict=True)
    )
