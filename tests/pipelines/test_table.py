"""A table in parts: each part is drawn once, whatever is killed, repeated, changed or in the way."""

import dataclasses
import hashlib
import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.release import draft_release
from pipelines.run.run import attempt_of, prepare_run
from pipelines.storage.locate import open_folder
from pipelines.table import Attempt, encode_table, part_name, write_part

PARTS = 4
IN_PARTS: dict[str, Any] = {
    "task": "histogram",
    "params": {"cells": [8, 8], "method": "sparse", "parts": PARTS},
    "privacy.epsilon": 0.5,  # two draws of 16 cells are equal with probability 1e-9
}
NAMES = [f"part-{number:05}.parquet" for number in range(PARTS)]


def parts_of(bench, output: str = "out") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((bench.folder / output / "result").glob("part*"))}


def age(path: Path) -> None:
    """Let a file look as if it had been written later."""
    found = os.stat(path)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))


def test_a_table_in_parts(bench) -> None:
    assert bench.run(IN_PARTS).exit_code == 0
    release, stored = bench.release(), parts_of(bench)
    assert list(stored) == NAMES
    assert [part["name"] for part in release["table"]] == [f"result/{name}" for name in NAMES]
    assert [part["sha256"] for part in release["table"]] == [
        hashlib.sha256(data).hexdigest() for data in stored.values()
    ]
    assert not (bench.folder / "out" / "result.parquet").exists()
    table = pq.read_table(bench.folder / "out" / "result")
    assert table.column_names == ["cell_0", "lower_0", "upper_0", "cell_1", "lower_1", "upper_1", "count"]
    keys = table.column("cell_0").to_numpy() * 8 + table.column("cell_1").to_numpy()
    assert len(set(keys.tolist())) == len(keys) == release["result"]["released"] > 40
    counts = table.column("count").to_numpy()
    assert counts.sum() == release["result"]["total"]
    assert sum(part["rows"] for part in release["table"]) == len(keys)
    page = (bench.folder / "out" / "report.html").read_text()
    assert "The 12 largest cells; all cells are in the folder result" in page
    assert f"{counts.max():,}</td>" in page
    (bench.folder / "out" / "report.html").unlink()
    assert bench.shoal("report", str(bench.folder / "out")).exit_code == 0
    assert (bench.folder / "out" / "report.html").read_text() == page


def test_counts_are_close_to_the_truth_and_each_part_has_noise_of_its_own(bench) -> None:
    assert bench.run(IN_PARTS).exit_code == 0
    table = pq.read_table(bench.folder / "out" / "result")
    rows = pq.read_table(bench.rows)
    true, *_ = np.histogram2d(rows["x"].to_numpy(), rows["y"].to_numpy(), 8, [[0, 1], [0, 1]])
    off = table["count"].to_numpy() - true[table["cell_0"].to_numpy(), table["cell_1"].to_numpy()]
    assert 0 < np.abs(off).mean() < 4  # the scale is 2
    assert bench.run({**IN_PARTS, "output": str(bench.folder / "two"), "run_id": "two"}).exit_code == 0
    assert all(
        one != two for one, two in zip(parts_of(bench).values(), parts_of(bench, "two").values(), strict=True)
    )


def test_all_parts_make_the_release_without_rows(bench) -> None:
    """The run was killed between its last part and release.json."""
    assert bench.run(IN_PARTS).exit_code == 0
    before, stored = (bench.folder / "out" / "release.json").read_bytes(), parts_of(bench)
    (bench.folder / "out" / "release.json").unlink()
    (bench.folder / "out" / "report.html").unlink()
    bench.rows.unlink()
    again = bench.run(IN_PARTS)
    assert again.exit_code == 0, again.output
    assert (bench.folder / "out" / "release.json").read_bytes() == before
    assert (bench.folder / "out" / "report.html").exists()
    assert parts_of(bench) == stored


