"""A job inside of somebody's pipeline gives the release that it gives on the same rows in a file."""

from collections import Counter
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, DefaultTrigger, Repeatedly
from apache_beam.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows

import shoal
import shoal.beam
from pipelines.console.quiet import quiet
from pipelines.ledger.ledger import Ledger, create_ledger, new_ledger, read_ledger
from pipelines.run import joint_run, run
from pipelines.tasks import TASKS
from tests.engines.golden import Fixed
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes
from tests.pipelines.test_element_counts import counts_of
from transforms import hold_batches
from transforms.embedded_runner import EmbeddedRunner
from transforms.read_blocks import row_ids

RNG = np.random.default_rng(7)
ROWS = pa.table(
    {
        "x": pa.array([*RNG.normal(0.5, 0.1, 397), np.nan, None, np.inf]),
        "y": RNG.uniform(size=400),
        "w": RNG.uniform(size=400),
        "city": np.where(RNG.uniform(size=400) < 0.5, "Bern", "Ulm"),
        "who": RNG.integers(0, 100, 400),
    }
)
FOUND: list[Any] = []
NAMES = bytes(range(100, 116))


@pytest.fixture
def noiseless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add no noise, draw the same salts, and give rows of batches the identities that they have in a file."""
    for module in (run, joint_run):
        monkeypatch.setattr(module, "SecureNoise", lambda: Fixed(0, factor=0.0))
        monkeypatch.setattr(module, "secret_salt", lambda: b"0123456789abcdef")
    monkeypatch.setattr(shoal.beam, "secret_salt", lambda: b"")
    monkeypatch.setattr(hold_batches, "SHARDS", 1)


def cells(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "task": "histogram",
        "input": {"columns": ["x"]},
        "domain": {"lower": [0], "upper": [1], "step": 2.0**-10},
        "params": {"cells": [4]},
        "privacy": {"epsilon": 1.0, "delta": 0},
        "run_id": "one",
        "output": str(folder / "beam"),
        **more,
    }


def _find(release: Any) -> None:
    FOUND.append(release)


def answers(job: Any, batches: list[Any], schema: pa.Schema = ROWS.schema) -> list[Any]:
    FOUND.clear()
    with quiet(), beam.Pipeline(runner=EmbeddedRunner()) as pipeline:
        made = pipeline | beam.Create(batches, reshuffle=False) | shoal.beam.Answer(job, schema)
        _ = made | "Find" >> beam.Map(_find)
    return list(FOUND)


def one(job: Any, batches: list[Any], schema: pa.Schema = ROWS.schema) -> shoal.Release:
    (release,) = answers(job, batches, schema)
    assert isinstance(release, shoal.Release)
    return release


def without_hashes(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_hashes(own) for key, own in value.items() if key not in ("job", "sha256")}
    return [without_hashes(own) for own in value] if isinstance(value, list) else value


def plain(release: shoal.Release) -> Any:
    """Return all that a release says, but what stands for the place of its rows, and its hash."""
    return (
        without_hashes(release.values),
        release.table,
        {name: plain(each) for name, each in release.answers.items()},
    )


def check_alike(job: dict[str, Any], folder: Path) -> shoal.Release:
    """Check that batches and a file give the same release; return it."""
    job = {**job, "run_id": "one"}
    in_file = shoal.run({**job, "output": str(folder / "file")}, ROWS)
    in_batches = one({**job, "output": str(folder / "beam")}, ROWS.to_batches(70))
    assert plain(in_batches) == plain(in_file)
    assert in_batches.report
    return in_batches


@pytest.mark.parametrize("task", TASKS)
def test_batches_give_the_release_of_a_file(task: str, tmp_path: Path, noiseless: None) -> None:
    bench = Bench(tmp_path)
    job = bench.changed({"privacy.epsilon": 50.0, "params": {"target": 150}, **changes(task)})
    del job["input"]["path"]
    if task == "sample_and_aggregate":
        job["params"]["blocks"] = 20
    if task == "k_cover":
        job["params"] = {"k": 1, "target": 150}
    check_alike(job, bench.folder)


KINDS: dict[str, dict[str, Any]] = {
    "units and checks": {"input": {"columns": ["x"], "unit": "who", "checks": 0.1}},
    "prepared": {"input": {"columns": ["z"], "where": "y < 0.5", "derive": {"z": "x + y / 2"}}},
    "groups": {"group_by": {"columns": ["city"], "keys": ["Bern", "Ulm"]}},
    "groups of units": {
        "input": {"columns": ["x"], "unit": "who"},
        "contributions": {"groups": 2, "rows": 1},
        "task": "median",
        "params": {},
        "group_by": {"columns": ["city"], "keys": ["Bern", "Ulm"]},
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_job_does_to_rows_is_done_to_batches(kind: str, tmp_path: Path, noiseless: None) -> None:
    check_alike(cells(tmp_path, **{"privacy": {"epsilon": 50.0, "delta": 0}, **KINDS[kind]}), tmp_path)


@pytest.mark.parametrize("unit", [None, "who"])
def test_several_questions_share_the_batches(unit: str | None, tmp_path: Path, noiseless: None) -> None:
    axis = {"domain": {"lower": [0], "upper": [1], "step": 2.0**-10}}
    job = {
        "input": {} if unit is None else {"unit": unit},
        "privacy": {"epsilon": 50.0, "delta": 1e-6},
        "questions": {
            "x": {"task": "median", "columns": ["x"], "params": {}, **axis},
            "y": {"task": "histogram", "columns": ["y"], "params": {"cells": [4]}, **axis},
        },
    }
    release = check_alike(job, tmp_path)
    assert set(release.answers) == {"x", "y"}


def test_no_batches_give_one_release(tmp_path: Path, noiseless: None) -> None:
    release = one(cells(tmp_path), [])
    assert release.table is not None
    assert release.table.column("count").to_pylist() == [0] * 4


def test_rows_have_identities_of_their_own_in_every_shard() -> None:
    batches = [hold_batches._written(batch) for batch in ROWS.to_batches(9)]
    held = [
        descriptor
        for shard in range(3)
        for _, descriptor in hold_batches._counted((shard, [*batches[shard::3], b""]), ROWS.schema, NAMES)
    ]
    sizes = [pa.ipc.open_file(each.file.content).get_batch(0).num_rows for each in held]
    ids = Counter(
        int(each)
        for descriptor, size in zip(held, sizes, strict=True)
        for each in row_ids(descriptor.file, descriptor.first_row, size)
    )
    assert len(ids) == sum(sizes) == ROWS.num_rows
    dealt = [hold_batches._dealt(b"")[0] for _ in range(200)]
    assert len(set(dealt)) > 50
    assert 0 <= min(dealt) <= max(dealt) < hold_batches.SHARDS


def test_a_pipeline_that_runs_twice_charges_once_and_returns_the_first_release(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=1.5, delta=0))
    job = cells(tmp_path, privacy={"epsilon": 1.0, "delta": 0, "ledger": ledger})
    FOUND.clear()
    pipeline = beam.Pipeline(runner=FnApiRunner())
    made = pipeline | beam.Create(ROWS.to_batches(70)) | shoal.beam.Answer(job, ROWS.schema)
    _ = made | "Find" >> beam.Map(_find)
    assert read_ledger(ledger).charges == ()  # building costs nothing
    with quiet():
        pipeline.run().wait_until_finish()
        pipeline.run().wait_until_finish()
    first, second = FOUND
    assert plain(first) == plain(second)
    (charge,) = read_ledger(ledger).charges
    assert charge.release is not None
    with pytest.raises(shoal.ShoalError, match=r"ledger"):
        answers({**job, "run_id": "two", "output": str(tmp_path / "two")}, [])


def test_rows_wait_for_the_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise shoal.ShoalError("It is refused.")

    def read(*_: Any) -> None:
        (tmp_path / "read").touch()

    monkeypatch.setattr(shoal.beam, "charge_delivery", refuse)
    monkeypatch.setattr(hold_batches, "_written", read)
    with pytest.raises(Exception, match=r"It is refused\."):
        answers(cells(tmp_path), ROWS.to_batches(70))
    assert not (tmp_path / "read").exists()


def test_the_step_that_holds_rows_has_the_charge_as_an_input(tmp_path: Path) -> None:
    """Without it an engine may run both in any order."""
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | beam.Create([]) | shoal.beam.Answer(cells(tmp_path), ROWS.schema)
    steps = {each.unique_name: each for each in pipeline.to_runner_api().components.transforms.values()}
    (charged,) = steps["Answer/Named"].outputs.values()
    assert set(steps["Answer/Named"].inputs.values()) == set(steps["Answer/Charged"].inputs.values())
    assert charged in steps["Answer/Hold/Hold"].inputs.values()


def test_the_number_of_elements_does_not_depend_on_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold_batches, "SHARDS", 1)
    seen = []
    for number, rows in enumerate((ROWS, ROWS[:3])):
        pipeline = beam.Pipeline(runner=EmbeddedRunner())
        job = cells(tmp_path, output=str(tmp_path / str(number)))
        _ = pipeline | beam.Create(rows.to_batches(400)) | shoal.beam.Answer(job, ROWS.schema)
        seen.append(sorted(count for _, count in counts_of(pipeline).elements()))
    assert seen[0] == seen[1]


def test_identities_and_the_charge_are_kept_by_reshuffles(tmp_path: Path) -> None:
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | beam.Create([]) | shoal.beam.Answer(cells(tmp_path), ROWS.schema)
    steps = pipeline.to_runner_api().components.transforms.values()
    kept = {step.unique_name for step in steps if step.spec.urn == "beam:transform:reshuffle:v1"}
    for name in ("Answer/Once", "Answer/Hold/Spread"):
        assert name in kept


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"output": ...}, r"^output is missing: a job in a pipeline needs an output .*run_id.*\.$"),
    ({"run_id": ...}, r"^run_id is missing: .*\.$"),
    (
        {"input": {"path": "x.csv", "columns": ["x"]}},
        r"^input\.path is given beside batches: leave it out\.$",
    ),
    (
        {"input": {"columns": ["z"]}},
        r"^input\.columns: z is missing from the batches; its columns are x, .*\.$",
    ),
    ({"input": {"columns": ["city"]}}, r"^input\.columns: city is string in the batches; .*\.$"),
    (
        {"input": {"columns": ["x"], "types": {"x": "number"}}},
        r"^input\.types: x is double in the batches; .*\.$",
    ),
    (
        {
            "params": {"cells": [2**10], "method": "sparse", "parts": 2},
            "privacy": {"epsilon": 1.0, "delta": 1e-6},
        },
        r"^params\.parts is above 1: a release in parts needs files; leave it out\.$",
    ),
]


@pytest.mark.parametrize(("more", "said"), WRONG)
def test_a_wrong_job_is_one_sentence(more: dict[str, Any], said: str, tmp_path: Path) -> None:
    job = {key: value for key, value in cells(tmp_path, **more).items() if value is not ...}
    with pytest.raises(shoal.ShoalError, match=said):
        answers(job, [])


def test_a_wrong_collection_is_one_sentence(tmp_path: Path) -> None:
    answer = shoal.beam.Answer(cells(tmp_path), ROWS.schema)
    pipeline = beam.Pipeline(runner=FnApiRunner())
    rows = pipeline | beam.Create([])
    with pytest.raises(shoal.ShoalError, match=r"^schema is a list: give a pyarrow\.Schema\.$"):
        answer.__class__(cells(tmp_path), ["x"]).expand(rows)  # type: ignore[arg-type]
    with pytest.raises(shoal.ShoalError, match=r"^batches has windows: .*\.$"):
        answer.expand(rows | beam.WindowInto(FixedWindows(60)))
    answer.expand(rows | "All" >> beam.WindowInto(GlobalWindows()))
    fixed = rows | "Fixed" >> beam.WindowInto(FixedWindows(60))
    both = shoal.beam.Answer(cells(tmp_path, output=str(tmp_path / "other")), ROWS.schema)
    _ = fixed | "One of them" >> beam.WindowInto(GlobalWindows()) | both
    rows.is_bounded = False
    with pytest.raises(shoal.ShoalError, match=r"^batches is an unbounded PCollection: .*\.$"):
        answer.expand(rows)
    with pytest.raises(shoal.ShoalError, match=r"^Answer is applied to the pipeline itself: .*\.$"):
        _ = pipeline | "Begin" >> answer
    other = beam.Pipeline(runner="SparkRunner") | beam.Create([])
    with pytest.raises(shoal.ShoalError, match=r"^The runner is SparkRunner: it must be DirectRunner, .*\.$"):
        answer.expand(other)


REPEATING = {
    "SlidingWindows": lambda: beam.WindowInto(SlidingWindows(60, 5)),
    "AccumulationMode.ACCUMULATING": lambda: beam.WindowInto(
        FixedWindows(60),
        trigger=Repeatedly(AfterCount(1)),
        accumulation_mode=AccumulationMode.ACCUMULATING,
    ),
}


@pytest.mark.parametrize("step", REPEATING)
def test_steps_that_may_repeat_rows_are_refused(step: str, tmp_path: Path) -> None:
    """Also where all windows are put into one later: a row in twelve windows would count twelve times."""
    rows = beam.Pipeline(runner=FnApiRunner()) | beam.Create([]) | REPEATING[step]()
    both = (rows | beam.Map(lambda row: row), rows | "Other" >> beam.Map(lambda row: row)) | beam.Flatten()
    once = "All" >> beam.WindowInto(
        GlobalWindows(), trigger=DefaultTrigger(), accumulation_mode=AccumulationMode.DISCARDING
    )
    with pytest.raises(shoal.ShoalError, match=rf"^A step before batches has {step}, by which .*\.$"):
        shoal.beam.Answer(cells(tmp_path), ROWS.schema).expand(both | once)


@pytest.mark.parametrize("windows", [FixedWindows(60), Sessions(60)], ids=["fixed", "sessions"])
def test_windows_that_repeat_no_row_may_come_before(windows: Any, tmp_path: Path) -> None:
    rows = beam.Pipeline(runner=FnApiRunner()) | beam.Create([]) | beam.WindowInto(windows)
    _ = rows | "All" >> beam.WindowInto(GlobalWindows()) | shoal.beam.Answer(cells(tmp_path), ROWS.schema)


def test_rows_beside_the_main_input_are_looked_at_too(tmp_path: Path) -> None:
    pipeline = beam.Pipeline(runner=FnApiRunner())
    sliding = pipeline | "Side" >> beam.Create([]) | beam.WindowInto(SlidingWindows(60, 5))
    side = beam.pvalue.AsList(sliding | "All" >> beam.WindowInto(GlobalWindows()))
    rows = pipeline | beam.Create([0]) | beam.FlatMap(lambda _, held: held, side)
    with pytest.raises(shoal.ShoalError, match=r"^A step before batches has SlidingWindows, .*\.$"):
        shoal.beam.Answer(cells(tmp_path), ROWS.schema).expand(rows)
    once = pipeline | "Once" >> beam.Create([])
    twice = (once, once) | "Twice" >> beam.Flatten()
    with pytest.raises(shoal.ShoalError, match=r"^A step before batches takes one PCollection twice: .*\.$"):
        shoal.beam.Answer(cells(tmp_path), ROWS.schema).expand(twice)


def test_the_embedded_runner_of_beam_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its workers flush their output by size, and not by time in a second thread; see `EmbeddedRunner`."""
    monkeypatch.setattr(worker_handlers, "DATA_BUFFER_TIME_LIMIT_MS", 1000)
    rows = beam.Pipeline(runner=FnApiRunner()) | beam.Create([])
    shoal.beam.Answer(cells(tmp_path), ROWS.schema).expand(rows)
    assert worker_handlers.DATA_BUFFER_TIME_LIMIT_MS == 0


