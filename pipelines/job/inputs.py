"""The part `input` of a job file: files, columns, and how rows become records."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from pipelines.job.policy import JobPart
from pipelines.storage.locate import absolute
from pipelines.tasks import Keep


class Input(JobPart):
    """The input: files and columns."""

    path: Annotated[str, AfterValidator(absolute)] = Field(
        description="A Parquet file, a folder of them or a glob: gs://... or local. {run_id} is replaced by "
        "the run id, which the job must then give."
    )
    columns: tuple[str, ...] = Field(description="Numeric columns, one per axis of the domain.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.path:
            raise ValueError("input.path is empty: give a Parquet file, a folder of them or a glob.")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise ValueError(f"input.columns is {list(self.columns)}: give at least one column, each once.")
        return self


class RowsInput(Input):
    """The input of a task whose records are rows or units."""

    unit: str | None = Field(
        default=None,
        description="Column of the privacy unit. All rows with the same value become one record; rows where "
        "it is null are skipped. Without this key, each row is one person.",
    )
    keep: Keep = Field(
        default="one",
        description="The record of a unit: one of its rows, chosen by a secret hash; the last of its rows by "
        "the column of `order`; or the mean, the smallest values, the largest values, the sum or the number "
        "of its rows.",
    )
    order: str | None = Field(
        default=None,
        exclude_if=lambda column: column is None,  # jobs without it keep their hash
        description="Column of a row's time or sequence number, for `keep: last`: integers, timestamps or "
        "dates. A row where it is null comes before all others.",
    )
    checks: float | None = Field(
        default=None,
        exclude_if=lambda share: share == 0,  # jobs without counts keep the hash of earlier versions
        description="Share of epsilon that pays for noisy counts of rows (or units) that were left out or "
        "moved to a bound, by column; 0 for none. By default 0.01, or 0 with a policy.",
    )


class SubsamplesInput(Input):
    """The input of a function."""

    columns: tuple[str, ...] = Field(
        description="Numeric columns that the function receives, including nulls."
    )
    unit: str | None = Field(
        default=None,
        description="Column of the privacy unit. All rows with the same value are in one block; rows where "
        "it is null are skipped. Without this key, each row is one person.",
    )
    bounds: tuple[tuple[float, float], ...] | None = Field(
        default=None,
        description="Public [lower, upper] of each column. Only check-function uses them, to make up rows.",
    )
