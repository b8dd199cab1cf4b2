"""The parameters of sample and aggregate in a job file: the function, its outputs and its limits."""

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from core.domain import Grid
from core.sample_and_aggregate.params import SampleAndAggregate
from pipelines.job.function_file import FILE, Code
from pipelines.job.policy import JobPart

if TYPE_CHECKING:
    from transforms.run_function import Function

_PLACE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"
Argument = bool | int | float | str | tuple[float, ...] | tuple[tuple[float, ...], ...]

_LONGEST, _LARGEST = 86_400, 1_000_000


class Outputs(JobPart):
    """The finite universe of the answers. It is public. Answers are clamped and rounded to it."""

    lower: tuple[float, ...] = Field(
        examples=[(-1,)], description="Lower bound of each value that the function returns."
    )
    upper: tuple[float, ...] = Field(examples=[(1,)], description="Upper bound of each value.")
    step: float = Field(examples=[0.001], description="Distance between neighboring grid points.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.grid().check_distances()
        return self

    def grid(self) -> Grid:
        """Return the universe as core knows it."""
        return Grid(self.lower, self.upper, self.step)


@dataclass(frozen=True, kw_only=True)
class Analysis(SampleAndAggregate):
    """Run any function on disjoint blocks of the rows and release the answer that most blocks agree on.

    Args:
        function: `FILE.py:name`, where a relative path begins at the folder of the job file, or
            `module:name`, importable on the workers. It takes the rows of one block as a pyarrow.Table and
            returns as many numbers as `outputs` has axes. It need not be private.
        arguments: keyword arguments of the function: plain values, lists of numbers, or lists of such lists.
        outputs: the universe of its answers.
        time_limit: seconds of processor time per block; give several times what check-function shows.
            The elapsed time may be 10 times as long, and at least 60 seconds.
        memory_limit: megabytes per block.
        constant_time: whether each block takes the whole time limit, so that its duration reveals nothing.
            The limit then is also one of elapsed time, so a busy machine may change answers.
        isolation: `process`: each block gets a process of its own, with the rights of the worker. `sandbox`:
            that process also has no network, no files but those of the system and of Python's packages, and
            no other processes; the worker must be a Linux that lets its users make namespaces. Three ready
            functions, which keep nothing of a block, answer many blocks in one process.
        code: the text of FILE.py, which travels with the job. It is read from the file where it is left out.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    function: str = field(metadata={"example": "shoal.analyses.association:correlation"})
    outputs: Outputs
    arguments: dict[str, Argument] | None = None
    time_limit: float = 60.0
    memory_limit: int = 1000
    constant_time: bool = False
    isolation: Literal["process", "sandbox"] = field(default="process", metadata={"added": True})
    code: Code = field(default=None, metadata={"added": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        in_file = FILE.fullmatch(self.function) is not None
        if in_file != (self.code is not None):
            raise ValueError(
                f"params.code is {'given' if self.code is not None else 'missing'}, but params.function is "
                f"{self.function}: a job has the code of a function FILE.py:name, and of no other."
            )
        if not in_file and not re.fullmatch(_PLACE, self.function):
            raise ValueError(
                f"params.function is {self.function}: it must be FILE.py:name, or module:name, such as "
                "shoal.analyses.regression:linear."
            )
        axes = len(self.outputs.lower)
        if self.default is not None and not (
            len(self.default) == axes and all(map(math.isfinite, self.default))
        ):
            raise ValueError(
                f"params.default is {list(self.default)}: it must be as many finite numbers as "
                f"params.outputs has axes, {axes}."
            )
        if not 0 < self.time_limit <= _LONGEST:
            raise ValueError(
                f"params.time_limit is {self.time_limit}: it must be above 0 and at most {_LONGEST:,}."
            )
        if not 1 <= self.memory_limit <= _LARGEST:
            raise ValueError(
                f"params.memory_limit is {self.memory_limit}: it must be from 1 to {_LARGEST:,} megabytes."
            )

    def untrusted(self) -> "Function":
        """Return the function with its limits, as workers run it."""
        from transforms.run_function import Function  # imports Arrow, which checking a job does not need

        return Function(
            self.function,
            self.outputs.grid(),
            self.arguments or {},
            self.time_limit,
            self.memory_limit,
            self.constant_time,
            self.code,
            self.isolation,
        )
