"""What new users ask and write first: counts, paths, dates, files that are not whole, and odd budgets."""

from tests.mutants.mutant import Mutant, Selection

_COUNTING = Selection(("tests/pipelines/job/test_counting.py",))
_TEXT, _COUNTS = "pipelines/job/text.py", "pipelines/job/counting.py"
_BUDGETS = Selection(("tests/pipelines/test_plan.py",), only="protects_little")
_SUMS = Selection(("tests/pipelines/answers/test_histogram.py",))
_CHECKS = Selection(("tests/pipelines/test_checks.py",), only="noise_may_have_made or rarely_stand_out")

ASKED = (
    Mutant(
        12,
        "pipelines/job/prepared.py",
        "columns of rows may be derived under replace_one beside a column of one number",
        "if not any(columns for field",
        "if not all(columns for field",
        _COUNTING,
    ),
    Mutant(
        12,
        _COUNTS,
        "what only counts may lack a column beside a domain",
        '        and question.get("domain") is None\n',
        "",
        _COUNTING,
    ),
    Mutant(
        12,
        _COUNTS,
        "a mean may lack a column where there is a count",
        "        and all(measure in _COUNTS for measure in measures)\n",
        "        and any(measure in _COUNTS for measure in measures)\n",
        _COUNTING,
    ),
    Mutant(
        6,
        _COUNTS,
        "budget pays for checks of what only counts",
        'given.get("checks", 0)}',
        'given.get("checks")}',
        _COUNTING,
    ),
    Mutant(
        12,
        _COUNTS,
        "derived columns are lost beside what only counts",
        "{**derive, EACH_ROW",
        "{EACH_ROW",
        _COUNTING,
    ),
    Mutant(
        12,
        "transforms/parse_expression.py",
        "a derived column may be true",
        "isinstance(node.value, int | float) and not _is_bool(node.value)",
        "isinstance(node.value, int | float)",
        _COUNTING,
    ),
    Mutant(
        12,
        _TEXT,
        "a text of --set ends where YAML begins a comment",
        "value in (before, None) and",
        "False and",
        Selection(("tests/pipelines/job/test_text.py",), only="has_no_comments"),
    ),
    Mutant(
        12,
        "pipelines/job/run_ids.py",
        "a date that no calendar has is a date",
        "    except ValueError:\n        return None\n",
        "    except ValueError:\n        return text\n",
        Selection(("tests/pipelines/job/test_job.py",), only="needs_one_at_the_end"),
    ),
    Mutant(
        12,
        "transforms/open_source.py",
        "a schedule stops at a file that is being written",
        'Incomplete if "damaged" in fault else InputError',
        "InputError",
        Selection(("tests/pipelines/test_bad_input.py",), only="truncated"),
    ),
    Mutant(
        12,
        "pipelines/notes.py",
        "a large delta is not remarked on",
        "if privacy.delta > _LARGE_DELTA:",
        "if privacy.delta > 1:",
        _BUDGETS,
    ),
    Mutant(
        12,
        "pipelines/answers/histogram.py",
        "the noise of a sum is that of one cell",
        "promised.standard_error * math.sqrt(result.released)",
        "promised.standard_error",
        _SUMS,
    ),
    Mutant(
        12,
        "pipelines/answers/histogram.py",
        "cells that are left out are in the noise of a sum",
        "promised.released_from is not None or",
        "",
        _SUMS,
    ),
    Mutant(
        12,
        "pipelines/answers/checks.py",
        "each of many columns stands out as if it were alone",
        "return _STANDS_OUT + math.log(columns) / math.sqrt(2)",
        "return _STANDS_OUT",
        _CHECKS,
    ),
    Mutant(
        12,
        "pipelines/storage/locate.py",
        "credentials in a URL are taken",
        'if scheme in EXTRAS and {":", "@"} & {*rest.partition("/")[0]}:',
        "if False:",
        Selection(("tests/pipelines/storage/test_locate.py",)),
    ),
    Mutant(
        12,
        "transforms/sandbox.py",
        "Python behind two links is not in a sandbox",
        '                ahead += target.split("/")[::-1]\n',
        "                here = os.path.realpath(step)\n",
        Selection(("tests/transforms/test_sandbox.py",), only="behind_links"),
    ),
    Mutant(
        12,
        "transforms/sandbox.py",
        "a link that is relative is not in a sandbox",
        'here = "/" if os.path.isabs(target) else here',
        'here = "/"',
        Selection(("tests/transforms/test_sandbox.py",), only="behind_links"),
    ),
)
