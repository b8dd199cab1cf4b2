"""The files from which a job takes the public keys of its groups."""

from pipelines.job.groups import PRIVATE
from pipelines.job.job import Job
from pipelines.job.questions import QUESTIONS, QuestionsJob


def key_files(job: Job | QuestionsJob) -> dict[str, str]:
    """Return the files of public keys, each by the field of the job that names it. None is read."""
    asked = {"": job}
    if isinstance(job, QuestionsJob):
        asked = {f"{QUESTIONS}.{name}.": own for name, own in job.jobs.items()}
    groups = {field: getattr(own, "group_by", None) for field, own in asked.items()}
    keys = {f"{field}group_by.keys": own.keys for field, own in groups.items() if own is not None}
    return {field: file for field, file in keys.items() if isinstance(file, str) and file != PRIVATE}
