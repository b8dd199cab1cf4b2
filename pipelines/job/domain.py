"""The part `domain` of a job file: the finite universe of the records."""

from typing import Annotated, Any, Self

from pydantic import (
    Field,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from core.domain import Ball, Grid
from pipelines.job.policy import JobPart


def _keep_integer(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Keep an integer that float64 would round."""
    large = type(value) is int and 2**53 < abs(value) < 2**64
    return value if large else handler(value)


Bound = Annotated[float, WrapValidator(_keep_integer), PlainSerializer(lambda value: value)]


class DomainBall(JobPart):
    """A public L2 ball. Rows outside are projected onto it, which reduces the noise in many dimensions."""

    center: tuple[float, ...] = Field(description="Data units, one value per column.")
    radius: float = Field(description="Data units.")


class Domain(JobPart):
    """The finite universe: public, and not derived from the data. Rows are clamped and rounded to it."""

    lower: tuple[Bound, ...] = Field(description="Lower bound of each column, data units.")
    upper: tuple[Bound, ...] = Field(description="Upper bound of each column, data units.")
    step: Bound = Field(description="Distance between neighboring grid points, data units.")
    ball: DomainBall | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.grid()
        return self

    def grid(self) -> Grid:
        """Return the universe as a `Grid`."""
        ball = Ball(self.ball.center, self.ball.radius) if self.ball else None
        return Grid(self.lower, self.upper, self.step, ball)
