"""Run `shoal` and die at a chosen moment, as by kill -9: `python -m tests.engines.crash MOMENT ARGUMENTS...`.

Embedded workers are this process; on an engine, only the submitting process dies.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from apache_beam.runners.portability.portable_runner import PipelineResult

from pipelines.cli import app
from pipelines.release import RELEASE, REPORT
from pipelines.run import delivery, run
from pipelines.storage.local_folder import LocalFolder
from pipelines.storage.object_folder import ObjectFolder


def die(*arguments: Any) -> None:
    """End as a crash does: nothing is caught, closed or cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def around(owner: Any, name: str, when: str, applies: Callable[..., bool] = lambda *_: True) -> None:
    """Die `when` ("before" or "after") `owner.name` is called, if `applies` to its arguments."""
    original = getattr(owner, name)

    def crashing(*arguments: Any, **named: Any) -> Any:
        if applies(*arguments) and when == "before":
            die()
        result = original(*arguments, **named)
        if applies(*arguments):
            die()
        return result

    setattr(owner, name, crashing)


def writes(name: str) -> Callable[..., bool]:
    """Say of the arguments of a folder's method whether they name this file."""
    return lambda folder, file, *data: file == name


def arrange(moment: str) -> None:
    """Make this process die at a moment of `MOMENTS`."""
    when, what = moment.split("_", 1)
    if what in ("create", "report"):
        for folder in (LocalFolder, ObjectFolder):
            around(folder, "create", when, writes(RELEASE if what == "create" else REPORT))
    elif what == "link":
        around(os, "link", when, lambda source, target: target.endswith(RELEASE))
    elif what == "wait":
        around(PipelineResult, "wait_until_finish", when)
    elif what == "noise":
        around(run.SecureNoise, "laplace", when)
    else:
        name = {"charge": "charge_run", "mark": "mark_released", "run": "submit"}[what]
        around(delivery if what == "mark" else run, name, when)


MOMENTS = (
    "before_charge",
    "after_charge",
    "before_run",
    "before_noise",
    "after_noise",
    "before_create",
    "before_link",
    "after_link",
    "after_create",
    "before_mark",
    "after_mark",
    "before_report",
    "after_report",
    "after_run",
)


if __name__ == "__main__":
    arrange(sys.argv[1])
    app(sys.argv[2:])
