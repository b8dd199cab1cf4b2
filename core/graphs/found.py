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
    """The answer.

    Args:
        value: data units.
        scale: of its noise, data units; None where the scale stays secret.
        within: the value is off by at most this, data units, with probability 1 - failure; None where the
            scale stays secret or an error was promised before.
    """

    value: float
    scale: float | None
    within: float | None = None


@dataclass(frozen=True)
class Released:
    """A released figure of a graph.

    Args:
        value: data units.
        scale: scale of its noise, data units; None where it was not asked for.
        within: see `Result`.
    """

    value: float
    scale: float | None = None
    within: float | None = None

    def result(self, grid: Grid) -> Result:
        """Return the value, the scale, and how far off the value may be."""
        return Result(self.value, self.scale, self.within)
