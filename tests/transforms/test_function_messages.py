"""Answers as a socket brings them: in pieces, too slowly, or not to the end."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from transforms.function_messages import LENGTH, blocking_pair, exchange, received


@contextmanager
def answering(pieces: list[bytes], pause: float) -> Iterator[socket.socket]:
    """Yield a socket whose other end takes rows, sends pieces with a pause after each, and closes."""
    asked, other = blocking_pair()

    def answer() -> None:
        with other, suppress(OSError):  # nobody waits any more
            received(other, int.from_bytes(received(other, LENGTH)))
            for piece in pieces:
                other.sendall(piece)
                time.sleep(pause)

    thread = Thread(target=answer)
    thread.start()
    with asked:
        yield asked
    thread.join()


@pytest.mark.parametrize("pieces", [[b"abcd"], [b"a", b"bc", b"d"], [b"ab", b"cdef"]])
def test_an_answer_may_come_in_pieces(pieces: list[bytes]) -> None:
    with answering(pieces, 0.05) as asked:
        assert exchange(asked, b"rows", 4, time.monotonic() + 60) == b"abcd"


def test_what_was_sent_before_the_end_is_returned() -> None:
    with answering([b"a", b"b"], 0.05) as asked:
        assert exchange(asked, b"rows", 4, time.monotonic() + 60) == b"ab"


def test_pieces_do_not_put_off_the_deadline() -> None:
    """Each comes within the time that was left at first, but not all of them."""
    with answering([b"a"] * 20, 0.1) as asked:
        assert exchange(asked, b"rows", 20, time.monotonic() + 0.5) == b""
