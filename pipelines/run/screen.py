"""Screen a dataset: split its rows into those inside the released balls and those outside."""

import os
import posixpath
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from pyarrow import fs

from core.balls import Balls
from core.domain import Ball, Grid
from core.k_cover import found as k_cover
from core.one_cluster import found as one_cluster
from pipelines.dates import as_steps, grid_of
from pipelines.errors import JobError
from pipelines.job.inputs import Input
from pipelines.job.job import Job
from pipelines.release import RELEASE, parse_release
from pipelines.run.runners import EMBEDDED, check_options, make_options, open_pipeline
from pipelines.run.submit import submit
from pipelines.storage.locate import absolute, open_folder
from transforms.column_types import give_types, used_types
from transforms.encrypted_columns import Encrypted
from transforms.list_files import File, InputError, filesystem, lies_within, list_files, short
from transforms.open_source import Opened, Source, open_files, open_source
from transforms.preparation import Preparation
from transforms.read_blocks import Descriptor, ReadBlocks, Reader
from transforms.schemes import LOCAL, split_scheme
from transforms.screen_rows import Screen, ScreenRows, file_name
from transforms.whole_file import LONGEST_NAME

MARKER = "README.txt"
_MOST_ROW_GROUPS = 99_999
_MARKS = """\
PRIVATE DATA. This is not a release.

The files in inside/ and outside/ contain rows of the input, unchanged but for INT96 timestamps, which are cut
to microseconds. inside/ has the rows that lie in {what} released by {release} (run {run_id}). outside/ has
all other rows, including those with a null, NaN or infinity in {columns}{unused}.

The names, sizes and numbers of rows of these files are private, too. Protect them like the input, and publish
only the results of private analyses. The rows are still those of the same people, so the budget of an
analysis of these files adds to the budget that was spent on the input.
"""


