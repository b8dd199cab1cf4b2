"""What stands at the edges of a run: charges, attempts, other disks, locks, other processes, odd values."""

from tests.mutants.mutant import Mutant, Selection

_LEDGER = Selection(("tests/pipelines/ledger/test_ledger.py",), only="covers")
_DISKS = Selection(("tests/pipelines/test_output_id.py",), only="disk")
_FILES = Selection(("tests/transforms/test_whole_file.py",))
_TEXTS = Selection(("tests/transforms/test_file_format.py",), only="both_ends or unit_cannot_hold")
_DELIVERY = "pipelines/run/delivery.py"
_WHOLE = "transforms/whole_file.py"
_BEAM = Selection(("tests/shoal/test_beam.py",), only="repeat or trigger")
_REPORT = Selection(("tests/pipelines/report/test_report.py",), only="certainty")

EDGES = (
    Mutant(
        12,
        "pipelines/ledger/content.py",
        "a retry may cost more of delta or of rho than was charged",
        """            at_most(new, old)
            for ours, theirs in zip(planned, self.draws, strict=True)
            for new, old in zip(ours, theirs, strict=True)
""",
        """            at_most(ours[0], theirs[0])
            for ours, theirs in zip(planned, self.draws, strict=True)
""",
        _LEDGER,
    ),
    Mutant(
        12,
        "pipelines/run/run.py",
        "parts of a table are joined though the public keys have another order",
        "labels = () if keys is None else keys.labels or ()",
        "labels = () if keys is None else keys.columns or ()",
        Selection(("tests/pipelines/test_table.py",), only="order_of_the_public_keys"),
    ),
    Mutant(
        12,
        "core/histogram/constraints.py",
        "many constraints that overlap cost one record less than they may move",
        "return 2 * graph.longest() if searched else 2 * (len(boxes) + 1)",
        "return 2 * graph.longest() if searched else 2 * len(boxes)",
        Selection(("tests/core/histogram/test_constraints.py",), only="many_constraints"),
    ),
    Mutant(
        12,
        "transforms/merge_sections.py",
        "sections of two draws of one state are merged",
        "        check_marks(made.mark, drawn.mark)\n",
        "        pass\n",
        Selection(("tests/transforms/test_run_rounds.py",), only="sections_of_two_draws"),
    ),
    Mutant(
        12,
        "core/centers/moments.py",
        "records that rounding makes longer are charged as if it did not",
        "return math.ceil(self.space.reach * self.shrink + math.sqrt(self._d) / 2)",
        "return math.ceil(self.space.reach * self.shrink)",
        Selection(("tests/core/centers/test_coreset.py",), only="second_moments"),
    ),
    Mutant(
        11,
        "transforms/split_units.py",
        "the identity of a row follows from which rows before it are kept",
        "        row += len(batch)\n",
        "        row += len(batch) if kept is None else kept.true_count\n",
        Selection(("tests/transforms/test_evaluate_subsamples.py",), only="one_identity"),
    ),
    *(
        Mutant(
            12,
            _DELIVERY,
            f"{what} may be written to another disk than the run is charged for",
            f"        check_folder(delivery)\n{line}",
            line,
            _DISKS,
        )
        for what, line in (
            ("a release", "        write_release("),
            ("a part of a table", "        return write_part("),
            ("the release of a table", "        delivery.folder.create(RELEASE"),
            ("the answer of a question", "        name = list(draft.answers)[number]"),
            ("a release of several questions", "        write_joint_release("),
            ("a release of groups", "        write_grouped_release("),
        )
    ),
    Mutant(
        12,
        "transforms/join_table.py",
        "values of a joined table are those of another key after one that is null",
        "{name: values(name).filter(held) for name in join.columns}",
        "{name: values(name) for name in join.columns}",
        Selection(("tests/transforms/test_preparation.py",), only="joined_by_key"),
    ),
    Mutant(
        12,
        "transforms/parse_texts.py",
        "a time that its unit cannot hold is another time",
        "    held &= np.abs(seconds) < 2**63 // per_second - 1\n",
        "",
        _TEXTS,
    ),
    Mutant(
        12,
        "transforms/parse_texts.py",
        "the smallest integer is null",
        "-(2**63) <= value",
        "-(2**63) < value",
        _TEXTS,
    ),
    Mutant(
        12,
        _WHOLE,
        "a file has its name before its content is on the disk",
        "        stream.write(data)\n    os.fsync(file)\n",
        "        stream.write(data)\n",
        _FILES,
    ),
    Mutant(
        12,
        _WHOLE,
        "a new file may lose its name in a power cut",
        "            return False\n        os.fsync(place)\n",
        "            return False\n",
        _FILES,
    ),
    Mutant(
        12,
        _WHOLE,
        "a replaced file may be the old one after a power cut",
        "        os.fsync(folder)\n",
        "        pass\n",
        _FILES,
    ),
    Mutant(
        12,
        _WHOLE,
        "a lock that was removed and made anew has two owners",
        "if os.path.samestat(os.fstat(held), os.lstat(lock)):",
        "if os.fstat(held) and os.lstat(lock):",
        _FILES,
    ),
    Mutant(
        12,
        "transforms/spill.py",
        "a forked process empties the file that its parent reads",
        "if self._file >= 0 and self._key[0] == os.getpid():",
        "if self._file >= 0:",
        Selection(("tests/transforms/test_spill.py",), only="does_not_empty"),
    ),
    Mutant(
        12,
        "shoal/beam.py",
        "rows of sliding windows are counted once for each",
        "    _check_once(batches)\n    kind",
        "    kind",
        _BEAM,
    ),
    Mutant(
        12,
        "shoal/beam.py",
        "what a trigger gives again is counted again",
        "elif mode == AccumulationMode.ACCUMULATING:",
        "elif mode is None:",
        _BEAM,
    ),
    Mutant(
        12,
        "shoal/beam.py",
        "a trigger may make a release of some of the rows",
        "if not isinstance(trigger, DefaultTrigger):",
        "if trigger is None:",
        _BEAM,
    ),
    Mutant(
        12,
        "pipelines/report/report.py",
        "the highest certainty is rounded down",
        "rounded = math.ceil(percent * 10**digits) / 10**digits",
        "rounded = math.floor(percent * 10**digits) / 10**digits",
        _REPORT,
    ),
    Mutant(
        12,
        "pipelines/report/report.py",
        "the certainty is said to be exceeded with a probability of delta",
        "odds = posterior(epsilon + 1), (1 - math.exp(-1)) / max(delta, 1e-300)",
        "odds = posterior(epsilon + 1), 1 / max(delta, 1e-300)",
        _REPORT,
    ),
)
