"""Act as on macOS: import every module, plan every task, run one, and ask for what only Linux has.

What the system lacks is removed after the packages of others were imported, which have builds of their own
for macOS: attributes of `os`, `signal` and `socket`, and all files below /proc. It prints what it found as
JSON.
"""

import json
import os
import pkgutil
import signal
import socket
import sys
import tempfile
from importlib import import_module
from typing import Any

from sklearn.utils.parallel import _get_threadpool_controller

OTHERS = (
    *("apache_beam", "dp_accounting.pld.privacy_loss_distribution", "fastavro", "jinja2", "obstore"),
    *("pandas", "polars", "pyarrow.compute", "pyarrow.csv", "pyarrow.dataset", "pyarrow.json"),
    *("pyarrow.parquet", "rich"),
    *("scipy.optimize", "scipy.spatial", "scipy.sparse.csgraph", "scipy.special", "scipy.stats", "typer"),
    *("sklearn.base", "sklearn.utils.validation", "vl_convert", "yaml", "multiprocessing.context"),
)
LACKING: dict[Any, tuple[str, ...]] = {
    os: (
        *("O_DIRECT", "O_PATH", "O_TMPFILE", "copy_file_range", "eventfd", "getrandom", "getresuid"),
        *("getxattr", "listxattr", "memfd_create", "pidfd_open", "posix_fadvise", "posix_fallocate"),
        *("removexattr", "sched_getaffinity", "sched_setaffinity", "setns", "setxattr", "splice", "unshare"),
    ),
    signal: ("SIGPOLL", "SIGPWR", "SIGRTMAX", "SIGRTMIN", "SIGSTKFLT", "sigtimedwait", "sigwaitinfo"),
    socket: ("AF_ALG", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "SOCK_CLOEXEC", "SOCK_NONBLOCK"),
}
PACKAGES = ("core", "transforms", "pipelines", "shoal")
PROGRAMS = {"shoal.__main__", "shoal.deployed", "transforms.sandbox"}
"""Modules that act when they are imported, or that are only a program of Linux."""


def become_macos() -> None:
    for module, names in LACKING.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    sys.platform = "darwin"
    tempfile._O_TMPFILE_WORKS = False  # it looked when it was imported

    def without_proc(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc"):
            raise FileNotFoundError(2, "macOS has no /proc", str(arguments[0]))

    sys.addaudithook(without_proc)


def import_all() -> list[str]:
    """Import every module, and return their names."""
    names = [
        found.name
        for package in map(import_module, PACKAGES)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if found.name not in PROGRAMS
    ]
    for name in names:
        import_module(name)
    return names


def told_by(call: Any, *given: Any) -> str:
    """Return the sentence of a call that must fail."""
    from core.errors import ShoalError

    try:
        call(*given)
    except ShoalError as error:
        return str(error)
    return "it did not fail"


def main(jobs: dict[str, Any], run: dict[str, Any], function: str) -> dict[str, Any]:
    """Return what was imported and planned, what a run released, and the sentences about what is Linux's.

    Args:
        jobs: a job of each task.
        run: a job to run, with its input and output.
        function: the name of a job whose function cannot run.
    """
    for name in OTHERS:
        import_module(name)
    _get_threadpool_controller()  # which scikit-learn keeps, and makes from /proc on Linux
    become_macos()
    imported = import_all()

    import shoal
    from pipelines.job.job import check_raw
    from pipelines.run.cost import predict
    from pipelines.run.run import prepare_run

    plans = {name: shoal.plan(job) for name, job in jobs.items()}
    return {
        "imported": imported,
        "planned": {name: plan.values["method"] for name, plan in plans.items()},
        "refusals": {name: plan.refusals for name, plan in plans.items()},
        "released": shoal.run(run).values["outcome"],
        "function": told_by(prepare_run, check_raw(jobs[function])),
        "cost": told_by(predict, check_raw(run)),
    }


if __name__ == "__main__":
    print(json.dumps(main(*json.loads(sys.argv[1]))))
