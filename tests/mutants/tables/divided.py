"""Wrong versions of how the rows of units are divided where they are too many to be held."""

from tests.mutants.mutant import Mutant, Selection

_RECORDS, _CHOSEN = "transforms/unit_records.py", "transforms/contributions.py"
_RACES = "transforms/row_races.py"
_REDUCE = "transforms/reduce_units.py"
_DIVIDED = Selection(("tests/transforms/test_reduce_units.py",))
_STORED, _RANKS = "core/statistics/stored_totals.py", "core/statistics/ranks.py"
_VALUES = Selection(("tests/core/statistics/test_stored_totals.py",))
_WIDE = "core/quantiles/wide.py"
_EACH = "core/each_group.py"
_ALONE = Selection(("tests/pipelines/test_every_recount.py",), "median")
_FEW = Selection(("tests/core/test_focus.py",), "few_cells")
_COUNTED = "core/counted_points.py"
_PARTS = Selection(("tests/core/test_counted_points.py",))
_PASSED = Selection(("tests/core/test_focus.py",), "of_a_group")

DIVIDED = (
    Mutant(
        11,
        _RECORDS,
        "a row that occurs twice has one chance where rows are divided",
        "races_of_copies([rows.ids, *points], rows.of_unit, copies, 1, self.salt)",
        "races_of_copies([rows.ids, *points], rows.of_unit, np.ones_like(copies), 1, self.salt)",
        _DIVIDED,
    ),
    Mutant(
        11,
        _RACES,
        "copies of rows of one hash are numbered apart",
        "before - np.maximum.accumulate(np.where(same, 0, before))",
        "0",
        _DIVIDED,
    ),
    Mutant(
        11,
        _RECORDS,
        "rows of one hash may be apart",
        "return first_hashes([rows[0], *points], self.salt)",
        "return first_hashes([rows[0] ^ points[0], points[0]], self.salt)",
        _DIVIDED,
    ),
    Mutant(
        11,
        _RECORDS,
        "of parts, the last row is that with the least hash",
        "            state = state.take(last_rows(state, state.words[:2]))\n",
        "            pass\n",
        _DIVIDED,
    ),
    Mutant(
        11,
        _RACES,
        "a later span of copies has the hashes of the first one",
        "begin, size = begins[index] + done,",
        "begin, size = begins[index],",
        _DIVIDED,
    ),
    Mutant(
        11,
        _CHOSEN,
        "where rows are divided, a row is chosen by its unit and not by its group",
        "return [pair_hashes(ids, self._names.hashes[groups], self._salt), *points",
        "return [pair_hashes(ids, self._names.hashes[groups * 0], self._salt), *points",
        _DIVIDED,
    ),
    Mutant(
        11,
        _CHOSEN,
        "a group keeps one copy of a row where rows are divided",
        "races_of_copies(named, of_pair, copies, self.contributing.rows, self._salt)",
        "races_of_copies(named, of_pair, copies, 1, self._salt)",
        _DIVIDED,
    ),
    Mutant(
        12,
        _REDUCE,
        "a unit of two parts has two records",
        "return reduction.merged(unit_rows(joined(kept), reduction.state_words, salt))",
        "return joined(kept)",
        _DIVIDED,
    ),
    Mutant(
        12,
        _REDUCE,
        "the last piece of a shard that is held is lost where it is dealt",
        "chain(_let_go(held), source)",
        "chain(_let_go(held[:-1]), source)",
        _DIVIDED,
    ),
    Mutant(
        11,
        _STORED,
        "the totals of a group are in all of its sections",
        "totals = np.where((own == number)[present, None], self.totals[present], 0)",
        "totals = self.totals[present]",
        _VALUES,
    ),
    Mutant(
        11,
        _STORED,
        "a group has the values of the next one",
        "place = np.where(keys[place] == section.keys, place, -1)",
        "place = np.where(keys[place] == section.keys, (place + 1) % len(keys), -1)",
        _VALUES,
    ),
    Mutant(
        11,
        "core/focus.py",
        "of a value that several rows of a group have, one counts where values are not held",
        "Counts.weighted(self._cells(part.keys), part.counts) for part in counts",
        "Counts.of(self._cells(part.keys)) for part in counts",
        _PASSED,
    ),
    Mutant(
        11,
        _RANKS,
        "a group whose values are not held is released from a part of them",
        "found = run_on_stored(self.rounds, counts, None, own)",
        "found = self.step.release(next(iter(counts)), None, own)",
        _PASSED,
    ),
    Mutant(
        11,
        _WIDE,
        "a cell of many values is searched in a part of them",
        "order = Order.of_counts(total_of_stored(SearchCell(self.whole), stored, state))",
        "order = Order.of_counts(next(iter(stored)))",
        _FEW,
    ),
    Mutant(
        6,
        _WIDE,
        "a search of few cells at a time is not charged",
        "return SearchCells(self.whole).draws()",
        "return ()",
        Selection(("tests/pipelines/test_every_plan.py",), "quantiles"),
    ),
    Mutant(
        11,
        _WIDE,
        "cells but the first one have no values",
        "            here = np.flatnonzero(cell >= 0)\n",
        "            here = np.flatnonzero(cell == 0)\n",
        _FEW,
    ),
    Mutant(
        11,
        "core/statistics/values.py",
        "a group and a point share a word that does not hold both",
        "return bits if (groups + 1) << bits <= _MOST else None",
        "return bits",
        Selection(("tests/core/statistics/test_values.py",)),
    ),
    Mutant(
        11,
        "transforms/merge_aggregates.py",
        "sums that wait in the file are left out",
        "        accumulator += own\n        return accumulator\n",
        "        return own\n",
        Selection(("tests/transforms/test_run_rounds.py",), "many_keys"),
    ),
    Mutant(
        4,
        _EACH,
        "the checks of a group count the rows of all groups",
        "last = self.checks.checked(last, Tally(outside[number]), noise)",
        "last = self.checks.checked(last, Tally(outside.sum(axis=0)), noise)",
        Selection(("tests/pipelines/test_every_recount.py",), "rows"),
    ),
    Mutant(
        4,
        _EACH,
        "a group has the rows of the group before it, too, where some group has none",
        "values = ValueCounts.of((np.cumsum(held) - 1)[groups], block.points[:, 0])",
        "values = ValueCounts.of(groups % np.count_nonzero(held), block.points[:, 0])",
        _ALONE,
    ),
    Mutant(
        4,
        _EACH,
        "groups that are counted together share one answer",
        "last = run_on_stored(self.rounds, counts, self.start, noise)",
        "last = found[-1][1] if found else run_on_stored(self.rounds, counts, self.start, noise)",
        _ALONE,
    ),
    Mutant(
        11,
        "core/quantiles/cells_and_searches.py",
        "the domain is halved otherwise where values are held",
        "return self.size if self.size <= CELLS else 1 << (self.size - 1).bit_length()",
        "return self.size",
        _PASSED,
    ),
    Mutant(
        11,
        _COUNTED,
        "records of parts below a point are not below it",
        "ranks[points > high] += total",
        "ranks[points > high + total] += total",
        _PARTS,
    ),
    Mutant(
        11,
        _COUNTED,
        "only the first part has the records about a point",
        "            if within.any():",
        "            if within.any() and not ranks.any():",
        _PARTS,
    ),
    Mutant(
        11,
        _COUNTED,
        "ranks of a column count the records of columns before it",
        "return np.asarray(ranks[1:] - ranks[0])",
        "return np.asarray(ranks[1:])",
        _PARTS,
    ),
    Mutant(
        11,
        _COUNTED,
        "all values of a wide group are held at once",
        "if not self.sections or len(counts) <= CELLS:",
        "if len(counts):",
        _PARTS,
    ),
)
