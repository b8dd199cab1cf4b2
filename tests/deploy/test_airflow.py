"""The DAG, by the real Airflow where there is one, and by its text everywhere."""

import ast
import json
import os
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest

from tests.deploy.manifests import DEPLOY, built, containers, operated
from tests.deploy.rules import complaints
from tests.engines.conftest import parts_are_here
from tests.engines.fetch import have

DAG = DEPLOY / "schedules/airflow/shoal_airports.py"


@pytest.fixture(scope="module")
def described(tmp_path_factory) -> dict:
    with parts_are_here():
        python = have("airflow") / "bin" / "python"
    home = tmp_path_factory.mktemp("airflow")
    environment = {**os.environ, "AIRFLOW_HOME": str(home)}
    command = [str(python), str(Path(__file__).parent / "render_dag.py"), str(DAG.parent)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment, check=False, cwd=home
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.engine
def test_airflow_runs_both_tries_of_a_task_under_the_day_before_the_schedule(described) -> None:
    first, second = described["tries"]
    assert first == second
    assert first[first.index("--set") + 1] == "run_id=airports-2026-11-15"
    assert (described["date"], described["starts"]) == ("2026-11-15", "2026-11-16T03:00:00+00:00")
    assert described["operator"] == "ShoalPodOperator"
    assert described["command"] == ["shoal"]
    assert described["catchup"] is False
    assert described["undated"] == "UndefinedError", "a run without a date is none"


@pytest.mark.engine
def test_airflow_tries_again_what_may_succeed(described) -> None:
    """As the CronJob does: not a wrong job (2), nor a refusal by the ledger (3)."""
    assert described["retries"] == 3
    again, never = "AirflowException", "AirflowFailException"
    assert described["ends"] == {"1": again, "2": never, "3": never, "137": again}


def test_airflow_may_do_in_its_namespace_what_its_operator_does() -> None:
    objects = {found["kind"]: found for found in built("schedules/airflow")}
    rights = {kind: rule["verbs"] for rule in objects["Role"]["rules"] for kind in rule["resources"]}
    assert set(rights) == {"pods", "pods/log", "events"}
    assert {"create", "delete"} <= set(rights["pods"])
    assert objects["RoleBinding"]["roleRef"]["name"] == objects["Role"]["metadata"]["name"]
    (pod,) = operated(DAG)
    assert {found["metadata"]["namespace"] for found in objects.values()} == {pod["metadata"]["namespace"]}


@pytest.mark.engine
def test_airflow_runs_what_the_cronjob_runs(described) -> None:
    (cron,) = (found for found in built("schedules/kubernetes/in-one-pod") if found["kind"] == "CronJob")
    (container,) = containers(cron)
    assert described["image"] == container["image"]
    assert set(container["args"]) <= set(described["tries"][0])


@pytest.mark.engine
def test_the_pod_that_airflow_makes_keeps_to_the_rules(described) -> None:
    pod = described["pod"]
    newest = kubernetes_validate.latest_version().rpartition(".")[0]
    kubernetes_validate.validate(pod, newest, strict=True)
    assert complaints(pod) == []
    (read,) = operated(DAG)
    assert read["metadata"]["labels"].items() <= pod["metadata"]["labels"].items(), (
        "policies select it by them"
    )
    assert read["spec"].keys() - {"containers"} <= pod["spec"].keys()
    assert pod["spec"]["containers"][0]["image"] == read["spec"]["containers"][0]["image"]


def test_the_text_of_the_dag_says_the_same() -> None:
    """What can be seen without Airflow."""
    tree = ast.parse(DAG.read_text())
    calls = {
        node.func.id: {key.arg: key.value for key in node.keywords}
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert {"DAG", "CronTriggerTimetable", "ShoalPodOperator"} <= calls.keys()
    assert ast.unparse(calls["CronTriggerTimetable"]["interval"]) == "timedelta(days=1)"
    assert ast.unparse(calls["ShoalPodOperator"]["skip_on_exit_code"]) == "[2, 3]"
    assert ast.unparse(calls["DAG"]["catchup"]) == "False"
    assert ast.unparse(calls["DAG"]["max_active_runs"]) == "1"
    arguments = calls["ShoalPodOperator"]["arguments"]
    assert isinstance(arguments, ast.List)
    assert "f'run_id={NAME}-{{{{ ds }}}}'" in [ast.unparse(argument) for argument in arguments.elts]
