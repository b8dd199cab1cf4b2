"""Import the DAG as Airflow does and print what its task would run, as JSON.

`test_airflow.py` starts it with an interpreter that has Airflow, which this project's own has not.
"""

import json
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.encoders import coerce_to_core_timetable
from airflow.timetables.base import TimeRestriction
from kubernetes.client import ApiClient


def _load(folder: str) -> Any:
    bag = DagBag(folder)
    if bag.import_errors:
        raise SystemExit(str(bag.import_errors))
    (dag,) = bag.dags.values()
    return dag


def _render(folder: str, context: dict[str, Any]) -> Any:
    """Return the task as one try of it would be run."""
    (task,) = _load(folder).tasks
    task.render_template_fields(context)
    return task


def describe(folder: str) -> dict[str, Any]:
    """Return what two tries of a scheduled run would do, and what a run without a date."""
    dag = _load(folder)
    task = _render(folder, {"ds": "2026-11-16"})
    again = _render(folder, {"ds": "2026-11-16"})
    try:
        undated = _render(folder, {}).arguments
    except Exception as error:
        undated = type(error).__name__
    since = TimeRestriction(earliest=datetime(2026, 11, 10, tzinfo=UTC), latest=None, catchup=True)
    timetable = coerce_to_core_timetable(dag.timetable)
    vars(task)["hook"] = SimpleNamespace(is_in_cluster=True)
    pod = ApiClient().sanitize_for_serialization(task.build_pod_request_obj())
    due = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=since)
    return {
        "operator": type(task).__name__,
        "tries": [task.arguments, again.arguments],
        "undated": undated,
        "command": task.cmds,
        "image": task.image,
        "catchup": dag.catchup,
        "date": due.logical_date.date().isoformat(),
        "pod": {"apiVersion": "v1", "kind": "Pod", **pod},
        "starts": due.run_after.isoformat(),
    }


if __name__ == "__main__":
    sys.stdout.write(f"\n{json.dumps(describe(sys.argv[1]))}\n")
