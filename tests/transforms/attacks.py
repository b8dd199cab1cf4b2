"""Functions that misbehave: on the subsample with the secret row, x = 1, or on every one."""

import ctypes
import os
import re
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

SECRET = 1.0
SEEN: list[float] = []


def mean(rows: pa.Table) -> list[float]:
    return [float(rows["x"].to_numpy().mean())]


def mean_sleepily(rows: pa.Table) -> list[float]:
    time.sleep(0.6)
    return mean(rows)


def mean_slowly(rows: pa.Table, waits: float, computes: float) -> list[float]:
    time.sleep(waits)
    began = time.process_time()
    while time.process_time() - began < computes:
        pass
    return mean(rows)


def stops_its_clock(rows: pa.Table) -> list[float]:
    signal.setitimer(signal.ITIMER_PROF, 0)
    return loops(rows)


def raises(rows: pa.Table) -> list[float]:
    raise RuntimeError(f"secret row {rows.to_pylist()}")


def sleeps(rows: pa.Table) -> list[float]:
    time.sleep(1000)
    return [9.0]


def loops(rows: pa.Table) -> list[float]:
    while True:
        pass


def allocates(rows: pa.Table) -> list[float]:
    taken = []
    while True:
        taken.append(np.ones(1 << 20))


def crashes(rows: pa.Table) -> list[float]:
    ctypes.string_at(0)
    return [9.0]


def kills_itself(rows: pa.Table) -> list[float]:
    os.kill(os.getpid(), signal.SIGKILL)
    return [9.0]


def kills_its_parent(rows: pa.Table) -> list[float]:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)
    return [9.0]


def stops_its_parent(rows: pa.Table) -> list[float]:
    os.kill(os.getppid(), signal.SIGSTOP)
    return [float("nan")]


def exits(rows: pa.Table) -> list[float]:
    sys.exit(0)


def closes_everything(rows: pa.Table) -> list[float]:
    os.closerange(0, 1 << 16)
    return [9.0]


def prints(rows: pa.Table) -> list[float]:
    for stream in (sys.stdout, sys.stderr):
        print("secret", rows.to_pylist(), file=stream, flush=True)
    os.write(1, b"secret")
    os.write(2, b"secret")
    return [float("nan")]


def forks(rows: pa.Table) -> list[float]:
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.setsid()
            time.sleep(1000)
    return [float("nan")]


def fills_the_disk(rows: pa.Table) -> list[float]:
    with open("large", "wb") as file:
        while True:
            file.write(bytes(1 << 22))


def locks_its_folder(rows: pa.Table) -> list[float]:
    Path("deep/er").mkdir(parents=True)
    Path("deep/er/secret").write_text("1")
    os.chmod("deep", 0)
    return [float("nan")]


def digs_deep(rows: pa.Table) -> list[float]:
    for _ in range(3000):
        os.mkdir("deeper")
        os.chdir("deeper")
    return [float("nan")]


def removes_its_home(rows: pa.Table) -> list[float]:
    shutil.rmtree(Path.cwd().parent)
    return [float("nan")]


def writes_too_few_bytes(rows: pa.Table) -> list[float]:
    socket.socket(fileno=3).sendall(b"secret")
    os._exit(0)


def answers_words(rows: pa.Table) -> object:
    return "secret"


def core_limits(rows: pa.Table) -> list[float]:
    return [float(max(resource.getrlimit(resource.RLIMIT_CORE)))]


def answers_too_much(rows: pa.Table) -> object:
    return [0.0, 1.0]


def answers_nothing(rows: pa.Table) -> object:
    return None


def answers_infinity(rows: pa.Table) -> object:
    return [float("inf")]


def answers_a_table(rows: pa.Table) -> object:
    return rows


ATTACKS = (
    *(raises, sleeps, loops, allocates, crashes, kills_itself, kills_its_parent, stops_its_parent, exits),
    *(
        closes_everything,
        prints,
        forks,
        fills_the_disk,
        locks_its_folder,
        digs_deep,
        removes_its_home,
        writes_too_few_bytes,
        answers_words,
    ),
    *(answers_too_much, answers_nothing, answers_infinity, answers_a_table),
)


def attack(rows: pa.Table, how: str) -> object:
    """Attack by the function `how` where the secret row is; and keep it in every way that comes to mind."""
    if SECRET not in rows["x"].to_pylist():
        return mean(rows)
    return globals()[how](rows)


def first_row(rows: pa.Table) -> list[float]:
    return [rows["x"][0].as_py()]


def remembers(rows: pa.Table) -> list[float]:
    """Answer 4 where anything of an earlier subsample is left: in memory, in files or in the environment."""
    kept = [Path("kept"), Path(tempfile.gettempdir()) / "kept", Path.home() / "kept"]
    left = [*SEEN, *(path for path in kept if path.exists()), *([1] if "KEPT" in os.environ else [])]
    SEEN.append(rows["x"][0].as_py())
    mean.__dict__["kept"] = rows
    os.environ["KEPT"] = str(rows["x"][0])
    for path in kept:
        path.write_text("kept")
    return [4.0 if left else 0.0]


CALLS: list[int] = []


def calls_of_the_process(rows: pa.Table) -> list[float]:
    """Answer how many subsamples this process was asked for, with this one."""
    CALLS.append(os.getpid())
    return [float(len(CALLS) if set(CALLS) == {os.getpid()} else 4)]


def searches_memory(rows: pa.Table, bits: int) -> list[float]:
    """Answer 4 where a float64 of these bits, plus one, is anywhere in the memory of the process.

    What is searched for is written apart, byte by byte, so that it does not find itself.
    """
    found = False
    secret = re.compile(b"".join(b"\\x%02x" % (bits + 1 >> 8 * i & 255) for i in range(8)))
    with open("/proc/self/maps", encoding="ascii") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            place, access, *_ = line.split()
            start, end = (int(part, 16) for part in place.split("-"))
            if access[:2] == "rw":
                memory.seek(start)
                content = memory.read(end - start)
                found |= secret.search(content) is not None
                del content
    return [4.0 if found else 0.0]


def open_files(rows: pa.Table) -> list[float]:
    return [len(os.listdir("/proc/self/fd")) - 1]  # the listing itself opens one


def environment(rows: pa.Table) -> list[float]:
    return [4.0 if "SHOAL_SECRET" in os.environ else 0.0]


def bytecode(rows: pa.Table) -> list[float]:
    """Answer 4 where an earlier subsample imported a module that nobody else does."""
    import tests.transforms.imported_late as late

    return [4.0 if Path(late.__cached__).exists() else 0.0]


def takes(rows: pa.Table, megabytes: int) -> list[float]:
    return [float(np.ones(megabytes << 17).sum() > 0)]


def is_untouched(rows: pa.Table) -> list[float]:
    """Answer 1 where nulls and types are as they were written."""
    same = rows.schema.field("whole").type == pa.int32() and rows["x"].null_count == 1
    return [1.0 if same and rows["whole"].to_pylist() == [7, None, 9] else 0.0]


def center(rows: pa.Table) -> list[float]:
    values = np.stack([rows[name].to_numpy() for name in ("x", "y")]).astype(float)
    return list(np.median(values[:, np.isfinite(values).all(axis=0)], axis=1))


def chance(rows: pa.Table) -> list[float]:
    return [int.from_bytes(os.urandom(4)) / 2**32, 0.0]


def known_mean(rows: pa.Table) -> float:
    return float(rows["x"].drop_null().to_numpy().mean())
