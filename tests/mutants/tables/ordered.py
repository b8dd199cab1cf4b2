"""Wrong versions of histogram, cdf, quantiles, interior_point and threshold."""

from tests.mutants.mutant import Mutant
from tests.mutants.tables.selections import charged, nothing_but_noise

_RECURSIVE = "core/quantiles/recursive.py"
_TREE = "core/quantiles/counts.py"
_CDF = "core/cdf/hierarchical.py"
_HISTOGRAM = "core/histogram/counts.py"
_LEARNERS = "core/threshold/learners.py"
_FINDER = "core/interior_point/finder.py"

ROUNDS = (
    Mutant(
        1,
        _CDF,
        "counts are made to end at the exact number of records where that is private",
        "total = int(exact[-1]) if forest.rooted else None",
        "total = int(exact[-1])",
        nothing_but_noise("cdf", "drawn"),
    ),
    Mutant(
        1,
        _RECURSIVE,
        "ranks are parts of the exact number of records",
        "ranks = targets / UNIT * total",
        "ranks = targets / UNIT * order.total",
        nothing_but_noise("quantiles", "drawn and auto"),
    ),
    Mutant(
        1,
        _TREE,
        "ranks are parts of the exact number of records",
        "ranks = np.array(self.probabilities) * (before[-1] + inside[-1])",
        "ranks = np.array(self.probabilities) * order.total",
        nothing_but_noise("quantiles", "drawn and tree"),
    ),
    Mutant(
        1,
        _LEARNERS,
        "the ranks that are tried follow from the exact number of examples",
        "total = int(self.total.add(np.array([total]), noise)[0])",
        "self.total.add(np.array([total]), noise)",
        nothing_but_noise("threshold", "drawn"),
    ),
    Mutant(
        2,
        _HISTOGRAM,
        "only occupied cells are released",
        "return Table(self.cells, np.arange(self.cells.number), counts)",
        "return Table(self.cells, np.flatnonzero(exact), counts[np.flatnonzero(exact)])",
        nothing_but_noise("histogram", "drawn"),
    ),
    Mutant(
        2,
        _CDF,
        "nodes without records get no count",
        "level[here] = part",
        "level[here] = np.where(level[here] > 0, part, 0)",
        nothing_but_noise("cdf", "drawn"),
    ),
    Mutant(
        2,
        _TREE,
        "only children that hold records are counted",
        "here = [s for s in range(first, first + width * self.fan_out, width) if s < self.size]",
        "here = [s for s in range(first, first + width * self.fan_out, width)"
        " if s < self.size and order.within(s, s + width).total] or [first]",
        nothing_but_noise("quantiles", "drawn and tree"),
    ),
    Mutant(
        3,
        _RECURSIVE,
        "no look into a cell without records",
        "if high - low == 1:",
        "if high - low == 1 or not order.within(low, high).total:",
        nothing_but_noise("quantiles", "drawn and auto"),
    ),
    Mutant(
        3,
        _CDF,
        "an empty table is released as it is",
        "ends = exact[forest.ends() - 1]",
        "if not exact[-1]:\n            return Cumulative(exact, self.reading)\n        ends = exact[forest.ends() - 1]",
        nothing_but_noise("cdf", "drawn"),
    ),
    Mutant(
        3,
        _FINDER,
        "no point is chosen where there are no records",
        "runs = Runs.between(order, 0, self.size)",
        "if not order.total:\n            return 0\n        runs = Runs.between(order, 0, self.size)",
        nothing_but_noise("interior_point", "drawn and auto"),
    ),
    Mutant(
        8,
        _TREE,
        "the first level of the tree is not charged",
        "return self.counts",
        "return self.counts[1:]",
        charged("quantiles", "tree"),
    ),
    Mutant(
        8,
        _RECURSIVE,
        "only the first level of cuts is charged",
        "return (*self.cuts, *self.cells.draws(), self.inside)",
        "return (*self.cuts[:1], *self.cells.draws(), self.inside)",
        charged("quantiles", "auto"),
    ),
    Mutant(
        8,
        _LEARNERS,
        "the number of examples is not charged",
        "return (*total, self.rank, *self.finder.draws(), self.choice)",
        "return (self.rank, *self.finder.draws(), self.choice)",
        charged("threshold"),
    ),
)
