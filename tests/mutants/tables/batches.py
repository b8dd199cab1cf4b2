"""Wrong versions of how batches of a caller's pipeline are held."""

from tests.mutants.mutant import Mutant, Selection

_HOLD = "transforms/hold_batches.py"
_ANSWERS = Selection(
    ("tests/shoal/test_beam.py",), "identities or wait or holds or twice or no_batches or two_jobs"
)

_TWICE = Selection(("tests/shoal/test_beam_twice.py",))

_CUT = "transforms/cut_batches.py"
_SIZES = Selection(("tests/transforms/test_cut_batches.py",), only="long_ones")

CUT = (
    Mutant(
        4,
        _CUT,
        "rows of any number of bytes are prepared together",
        'np.searchsorted(ends, before + TOGETHER, side="right")',
        "len(ends)",
        _SIZES,
    ),
    Mutant(
        4,
        _CUT,
        "a text may have any length",
        "if not every and own.max(initial=0) > LONGEST:",
        "if False:",
        _SIZES,
    ),
    Mutant(
        4,
        _CUT,
        "each part of a batch has the whole dictionary",
        "return pa.DictionaryArray.from_arrays(told, _taken(values, used), ordered=kind.ordered)",
        "return column",
        _SIZES,
    ),
    Mutant(
        4,
        _CUT,
        "rows of a dictionary are taken for as many bytes as their indices",
        "return np.append(text_sizes(column.dictionary), 0)[places]",
        "return np.full(len(places), 4)",
        _SIZES,
    ),
    Mutant(
        4,
        _CUT,
        "texts that are written again are cut off",
        "if not every and own.max(initial=0) > LONGEST:",
        "if own.max(initial=0) > LONGEST:",
        Selection(("tests/transforms/test_cut_batches.py",), only="written_again"),
    ),
    Mutant(
        4,
        "transforms/read_prepared.py",
        "texts of a joined table take no bytes",
        "beside = preparation.bytes_beside(names)",
        "beside = 0",
        Selection(("tests/transforms/test_cut_batches.py",), only="of_a_joined_table"),
    ),
    Mutant(
        4,
        "transforms/split_units.py",
        "rows of a file that are split at different times have one identity",
        "        row += len(batch)\n",
        "",
        Selection(("tests/transforms/test_cut_batches.py",), only="follow_from_sizes"),
    ),
    Mutant(
        4,
        "shoal/data.py",
        "long texts of a table are one page",
        "at_once = max(1, min(_AT_ONCE, _PAGE // max(1, longest)))",
        "at_once = _AT_ONCE",
        Selection(("tests/shoal/test_data.py",), only="small_pages"),
    ),
)
"""Of `transforms.cut_batches`, and of what it needs."""

HELD = (
    Mutant(
        4,
        _HOLD,
        "another execution of a pipeline samples the same rows",
        "content=content, names=names)",
        "content=content)",
        _TWICE,
    ),
    Mutant(
        4,
        "shoal/beam.py",
        "another execution of a pipeline samples the same units",
        'of_units = b"" if prepared.bounding is None else names',
        'of_units = b""',
        _TWICE,
    ),
    Mutant(
        4,
        "pipelines/run/joint_run.py",
        "another execution of a pipeline samples the same units for several questions",
        "SecureNoise(), records, shards, names, questions)",
        "SecureNoise(), records, shards, questions=questions)",
        _TWICE,
    ),
    Mutant(
        4,
        "pipelines/run/run.py",
        "another execution of a pipeline samples the same units of groups",
        "SecureNoise(), records, shards, names, questions)",
        "SecureNoise(), records, shards, questions=questions)",
        _TWICE,
    ),
    Mutant(
        4,
        _HOLD,
        "rows of two batches of a shard have the same identity",
        "first += pa.ipc.open_file(content).get_batch(0).num_rows",
        "first += 0",
        _ANSWERS,
    ),
    Mutant(
        4,
        _HOLD,
        "rows of two shards have the same identity",
        "Held(PLACE, NAME, number, content=content, names=names)",
        "Held(PLACE, NAME, 0, content=content, names=names)",
        _ANSWERS,
    ),
    Mutant(
        4,
        _HOLD,
        "a repeated step gives rows other identities",
        '            | "Spread" >> Spread()\n',
        "",
        _ANSWERS,
    ),
    Mutant(
        12,
        _HOLD,
        "rows are held before the charge",
        "beam.Map(_content, self.schema, self.names)",
        "beam.Map(_content, self.schema, None)",
        _ANSWERS,
    ),
    Mutant(
        12,
        _HOLD,
        "without a batch there is no release",
        "(held, none)",
        "(held,)",
        _ANSWERS,
    ),
    Mutant(
        12,
        "shoal/beam.py",
        "a pipeline that runs is not charged",
        "(charge_delivery(job, plan, delivery, now)[0], names)",
        "(delivery, names)",
        _ANSWERS,
    ),
    Mutant(
        12,
        "shoal/beam.py",
        "the same job may have two answers in one pipeline",
        "if (where, run_id) in answered.places:",
        "if False:",
        _ANSWERS,
    ),
    Mutant(
        12,
        "pipelines/ledger/ledger.py",
        "a ledger is asked about each answer of a pipeline alone",
        "    for job, plan in runs[:-1]:\n",
        "    for job, plan in ():\n",
        _ANSWERS,
    ),
)
