"""Screening from a release to files; what the cover says; every refusal before anything is written."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to
from typer.testing import CliRunner

from core.balls import Balls
from core.budget import Budget
from core.k_cover.params import KCover
from core.k_cover.task import K_COVER
from core.neighbors import Neighbors
from core.rounds import run_in_memory
from pipelines.answers import k_cover
from pipelines.cli import app
from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.plan import describe, make_plan
from pipelines.release import complete_release, draft_release
from pipelines.report.report import render
from pipelines.report.summary import summary
from pipelines.run.run import run_job
from pipelines.run.screen import MARKER, screen
from pipelines.run.submit import RunError
from tests.core.seeded import SeededNoise
from tests.pipelines.conftest import planted
from tests.transforms.tables import UNIT_SQUARE
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import InputError, open_source
from transforms.read_blocks import ReadBlocks, Reader, read_in_memory
from transforms.run_rounds import RunRounds

BALL = {"center": [0.5, 0.5], "radius": 0.25, "count": 3}
RELEASE: dict[str, Any] = {
    "schema": 1,
    "task": "one_cluster",
    "run_id": "monday",
    "outcome": "released",
    "domain": {"columns": ["x", "y"], "lower": [0, 0], "upper": [1, 1], "step": 0.0009765625, "ball": None},
    "result": BALL,
}


class Bench:
    """A release and rows beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rows, self.out = folder, folder / "rows", folder / "out"
        self.rows.mkdir()
        self.table = pa.table(
            {"name": list("abcd"), "x": [0.5, 0.75, 0.7501, 0.0], "y": [0.5, 0.5, 0.5, None]}
        )
        pq.write_table(self.table, self.rows / "part.parquet", row_group_size=3)

    def release(self, **changes: Any) -> str:
        path = self.folder / "release.json"
        path.write_text(json.dumps(copy.deepcopy(RELEASE) | changes))
        return str(path)

    def screen(self, output: Path | str | None = None, **changes: Any) -> None:
        screen(self.release(**changes), str(self.rows), str(output or self.out))

    def names(self, side: str) -> list[str]:
        files = sorted((self.out / side).glob("*.parquet"))
        return [name for file in files for name in pq.ParquetFile(file).read()["name"].to_pylist()]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_ball_splits_the_rows_and_nothing_is_said(bench, capfd):
    assert bench.screen() is None
    assert capfd.readouterr() == ("", "")
    assert bench.names("inside") == ["a", "b", "c"]  # the grid cannot tell b from c
    assert bench.names("outside") == ["d"]


def test_a_cover_holds_what_any_of_its_balls_holds(bench):
    balls = [BALL | {"radius": 0.0}, BALL | {"center": [0.75, 0.5], "radius": 0.0}]
    bench.screen(task="k_cover", result={"balls": balls})
    assert bench.names("inside") == ["a", "b", "c"]
    bench.out = bench.folder / "other"
    bench.screen(task="k_cover", result={"balls": balls[:1]})
    assert bench.names("inside") == ["a"]


def test_what_is_written_is_marked_as_private_and_the_mark_holds_no_figure_of_the_rows(bench):
    bench.screen()
    text = (bench.out / MARKER).read_text()
    assert text.startswith("PRIVATE DATA. This is not a release.")
    assert "run monday" in text
    pq.write_table(pa.concat_tables([bench.table] * 50), bench.rows / "part.parquet")
    bench.screen(bench.folder / "more")
    assert (bench.folder / "more" / MARKER).read_text() == text
    assert not list(bench.out.rglob("release.json"))


def test_the_folder_of_a_release_will_do_for_it(bench):
    bench.release()
    screen(str(bench.folder), str(bench.rows), str(bench.out))
    assert bench.names("outside") == ["d"]


CHANGED = [
    ({"task": "k_means"}, "is a release of k_means: only one_cluster and k_cover release balls"),
    ({"outcome": "not_found", "result": None}, "contains no ball"),
    ({"groups": [{}, {}]}, "has balls of 2 groups: rows are screened by the balls of all records"),
    ({"task": "k_cover", "outcome": "not_found", "result": None}, "contains no ball"),
    ({"task": "k_cover", "result": {"balls": []}}, "was changed after its run"),
    ({"result": {"center": [0.5], "radius": 0.1}}, "was changed after its run"),
    ({"result": {"center": [0.5, 7.0], "radius": 0.1}}, "was changed after its run"),
    ({"result": None}, "was changed after its run"),
    ({"domain": {"columns": ["x", "y"]}}, "was changed after its run"),
    ({"schema": 2}, "is not a release of schema 1"),
]


