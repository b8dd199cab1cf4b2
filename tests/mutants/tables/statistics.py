"""Wrong versions of statistics: of the totals of groups, of their sensitivity, and of private keys."""

from tests.mutants.mutant import Mutant, Selection
from tests.mutants.tables.selections import SPLITS, charged, nothing_but_noise, spent

_ROUND = "core/statistics/by_group.py"
_CHANGE = "core/statistics/quantities.py"
_METHODS = "core/statistics/methods.py"
_KEYS = "core/mechanisms/partition_selection.py"
_SELECTION = Selection(("tests/core/mechanisms/test_partition_selection.py",))
_RANKS = "core/statistics/ranks.py"
_SPLITS = "core/mechanisms/splits.py"
_SUMS = "core/statistics/totals.py"
_KEPT = "transforms/contributions.py"
_BOUNDS = Selection(("tests/transforms/test_contributions.py",))
_ROWS = "transforms/unit_rows.py"
_SORTED = "transforms/sorted_words.py"
_TOGETHER = Selection(("tests/transforms/test_unit_rows.py",))
_TASK = Selection(("tests/core/statistics/test_task.py",))
_OF_RANKS = ("tests/core/statistics/test_ranks.py",)

TOTALS = (
    Mutant(
        1,
        _ROUND,
        "the totals of a quantity are exact",
        "noisy[:, drawn] = added.add(exact[:, drawn], noise)",
        "added.add(exact[:, drawn], noise)\n                noisy[:, drawn] = exact[:, drawn]",
        nothing_but_noise("statistics"),
    ),
    Mutant(
        2,
        _ROUND,
        "of public keys only those that have rows are released",
        "keys = self._public[number]",
        "keys = aggregate.keys",
        nothing_but_noise("statistics"),
    ),
    Mutant(
        1,
        _ROUND,
        "private keys are released with exact numbers of units",
        "return found, {0: counts}",
        "return found, {0: aggregate.at(found)[:, 0]}",
        nothing_but_noise("statistics"),
    ),
    Mutant(
        8,
        _ROUND,
        "what finds private keys is not charged",
        "return (*added, *ranks) if self.selection is None else (self.selection, *added, *ranks)",
        "return (*added, *ranks)",
        charged("statistics"),
    ),
    Mutant(
        7,
        _CHANGE,
        "a replaced row that changes its group counts as one change, in L1",
        "return self.changes * self.groups * self._each(quantity)",
        "return self.groups * self._each(quantity)",
        spent("statistics"),
    ),
    Mutant(
        7,
        _CHANGE,
        "a replaced row that changes its group counts as one change, in L2",
        "moved = math.sqrt(self.changes * self.groups) * self._each(quantity)",
        "moved = math.sqrt(self.groups) * self._each(quantity)",
        spent("statistics"),
    ),
    Mutant(
        12,
        _METHODS,
        "numbers of rows are public under replace_one also in groups",
        "fixed = neighbors.changes == 2 and params.grouping is None and params.contributions is None",
        "fixed = neighbors.changes == 2 and params.contributions is None",
        Selection(_TASK.nodes, "counts_are_public_only"),
    ),
    Mutant(
        7,
        _CHANGE,
        "a sum counts as from the middle of its column wherever its center is",
        "return max(map(abs, self.ends))",
        "low, high = self.ends\n        return -(-(high - low) // 2) if high > low else high",
        Selection(_TASK.nodes, "exhaustive"),
    ),
)

