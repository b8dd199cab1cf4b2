"""SIGTERM, by which schedulers end a process."""

import signal
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM."""


_asked: list[bool] = []


def listen() -> None:
    """Raise `Terminated` in the main thread when SIGTERM comes."""
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(*_: object) -> NoReturn:
    _asked.append(True)
    raise Terminated


def was_asked() -> bool:
    """Say whether SIGTERM has come."""
    return bool(_asked)


def end_where_asked() -> None:
    """Raise `Terminated` if SIGTERM has come.

    Python drops an exception that a signal raises while C calls back, as some imports do, and a library may
    raise another one in its place.
    """
    if _asked:
        raise Terminated
