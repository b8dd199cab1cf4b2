"""The privacy of a job file: its budget, its neighbors, its policy and its ledger."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from core.budget import Budget
from core.neighbors import Name
from pipelines.job.policy import JobPart, JobPolicy
from pipelines.storage.locate import absolute, open_file

LEAST_EPSILON, _MOST_EPSILON = 1e-6, 100.0  # below, noise hides everything; above, there is hardly any noise
LEAST_DELTA = 1e-100  # below it, parts of delta may underflow to 0


class Privacy(JobPart):
    """The privacy budget and the neighbor relation."""

    epsilon: float = Field(examples=[1.0], description="Above 0; 1 is common.")
    delta: float = Field(examples=[1e-9], description="From 0 to below 1; well below 1 / number of rows.")
    neighbors: Name = Field(
        default="add_or_remove_one",
        description="add_or_remove_one hides one row more or less. replace_one hides the values of one row; "
        "the number of rows that have all values is then public.",
    )

    policy: JobPolicy | None = Field(
        default=None,
        description="A Blowfish policy, which weakens replace_one: secret pairs and public counts.",
    )
    ledger: Annotated[str, AfterValidator(absolute)] | None = Field(
        default=None, description="The ledger that the run is charged to: a URL or local."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.budget()
        if not LEAST_EPSILON <= self.epsilon <= _MOST_EPSILON:
            raise ValueError(
                f"privacy.epsilon is {self.epsilon}: it must be from {LEAST_EPSILON} to {_MOST_EPSILON}."
            )
        if 0 < self.delta < LEAST_DELTA:
            raise ValueError(f"privacy.delta is {self.delta}: it must be 0, or at least {LEAST_DELTA}.")
        if self.ledger is not None:
            if not self.ledger:
                raise ValueError("privacy.ledger is empty: give the path of a ledger, or leave it out.")
            open_file(self.ledger)
        return self

    def budget(self) -> Budget:
        """Return the budget as a `Budget`."""
        return Budget(self.epsilon, self.delta)
