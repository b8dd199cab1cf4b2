"""No name that came from elsewhere steers a terminal or forges a line of a log."""

import io
import json
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.console.events import Events
from pipelines.console.printable import as_json, error_text, printable, terminal
from pipelines.errors import JobError
from pipelines.ledger.ledger import now

HOSTILE = "a\x1b[31m\x9b\x07\rb\nc\u202e\u2028[bold red]:smile:\x7f\ud800"
SHOWN = "a\\x1b[31m\\x9b\\x07\\rb\\nc\\u202e\\u2028[bold red]:smile:\\x7f\\ud800"


def test_control_characters_are_shown_as_escapes():
    assert printable(HOSTILE) == SHOWN
    assert printable({HOSTILE: [HOSTILE, 1, None]}) == {SHOWN: [SHOWN, 1, None]}
    assert printable("naïve ε 数 \u200c👩‍🔬") == "naïve ε 数 \u200c👩‍🔬"


def test_every_character_that_controls_a_terminal_a_line_or_a_direction_is_escaped() -> None:
    """By what Unicode says of each; all others stay as they are."""
    directions = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    for point in range(0x110000):
        text = chr(point)
        controls = unicodedata.category(text) in ("Cc", "Cs", "Zl", "Zp")
        controls |= unicodedata.bidirectional(text) in directions or text in "\u061c\u200e\u200f"
        assert (printable(text) != text) == controls, hex(point)


def test_json_escapes_them_and_stays_the_same_value():
    for indent in (None, 2):
        text = as_json({HOSTILE: HOSTILE}, indent)
        assert all(line.isprintable() for line in text.split("\n"))
        assert json.loads(text) == {HOSTILE: HOSTILE}


def test_an_error_is_a_short_line_for_each_sentence():
    said = error_text(JobError(*(f"{i} {HOSTILE} {'x' * 1000} is wrong." for i in range(30))))
    lines = said.split("\n")
    assert len(lines) == 21
    assert all(line.isprintable() and len(line) < 500 and line.endswith(".") for line in lines)
    assert lines[0].startswith(f"0 {SHOWN}")
    assert lines[-1] == "There are 10 more problems."


def test_the_middle_of_a_long_sentence_is_cut_out():
    """What is wrong is at its begin, and what to do at its end."""
    told = error_text(JobError("begin" + 500 * "x" + "end."))
    assert told.startswith("begin") and told.endswith("x" * 236 + "end.") and " ... " in told
    assert len(told) == 480 + 5 and error_text(JobError("x" * 480)) == "x" * 480


def test_an_event_is_one_line():
    stream = io.StringIO()
    Events(stream, now).emit("failed", message=HOSTILE)
    [line] = stream.getvalue().splitlines()
    assert line.isprintable()
    assert json.loads(line)["message"] == HOSTILE


def test_names_from_parquet_files_are_escaped(bench, refused):
    column = HOSTILE[:-1]
    pq.write_table(pa.table({column: [1.0], "y": [1.0]}), bench.rows)
    said = refused(bench.run())
    assert SHOWN[:-6] in said
    assert said.isprintable()


def test_a_ledger_is_shown_as_it_is(bench):
    path = bench.folder / "ledger.json"
    charge = {
        "run_id": HOSTILE[:-1],
        "job": "j",
        "task": "[red]t[/]",
        "output": "o",
        "at": "2026-11-20T00:00:00Z",
        "neighbors": "add_or_remove_one",
        "epsilon": 0.1,
        "delta": 0.0,
        "draws": [[0.1, 0.0, 0.0]],
    }
    ledger = {"schema": 1, "unit": HOSTILE[:-1], "epsilon": 1.0, "delta": 1e-6, "charges": [charge]}
    path.write_text(json.dumps(ledger))
    for more in ([], ["--json"]):
        result = bench.shoal("ledger", "show", str(path), *more)
        assert result.exit_code == 0, result.output
        assert all(line.isprintable() for line in result.stdout.split("\n"))
        assert "[red]t[/]" in result.stdout
    assert json.loads(result.stdout)["unit"] == HOSTILE[:-1]


def test_brackets_in_a_plan_are_text(bench):
    changes = {"input.unit": "[red]u[/]", "output": str(bench.folder / "[bold]:smile:")}
    result = bench.shoal("plan", bench.write(json.dumps(bench.changed(changes))))
    assert result.exit_code == 0, result.output
    assert "[red]u[/]" in result.stdout
    assert "[bold]:smile:" in result.stdout


def test_a_narrow_terminal_loses_nothing_of_a_table(monkeypatch):
    shown = {}
    for columns in ("20", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        shown[columns] = terminal(True).width
    assert shown == {"20": 72, "100": 100}
    assert terminal(False).width == 110