@dataclass(frozen=True)
class Named:
    """The run id and task that name the Beam job of a screening."""

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

    No budget is spent, because the balls are public and the output is private. Nothing that depends on rows
    is returned or printed.

    Args:
        release_path: release.json of one_cluster or k_cover, or the folder that holds it.
        input_path: a file of Parquet, a folder of them or a glob; it needs the columns of the release.
        output_path: a new or empty folder.
        runner: name of a Beam runner; see `pipelines.run.runners`.
        beam_options: further options of Beam.

    Raises:
        JobError: the release has no ball, or the output folder or the runner is wrong.
        InputError: the input lacks columns of the release, is not Parquet, or has encrypted columns.
        StorageError: storage keeps failing.
        RunError: anything else.
    """
    release = _read_release(absolute(release_path))
    grid, balls = _balls(release, release_path)
    options = make_options(runner, cast(Job, Named(str(release["run_id"]))), beam_options)
    check_options(options, beam_options)
    preparation = _preparation(release, release_path)
    columns = release["domain"]["columns"]
    _check_files(list_files(absolute(input_path)), {*columns, *preparation.sources(columns)})
    opened = open_files(absolute(input_path))
    _check_readable(opened)
    opened = give_types(opened, None, preparation, [used_types(columns, times=grid.times)])
    source = open_source(
        absolute(input_path), columns, opened=opened, preparation=preparation, times=grid.times
    )
    screening = Screen(Reader.of(source, grid), balls)
    output = absolute(output_path).rstrip("/")
    _check_output(output, absolute(input_path))
    _check_names(source, output)
    what = "the ball" if len(balls.radii) == 1 else "one of the balls"
    where = release.get("rows", {}).get("where")
    text = _MARKS.format(
        what=what,
        release=release["task"],
        run_id=release["run_id"],
        columns=", ".join(source.columns),
        unused="" if where is None else f", and those for which this is not true:\n{where}",
    )
    if not open_folder(output).create(MARKER, text.encode()):
        raise JobError(f"OUTPUT {output_path} is not empty: give a new folder.")
    submit(partial(_build, options, source, screening, output), f"{output} may be incomplete")


def _read_release(path: str) -> dict[str, Any]:
    folder = open_folder(path.removesuffix(f"/{RELEASE}"))
    data = folder.read(RELEASE)
    if data is None:
        raise JobError(f"RELEASE {folder.locate(RELEASE)} does not exist: give a release.json or its folder.")
    return parse_release(data, f"RELEASE {folder.locate(RELEASE)}")


def _balls(release: Mapping[str, Any], path: str) -> tuple[Grid, Balls]:
    """Return the grid and the balls of a release.

    Raises:
        JobError: the release has no ball.
    """
    task = release.get("task")
    if task not in ("one_cluster", "k_cover"):
        raise JobError(f"RELEASE {path} is a release of {task}: only one_cluster and k_cover release balls.")
    if release["outcome"] != "released":
        raise JobError(
            f"RELEASE {path} contains no ball (outcome {release['outcome']}): nothing can be screened."
        )
    if "groups" in release:
        raise JobError(
            f"RELEASE {path} has balls of {len(release['groups'])} groups: rows are screened by the balls of "
            "all records, so give a release without group_by."
        )
    try:
        domain, ball = release["domain"], release["domain"].get("ball")
        grid = grid_of(domain)
        if ball is not None:
            grid = replace(grid, ball=Ball(tuple(ball["center"]), ball["radius"]))
        grid.check_distances()
        kind = k_cover.Result if task == "k_cover" else one_cluster.Result
        result = as_steps(kind, release["result"], grid.times)
        return grid, Balls.of(grid, result["balls"] if task == "k_cover" else [result])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise JobError(f"RELEASE {path} has no valid balls: it was changed after its run.") from None


def _preparation(release: Mapping[str, Any], path: str) -> Preparation:
    """Return how rows were prepared before the balls were found."""
    try:
        columns = release["domain"]["columns"]
        prepared = {key: value for key, value in release.get("rows", {}).items() if key != "count"}
        given = Input(path=".", columns=tuple(columns), **prepared)
    except (TypeError, ValueError):
        raise JobError(f"RELEASE {path} has no valid rows: it was changed after its run.") from None
    return given.preparation()


def _check_files(files: Sequence[File], used: Set[str]) -> None:
    """Check that files can be written as they are read, before columns of folders are asked for a type.

    Args:
        files: of the input.
        used: columns that decide about rows.

    Raises:
        InputError: they are not Parquet, or a column that decides about rows is one of folders.
    """
    for file in files[:1]:  # all are of one format and have the same folders
        for name in used & dict(file.folders).keys():
            raise InputError(
                f"input.path: {short(name)} is a column of folders, but rows are screened by columns of the "
                "files; give files that have it."
            )
        if file.format != "Parquet":
            raise InputError(
                f"input.path: {short(file.name)} is {file.format}; only Parquet can be screened."
            )


def _check_readable(opened: Opened) -> None:
    """Check that no column is encrypted, used or not, because all are copied.

    Raises:
        InputError: one is.
    """
    for file, schema in zip(*opened[:2], strict=True):
        for column in schema:
            if isinstance(column.type, Encrypted):
                raise InputError(
                    f"input.path: {short(column.name)} is encrypted in {short(file.name)}, but every column "
                    "is copied; give files whose columns are all in plain text."
                )


def _check_output(output: str, input_path: str) -> None:
    """Check that the output is empty and lies outside the input, where a later job would read it."""
    if lies_within(input_path, output):
        raise JobError(
            f"OUTPUT {output} lies in INPUT {input_path}, whose rows would then be there twice: give a "
            "folder outside the input."
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


def _check_names(source: Source, output: str) -> None:
    """Check that a local disk permits the names of the files, which differ as those of sources do."""
    for file in source.files:
        base = posixpath.basename(file_name(Descriptor(file, _MOST_ROW_GROUPS, 0)))
        if len(os.fsencode(base)) > LONGEST_NAME and split_scheme(output)[0] == LOCAL:
            raise InputError(
                f"input.path: {short(file.name)} is too long a name: {base[-14:]} is added to it, and a "
                f"name may have {LONGEST_NAME} bytes; rename the file."
            )


def _build(options: PipelineOptions, source: Source, screening: Screen, output: str) -> beam.Pipeline:
    pipeline = open_pipeline(options)
    _ = pipeline | "Read" >> ReadBlocks(source) | "Rows" >> ScreenRows(screening, output)
    return pipeline
