"""Wrong versions of what stands around a run: ledgers, folders, simulations, files of rows that wait."""

from tests.mutants.mutant import Mutant, Selection

_LEDGER, _CONTENT = "pipelines/ledger/ledger.py", "pipelines/ledger/content.py"
_LEFT, _TABLE = "pipelines/ledger/left.py", "pipelines/ledger/table.py"
_CHARGES = "tests/pipelines/ledger/test_ledger.py"
_TWICE = Selection(("tests/pipelines/ledger/test_left.py",), "count_twice")

LEDGERS = (
    Mutant(
        12,
        _LEDGER,
        "the release of one run marks every run of its ledger as released",
        "marked if entry is known else entry",
        "marked",
        Selection((_CHARGES,), "marked_once"),
    ),
    Mutant(
        12,
        _LEDGER,
        "a ledger that is made as an error says is not one of records that a count says",
        '        "count": job.count,\n',
        "",
        Selection((_CHARGES,), "made_for_the_promise"),
    ),
    Mutant(
        8,
        _CONTENT,
        "a charge covers a run that has one more draw",
        "return len(planned) == len(self.draws) and all(",
        "return all(",
        Selection((_CHARGES,), "covers_no_draw"),
    ),
    Mutant(
        12,
        _CONTENT,
        "a ledger of a unit has a count, so that nobody can say what it hides",
        "if self.count is not None and (self.unit is not None or self.policy is not None):",
        "if self.count is not None and self.policy is not None:",
        Selection(("tests/pipelines/ledger/test_policy.py",), "no_whole_rows"),
    ),
    Mutant(
        7,
        _LEFT,
        "twice as many runs of a job are said to fit as a ledger of replace_one admits",
        "charge = entry_of(ledger, job, planned, now()).charge(ledger.neighbors)",
        "charge = entry_of(ledger, job, planned, now()).charge(job.privacy.neighbors)",
        _TWICE,
    ),
    Mutant(
        7,
        _LEFT,
        "a plan says that twice as many runs fit as a ledger of replace_one admits",
        "planned = entry_of(ledger, job, plan, now()).charge(ledger.neighbors)",
        "planned = entry_of(ledger, job, plan, now()).charge(job.privacy.neighbors)",
        _TWICE,
    ),
    Mutant(
        7,
        _LEFT,
        "twice as many runs like the last one are said to fit as a ledger of replace_one admits",
        "last.charge(ledger.neighbors)",
        "last.charge(last.neighbors)",
        _TWICE,
    ),
    Mutant(
        7,
        _LEFT,
        "half of what was spent under replace_one is said to be left",
        "charges = [entry.charge(ledger.neighbors) for entry in ledger.charges]",
        "charges = [entry.charge(entry.neighbors) for entry in ledger.charges]",
        _TWICE,
    ),
    Mutant(
        7,
        _TABLE,
        "charges are shown with half of what they count under replace_one",
        "charges = [entry.charge(ledger.neighbors) for entry in ledger.charges]",
        "charges = [entry.charge(entry.neighbors) for entry in ledger.charges]",
        _TWICE,
    ),
    Mutant(
        12,
        _LEFT,
        "a question with Gaussian noise hides that another one could have it",
        "return any(_may_be_gaussian(",
        "return all(_may_be_gaussian(",
        Selection(("tests/pipelines/ledger/test_left.py",), "one_question"),
    ),
    Mutant(
        12,
        _TABLE,
        "a ledger of units is shown as one of rows",
        'if ledger["unit"] else ""',
        'if not ledger["unit"] else ""',
        Selection(("tests/pipelines/ledger/test_table.py",), "promises_is_shown"),
    ),
)

_MEASURES, _MEASURE = "pipelines/simulation/measures.py", "pipelines/simulation/measure.py"
_STATISTICS, _SIMULATE = "pipelines/simulation/statistics_measure.py", "pipelines/simulation/simulate.py"


def _measured(only: str) -> Selection:
    return Selection(("tests/pipelines/simulation/test_measures.py",), only)


