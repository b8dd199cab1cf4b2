"""Tables that a job takes for public, such as files of keys, are no rows of its input."""

import os
from collections.abc import Sequence
from contextlib import suppress

from pipelines.errors import JobError
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


def check_public(job: Job | QuestionsJob, copied: Sequence[str | os.PathLike[str]] = ()) -> None:
    """Check that no table that must be public is of the input: public keys are released as they are.

    Args:
        job: the job.
        copied: local files of which the input may have copies.

    Raises:
        JobError: one is.
        InputError: the input cannot be listed.
    """
    join = {} if job.input.join is None else {"input.join.path": job.input.join.path}
    for name, place in {**join, **key_files(job)}.items():
        if _is_of_input(job.input.path, place, copied):
            raise JobError(
                f"{name} is {place}: it lies in input.path {job.input.path}, but it must be public, and rows "
                "of the input are not; give a file outside the input."
            )


def check_keys(job: Job | QuestionsJob) -> None:
    """Check that public keys are not rows of the input, before they are read; the input need not be there.

    Raises:
        JobError: they are.
    """
    if key_files(job):
        from transforms.list_files import InputError  # imports Arrow, as reading keys does

        with suppress(InputError):
            check_public(job)


def _is_of_input(path: str, place: str, copied: Sequence[str | os.PathLike[str]]) -> bool:
    """Return whether a file lies in the input, or is one of its files by another name."""
    from transforms.list_files import lies_within, list_files
    from transforms.schemes import LOCAL, split_scheme

    if lies_within(path, place):
        return True
    if split_scheme(path)[0] != LOCAL or not os.path.isfile(place):
        return False
    files = [*copied, *(each.path for each in list_files(path))]
    return any(_is_same(each, place) for each in files)


def _is_same(file: str | os.PathLike[str], place: str) -> bool:
    """Return whether two paths lead to one file. One that is gone since it was listed is no other file."""
    try:
        return os.path.samefile(file, place)
    except FileNotFoundError:
        return False
