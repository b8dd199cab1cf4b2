"""The part `domain` of a job file: the finite universe of the records."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import (
    ConfigDict,
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
from pipelines.errors import COMMA
from pipelines.job.policy import JobPart


def _keep_integer(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Keep an integer that float64 would round, and text, which may be a date or a duration.

    A number with a comma is neither, and is refused like that of any other field.
    """
    large = type(value) is int and 2**53 < abs(value) < 2**64
    text = isinstance(value, str) and COMMA.fullmatch(value) is None
    return value if large or text else handler(value)


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


_ON_EARTH = {"lower": [-90, -180], "upper": [90, 180], "step": 10}
"""The bounds and the step of a domain of latitude and longitude that gives none."""


def with_whole_earth(raw: Any) -> Any:
    """Return a domain as a job writes it; with geography, bounds and step are optional, and are filled in."""
    if isinstance(raw, Mapping) and raw.get("geography") is not None:
        return {**_ON_EARTH, **raw}
    return raw


class Domain(JobPart):
    """The finite universe: public, and not derived from the data. Rows are clamped and rounded to it."""

    model_config = ConfigDict(
        json_schema_extra={"required": [], "anyOf": [{"required": ["geography"]}, {"required": [*_ON_EARTH]}]}
    )

    geography: Literal["wgs84"] | None = Field(
        default=None,
        exclude_if=lambda kind: kind is None,  # jobs without it keep their hash
        description="For columns of latitude and longitude: distances are those on the Earth, in metres. "
        "Bounds are then optional, in degrees, and the step is optional, in metres.",
    )
    lower: tuple[Bound, ...] = Field(
        examples=[(0,)],
        description="Lower bound of each column, data units; for columns of dates or timestamps a date such "
        "as 2013-01-31, or a timestamp such as 2013-01-31T06:00:00Z.",
    )
    upper: tuple[Bound, ...] = Field(examples=[(100,)], description="Upper bound of each column, data units.")
    step: Bound = Field(
        examples=[1],
        description="Distance between neighboring grid points, data units; between dates or timestamps a "
        "duration such as 1 day or 15 minutes.",
    )
    ball: DomainBall | None = None
    units: dict[str, str] | None = Field(
        default=None,
        exclude_if=lambda units: units is None,  # jobs without them keep their hash
        description="Units of columns, such as spend: EUR, which stand beside their numbers in answers.",
    )

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
        if grid.geography is not None:
            raise ValueError("domain.ball is given beside domain.geography: give bounds instead.")
        if grid.times is not None:
            raise ValueError(f"domain.ball is given and domain has {grid.times.kind}: it is for numbers.")
        return replace(grid, ball=Ball(self.ball.center, self.ball.radius))
