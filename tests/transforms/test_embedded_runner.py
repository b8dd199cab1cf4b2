"""Elements of the embedded runner arrive whole, however long it takes to encode them; no bundle is empty."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.runners.portability.fn_api_runner.fn_runner import BundleManager
from apache_beam.runners.worker.data_plane import PeriodicThread
from apache_beam.runners.worker.statesampler import StateSampler

from transforms.embedded_runner import EmbeddedRunner, _Parts

THREADS = {"direct_num_workers": 2, "direct_running_mode": "multi_threading"}


class Slow:
    """A number that takes longer to pickle than Beam's own runner waits between two flushes."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        time.sleep(1.2)
        return Slow, (self.number,)


def number_slowly(number: int) -> Iterator[tuple[int, Slow]]:
    yield number % 2, Slow(number)


def run(runner: FnApiRunner, output: Path, number: Any) -> list[str]:
    """Group what `number` makes of 0 to 3; return what is read of it, sorted."""

    def append(grouped: tuple[int, Any]) -> None:
        with output.open("a") as file:
            file.writelines(f"{getattr(each, 'number', each)}\n" for each in grouped[1])

    with beam.Pipeline(runner=runner, options=PipelineOptions([], **THREADS)) as pipeline:
        numbered = pipeline | beam.Create(range(4)) | beam.FlatMap(number)
        _ = numbered | beam.GroupByKey() | beam.Map(append)
    return sorted(output.read_text().splitlines())


def test_elements_that_are_slow_to_encode_arrive_whole(tmp_path: Path) -> None:
    assert run(EmbeddedRunner(), tmp_path / "read", number_slowly) == ["0", "1", "2", "3"]


def watch(number: int) -> Iterator[tuple[int, bool]]:
    """Say whether a thread is there that flushes streams; Beam has other periodic ones."""
    periodic = [thread for thread in threading.enumerate() if isinstance(thread, PeriodicThread)]
    yield number, any("flush" in thread._function.__qualname__ for thread in periodic)


def test_no_other_thread_flushes_what_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_handlers, "DATA_BUFFER_TIME_LIMIT_MS", 1000)
    assert set(run(EmbeddedRunner(), tmp_path / "ours", watch)) == {"False"}
    assert worker_handlers.DATA_BUFFER_TIME_LIMIT_MS == 0, "which workers that are processes are told, too"
    monkeypatch.setattr(worker_handlers, "DATA_BUFFER_TIME_LIMIT_MS", 1000)
    assert set(run(FnApiRunner(), tmp_path / "theirs", watch)) == {"True"}


def test_threads_need_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_handlers, "GrpcServer", None)
    assert run(EmbeddedRunner(), tmp_path / "read", lambda number: [(number % 2, number)]) == list("0123")


def test_the_end_of_a_bundle_waits_for_no_sampler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default it would wait up to a fifth of the bundle's time, and up to 0.2 s."""
    monkeypatch.setattr(StateSampler.__init__, "__defaults__", (200,))
    periods = []

    class Noted(StateSampler):
        def start(self) -> None:
            periods.append(self.sampling_period_ms)
            super().start()

    monkeypatch.setattr("apache_beam.runners.worker.statesampler.StateSampler", Noted)
    numbers = run(EmbeddedRunner(), tmp_path / "read", lambda number: [(number % 2, number)])
    assert numbers == list("0123")
    assert periods and max(periods) <= 5


@pytest.mark.parametrize(("every", "expected"), [(-1.0, True), (1e9, False)])
def test_free_memory_goes_back_between_stages_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: float, expected: bool
) -> None:
    given: list[bool] = []
    monkeypatch.setattr("transforms.embedded_runner.give_back", lambda: given.append(True))
    monkeypatch.setattr("transforms.embedded_runner._GIVE_BACK_EVERY", every)
    assert run(EmbeddedRunner(), tmp_path / "read", lambda number: [(number % 2, number)]) == list("0123")
    assert bool(given) == expected


def test_bundles_of_a_stage_have_different_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while another pipeline of this process begins a bundle between any two of them."""
    begin, push = BundleManager.process_bundle, worker_handlers.EmbeddedWorkerHandler.push
    workers: dict[str, list[str]] = {}

    def beside_another(self: BundleManager, *args: Any) -> Any:
        with BundleManager._lock:
            BundleManager._uid_counter += 1
        return begin(self, *args)

    def noted(self: worker_handlers.EmbeddedWorkerHandler, request: Any) -> Any:
        if request.WhichOneof("request") == "process_bundle":
            stage = request.process_bundle.process_bundle_descriptor_id
            workers.setdefault(stage, []).append(self.worker_id)
        return push(self, request)

    monkeypatch.setattr(BundleManager, "process_bundle", beside_another)
    monkeypatch.setattr(worker_handlers.EmbeddedWorkerHandler, "push", noted)
    assert run(EmbeddedRunner(), tmp_path / "read", lambda number: [(number % 2, number)]) == list("0123")
    assert max(map(len, workers.values())) == THREADS["direct_num_workers"]
    assert all(len(set(each)) == len(each) for each in workers.values())


def test_no_part_with_elements_is_left_out_wherever_it_is() -> None:
    parts = _Parts([[], [b"1"], [], [b"2"], []])
    assert parts.filled == 2
    assert parts.partition(2) == [[b"1"], [b"2"]]
    assert parts.partition(3) == [[b"1"], [b"2"], []]


class NoteBundles(beam.DoFn):
    """Hand elements on, and note in a file how many each bundle had."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def start_bundle(self) -> None:
        self.elements = 0

    def process(self, element: int) -> Iterator[tuple[int, int]]:
        self.elements += 1
        yield 0, element

    def finish_bundle(self) -> None:
        with self.notes.open("a") as file:
            file.write(f"{self.elements}\n")


@pytest.mark.parametrize(
    ("one", "other", "filled"), [(1, 0, 1), (0, 1, 1), (1, 1, 1), (5, 1, 3), (0, 0, 1), (2, 2, 2)]
)
def test_no_bundle_is_empty_where_another_has_elements(
    tmp_path: Path, one: int, other: int, filled: int
) -> None:
    """Both inputs of a stage are divided into three bundles, also where one of them has fewer elements."""
    notes, sums = tmp_path / "notes", tmp_path / "sums"
    options = PipelineOptions([], direct_num_workers=3, direct_running_mode="multi_threading")
    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        inputs = [
            pipeline
            | f"Make{number}" >> beam.Create(range(1, 1 + each))
            | f"Group{number}" >> beam.Reshuffle()
            for number, each in enumerate((one, other))
        ]
        noted = inputs | beam.Flatten() | beam.ParDo(NoteBundles(notes)) | beam.GroupByKey()
        _ = noted | beam.Map(lambda grouped: sums.write_text(str(sum(grouped[1]))))
    counts = [int(line) for line in notes.read_text().splitlines()]
    assert sum(counts) == one + other
    assert len(counts) >= filled
    if one + other:
        assert 0 not in counts
        assert int(sums.read_text()) == sum(range(1 + one)) + sum(range(1 + other))
