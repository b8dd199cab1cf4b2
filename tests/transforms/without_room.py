"""A function of a forking process that has no room for another process when it ends those of a block."""

import os
import sys

from tests.transforms.attacks import attack

__all__ = ["attack"]
_fork = os.fork


def _fork_where_there_is_room() -> int:
    if sys._getframe(2).f_code.co_name == "end_children":
        raise BlockingIOError
    return _fork()


os.fork = _fork_where_there_is_room