@pytest.mark.parametrize(("changes", "says"), CHANGED, ids=[says for _, says in CHANGED])
def test_releases_without_a_ball_are_refused(bench, changes, says):
    with pytest.raises(JobError, match=says) as caught:
        bench.screen(**changes)
    assert str(caught.value).endswith(".")
    assert not bench.out.exists()


def test_a_missing_release_is_refused(bench):
    with pytest.raises(JobError, match=r"nowhere.release\.json does not exist"):
        screen(str(bench.folder / "nowhere"), str(bench.rows), str(bench.out))


def test_missing_columns_are_refused(bench):
    domain = RELEASE["domain"] | {"columns": ["x", "z"]}
    with pytest.raises(InputError, match=r"z is missing from part\.parquet"):
        bench.screen(domain=domain)
    assert not bench.out.exists()


def test_text_columns_are_refused(bench):
    with pytest.raises(InputError, match="name is string"):
        bench.screen(domain=RELEASE["domain"] | {"columns": ["x", "name"]})


@pytest.mark.parametrize("name", ["mine.txt", ".hidden", "inside/old.parquet"])
def test_an_output_with_something_in_it_is_refused_and_left_alone(bench, name):
    (bench.out / name).parent.mkdir(parents=True)
    (bench.out / name).write_text("mine")
    with pytest.raises(JobError, match="is not empty"):
        bench.screen()
    assert [p for p in bench.out.rglob("*") if p.is_file()] == [bench.out / name]
    assert (bench.out / name).read_text() == "mine"


def test_an_empty_output_will_do(bench):
    bench.out.mkdir()
    bench.screen()
    assert bench.names("outside") == ["d"]


def test_an_output_that_is_a_file_is_refused(bench):
    bench.out.write_text("mine")
    with pytest.raises(JobError, match="is a file"):
        bench.screen()
    assert bench.out.read_text() == "mine"


def test_a_folder_for_waiting_rows_that_is_none_is_refused(bench, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(bench.folder / "missing"))
    with pytest.raises(JobError, match="it is no folder that can be written to"):
        bench.screen()
    assert not bench.out.exists()


def test_an_output_inside_the_input_is_refused(bench):
    """A later job on the input would read every row twice."""
    with pytest.raises(JobError, match="whose rows would then be there twice"):
        bench.screen(bench.rows / "screened")
    with pytest.raises(JobError, match="whose rows would then be there twice"):
        screen(bench.release(), f"{bench.rows}/**/*.parquet", f"{bench.rows}/screened")
    assert [p.name for p in bench.rows.iterdir()] == ["part.parquet"]


@pytest.mark.parametrize("pattern", ["*/*.parquet", "[a-z]*/*.parquet", "**/*.parquet"])
def test_an_output_that_a_glob_would_find_again_is_refused(bench, pattern):
    (bench.rows / "part").mkdir()
    (bench.rows / "part.parquet").rename(bench.rows / "part/more.parquet")
    with pytest.raises(JobError, match="whose rows would then be there twice"):
        screen(bench.release(), f"{bench.rows}/{pattern}", str(bench.rows / "out"))


def test_an_output_inside_the_input_by_a_link_is_refused(bench):
    (bench.folder / "link").symlink_to(bench.rows)
    with pytest.raises(JobError, match="whose rows would then be there twice"):
        screen(bench.release(), str(bench.folder / "link"), str(bench.rows / "out"))


def test_an_output_that_a_glob_does_not_find_is_allowed(bench):
    bench.out = bench.rows / "out"
    screen(bench.release(), f"{bench.rows}/*.parquet", str(bench.out))
    assert bench.names("outside") == ["d"]


def test_the_rows_are_for_their_owner_alone(bench):
    bench.screen()
    written = list(bench.out.glob("*side/*"))
    assert written
    assert {file.stat().st_mode & 0o777 for file in written} == {0o600}


def test_files_that_would_be_written_over_each_other_are_refused(bench):
    for name in ("a", "a.parquet"):
        pq.write_table(bench.table, bench.rows / name)
    with pytest.raises(InputError, match=r"has a and a\.parquet, which may be the same rows twice"):
        screen(bench.release(), f"{bench.rows}/*", str(bench.out))
    assert not bench.out.exists()


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("day", {"where": "day == 'monday'", "types": {"day": "text"}}),
        ("y", {"types": {"y": "number"}}),
    ],
)
def test_a_column_of_folders_decides_about_no_row(bench, name, rows):
    """The files that are written would lack it."""
    (bench.rows / f"{name}=1").mkdir()
    (bench.rows / "part.parquet").unlink()
    table = bench.table.drop_columns(name) if name in bench.table.column_names else bench.table
    pq.write_table(table, bench.rows / f"{name}=1" / "part.parquet")
    with pytest.raises(InputError, match=f"input.path: {name} is a column of folders, but rows are screened"):
        bench.screen(rows=rows)
    assert not bench.out.exists()


