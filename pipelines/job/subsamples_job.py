"""A job whose records are the answers of a function to disjoint subsamples of the rows."""

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import computed_field

from core.domain import Grid
from pipelines.job.groups import GroupsJob
from pipelines.job.inputs import SubsamplesInput
from pipelines.job.prepared import check_prepared

if TYPE_CHECKING:
    from transforms.run_function import Function


class SubsamplesJob(GroupsJob):
    """A job whose records are answers of a function to disjoint subsamples of all rows, or of each group."""

    input: SubsamplesInput

    _rows_too: ClassVar[str] = ""
    _without_groups: ClassVar[str] = "takes all rows of a unit: leave it out"
    _in_each_group: ClassVar[str] = "takes all rows of a unit in each group that it keeps, so leave it out"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def domain(self) -> dict[str, Any]:
        """The universe of the answers, with the keys of the release."""
        outputs = self.task_params.outputs
        names = [f"value_{axis}" for axis in range(len(outputs.lower))]
        return {"columns": names, **outputs.model_dump(mode="json"), "ball": None}

    @property
    def grid(self) -> Grid:
        """See `Job.grid`."""
        return cast(Grid, self.task_params.outputs.grid())

    @property
    def unit(self) -> str | None:
        """See `Job.unit`."""
        return self.input.unit

    def untrusted(self) -> "Function":
        """Return the function with its limits, as workers run it, and the files that it must not see."""
        places = [*_files(self.input.path), self.output, self.privacy.ledger]
        unseen = tuple(place for place in places if place and "://" not in place)
        return replace(self.task_params.untrusted(), unseen=unseen)

    def check_records(self) -> None:
        """See `Job.check_records`."""
        super().check_records()
        if self.privacy.policy is not None:
            raise ValueError(
                "privacy.policy is about points of a domain, but a function receives rows as they are: "
                "leave it out."
            )
        check_prepared(self.input, self.privacy, self.unit, True)
        bounds = self.input.bounds
        if bounds is not None and len(bounds) != len(self.input.columns):
            raise ValueError(
                f"input.bounds has {len(bounds)} entries for {len(self.input.columns)} columns: "
                "give one per column."
            )
        for low, high in bounds or ():
            if not -math.inf < low < high < math.inf:
                raise ValueError(
                    f"input.bounds has [{low}, {high}]: give two finite numbers, the lower one first."
                )


def _files(path: str) -> list[str]:
    """Return where the files of a local input really are: one file, or their folders; none without a list.

    Links below a folder or a glob are no files of the input.
    """
    from transforms.list_files import InputError, list_files

    if "://" in path:
        return []
    try:
        files = [file.path for file in list_files(path)]
    except InputError:  # which the run tells
        return []
    folders = sorted({os.path.dirname(file) for file in files})
    return list(map(os.path.realpath, files if len(files) == 1 else folders))
