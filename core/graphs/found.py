"""What the tasks on graphs release and promise."""

from dataclasses import dataclass

from core.domain import Grid


@dataclass(frozen=True)
class Promises:
    """What every method promises.

    Args:
        error: the value is off by at most this, in data units. None where the error depends on the data.
    """

    error: float | None = None


@dataclass(frozen=True)
class Result:
    """The answer: the value in data units, and the scale of its noise; None where the scale stays secret."""

    value: float
    scale: float | None


@dataclass(frozen=True)
class Released:
    """A released figure of a graph.

    Args:
        value: data units.
        scale: scale of its noise, data units; None where it was not asked for.
    """

    value: float
    scale: float | None = None

    def result(self, grid: Grid) -> Result:
        """Return value and scale."""
        return Result(self.value, self.scale)