def test_a_trigger_is_refused(tmp_path: Path) -> None:
    """A release is made of all rows, and not of those that have arrived."""
    trigger = beam.WindowInto(
        GlobalWindows(), trigger=Repeatedly(AfterCount(1)), accumulation_mode=AccumulationMode.DISCARDING
    )
    rows = beam.Pipeline(runner=FnApiRunner()) | beam.Create([]) | trigger
    with pytest.raises(shoal.ShoalError, match=r"^batches has the trigger Repeatedly, by which .*\.$"):
        shoal.beam.Answer(cells(tmp_path), ROWS.schema).expand(rows)


@pytest.mark.parametrize(
    ("element", "said"),
    [
        *(
            (
                wrong,
                rf"^batches: an element is a {kind}; each must be .*RecordBatch, such as of table\.to_batch",
            )
            for wrong, kind in (({"x": 0.123}, "dict"), (ROWS, "Table"))
        ),
        (
            ROWS.select(["x"]).to_batches()[0],
            r"batches: an element has another schema than .*: column 2, y, is missing there\.",
        ),
        (
            ROWS.set_column(1, "y", ROWS["y"].cast(pa.float32())).to_batches()[0],
            r"batches: an element has another schema than .*: column 2 has another type there than y \(",
        ),
        (
            ROWS.rename_columns(["x", "0.123", *ROWS.column_names[2:]]).to_batches()[0],
            r"batches: an element has another schema than .*: column 2 has another name there than y \(",
        ),
        (
            ROWS.append_column("0.123", ROWS["y"]).to_batches()[0],
            rf"batches: an element has .*: it has more columns than the {ROWS.num_columns} of the schema\.",
        ),
        (
            ROWS.cast(ROWS.schema.set(1, ROWS.schema.field(1).with_nullable(False))).to_batches()[0],
            r"batches: an element has another .*: column 2 has another nullability there than y \(.*, may be",
        ),
    ],
)
def test_a_wrong_element_is_one_sentence_without_a_value(element: Any, said: str, tmp_path: Path) -> None:
    with (
        pytest.raises(Exception, match=said) as caught,
        beam.Pipeline(runner=FnApiRunner()) as pipeline,
    ):
        made = pipeline | beam.Create([element]) | beam.Map(lambda each: each).with_output_types(Any)
        _ = made | shoal.beam.Answer(cells(tmp_path), ROWS.schema)
    assert "0.123" not in str(caught.value)
    assert str(caught.value).count("batches: ") == 1 and "shoal-error" not in str(caught.value)


