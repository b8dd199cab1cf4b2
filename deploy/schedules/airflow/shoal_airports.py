"""An Airflow DAG: a job every Monday at 03:00 UTC, in one pod, by the embedded runner.

It needs Airflow 3 or later and apache-airflow-providers-cncf-kubernetes.

The run id is the name and the day before, the last complete one, such as airports-2026-11-15. All tries of a
task, and a task that is cleared and run again, have the same one: one charge, one release. A run that is
started by hand needs a logical date, that of its rows: airflow dags trigger --logical-date 2026-11-15
shoal_airports. Without one it has no run id, and fails before anything is read or charged.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import DAG, CronTriggerTimetable
from kubernetes.client import models as k8s

NAME = "airports"


class ShoalPodOperator(KubernetesPodOperator):
    """A pod that is not tried again after an exit code of `skip_on_exit_code`; its task fails."""

    def cleanup(self, *args: Any, **kwargs: Any) -> None:
        """Turn what would skip the task into a failure that uses up all tries."""
        try:
            super().cleanup(*args, **kwargs)
        except AirflowSkipException:
            raise AirflowFailException(
                "A wrong job (exit code 2) or a refusal by the ledger (3) is not tried again."
            ) from None


with DAG(
    dag_id=f"shoal_{NAME}",
    # Not a plain cron text: with it, a setting decides whether the date is that of the run or a week earlier.
    # The interval is the day before, whose date is that of the run.
    schedule=CronTriggerTimetable("0 3 * * 1", timezone="UTC", interval=timedelta(days=1)),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    # Runs of the past would each spend budget on today's rows.
    catchup=False,
    max_active_runs=1,
    tags=["shoal"],
) as dag:
    ShoalPodOperator(
        task_id="run",
        name=f"shoal-{NAME}",
        namespace="shoal",
        image="europe-west4-docker.pkg.dev/my-project/shoal/shoal:my-tag@my-image-digest",
        cmds=["shoal"],
        arguments=[
            "run",
            f"gs://my-project-shoal-jobs/{NAME}.yaml",
            "--set",
            f"run_id={NAME}-{{{{ ds }}}}",
            "--json-logs",
        ],
        retries=3,
        skip_on_exit_code=[2, 3],
        retry_delay=timedelta(minutes=5),
        execution_timeout=timedelta(hours=12),
        # Also where Airflow is gone by then.
        active_deadline_seconds=12 * 60 * 60,
        service_account_name="shoal",
        automount_service_account_token=False,
        labels={"app": "shoal", "component": "run"},
        container_resources=k8s.V1ResourceRequirements(
            requests={"cpu": "2", "memory": "4Gi", "ephemeral-storage": "4352Mi"},
            limits={"memory": "4Gi", "ephemeral-storage": "4352Mi"},
        ),
        security_context=k8s.V1PodSecurityContext(
            run_as_non_root=True,
            run_as_user=10001,
            run_as_group=10001,
            seccomp_profile=k8s.V1SeccompProfile(type="RuntimeDefault"),
        ),
        container_security_context=k8s.V1SecurityContext(
            allow_privilege_escalation=False,
            read_only_root_filesystem=True,
            capabilities=k8s.V1Capabilities(drop=["ALL"]),
        ),
        volumes=[k8s.V1Volume(name="scratch", empty_dir=k8s.V1EmptyDirVolumeSource(size_limit="4Gi"))],
        volume_mounts=[k8s.V1VolumeMount(name="scratch", mount_path="/tmp")],
        on_finish_action="delete_succeeded_pod",
    )