PAIRS = (
    Mutant(
        7,
        _CHANGE,
        "the two sums of a pair change by half of the extent",
        "return 0, self.extent",
        "return 0, (self.extent + 1) // 2",
        spent("statistics"),
    ),
    Mutant(
        7,
        _CHANGE,
        "the second sum of a pair is not what is left of the extent",
        "return np.asarray(self.extent - points[:, self.axis])",
        "return np.asarray(self.extent + points[:, self.axis])",
        spent("statistics"),
    ),
    Mutant(
        1,
        _ROUND,
        "sums that are tied to another one have no noise",
        "noisy[:, drawn] = added.add(exact[:, drawn], noise)",
        "noisy[:, drawn] = added.add(exact[:, drawn], noise)\n"
        "                noisy[:, drawn.start + 1 : drawn.stop] = exact[:, drawn.start + 1 : drawn.stop]",
        nothing_but_noise("statistics"),
    ),
    Mutant(
        8,
        _ROUND,
        "sums that are tied to another one are drawn by themselves, which nobody charges",
        "noisy[:, drawn] = added.add(exact[:, drawn], noise)",
        "for i in range(*drawn.indices(len(self.noises))):\n"
        "                    noisy[:, i] = added.add(exact[:, i], noise)",
        charged("statistics"),
    ),
    Mutant(
        12,
        _KEYS,
        "a group of one unit has sums of no steps",
        "beyond = self.threshold - self.extent",
        "beyond = self.threshold",
        _SELECTION,
    ),
    Mutant(
        12,
        _KEYS,
        "the noise of three sums is that of two",
        "float(tail_of_sum(self.sums, self.scale, np.array(float(beyond))))",
        "float(tail_of_sum(2, self.scale, np.array(float(beyond))))",
        _SELECTION,
    ),
    Mutant(
        1,
        _KEYS,
        "groups are found by their exact sums",
        "enough = noisy.sum(axis=1) >= self.threshold",
        "enough = counts[here].sum(axis=1) >= self.threshold",
        _SELECTION,
    ),
    Mutant(
        12,
        _METHODS,
        "the error of a rounded number of rows is that of one sum's noise",
        'rows = rounded_deviation(2, scale, kinds["above"].extent)',
        'rows = math.sqrt(2) * scale / kinds["above"].extent',
        Selection(_TASK.nodes, "states_its_errors"),
    ),
)

_REACHED = "            enough = noisy >= self.threshold\n"

FOUND = (
    Mutant(
        12,
        _METHODS,
        "delta pays for private keys as if a unit were in one group",
        "            of_delta,\n            groups,",
        "            of_delta,\n            1,",
        spent("statistics"),
    ),
    Mutant(
        1,
        _KEYS,
        "groups that are found come in the order of their exact numbers",
        _REACHED,
        f"{_REACHED}            order = np.argsort(-counts[here][enough], kind='stable')\n"
        "            return labels[here][enough][order], noisy[enough][order]\n",
        spent("statistics"),
    ),
    Mutant(
        1,
        _KEYS,
        "a key that one unit alone has is found whatever its noise is",
        _REACHED,
        "            enough = (noisy >= self.threshold) | (counts[here] == 1)\n",
        spent("statistics"),
    ),
    Mutant(
        1,
        _KEYS,
        "a key that one unit alone has is found whatever the noise of its sums is",
        "enough = noisy.sum(axis=1) >= self.threshold",
        "enough = (noisy.sum(axis=1) >= self.threshold) | (counts[here].sum(axis=1) <= self.extent)",
        spent("statistics"),
    ),
    Mutant(
        1,
        _KEYS,
        "a key that one unit alone has is found whatever its coin is",
        "return labels[uniform < odds]",
        "return labels[(uniform < odds) | (counts == 1)]",
        spent("statistics"),
    ),
    Mutant(
        11,
        _SUMS,
        "groups of a block are in the order in which rows bring them",
        'by_label = np.argsort(labels, kind="stable")',
        "by_label = np.arange(len(labels))",
        spent("statistics"),
    ),
)

_ROOM = "return np.asarray(self.extent * (self.rows * units - rows))"
_ABOUT = "return np.asarray(2 * rows - (self.rows + 1) * units)"

