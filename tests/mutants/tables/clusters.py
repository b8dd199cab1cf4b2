"""Wrong versions of one_cluster, k_cover, k_means and k_median."""

from tests.mutants.mutant import Mutant
from tests.mutants.tables.selections import charged, nothing_but_noise

_PRACTICAL = "core/one_cluster/practical/rounds.py"
_AVERAGE = "core/centers/average.py"
_CORESET = "core/centers/coreset.py"
_COVER = "core/k_cover/cover.py"

ROUNDS = (
    Mutant(
        1,
        _PRACTICAL,
        "an average divides by the exact count",
        "move = total / count",
        "move = total / max(1, int(aggregate.totals[-1]))",
        nothing_but_noise("one_cluster", "drawn"),
    ),
    Mutant(
        1,
        _PRACTICAL,
        "the fitted radius is that of the exact counts",
        "last = len(radii) - 1 if first is None else first",
        "last = min(len(radii) - 1, int(np.searchsorted(within, self.target)))",
        nothing_but_noise("k_cover", "drawn"),
    ),
    Mutant(
        1,
        _AVERAGE,
        "pulls are divided by the exact number of records",
        "moves = sums / np.maximum(over, 1.0)[:, None]",
        "moves = sums / np.maximum(totals[:, -1], 1.0)[:, None]",
        nothing_but_noise("k_means", "drawn and auto"),
    ),
    Mutant(
        1,
        "core/centers/lloyd.py",
        "the radius of the next iteration follows from the exact spread",
        "return _moved(state, assignment, sums, counts, smallest, float(lengths))",
        "return _moved(state, assignment, sums, counts, smallest, float(aggregate.totals[-1] / SHARE_UNIT))",
        nothing_but_noise("k_means", "drawn and lloyd"),
    ),
    Mutant(
        1,
        "core/centers/moments.py",
        "second moments are divided by the exact number of records",
        "count = max(1.0, sums[-1] / b)",
        "count = max(1.0, aggregate.totals[d] / b)",
        nothing_but_noise("k_median", "drawn"),
    ),
    Mutant(
        2,
        _CORESET,
        "a cell's children are counted only where it holds records",
        "alive = np.flatnonzero(kept.ravel() > 0)",
        "alive = np.flatnonzero((kept.ravel() > 0) & (_counted(aggregate, children, last - level) > 0))",
        nothing_but_noise("k_means", "drawn and auto"),
    ),
    Mutant(
        3,
        _PRACTICAL,
        "no radius is fitted where no record is near",
        "within = np.cumsum(aggregate.totals)",
        "within = np.cumsum(aggregate.totals)\n        if not within[-1]:\n            return NotFound()",
        nothing_but_noise("one_cluster", "drawn"),
    ),
    Mutant(
        3,
        _PRACTICAL,
        "no box is chosen where none is above the floor",
        "chosen = self.box.choose(",
        "if not len(aggregate.keys):\n            return NotFound()\n        chosen = self.box.choose(",
        nothing_but_noise("one_cluster"),
    ),
    Mutant(
        3,
        _AVERAGE,
        "centers stay without a draw where no record pulls",
        "totals = aggregate.totals.reshape(self.k, -1)",
        "totals = aggregate.totals.reshape(self.k, -1)\n        if not totals.any():\n            return state",
        nothing_but_noise("k_median", "drawn"),
    ),
    Mutant(
        3,
        _COVER,
        "an empty table is not counted with noise",
        "return replace(state, rows=max(",
        "if not aggregate.totals[0]:\n            return replace(state, rows=0)\n        return replace(state, rows=max(",
        nothing_but_noise("k_cover", "drawn"),
    ),
    Mutant(
        8,
        _PRACTICAL,
        "the fitted radius is not charged",
        "return self.radius, self.count",
        "return (self.count,)",
        charged("one_cluster"),
    ),
    Mutant(
        8,
        _CORESET,
        "the finest level of the tree is not charged",
        "return self.counts",
        "return self.counts[:-1]",
        charged("k_means", "auto"),
    ),
    Mutant(
        8,
        _AVERAGE,
        "the weights of an average are not charged",
        "return self.sums, self.counts, self.weights",
        "return self.sums, self.counts",
        charged("k_median"),
    ),
)