@pytest.mark.parametrize(("element", "kind"), [({"x": 0.5}, "Dict"), (ROWS, "Table"), (0.5, "float")])
def test_elements_of_another_type_are_found_before_the_charge(
    element: Any, kind: str, tmp_path: Path
) -> None:
    rows = beam.Pipeline(runner=FnApiRunner()) | beam.Create([element])
    with pytest.raises(shoal.ShoalError, match=rf"^batches has elements of type {kind}.*from_pylist"):
        _ = rows | shoal.beam.Answer(cells(tmp_path), ROWS.schema)


def test_the_release_of_another_job_is_found_before_the_charge(tmp_path: Path) -> None:
    """Also where it appears after the pipeline was built."""
    ledger = str(tmp_path / "ledger.json")
    create_ledger(
        ledger, new_ledger({"epsilon": 9.0, "delta": 0.0, "neighbors": "add_or_remove_one"}, "basic")
    )
    privacy = {"epsilon": 1.0, "delta": 0.0, "ledger": ledger}
    first = cells(tmp_path, output=str(tmp_path / "out"), privacy=privacy)
    second = {**first, "run_id": "another"}
    said = "already holds a release of another job"
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | beam.Create(ROWS.to_batches()) | shoal.beam.Answer(second, ROWS.schema)
    answers(first, ROWS.to_batches())
    with pytest.raises(shoal.ShoalError, match=said):  # when the pipeline is built
        _ = beam.Pipeline(runner=FnApiRunner()) | beam.Create([]) | shoal.beam.Answer(second, ROWS.schema)
    with pytest.raises(Exception, match=said):
        pipeline.run().wait_until_finish()
    assert [charge.run_id for charge in read_ledger(ledger).charges] == [first["run_id"]]


