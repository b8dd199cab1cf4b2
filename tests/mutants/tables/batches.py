"""Wrong versions of how batches of a caller's pipeline are held."""

from tests.mutants.mutant import Mutant, Selection

_HOLD = "transforms/hold_batches.py"
_ANSWERS = Selection(
    ("tests/shoal/test_beam.py",), "identities or wait or holds or twice or no_batches or two_jobs"
)

_TWICE = Selection(("tests/shoal/test_beam_twice.py",))

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
        "SecureNoise(), records, shards, names)",
        "SecureNoise(), records, shards)",
        _TWICE,
    ),
    Mutant(
        4,
        "pipelines/run/run.py",
        "another execution of a pipeline samples the same units of groups",
        "SecureNoise(), records, shards, names)",
        "SecureNoise(), records, shards)",
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
