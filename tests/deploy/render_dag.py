"""Import the DAG as Airflow does and print what its task would run, as JSON.

`test_airflow.py` starts it with an interpreter that has Airflow, which this project's own has not.
"""

import json
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.encoders import coerce_to_core_timetable
from airflow.timetables.base import TimeRestriction
from kubernetes.client import ApiClient
from kubernetes.client import models as k8s


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


def _ends(task: Any, code: int) -> str:
    """Return as what Airflow takes a pod that ended with an exit code."""
    ended = k8s.V1ContainerState(terminated=k8s.V1ContainerStateTerminated(exit_code=code))
    base = k8s.V1ContainerStatus(
        name="base", state=ended, ready=False, restart_count=0, image="shoal", image_id="shoal"
    )
    pod = k8s.V1Pod(
        metadata=k8s.V1ObjectMeta(name="shoal-airports", namespace="shoal"),
        status=k8s.V1PodStatus(phase="Failed", container_statuses=[base]),
    )
    vars(task).update(client=MagicMock(), pod_manager=MagicMock())
    try:
        task.cleanup(pod, pod)
    except Exception as error:
        return type(error).__name__
    return "success"


def describe(folder: str) -> dict[str, Any]:
    """Return what two tries of a scheduled run would do, and what a run without a date."""
    dag = _load(folder)
    task = _render(folder, {"ds": "2026-11-15"})
    again = _render(folder, {"ds": "2026-11-15"})
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
        "retries": task.retries,
        "ends": {str(code): _ends(again, code) for code in (1, 2, 3, 137)},
        "command": task.cmds,
        "image": task.image,
        "catchup": dag.catchup,
        "date": due.logical_date.date().isoformat(),
        "pod": {"apiVersion": "v1", "kind": "Pod", **pod},
        "starts": due.run_after.isoformat(),
    }


if __name__ == "__main__":
    sys.stdout.write(f"\n{json.dumps(describe(sys.argv[1]))}\n")
