"""What statistics are asked for."""

from dataclasses import dataclass, field
from itertools import pairwise

from core.errors import InvalidValue
from core.grouping import Contributions, Grouping
from core.nearest import meant, nearest
from core.plan import check_failure

MEASURES = ("count", "units", "sum", "mean", "variance", "minimum", "maximum")
QUANTILES = "quantiles"
MOST_QUANTILES = 1000
MOST_PARTS = 4096


@dataclass(frozen=True)
class Asked:
    """Counts, sums, means and variances of columns, of all records or of each group of them.

    Args:
        measures: any of `count` (rows), `units` (distinct units), `sum`, `mean`, `variance`, `minimum`,
            `maximum` and `{quantiles: [0.1, 0.5]}`; all but the first two are of each column.
        failure: probability with which a promise may fail, beta.
        method: `laplace` or `gaussian` noise (the latter needs delta), or `auto`.
        parts: above 1, the table of the groups is written by the workers as this many files, so that no
            process holds it as a whole; for tables of more than some million groups.

    Raises:
        InvalidValue: a value is out of range.
    """

    measures: tuple[str | dict[str, tuple[float, ...]], ...] = field(metadata={"example": ("count", "mean")})
    failure: float = 0.1
    method: str = "auto"
    parts: int = 1

    def __post_init__(self) -> None:
        check_failure(self.failure)
        for measure in self.measures:
            if isinstance(measure, dict):
                _check_quantiles(measure)
            elif measure not in MEASURES:
                raise InvalidValue("measures", measure, _ALL, f"has {measure!r}{_meant(str(measure))}")
        quantiles = sum(isinstance(measure, dict) for measure in self.measures)
        if quantiles > 1:
            said = f"has {quantiles} times {QUANTILES}"
            raise InvalidValue("measures", quantiles, "give all of them in one list", said)
        if not self.names or len(set(self.names)) < len(self.names):
            raise InvalidValue("measures", list(self.measures), "give at least one measure, each once")
        if not 1 <= self.parts <= MOST_PARTS:
            raise InvalidValue("parts", self.parts, f"it must be from 1 to {MOST_PARTS:,}")

    @property
    def names(self) -> tuple[str, ...]:
        """Every measure by its name: a quantile is `quantile_0.5`."""
        found: list[str] = []
        for measure in self.measures:
            found += [measure] if isinstance(measure, str) else map(quantile_name, measure[QUANTILES])
        return tuple(found)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The quantiles, ascending; none where none are asked for."""
        return next((each[QUANTILES] for each in self.measures if isinstance(each, dict)), ())


def quantile_name(probability: float) -> str:
    """Return the name of a quantile among the measures."""
    return f"quantile_{probability}"


_ALL = f"the measures are {', '.join(MEASURES)} and {{{QUANTILES}: [0.1, 0.5]}}"
_ONE = f"{{{QUANTILES}: [0.5]}}"
_OTHER_WORDS = {
    **{"average": "mean", "avg": "mean", "std": "variance", "total": "sum"},
    **{"max": "maximum", "min": "minimum", QUANTILES: _ONE, "median": _ONE},
}
"""Words for measures that are not like their names."""


def _meant(word: str) -> str:
    """Return a question after a word that is no measure; empty where none is near."""
    names = {**{each: each for each in MEASURES}, **_OTHER_WORDS}
    close = nearest(word, names)
    return meant(None if close is None else names[close])


def _check_quantiles(given: dict[str, tuple[float, ...]]) -> None:
    if set(given) != {QUANTILES}:
        close = _meant(next(iter(given), ""))
        raise InvalidValue("measures", given, _ALL, f"has {', '.join(given) or 'an empty mapping'}{close}")
    probabilities = given[QUANTILES]
    shown = f"has quantiles {list(probabilities[:4])}"
    if not 1 <= len(probabilities) <= MOST_QUANTILES:
        allowed = f"give 1 to {MOST_QUANTILES:,} quantiles"
        raise InvalidValue("measures", given, allowed, f"has {len(probabilities):,} quantiles")
    if not all(0 < p < 1 for p in probabilities) or any(a >= b for a, b in pairwise(probabilities)):
        raise InvalidValue("measures", given, "they must ascend, each above 0 and below 1", shown)


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
        needs = next((name for name in ("mean", "variance") if name in self.measures), None)
        if self.clamped and needs is not None:
            raise InvalidValue(
                "measures", needs, "it is of rows, so it needs contributions.clamp: row", f"has {needs}"
            )

    @property
    def clamped(self) -> bool:
        """Whether the sum of a unit in a group is clamped to the domain once more."""
        return self.contributions is not None and self.contributions.clamp == "unit"

    @property
    def private(self) -> bool:
        """Whether there are groups, of private keys."""
        return self.grouping is not None and self.grouping.private

    @property
    def several(self) -> bool:
        """Whether a unit may have several rows in a group, so that units are not counted by rows."""
        return self.contributions is not None and self.contributions.rows > 1
