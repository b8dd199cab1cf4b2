"""Run a job in forks of one warmed process, each killed at a chosen moment: `python -m tests.engines.kills`.

It reads an order a line, as JSON, and answers with the exit code of the run, or minus the signal that ended
it. Everything is imported before the first fork, and the process itself never starts a thread (that of the
memory allocator minds forks by itself), so a fork is as good as a new interpreter, and seconds faster.

An order: `job` is the path of a job file. `beam` says whether the real pipeline runs, or the same rounds in
memory. `named` makes the file system refuse unnamed files. `call`, `request` or `seconds` say when to die:
before the call to the system of that number, after the request to object storage of that number, or after
that time.
"""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import obstore
import requests

from core.rounds import run_in_memory
from pipelines.job.job import load_job
from pipelines.joint_plan import planned_as
from pipelines.run import delivery, joint_run, run
from pipelines.run.delivery import (
    encoded_part,
    write_answers,
    write_one_answer,
    write_one_part,
    write_table,
    write_whole,
)
from pipelines.storage import google_folder, store_folder  # noqa: F401  (imported before the forks)
from pipelines.tasks import TASKS
from tests.engines.fetch import ROOT
from transforms import whole_file
from transforms.read_blocks import read_in_memory

CALLS = ("open", "mkdir", "makedirs", "fsync", "link", "rename", "unlink", "rmdir", "fchmod", "fchown")


class Forks:
    """Take orders while the context lasts.

    Args:
        folder: where the log goes.
        environment: variables to add.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._log, self._environment = folder / "kills.log", environment

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.engines.kills"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT,
                env=os.environ | {"OMP_NUM_THREADS": "1"} | dict(self._environment),
            )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def run(self, job: str, **order: Any) -> bool:
        """Run a job; return whether it was killed.

        Raises:
            RuntimeError: it failed otherwise.
        """
        self._process.stdin.write(json.dumps({"job": job, **order}) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        if code not in (0, -signal.SIGKILL):
            raise RuntimeError(f"{order}: exit code {code}\n{self._log.read_text()[-3000:]}")
        return code != 0


def count_calls(act: Callable[[], object]) -> None:
    """Call `act` before every call to the system by which files are written, and amid every write."""

    def before(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def acting(*arguments: Any, **named: Any) -> Any:
            act()
            return original(*arguments, **named)

        setattr(owner, name, acting)

    writes = whole_file._write

    def write(file: int, data: bytes) -> None:
        os.write(file, data[: len(data) // 2])
        act()
        writes(file, data[len(data) // 2 :])

    whole_file._write = write
    for name in CALLS:
        before(os, name)
    before(fcntl, "flock")


def count_requests(act: Callable[[], object]) -> None:
    """Call `act` after every HTTP request, when it has been heard: the answer never arrives."""
    sends = requests.Session.send

    def send(*arguments: Any, **named: Any) -> Any:
        answer = sends(*arguments, **named)
        act()
        return answer

    requests.Session.send = send
    for name in ("get", "head", "list", "put"):
        after(name, act)


def after(name: str, act: Callable[[], object]) -> None:
    """Call `act` after a function of obstore."""
    asks = getattr(obstore, name)

    def asking(*arguments: Any, **named: Any) -> Any:
        answer = asks(*arguments, **named)
        act()
        return answer

    setattr(obstore, name, asking)


def die_at(number: int) -> Callable[[], None]:
    """Return what ends this process, as a crash does, when it is called for the `number`th time."""
    left = [number]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def refuse_unnamed() -> None:
    """Be a file system without unnamed files."""
    opens = os.open

    def refusing(path: str, flags: int, *arguments: int, **named: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no unnamed files here")
        return opens(path, flags, *arguments, **named)

    os.open = refusing


def run_rounds_in_memory(build: Any, left: str, started: Any) -> bool:
    """Stand for `submit`: draw with the plan's own rounds, and write as the last step does."""
    prepared, target, rounds = build.args
    if isinstance(prepared, joint_run.PreparedQuestions):
        write_questions_in_memory(prepared, target, rounds)
        return True
    job, plan = prepared.job, prepared.plan
    blocks = read_in_memory(prepared.source, job.grid)
    draft, attempt = run.draft_release(job, plan), run.attempt_of(prepared)
    if attempt is None:
        state = run_in_memory(rounds, blocks, plan.start, run.SecureNoise())
        write_whole(state, draft, job.grid, target)
        return True
    (step,) = rounds
    whole = reduce(lambda a, b: a + b, (step.summarize(block, plan.start) for block in blocks))
    parts = []
    for number, shard in enumerate(whole.split(step.parts)):
        state = step.release_part(number, shard, plan.start, run.SecureNoise())
        parts.append(write_one_part(encoded_part(draft, job.grid, number, state), attempt, target))
    write_table(parts, target)
    return True


def write_questions_in_memory(prepared: Any, target: Any, strands: Any) -> None:
    """Draw the answers of several questions, and write each as the pipeline does."""
    draft, answers = joint_run.draft_joint_release(prepared.job, prepared.plan), []
    for number, (name, question) in enumerate(prepared.job.jobs.items()):
        blocks = read_in_memory(prepared.sources[name], question.grid)
        state = run_in_memory(strands[number].rounds, blocks, strands[number].start, run.SecureNoise())
        answers.append(write_one_answer((number, state), draft, target))
    write_answers(answers, draft, target)


def carry_out(order: Mapping[str, Any]) -> None:
    """Run the order's job in this process, which is a fork."""
    os.umask(0o022)
    if order.get("named"):
        refuse_unnamed()
    os.fsync = lambda file: None  # what is killed is a process, and not the machine
    if not order.get("beam"):
        run.submit = run_rounds_in_memory
        run.check_options = joint_run.check_options = lambda *_: None
        # a template takes longer than all the rest
        delivery.report_page = lambda folder, release: json.dumps(release).encode()
    if "call" in order:
        count_calls(die_at(order["call"]))
    if "request" in order:
        count_requests(die_at(order["request"]))
    run.run_job(load_job(order["job"], []))


def fork(order: Mapping[str, Any]) -> int:
    """Carry an order out in a fork; return its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            carry_out(order)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if "seconds" in order:
        time.sleep(order["seconds"])
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Carry out orders until there are no more."""
    for line in sys.stdin:
        order = json.loads(line)
        job = load_job(order["job"], [])
        for each in getattr(job, "jobs", {"": job}).values():
            _ = TASKS[each.task].answers  # imports what the task needs
        planned_as(job)  # so do plans, and accountants remember what they computed
        if threading.active_count() > 1:
            raise RuntimeError("a thread was started before a fork")
        sys.stdout.write(f"{fork(order)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
