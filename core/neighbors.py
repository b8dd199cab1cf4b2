"""What changes between two neighboring databases, and the sensitivities that follow."""

import math
from dataclasses import dataclass
from typing import Literal

Name = Literal["add_or_remove_one", "replace_one"]


@dataclass(frozen=True)
class Sensitivity:
    """Largest change of a vector-valued aggregate between neighbors, in three norms."""

    l1: float
    l2: float
    linf: float


@dataclass(frozen=True)
class Neighbors:
    """The neighbor relation of a run.

    `add_or_remove_one`: one privacy unit more or less; the number of records is private.
    `replace_one`: one unit's record replaced by another; the number of records is public.
    A replacement is one removal and one addition, so every mechanism that is
    (epsilon, delta)-private under the former is (2 epsilon, (1 + e^epsilon) delta)-private
    under the latter (group privacy); direct sensitivities below are tighter where they exist.

    Raises:
        ValueError: `name` is not one of the two relations.
    """

    name: Name

    def __post_init__(self) -> None:
        if self.name not in ("add_or_remove_one", "replace_one"):
            raise ValueError(
                f"privacy.neighbors is {self.name!r}: it must be add_or_remove_one or replace_one."
            )

    @property
    def moves(self) -> int:
        """How many additions or removals lead from a database to its neighbor."""
        return 1 if self.name == "add_or_remove_one" else 2

    def count(self) -> int:
        """Sensitivity of one counting query: 1 under both relations."""
        return 1

    def histogram(self) -> Sensitivity:
        """Sensitivity of the counts of disjoint cells (a record is in one cell)."""
        return Sensitivity(l1=self.moves, l2=math.sqrt(self.moves), linf=1)

    def bounded_sum(self, l1: float, l2: float, linf: float) -> Sensitivity:
        """Sensitivity of a sum of vectors whose norms are at most the ones given."""
        return Sensitivity(l1=self.moves * l1, l2=self.moves * l2, linf=self.moves * linf)

    def selection_epsilon(self, scale: float, *, monotone: bool) -> float:
        """Privacy of the exponential mechanism by Gumbel noise of `scale` on sensitivity-1 scores.

        Scores that all move the same way when a record is added are monotone: under
        `add_or_remove_one` they cost 1 / scale, otherwise 2 / scale
        (McSherry and Talwar 2007).
        """
        return (1 if monotone and self.name == "add_or_remove_one" else 2) / scale