def test_a_worker_with_another_disk_is_not_charged(tmp_path: Path) -> None:
    """Its folder is not the one that was prepared where the pipeline was built."""
    ledger = str(tmp_path / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=9.0, delta=0.0))
    job = cells(tmp_path, privacy={"epsilon": 1.0, "delta": 0.0, "ledger": ledger})
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | beam.Create(ROWS.to_batches()) | shoal.beam.Answer(job, ROWS.schema)
    (tmp_path / "beam").rename(tmp_path / "there")
    with pytest.raises(Exception, match="on the worker is not the folder of the machine that submitted"):
        pipeline.run().wait_until_finish()
    assert not read_ledger(ledger).charges


def test_two_jobs_of_a_pipeline_cannot_have_one_output(tmp_path: Path) -> None:
    pipeline = beam.Pipeline(runner=FnApiRunner())
    rows = pipeline | beam.Create(ROWS.to_batches())
    _ = rows | "One" >> shoal.beam.Answer(cells(tmp_path), ROWS.schema)
    for more in ({}, {"privacy": {"epsilon": 2.0, "delta": 0.0}}):  # the same job about other rows, too
        with pytest.raises(
            shoal.ShoalError, match=r"^output is .*, and so is that of another Answer in this"
        ):
            _ = rows | f"Same {len(more)}" >> shoal.beam.Answer(cells(tmp_path, **more), ROWS.schema)
    other = cells(tmp_path, privacy={"epsilon": 2.0, "delta": 0.0})
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(shoal.ShoalError, match=r"^output is .*, and so is that of another Answer in this"):
        linked = {**other, "output": str(tmp_path / "link" / "beam")}
        _ = rows | "Three" >> shoal.beam.Answer(linked, ROWS.schema)


