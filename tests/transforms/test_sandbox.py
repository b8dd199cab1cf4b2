"""Inside a sandbox: no network, no files but programs, no other processes, and nothing to leave behind."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import transforms.sandbox
from core.domain import Grid
from pipelines.errors import JobError
from pipelines.job.job import load_job
from pipelines.run.usage import descendants, memory_of
from tests.pipelines.conftest import Bench, Refused, bench, refused
from tests.pipelines.jobs import changes
from transforms.function_messages import PROCESS, SANDBOX
from transforms.run_function import Function, FunctionError, FunctionRunner
from transforms.split_units import stream

__all__ = ["bench", "refused"]  # fixtures
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")

ROWS = stream(pa.record_batch({"x": [0.25, 0.75]}))
LINE = Grid((0.0,), (4.0,), 2.0**-4)

CODE = """
import ctypes, os, pathlib, signal, socket


def tries(rows, what, place=""):
    \"\"\"Return 1 where it is done, 0 where it is forbidden.\"\"\"
    try:
        return float(bool(globals()[what](place)))
    except OSError:
        return 0.0


def sees(place):
    return os.path.exists(place)


def connects(place):
    host, port = place.split(":")
    socket.create_connection((host, int(port)), 5)
    return True


def calls(place):
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(chr(0) + place)  # an abstract name, which is no file
    return True


def writes(place):
    pathlib.Path(place).write_text("secret")
    return True


def leaves(place):
    before = len(os.listdir("."))
    pathlib.Path("left").write_text("secret")
    pathlib.Path("/dev/shm/left").write_text("secret")
    return before


def signals(place):
    os.kill(int(place), 0)
    return True


