"""The ledger of a dataset, for several calls from Python."""

import os
import shutil
import tempfile
import weakref
from typing import Any, Self

from pipelines.console.printable import printable, terminal
from pipelines.ledger.ledger import create_ledger, new_ledger, read_ledger
from pipelines.ledger.table import describe_ledger, show_charges
from pipelines.storage.locate import absolute

__all__ = ["Ledger"]


class Ledger:
    """What all runs on a dataset may spend together, as a file that each run is charged to.

    Args:
        path: of the file, local or on object storage, as `shoal ledger create` makes it.

    Raises:
        ShoalError: there is no ledger.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = absolute(os.fspath(path))
        read_ledger(self.path)

    @classmethod
    def create(
        cls,
        epsilon: float,
        delta: float = 0.0,
        *,
        path: str | os.PathLike[str] | None = None,
        neighbors: str = "add_or_remove_one",
        unit: str | None = None,
        accountant: str = "basic",
    ) -> Self:
        """Make a ledger; see `shoal ledger create`.

        Args:
            epsilon: that all runs together may spend.
            delta: likewise.
            path: of its file. None is a temporary file, which is removed with the ledger.
            neighbors: the relation of the promise: add_or_remove_one or replace_one.
            unit: the column of the privacy unit. Without it, the unit is one row.
            accountant: `basic` adds up what runs spend, which is best for few. `renyi` composes their draws.

        Raises:
            ShoalError: a value is not allowed, or the file exists.
        """
        fields: dict[str, Any] = {"neighbors": neighbors, "unit": unit, "epsilon": epsilon, "delta": delta}
        ledger = new_ledger(fields, accountant)
        folder = tempfile.mkdtemp(prefix="shoal-") if path is None else None
        place = os.fspath(path) if path is not None else f"{folder}/ledger.json"
        create_ledger(absolute(place), ledger)
        made = cls(place)
        if folder is not None:
            weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
        return made

    @property
    def values(self) -> dict[str, Any]:
        """All of it, as `shoal ledger show --json` has it."""
        return describe_ledger(read_ledger(self.path))

    @property
    def left(self) -> tuple[float, float]:
        """The epsilon and the delta that are left."""
        values = self.values
        return values["left"] or 0.0, values["left_delta"] or 0.0

    def __str__(self) -> str:
        console = terminal(False)
        with console.capture() as captured:
            show_charges(printable(self.values), console)
        return captured.get().rstrip()

    __repr__ = __str__