@pytest.mark.parametrize("left", [[], [1], [0, 2, 3]])
@pytest.mark.parametrize("unit", [{}, {"input.unit": "who", "input.keep": "mean"}])
def test_parts_that_are_there_stay(bench, left: list[int], unit: dict) -> None:
    """The run was killed between two parts; the noise of the others was never seen."""
    add_units(bench)
    assert bench.run({**IN_PARTS, **unit}).exit_code == 0
    stored = parts_of(bench)
    for name in ("release.json", "report.html"):
        (bench.folder / "out" / name).unlink()
    for number in set(range(PARTS)) - set(left):
        (bench.folder / "out" / part_name(number)).unlink()
    again = bench.run({**IN_PARTS, **unit})
    assert again.exit_code == 0, again.output
    now = parts_of(bench)
    assert {number for number in range(PARTS) if now[NAMES[number]] == stored[NAMES[number]]} == set(left)
    listed = [part["sha256"] for part in bench.release()["table"]]
    assert listed == [hashlib.sha256(data).hexdigest() for data in now.values()]
    total = pq.read_table(bench.folder / "out" / "result")["count"].to_numpy().sum()
    assert bench.release()["result"]["total"] == total


def add_units(bench) -> None:
    rows = pq.read_table(bench.rows)
    who = pa.array(np.random.default_rng(1).integers(0, 20_000, len(rows)))  # so that means spread
    pq.write_table(rows.append_column("who", who), bench.rows)


def stop_before_the_last_part(bench, given: dict) -> dict[str, bytes]:
    assert bench.run(given).exit_code == 0
    (bench.folder / "out" / "release.json").unlink()
    (bench.folder / "out" / "report.html").unlink()
    (bench.folder / "out" / part_name(PARTS - 1)).unlink()
    return parts_of(bench)


def test_a_changed_input_does_not_join_parts_of_the_old_one(bench) -> None:
    """One person may be in a part of the old rows, and in another part of the new ones."""
    stored = stop_before_the_last_part(bench, IN_PARTS)
    age(bench.rows)
    for more in (["--dry-run"], []):
        refused = bench.run(IN_PARTS, *more)
        assert refused.exit_code == 2
        assert "is claimed by an earlier attempt at this run" in refused.stderr
    assert parts_of(bench) == stored
    assert not (bench.folder / "out" / "release.json").exists()


@pytest.mark.parametrize("keep", [{"input.keep": "one"}, {"input.keep": "last", "input.order": "when"}])
def test_another_random_row_of_a_unit_does_not_join_parts(bench, keep: dict) -> None:
    add_units(bench)
    rows = pq.read_table(bench.rows)
    pq.write_table(rows.append_column("when", pa.array(np.zeros(len(rows), np.int64))), bench.rows)
    given = {**IN_PARTS, "input.unit": "who", **keep}
    stored = stop_before_the_last_part(bench, given)
    refused = bench.run(given)
    assert refused.exit_code == 2
    assert "is claimed by an earlier attempt at this run" in refused.stderr
    assert parts_of(bench) == stored


def test_a_part_of_another_job_is_not_taken(bench) -> None:
    assert bench.run(IN_PARTS).exit_code == 0
    other = bench.folder / "other" / "result"
    other.mkdir(parents=True)
    (other / NAMES[2]).write_bytes(parts_of(bench)[NAMES[2]])
    refused = bench.run({**IN_PARTS, "output": str(bench.folder / "other")})
    assert refused.exit_code == 2
    assert f"{NAMES[2]} is of another job" in refused.stderr
    assert not (bench.folder / "other" / "release.json").exists()


@pytest.mark.parametrize("content", [b"", b"not Parquet"])
def test_a_foreign_file_is_not_taken_for_a_part(bench, content: bytes) -> None:
    (bench.folder / "out" / "result").mkdir(parents=True)
    (bench.folder / "out" / "result" / NAMES[1]).write_bytes(content)
    refused = bench.run(IN_PARTS)
    assert refused.exit_code == 2
    assert f"{NAMES[1]} exists, but no run wrote it" in refused.stderr


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"attempt": 1}', "x"])
def test_a_foreign_claim_is_refused(bench, content: str) -> None:
    (bench.folder / "out" / "result").mkdir(parents=True)
    (bench.folder / "out" / "result" / "_attempt.json").write_text(content)
    refused = bench.run(IN_PARTS)
    assert refused.exit_code == 2
    assert "_attempt.json exists, but no run wrote it" in refused.stderr


