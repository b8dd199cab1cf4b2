"""Messages between the process that asks a function and the process that runs it; see `run_function`."""

import socket
import time

READY, DENIED, FAILED, RUN, SHARE, END = b"r", b"d", b"f", b"g", b"s", b"e"
"""On the control socket: started, no sandbox here, failed to import, run a child, run a child for many
subsamples, end it (and confirm it)."""

LENGTH = 8
"""Bytes before the rows of a subsample, which say how many bytes they are."""

PROCESS, SANDBOX = "process", "sandbox"
"""How a function is kept apart: in processes of its own, or also in namespaces of their own."""

SHARING = (
    "shoal.analyses.association:correlation",
    "shoal.analyses.association:threshold",
    "shoal.analyses.regression:linear",
)
"""Functions by which one process answers many subsamples; see `shoal.analyses.rows`."""


def exchange(asked: socket.socket, rows: bytes, most: int, deadline: float) -> bytes:
    """Send the rows and return the response of at most so many bytes; it is empty after the deadline."""
    answer = b""  # descendants may keep the socket open
    try:
        asked.settimeout(max(1e-3, deadline - time.monotonic()))
        asked.sendall(len(rows).to_bytes(LENGTH))
        asked.sendall(rows)
        while len(answer) < most:
            asked.settimeout(max(1e-3, deadline - time.monotonic()))
            part = asked.recv(most - len(answer))
            if not part:
                return answer
            answer += part
    except OSError:
        return b""
    return answer


def blocking_pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets that wait, whatever default timeout the process has set for sockets.

    A default timeout makes new sockets non-blocking, and so they would stay in the process that is handed
    one of them. Beam sets one where it looks for credentials of Google Cloud.
    """
    pair = socket.socketpair()
    for end in pair:
        end.setblocking(True)
    return pair


def received(asked: socket.socket, length: int) -> bytearray:
    """Return the next bytes of a socket.

    They are waited for in one call: in how many pieces they come must not show in what memory is free.
    """
    content = bytearray(length)
    left = memoryview(content)
    while left:
        size = asked.recv_into(left, 0, socket.MSG_WAITALL)
        if not size:
            raise EOFError("the other end is closed")
        left = left[size:]
    return content
