"""The contributions of a job file: what one unit may add to groups, and a guess of what units are like."""

from typing import Literal, Self

from pydantic import Field, model_validator

from core.errors import InvalidValue
from core.grouping import Contributions
from core.left_out import Guess
from pipelines.job.policy import JobPart


class GuessedUnits(JobPart):
    """What is known of units without the data. It must not be taken from the rows."""

    groups: float = Field(default=1.0, description="Mean number of groups of a unit.")
    rows: float = Field(default=1.0, description="Mean number of rows of a unit in each of its groups.")

    def build(self) -> Guess:
        """Return the guess as core knows it.

        Raises:
            ValueError: one sentence that names the field.
        """
        try:
            return Guess(self.groups, self.rows)
        except InvalidValue as error:
            raise ValueError(error.sentence(f"contributions.guess.{error.field}")) from None

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.build()
        return self


class UnitContributions(JobPart):
    """What one unit may contribute. Which groups and rows it keeps is chosen by a secret hash."""

    groups: int = Field(default=1, description="Most groups that a unit is in.")
    rows: int = Field(default=1, description="Most rows of a unit in each of its groups, or in all.")
    clamp: Literal["row", "unit"] = Field(
        default="row",
        exclude_if=lambda clamp: clamp == "row",
        description="unit: the sum of a unit's rows in a group is clamped to the domain once more, so that "
        "the noise of sums does not grow with `rows`. row: only rows are clamped.",
    )
    guess: GuessedUnits | None = Field(
        default=None,
        exclude=True,  # it changes nothing of the run
        description="A public guess of what units are like. `shoal plan` then estimates how much these and "
        "other bounds leave out, beside their noise.",
    )

    def build(self) -> Contributions:
        """Return the bounds as core knows them."""
        return Contributions(self.groups, self.rows, self.clamp)