def test_repeated_bundles_leave_one_draw_of_each_part(bench) -> None:
    result = bench.run(IN_PARTS, "--", "--direct_runner_bundle_repeat=3", "--direct_running_mode=in_memory")
    assert result.exit_code == 0, result.output
    listed = [part["sha256"] for part in bench.release()["table"]]
    assert listed == [hashlib.sha256(data).hexdigest() for data in parts_of(bench).values()]


def race(writers: int, run: Any) -> list[Any]:
    gate, results = threading.Barrier(writers), []

    def enter(number: int) -> None:
        gate.wait()
        results.append(run(number))

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def drawn(number: int) -> bytes:
    return encode_table(b'{"job": "j"}', {"count": np.arange(number)})


def test_of_20_writers_of_a_part_all_see_the_first(tmp_path) -> None:
    folder, attempt = open_folder(str(tmp_path)), Attempt("a", 3)
    seen = race(20, lambda number: write_part(folder, attempt, 1, drawn(number), "j"))
    assert len(set(seen)) == 1
    assert seen[0].sha256 == hashlib.sha256((tmp_path / part_name(1)).read_bytes()).hexdigest()


def test_of_20_attempts_one_writes(tmp_path) -> None:
    folder = open_folder(str(tmp_path))

    def write(number: int) -> int | None:
        try:
            write_part(folder, Attempt(f"a{number}", 20), number, drawn(number), "j")
        except JobError:
            return None
        return number

    (won,) = [number for number in race(20, write) if number is not None]
    assert [path.name for path in (tmp_path / "result").glob("part*")] == [f"part-{won:05}.parquet"]


def test_an_attempt_is_what_its_records_follow_from() -> None:
    one = Attempt.of(3, b"ab", b"c")
    assert one == Attempt.of(3, b"ab", b"c")
    assert len({Attempt.of(3, *origins).id for origins in ((b"ab", b"c"), (b"a", b"bc"), (b"abc",))}) == 3


def test_an_attempt_says_nothing_of_the_content_of_its_input(bench, monkeypatch) -> None:
    """It is shown with the parts, and the ETag of an object may be a hash of its rows: by that of some rows,
    anybody who knows all of them but one could find the last one.
    """
    pytest.importorskip("obstore")
    import obstore
    from obstore.store import MemoryStore

    from transforms import object_store

    store, moment, head = MemoryStore(), [datetime(2026, 1, 1, tzinfo=UTC)], obstore.head
    monkeypatch.setattr(object_store, "open_store", lambda url: store)
    monkeypatch.setattr(obstore, "head", lambda *asked: {**head(*asked), "last_modified": moment[0]})
    job = check_job(bench.changed({**IN_PARTS, "input.path": "s3://b/rows.parquet"}))

    def written() -> tuple[str, Attempt | None]:
        obstore.put(store, "rows.parquet", bench.rows.read_bytes())
        prepared = prepare_run(job)
        return prepared.source.files[0].version, attempt_of(prepared)

    before, shown = written()
    pq.write_table(pq.read_table(bench.rows).slice(1), bench.rows)
    after, again = written()
    assert before != after
    assert shown == again
    moment[0] = datetime(2026, 1, 2, tzinfo=UTC)
    assert written()[1] != shown


def test_a_damaged_part_is_not_reported(bench) -> None:
    assert bench.run(IN_PARTS).exit_code == 0
    name = bench.folder / "out" / part_name(0)
    name.write_bytes(parts_of(bench)[NAMES[1]])
    refused = bench.shoal("report", str(bench.folder / "out"))
    assert refused.exit_code == 2
    assert f"{NAMES[0]} is damaged" in refused.stderr


def test_nothing_found_in_any_part(bench) -> None:
    """Some cell gets above the threshold with probability 4e-11: half of delta for each of few rows."""
    given = {**IN_PARTS, "privacy.epsilon": 0.001, "privacy.delta": 1e-12}
    assert bench.run(given).exit_code == 0
    release = bench.release()
    assert (release["outcome"], release["result"]) == ("not_found", None)
    assert pq.read_table(bench.folder / "out" / "result").num_rows == 0


