"""Wrong versions of a table in parts: of what a part draws, and of how it is shown once."""

from tests.mutants.mutant import Mutant, Selection
from tests.mutants.tables.selections import charged, nothing_but_noise, spent

_SPARSE = "core/histogram/sparse.py"
_CHECKS = "core/input_checks.py"
_TABLE = "pipelines/table.py"
_DRAWN_ONCE = Selection(("tests/pipelines/test_table.py",))
_IN_BEAM = Selection(("tests/transforms/test_draw_parts.py",))

DRAWS = (
    Mutant(
        1,
        _SPARSE,
        "a part releases exact counts",
        "keys, counts = self.count.released(aggregate.keys, aggregate.counts, noise)",
        "keys, _ = self.count.released(aggregate.keys, aggregate.counts, noise)\n"
        "        counts = aggregate.counts[np.isin(aggregate.keys, keys)]",
        nothing_but_noise("histogram", "sparse"),
    ),
    Mutant(
        12,
        "core/aggregate.py",
        "a part holds the cells of the parts before it, and draws them again",
        "parts = [slice(*ends[shard : shard + 2]) for shard in range(shards)]",
        "parts = [slice(0, ends[shard + 1]) for shard in range(shards)]",
        spent("histogram", "sparse"),
    ),
    Mutant(
        8,
        _CHECKS,
        "every part draws the counts of the checks",
        "return Checked(after) if number else self.checked(",
        "return self.checked(",
        charged("histogram", "sparse"),
    ),
)

SHOWN = (
    Mutant(
        12,
        "transforms/draw_parts.py",
        "a part is not kept, and each consumer draws it again",
        '            | "Keep" >> beam.Reshuffle()\n',
        "",
        Selection(_IN_BEAM.nodes, "one_draw"),
    ),
    Mutant(
        12,
        "transforms/draw_parts.py",
        "counts of two draws of the state before are merged",
        "check_marks(pieces.mark, drawn.mark)",
        "check_marks(drawn.mark, drawn.mark)",
        Selection(_IN_BEAM.nodes, "two_draws"),
    ),
    Mutant(
        12,
        _TABLE,
        "a second draw of a part replaces the first one",
        "stored = data if folder.create(name, data) else folder.read(name)",
        "folder.replace(name, data)\n    stored = data",
        Selection(_DRAWN_ONCE.nodes, "20_writers or stay"),
    ),
    Mutant(
        12,
        _TABLE,
        "a second draw of a part is listed, although the first one is stored",
        "stored = data if folder.create(name, data) else folder.read(name)",
        "folder.create(name, data)\n    stored = data",
        Selection(_DRAWN_ONCE.nodes, "20_writers or stay"),
    ),
    Mutant(
        12,
        _TABLE,
        "two attempts write parts side by side",
        "        self.check(folder, claimed=True)\n\n    def check(self",
        "\n    def check(self",
        Selection(_DRAWN_ONCE.nodes, "20_attempts"),
    ),
    Mutant(
        12,
        "pipelines/run/run.py",
        "attempts that keep other rows of a unit count as one",
        'salt = prepared.salt if chosen else b""',
        'salt = b""',
        Selection(_DRAWN_ONCE.nodes, "random_row"),
    ),
    Mutant(
        12,
        "pipelines/run/run.py",
        "attempts at a changed input count as one",
        "{file.version.rpartition(' ')[2]}",
        "",
        Selection(_DRAWN_ONCE.nodes, "changed_input"),
    ),
    Mutant(
        12,
        "pipelines/run/run.py",
        "the folder of a release shows a hash of the ETags of the input",
        "{file.version.rpartition(' ')[2]}",
        "{file.version}",
        Selection(_DRAWN_ONCE.nodes, "content_of_its_input"),
    ),
)
