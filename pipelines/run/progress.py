"""Find out how far a run is: rounds that are released for the log, and work that is done for a terminal."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import Any, cast

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.portability.api import beam_job_api_pb2
from apache_beam.runners.runner import PipelineResult
from google.protobuf import json_format

from core.noise import Noise
from core.rounds import (
    Block,
    Examination,
    Round,
    RoundInParts,
    State,
    examination_of,
    looks_of,
    parts_of,
    sections_of,
)
from core.stored import Store
from pipelines.console.events import Events
from pipelines.console.progress import Progress
from pipelines.run.reach_runner import ask_flink, rest_address
from transforms.count_done import counted, counts_of

_LISTENERS: dict[str, Callable[[str], None]] = {}

_SHOW_EVERY, _ASK_EVERY = 0.5, 2.0
"""Seconds between two looks at what this process knows, and between two questions to a job server."""

_BEAM_METRICS = "__metricscontainers"
"""The accumulator in which Beam keeps its metrics on Flink: JSON text of what a job server would answer."""

_MOST_BYTES = 50_000_000


@dataclass(frozen=True)
class Announced:
    """A round that notifies a listener in this process when it has released.

    Args:
        round_: the wrapped round.
        listener: name of the listener. A worker in another process has no listener of this name.
    """

    round_: Round
    listener: str

    @property
    def name(self) -> str:
        """See `Round.name`."""
        return self.round_.name

    @property
    def purpose(self) -> str:
        """See `Round.purpose`."""
        return self.round_.purpose

    @property
    def floor(self) -> int | None:
        """See `Round.floor`."""
        return self.round_.floor

    @property
    def parts(self) -> int:
        """See `RoundInParts.parts`."""
        return parts_of(self.round_)

    @property
    def looks(self) -> int:
        """See `core.rounds.Looking.looks`."""
        return looks_of(self.round_)

    def coarse(self, state: State) -> "Announced":
        """See `core.rounds.Looking.coarse`."""
        return replace(self, round_=cast(Any, self.round_).coarse(state))

    def finer(self, aggregate: Any, state: State) -> "Announced":
        """See `core.rounds.Looking.finer`."""
        return replace(self, round_=cast(Any, self.round_).finer(aggregate, state))

    @property
    def examination(self) -> Examination | None:
        """See `Round`."""
        return examination_of(self.round_)

    @property
    def sections(self) -> int:
        """See `core.rounds.RoundInSections`."""
        return sections_of(self.round_)

    def examine(self, section: Any, state: State, noise: Noise, store: Store) -> Any:
        """See `core.rounds.RoundInSections`."""
        return cast(Any, self.round_).examine(section, state, noise, store)

    def summarize(self, block: Block, state: State) -> Any:
        """See `Round.summarize`."""
        return self.round_.summarize(block, state)

    def release(self, aggregate: Any, state: State, noise: Noise) -> State:
        """See `Round.release`."""
        released = self.round_.release(aggregate, state, noise)
        self._announce()
        return released

    def release_part(self, number: int, aggregate: Any, state: State, noise: Noise) -> State:
        """See `RoundInParts.release_part`; the last part is announced."""
        released = cast(RoundInParts, self.round_).release_part(number, aggregate, state, noise)
        if number == self.parts - 1:
            self._announce()
        return released

    def _announce(self) -> None:
        _LISTENERS.get(self.listener, lambda name: None)(self.name)


@contextmanager
def announced(rounds: Sequence[Round], events: Events, times: int = 1) -> Iterator[Sequence[Round]]:
    """Yield rounds that report their releases to `events`, if these are written.

    Args:
        rounds: the rounds.
        events: the log.
        times: how many strands run these rounds; a round is reported once it has released in all of them.
    """
    if events.stream is None:
        yield rounds
        return
    listener, released = uuid.uuid4().hex, Counter[str]()

    def heard(name: str) -> None:
        released[name] += 1
        if released[name] % times == 0:
            events.emit("round_released", round=name)

    _LISTENERS[listener] = heard
    try:
        yield [Announced(round_, listener) for round_ in rounds]
    finally:
        del _LISTENERS[listener]


@contextmanager
def watched(progress: Progress, options: PipelineOptions) -> Iterator[Callable[[PipelineResult], None]]:
    """Show what workers do while a pipeline runs, and nothing else on the terminal.

    Workers in this process, and those of the embedded runner in other processes, tell it themselves. A job
    server is asked once this yielded function is given the result of its runner. No trouble here ends a run.
    """
    if not progress.shown:
        yield lambda running: None
        return
    before, ended = counted(), threading.Event()
    told: list[Counter[str]] = []

    def show() -> None:
        while not ended.wait(_SHOW_EVERY):
            with suppress(OSError, ValueError):  # the terminal may be gone
                progress.show(reduce(or_, told, counted() - before))

    def ask(running: PipelineResult) -> None:
        while not ended.wait(_ASK_EVERY):
            with suppress(Exception):  # of gRPC, and of what another version of a runner may answer
                told.append(_counts_of_job(running, options))

    def begin(look: Callable[..., None], *of: Any) -> None:
        threading.Thread(target=look, args=of, name="progress", daemon=True).start()

    with progress.alone():
        begin(show)
        try:
            yield partial(begin, ask)
        finally:
            ended.set()


def _counts_of_job(running: Any, options: PipelineOptions) -> Counter[str]:
    """Return what a job has done so far, as its job server knows it, or where that is Flink's its cluster."""
    if options.view_as(StandardOptions).runner == "FlinkRunner":
        master = options.view_as(FlinkRunnerOptions).flink_master
        return _counts_of_flink(rest_address(master), options.view_as(GoogleCloudOptions).job_name)
    # Beam's own `running.metrics()` keeps its first answer.
    request = beam_job_api_pb2.GetJobMetricsRequest(job_id=running._job_id)
    return counts_of(running._job_service.GetJobMetrics(request, timeout=_ASK_EVERY).metrics.attempted)


def _counts_of_flink(address: str, name: str) -> Counter[str]:
    """Return the counts of the last job of this name. Each subtask of Flink gives its counts when it ends."""
    jobs = [job for job in ask_flink(f"{address}/jobs/overview", _MOST_BYTES)["jobs"] if job["name"] == name]
    job = max(jobs, key=lambda job: job["start-time"])["jid"]
    answer = beam_job_api_pb2.GetJobMetricsResponse()
    for each in ask_flink(f"{address}/jobs/{job}/accumulators", _MOST_BYTES)["user-task-accumulators"]:
        if each["name"] == _BEAM_METRICS:
            json_format.Parse(each["value"], answer, ignore_unknown_fields=True)
    return counts_of(answer.metrics.attempted)