NUMBERS = (
    Mutant(
        7,
        _CHANGE,
        "rows that a unit has are not taken from those that it could have",
        _ROOM,
        "return np.asarray(self.extent * self.rows * units)",
        spent("statistics"),
    ),
    Mutant(
        7,
        _CHANGE,
        "a number of rows is taken about the least that units have",
        _ABOUT,
        "return np.asarray(2 * rows - 2 * units)",
        spent("statistics"),
    ),
    Mutant(
        7,
        _CHANGE,
        "a number of rows is taken about the most that units have, from which one of few rows is far",
        _ABOUT,
        "return np.asarray(2 * rows - 2 * self.rows * units)",
        spent("statistics"),
    ),
    Mutant(
        7,
        _CHANGE,
        "a unit changes rows about the middle by half of what it can",
        "return 1 - self.rows, self.rows - 1",
        "return -(self.rows // 2), self.rows // 2",
        spent("statistics"),
    ),
    Mutant(
        7,
        _CHANGE,
        "rows about the middle, of which a unit adds one number, change by a number of each row",
        'return self.kind in ("units", "unit_sum", "excess")',
        'return self.kind in ("units", "unit_sum")',
        Selection(_TASK.nodes, "about_the_middle"),
    ),
    Mutant(
        12,
        _METHODS,
        "a unit in a group of its own has one row there",
        '"extent": max(1, last.extent) * last.rows',
        '"extent": max(1, last.extent)',
        spent("statistics"),
    ),
    Mutant(
        12,
        "core/statistics/shares.py",
        "private keys of units with several rows are found by their number of rows",
        "if not asked.several:\n        return [Weighted(Quantity(",
        "if not asked.several or gaussian:\n        return [Weighted(Quantity(",
        spent("statistics"),
    ),
)

CONTRIBUTIONS = (
    Mutant(
        7,
        _CHANGE,
        "a unit counts with one row in each of its groups",
        "return self._rows(quantity) * quantity.bound",
        "return quantity.bound",
        spent("statistics"),
    ),
    Mutant(
        7,
        _CHANGE,
        "a replaced unit that stays in its groups moves a sum by the L2 norm of two units in others",
        "if self.changes == 1 or quantity.counts:",
        "if self.changes:",
        Selection(_TASK.nodes, "exhaustive"),
    ),
    Mutant(
        12,
        "transforms/split_units.py",
        "long keys of units are put together, which may be an error",
        "[without_long(each) if name in groups else each for name, each in read_.items()]",
        "list(read_.values())",
        _BOUNDS,
    ),
    Mutant(
        12,
        "transforms/split_units.py",
        "a long key is an error where dictionaries differ",
        "joined = joined_batches(pieces)",
        "joined = pa.concat_batches(pieces)",
        Selection(("tests/transforms/test_joined_batches.py",), "long_key"),
    ),
    Mutant(
        12,
        "transforms/cut_batches.py",
        "a long key is an error among views",
        "{place: without_views(batch.column(place)) for place in places}",
        "{place: batch.column(place) for place in places}",
        Selection(("tests/transforms/test_one_odd_row.py",), "odd_text and key"),
    ),
    Mutant(
        12,
        "transforms/contributions.py",
        "two units whose keys have one first word are one",
        "ids = identities(ids, more)",
        "assert len(ids) == len(more)",
        Selection(("tests/transforms/test_contributions.py",), "remain_two"),
    ),
    Mutant(
        12,
        "core/budget.py",
        "parts of delta are together more than delta, by rounding",
        "WHOLE = 1 - 1e-12",
        "WHOLE = 1.0",
        Selection(("tests/core/statistics/test_task.py",), "never_more"),
    ),
    Mutant(
        12,
        "transforms/group_keys.py",
        "a text that a label has room for is left out",
        "pc.less_equal(pc.binary_length(column), LONGEST)",
        "pc.less(pc.binary_length(column), LONGEST // 2)",
        Selection(("tests/transforms/test_group_keys.py",), "without_long"),
    ),
    Mutant(
        12,
        "core/statistics/shares.py",
        "finding keys starves sums that are clamped for each unit",
        "float(lost(asked, most) ** 2 * asked.private)",
        "float(most**2 * asked.private)",
        Selection(("tests/core/statistics/test_ranks.py",), "starve"),
    ),
    Mutant(
        12,
        "transforms/unit_groups.py",
        "a unit keeps one group more",
        "places(unit_of[ranked]) < most",
        "places(unit_of[ranked]) <= most",
        _BOUNDS,
    ),
    Mutant(
        12,
        _KEPT,
        "a unit keeps all rows of its groups",
        "full = pairs.kept & (pairs.rows > contributing.rows)",
        "full = pairs.kept & (pairs.rows < 0)",
        _BOUNDS,
    ),
    Mutant(
        11,
        _KEPT,
        "of the rows of a unit in a group the first ones are kept",
        "ranked = sorted_within(of_full, race, words)",
        "ranked = np.arange(len(of_full))",
        _BOUNDS,
    ),
    Mutant(
        11,
        "transforms/unit_groups.py",
        "of a unit's groups those that are full are kept first",
        "ranked = sorted_within(unit_of, hashes, (names.ranks[group_of],))",
        "ranked = np.lexsort((-np.diff(np.append(begins, len(pair))), unit_of))",
        _BOUNDS,
    ),
    Mutant(
        11,
        _SORTED,
        "units whose hashes differ in low bits alone are mixed",
        "if (found[1:] < found[:-1]).any():",
        "if False:",
        _TOGETHER,
    ),
    Mutant(
        11,
        _SORTED,
        "rows of one hash are in the order in which they come",
        "order = np.lexsort((*further, hashes, of))",
        "pass",
        _TOGETHER,
    ),
    Mutant(
        12,
        _ROWS,
        "two units of one identity are one",
        "of_unit, numbers = inverse, len(keys)",
        "pass",
        Selection(("tests/transforms/test_bound_units.py",), "equal_hashes"),
    ),
    Mutant(
        12,
        _ROWS,
        "two units that share a place of the table are one",
        "number[others[order]] = len(table) - 1 + changes",
        "pass",
        _TOGETHER,
    ),
    Mutant(
        12,
        "transforms/keyed_blocks.py",
        "a text of two blocks has the key of its last block",
        "(state ^ words if place else words)",
        "words",
        Selection(("tests/transforms/test_keyed_blocks.py",)),
    ),
    Mutant(
        12,
        "transforms/unit_keys.py",
        "what follows a text in memory is a part of it",
        'out[:, -1] &= np.take(_HELD[1], left, mode="clip")',
        "pass",
        Selection(("tests/transforms/test_unit_keys.py",), "one_by_one"),
    ),
    Mutant(
        11,
        _ROWS,
        "rows of a later piece have the labels of the first one",
        "self._place.setdefault(name, len(self._place)) for name in names",
        "place for place, _ in enumerate(names)",
        _TOGETHER,
    ),
    Mutant(
        11,
        "transforms/row_races.py",
        "copies of a row have one hash where they are few",
        "twice = [found[found == hashes[held[others]]],",
        "twice = [found[found == hashes[held[others]]][_FEW:],",
        _TOGETHER,
    ),
    Mutant(
        12,
        _KEPT,
        "a block may end within a unit",
        "starts[np.searchsorted(starts, wanted)]",
        "wanted",
        _BOUNDS,
    ),
)