def test_checks_beside_parts(bench) -> None:
    given = {**IN_PARTS, "input.checks": 0.1}
    assert bench.run(given).exit_code == 0
    checks = bench.release()["checks"]
    assert len(checks["left_out"]) == len(checks["moved"]) == 2


def test_jobs_without_parts_are_the_jobs_that_they_were(bench) -> None:
    """A release that an earlier version stored stays the release of its job."""
    sparse = {**IN_PARTS, "params": {"cells": [8, 8], "method": "sparse"}}
    one = check_job(bench.changed(sparse))
    same = check_job(bench.changed({**sparse, "params.parts": 1}))
    assert "parts" not in one.model_dump(mode="json")["params"]
    assert one.hash() == same.hash()
    assert one.hash() != check_job(bench.changed(IN_PARTS)).hash()
    assert check_job(bench.changed(IN_PARTS)).model_dump(mode="json")["params"]["parts"] == PARTS


WRONG: list[dict[str, Any]] = [{"parts": 0}, {"parts": 4097}, {"method": "auto"}, {"method": "dense"}]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_parts(bench, wrong: dict) -> None:
    refused = bench.run({**IN_PARTS, "params": {**IN_PARTS["params"], **wrong}})
    assert refused.exit_code == 2
    assert "params.parts is" in refused.stderr


def test_a_ledger_among_the_parts_is_refused(bench) -> None:
    for name in (NAMES[3], "_attempt.json", "ledger.json"):
        refused = bench.run({**IN_PARTS, "privacy.ledger": str(bench.folder / "out" / "result" / name)})
        assert refused.exit_code == 2
        assert "a run writes a file of this name" in refused.stderr


def test_parts_cost_as_much_as_one_table(bench) -> None:
    from pipelines.plan import make_plan

    one = check_job(bench.changed({**IN_PARTS, "params": {"cells": [8, 8], "method": "sparse"}}))
    parts = check_job(bench.changed(IN_PARTS))
    plans = [make_plan(job, bytes(16)) for job in (one, parts)]
    assert plans[0].mechanisms == plans[1].mechanisms
    assert plans[0].spend == plans[1].spend
    assert json.dumps(draft_release(parts, plans[1])["params"]) == json.dumps(
        {"cells": [8, 8], "failure": 0.1, "method": "sparse", "floor": 0, "parts": PARTS}
    )


def test_an_attempt_is_for_one_order_of_the_public_keys(bench) -> None:
    """In which part a group is follows from the keys and their order, which a file may have changed."""
    keys = bench.folder / "keys.parquet"
    job = {
        "task": "statistics",
        "params": {"measures": ["count"], "parts": PARTS},
        "group_by": {"columns": ["city"], "keys": str(keys)},
    }
    rows = pq.read_table(bench.rows)
    pq.write_table(rows.append_column("city", pa.array(["a"] * len(rows))), bench.rows)
    attempts = []
    for names in (["a", "b", "c"], ["a", "b", "c"], ["c", "b", "a"], ["a", "b", "d"]):
        pq.write_table(pa.table({"city": names}), keys)
        os.utime(keys, ns=(0, 0))
        prepared = prepare_run(check_job(bench.changed(job)))
        attempts.append(attempt_of(dataclasses.replace(prepared, salt=b"the salt of one.")))
    assert attempts[0] == attempts[1] and len(set(map(repr, attempts))) == 3


def test_an_attempt_at_rows_that_contributions_keep_has_its_salt(bench) -> None:
    """Which rows of a unit count follows from the salt, so no part of another draw is joined to it."""
    rows = pq.read_table(bench.rows)
    rows = rows.append_column("who", pa.array([place // 5 for place in range(len(rows))]))
    pq.write_table(rows.append_column("city", pa.array(["a"] * len(rows))), bench.rows)
    job = {
        "task": "statistics",
        "input": {**bench.job["input"], "unit": "who"},
        "params": {"measures": ["count"], "parts": PARTS},
        "group_by": {"columns": ["city"], "keys": ["a", "b", "c"]},
        "contributions": {"groups": 1, "rows": 2},
    }
    prepared = prepare_run(check_job(bench.changed(job)))
    one, again, other = (
        attempt_of(dataclasses.replace(prepared, salt=salt)) for salt in (b"one", b"one", b"other")
    )
    assert one is not None and one == again != other
