"""Beam's embedded runner with threads that share memory, without races and without bundles that are empty."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from apache_beam.options.pipeline_options import DirectOptions
from apache_beam.portability import python_urns
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, fn_runner, worker_handlers
from apache_beam.runners.portability.fn_api_runner.fn_runner import (
    BundleManager,
    ParallelBundleManager,
    ProgressRequester,
)
from apache_beam.runners.worker.statesampler import StateSampler

from transforms.count_done import keep_counts
from transforms.heap import give_back

_ASK_EVERY = 0.5
"""Seconds between two questions to a worker in another process about what it has done."""

_SAMPLE_EVERY = 5
"""Milliseconds between two looks of Beam at what a bundle does, for which its end waits."""

_GIVE_BACK_EVERY = 2.0
"""Seconds after which free memory goes back to the system, which takes a tenth where a heap has many gaps."""


def flush_by_size() -> None:
    """Let workers of embedded runners in this process flush their own output; see `EmbeddedRunner`."""
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0  # no option sets it for both ends of the connection


class EmbeddedRunner(FnApiRunner):
    """Run a pipeline in this process.

    Workers that are threads get elements and state from memory. Beam's own runner sends both through a server
    for its threads, as it does for processes, which costs a small run a fifth of its time.

    Between processes, a second thread of Beam's own runner flushes the output of a worker once a second,
    without a lock. If the flush happens while an element is being pickled, the element is sent in two parts,
    and the reader decodes other values. Elements that are written during a flush can be lost. Here the worker
    flushes its own output, by size and at the end, as the workers of all other runners do.

    Beam measures the steps of a bundle by a thread that sleeps between two looks at it: by default for a
    fifth of the time that the bundle has taken, up to 0.2 s. The end of a bundle waits until this thread
    wakes up. Here it looks more often.
    """

    def run_via_runner_api(self, pipeline_proto: Any, options: Any) -> Any:
        """See `FnApiRunner`."""
        self._gave_back = time.monotonic()
        flush_by_size()
        StateSampler.__init__.__defaults__ = (_SAMPLE_EVERY,)  # no option sets it
        if options.view_as(DirectOptions).direct_running_mode == "multi_processing":
            self._progress_frequency = _ASK_EVERY
            fn_runner.ProgressRequester = _CountRequester  # type: ignore[assignment, misc]  # Beam passes none
        for environment in pipeline_proto.components.environments.values():
            if environment.urn == python_urns.EMBEDDED_PYTHON_GRPC:  # Beam's name for threads
                environment.urn, environment.payload = python_urns.EMBEDDED_PYTHON, b""
        return super().run_via_runner_api(pipeline_proto, options)

    def _get_bundle_manager(self, bundle_context_manager: Any) -> BundleManager:
        """See `FnApiRunner`; it asks before each stage."""
        if time.monotonic() - self._gave_back > _GIVE_BACK_EVERY:
            give_back()  # what the stages before leave free has other sizes than the next ones need
            self._gave_back = time.monotonic()
        manager = super()._get_bundle_manager(bundle_context_manager)
        if not isinstance(manager, ParallelBundleManager):
            return manager
        bundle_context_manager._worker_handlers = _InTurn(bundle_context_manager.worker_handlers)
        tokens = self.get_cache_token_generator(static=False)
        return _FilledBundles(bundle_context_manager, self._progress_frequency, cache_token_generator=tokens)


class _FilledBundles(ParallelBundleManager):
    """Run only the bundles of a stage that have elements, and at least one.

    Beam's own runner gives every worker a bundle of every stage. Each bundle costs some milliseconds, also
    without an element, and most stages of a round have one element.
    """

    def process_bundle(
        self, inputs: Mapping[str, Any], expected_outputs: Any, fired_timers: Any, *args: Any, **more: Any
    ) -> Any:
        """See `ParallelBundleManager`."""
        parts: dict[str, Any] = {
            name: _Parts(buffer.partition(self._num_workers)) for name, buffer in inputs.items()
        }
        self._num_workers = max([1, *(each.filled for each in parts.values())])
        return super().process_bundle(parts, expected_outputs, fired_timers, *args, **more)


class _InTurn(list[Any]):
    """The workers of a stage, of which each bundle gets the next one.

    Beam finds the worker of a bundle by the number of bundles that all pipelines of this process began. So
    two bundles of a stage could get the same worker while another pipeline runs beside theirs, and a worker
    keeps the elements of one bundle at a time.
    """

    def __init__(self, workers: Sequence[Any]) -> None:
        super().__init__(workers)
        self._turns = count()

    def __getitem__(self, _: Any) -> Any:
        return super().__getitem__(next(self._turns) % len(self))


@dataclass(frozen=True)
class _Parts:
    """An input of a stage that is divided into bundles, of which those with elements come first."""

    parts: list[list[bytes]]

    @property
    def filled(self) -> int:
        return sum(any(part) for part in self.parts)

    def partition(self, n: int) -> list[list[bytes]]:
        return sorted(self.parts, key=any, reverse=True)[:n]


class _CountRequester(ProgressRequester):
    """Ask a worker what its bundle has done so far, and keep the counts."""

    def __init__(self, worker_handler: Any, instruction_id: str, frequency: float | None) -> None:
        def keep(progress: Any) -> None:
            keep_counts(instruction_id, progress.monitoring_infos)

        super().__init__(worker_handler, instruction_id, frequency, keep)
