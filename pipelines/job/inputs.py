"""The part `input` of a job file: files, columns, and how rows become records."""

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipelines.errors import quoted
from pipelines.job.policy import JobPart
from pipelines.storage.locate import absolute
from pipelines.tasks import Keep
from transforms.parse_expression import ExpressionError, Node, columns_of, parse_expression

if TYPE_CHECKING:
    from transforms.preparation import Preparation

_MOST_DERIVED = 100


def _is_none(value: object) -> bool:
    """Return whether a value is left out of a job, so that jobs without it keep their hash."""
    return value is None


def _one_path(value: object) -> object:
    """Refuse a list of paths."""
    if isinstance(value, list):
        raise ValueError(
            f"input.path is {quoted(value)}: give one path; a folder, or a glob such as rows/*.csv, has "
            "several files."
        )
    return value


class Join(JobPart):
    """A public table whose columns the rows get by key."""

    path: Annotated[str, AfterValidator(absolute)] = Field(
        description="One Parquet file, a URL or local, with one row per key. It must be public."
    )
    on: str = Field(description="Column of the key, of the same name in the rows and in the table.")
    columns: tuple[str, ...] | None = Field(
        default=None, description="Columns that the rows get; by default all but the key."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.path or not self.on:
            raise ValueError("input.join has an empty path or an empty key: give both.")
        names = self.columns
        if names is not None and (not names or len(set(names)) < len(names) or self.on in names):
            raise ValueError(
                f"input.join.columns is {list(names)}: give at least one column, each once, without the key."
            )
        return self


class Input(JobPart):
    """The input: files and columns. Its rows may be filtered, and may get further columns."""

    path: Annotated[str, BeforeValidator(_one_path), AfterValidator(absolute)] = Field(
        examples=["people.parquet"],
        description="A file of Parquet, CSV, JSON lines, Arrow IPC or Avro, a folder of such files or a "
        "glob: local, or at gs://, s3:// or az://. {run_id} is replaced by the run id, which the job must "
        "then give, and {date} by the day (2026-11-16), week (2026-W47) or month (2026-11) at its end.",
    )
    columns: tuple[str, ...] = Field(
        examples=[("age",)], description="Numeric columns, one per axis of the domain."
    )
    types: dict[str, Literal["integer", "number", "text", "boolean", "date", "timestamp"]] | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Types of columns that have none in their files: those of CSV, of JSON lines and of "
        "folders key=value. By default a column has the type that its use needs.",
    )
    where: str | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Condition on a row, such as country == 'DE' and amount > 0. Only rows for which it is "
        "true are used.",
    )
    derive: dict[str, str] | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Further columns by name, each an expression on a row, such as hour: hour(time).",
    )
    join: Join | None = Field(
        default=None, exclude_if=_is_none, description="A public table whose columns the rows get by key."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.path:
            raise ValueError("input.path is empty: give a file, a folder of files or a glob.")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise ValueError(f"input.columns is {list(self.columns)}: give at least one column, each once.")
        if self.types is not None and not self.types:
            raise ValueError("input.types is empty: give the type of a column, or leave it out.")
        return self

    @model_validator(mode="after")
    def _check_expressions(self) -> Self:
        if self.derive is not None and not 1 <= len(self.derive) <= _MOST_DERIVED:
            raise ValueError(
                f"input.derive has {len(self.derive)} columns: give 1 to {_MOST_DERIVED}, or leave it out."
            )
        if self.derive is not None and not all(self.derive):
            raise ValueError("input.derive has a column without a name: give it one.")
        self._parsed()
        return self

    def _parsed(self) -> tuple[Node | None, tuple[tuple[str, Node], ...]]:
        where = None if self.where is None else _parse("input.where", self.where)
        derive = {} if self.derive is None else self.derive
        return where, tuple((name, _parse(f"input.derive.{name}", text)) for name, text in derive.items())

    def uses(self) -> dict[str, tuple[str, ...]]:
        """Return the columns that each expression sees, by the field of the expression."""
        where, derive = self._parsed()
        fields = [("input.where", where)] if where is not None else []
        return {
            field: tuple(columns_of(node))
            for field, node in (*fields, *((f"input.derive.{name}", node) for name, node in derive))
        }

    def preparation(self) -> "Preparation":
        """Return how rows are prepared. The joined table is checked.

        Raises:
            InputError: the joined table cannot be read, or is not one row per key.
        """
        from transforms.join_table import open_join  # imports Arrow, which checking a job does not need
        from transforms.preparation import Preparation

        join = None if self.join is None else open_join(self.join.path, self.join.on, self.join.columns)
        return Preparation(*self._parsed(), join)


def _parse(field: str, text: str) -> Node:
    try:
        return parse_expression(text, constant=field != "input.where")
    except ExpressionError as error:
        raise ValueError(f"{field}: {error}.") from None


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
    count: str | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Column of how many records a row stands for, for a table that was aggregated before: "
        "integers. A row where it is null or below 1 is left out, and 2^20 is the most.",
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
        examples=[("height", "weight")],
        description="Numeric columns that the function receives, including nulls.",
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
