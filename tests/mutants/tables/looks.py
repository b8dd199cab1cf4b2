"""Wrong versions of the looks at a wide domain."""

from tests.mutants.mutant import Mutant, Selection
from tests.mutants.tables.selections import nothing_but_noise

_FOCUS = "core/focus.py"
_WIDE = "core/quantiles/wide.py"
_OFFERS = "core/mechanisms/offers.py"
_IN_SECTIONS = Selection(("tests/core/threshold/test_sections.py",), "exact_probability")
_BY_RANKS = Selection(("tests/core/threshold/test_ranks.py",), "errors_of_its_cut or window")
_OF_ALL = Selection(("tests/core/test_focus.py",), "of_all_points")

LOOKS = (
    Mutant(
        1,
        _FOCUS,
        "cells of many records are merged although they are hot",
        "kept = hot(cells, int(ranks[-1]))",
        "kept = hot(cells, int(ranks[-1])) & (counts.counts < 100)",
        _OF_ALL,
    ),
    Mutant(
        1,
        _FOCUS,
        "records of a merged cell are counted at the start of the domain",
        "starts, widths = self.edges[at], self.widths[at]",
        "starts, widths = self.edges[at] * (self.widths[at] < 100), self.widths[at]",
        _OF_ALL,
    ),
    Mutant(
        1,
        "core/quantiles/aim.py",
        "scores end farther away than where points are counted one by one",
        "end = -math.inf if self._most is None else -self._most",
        "end = -math.inf if self._most is None else -(self._most // 2)",
        _OF_ALL,
    ),
    Mutant(
        1,
        "core/interior_point/exponential.py",
        "scores end farther away than where points are counted one by one",
        "return self.scores(runs, total) > (-math.inf if self.far is None else -self.far)",
        "return self.scores(runs, total) > (-math.inf if self.far is None else -self.far // 2)",
        _OF_ALL,
    ),
    Mutant(
        12,
        "core/interior_point/exponential.py",
        "where scores end depends on the number of records",
        "np.maximum(depths - total // 2, -self.far)",
        "np.maximum(depths - total // 2, self.far - total)",
        Selection(("tests/core/interior_point/test_exponential.py",), "that_end"),
    ),
    Mutant(
        10,
        "core/quantiles/smooth.py",
        "of the ranks that matter below the wanted one, two are counted one by one",
        "return np.asarray((runs.upto >= rank - self._matter) &",
        "return np.asarray((runs.upto >= rank - 2) &",
        _OF_ALL,
    ),
    Mutant(
        1,
        _WIDE,
        "the exact number of records is kept for the next round",
        "total = order.total if state is None else state",
        "total = order.total",
        nothing_but_noise("quantiles", "drawn and (auto or recursive) and add_or_remove_one-3"),
    ),
    Mutant(
        1,
        _WIDE,
        "cells with twice the records that are halved are not looked at closely",
        "runs.upto - runs.below > self.whole.threshold(records)",
        "runs.upto - runs.below > 2 * self.whole.threshold(records)",
        _OF_ALL,
    ),
    Mutant(
        1,
        _WIDE,
        "trees count records in coarse cells",
        "hot[cell] = True",
        "hot[cell] = starts > low",
        _OF_ALL,
    ),
    Mutant(
        1,
        _WIDE,
        "choices in a cell end farther away than where points are counted one by one",
        "hot[cell] |= scores > choice.end",
        "hot[cell] |= scores > choice.end / 4",
        _OF_ALL,
    ),
    Mutant(
        1,
        _OFFERS,
        "thresholds of a section end nearer than those of all",
        "ended = np.minimum(losses, losses.min() + far)",
        "ended = np.minimum(losses, losses.min() + far // 2)",
        _IN_SECTIONS,
    ),
    Mutant(
        12,
        _OFFERS,
        "a section offers the first threshold of each number of errors",
        "noise.below(int(size)) for size in sizes",
        "0 * noise.below(int(size)) for size in sizes",
        _IN_SECTIONS,
    ),
    Mutant(
        12,
        _OFFERS,
        "thresholds far from the best one end at the least errors of their section",
        "-np.minimum(losses, losses.min() + far)",
        "-losses",
        _IN_SECTIONS,
    ),
    Mutant(
        12,
        "core/mechanisms/exponential.py",
        "a choice among what sections offer has half the noise",
        "return int(self.points[self.noise.select_run(self.scores, self.lengths, self.scale)])",
        "return int(self.points[self.noise.select_run(self.scores, self.lengths, self.scale / 2)])",
        Selection(("tests/core/threshold/test_sections.py",), "distribution"),
    ),
    Mutant(
        12,
        "core/threshold/exponential.py",
        "errors of thresholds end beyond the largest integer where epsilon is tiny",
        "far = min(learner.errors(1e-10 * setting.params.failure) + 1, NEVER)",
        "far = learner.errors(1e-10 * setting.params.failure) + 1",
        Selection(("tests/core/threshold/test_sections.py",), "errors_end"),
    ),
    Mutant(
        12,
        "core/threshold/ranks.py",
        "a rank between two sections is tried twice",
        "first = before // step + 1 if section.low else 0",
        "first = -(-before // step) if section.low else 0",
        _BY_RANKS,
    ),
    Mutant(
        12,
        "core/threshold/ranks.py",
        "examples before the rank are counted coarsely",
        "(runs.upto > state - window)",
        "(runs.upto > state)",
        _BY_RANKS,
    ),
)
