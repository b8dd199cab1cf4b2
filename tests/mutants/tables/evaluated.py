"""Blocks that a function is evaluated on, the groups of records, and aggregators of the blocks' answers."""

from tests.mutants.mutant import Mutant, Selection

_UNITS, _GROUPS = "transforms/split_units.py", "transforms/split_groups.py"
_EVALUATED, _SPLIT = (
    ("tests/transforms/test_evaluate_subsamples.py",),
    ("tests/transforms/test_split_groups.py",),
)
_TYPES = Selection(("tests/transforms/test_mixed_types.py",), only="each_column_also")
_ORDER, _AVERAGE = Selection(_EVALUATED, only="order_of_files"), "core/sample_and_aggregate/average.py"
_AGGREGATORS = ("tests/core/sample_and_aggregate/test_aggregator.py",)
_TASK = ("tests/core/sample_and_aggregate/test_task.py",)
_SPILL = ("tests/transforms/test_spill.py",)
_PIECES = Selection(_SPILL, only="let_go")
_QUOTED = Selection(_SPILL, only="are_not_quoted")
_MEDIAN = ("tests/core/sample_and_aggregate/test_median.py",)
_SMOOTH = "core/sample_and_aggregate/smooth_median.py"
_STRANDS = Selection(_SPLIT, only="own_strands")

BLOCKS = (
    Mutant(
        12,
        _UNITS,
        "rows of a block are shown by the text of its shard",
        "rows: bytes = field(repr=False)",
        "rows: bytes",
        Selection(_EVALUATED, only="any_text"),
    ),
    Mutant(
        12,
        _UNITS,
        "numbers of rows are shown by the text of a shard",
        "counts: tuple[int, ...] = field(repr=False)",
        "counts: tuple[int, ...]",
        Selection(_EVALUATED, only="any_text"),
    ),
    Mutant(
        12,
        _UNITS,
        "units of text have public keys",
        "unit_keys(batch.column(unit), salt)",
        "unit_keys(batch.column(unit), bytes(16))",
        Selection(_EVALUATED, only="texts_follow"),
    ),
    Mutant(
        11,
        _UNITS,
        "rows of files are mixed by how many rows of others are beside them",
        "splitting, batch, ids, groups, descriptor.file.number, row)",
        "splitting, batch, ids, groups, 0, row)",
        _ORDER,
    ),
    Mutant(
        11,
        _UNITS,
        "rows of a row group are ordered by how many rows of others are beside them",
        "        row += batch.num_rows\n",
        "",
        _ORDER,
    ),
    Mutant(
        12,
        _UNITS,
        "a function sees its columns in another order than the job names them",
        "batch.select(list(splitting.columns))",
        "batch.select(sorted(splitting.columns))",
        Selection(_EVALUATED, only="order_of_the_job"),
    ),
    Mutant(
        12,
        _UNITS,
        "one column alone gets the type of all files",
        "for name, kind in splitting.mixed:",
        "for name, kind in splitting.mixed[:1]:",
        _TYPES,
    ),
    Mutant(
        12,
        _UNITS,
        "one row of a large number ends the run",
        "pc.cast(own.column(place), kind, safe=False)",
        "pc.cast(own.column(place), kind)",
        _TYPES,
    ),
)

GROUPS = (
    Mutant(
        12,
        _GROUPS,
        "the salt of groups is in texts",
        "salt: bytes | None = field(default=None, repr=False)",
        "salt: bytes | None = None",
        Selection(_SPLIT, only="any_text"),
    ),
    Mutant(
        12,
        _GROUPS,
        "of more than 256 groups, those that end in one byte are mixed",
        "groups.astype(np.uint16)",
        "groups.astype(np.uint8)",
        Selection(_SPLIT, only="byte_counts"),
    ),
    Mutant(
        12,
        _GROUPS,
        "what is left out of the last groups is not counted",
        "np.bincount(groups, minlength=self.groups)",
        "np.bincount(groups)",
        Selection(_SPLIT, only="left_out_of"),
    ),
    Mutant(
        12,
        _GROUPS,
        "what is left out of a group without records is not counted",
        "if start == end and counts is None:",
        "if start == end:",
        Selection(_SPLIT, only="left_out_of"),
    ),
    Mutant(
        12,
        _GROUPS,
        "records of questions that are not due are read",
        "asked = list(dict.fromkeys(question for question, _ in strands))",
        "asked = list(range(len(self.splits)))",
        _STRANDS,
    ),
    Mutant(
        12,
        _GROUPS,
        "a question without groups is taken for a group of the first one",
        "yield strands[question, 0], block",
        "yield question, block",
        _STRANDS,
    ),
)

