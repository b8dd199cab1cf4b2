"""The lines of a release on a terminal."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from pipelines.answers.text import ROUNDED
from pipelines.report.summary import summary
from pipelines.tasks import TASKS
from tests.pipelines.jobs import changes
from tests.pipelines.report.pictured import release_of

KEYS = ["", "\x1b[31mred", "\u202eleft", "\U0001f600", "<b>", "long" * 50, "x"]


@pytest.fixture
def odd(bench):
    """The bench's rows with a column of odd keys."""
    rows = pq.read_table(bench.rows)
    keys = [KEYS[i % len(KEYS)] for i in range(len(rows))]
    pq.write_table(rows.append_column("k", pa.array(keys)), bench.rows)
    pq.write_table(pa.table({"k": KEYS}), bench.folder / "keys.parquet")
    return bench


def by_key(bench, task):
    groups = {"columns": ["k"], "keys": str(bench.folder / "keys.parquet")}
    return bench.run({**changes(task), "group_by": groups})


LEFT_OUT = "what this leaves out is in no ± and in no promise, so counts and sums may be far too low"


def test_columns_of_odd_keys_are_aligned(odd):
    done = by_key(odd, "statistics")
    assert done.exit_code == 0, done.stderr
    header, *rows = done.stdout.split("result.parquet:\n")[1].split("± is")[0].splitlines()
    first = cell_len(header[: header.index("count")])
    shown = {"".join(row[: row.index("  ")]) for row in rows}
    assert shown == {'""', r"\x1b[31mred", r"\u202eleft", "\U0001f600", "<b>", "long" * 14 + "l...", "x"}
    for row in rows:
        key = row[: row.index("  ")]
        blank = len(row) - len(key) - len(row[len(key) :].lstrip())
        assert cell_len(key) + blank == first, row


def test_a_line_of_a_group_names_an_odd_key(odd):
    done = by_key(odd, "median")
    assert done.exit_code == 0, done.stderr
    names = [line.split(": The median")[0] for line in done.stdout.splitlines()[: len(KEYS)]]
    assert names == ['""', r"\x1b[31mred", r"\u202eleft", "\U0001f600", "<b>", "long" * 14 + "l...", "x"]
    page = (odd.folder / "out" / "report.html").read_text()
    assert "Promised of any one group, with probability 90% or more:" in done.stdout
    assert "before the run, of any one group, for all data" in page
    assert r"\x1b[31mred" in page and "&lt;b&gt;" in page and "long" * 50 in page
    assert not {"\x1b", "\u202e"} & set(page)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"keep": "one"}, "one random row of each unit"),
        ({"contributions": {"groups": 1, "rows": 3}}, f"of each unit at most 3 rows ({LEFT_OUT})"),
        (
            {"contributions": {"groups": 1, "rows": 1}, "group_by": {"columns": ["who"], "keys": [7]}},
            f"of each unit at most 1 group, 1 row in each ({LEFT_OUT})",
        ),
    ],
)
def test_the_terminal_says_what_of_a_unit_is_in_the_answer(bench, given, kept):
    rows = pq.read_table(bench.rows)
    units = pa.array([i // 5 for i in range(len(rows))])
    pq.write_table(rows.append_column("who", units), bench.rows)
    job = changes("statistics")
    made = {"keep": given["keep"]} if "keep" in given else {}
    more = {} if made else given
    job |= {"input": {**bench.job["input"], **job.get("input", {}), "unit": "who", **made}, **more}
    done = bench.run(job)
    assert done.exit_code == 0, done.stderr
    assert (
        next(line for line in done.stdout.splitlines() if line.startswith("kept")).split(None, 1)[1] == kept
    )
    planned = bench.shoal("plan", bench.write(bench.changed(job))).stdout
    assert ("of that of the rows that contributions keeps" in " ".join(planned.split())) == bool(more)


def test_a_function_gets_all_rows_of_a_unit_so_nothing_is_said_of_what_was_kept():
    release, rows = release_of("sample_and_aggregate-0")
    release = {**release, "privacy": {**release["privacy"], "unit": "who", "keep": None}}
    lines = summary(release, TASKS["sample_and_aggregate"].answers.answer(release, rows))
    assert not any(line.startswith("kept") for line in lines)


@pytest.mark.parametrize("task", TASKS)
def test_the_terminal_says_of_every_answer_how_far_off_it_may_be(task):
    release, rows = release_of(f"{task}-0")
    answers = TASKS[task].answers
    lines = summary(release, answers.answer(release, rows))
    said = [*(f"  • {sentence}" for sentence in answers.promises(release)), answers.unpromised(release)]
    assert any(said)
    assert [sentence for sentence in said if sentence] == lines[-len(list(filter(None, said))) :]


def test_true_quantiles_of_kept_rows_are_named():
    release, rows = release_of("quantiles-0")
    release = {**release, "privacy": {**release["privacy"], "unit": "who", "keep": "one"}}
    lead = TASKS["quantiles"].answers.answer(release, rows).lead
    assert " all true quantiles of the kept rows are in the intervals beside them." in lead


@pytest.mark.parametrize("task", ["histogram", "cdf", "ranges"])
def test_counts_are_said_to_be_of_rounded_values(bench, task):
    """Of one release, whose promises are not said to be of a group."""
    done = bench.run(changes(task))
    assert ROUNDED in " ".join(done.stdout.split())
    assert "Promised, with probability 90% or more:" in done.stdout
    assert "any one group" not in (bench.folder / "out" / "report.html").read_text()
    planned = " ".join(bench.shoal("plan", str(bench.folder / "job.yaml")).stdout.split())
    assert planned.count(ROUNDED) == 1