MEASURED = (
    Mutant(
        12,
        _SIMULATE,
        "a simulated run leaves out the second round",
        "for round_ in plan.rounds[1:]:",
        "for round_ in plan.rounds[2:]:",
        Selection(("tests/pipelines/simulation/test_simulate.py",), "all_rounds"),
    ),
    Mutant(
        12,
        _SIMULATE,
        "a run that was half as far off again as promised is said to have kept the promise",
        "value <= allowed * (1 + 1e-9)",
        "value <= allowed * 1.5",
        _measured("spread"),
    ),
    Mutant(
        12,
        _SIMULATE,
        "the error that 9 in 10 runs do not exceed is one that fewer do not exceed",
        'method="higher"',
        'method="lower"',
        _measured("spread"),
    ),
    Mutant(
        12,
        _MEASURE,
        "ranks below the wanted one are no error",
        "float(max(0.0, low - wanted, wanted - high))",
        "float(max(0.0, low - wanted))",
        _measured("rank or quantiles"),
    ),
    Mutant(
        12,
        _MEASURE,
        "an interval is taken for its lower end",
        "step if to is None else to, side",
        "step, side",
        _measured("quantiles"),
    ),
    Mutant(
        12,
        _MEASURES,
        "an interval of a later column may lack the true value",
        "for axis, one in enumerate(self._each(found))\n        ]",
        "for axis, one in enumerate(self._each(found)[:1])\n        ]",
        _measured("several_columns"),
    ),
    Mutant(
        12,
        _MEASURES,
        "the count of a range is off at one end alone",
        "float(np.ptp(errors))",
        "self.error(found)",
        _measured("both_ends"),
    ),
    Mutant(
        12,
        _MEASURES,
        "a cell of many records may be missing where one of few is",
        "missing.max(initial=0) + 1.0",
        "missing.min(initial=9) + 1.0",
        _measured("missing_with_a_count"),
    ),
    Mutant(
        12,
        _MEASURES,
        "a threshold keeps its promise whatever it errs",
        'needed if part <= promises["alpha"] else INFINITE',
        "needed",
        _measured("threshold"),
    ),
    Mutant(
        12,
        _MEASURES,
        "records of an earlier ball count in a later one",
        '            left &= ~inside\n        return {"count_error": max(counts), "missing"',
        '        return {"count_error": max(counts), "missing"',
        _measured("earlier_one"),
    ),
    Mutant(
        12,
        _MEASURES,
        "answers may be as far off as they are apart",
        '- promises["spread_factor"] * apart',
        "- apart",
        _measured("answers_of_blocks"),
    ),
    Mutant(
        12,
        _STATISTICS,
        "of several columns the last one is measured",
        "figures[name] = max(figures.get(name, 0.0), off)",
        "figures[name] = off",
        _measured("worst_column"),
    ),
    Mutant(
        12,
        _STATISTICS,
        "a mean is measured as if its column were twice as wide",
        "rows / (width / 2)",
        "rows / width",
        _measured("worst_column"),
    ),
)

FOLDERS = (
    Mutant(
        12,
        "pipelines/storage/local_folder.py",
        "a ledger in a folder that is read-only passes the check before a charge",
        "            try_folder(os.path.dirname(path))\n",
        "",
        Selection(("tests/pipelines/storage/test_local_folder.py",), "with_its_folder"),
    ),
    Mutant(
        12,
        "pipelines/storage/object_folder.py",
        "a file is not replaced where another writer was faster",
        "            found = self.see(name)\n\n    def swap",
        "            break\n\n    def swap",
        Selection(("tests/pipelines/storage/test_store_folder.py",), "whoever_writes"),
    ),
    Mutant(
        12,
        "pipelines/storage/local_folder.py",
        "a run waits for whoever will write to a pipe",
        "flags | os.O_NONBLOCK",
        "flags",
        Selection(("tests/pipelines/storage/test_local_folder.py",), "pipe"),
    ),
)

