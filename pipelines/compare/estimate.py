"""A released figure, and what its error is from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipelines.answers.answer import Release
from pipelines.answers.text import kept_rows

_LEAST = 30
"""Records from which on a mean of a sample is taken to be about normal."""

RUNS, KEPT, SAMPLED = "runs", "kept", "sampled"
"""What an error of a figure is from: from the figure that runs on these rows have on average, from that of
the rows that this run kept of each unit, or from that of all people of whom those here are a sample."""

Value = float | str
"""A number, or a date as it is written; dates of one kind are in the order of their texts."""


@dataclass(frozen=True)
class Estimate:
    """A released figure. Where nothing is known of its error, it has a value alone.

    Args:
        name: which figure it is.
        value: the figure.
        error: its standard error.
        bound: it is off by at most this, with the probability of a promise.
        interval: holds the true value, with the probability of a promise.
        counts: whether it counts records.
        moment: of a count, a sum, a mean or a variance: which measure it is, and the number of its column.
        group: the key of its group; None where it is of all records.
        widest: whether its error takes a variance to be as large as bounds allow, since none was released.
        one: about how much noise of 1 changes it, where noise is whole numbers; None where that is not known.
    """

    name: str
    value: Value
    error: float | None = None
    bound: float | None = None
    interval: tuple[Value, Value] | None = None
    counts: bool = False
    moment: tuple[str, int] | None = None
    group: str | None = None
    widest: bool = False
    one: float | None = None

    @property
    def label(self) -> str:
        """The name, with that of the group."""
        return self.name if self.group is None else f"{self.name} of {self.group}"

    @property
    def alone(self) -> "Estimate":
        """The figure, where nothing is known of its error."""
        return replace(self, error=None, bound=None, interval=None)


def most_of_unit(release: Release) -> int | None:
    """Return how many records a unit has at most, in each group; None where no run draws its rows anew.

    Args:
        release: a release of one question, or its plan.
    """
    privacy, bounds = release.get("privacy", {}), release.get("contributions")
    if privacy.get("unit") is None:
        return None
    if bounds is not None:  # a function gets all rows of a unit, and its answer is no count
        return int(bounds["rows"]) if "rows" in bounds else None
    return 1 if kept_rows(release) else None


def drawn_anew(estimate: Estimate, most: int) -> Estimate:
    """Return a figure of records that each run draws anew, independently for each unit.

    A unit adds X records to a count, from 0 to `most`, so the variance of X is at most `most` E[X]. The sum
    over all units is the expected count, so the variance of a count is at most `most` times that. Nothing is
    known of other figures.

    Args:
        estimate: the figure, with the errors of its noise alone.
        most: see `most_of_unit`.
    """
    if not estimate.counts or estimate.error is None or isinstance(estimate.value, str):
        return estimate.alone
    return replace(estimate, error=math.hypot(estimate.error, math.sqrt(most * max(0, estimate.value))))


def sampled(figures: Sequence[Estimate], release: Release) -> list[Estimate]:
    """Return figures with errors from those of all people of whom the units, or rows, are a sample.

    Let units be drawn independently, each with at most M records of a group, and let n be the count, m and v
    the mean and variance of a column, and R the larger distance of m from the bounds. With S the sum of what
    a unit adds, the variance of a sum over units is at most the sum of the E[S^2], and S^2 is at most M times
    the sum of the squares of its records. So the variances that sampling adds are at most

        count M n, sum M n (v + m^2), mean M v / n, variance M v (R^2 - v) / n,

    the latter two but for terms that vanish against them as n grows. The last one holds as a variable in
    [0, R^2] of mean v has at most this variance, and so v <= (upper - m) (m - lower), also where v was not
    asked for (Bhatia and Davis 2000). Released values stand for n, m and v, each by one standard error of its
    noise to the side where the bound is larger. Of other figures, of fewer than `_LEAST` records, and of rows
    that stand for several records each, nothing is known. The draw of the rows of a unit that count is a part
    of sampling.

    For two groups of one release with units in both, what they add to a difference of means or sums may have
    twice the variance of independent samples, so M is doubled there.

    Args:
        figures: those of an answer, with the errors of their noise.
        release: the answer.
    """
    if release["privacy"].get("count") is not None:  # rows are sampled, of which each is many records
        return [each.alone for each in figures]
    most, domain = most_of_unit(release) or 1, release.get("domain", {})
    shared = 2 if (release.get("contributions") or {}).get("groups", 1) > 1 else 1
    found: list[Estimate] = []
    for group in dict.fromkeys(each.group for each in figures):
        own = [each for each in figures if each.group == group]
        known = {each.moment: each for each in own if each.error is not None}
        found += [_sampled(each, known, domain, most, shared) for each in own]
    return found


def _sampled(
    figure: Estimate,
    known: Mapping[tuple[str, int] | None, Estimate],
    domain: Mapping[str, Any],
    most: int,
    shared: int,
) -> Estimate:
    """Return a figure with the error of its noise and of sampling; see `sampled`."""
    if figure.error is None or isinstance(figure.value, str):
        return figure.alone
    measure, axis = figure.moment or ("", 0)
    if figure.counts:
        added = (1 if measure == "units" else most) * max(1.0, figure.value + figure.error)
        return replace(figure.alone, error=math.hypot(figure.error, math.sqrt(added)))
    count = known.get(("count", 0))
    if figure.moment is None or count is None or isinstance(domain["lower"][axis], str):
        return figure.alone
    low, high = (float(domain[end][axis]) for end in ("lower", "upper"))
    n, more = _number(count)
    if n - more < _LEAST:
        return figure.alone
    mean, variance = known.get(("mean", axis)), known.get(("variance", axis))
    if mean is not None:
        m, off = _number(mean)
    elif measure == "sum":
        m, off = figure.value / n, figure.error / n
    else:
        m, off = (low + high) / 2, (high - low) / 2
    ends = [min(max(end, low), high) for end in (m - off, m + off)]
    central = min(max((low + high) / 2, ends[0]), ends[1])
    v = (high - central) * (central - low)
    if variance is not None:
        v = min(v, sum(_number(variance)))
    if measure == "sum":
        added = (n + more) * (v + max(map(abs, ends)) ** 2)
    elif measure == "mean":
        added = v / (n - more)
    else:
        reach = max(ends[1] - low, high - ends[0]) ** 2
        v = min(v, reach / 2)  # where the product is largest
        added = v * (reach - v) / (n - more)
    error = math.hypot(figure.error, math.sqrt(most * shared * max(0.0, added)))
    step = domain.get("step", 0.0)
    step = 1.0 if isinstance(step, str) else step  # numbers beside dates are whole
    two = step >= high - low  # of two values the mean tells the variance
    return replace(figure.alone, error=error, widest=variance is None and not two)


def _number(figure: Estimate) -> tuple[float, float]:
    """Return the value of a figure, a number, and its error."""
    return float(figure.value), figure.error or 0.0
