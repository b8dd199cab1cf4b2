"""A wrong version of the code: one text in one file replaced by another."""

from dataclasses import dataclass
from pathlib import Path

CLASSES = (
    "choice, radius or divisor from the exact aggregate",
    "grown only where occupied",
    "unpaid early exit",
    "two rounds sample the same records",
    "public salt",
    "delta spent twice, or not counted",
    "double cost hidden by another draw's scale",
    "drawn and not charged",
    "noise by smooth sensitivity at half its scale",
    "smooth bound cut off too early",
    "rows in order of arrival",
    "other",
)
"""What can go wrong, by number from 1 on."""


class MutantError(Exception):
    """An entry of a table does not fit the code: a sentence says which and why."""


@dataclass(frozen=True)
class Selection:
    """The tests that should fail: generic ones, which know nothing of the place that is wrong.

    Args:
        nodes: files or tests, as pytest takes them.
        only: a pytest expression that selects among them, or nothing.
        tasks: tasks whose settings are made, apart by commas; see `tests.pipelines.every_plan`.
    """

    nodes: tuple[str, ...]
    only: str = ""
    tasks: str = ""


@dataclass(frozen=True)
class Mutant:
    """One wrong version.

    Args:
        kind: number of its class, from 1 on; see `CLASSES`.
        file: below the root of the repository.
        wrong: what is wrong, in a few words.
        old: text that stands in the file exactly once.
        new: what replaces it.
        tests: which should fail.
    """

    kind: int
    file: str
    wrong: str
    old: str
    new: str
    tests: Selection

    def applied(self, root: Path) -> str:
        """Return the file's text with the replacement.

        Raises:
            MutantError: there is no such file, or the old text is not in it exactly once.
        """
        path = root / self.file
        if not path.is_file():
            raise MutantError(f"{self.file} does not exist: repair the mutant {self.wrong!r}.")
        text = path.read_text()
        times = text.count(self.old)
        if times != 1 or self.old == self.new:
            raise MutantError(
                f"{self.file} holds the old text {times} times instead of once: "
                f"repair the mutant {self.wrong!r}."
            )
        return text.replace(self.old, self.new)
