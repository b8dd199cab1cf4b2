"""The text of a job: what YAML could do besides, odd files, and characters that steer a terminal."""

import json
import os
from typing import Any

import pytest

from pipelines.errors import JobError
from pipelines.job.text import override_key, set_key

LEVELS = 3000

TEXTS = {
    "an anchor": ("task: &a one_cluster", "line 1, column 7: anchors and aliases"),
    "an alias": ("task: *a", "anchors and aliases"),
    "a merge key": ("<<: {task: one_cluster}\n<<: {}", "the key << is given twice"),
    "a set": ("task: !!set {a, b}", "tags such as !!set are not allowed"),
    "bytes": ("task: !!binary aGVsbG8=", "tags such as"),
    "an object": ("task: !!python/object:os.system {}", "tags such as"),
    "a tag of one's own": ("task: !foo bar", "tags such as"),
    "a wrong float": ("task: !!float abc", "tags such as"),
    "a time": ("task: !!timestamp 2026-11-20", "tags such as"),
    "a tagged key": ("!!str task: one_cluster", "tags such as"),
    "two documents": ("task: a\n---\ntask: b", "expected a single document"),
    "deep lists": (f"a: {'[' * LEVELS}{']' * LEVELS}", "nested 20 levels deep"),
    "deep lists that do not end": ("[" * LEVELS, "nested 20 levels deep"),
    "deep mappings": ("".join(f"{' ' * i}a:\n" for i in range(LEVELS // 4)), "nested 20 levels deep"),
    "deep keys": ("? " * LEVELS, "nested 20 levels deep"),
    "a key twice": ("task: a\ntask: b", "line 2, column 1: the key task is given twice"),
    "a key twice in JSON": ('{"task": "a", "task": "b"}', "line 1, column 15: the key task is given twice"),
    "a null key twice": ("~: a\n~: b", "a key must be text"),
    "a number as a key": ("1: a", "a key must be text"),
    "a list as a key": ("{[1]: 2}", "a key must be text"),
    "NUL": ("task: a\0b", "the control character U+0000"),
    "an escape": ("task: a\x1b[31m", "the control character U+001B"),
    "no such character": ('task: "\\UFFFFFFFF"', "not valid YAML"),
    "a tab": ("task:\n\tone_cluster", "cannot start any token; write spaces in place of tabs."),
    "a sign that begins no text": ("task: @one", "cannot start any token; put the text in quotes."),
    "braces in braces": ("{output: out/{run_id}}", "but got '{'; put a text with braces in quotes."),
    "a colon": ("task: one: two", "; put a text with a colon in quotes, or look how far lines are"),
    "a long number": (f"task: 1{'0' * 5000}", "a number of 5001 digits is too long"),
    "too large": (f"task: {'a' * 10**6}", "1,000,006 bytes: it may have at most 1,000,000"),
    "a long name": (f"task: {'a' * 900_000}", "task is 'aaa"),
    "many names": ("".join(f"a{i}: 1\n" for i in range(50)), "task is missing"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_odd_text_is_refused_in_a_sentence(bench, refused, name):
    text, says = TEXTS[name]
    said = refused(bench.shoal("plan", bench.write(text)))
    assert says in said
    assert len(said) < 500


BYTES = {
    "latin-1": "task: überfall".encode("latin-1"),
    "UTF-16": "task: one_cluster".encode("utf-16"),
    "binary": bytes(range(256)),
}


@pytest.mark.parametrize("name", BYTES)
def test_other_encodings_are_refused_in_a_sentence(bench, refused, name):
    (bench.folder / "job.yaml").write_bytes(BYTES[name])
    assert "give a YAML file in UTF-8" in refused(bench.shoal("plan", str(bench.folder / "job.yaml")))


@pytest.mark.timeout(60)
def test_only_a_regular_file_is_read(bench, refused):
    os.mkfifo(bench.folder / "pipe")
    for path in (str(bench.folder / "pipe"), "/dev/zero", str(bench.folder)):
        assert "is not a regular file" in refused(bench.shoal("plan", path))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        (f"params.target={'[' * LEVELS}", "nested 20 levels deep"),
        (f"{'a.' * LEVELS}a=1", "nested 20 levels deep"),
        ("params.target=!!set {a}", "tags such as"),
        ("params.target=1" + "0" * 5000, "is too long"),
        ("params.target=\x1b[31m", "the control character U+001B"),
        ('input.path="\\e[31m"', "input.path is '\\x1b[31m': it has control characters"),
        ("input.pa\x1bth=1", "The key input.pa\\x1bth has control characters"),
    ],
)
def test_an_odd_override_is_refused_in_a_sentence(bench, refused, override, says):
    said = refused(bench.run({}, "--set", override))
    assert says in said
    assert said.isprintable()
    assert len(said) < 500


NUMBERS = {"1e999": "inf", ".nan": "nan", "-.inf": "-inf", "1" + "0" * 400: "number"}


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_no_float_holds(bench, refused, number):
    said = refused(bench.run({}, "--set", f"privacy.epsilon={number}"))
    assert "privacy.epsilon" in said


HOSTILE = "a\x1b[31m\x9b\x07\rb\nc\u202e[bold]\ud800"


@pytest.mark.parametrize("field", ["input.path", "input.unit", "output", "run_id", "privacy.ledger", "task"])
def test_names_with_control_characters_are_refused(bench, refused, field):
    said = refused(bench.shoal("plan", bench.write(json.dumps(bench.changed({field: HOSTILE})))))
    assert f"{field} is 'a\\x1b[31m\\x9b\\x07\\rb\\nc\\u202e[bold]\\ud800': it has control characters" in said
    assert said.isprintable()


def test_a_deep_release_is_refused_in_a_sentence(bench, refused):
    path = bench.folder / "release.json"
    path.write_text("[" * 100_000)
    for command in (["report", str(path)], ["screen", str(path), str(bench.rows), str(bench.folder / "new")]):
        assert "is not a release of schema 1" in refused(bench.shoal(*command))
    path.write_text('{"schema": 1, "charges": ' + "[" * 100_000)
    assert "is not a ledger of schema 1" in refused(bench.shoal("ledger", "show", str(path)))


def test_a_release_without_its_parts_is_refused_in_a_sentence(bench, refused):
    path = bench.folder / "release.json"
    for more in ({}, {"task": "one_cluster"}, {"task": [], "result": 7}, {"task": "histogram", "result": {}}):
        path.write_text(json.dumps({"schema": 1, "outcome": "released", **more}))
        assert "If it was changed after its run" in refused(bench.shoal("report", str(path)))


@pytest.mark.parametrize("override", ["run_id", "run_id=", "run_id= "])
def test_an_override_needs_a_value(override: str) -> None:
    """A variable that is not set would otherwise run a scheduled job under its default id."""
    with pytest.raises(JobError, match="is not an override: give key=value"):
        override_key({}, override)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("/data/y #2.parquet", "/data/y #2.parquet"),
        ("#7", "#7"),
        (" a#b ", "a#b"),
        ("'y #2'", "y #2"),
        ("[1, 2] # two", [1, 2]),
        ("2 # two", 2),
        ("null # none", None),
        ("a b #", "a b #"),
        ("0.5", 0.5),
    ],
)
def test_an_override_has_no_comments(text: str, value: object) -> None:
    """A path would otherwise be another one."""
    job: dict[str, Any] = {}
    override_key(job, f"input.path={text}")
    assert job == {"input": {"path": value}}


def test_a_key_may_be_below_a_name_with_dots() -> None:
    job = {"questions": {"a.b": {"share": 1}, "a.b.c": {}, "a": {}}}
    assert set_key(job, "questions.a.b.share", 2)["questions"] == {**job["questions"], "a.b": {"share": 2}}
    assert set_key(job, "questions.a.b.c.d.e", 2)["questions"]["a.b.c"] == {"d": {"e": 2}}
    assert set_key(job, "questions.a.x.share", 2)["questions"]["a"] == {"x": {"share": 2}}
    override_key(job, "questions.a.b.params.quantile=0.5")
    assert job["questions"]["a.b"] == {"share": 1, "params": {"quantile": 0.5}}


def test_a_key_is_set_in_one_place_alone() -> None:
    shared = {"lower": [0]}
    job = {"questions": {"a": {"domain": shared}, "b": {"domain": shared}}}
    changed = set_key(job, "questions.a.domain.step", 2)["questions"]
    assert changed == {"a": {"domain": {"lower": [0], "step": 2}}, "b": {"domain": {"lower": [0]}}}
    assert job["questions"]["a"]["domain"] == {"lower": [0]}
