"""Whatever a function does, its answer is a grid point or None, and nothing reaches the next subsample."""

import errno
import gc
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.domain import Grid
from tests.transforms.attacks import ATTACKS
from transforms.function_memory import use_huge_pages
from transforms.function_messages import PROCESS, SANDBOX
from transforms.function_process import _renew, remove
from transforms.run_function import Function, FunctionError, FunctionRunner
from transforms.split_units import stream

LINE = Grid((0.0,), (4.0,), 2.0**-4)

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="limits of memory and of leftovers are Linux's"
)


def rows_of(*x: float) -> bytes:
    return stream(pa.record_batch({"x": np.array(x)}))


HARMLESS, SECRET = rows_of(0.25, 0.75), rows_of(0.25, 1.0)

Make = Callable[..., FunctionRunner]


@pytest.fixture(params=["process", "sandbox"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Make runners; whatever holds for processes must hold in a sandbox."""
    runners = []

    def start(name: str, seconds: float = 20.0, megabytes: int = 300, **more: object) -> FunctionRunner:
        tell = bool(more.pop("tell", False))
        place = name if ":" in name else f"attacks:{name}"
        limits = {"seconds": seconds, "megabytes": megabytes, "isolation": request.param}
        function = Function(f"tests.transforms.{place}", LINE, **limits, **more)
        runners.append(FunctionRunner(function, report_errors=tell))
        return runners[-1]

    yield start
    for runner in runners:
        runner.close()


def children(runner: FunctionRunner) -> str:
    """Return the children of the process that forks, which in a sandbox is a child of the one that enters."""

    def of(pid: int) -> str:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text()

    pid = runner._process.pid
    return of(int(of(pid))) if runner.function.isolation == SANDBOX else of(pid)


@pytest.mark.parametrize("how", [f.__name__ for f in ATTACKS])
def test_an_attack_has_no_answer_and_touches_no_other(make: Make, how: str, capfd, monkeypatch) -> None:
    monkeypatch.setattr("transforms.run_function._END", 2.0)
    monkeypatch.setattr("transforms.run_function._LEAST_PATIENCE", 2.0)
    monkeypatch.setattr("transforms.run_function._PATIENCE", 2.0)
    waits = how in ("sleeps", "loops", "kills_its_parent")
    runner = make("attack", seconds=1.0 if waits else 20.0, megabytes=60, arguments={"how": how})
    before = runner.run(HARMLESS)
    assert before.tolist() == [8]
    began = time.monotonic()
    assert runner.run(SECRET) is None
    assert time.monotonic() - began < 30
    assert runner.run(HARMLESS).tolist() == before.tolist()
    assert children(runner) == ""
    assert runner.run(SECRET) is None
    runner.close()
    assert not Path(runner._folder).exists()
    said = capfd.readouterr()
    assert said.out == said.err == ""


def test_a_process_that_must_be_replaced_takes_no_time_of_the_next(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing takes longer than a subsample may, and the next one answers all the same."""
    monkeypatch.setattr("transforms.run_function._END", 0.5)
    monkeypatch.setattr("transforms.run_function._LEAST_PATIENCE", 1.0)
    monkeypatch.setattr("transforms.run_function._PATIENCE", 1.0)
    runner = make("attack", seconds=1.0, arguments={"how": "kills_its_parent"})
    start = runner._start

    def slowly() -> None:
        start()
        time.sleep(1.5)

    monkeypatch.setattr(runner, "_start", slowly)
    assert runner.run(SECRET) is None
    assert runner.run(HARMLESS).tolist() == [8]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_a_locked_folder_is_removed_without_being_root() -> None:
    folder = tempfile.mkdtemp()
    (Path(folder) / "locked" / "in").mkdir(parents=True)
    kept = tempfile.mkdtemp()
    (Path(folder) / "link").symlink_to(kept)
    for path in [Path(folder), *sorted(Path(folder).rglob("*"))]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    os.chmod(Path(folder) / "locked" / "in", 0)
    os.chmod(Path(folder) / "locked", 0)
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            remove(folder)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert not Path(folder).exists()
    assert Path(kept).exists()
    os.rmdir(kept)


def test_a_folder_that_became_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o500)
    (tmp_path / "folder").symlink_to(kept)
    remove(str(tmp_path / "folder"))
    assert not (tmp_path / "folder").is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o500


def test_a_home_is_renewed_where_a_link_is_without_a_look_at_what_it_leads_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (kept / "home").mkdir(parents=True)
    (tmp_path / "folder").symlink_to(kept)
    _renew(str(tmp_path / "folder"))
    assert (kept / "home").is_dir()
    assert not (tmp_path / "folder").is_symlink()
    assert (tmp_path / "folder" / "home").is_dir()


@pytest.mark.parametrize("name", ["remembers", "open_files", "environment", "bytecode"])
def test_nothing_is_left_for_the_next(make: Make, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_SECRET", "1")
    late = Path(__file__).with_name("imported_late.py")
    Path(cache_from_source(str(late))).unlink(missing_ok=True)
    with tempfile.TemporaryFile():  # an open file of the worker's
        runner = make(name)
        answers = [runner.run(HARMLESS).tolist() for _ in range(3)]
    # 0, 1 and 2 are nowhere, 3 is where the rows come from
    assert answers == [[64 if name == "open_files" else 0]] * 3


@pytest.mark.parametrize(
    "name",
    ["shared_memory", "shared_value", "folder_of_the_import", "standard_input", "orphan_of_the_import"],
)
def test_nothing_that_the_module_made_while_it_was_imported_reaches_the_next(make: Make, name: str) -> None:
    """As modules do that never meant to: they only have state. It works in one subsample, and ends there."""
    runner = make(f"leftovers:{name}")
    for rows, answer in ((SECRET, [16]), (HARMLESS, [0]), (SECRET, [16]), (HARMLESS, [0])):
        assert runner.run(rows).tolist() == answer
    assert children(runner) == ""


def test_a_process_imports_nothing_before_it_asks_the_function(make: Make) -> None:
    """Each block would pay for it: a codec that /proc was read with took a millisecond."""
    runner = make("leftovers:imports_of_the_process")
    assert [runner.run(HARMLESS).tolist() for _ in range(2)] == [[0], [0]]


OWN = """
import os, pathlib, resource, numpy
os.dup2(os.open(os.devnull, os.O_RDONLY), 200)
pathlib.Path(os.environ["HOME"], "left").write_text("by the import")

def has_a_file_of_the_import(rows):
    try:
        return os.fstat(200) and 1.0
    except OSError:
        return 0.0

def sees_what_the_import_wrote(rows):
    return float(len(os.listdir(os.environ["HOME"])))

def may_raise_a_limit(rows):
    limited = resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_AS
    return float(any(low != high for low, high in map(resource.getrlimit, limited)))

def answers_in_a_box(rows):
    return [[1.0]]

def hashes_a_text(rows):
    return hash("a text") % 2.0**40

def draws_a_number(rows):
    return numpy.random.random() * 2.0**40
"""
"""A module that opens a file with a high number, and writes one, while it is imported."""


def own_answers(name: str, isolation: str, grid: Grid = LINE, text: str = "") -> list[int | None]:
    """Return what a function of a text, `OWN` if not given, answers in two blocks."""
    limits: dict[str, Any] = {"seconds": 20.0, "megabytes": 300, "isolation": isolation}
    with FunctionRunner(Function(f"own.py:{name}", grid, text=text or OWN, **limits)) as runner:
        found = [runner.run(HARMLESS) for _ in range(2)]
    return [None if each is None else int(each[0]) for each in found]


@pytest.mark.parametrize("isolation", ["process", "sandbox"])
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("has_a_file_of_the_import", 0),
        ("sees_what_the_import_wrote", 0),
        ("may_raise_a_limit", 0),
        ("answers_in_a_box", None),  # which is no answer of one axis
    ],
)
def test_every_block_begins_alike(name: str, answer: int | None, isolation: str) -> None:
    """The first one, too: it has no file that the import opened or wrote, and limits that stay."""
    assert own_answers(name, isolation) == [answer, answer]


