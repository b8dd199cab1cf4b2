"""What statistics are asked for."""

from dataclasses import dataclass

from core.errors import InvalidValue
from core.plan import check_failure

MEASURES = ("count", "units", "sum", "mean", "variance")
MOST_PARTS = 4096
MOST_KEYS = 1 << 22
"""Most public keys: each of them gets noise."""

_LARGEST = 1 << 31
"""Most groups of a unit, and most rows of a unit in a group."""


@dataclass(frozen=True)
class Asked:
    """Counts, sums, means and variances of columns, of all records or of each group of them.

    Args:
        measures: any of `count` (rows), `units` (distinct units), `sum`, `mean` and `variance`; the latter
            three are of each column.
        failure: probability with which a promise may fail, beta.
        method: `laplace` or `gaussian` noise (the latter needs delta), or `auto`.
        parts: above 1, the table of the groups is written by the workers as this many files, so that no
            process holds it as a whole; for tables of more than some million groups.

    Raises:
        InvalidValue: a value is out of range.
    """

    measures: tuple[str, ...]
    failure: float = 0.1
    method: str = "auto"
    parts: int = 1

    def __post_init__(self) -> None:
        check_failure(self.failure)
        if not self.measures or len(set(self.measures)) < len(self.measures):
            raise InvalidValue("measures", list(self.measures), "give at least one measure, each once")
        for measure in self.measures:
            if measure not in MEASURES:
                raise InvalidValue(
                    "measures", measure, f"the measures are {', '.join(MEASURES)}", f"has {measure!r}"
                )
        if not 1 <= self.parts <= MOST_PARTS:
            raise InvalidValue("parts", self.parts, f"it must be from 1 to {MOST_PARTS:,}")


@dataclass(frozen=True)
class Grouping:
    """Which groups there are.

    Args:
        columns: the key columns.
        labels: the public keys, each the canonical JSON of a key's values, all different; None where the keys
            are private.
        times: unit to which a key column is truncated (`D`, `h` or `M`), or None, one for each column.
    """

    columns: tuple[str, ...]
    labels: tuple[str, ...] | None
    times: tuple[str | None, ...]

    @property
    def private(self) -> bool:
        """Whether a group is only released where enough units are in it."""
        return self.labels is None


@dataclass(frozen=True)
class Contributions:
    """What one unit may contribute, at most.

    Args:
        groups: number of groups that a unit is in, L.
        rows: number of its rows in each of them, M.

    Raises:
        InvalidValue: a number is out of range, or their product is.
    """

    groups: int = 1
    rows: int = 1

    def __post_init__(self) -> None:
        least, most = min(self.groups, self.rows), self.groups * self.rows
        if least < 1 or most >= _LARGEST:
            raise InvalidValue(
                "contributions",
                (self.groups, self.rows),
                "both must be above 0, and their product below 2^31, so that totals fit into int64",
                f"has groups {self.groups} and rows {self.rows}",
            )


@dataclass(frozen=True)
class Statistics(Asked):
    """What is asked for, of which groups, and what bounds the contribution of a unit.

    Args:
        grouping: the groups; None for all records together.
        contributions: what a unit may contribute; None where a unit has one record: a row, or what its rows
            became.
    """

    grouping: Grouping | None = None
    contributions: Contributions | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parts > 1 and self.grouping is None:
            raise InvalidValue("parts", self.parts, "without groups the answer is one row, so leave it out")

    @property
    def several(self) -> bool:
        """Whether a unit may have several rows in a group, so that units are not counted by rows."""
        return self.contributions is not None and self.contributions.rows > 1