def stops(place):
    for which in (signal.SIGSTOP, signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
        os.kill(os.getppid(), which)
    return True


def shares(place):
    # whether an earlier block left a segment of System V
    libc = ctypes.CDLL(None, use_errno=True)
    before = libc.shmget(7, 4096, 0o600) != -1
    libc.shmget(7, 4096, 0o1600)
    return before


def traces(place):
    open(f"/proc/{os.getppid()}/mem", "r+b").close()
    return True


def mounts(place):
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.mount(b"none", b"/usr", b"tmpfs", ctypes.c_ulong(0), None) == 0


def rights(place):
    # whether it has some, or could get some from a program that gives its owner's
    found = dict(line.split(":", 1) for line in open("/proc/self/status"))
    held = (int(found[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"))
    return any(held) or int(found["NoNewPrivs"]) != 1


def imports(place):
    try:
        return bool(__import__(place))
    except ImportError:
        return False


def reads_python(place):
    import json.tool, numpy.fft
    return True
"""


def runner(isolation: str, what: str, place: object = "") -> FunctionRunner:
    arguments = {"what": what, "place": str(place)}
    return FunctionRunner(Function("f.py:tries", LINE, arguments, 20.0, 300, False, CODE, isolation))


def answers(isolation: str, what: str, place: object = "", times: int = 1) -> list[float]:
    with runner(isolation, what, place) as asked:
        found = [asked.run(ROWS) for _ in range(times)]
    return [float("nan") if each is None else each[0] * LINE.step for each in found]


def test_other_files_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("secret")
    for place in (tmp_path / "rows", "/etc/passwd", "/proc/1/root/etc/passwd", "/sys/class"):
        assert answers(SANDBOX, "sees", place) == [0.0], place
    assert answers(PROCESS, "sees", tmp_path / "rows") == [1.0]
    assert answers(SANDBOX, "reads_python") == [1.0]


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on Python's path, as that of a program or of sources, with rows beside modules."""
    for place in ("rows.parquet", "lonely.py", "people/rows.parquet", "packed/__init__.py", "packed/rows"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_of_a_folder_of_programs_only_modules_and_packages_are_there(beside: Path) -> None:
    for place in ("rows.parquet", "people", "people/rows.parquet"):
        assert answers(SANDBOX, "sees", beside / place) == [0.0], place
        assert answers(PROCESS, "sees", beside / place) == [1.0], place
    for name in ("lonely", "packed"):
        assert answers(SANDBOX, "imports", name) == [1.0], name


def test_of_the_sources_of_shoal_only_its_packages_are_there() -> None:
    root = Path(transforms.sandbox.__file__).parents[1]
    kept = [
        place for place in root.iterdir() if place.suffix != ".py" and not (place / "__init__.py").exists()
    ]
    assert any(place.name == "docs" for place in kept)
    for place in kept:
        seen = place == Path(sys.prefix) or place.suffix == ".egg-info"
        assert answers(SANDBOX, "sees", place) == [float(seen)], place


def test_an_installation_is_there_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its packages may lack a module `__init__`, and keep libraries in folders of their own."""
    for name in ("site-packages", "target"):
        (tmp_path / name / "spaced.libs").mkdir(parents=True)
        (tmp_path / name / "a.dist-info").mkdir()
        monkeypatch.syspath_prepend(tmp_path / name)
        assert answers(SANDBOX, "sees", tmp_path / name / "spaced.libs") == [1.0]


def test_a_folder_of_programs_may_be_spelled_in_other_ways(
    beside: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a link, or by a folder that is not there inside; or it cannot be listed."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "current").symlink_to(beside)
    for spelled in (elsewhere / "current", f"{beside}/people/.."):
        monkeypatch.setattr(
            sys, "path", [*(place for place in sys.path if place != str(beside)), str(spelled)]
        )
        assert answers(SANDBOX, "imports", "lonely") == [1.0], spelled
    monkeypatch.setattr(os, "listdir", _denied)
    assert transforms.sandbox._importable(str(beside)) == set()


def test_python_may_be_in_a_folder_behind_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where homes are on another disk: relative links, one after another."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "people").symlink_to(Path(sys.prefix).parent)
    (tmp_path / "homes").symlink_to("current")
    (tmp_path / "current").symlink_to("disk/../disk")
    asks = (
        "from core.domain import Grid\n"
        "from transforms.run_function import Function, FunctionRunner\n"
        "FunctionRunner(Function('math:fsum', Grid((0.0,), (4.0,), 0.5), isolation='sandbox')).close()\n"
    )
    python = tmp_path / "homes" / "people" / Path(sys.executable).relative_to(Path(sys.prefix).parent)
    command = [python, "-c", asks]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr(sys, "prefix", str(python.parents[1]))
    links = {f"{tmp_path}/{name}" for name in ("homes", "current", "disk/people")}
    assert links <= transforms.sandbox._links([])
    assert transforms.sandbox.shown_of([f"{tmp_path}/disk/rows.parquet"], []) is None


def test_files_that_are_no_modules_are_not_there(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither as a part of Python's path, nor by a link that is named like a module, or for libraries."""
    rows = beside / "people" / "rows.parquet"
    (beside / "named.py").symlink_to(rows)
    monkeypatch.syspath_prepend(rows)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{rows}:here")
    monkeypatch.chdir(beside)
    (beside / "here").symlink_to(beside / "people")
    places = transforms.sandbox._places([])
    assert not [place for place in places if "people" in place or "named" in place or place == "here"]


def _denied(place: str) -> list[str]:
    raise PermissionError(place)


def test_no_source_is_touched_where_packages_lie_in_packages(
    beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What sorts between a folder and what lies in it, such as packed.egg-info, is beside both."""
    (beside / "packed.egg-info").mkdir()
    inner = beside / "packed" / "inner.py"
    inner.write_text("")
    os.utime(inner, (1e9, 1e9))
    monkeypatch.syspath_prepend(beside / "packed")
    assert answers(SANDBOX, "imports", "inner") == [1.0]
    assert inner.stat().st_mtime == 1e9
    assert str(inner) not in transforms.sandbox._places([])


def test_files_of_a_job_among_modules_are_refused(beside: Path) -> None:
    """Also through a link, where the folder is still to be made, or has a name like a glob."""
    (beside / "link").symlink_to(beside / "packed")
    (beside / "[x]").mkdir()
    (beside / "[x]" / "__init__.py").touch()
    for place in ("packed", "packed/rows", "packed/out/2025", "link/rows", "lonely.py", "[x]/out"):
        function = Function("f.py:tries", LINE, text=CODE, isolation=SANDBOX, unseen=(str(beside / place),))
        with pytest.raises(FunctionError) as refused:
            FunctionRunner(function)
        shown = beside / Path(place).parts[0].replace("link", "packed")
        assert f"shows {shown} to the function for its modules, and {beside / place} is there" in str(
            refused.value
        )
    for place in ("people", "rows.parquet", "packed2/out"):
        unseen = (str(beside / place),)
        FunctionRunner(Function("f.py:tries", LINE, text=CODE, isolation=SANDBOX, unseen=unseen)).close()


def test_a_job_is_refused_whose_files_a_sandbox_shows(beside: Path, refused: Refused, bench: Bench) -> None:
    """Whether its input is a file, a link to one, a folder, or a glob of folders above it."""
    job = changes("sample_and_aggregate")
    job["params"] = {**job["params"], "isolation": "sandbox"}
    (beside / "rows.parquet").unlink()
    (beside / "people" / "rows.parquet").unlink()
    bench.rows.rename(beside / "packed" / "rows.parquet")
    bench.job["input"]["path"] = str(beside / "packed" / "rows.parquet")
    (beside / "elsewhere.parquet").symlink_to(beside / "packed" / "rows.parquet")
    for field, value in (
        ("input.path", str(beside / "packed" / "rows.parquet")),
        ("input.path", str(beside / "elsewhere.parquet")),
        ("input.path", str(beside / "packed")),
        ("input.path", str(beside / "p*" / "rows.parquet")),
        ("output", str(beside / "packed" / "out")),
        ("privacy.ledger", str(beside / "packed" / "books.json")),
    ):
        said = refused(bench.run({**job, field: value}))
        assert f"params.isolation is sandbox, which shows {beside / 'packed'} to the function" in said


def test_there_is_no_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        assert answers(PROCESS, "connects", place) == [1.0]
        assert answers(SANDBOX, "connects", place) == [0.0]
        local.bind(f"\0{tmp_path}")
        local.listen()
        assert answers(PROCESS, "calls", tmp_path) == [1.0]
        assert answers(SANDBOX, "calls", tmp_path) == [0.0]


@pytest.mark.parametrize("folder", ["/", "/usr", "/dev", "/tmp", "/etc"])
def test_nothing_can_be_written_outside_of_its_home(folder: str) -> None:
    """What a wrong sandbox writes is removed, so that it is not found by a later run of this test."""
    place = Path(folder) / f"shoal-left-{os.getpid()}"
    try:
        assert answers(SANDBOX, "writes", str(place)) == [0.0]
        assert not place.exists()
    finally:
        place.unlink(missing_ok=True)


def test_what_is_left_at_home_is_gone() -> None:
    assert answers(SANDBOX, "leaves", times=3) == [0.0] * 3
    assert not Path("/dev/shm/left").exists()


def test_other_processes_are_not_there() -> None:
    assert answers(PROCESS, "signals", os.getpid()) == [1.0]
    assert answers(SANDBOX, "signals", os.getpid()) == [0.0]


@pytest.mark.parametrize("what", ["traces", "mounts", "rights"])
def test_a_child_has_no_power_over_the_sandbox(what: str) -> None:
    assert answers(SANDBOX, what) == [0.0]


def test_a_child_cannot_stop_the_process_that_forked_it() -> None:
    with runner(SANDBOX, "stops") as asked:
        pid = asked._process.pid
        for _ in range(3):
            assert asked.run(ROWS) is not None
        assert asked._process.pid == pid  # it was not replaced


def test_shared_memory_of_the_system_is_of_one_block_alone() -> None:
    assert answers(SANDBOX, "shares", times=3) == [0.0] * 3


def test_nothing_is_left_of_a_sandbox() -> None:
    asked = runner(SANDBOX, "sees")
    assert asked.run(ROWS) is not None
    asked.close()
    assert not Path(asked._folder).exists()
    killed = runner(SANDBOX, "sees")
    assert killed._control is not None
    killed._control.close()  # as the system does where the worker is killed
    killed._process.wait(20)
    assert not Path(killed._folder).exists()
    killed._control = None


def test_all_of_a_sandbox_ends_with_its_outer_process() -> None:
    """Also where that is killed while somebody still holds the socket."""
    asked = runner(SANDBOX, "sees")
    running = descendants(asked._process.pid)
    assert len(running) > 1
    asked._process.kill()
    asked._process.wait()
    until = time.monotonic() + 20
    while left := [each for each in running if memory_of(each)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)
    asked.close()


def test_a_machine_that_forbids_it_is_told_before_a_row_is_read() -> None:
    """A limit of no namespaces at all stands for containers that forbid them."""
    asks = (
        "from core.domain import Grid\n"
        "from transforms.run_function import Function, FunctionRunner\n"
        "FunctionRunner(Function('math:fsum', Grid((0.0,), (4.0,), 0.5), isolation='sandbox'))\n"
    )
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -c "$1"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, sys.executable, asks]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert "params.isolation is sandbox, but this machine does not allow it" in said


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(transforms.sandbox.__file__).parents[1])}


def test_a_job_asks_for_it_and_the_plan_says_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    job = changes("sample_and_aggregate")
    job["params"] = {**job["params"], "isolation": "sandbox"}
    checked = load_job(bench.write(bench.changed(job)))
    assert checked.task_params.untrusted().isolation == SANDBOX
    planned = bench.shoal("plan", bench.write(bench.changed(job)))
    assert "no network" in " ".join(planned.stdout.split())
    plain = {**job, "params": {**job["params"], "isolation": "process"}}
    planned = bench.shoal("plan", bench.write(bench.changed(plain)))
    assert "rights of the worker" in " ".join(planned.stdout.split())
    with pytest.raises(JobError, match=r"params.isolation is 'jail': it must be 'process' or 'sandbox'"):
        wrong = {**job, "params": {**job["params"], "isolation": "jail"}}
        load_job(bench.write(bench.changed(wrong)))