def test_hashes_of_texts_are_the_same_in_every_process() -> None:
    """A step that is repeated on another worker has the same answer."""
    grid = Grid((0.0,), (2.0**40,), 1.0)
    assert own_answers("hashes_a_text", "process", grid) == own_answers("hashes_a_text", "process", grid)


@pytest.mark.parametrize("isolation", ["process", "sandbox"])
def test_numbers_of_numpy_are_the_same_in_every_process(isolation: str) -> None:
    """Blocks share the state of numpy's own generator. Which blocks share it must not follow from rows.

    One block of which much is left behind makes another process answer all blocks after it, and how long a
    block takes decides which worker has the next one.
    """
    grid = Grid((0.0,), (2.0**40,), 1.0)
    first, second = (own_answers("draws_a_number", isolation, grid) for _ in range(2))
    assert first == second
    assert len({*first, *second}) == 1


HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")

FIRST = """
import sys
import numpy
from sklearn.linear_model import LinearRegression

opened = []

def opens_files_at_the_first_fit(rows):
    sys.addaudithook(lambda event, _: event in ("open", "import") and opened.append(event))
    LinearRegression().fit(numpy.arange(4.0).reshape(2, 2), [0.0, 1.0])
    return float(len(opened))

def has_no_huge_pages(rows):
    before = huge()
    kept = [bytes([i % 256]) * 100_000 for i in range(400)]
    return float(huge() - before < 1 << 24)

def huge():
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("AnonHugePages"))
"""


