"""SIGTERM, by which schedulers end a process, and SIGHUP, by which a terminal does that is closed."""

import signal
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM or SIGHUP."""


_asked: list[bool] = []


def listen() -> None:
    """Raise `Terminated` in the main thread when SIGTERM or SIGHUP comes; `nohup` ignores SIGHUP."""
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _terminate)


def _terminate(*_: object) -> NoReturn:
    _asked.append(True)
    raise Terminated


def was_asked() -> bool:
    """Say whether one of them has come."""
    return bool(_asked)


def end_where_asked() -> None:
    """Raise `Terminated` if one of them has come.

    Python drops an exception that a signal raises while C calls back, as some imports do, and a library may
    raise another one in its place.
    """
    if _asked:
        raise Terminated