AGGREGATORS = (
    Mutant(
        12,
        _AVERAGE,
        "a mean is rounded down",
        "round(int(total[0]) / self.blocks)",
        "int(total[0]) // self.blocks",
        Selection(_AGGREGATORS, only="half_a_step"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/center_of_attention.py",
        "distances of the first answers alone are looked at",
        "for first in range(0, answers, chunk):",
        "for first in range(0, min(answers, chunk), chunk):",
        Selection(("tests/core/sample_and_aggregate/test_center_of_attention.py",), only="held_at_a_time"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/median.py",
        "an axis with few points is promised to serve for one with many",
        "if any(cells.last >= most",
        "if all(cells.last >= most",
        Selection(_MEDIAN, only="more_cells"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/stable_radius.py",
        "no radius holds a domain of several axes",
        "math.isqrt(sum(extent**2 for extent in grid.extents)) + 1",
        "max(grid.extents)",
        Selection(_TASK, only="holds_the_whole"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/found.py",
        "a radius of 0 is told as none",
        "None if self.radius is None else grid.length(self.radius)",
        "grid.length(self.radius) if self.radius else None",
        Selection(_TASK, only="no_width"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/stable_point.py",
        "half of the blocks are a majority for `auto`",
        "self.setting.params.stable_fraction <= 0.5",
        "self.setting.params.stable_fraction < 0.5",
        Selection(_AGGREGATORS, only="auto_takes_a_median"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/task.py",
        "squared distances may be larger than integers",
        "    setting.grid.check_distances()",
        "    pass",
        Selection(_TASK, only="bad_parameters"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/outputs.py",
        "answers of the same blocks are equal whatever they are",
        "            and np.array_equal(self.points, other.points)\n",
        "",
        Selection(_TASK, only="equal_only"),
    ),
    Mutant(
        12,
        _SMOOTH,
        "stable answers on both sides of a median are said to be as near as those on one side",
        "1 + 2 * noise.scale(1.0) * noise.tail(self._failure)",
        "1 + noise.scale(1.0) * noise.tail(self._failure)",
        Selection(_MEDIAN, only="promised_spread"),
    ),
    Mutant(
        12,
        _SMOOTH,
        "a median is promised to be in the middle of the stable answers",
        "1 + 2 * noise.scale(1.0) * noise.tail(self._failure)",
        "2 * noise.scale(1.0) * noise.tail(self._failure)",
        Selection(_MEDIAN, only="promised_spread"),
    ),
)

PIECES = (
    Mutant(
        12,
        "transforms/gather_parts.py",
        "an error quotes rows that are split",
        "    with plain_errors(step_name):\n        pieces",
        "    if True:\n        pieces",
        _QUOTED,
    ),
    Mutant(
        12,
        "transforms/gather_parts.py",
        "an error quotes rows that are gathered",
        "    with plain_errors(step_name):\n        return number",
        "    if True:\n        return number",
        _QUOTED,
    ),
    Mutant(
        12,
        "transforms/evaluate_subsamples.py",
        "an error quotes rows of a block",
        "        with plain_errors(_LABEL):\n            yield from _answers",
        "        if True:\n            yield from _answers",
        Selection(_EVALUATED, only="leaves_no_process"),
    ),
    Mutant(
        12,
        "transforms/evaluate_subsamples.py",
        "processes of functions are left when a worker ends",
        "        self.runner.close()",
        "        pass",
        Selection(_EVALUATED, only="leaves_no_process"),
    ),
    Mutant(
        12,
        "transforms/gather_parts.py",
        "a step that is repeated finds no rows",
        "return map(self.spill.get, self.kept)",
        "kept, self.kept = self.kept, []\n        return map(self.spill.get, kept)",
        _PIECES,
    ),
    Mutant(
        12,
        "transforms/gather_parts.py",
        "pieces that are let go are taken for none",
        'raise RuntimeError("The pieces of a part were let go.")',
        "return iter(())",
        _PIECES,
    ),
    Mutant(
        12,
        "transforms/gather_parts.py",
        "all pieces of a part are in memory together",
        "return map(self.spill.get, self.kept)",
        "return iter([self.spill.get(each) for each in self.kept])",
        _PIECES,
    ),
    Mutant(
        12,
        "transforms/spill.py",
        "a file that is not freed ends the run that is over",
        "with suppress(OSError):  # what",
        "with suppress(ValueError):  # what",
        Selection(_SPILL, only="frees_nothing"),
    ),
    Mutant(
        12,
        "transforms/spill.py",
        "threads that want a piece at once hold it several times",
        "        with self._sharing:\n            piece = self._shared.get(kept)",
        "        if True:\n            piece = self._shared.get(kept)",
        Selection(_SPILL, only="at_once"),
    ),
    Mutant(
        12,
        "transforms/spill.py",
        "rows wait in another folder where the process has moved",
        "tempfile.tempdir = os.path.abspath(folder)",
        "tempfile.tempdir = folder",
        Selection(_SPILL, only="when_the_process_began"),
    ),
    Mutant(
        12,
        "transforms/spill.py",
        "a folder that is not there takes the rows",
        "if folder and os.path.isdir(folder):",
        "if folder:",
        Selection(_SPILL, only="when_the_process_began"),
    ),
    Mutant(
        12,
        "transforms/spill.py",
        "files of a run are not freed at its end once a step had one of its own",
        "        _MADE.reset(before)",
        "        pass",
        Selection(_SPILL, only="gone_with_the_step"),
    ),
    Mutant(
        12,
        "shoal/beam.py",
        "windows are refused that repeat no row",
        "(GlobalWindows, FixedWindows, Sessions)",
        "(GlobalWindows, FixedWindows)",
        Selection(("tests/shoal/test_beam.py",), only="repeat_no_row"),
    ),
    Mutant(
        12,
        "transforms/spill.py",
        "a late piece is written to a file that was emptied",
        "                if self._end >= self._most:\n                    return piece\n",
        "",
        Selection(_SPILL, only="was_emptied"),
    ),
)

_ROUNDS, _OF_ROUNDS = "core/rounds.py", Selection(("tests/core/test_rounds.py",))

ROUNDS = (
    Mutant(
        12,
        _ROUNDS,
        "one part of a merged aggregate is examined in memory",
        "for part in range(examination.examiners))",
        "for part in range(1))",
        _OF_ROUNDS,
    ),
    Mutant(
        12,
        _ROUNDS,
        "looks find what is below the floor",
        "step.finer(_clipped(step, count(step)), state)",
        "step.finer(count(step), state)",
        _OF_ROUNDS,
    ),
    Mutant(
        12,
        _ROUNDS,
        "the round before its looks is examined",
        "return examined(step, total, state, noise)",
        "return examined(round_, total, state, noise)",
        _OF_ROUNDS,
    ),
    Mutant(
        12,
        _ROUNDS,
        "sections in memory have no randomness",
        "return examined(step, total, state, noise)",
        "return examined(step, total, state)",
        _OF_ROUNDS,
    ),
    Mutant(
        12,
        _ROUNDS,
        "passes are told of strands that have nothing",
        "for group in (together, *([number] for number in alone)) if group]",
        "for group in (together, *([number] for number in alone))]",
        _OF_ROUNDS,
    ),
    Mutant(
        12,
        _ROUNDS,
        "strands share passes unless all of their rounds have an examination",
        "if any(map(examination_of, strand.rounds))]",
        "if all(map(examination_of, strand.rounds))]",
        _OF_ROUNDS,
    ),
    Mutant(
        12,
        _ROUNDS,
        "a strand without records is answered for as if it were not asked",
        "for strand, its in zip(strands, blocks, strict=True)",
        "for strand, its in zip(strands, blocks, strict=False)",
        _OF_ROUNDS,
    ),
)