_SCREEN, _DELIVERY = "pipelines/run/screen.py", "pipelines/run/delivery.py"
_SCREENED = "tests/pipelines/run/test_screen.py"

RUNS = (
    Mutant(
        12,
        _SCREEN,
        "rows are screened by the balls of several groups as if they were those of all records",
        'if "groups" in release:',
        'if "group" in release:',
        Selection((_SCREENED,), "without_a_ball"),
    ),
    Mutant(
        12,
        _SCREEN,
        "a condition on a column of folders decides about rows of files without it",
        "{*columns, *preparation.sources(columns)}",
        "{*columns}",
        Selection((_SCREENED,), "folders"),
    ),
    Mutant(
        12,
        _SCREEN,
        "the length of a name counts letters and not bytes, so a screening stops halfway",
        "len(os.fsencode(base)) > LONGEST_NAME",
        "len(base) > LONGEST_NAME",
        Selection((_SCREENED,), "too_long"),
    ),
    Mutant(
        12,
        _DELIVERY,
        "what killed writers of the table of a question left stays",
        "for name in (*FILES, *tables_of(release)):",
        "for name in FILES:",
        Selection(("tests/pipelines/run/test_run.py",), "killed_writers"),
    ),
)

ROWS = (
    Mutant(
        12,
        "transforms/read_blocks.py",
        "rows without a public group are counted in the last one",
        "groups[rows & (groups >= 0)]",
        "groups[rows]",
        Selection(("tests/transforms/test_count_outside.py",), "without_a_public_group"),
    ),
    Mutant(
        12,
        "transforms/read_blocks.py",
        "a file without a row group has no element, so a run of such files has no release",
        "or [Descriptor(file, None, 0)]",
        "or []",
        Selection(("tests/transforms/test_read_blocks.py",), "without_a_row_group"),
    ),
    Mutant(
        12,
        "transforms/join_table.py",
        "keys of a table may be of another kind than those of rows",
        "if wanted.type != known.type:",
        "if False:",
        Selection(("tests/transforms/test_preparation.py",), "another_kind"),
    ),
    Mutant(
        12,
        "transforms/joined_batches.py",
        "a function sees what the metadata of a file says of all rows",
        "return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)",
        "return pa.RecordBatch.from_arrays(columns, schema=batch.schema)",
        Selection(("tests/transforms/test_evaluate_subsamples.py",), "nothing_of_the_file"),
    ),
    Mutant(
        12,
        "transforms/hold_batches.py",
        "an error quotes the name of a column of a batch, which may be made of rows",
        "has another {unlike} there than {short(field.name)}",
        "has another {unlike} there than {short(other.name)}",
        Selection(("tests/shoal/test_beam.py",), "wrong_element"),
    ),
    Mutant(
        12,
        "pipelines/describe/columns.py",
        "the rows of very large numbers are left out of a description",
        "max(min({_quoted(name)}, {_LARGEST}), {-_LARGEST})",
        "max({_quoted(name)}, {-_LARGEST})",
        Selection(("tests/pipelines/describe/test_columns.py",), "beyond_the_largest"),
    ),
    Mutant(
        12,
        "pipelines/compare/compare.py",
        "jobs of other policies are said to ask for the same",
        '"order", "policy")',
        '"order")',
        Selection(("tests/pipelines/compare/test_compare.py",), "whatever_a_job"),
    ),
    Mutant(
        12,
        "transforms/read_batches.py",
        "an index just behind a dictionary is read, whatever is there in memory",
        'bounds["max"] >= len(each.dictionary)',
        'bounds["max"] > len(each.dictionary)',
        Selection(("tests/transforms/test_screen_rows.py",), "damaged_index"),
    ),
    Mutant(
        12,
        "transforms/split_units.py",
        "rows of a unit are lost where batches do not fit what is split at a time",
        "pieces = [joined.slice(most)] if len(joined) > most else []",
        "pieces = []",
        Selection(("tests/transforms/test_evaluate_subsamples.py",), "no_row_is_lost"),
    ),
)
