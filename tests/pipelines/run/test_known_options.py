"""An option that nobody knows is refused with the nearest one: Beam would pass over it."""

import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from pipelines.run.runners import RUNNERS, make_options


@pytest.fixture
def job(bench):
    return check_job(bench.changed({}))


@pytest.mark.parametrize(
    ("runner", "options", "says"),
    [
        ("FnApiRunner", ["--direct_num_worker=1"], "is --direct_num_workers"),
        ("FnApiRunner", ["--direct_num_work", "1"], "is --direct_num_workers"),
        ("FnApiRunner", ["--max_bundle_size=5"], "--max_bundle_size is not an option of Beam or FnApiRunner"),
        ("FnApiRunner", ["-d"], "-d is not an option"),
        ("FnApiRunner", ["--help"], "--help is not an option"),
        ("FnApiRunner", ["--\x1b[31m=1"], "is not an option"),
        ("FnApiRunner", ["--no_auth", "stray"], "stray is not a Beam option"),
        ("FlinkRunner", ["--flink_mastre=a:1"], "is --flink_master"),
        ("FlinkRunner", ["--max_bundle_sizes=1"], "is --max_bundle_size"),
        ("PrismRunner", ["--prism_locations=a"], "is --prism_location"),
        ("DataflowRunner", ["--projekt=p"], "is --project"),
        ("DataflowRunner", ["--runn=FlinkRunner"], "is --runner"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest(job, runner, options, says):
    with pytest.raises(JobError, match=says):
        make_options(runner, job, options)


@pytest.mark.parametrize("runner", RUNNERS)
def test_options_in_full_are_taken_in_both_forms(job, runner):
    given = [
        "--direct_num_workers",
        "1",
        "--labels=a=b",
        "--no_auth",
        "--job-server-timeout=9",
        "--streaming",
    ]
    options = make_options(runner, job, [*given, "--max_bundle_size=5"] if runner == "FlinkRunner" else given)
    assert options.get_all_options()["direct_num_workers"] == 1


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--gbek=x", "The Beam options after -- are wrong: "),
        ("--update_compatibility_version=abc", "The Beam options after -- are wrong: invalid literal"),
        ("--update_compatibility_version=1.0", "The Beam options after -- are wrong: This pipeline runs"),
        ("--pickle_library=dill", "The Beam options after -- are wrong: Pipeline option pickle_library=dill"),
        ("--direct_num_workers=300", "--direct_num_workers is 300: it must be from 1 to 128"),
        ("--profile_cpu", "--profile_cpu and --profile_memory do not work with FnApiRunner"),
        ("--profile_memory", "--profile_cpu and --profile_memory do not work with FnApiRunner"),
        ("--dry_run=true", "--dry_run is given after --: give --dry-run before --"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_nothing_is_charged_for_an_option_that_beam_would_read_later(bench, refused, option, says, dry_run):
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=5.0, delta=1e-5))
    flags = ["--dry-run"] if dry_run else []
    assert says in refused(bench.run({"privacy.ledger": path}, *flags, "--", option))
    assert read_ledger(path).charges == ()


def test_nothing_is_charged_for_an_unknown_option(bench, refused):
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=5.0, delta=1e-5))
    said = refused(bench.run({"privacy.ledger": path}, "--", "--direct_num_work=1"))
    assert said.endswith(
        "--direct_num_work is not an option of Beam or FnApiRunner: the most similar one is "
        "--direct_num_workers."
    )
    assert read_ledger(path).charges == ()