@pytest.mark.parametrize("letters", ["a" * 242, "a" * 100 + "ä" * 71])
def test_a_file_whose_rows_would_have_too_long_a_name_is_refused(bench, letters):
    """The names of the output end in the number of the row group; nothing is left that a retry refuses."""
    path = bench.rows / "part.parquet"
    path = path.rename(bench.rows / f"{letters}.parquet")
    with pytest.raises(
        InputError, match=r"is too long a name: -99999\.parquet is added to it, and a name may have 255"
    ):
        bench.screen()
    assert not bench.out.exists()
    path.rename(bench.rows / f"{letters[1:]}.parquet")
    bench.screen()
    assert sorted(bench.names("inside") + bench.names("outside")) == list("abcd")


def test_an_option_that_fails_while_building_leaves_no_folder(bench):
    with pytest.raises(JobError, match="The Beam options after -- are wrong"):
        screen(bench.release(), str(bench.rows), str(bench.out), beam_options=["--gbek=x"])
    assert not bench.out.exists()


def test_unknown_runners_and_schemes_are_refused(bench):
    with pytest.raises(JobError, match="--runner is DaskRunner"):
        screen(bench.release(), str(bench.rows), str(bench.out), runner="DaskRunner")
    with pytest.raises(JobError, match="scheme that is not supported"):
        bench.screen("ftp://bucket/out")


def test_what_fails_on_a_worker_is_said_without_quoting_rows(bench, monkeypatch):
    bench.out.mkdir()
    with monkeypatch.context() as late:
        late.setattr(
            "pipelines.run.screen._check_output", lambda *_: (bench.out / "inside").write_text("mine")
        )
        with pytest.raises(RunError, match=r"part-0000\d\.parquet cannot be written \(.+\)\.$"):
            bench.screen()
    damaged = bytearray((bench.rows / "part.parquet").read_bytes())
    damaged[4:60] = bytes(56)
    (bench.rows / "part.parquet").write_bytes(damaged)
    with pytest.raises(
        RunError, match=r"^input\.path: part\.parquet can no longer be read, or is damaged\.$"
    ):
        bench.screen(bench.folder / "other")


def test_the_command_splits_rows_and_says_where_they_are(bench):
    # A process of its own: in this one, runners of earlier tests may still write to the error stream.
    command = [sys.executable, "-c", "from pipelines.cli import main; main()"]
    given = ["screen", bench.release(), str(bench.rows), str(bench.out)]
    said = subprocess.run([*command, *given], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.split() == [f"{bench.out}/inside", f"{bench.out}/outside"]
    assert bench.names("inside") == ["a", "b", "c"]


def test_the_command_refuses_in_a_sentence(bench):
    given = ["screen", bench.release(), str(bench.rows), str(bench.out), "--runner", "DaskRunner"]
    said = CliRunner().invoke(app, given)
    assert (said.exit_code, said.stdout) == (2, "")
    assert said.stderr.startswith("shoal: --runner is DaskRunner")
    assert not bench.out.exists()


# The cover by Beam, and how it speaks


def cover_job(folder: Path, **params: Any):
    return check_job(
        {
            "task": "k_cover",
            "input": {"path": str(folder), "columns": ["x", "y"], "checks": 0},
            "domain": {"lower": [0, 0], "upper": [1, 1], "step": 2.0**-10},
            "privacy": {"epsilon": 4.0, "delta": 1e-6},
            "params": params,
            "output": str(folder / "out"),
        }
    )


def spoken(job, points) -> tuple[dict[str, Any], str, str]:
    """Return release, terminal lines and report of a run in memory."""
    plan = make_plan(job, bytes(16))
    pq.write_table(pa.table({"x": points[:, 0], "y": points[:, 1]}), f"{job.input.path}/rows.parquet")
    blocks = read_in_memory(open_source(f"{job.input.path}/rows.parquet", ["x", "y"]), UNIT_SQUARE)
    state = run_in_memory(plan.rounds, blocks, plan.start, SeededNoise(5))
    release = json.loads(complete_release(draft_release(job, plan), state, job.domain.grid()))
    return release, "\n".join(summary(release, k_cover.answer(release, None))), render(release)


@pytest.mark.slow
def test_from_a_job_to_screened_rows(bench):
    """All of it by Beam: a row is inside exactly where a ball of the release holds it, and no row is lost."""
    points = planted(6000, 4000)
    table = pa.table({"x": points[:, 0], "y": points[:, 1], "id": np.arange(6000)})
    pq.write_table(table, bench.rows / "part.parquet", row_group_size=1500)
    job = cover_job(bench.rows, k=2, target=1500).model_copy(update={"output": str(bench.folder / "release")})
    balls = run_job(job)["result"]["balls"]
    screen(str(bench.folder / "release"), str(bench.rows), str(bench.out))
    ids = {
        side: pq.read_table(bench.out / side, columns=["id"])["id"].to_numpy()
        for side in ("inside", "outside")
    }
    held = Balls.of(UNIT_SQUARE, balls).hold(UNIT_SQUARE.quantize(points))
    assert sorted(ids["inside"]) == np.flatnonzero(held).tolist()
    assert sorted(ids["outside"]) == np.flatnonzero(~held).tolist()
    assert held[:4000].sum() > 1000


@pytest.mark.slow
@pytest.mark.parametrize("mode", [{"target": 1500}, {"coverage": 0.5}])
def test_the_rounds_by_beam_give_what_they_give_in_memory(bench, mode):
    points = planted(6000, 4000)
    pq.write_table(
        pa.table({"x": points[:, 0], "y": points[:, 1]}), bench.rows / "part.parquet", row_group_size=900
    )
    source = open_source(str(bench.rows), ["x", "y"])
    params, one = KCover(2, **mode), Neighbors("add_or_remove_one")
    plan = K_COVER.plan(UNIT_SQUARE, params, Budget(4.0, 1e-6), one, bytes(16))
    none = SeededNoise(0, factor=0)
    expected = run_in_memory(plan.rounds, read_in_memory(source, UNIT_SQUARE), plan.start, none)
    assert len(expected.balls) == 2
    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([])) as pipeline:
        state = (
            pipeline
            | ReadBlocks(source)
            | RunRounds(plan.rounds, plan.start, none, Reader.of(source, UNIT_SQUARE))
        )
        found = state | beam.Map(lambda cover: str(cover.result(UNIT_SQUARE)))
        assert_that(found, equal_to([str(expected.result(UNIT_SQUARE))]))


