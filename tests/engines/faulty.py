"""A proxy before an HTTP service that refuses, cuts and loses what it is told to pass on.

It runs in a process of its own, as `python -m tests.engines.faulty TARGET FAULT`: a client that holds the
interpreter's lock while it waits would keep a proxy in its own process from answering.
"""

import http.client
import itertools
import subprocess
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.engines.fetch import ROOT

Fault = int | str | None
"""A status to answer with; "cut" hangs up amid the request, "lose" before the answer, "break" amid it; "flip"
changes a byte of the answer; None passes it."""

UPLOAD, DOWNLOAD, OTHER = "upload", "download", "other"


def refuse_some(number: int, what: str) -> Fault:
    """Answer some requests with 503 and others with 429."""
    return 503 if number % 11 == 0 else 429 if number % 13 == 1 else None


def cut_uploads(number: int, what: str) -> Fault:
    """Break every other upload off halfway."""
    return "cut" if what == UPLOAD and number % 2 == 0 else None


def lose_answers(number: int, what: str) -> Fault:
    """Pass every other upload on, but not its answer: the writer never hears that it was made."""
    return "lose" if what == UPLOAD and number % 2 == 0 else None


def lose_first_answers(number: int, what: str) -> Fault:
    """Pass every upload on, but not its answer, the first time."""
    return "lose" if what == UPLOAD and next(_uploads) % 2 == 0 else None


def break_downloads(number: int, what: str) -> Fault:
    """Break every other download off halfway."""
    return "break" if what == DOWNLOAD and next(_downloads) % 2 == 0 else None


def flip_downloads(number: int, what: str) -> Fault:
    """Change a byte of every other download."""
    return "flip" if what == DOWNLOAD and next(_downloads) % 2 == 0 else None


def flip_all_downloads(number: int, what: str) -> Fault:
    """Change a byte of every download."""
    return "flip" if what == DOWNLOAD else None


def deny_401(number: int, what: str) -> Fault:
    """Know no one."""
    return 401


def deny_403(number: int, what: str) -> Fault:
    """Allow nothing."""
    return 403


_uploads, _downloads = itertools.count(), itertools.count()

FAULTS = {
    fault.__name__: fault
    for fault in (
        refuse_some,
        cut_uploads,
        lose_answers,
        lose_first_answers,
        break_downloads,
        flip_downloads,
        flip_all_downloads,
        deny_401,
        deny_403,
    )
}


class FaultyProxy:
    """Run the proxy before `target`, with a fault of `FAULTS`, while the context lasts."""

    def __init__(self, target: str, fault: str) -> None:
        self._command = [sys.executable, "-m", "tests.engines.faulty", target, fault]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.url = self._process.stdout.readline().strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def faults(self) -> int:
        """Return how many requests met a fault."""
        with urllib.request.urlopen(f"{self.url}/faults") as answer:
            return int(answer.read())


class Handler(BaseHTTPRequestHandler):
    """Pass a request on, unless there is a fault."""

    protocol_version = "HTTP/1.1"
    host, fault = "", staticmethod(refuse_some)
    numbers, faults, breaks = itertools.count(), 0, False

    def handle_any(self) -> None:
        """Handle a request of any method."""
        if self.path == "/faults":
            return self.answer(200, str(Handler.faults).encode(), {})
        kind = self.fault(next(self.numbers), self.what())
        Handler.faults += kind is not None
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length // 2 if kind == "cut" else length)
        if isinstance(kind, int):
            return self.answer(kind, b'{"error": {"code": %d, "message": "injected"}}' % kind, {})
        if kind != "cut":
            passed = http.client.HTTPConnection(self.host, timeout=30)
            passed.request(self.command, self.path, body, dict(self.headers))
            answer = passed.getresponse()
            data = answer.read()
        if kind in ("cut", "lose"):
            self.close_connection = True
            return None
        # answers tell from where to download; the client leaves a refused download's connection open
        if self.what() == OTHER and "download" in self.fault.__name__:
            data = data.replace(self.host.encode(), self.headers["Host"].encode())
        if kind == "flip" and data:
            data = bytes([data[0] ^ 1]) + data[1:]
        self.breaks = kind == "break"
        return self.answer(answer.status, data, dict(answer.getheaders()))

    def what(self) -> str:
        """Say what the client wants."""
        if "x-amz-date" in self.headers or "x-ms-version" in self.headers:
            lists = "list-type=" in self.path or "comp=list" in self.path
            return OTHER if lists else {"PUT": UPLOAD, "GET": DOWNLOAD}.get(self.command, OTHER)
        if self.command in ("POST", "PUT") and "upload" in self.path:
            return UPLOAD
        return DOWNLOAD if self.command == "GET" and "alt=media" in self.path else OTHER

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = handle_any

    def answer(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        """Send an answer with its length, whatever was said of it before."""
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        told = {name.lower(): value for name, value in headers.items()}
        length = told.get("content-length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if self.breaks else data)
            self.close_connection |= self.breaks

    def log_message(self, *arguments: object) -> None:
        """Keep silent."""


def main() -> None:
    """Serve until killed; the first line of output is the proxy's URL."""
    Handler.host, Handler.fault = urlsplit(sys.argv[1]).netloc, staticmethod(FAULTS[sys.argv[2]])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