def test_a_ledger_must_admit_all_answers_of_a_pipeline(tmp_path: Path) -> None:
    """Those that are charged already cost nothing more."""
    ledger = str(tmp_path / "ledger.json")
    about = {"epsilon": 2.0, "delta": 0.0, "neighbors": "add_or_remove_one"}
    create_ledger(ledger, new_ledger(about, "basic"))
    jobs = {
        name: cells(
            tmp_path,
            output=str(tmp_path / name),
            run_id=name,
            privacy={"epsilon": 1.0, "delta": 0.0, "ledger": ledger},
        )
        for name in ("one", "two", "three")
    }

    def build(*names: str) -> beam.Pipeline:
        pipeline = beam.Pipeline(runner=FnApiRunner())
        rows = pipeline | beam.Create(ROWS.to_batches())
        for name in names:
            _ = rows | name >> shoal.beam.Answer(jobs[name], ROWS.schema)
        return pipeline

    for _ in range(2):
        with pytest.raises(
            shoal.ShoalError, match=r"it would come to epsilon 3 by .* of this pipeline count"
        ):
            build(*jobs)
        build("one").run().wait_until_finish()
    build("one", "two").run().wait_until_finish()
    assert [charge.run_id for charge in read_ledger(ledger).charges] == ["one", "two"]


