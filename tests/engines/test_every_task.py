"""Every task, alone and by group, gives what memory gives, bit for bit: two processes, Prism, Flink."""

from pathlib import Path

import pytest

from core.one_cluster.found import Found
from tests.engines.cluster_job import Submission
from tests.engines.flink import FLINK_OPTIONS, FlinkCluster, JobServer
from tests.engines.golden import OTHERS, TASKS, Trace
from tests.engines.services import Prism
from tests.engines.strands_job import KEYS, StrandsJob, assert_equal
from tests.pipelines.jobs import GROUPED, IN_ONE_PASS

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(1_200)]

TWO_PROCESSES = ["--runner=FnApiRunner", "--direct_num_workers=2", "--direct_running_mode=multi_processing"]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> StrandsJob:
    return StrandsJob.make(tmp_path_factory.mktemp("rows"), 40_000)


@pytest.fixture(scope="module")
def expected(job: StrandsJob) -> dict[str, list[Trace]]:
    return job.run_in_memory()


def test_the_job_is_not_trivial(expected: dict[str, list[Trace]]) -> None:
    assert len(expected["tasks"]) == len(TASKS | OTHERS)
    together = len(KEYS) - 1
    assert len(expected["grouped"]) == len(GROUPED) * len(KEYS) - len(IN_ONE_PASS) * together
    first, second, empty = expected["groups"]
    assert len(first.aggregates) > 3 and repr(first.aggregates) != repr(second.aggregates)
    assert isinstance(first.state.state, Found) and not isinstance(empty.state.state, Found)
    assert expected["questions"][0].state.state.labels.tolist() == [b'["a"]', b'["b"]', b'["c"]']
    traces = iter(expected["grouped"])
    for task in GROUPED:
        if task in IN_ONE_PASS:
            answers = [found for _, found in next(traces).state]
        else:
            answers = [next(traces).aggregates for _ in KEYS]
        assert len(set(map(repr, answers))) == len(KEYS), task


def test_in_two_processes(job: StrandsJob, expected: dict[str, list[Trace]], tmp_path: Path) -> None:
    assert_equal(Submission(job, tmp_path / "out", TWO_PROCESSES).wait(), expected)


def test_on_prism(prism: Prism, job: StrandsJob, expected: dict[str, list[Trace]], tmp_path: Path) -> None:
    options = ["--runner=PortableRunner", f"--job_endpoint={prism.endpoint}", "--environment_type=LOOPBACK"]
    assert_equal(Submission(job, tmp_path / "out", options).wait(), expected)


def test_on_flink_with_two_task_managers(
    flink: FlinkCluster,
    job_server: JobServer,
    process_workers: list[str],
    job: StrandsJob,
    expected: dict[str, list[Trace]],
    tmp_path: Path,
) -> None:
    flink.resize(2)
    options = ["--runner=PortableRunner", f"--job_endpoint={job_server.endpoint}", *FLINK_OPTIONS]
    assert_equal(Submission(job, tmp_path / "out", [*options, *process_workers]).wait(), expected)
    assert len(flink.task_managers_of_last_job()) == 2
