"""Screen a dataset: which of its rows a released ball or cover holds, and which are outside of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from pyarrow import fs

from core.balls import Balls
from core.domain import Ball, Grid
from pipelines.errors import JobError
from pipelines.job.job import Job
from pipelines.release import RELEASE, parse_release
from pipelines.run.runners import EMBEDDED, check_options, make_options, open_pipeline
from pipelines.run.submit import submit
from pipelines.storage.locate import absolute, open_folder
from transforms.list_files import InputError, filesystem, lies_within
from transforms.open_source import Source, open_source
from transforms.read_blocks import Descriptor, ReadBlocks, Reader
from transforms.screen_rows import Screen, ScreenRows, file_name

MARKER = "README.txt"
_MARKS = """\
PRIVATE DATA. This is not a release.

The files in inside/ and outside/ hold rows of the input, unchanged: inside/ those that lie in {what}
released by {release} (run {run_id}), outside/ all the others, also those with a null, NaN or infinity in
{columns}.

Their names, sizes and numbers of rows are private too. Keep all of it as the input is kept, and publish only
what a private analysis of it releases. Rows chosen by a release are still the same people's rows: what is
spent on them adds up with what was spent on the input.
"""


@dataclass(frozen=True)
class Named:
    """What names the Beam job of a screening."""

    run_id: str
    task: str = "screen"


def screen(
    release_path: str,
    input_path: str,
    output_path: str,
    runner: str = EMBEDDED,
    beam_options: Sequence[str] = (),
) -> None:
    """Write the input's rows, with all columns, to `inside` and `outside` of the output folder.

    Nothing is spent: the balls are public, and what is written is not. Nothing that depends on rows is
    returned or said.

    Args:
        release_path: release.json of one_cluster or k_cover, or the folder that holds it.
        input_path: a Parquet file, a folder of them or a glob; it needs the columns of the release.
        output_path: a folder that does not exist yet, or is empty.
        runner: name of a Beam runner; see `pipelines.run.runners`.
        beam_options: further options of Beam.

    Raises:
        JobError: the release has no ball, or the output folder or the runner is wrong.
        InputError: the input has not the columns of the release, or is no Parquet.
        StorageError: storage keeps failing.
        RunError: anything else.
    """
    release = _read_release(absolute(release_path))
    grid, balls = _balls(release, release_path)
    options = make_options(runner, cast(Job, Named(str(release["run_id"]))), beam_options)
    check_options(options)
    source = open_source(absolute(input_path), release["domain"]["columns"])
    screening = Screen(Reader.of(source, grid), balls)
    output = absolute(output_path).rstrip("/")
    _check_output(output, absolute(input_path))
    _check_names(source)
    what = "the ball" if len(balls.radii) == 1 else "one of the balls"
    columns = ", ".join(source.columns)
    text = _MARKS.format(what=what, release=release["task"], run_id=release["run_id"], columns=columns)
    if not open_folder(output).create(MARKER, text.encode()):
        raise JobError(f"OUTPUT {output_path} is not empty: give a new folder.")
    submit(partial(_build, options, source, screening, output), f"{output} is not complete")


def _read_release(path: str) -> dict[str, Any]:
    folder = open_folder(path.removesuffix(f"/{RELEASE}"))
    data = folder.read(RELEASE)
    if data is None:
        raise JobError(f"RELEASE {folder.locate(RELEASE)} does not exist: give a release.json or its folder.")
    return parse_release(data, f"RELEASE {folder.locate(RELEASE)}")


def _balls(release: Mapping[str, Any], path: str) -> tuple[Grid, Balls]:
    """Return the grid and the balls of a release.

    A search that found nothing is refused: all rows outside of no ball would say nothing of any row.
    """
    task = release.get("task")
    if task not in ("one_cluster", "k_cover"):
        raise JobError(f"RELEASE {path} is of {task}: only one_cluster and k_cover release balls.")
    if release["outcome"] != "released":
        raise JobError(
            f"RELEASE {path} found no ball (outcome {release['outcome']}): nothing can be screened."
        )
    try:
        domain, result = release["domain"], release["result"]
        ball = domain.get("ball")
        grid = Grid(
            tuple(domain["lower"]),
            tuple(domain["upper"]),
            domain["step"],
            None if ball is None else Ball(tuple(ball["center"]), ball["radius"]),
        )
        grid.check_distances()
        return grid, Balls.of(grid, result["balls"] if task == "k_cover" else [result])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise JobError(f"RELEASE {path} has no balls in its domain: it was changed after its run.") from None


def _check_output(output: str, input_path: str) -> None:
    """Refuse a folder with something in it, and one that a later job would read as part of the input."""
    if lies_within(input_path, output):
        raise JobError(
            f"OUTPUT {output} lies in INPUT {input_path}, whose rows would then be there twice: give a "
            "folder elsewhere."
        )
    folder = open_folder(output)
    try:
        system, where = filesystem(output)
        found = system.get_file_info(where)
        below = (
            system.get_file_info(fs.FileSelector(where, allow_not_found=True)) if not found.is_file else []
        )
    except OSError as error:
        raise JobError(f"OUTPUT {output} cannot be listed ({error.strerror or 'no answer'}).") from None
    if found.is_file:
        raise JobError(f"OUTPUT {output} is a file: give a new folder.")
    if below:
        raise JobError(f"OUTPUT {output} is not empty: give a new folder.")
    folder.prepare()


def _check_names(source: Source) -> None:
    """Refuse files that would be written over each other, such as `a` and `a.parquet`."""
    named: dict[str, str] = {}
    for file in source.files:
        other = named.setdefault(file_name(Descriptor(file, 0, 0)), file.name)
        if other != file.name:
            raise InputError(
                f"input.path: {other} and {file.name} would become files of one name: rename one of them."
            )


def _build(options: PipelineOptions, source: Source, screening: Screen, output: str) -> beam.Pipeline:
    pipeline = open_pipeline(options)
    _ = pipeline | "Read" >> ReadBlocks(source) | "Rows" >> ScreenRows(screening, output)
    return pipeline