@pytest.mark.parametrize("isolation", ["process", "sandbox"])
def test_a_block_does_not_do_again_what_a_library_does_at_its_first_use(isolation: str) -> None:
    """scikit-learn reads a file of every installed package at its first check of an array."""
    assert own_answers("opens_files_at_the_first_fit", isolation, text=FIRST) == [0, 0]


NAMED_LIKE = """
import os, pathlib, sys, types
sys.modules["sklearn"] = types.ModuleType("sklearn")
{utils}
def sees_files(rows):
    return float(len(os.listdir(os.environ["HOME"])))
"""

UTILS = """
utils = sys.modules["sklearn.utils"] = types.ModuleType("sklearn.utils")
utils.check_array = lambda _: pathlib.Path(os.environ["HOME"], "left").touch()
"""


@pytest.mark.parametrize("isolation", ["process", "sandbox"])
@pytest.mark.parametrize("utils", ["", UTILS])
def test_a_module_may_be_named_like_a_library(utils: str, isolation: str) -> None:
    """It is asked to do what the library does. What it does instead is no error, and no block sees it."""
    assert own_answers("sees_files", isolation, text=NAMED_LIKE.format(utils=utils)) == [0, 0]


@pytest.mark.skipif(
    not HUGE_PAGES.exists() or "[never]" in HUGE_PAGES.read_text(),
    reason="the system has no huge pages to give",
)
@pytest.mark.parametrize("isolation", ["process", "sandbox"])
def test_what_a_block_allocates_is_in_huge_pages(isolation: str) -> None:
    assert own_answers("has_no_huge_pages", isolation, text=FIRST) == [0, 0]


def test_every_block_has_a_process_of_its_own(make: Make) -> None:
    """The number of the process and the answers that it gave before; both start anew with each block."""
    runner = make("attacks:calls_of_the_process")
    assert [runner.run(HARMLESS).tolist() for _ in range(3)] == [[16]] * 3


