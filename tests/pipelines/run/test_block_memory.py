"""Blocks that may need more memory than a worker has are refused by the plan and before a run is charged."""

import pytest

import pipelines.run.block_memory
from pipelines.errors import JobError
from pipelines.run.block_memory import check_block_memory, machine_memory
from tests.pipelines.jobs import changes

TOO_MUCH = 1_000_000


def given(megabytes: int) -> dict:
    job = changes("sample_and_aggregate")
    return {**job, "params": {**job["params"], "memory_limit": megabytes}}


def test_a_plan_says_what_a_run_refuses_before_it_is_charged(bench, refused):
    changed = given(TOO_MUCH)
    planned = bench.shoal("plan", bench.write(bench.changed(changed)), "--json")
    assert planned.exit_code == 0 and '"method"' in planned.stdout
    problem = refused(bench.run(changed)).removeprefix("shoal: ")
    assert planned.stderr == f"shoal: A run here would be refused. {problem}\n"
    assert problem.startswith(f"params.memory_limit is {TOO_MUCH}: ")
    assert not (bench.folder / "out").exists()


@pytest.mark.parametrize(
    ("megabytes", "workers", "fits"), [(1000, 2, True), (1001, 2, False), (2000, 1, True), (2001, 1, False)]
)
def test_every_worker_must_have_the_memory_of_a_block(monkeypatch, megabytes, workers, fits):
    monkeypatch.setattr(pipelines.run.block_memory, "machine_memory", lambda: 2000 << 20)
    if fits:
        check_block_memory(megabytes, workers)
        return
    with pytest.raises(JobError, match=rf"params\.memory_limit is {megabytes}: .* at most {2000 // workers}"):
        check_block_memory(megabytes, workers)


def test_a_container_may_have_less_than_its_machine(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(pipelines.run.block_memory, "_CONTAINER", limit)
    whole = machine_memory()
    for text, memory in (("max\n", whole), (f"{1 << 28}\n", 1 << 28), (f"{whole * 2}\n", whole)):
        limit.write_text(text)
        assert machine_memory() == memory
