"""Count the pieces of work that are done, so that a terminal can show how far a run is.

Counts are Beam metrics, which engines publish. A piece is a row group, a part or a subsample, so a count
follows from the footers of the input and from the job, never from a row.
"""

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

from apache_beam.metrics import Metrics
from apache_beam.runners.portability import portable_metrics

NAMESPACE = "shoal"
"""The namespace of these metrics."""

_LOCK = threading.Lock()
_HERE: Counter[str] = Counter()
_BUNDLES: dict[str, Counter[str]] = {}


def count_done(step: str) -> None:
    """Count one piece of work that this worker has finished in `step`."""
    Metrics.counter(NAMESPACE, step).inc()
    with _LOCK:
        _HERE[step] += 1


def keep_counts(bundle: str, infos: Iterable[Any]) -> None:
    """Keep what a bundle of the embedded runner has done so far, from the monitoring infos of its worker."""
    counts = counts_of(infos)
    with _LOCK:
        _BUNDLES[bundle] = counts | _BUNDLES.get(bundle, Counter())


def counts_of(infos: Iterable[Any]) -> Counter[str]:
    """Return the counts in Beam's monitoring infos, by step."""
    done: Counter[str] = Counter()
    for key, count in portable_metrics.from_monitoring_infos(infos, user_metrics_only=True)[0].items():
        if key.metric.namespace == NAMESPACE:
            done[key.metric.name] += count
    return done


def counted() -> Counter[str]:
    """Return what is done, by step, since this process started, as far as this process knows.

    It knows of workers that are its own threads, and of the embedded runner's workers in other processes.
    """
    with _LOCK:
        return _HERE | sum(_BUNDLES.values(), Counter())  # the larger of the two where both know