KEYS = (
    Mutant(
        6,
        _KEYS,
        "the delta of a threshold is not charged",
        "Cost(spent, self.alone)",
        "Cost(spent)",
        Selection(_SELECTION.nodes, "with_delta_at_most"),
    ),
    Mutant(
        6,
        _KEYS,
        "the threshold is as if a group of one unit were empty",
        "beyond = self.threshold - 1",
        "beyond = self.threshold",
        Selection(_SELECTION.nodes, "with_delta_at_most"),
    ),
    Mutant(
        6,
        _KEYS,
        "the groups in which a unit may be alone count as one",
        "-math.expm1(self.groups * math.log1p(-each))",
        "-math.expm1(math.log1p(-each))",
        Selection(_SELECTION.nodes, "with_delta_at_most"),
    ),
    Mutant(
        12,
        _KEYS,
        "the odds of a large group rise to 1 too soon",
        "following = max(last, min(whole, grown, kept))",
        "following = max(last, min(whole, grown))",
        Selection(_SELECTION.nodes, "indistinguishable"),
    ),
    Mutant(
        12,
        _KEYS,
        "the odds are one unit late, so that an empty group may be released",
        "odds = self._table[np.clip(counts, 0, last)]",
        "odds = self._table[np.clip(counts + 1, 0, last)]",
        Selection(_SELECTION.nodes, "with_its_odds or certain"),
    ),
)

