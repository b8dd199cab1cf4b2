"""Wrong versions of how rows are made ready."""

from tests.mutants.mutant import Mutant, Selection

_PREPARED = Selection(("tests/transforms/test_preparation.py",))
_LANGUAGE = Selection(("tests/transforms/test_evaluate_expression.py",), "beyond_float64 or every_type")
_APART = Selection(
    ("tests/transforms/test_run_function.py",), "own or left_for or imported_reaches or never_in_the_memory"
)
_JOBS = Selection(("tests/pipelines/test_rows.py",), "wrong")
_COUNTS = Selection(
    ("tests/pipelines/test_count.py",), "wrong or clamped or identity or one_empty or record_more"
)

_KEPT = Selection(("tests/transforms/test_read_once.py",))

_LEDGER = Selection(("tests/pipelines/test_count.py",), "a_ledger_of")

READY = (
    Mutant(
        12,
        "transforms/count_records.py",
        "the records of a row are sampled together",
        "file | row | copy.astype(np.uint64)",
        "file | row | (0 * copy).astype(np.uint64)",
        _COUNTS,
    ),
    Mutant(
        12,
        "transforms/count_records.py",
        "the place of a record follows from the counts of other rows",
        "_copy_ids(ids[rows], places - (ends[rows] - counts[rows]))",
        "_copy_ids(ids[rows], places)",
        _COUNTS,
    ),
    Mutant(
        12,
        "transforms/count_records.py",
        "a count has no bound",
        "np.clip(values, 0, MOST_COPIES)",
        "np.maximum(values, 0)",
        _COUNTS,
    ),
    Mutant(
        12,
        "transforms/count_records.py",
        "a row that stands for no record is one",
        "np.clip(values, 0, MOST_COPIES)",
        "np.clip(values, 1, MOST_COPIES)",
        _COUNTS,
    ),
    Mutant(
        12,
        "pipelines/job/prepared.py",
        "a number of records that is cut is public",
        'if privacy.policy is not None or privacy.neighbors == "replace_one":',
        "if privacy.policy is not None:",
        _COUNTS,
    ),
    Mutant(
        12,
        "pipelines/job/prepared.py",
        "a ledger counts records of two meanings together",
        "if privacy.ledger is not None and (count in _made(given) or _may_be_joined(given)):",
        "if False:",
        _COUNTS,
    ),
    Mutant(
        12,
        "transforms/preparation.py",
        "a condition that is null keeps a row",
        "pc.fill_null(rows.evaluated(self.where), False)",
        "pc.fill_null(rows.evaluated(self.where), True)",
        Selection(("tests/transforms/test_preparation.py",), "null_leaves"),
    ),
    Mutant(
        4,
        "transforms/read_blocks.py",
        "the identity of a row depends on which rows before it are kept",
        "batch, ids = batch.filter(kept), pc.filter(pa.array(ids), kept).to_numpy()",
        "batch = batch.filter(kept)\n                ids = ids[: batch.num_rows]",
        _PREPARED,
    ),
    Mutant(
        12,
        "transforms/split_units.py",
        "a function gets rows that are left out",
        "batch, ids = batch.filter(kept), ids.filter(kept)",
        "pass",
        _PREPARED,
    ),
    Mutant(
        12,
        "transforms/split_units.py",
        "a unit keeps rows that are left out",
        "if keyed.num_columns > columns + 1:",
        "if False:",
        _PREPARED,
    ),
    Mutant(
        12,
        "transforms/evaluate_expression.py",
        "what is null in an expression depends on the first row",
        "found = _of_rows(_value(node, lambda _: texts, len(texts)), len(texts))",
        "found = _of_rows(_value(node, lambda _: texts, len(texts)), len(texts))\n"
        "    found = pc.coalesce(found, found[0])",
        _LANGUAGE,
    ),
    Mutant(
        12,
        "transforms/evaluate_expression.py",
        "whether a text is UTF-8 depends on other rows",
        "        value.validate(full=True)\n    except",
        '        return (pc.utf8_lower if function == "lower" else pc.utf8_upper)(value)\n    except',
        Selection(("tests/transforms/test_evaluate_expression.py",), "is_utf8_does_not_depend"),
    ),
    Mutant(
        12,
        "transforms/evaluate_expression.py",
        "an overflow of one row makes floats of all rows",
        "    except pa.ArrowInvalid:\n        exact = ",
        "    except pa.ArrowInvalid:\n        one, other = as_floats(one), as_floats(other)\n"
        "        return _FLOAT[function](one, other)\n        exact = ",
        _LANGUAGE,
    ),
    Mutant(
        12,
        "transforms/join_table.py",
        "a public table may change during a run",
        "changed = {version, version_of(file)} != {file.version}",
        "changed = False",
        _PREPARED,
    ),
    Mutant(
        12,
        "pipelines/job/prepared.py",
        "a condition may change the number of records, which is public",
        'privacy.neighbors == "replace_one" and not function',
        "False",
        _JOBS,
    ),
    Mutant(
        12,
        "pipelines/job/prepared.py",
        "edges that are public may depend on a weight",
        "if public_edges and (",
        "if False and (",
        _JOBS,
    ),
    Mutant(
        12,
        "pipelines/job/prepared.py",
        "a ledger counts units of two meanings together",
        "if privacy.ledger is not None and unit is not None and derived:",
        "if False:",
        _JOBS,
    ),
    Mutant(
        12,
        "pipelines/job/prepared.py",
        "a condition on the count changes all records of a row",
        'places = {"input.columns": given.columns, **uses,',
        'places = {"input.columns": given.columns,',
        _COUNTS,
    ),
    Mutant(
        12,
        "pipelines/job/prepared.py",
        "what a derived count is made of may be used elsewhere",
        'made_of = {count, *uses.pop(f"input.derive.{count}", ())}',
        'made_of = {count} if uses.pop(f"input.derive.{count}", ()) or count else set()',
        _COUNTS,
    ),
    Mutant(
        12,
        "pipelines/job/prepared.py",
        "a joined count follows from an axis",
        "made_of |= {given.join.on, *joined}",
        "pass",
        _COUNTS,
    ),
    Mutant(
        12,
        "pipelines/ledger/policy.py",
        "a ledger of records admits runs of whole rows",
        "if job.count != count:",
        "if job.count is not None and job.count != count:",
        _LEDGER,
    ),
    Mutant(
        12,
        "pipelines/ledger/policy.py",
        "a ledger of rows admits runs that hide one of their records",
        "if job.count != count:",
        "if count is not None and job.count != count:",
        _LEDGER,
    ),
    Mutant(
        12,
        "transforms/function_process.py",
        "blocks share what a function keeps in the process that forks",
        "            child = os.fork()\n",
        "            function(pa.table({'x': [0.5]}))\n            child = os.fork()\n",
        _APART,
    ),
    Mutant(
        12,
        "transforms/function_process.py",
        "blocks share memory that the module of a function shares",
        "        _copy_shared(shared)\n",
        "        pass\n",
        _APART,
    ),
    Mutant(
        12,
        "transforms/function_process.py",
        "a block finds the files of the block before",
        "            _renew(folder)  # before the next request",
        "            pass  # before the next request",
        _APART,
    ),
    Mutant(
        12,
        "transforms/read_once.py",
        "what is kept for one question is taken for all that are due",
        "if len(kept) == len(due) and all(",
        "if kept and all(",
        _KEPT,
    ),
    Mutant(
        12,
        "transforms/read_once.py",
        "rows of a question that found no room are missing in later passes",
        "                    del places[number]\n",
        "                    pass\n",
        _KEPT,
    ),
    Mutant(
        12,
        "transforms/read_once.py",
        "questions on different columns get each other's blocks",
        "if last is None or block is not last[0]:",
        "if last is None:",
        _KEPT,
    ),
)
