"""Beam's embedded runner without a race that corrupts elements."""

from typing import Any

from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers


class EmbeddedRunner(FnApiRunner):
    """Run a pipeline in this process.

    In Beam's own runner, a second thread flushes the output of a worker thread once a second, without a lock.
    If the flush happens while an element is being pickled, the element is sent in two parts, and the reader
    decodes other values. Elements that are written during a flush can be lost. Here the worker thread flushes
    its own output, by size and at the end, as the workers of all other runners do.
    """

    def run_via_runner_api(self, pipeline_proto: Any, options: Any) -> Any:
        """See `FnApiRunner`."""
        worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0  # no option sets it for both ends of the connection
        return super().run_via_runner_api(pipeline_proto, options)
