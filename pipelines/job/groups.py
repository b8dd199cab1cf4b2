"""The groups of a job file: key columns, keys, and jobs that ask about groups."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from core.budget import Budget
from core.grouping import MOST_KEYS, Contributions, Grouping
from core.labels import Labels
from pipelines.errors import JobError, quoted
from pipelines.job.contributions import UnitContributions
from pipelines.job.counting import StatisticsInput, completed_counts, may_lack
from pipelines.job.inputs import RowsInput
from pipelines.job.job import Job, RowsJob
from pipelines.job.policy import JobPart
from pipelines.storage.locate import absolute
from pipelines.tasks import Keep
from transforms.key_labels import LONGEST, UNITS, KeyValue, Truncate, label_of, product_of

if TYPE_CHECKING:
    from transforms.group_keys import GroupKeys

PRIVATE = "private"

MOST_GROUPS = 1000
"""Most groups of a task that asks about each of them by itself."""

_MOST_OF_UNIT = 20
"""Most groups of a unit there: planning composes the draws of so many."""

_TABLES = ("histogram", "cdf", "ranges")
"""The tasks among them that release tables."""

_IN_TABLES = re.compile(
    r"(cell|lower|upper|first|last)_\d+|box|count|value|standard_error|box_standard_error"
)
"""Names of the columns of these tables."""


def _place(value: str) -> str:
    return value if value == PRIVATE else absolute(value)


Keys = (
    Annotated[str, AfterValidator(_place)]
    | dict[str, tuple[KeyValue, ...]]
    | tuple[tuple[KeyValue, ...], ...]
    | tuple[KeyValue, ...]
)


def _check_values(keys: Any) -> Any:
    """Check the values in lists of keys: a wrong one is one sentence, not one for each kind of list."""
    keyed = list(keys.values()) if isinstance(keys, dict) else [keys]
    for listed in keyed:
        for key in listed if isinstance(listed, list | tuple) else ():
            for value in key if isinstance(key, list | tuple) and not isinstance(keys, dict) else [key]:
                if not isinstance(value, KeyValue):
                    raise ValueError(
                        f"group_by.keys has {quoted(value)}: the values of a key are text, whole numbers, or "
                        "true and false."
                    )
    if isinstance(keys, dict):
        return {column: _tuple_of(values) for column, values in keys.items()}
    return tuple(map(_tuple_of, keys)) if isinstance(keys, list) else keys


def _tuple_of(value: Any) -> Any:
    """Return a list as a tuple: after a check of ours, pydantic takes no list for one."""
    return tuple(value) if isinstance(value, list) else value


class GroupBy(JobPart):
    """Groups of rows: those that have the same values in the key columns."""

    columns: tuple[str, ...] = Field(
        description="Key columns: text, integers, booleans, dates, or timestamps with `truncate`. Rows where "
        "one is null are left out."
    )
    keys: Annotated[Keys, BeforeValidator(_check_values)] = Field(
        description="private: a group is released only where enough units are in it. Or the public keys, all "
        "of which are released: a list for each column (all combinations of their values), a list of keys, "
        "or a Parquet file with the key columns. Rows of other keys are left out."
    )
    truncate: dict[str, Truncate] = Field(
        default={},
        description="For key columns with timestamps (in UTC) or dates: hour, day, week or month. Keys are "
        "then 2013-01-31T23, 2013-01-31, 2013-01-28 (the Monday of a week) or 2013-01.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        columns = self.columns
        if not columns or len(set(columns)) < len(columns):
            raise ValueError(f"group_by.columns is {list(columns)}: give at least one column, each once.")
        unknown = [column for column in self.truncate if column not in columns]
        if unknown:
            raise ValueError(f"group_by.truncate has {unknown[0]}, which is not in group_by.columns.")
        if self.keys == "":
            raise ValueError("group_by.keys is empty: give private, a list or a Parquet file.")
        if not isinstance(self.keys, str):
            _checked(self._listed())
        return self

    @property
    def times(self) -> tuple[Truncate | None, ...]:
        """What the times of each key column are cut to."""
        return tuple(self.truncate.get(column) for column in self.columns)

    def grouping(self) -> Grouping:
        """Return the groups as core knows them. It reads the file of the public keys, if there is one.

        Raises:
            JobError: the keys of the file cannot be used.
            InputError: the file cannot be read.
        """
        times = tuple(None if time is None else UNITS[time] for time in self.times)
        return Grouping(self.columns, self.labels, times)

    @cached_property
    def labels(self) -> Labels | None:
        """The public keys; None where they are private."""
        if self.keys == PRIVATE:
            return None
        if isinstance(self.keys, str):
            from transforms.public_keys import read_keys  # imports Arrow, as below

            found = read_keys(self.keys, self.columns, self.times)
            try:
                return _checked(found)
            except ValueError as error:  # pydantic reports those of the job file itself
                raise JobError(str(error)) from None
        return _checked(self._listed())

    def _listed(self) -> list[str]:
        if isinstance(self.keys, dict):
            if set(self.keys) != set(self.columns):
                raise ValueError(
                    f"group_by.keys has lists for {', '.join(self.keys) or 'no column'}: give one for each "
                    f"of group_by.columns, {', '.join(self.columns)}."
                )
            return product_of([self.keys[column] for column in self.columns], MOST_KEYS)
        keys = [key if isinstance(key, tuple) else (key,) for key in self.keys]
        wrong = next((key for key in keys if len(key) != len(self.columns)), None)
        if wrong is not None:
            raise ValueError(
                f"group_by.keys has {list(wrong)}: a key has one value for each of group_by.columns, "
                f"{', '.join(self.columns)}."
            )
        return list(map(label_of, keys))


def _checked(labels: list[str]) -> Labels:
    if not labels:
        raise ValueError("group_by.keys has no keys: give at least one.")
    if len(labels) > MOST_KEYS:
        raise ValueError(f"group_by.keys has {len(labels):,} keys: give at most {MOST_KEYS:,}.")
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            raise ValueError(f"group_by.keys has {label[:60]} twice: give each key once.")
        seen.add(label)
        if len(label.encode("utf-8", "surrogatepass")) > LONGEST:
            raise ValueError(f"group_by.keys has a key of more than {LONGEST} bytes: {label[:40]}....")
    return Labels(labels)


class GroupedJob(Job):
    """A job whose rows may have groups, beside what its records are."""

    group_by: GroupBy | None = Field(
        default=None,
        exclude_if=lambda groups: groups is None,
        description="Groups, each with its own answer.",
    )

    _rows_too: ClassVar[str] = ", rows: 1"

    contributions: UnitContributions | None = Field(
        default=None,
        exclude_if=lambda bounds: bounds is None,
        description="With input.unit: how many groups a unit is in, and with how many rows, at most. Its "
        "rows then remain several records.",
    )

    @property
    def keep(self) -> Keep | None:
        """See `Job.keep`."""
        return super().keep if self.contributions is None else None

    @property
    def bounds(self) -> Contributions | None:
        """See `Job.bounds`."""
        return None if self.contributions is None else self.contributions.build()

    @property
    def group_keys(self) -> "GroupKeys | None":
        """See `Job.group_keys`."""
        groups = self.group_by
        if groups is None:
            return None
        from transforms.group_keys import GroupKeys  # imports Arrow, which other jobs do not need

        return GroupKeys(groups.columns, groups.times, groups.labels)

    def check_records(self) -> None:
        """See `Job.check_records`."""
        super().check_records()
        self._check_contributions()
        for column in () if self.group_by is None else self.group_by.columns:
            if self.is_in_table(column):
                raise ValueError(
                    f"group_by.columns has {column}, which is the name of another column of the table: "
                    "rename the column in the input."
                )

    def is_in_table(self, column: str) -> bool:
        """Return whether the table of the answer has a column of this name beside the keys."""
        raise NotImplementedError

    def _check_contributions(self) -> None:
        bounds, unit = self.contributions, self.unit
        if bounds is None:
            if self.group_by is not None and unit is not None:
                such = f"{{groups: 4{self._rows_too}}}"
                raise ValueError(
                    f"input.unit is {unit} and group_by is given: give contributions, such as {such}, since "
                    "a unit may be in several groups."
                )
            return
        if unit is None:
            raise ValueError(
                "contributions is given, but there is no input.unit, so each row is one person: give that "
                "column, or leave contributions out."
            )
        if "keep" in self.input.model_fields_set:
            keep = cast(RowsInput, self.input).keep
            raise ValueError(
                f"input.keep is {keep} and contributions is given: with contributions rows remain records, "
                "so leave out one of them."
            )
        bounds.build()
        guess = bounds.guess
        if self.group_by is None and guess is not None and guess.groups > 1:
            raise ValueError(
                f"contributions.guess.groups is {guess.groups}, but there is no group_by: leave it out, or "
                "give group_by."
            )
        if self.group_by is None and bounds.groups > 1:
            raise ValueError(
                f"contributions.groups is {bounds.groups}, but there is no group_by: leave it out, or give "
                "group_by."
            )


class StatisticsJob(GroupedJob, RowsJob):
    """A job that asks for statistics, of all records or of groups. One round counts all groups."""

    model_config = may_lack("domain")

    input: StatisticsInput

    _rows_too: ClassVar[str] = ", rows: 2"

    @classmethod
    def completed(cls, raw: Mapping[str, Any]) -> dict[str, Any]:
        """See `Job.completed`."""
        return super().completed(completed_counts(raw))

    @property
    def task_params(self) -> Any:
        """See `Job.task_params`."""
        from core.statistics.params import Statistics  # other tasks do not need it

        asked = self.params.build(self.grid)
        grouping = None if self.group_by is None else self.group_by.grouping()
        return Statistics(**vars(asked), grouping=grouping, contributions=self.bounds)

    def check_records(self) -> None:
        """See `Job.check_records`."""
        super().check_records()
        if self.params.parts > 1 and self.group_by is None:
            raise ValueError(f"params.parts is {self.params.parts}: without group_by the answer is one row.")
        groups = self.group_by
        if groups is not None and groups.keys == PRIVATE and self.unit in groups.columns:
            raise ValueError(
                f"group_by.columns has {quoted(self.unit)}, which is input.unit: each group would have one "
                "unit, and none could be released, so leave it out."
            )

    def is_in_table(self, column: str) -> bool:
        """See `GroupedJob.is_in_table`."""
        made = set(self.params.build().names)
        made |= {f"{measure}_{axis}" for measure in made for axis in range(len(self.input.columns))}
        return column in made | {f"{name}_{of}" for name in made for of in ("error", "low", "high")}


class GroupsJob(GroupedJob):
    """A job of a task that is asked about all records, or about each group by itself."""

    _without_groups: ClassVar[str] = "takes one record of a unit: leave it out; input.keep says which record"
    _in_each_group: ClassVar[str] = "takes one row of a unit in each group, so it must be 1"

    @property
    def apart(self) -> bool:
        """See `Job.apart`."""
        return self.group_by is not None

    @property
    def group_keys(self) -> "GroupKeys | None":
        """See `Job.group_keys`.

        Raises:
            JobError: a file has too many keys.
        """
        keys = super().group_keys
        if keys is not None:
            try:
                self._check_number(len(keys.labels or ()))
            except ValueError as error:
                raise JobError(str(error)) from None
        return keys

    def of_each(self, budget: Budget) -> "GroupsJob":
        """Return the job of one group, with its budget, for one record more or less."""
        own = {"epsilon": budget.epsilon, "delta": budget.delta, "neighbors": "add_or_remove_one"}
        privacy = self.privacy.model_copy(update=own)
        return self.model_copy(update={"privacy": privacy, "group_by": None, "contributions": None})

    def check_records(self) -> None:
        """See `Job.check_records`."""
        super().check_records()
        groups, bounds = self.group_by, self.contributions
        if groups is None:
            if bounds is not None:
                raise ValueError(
                    f"contributions is given, but {self.task} without group_by {self._without_groups}."
                )
            return
        if groups.keys == PRIVATE:
            raise ValueError(
                f"group_by.keys is private: {self.task} answers for public keys alone, so give a list or a "
                "file, which may have the keys that a run of statistics released."
            )
        if not isinstance(groups.keys, str):
            self._check_number(len(groups.labels or ()))
        if self.privacy.policy is not None:
            raise ValueError(
                "privacy.policy and group_by are given: a policy is about values of one row, but a row may "
                "change its group, so leave out one of them."
            )
        if getattr(self.params, "parts", 1) > 1:
            raise ValueError(
                f"params.parts is {self.params.parts} and group_by is given: the tables of all groups are "
                "one file, so leave out one of them."
            )
        if bounds is not None and bounds.rows != 1:
            raise ValueError(f"contributions.rows is {bounds.rows}: {self.task} {self._in_each_group}.")
        if bounds is not None and bounds.clamp == "unit":
            raise ValueError(f"contributions.clamp is unit: it is for sums, which {self.task} has not.")
        if bounds is not None and bounds.groups > _MOST_OF_UNIT:
            raise ValueError(
                f"contributions.groups is {bounds.groups}: for {self.task} it may be at most "
                f"{_MOST_OF_UNIT}, since each group gets about that part of the budget."
            )
        if bounds is not None and self.checks:
            raise ValueError(
                f"input.checks is {self.checks}, and input.unit and group_by are given: rows out of bounds "
                "of a unit may be in any number of groups, so leave it out."
            )

    def _check_number(self, groups: int) -> None:
        if groups > MOST_GROUPS:
            raise ValueError(
                f"group_by.keys has {groups:,} keys: {self.task} answers for at most {MOST_GROUPS:,} groups, "
                "because each has draws of its own; statistics takes more."
            )

    def is_in_table(self, column: str) -> bool:
        """See `GroupedJob.is_in_table`."""
        return self.task in _TABLES and _IN_TABLES.fullmatch(column) is not None


class RowsByGroupJob(GroupsJob, RowsJob):
    """A job of a task of rows or units, about all of them or about each group."""

    input: RowsInput

    @property
    def checks(self) -> float:
        """See `Job.checks`. With a unit and groups there are none by default: see `check_records`."""
        if self.input.checks is None and self.apart and self.unit is not None:
            return 0.0
        return super().checks