def test_the_process_that_forks_is_in_huge_pages_and_children_see_the_same() -> None:
    """What is written after a fork is not seen on the other side, in the huge pages of either."""
    kept = bytearray(b"before" * (1 << 20))
    use_huge_pages()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        kept[:6] = b"after!"
        os.write(write, bytes(kept[:12]))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 12) == b"after!before"
    assert kept == b"before" * (1 << 20)
    os.close(read)
    os.close(write)


def test_rows_are_never_in_the_memory_of_the_process_that_forks(make: Make) -> None:
    """The secret is a float64 of 64 random-looking bits; the function finds it while it is its own."""
    bits = 0x3FE7_1C96_5A3B_D247
    secret = struct.unpack("<d", struct.pack("<q", bits + 1))[0]
    runner = make("searches_memory", megabytes=2000, arguments={"bits": bits})
    assert runner.run(HARMLESS).tolist() == [0]
    assert runner.run(rows_of(*[secret] * 50_000)).tolist() == [64]
    assert runner.run(HARMLESS).tolist() == [0]


def test_memory_is_counted_above_what_was_there(make: Make) -> None:
    assert make("takes", megabytes=300, arguments={"megabytes": 100}).run(HARMLESS).tolist() == [16]
    assert make("takes", megabytes=80, arguments={"megabytes": 100}).run(HARMLESS) is None


def test_no_block_may_leave_a_core_file(make: Make) -> None:
    """It would hold rows. The worker's own limit, which children inherit, may be any."""
    assert make("core_limits").run(HARMLESS).tolist() == [0]


def test_constant_time(make: Make) -> None:
    runner = make("attack", seconds=0.5, constant_time=True, arguments={"how": "raises"})
    for rows in (HARMLESS, SECRET, b""):
        began = time.monotonic()
        runner.run(rows)
        assert 0.5 <= time.monotonic() - began < 1.5


