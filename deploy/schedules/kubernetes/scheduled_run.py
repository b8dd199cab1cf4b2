#!/usr/bin/env python
"""Run a job under the run id of its schedule: `scheduled-run JOB.yaml ...` in a pod of a CronJob.

The run id is the CronJob's name and the day before the schedule's date, in the schedule's own time zone: the
last day whose rows are all there.
Kubernetes writes that time on the Job (annotation batch.kubernetes.io/cronjob-scheduled-timestamp, stable
from version 1.32 on), and not on the Job's pods, so Kubernetes is asked for the Job. All pods of a Job thus
have the same run id, whenever they start: also after midnight, and on another node.
"""

import json
import os
import ssl
import sys
import urllib.request
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NoReturn

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
API = "https://kubernetes.default.svc"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def run_id(job: Mapping[str, Any]) -> str:
    """Return the run id of a Job's JSON, such as airports-2026-11-15 where the schedule called on 2026-11-16.

    Raises:
        ValueError: no CronJob made this Job for a time of its schedule.
    """
    metadata = job["metadata"]
    time = metadata.get("annotations", {}).get(SCHEDULED)
    owners = [
        owner["name"] for owner in metadata.get("ownerReferences", []) if owner.get("kind") == "CronJob"
    ]
    if time is None or not owners:
        raise ValueError(
            f"Job {metadata['name']} has no time of a schedule: to run it by hand, "
            "use `shoal run` with --set run_id=... and the date that is meant."
        )
    day = datetime.fromisoformat(time).date() - timedelta(days=1)
    return f"{owners[0]}-{day.isoformat()}"


def read_job(namespace: str, name: str) -> dict[str, Any]:
    """Return this pod's Job as Kubernetes has it."""
    with open(f"{ACCOUNT}/token", encoding="utf-8") as file:
        headers = {"Authorization": f"Bearer {file.read().strip()}"}
    url = f"{API}/apis/batch/v1/namespaces/{namespace}/jobs/{name}"
    trust = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt") if url.startswith("https:") else None
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
        return dict(json.load(answer))


def main() -> NoReturn:
    """Become `shoal run`; its exit code is the pod's."""
    job = read_job(os.environ["JOB_NAMESPACE"], os.environ["JOB_NAME"])
    try:
        name = run_id(job)
    except ValueError as error:
        sys.stderr.write(f"scheduled-run: {error}\n")
        sys.exit(2)
    os.execvp("shoal", ["shoal", "run", "--set", f"run_id={name}", *sys.argv[1:]])


if __name__ == "__main__":
    main()