def test_a_cover_is_said_drawn_and_listed(tmp_path):
    job = cover_job(tmp_path, k=3, coverage=0.3)
    release, lines, report = spoken(job, planted(12_000, 5000))
    balls = release["result"]["balls"]
    assert release["outcome"] == "released"
    assert 1 <= len(balls) <= 3
    assert abs(release["result"]["rows"] - 12_000) < 1000  # the noise has a scale of 30
    assert "30% of the rows" in lines
    assert "The balls, in the order in which they were found" in lines
    assert f"{balls[0]['count']:,}" in report
    assert "a ball, at its true size" in report or "the ball, at its true size" in report
    assert "The balls, in the order in which they were found" in report


def test_nothing_found_is_said(tmp_path):
    release, lines, report = spoken(cover_job(tmp_path, k=2, target=1000), np.empty((0, 2)))
    assert (release["outcome"], release["result"]) == ("not_found", None)
    assert "No cluster was found" in lines
    assert "No cluster was found" in report


def test_many_columns_are_listed_in_part():
    result = {"balls": [{"center": [0.5] * 12, "radius": 0.1, "count": 1000}]}
    columns = [f"c{i}" for i in range(12)]
    answer = k_cover.answer(
        {
            "params": {"k": 2, "target": 900, "coverage": None},
            "domain": {"columns": columns, "lower": [0] * 12, "upper": [1] * 12, "step": 0.001},
            "accuracy": {"failure": 0.1, "promises": {"count_error": 50}},
            "result": result,
        },
        None,
    )
    assert answer.headline == "One ball contains about 1,000 rows"
    assert answer.tables[0].headers == ("ball", "rows", "radius", *columns[:8])
    assert "the first 8 of 12 columns" in answer.tables[0].title
    (figure,) = answer.figures  # a range on each column's own axis
    assert len(figure.picture.plots) == 12


@pytest.mark.parametrize(
    ("params", "promised", "says"),
    [
        ({"k": 2, "target": 200_000}, True, "It contains at least"),
        ({"k": 2, "target": 20}, False, "it is not promised that a ball is found"),
        ({"k": 2, "coverage": 0.9}, False, "This is not promised"),
    ],
)
def test_promises_are_said_and_so_are_those_that_are_not_made(tmp_path, params, promised, says):
    job = cover_job(tmp_path, **params)
    plan = describe(job, make_plan(job, bytes(16)))
    said = " ".join(k_cover.promises(plan))
    assert "The count of each ball is within" in said
    assert ("rows is within" in said) == ("coverage" in params)
    assert (k_cover.unpromised(plan) is None) == promised
    assert says in f"{said} {k_cover.unpromised(plan)}"