def test_several_collections_are_one_sentence(tmp_path: Path) -> None:
    rows = [beam.Pipeline(runner=FnApiRunner()) | beam.Create(ROWS.to_batches())] * 2
    for several in (tuple(rows), dict(enumerate(rows))):
        with pytest.raises(
            shoal.ShoalError, match=r"^Answer is applied to several PCollections: put beam.Fl"
        ):
            _ = several | type(several).__name__ >> shoal.beam.Answer(cells(tmp_path), ROWS.schema)


def test_two_jobs_of_a_pipeline_cannot_have_one_run_id_in_a_ledger(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.json")
    about = {"epsilon": 9.0, "delta": 0.0, "neighbors": "add_or_remove_one"}
    create_ledger(ledger, new_ledger(about, "basic"))
    (tmp_path / "link.json").symlink_to(ledger)
    rows = beam.Pipeline(runner=FnApiRunner()) | beam.Create(ROWS.to_batches())
    for name, path in (("one", ledger), ("two", ledger), ("three", str(tmp_path / "link.json"))):
        privacy = {"epsilon": 1.0, "delta": 0.0, "ledger": path}
        job = cells(tmp_path, output=str(tmp_path / name), privacy=privacy)
        if name == "one":
            _ = rows | name >> shoal.beam.Answer(job, ROWS.schema)
            continue
        with pytest.raises(
            shoal.ShoalError, match=r"^run_id is one, and so is that of another Answer in this"
        ):
            _ = rows | name >> shoal.beam.Answer(job, ROWS.schema)
