"""Everything on object storage: a real server, races, injected faults, and the whole path of a run."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from google.cloud import storage

from pipelines.errors import JobError
from pipelines.ledger.ledger import Ledger, LedgerRefusal, charge_run, create_ledger, now, read_ledger
from pipelines.plan import make_plan
from pipelines.storage import object_folder
from pipelines.storage.folder import StorageError
from pipelines.storage.locate import open_file, open_folder
from pipelines.table import part_name
from tests.engines.buckets import SERVERS, Bucket, new_bucket, open_bucket
from tests.engines.faulty import FaultyProxy
from tests.engines.services import Azurite
from tests.pipelines.conftest import Bench, planted, write_rows
from transforms import list_files, object_store
from transforms.open_source import InputError, open_source
from transforms.read_batches import read_batches

pytestmark = pytest.mark.engine


@pytest.fixture(params=["local", *SERVERS])
def place(request, tmp_path, connect, object_servers) -> str:
    """A folder on every kind of storage."""
    if request.param == "local":
        return str(tmp_path)
    server = object_servers(request.param)
    connect(server.environment)
    return f"{new_bucket(server)}/folder"


class Cloud(Bench):
    """The bench with its rows, its job and its outputs on object storage."""

    def __init__(self, folder: Path, bucket: Bucket) -> None:
        super().__init__(folder)
        self.bucket = bucket
        self.root = bucket.root
        self.bucket.put("rows/part.parquet", self.rows.read_bytes())
        self.job["input"]["path"] = f"{self.root}/rows"
        self.job["output"] = f"{self.root}/releases/{{run_id}}"
        self.job["run_id"] = "monday"
        self.job["privacy"]["ledger"] = f"{self.root}/books/ledger.json"
        create_ledger(self.job["privacy"]["ledger"], Ledger(epsilon=5.0, delta=1e-5))

    def write(self, job) -> str:
        self.bucket.put("job.yaml", (job if isinstance(job, str) else yaml.safe_dump(dict(job))).encode())
        return f"{self.root}/job.yaml"

    def release(self, output: str = "releases/monday") -> dict:
        return json.loads(self.bucket.get(f"{output}/release.json"))

    def charges(self):
        return read_ledger(self.job["privacy"]["ledger"]).charges

    def names(self) -> list[str]:
        return self.bucket.names()


@pytest.fixture
def cloud(tmp_path, bucket) -> Cloud:
    return Cloud(tmp_path, bucket)


def race(runners: int, run: Callable[[int], object]) -> list[object]:
    """Run `run` in threads that start together; return what they return."""
    gate, results = threading.Barrier(runners), []

    def enter(number: int) -> None:
        gate.wait()
        results.append(run(number))

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(runners)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == runners
    return results


def test_the_server_keeps_preconditions(bucket):
    """What the tests below stand on: create-only and compare-and-swap, alone and in a race."""
    folder = open_folder(f"{bucket.root}/x")
    assert folder.write("a", b"one", None)
    assert not folder.write("a", b"two", None)
    data, version = folder.see("a")
    assert data == b"one"
    assert not folder.write("a", b"two", folder.never)
    assert sum(race(20, lambda number: folder.write("a", b"%d" % number, version))) == 1
    assert sum(race(20, lambda number: folder.write("b", b"%d" % number, None))) == 1


def test_one_of_20_writers_creates(place):
    folder = open_folder(place)
    won = [n for n, created in race(20, lambda n: (n, folder.create("r.json", b"%d" % n * 9999))) if created]
    assert len(won) == 1
    assert folder.read("r.json") == b"%d" % won[0] * 9999


def test_one_of_20_swaps_wins(place):
    folder = open_folder(place)
    folder.create("l.json", b"start")
    won = [n for n, swapped in race(20, lambda n: (n, folder.swap("l.json", b"start", b"%d" % n))) if swapped]
    assert len(won) == 1
    assert folder.read("l.json") == b"%d" % won[0]


def test_room_for_7_of_20_runs(place, bench):
    path = f"{place}/ledger.json"
    create_ledger(path, Ledger(epsilon=35.0, delta=7e-6))
    jobs = [runs_job(bench, path, f"run-{number}") for number in range(20)]
    plan = make_plan(jobs[0], bytes(16))

    def enter(number: int) -> bool:
        try:
            charge_run(path, jobs[number], plan, now)
        except LedgerRefusal:
            return False
        return True

    assert sorted(race(20, enter)) == [False] * 13 + [True] * 7
    ledger = read_ledger(path)
    assert len({entry.run_id for entry in ledger.charges}) == 7
    assert ledger.spent().epsilon == 35.0


def runs_job(bench, ledger: str, run_id: str):
    from pipelines.job.job import check_job

    changes = {"privacy.ledger": ledger, "run_id": run_id, "privacy.epsilon": 5.0}
    return check_job(bench.changed(changes))


@pytest.fixture
def bench(tmp_path) -> Bench:
    return Bench(tmp_path / "bench")


def test_a_run_with_everything_on_object_storage(cloud):
    first = cloud.run()
    assert first.exit_code == 0, first.output
    assert f"{cloud.root}/releases/monday/release.json" in first.stdout
    folder = [f"releases/monday/{name}" for name in ("output.id", "release.json", "report.html")]
    assert cloud.names() == ["books/ledger.json", "job.yaml", *folder, "rows/part.parquet"]
    assert cloud.release()["outcome"] == "released"
    assert [entry.release is not None for entry in cloud.charges()] == [True]
    before = cloud.release()
    cloud.bucket.delete("rows/part.parquet")
    cloud.bucket.delete(folder[2])
    again = cloud.run()
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    assert cloud.release() == before
    assert folder[2] in cloud.names()
    assert cloud.shoal("report", f"{cloud.root}/releases/monday").exit_code == 0


def hashes(cloud):
    return [part["sha256"] for part in cloud.release()["table"]]


def test_a_table_in_parts_on_object_storage(cloud):
    """Parts are created once; a run that ended among them goes on with those that are there."""
    params = {"cells": [8, 8], "method": "sparse", "parts": 3}
    given = {"task": "histogram", "params": params, "privacy.epsilon": 0.5, "privacy.ledger": ...}
    names = [f"releases/monday/{part_name(number)}" for number in range(3)]

    def stored() -> list[bytes]:
        return [cloud.bucket.get(name) for name in names]

    def run_again_without_the_middle():
        for name in ("release.json", "report.html", part_name(1)):
            cloud.bucket.delete(f"releases/monday/{name}")
        return cloud.run(given)

    assert cloud.run(given).exit_code == 0
    first = stored()
    assert hashes(cloud) == [sha256(data).hexdigest() for data in first]
    assert not open_folder(f"{cloud.root}/releases/monday").create(part_name(0), b"another draw")
    again = run_again_without_the_middle()
    assert again.exit_code == 0, again.output
    second = stored()
    assert [one == two for one, two in zip(first, second, strict=True)] == [True, False, True]
    assert hashes(cloud) == [sha256(data).hexdigest() for data in second]
    write_rows(cloud.rows, planted()[::-1])  # other bytes: S3 dates by the second
    cloud.bucket.put("rows/part.parquet", cloud.rows.read_bytes())
    refused = run_again_without_the_middle()
    assert refused.exit_code == 2
    assert "is claimed by an earlier attempt" in refused.stderr
    assert [name for name in cloud.names() if "part-" in name] == [names[0], names[2]]


def start_shoal(server, *arguments: str) -> subprocess.Popen:
    command = [str(Path(sys.executable).parent / "shoal"), *arguments]
    return subprocess.Popen(
        command, env=os.environ | dict(server.environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_two_processes_of_one_run_leave_one_release(cloud, server):
    path = cloud.write(cloud.job)
    both = [start_shoal(server, "run", path) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    (one, first), (other, second) = said
    assert one == other
    late = (  # where one of them began after the other had ended, on a busy machine
        b"shoal: Run monday was released before. This is its stored release: no row was read. To run on new "
        b"data or with a changed function, give another run_id.\n"
    )
    assert {first, second} in ({b""}, {b"", late})
    assert len(cloud.charges()) == 1
    assert [name for name in cloud.names() if name.startswith("releases")] == [
        "releases/monday/output.id",
        "releases/monday/release.json",
        "releases/monday/report.html",
    ]


@pytest.mark.parametrize("fault", ["refuse_some", "cut_uploads", "lose_answers", "lose_first_answers"])
def test_faults_change_nothing_but_the_time(cloud, server, connect, fault):
    cloud.write(cloud.job)
    with FaultyProxy(server.url, fault) as proxy:
        connect(server.settings(proxy.url))
        result = cloud.shoal("run", f"{cloud.root}/job.yaml")
        connect(server.environment)
        assert result.exit_code == 0, result.output
        assert proxy.faults() >= 2
    assert cloud.release()["outcome"] == "released"
    assert [(entry.run_id, entry.release is not None) for entry in cloud.charges()] == [("monday", True)]


@pytest.mark.parametrize(
    ("fault", "says"), [("deny_401", "refuses the credentials"), ("deny_403", "denies access")]
)
def test_denied_access_names_the_bucket(cloud, server, connect, fault, says):
    status = fault[-3:]
    kind = "container" if server.scheme == "az://" else "bucket"
    with FaultyProxy(server.url, fault) as proxy:
        connect(server.settings(proxy.url))
        with pytest.raises(JobError, match=rf"{kind} {cloud.bucket.name} {says} \({status}\): [^\n]*\.$"):
            open_folder(f"{cloud.root}/releases").prepare()
        with pytest.raises(
            InputError, match=rf"the {kind}( {cloud.bucket.name})? {says} \({status}\)[^\n]*\.$"
        ):
            open_source(f"{cloud.root}/rows", ["x"])


WRONG = {
    "s3": {"AWS_SECRET_ACCESS_KEY": "wrong"},
    "az": {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName={Azurite.account};AccountKey=d3Jvbmc="},
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_credentials_are_one_sentence(object_servers, connect, tmp_path, kind):
    """Keys that the server itself does not take, at once."""
    server = object_servers(kind)
    connect(server.environment)
    cloud = Cloud(tmp_path, open_bucket(new_bucket(server)))
    endpoint = f";BlobEndpoint={server.url}/{Azurite.account}" if kind == "az" else ""
    connect({name: value + endpoint for name, value in WRONG[kind].items()})
    for change in ({}, {"input.path": str(cloud.rows), "privacy.ledger": ...}):
        refused = cloud.shoal("run", Bench.write(cloud, cloud.changed(change)))
        assert refused.exit_code == 2, refused.output
        told = r"shoal: [^\n]* (refuses the credentials|denies access) \(403\)[^\n]*\.\n"
        assert re.fullmatch(told, refused.stderr), refused.stderr
    connect(server.environment)
    assert cloud.charges() == ()


@pytest.mark.parametrize("kind", ["s3", "az"])
def test_no_credentials_are_one_sentence(connect, bench, monkeypatch, kind):
    """Without any, a machine may have a role; this one has none."""
    monkeypatch.setattr(object_store, "_METADATA", "127.0.0.1")
    connect({"AZURE_STORAGE_ACCOUNT": "nobody"} if kind == "az" else {})
    refused = bench.run({"output": f"{kind}://bucket/out"})
    assert refused.exit_code == 2, refused.output
    assert "needs credentials, but none were found: set A" in refused.stderr


def test_a_missing_bucket_is_named(cloud, server):
    kind = "container" if server.scheme == "az://" else "bucket"
    missing = cloud.run({"output": f"{server.scheme}no-such-bucket/out"})
    assert missing.exit_code == 2
    assert f"{kind} no-such-bucket does not exist (404): create it, or give another" in missing.stderr
    unread = cloud.run({"input.path": f"{server.scheme}no-such-bucket/rows"})
    assert unread.exit_code == (
        1 if server.scheme == "gs://" else 2
    )  # where it may be a folder that comes later
    assert re.search(r"input.path \S*no-such-bucket/rows .*does not exist", unread.stderr)
    assert cloud.charges() == ()


@pytest.mark.parametrize(
    ("path", "place", "within"),
    [
        ("rows", "rows/out", True),
        ("rows/", "rows", True),
        ("rows", "rows2/out", False),
        ("rows/*.parquet", "rows/out", False),
        ("**/*.parquet", "rows/out", True),
        ("rows/part.parquet", "rows/part.parquet", True),
        ("rows", "books/ledger.json", False),
    ],
)
def test_whether_a_listing_could_cover_a_place(cloud, path, place, within):
    assert list_files.lies_within(f"{cloud.root}/{path}", f"{cloud.root}/{place}") == within
    assert not list_files.lies_within(f"{cloud.root}/{path}", f"/{cloud.bucket.name}/{place}")
    other = "s3://" if cloud.root.startswith("gs://") else "gs://"
    assert not list_files.lies_within(f"{cloud.root}/{path}", f"{other}{cloud.bucket.name}/{place}")
    refused = cloud.run(
        {"input.path": f"{cloud.root}/{path}", "output": f"{cloud.root}/{place}"}, "--dry-run"
    )
    assert ("it lies in input.path" in refused.stderr) == within
    assert cloud.charges() == ()


@pytest.mark.parametrize("server", ["gs"], indirect=True)
def test_what_is_stored_is_compared_with_what_was_sent(bucket, monkeypatch):
    folder, name = open_file(f"{bucket.root}/x/file")
    checksum = "AAAAAA=="
    monkeypatch.setattr(storage.Blob, "crc32c", property(lambda blob: checksum))
    with pytest.raises(StorageError, match="not stored as sent"):
        folder.create(name, b"data")


@pytest.mark.parametrize("fault", ["break_downloads", "flip_downloads"])
def test_what_arrives_damaged_is_fetched_again(bucket, server, connect, fault):
    data = bytes(range(256)) * 100
    open_folder(f"{bucket.root}/x").create("file", data)
    with FaultyProxy(server.url, fault) as proxy:
        connect(server.settings(proxy.url))
        assert open_folder(f"{bucket.root}/x").read("file") == data
        assert proxy.faults() >= 1


def test_what_only_arrives_damaged_is_trouble_of_storage(cloud, server, connect, monkeypatch):
    """Exit code 1, not 2: the job and the ledger are right, it is the way that damages them."""
    monkeypatch.setattr(object_folder, "WAIT", 1.0)
    ledger = cloud.job["privacy"]["ledger"]
    path = Bench.write(cloud, cloud.changed({"input.path": str(cloud.rows)}))
    with FaultyProxy(server.url, "flip_all_downloads") as proxy:
        connect(server.settings(proxy.url))
        with pytest.raises(StorageError, match="could not be downloaded undamaged"):
            read_ledger(ledger)
        result = cloud.shoal("run", path)
        assert (result.exit_code, "could not be downloaded undamaged" in result.stderr) == (1, True)


def test_an_upload_whose_answer_was_lost_is_ones_own(bucket, server, connect):
    """The second try of the same upload meets what the first one stored."""
    with FaultyProxy(server.url, "lose_first_answers") as proxy:
        connect(server.settings(proxy.url))
        folder = open_folder(f"{bucket.root}/x")
        assert folder.create("file", b"one")
        assert not folder.create("file", b"two")
        assert folder.swap("file", b"one", b"three")
        create_ledger(f"{bucket.root}/ledger.json", Ledger(epsilon=1.0, delta=1e-6))
        assert proxy.faults() >= 3
    connect(server.environment)
    assert open_folder(f"{bucket.root}/x").read("file") == b"three"


def test_more_files_than_one_answer_lists(bucket):
    """A server lists at most 1,000 objects (Azure 5,000) at a time."""
    names = [f"{number:04}.parquet" for number in range(1203)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: bucket.put(f"rows/{name}", b"x"), names))
    bucket.put("rows2/other.parquet", b"x")
    assert [file.name for file in list_files.list_files(f"{bucket.root}/rows")] == names
    listed = list_files.list_files(f"{bucket.root}/rows/*00.parquet")
    assert [file.name for file in listed] == [name for name in names if name.endswith("00.parquet")]


@pytest.mark.parametrize("name", ["a b+c&d.parquet", "é.parquet", "day=1/country=%2F/p.parquet"])
def test_odd_names_are_listed_and_read(bucket, tmp_path, name):
    bench = Bench(tmp_path)
    bucket.put(f"rows/{name}", bench.rows.read_bytes())
    source = open_source(f"{bucket.root}/rows", ["x"])
    assert [file.name for file in source.files] == [name]
    assert sum(batch.num_rows for batch in read_batches(source.files[0], 0, ["x"], 10_000)) == 1000


def test_rows_are_screened_to_object_storage(cloud):
    assert cloud.run().exit_code == 0
    result = cloud.shoal(
        "screen", f"{cloud.root}/releases/monday", f"{cloud.root}/rows", f"{cloud.root}/split"
    )
    assert result.exit_code == 0, result.output
    split = [name for name in cloud.names() if name.startswith("split/") and name.endswith(".parquet")]
    rows = [pq.read_metadata(pa.BufferReader(cloud.bucket.get(name))).num_rows for name in split]
    assert sum(rows) == 4000
    again = cloud.shoal(
        "screen", f"{cloud.root}/releases/monday", f"{cloud.root}/rows", f"{cloud.root}/split"
    )
    assert (again.exit_code, "is not empty" in again.stderr) == (2, True)
