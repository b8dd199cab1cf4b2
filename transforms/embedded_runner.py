"""Beam's embedded runner, kept from cutting elements in two."""

from typing import Any

from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers


class EmbeddedRunner(FnApiRunner):
    """Run a pipeline in this process.

    Beam's own flushes what a worker thread has written once a second, from another thread and without a
    lock. An element whose encoding lets that thread in, as pickling does, is then sent in two halves, and
    what is read is something else: None, other numbers, or gigabytes that are not there. What is written
    while a flush is at work can be lost. So here a thread flushes what it has written itself, by size and at
    the end, as the workers of all other runners do.
    """

    def run_via_runner_api(self, pipeline_proto: Any, options: Any) -> Any:
        """See `FnApiRunner`."""
        worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0  # no option reaches both ends of the connection
        return super().run_via_runner_api(pipeline_proto, options)
