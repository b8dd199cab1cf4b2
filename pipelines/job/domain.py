"""The part `domain` of a job file: the finite universe of the records."""

from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from core.domain import Ball, Grid
from core.times import Times
from pipelines.dates import grid_of, times_of
from pipelines.job.policy import JobPart


def _keep_integer(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Keep an integer that float64 would round, and text, which may be a date or a duration."""
    large = type(value) is int and 2**53 < abs(value) < 2**64
    return value if large or isinstance(value, str) else handler(value)


Bound = Annotated[
    float,
    WrapValidator(_keep_integer),
    PlainSerializer(lambda value: value),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]


class DomainBall(JobPart):
    """A public L2 ball. Rows outside are projected onto it, which reduces the noise in many dimensions."""

    center: tuple[float, ...] = Field(description="Data units, one value per column.")
    radius: float = Field(description="Data units.")


class Domain(JobPart):
    """The finite universe: public, and not derived from the data. Rows are clamped and rounded to it."""

    lower: tuple[Bound, ...] = Field(
        description="Lower bound of each column, data units; for columns of dates or timestamps a date such "
        "as 2013-01-31, or a timestamp such as 2013-01-31T06:00:00Z."
    )
    upper: tuple[Bound, ...] = Field(description="Upper bound of each column, data units.")
    step: Bound = Field(
        description="Distance between neighboring grid points, data units; between dates or timestamps a "
        "duration such as 1 day or 15 minutes."
    )
    ball: DomainBall | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.grid()
        return self

    @property
    def times(self) -> Times | None:
        """What grid points are where the domain is of dates or timestamps; None where it is of numbers."""
        return times_of(vars(self))

    def grid(self) -> Grid:
        """Return the universe as a `Grid`."""
        grid = grid_of(vars(self))
        if self.ball is None:
            return grid
        if grid.times is not None:
            raise ValueError(f"domain.ball is given and domain has {grid.times.kind}: it is for numbers.")
        return replace(grid, ball=Ball(self.ball.center, self.ball.radius))
