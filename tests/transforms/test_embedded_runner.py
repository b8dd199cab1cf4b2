"""Elements of the embedded runner arrive whole, however long it takes to encode them."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.runners.worker.data_plane import PeriodicThread

from transforms.embedded_runner import EmbeddedRunner

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
    assert set(run(EmbeddedRunner(), tmp_path / "ours", watch)) == {"False"}
    monkeypatch.setattr(worker_handlers, "DATA_BUFFER_TIME_LIMIT_MS", 1000)
    assert set(run(FnApiRunner(), tmp_path / "theirs", watch)) == {"True"}