RANKS = (
    Mutant(
        7,
        _RANKS,
        "the choices of a quantile have half the noise",
        "return self.noise.select_run(scores, lengths, scale)",
        "return self.noise.select_run(scores, lengths, scale / 2)",
        charged("statistics"),
    ),
    Mutant(
        8,
        _ROUND,
        "the ranks of only one column are charged",
        "ranks = tuple(draw for each in self.reading.ranks for draw in each.draws())",
        "ranks = tuple(draw for each in self.reading.ranks[:1] for draw in each.draws())",
        charged("statistics"),
    ),
    Mutant(
        1,
        _RANKS,
        "an extreme is the exact one",
        "return np.array([(found.step,) * 3])",
        "return np.array([(int(counts.keys[0]) if len(counts) else found.step,) * 3])",
        nothing_but_noise("statistics"),
    ),
    Mutant(
        2,
        _ROUND,
        "groups without rows get no quantiles",
        "found = [each.release(counts[each.sought.axis], noise) for each in self.reading.ranks]",
        "if place < 0:\n                continue\n"
        "            found = [each.release(counts[each.sought.axis], noise) for each in self.reading.ranks]",
        nothing_but_noise("statistics"),
    ),
    Mutant(
        7,
        _RANKS,
        "a unit moves ranks by one row in each of its groups",
        "change.changes * change.groups * change.rows",
        "change.changes * change.groups",
        spent("statistics"),
    ),
    Mutant(
        7,
        _RANKS,
        "a unit moves the ranks of one group",
        "change.changes * change.groups * change.rows",
        "change.changes * change.rows",
        spent("statistics"),
    ),
    Mutant(
        7,
        _RANKS,
        "a replaced row that changes its group counts as one change, for ranks",
        "change.changes * change.groups * change.rows",
        "change.groups * change.rows",
        spent("statistics"),
    ),
    Mutant(
        8,
        _RANKS,
        "two draws of one group are charged as one",
        "in_each = 1 if draw.disjoint else draw.times",
        "in_each = 1",
        Selection(_OF_RANKS, "twice"),
    ),
    Mutant(
        12,
        _RANKS,
        "the number of rows of a group is public under replace_one",
        'Neighbors("replace_one" if change.fixed else "add_or_remove_one")',
        'Neighbors("replace_one" if change.changes == 2 else "add_or_remove_one")',
        nothing_but_noise("statistics"),
    ),
    Mutant(
        12,
        _SPLITS,
        "two added rows cost splits as much as a replaced one",
        "if not self.replaced or (self.changes, self.rate) != (2, 1.0):",
        "if (self.changes, self.rate) != (2, 1.0):",
        SPLITS,
    ),
    Mutant(
        7,
        _SUMS,
        "the sum of a unit is not clamped",
        "np.clip(of_units, *quantity.ends)",
        "of_units",
        spent("statistics"),
    ),
    Mutant(
        7,
        _SUMS,
        "sums are clamped for each row, as if it were a unit",
        "order, first = _units(place, block.ids)\n    found",
        "order, first = np.argsort(place, kind='stable'), np.arange(len(place))\n    found",
        spent("statistics"),
    ),
    Mutant(
        12,
        "core/statistics/values.py",
        "values of the groups of a shard keep the places of all groups",
        "places[self.groups[here]]",
        "self.groups[here]",
        Selection(_OF_RANKS, "merge_and_split"),
    ),
)

_LEFT = "core/left_out.py"
_ESTIMATED = Selection(("tests/core/test_left_out.py",))

LEFT_OUT = (
    Mutant(
        12,
        _LEFT,
        "the even shape is that of numbers from 0 on",
        "others, c = mean - 1, most - 1",
        "others, c = mean, most - 1",
        _ESTIMATED,
    ),
    Mutant(
        12,
        _LEFT,
        "the heavy shape has another mean than the guess",
        "(mean - 1) / (mean + most - 1)",
        "mean / (mean + most)",
        _ESTIMATED,
    ),
    Mutant(
        12,
        _LEFT,
        "rows that are left out with their group are not counted",
        "1 - (1 - group) * (1 - row)",
        "row",
        _ESTIMATED,
    ),
    Mutant(
        12,
        "pipelines/tried_bounds.py",
        "every tried bound has the plan of the job's own",
        "planned = plan if other is bounds else",
        "planned = plan if other is not None else",
        Selection(("tests/pipelines/test_tried_bounds.py",)),
    ),
    Mutant(
        12,
        "pipelines/job/contributions.py",
        "a guess makes another run of a job, which is charged again",
        "exclude=True,",
        "exclude=False,",
        Selection(("tests/pipelines/test_tried_bounds.py",)),
    ),
)