def test_a_function_that_waits_has_more_time_than_one_that_computes(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine makes every function wait: the limit is of processor time, so the answer is the same."""
    runner = make("mean_slowly", seconds=0.4, arguments={"waits": 1.2, "computes": 0.0})
    assert runner.run(HARMLESS).tolist() == [8]
    assert make("mean_slowly", seconds=2.0, arguments={"waits": 0, "computes": 0.3}).run(HARMLESS) is not None
    assert make("mean_slowly", seconds=0.2, arguments={"waits": 0, "computes": 0.7}).run(HARMLESS) is None
    began = time.monotonic()
    assert make("mean_slowly", seconds=0.4, arguments={"waits": 0, "computes": 60}).run(HARMLESS) is None
    assert time.monotonic() - began < 30  # well below its patience
    monkeypatch.setattr("transforms.run_function._LEAST_PATIENCE", 0.5)
    monkeypatch.setattr("transforms.run_function._PATIENCE", 1.0)
    assert make("mean_slowly", seconds=0.4, arguments={"waits": 60, "computes": 0}).run(HARMLESS) is None


def test_a_function_cannot_stop_its_clock(make: Make) -> None:
    began = time.monotonic()
    assert make("stops_its_clock", seconds=0.5).run(HARMLESS) is None
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("waits", [0.0, 0.5])
def test_a_default_timeout_of_sockets_changes_no_answer(make: Make, waits: float) -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.2)  # Beam sets one where it looks for credentials
    try:
        runner = make("mean_slowly", arguments={"waits": waits, "computes": 0.0})
        assert [runner.run(HARMLESS).tolist() for _ in range(2)] == [[8], [8]]
    finally:
        socket.setdefaulttimeout(before)


def test_no_rows_have_no_answer(make: Make) -> None:
    assert make("raises").run(HARMLESS) is None
    assert make("mean").run(b"") is None


@pytest.mark.parametrize(
    ("value", "steps"),
    [(0.0, 0), (1.03, 16), (-5.0, 0), (5.0, 64), (1e300, 64), (np.nan, None), (np.inf, None)],
)
def test_answers_are_clamped_and_rounded(value: float, steps: int | None) -> None:
    answer = Function("m:f", LINE).answer(struct.pack("<d", value))
    assert (None if answer is None else answer.tolist()) == (None if steps is None else [steps])


@pytest.mark.parametrize("raw", [b"", b"1234567", bytes(9), bytes(16)])
def test_bytes_that_are_no_answer(raw: bytes) -> None:
    assert Function("m:f", LINE).answer(raw) is None


def test_rows_come_with_nulls_and_types(make: Make) -> None:
    columns = {"x": pa.array([1.0, None, 2.0]), "whole": pa.array([7, None, 9], pa.int32())}
    assert make("is_untouched").run(stream(pa.record_batch(columns))).tolist() == [16]


def test_large_subsamples(make: Make) -> None:
    assert make("mean").run(rows_of(*np.full(500_000, 0.5))).tolist() == [8]


def test_errors_are_told_only_where_rows_are_no_ones(make: Make) -> None:
    assert b"secret row" in make("raises", tell=True).ask(HARMLESS)
    assert make("raises").ask(HARMLESS) == b""


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("nowhere_at_all:f", "ModuleNotFoundError"),
        ("tests.transforms.attacks:nothing", "AttributeError"),
        ("tests.transforms.attacks:SECRET", "TypeError"),
    ],
)
def test_what_cannot_be_imported(place: str, why: str) -> None:
    with pytest.raises(FunctionError, match=why):
        FunctionRunner(Function(place, LINE))


def test_a_block_takes_no_longer_than_its_limit_where_time_is_constant() -> None:
    for seconds, patience in ((1.0, 60.0), (30.0, 300.0)):
        assert Function("f:f", LINE, seconds=seconds).patience == patience
        assert Function("f:f", LINE, seconds=seconds, constant_time=True).patience == seconds


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_answer_is_finite_on_every_axis(value: float) -> None:
    function = Function("f:f", Grid((0.0, 0.0), (4.0, 4.0), 2.0**-4))
    for answer in ((value, 0.5), (0.5, value)):
        assert function.answer(np.array(answer).tobytes()) is None


@pytest.mark.parametrize("isolation", [PROCESS, SANDBOX])
def test_arguments_may_be_longer_than_a_command(isolation: str) -> None:
    text = "def f(rows, anchors):\n    return len(anchors) / 1e5\n"
    arguments = {"anchors": "x" * 300_000}
    function = Function("f.py:f", LINE, arguments, text=text, isolation=isolation)
    with FunctionRunner(function) as runner:
        assert runner.function.answer(runner.ask(HARMLESS)) == LINE.quantize(np.array([[3.0]]))[0]


def test_a_process_that_cannot_be_started_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "full")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(FunctionError, match=r"^params.function is math:fsum, but no process can be started"):
        FunctionRunner(Function("math:fsum", LINE))
    assert not [*tmp_path.iterdir()]


def test_the_name_of_an_error_of_the_import_says_nothing_else(make: Make) -> None:
    """A module may make up the name, and of a worker that starts late what it has from earlier rows."""
    with pytest.raises(FunctionError, match=r"imported: it raised an error of no plain name\. `shoal"):
        make("named_oddly:f")


def test_nothing_is_left_of_a_runner_that_is_forgotten() -> None:
    runner = FunctionRunner(Function("tests.transforms.attacks:mean", LINE))
    pid, folder = runner._process.pid, runner._folder
    del runner
    gc.collect()
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_nothing_is_left_where_the_worker_is_killed() -> None:
    runner = FunctionRunner(Function("tests.transforms.attacks:mean", LINE))
    assert runner.run(HARMLESS).tolist() == [8]
    Path(runner._folder, "left").write_text("by a module that is imported")
    assert runner._control is not None
    runner._control.close()  # as the system does it
    runner._process.wait(20)
    assert not Path(runner._folder).exists()
    runner._control = None
