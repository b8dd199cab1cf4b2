"""Match names below a folder: what a glob or a folder of the input covers, segment by segment."""

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

_MAGIC = re.compile(r"[*?[]")

States = frozenset[int]
"""How many steps of a pattern may be used up after the segments of a name so far."""


def is_glob(path: str) -> bool:
    """Say whether `path` has a character that means something in a glob."""
    return _MAGIC.search(path) is not None


@dataclass(frozen=True)
class NamePattern:
    """Which names below a root are meant. A name is one or more segments with `/` between them.

    Args:
        steps: for each step a regular expression of one whole segment, and whether any number of segments,
            also none, may match it.
    """

    steps: tuple[tuple[str, bool], ...]

    @property
    def start(self) -> States:
        """The states before the first segment."""
        return self._closed(frozenset({0}))

    def after(self, states: States, segment: str) -> States:
        """Return the states after one more segment: none where no name that goes on so is meant."""
        used = [at for at in states if at < len(self.steps) and re.fullmatch(self.steps[at][0], segment)]
        return self._closed(frozenset(at if self.steps[at][1] else at + 1 for at in used))

    def ends(self, states: States) -> bool:
        """Say whether a name with these states is meant itself."""
        return len(self.steps) in states

    def goes_on(self, states: States) -> bool:
        """Say whether a name below one with these states may be meant."""
        return any(at < len(self.steps) for at in states)

    def matches(self, name: str) -> bool:
        """Say whether `name` is meant."""
        return self.ends(self.after_all(name.split("/")))

    def after_all(self, segments: Sequence[str]) -> States:
        """Return the states after some segments."""
        return reduce(self.after, segments, self.start)

    def _closed(self, states: States) -> States:
        """Add what is reached by passing over steps that no segment need match."""
        passed = {at + 1 for at in states if at < len(self.steps) and self.steps[at][1]} - states
        return self._closed(states | passed) if passed else states


FOLDER = NamePattern(((r"(?s:[^._].*)", True), (r"(?s:[^._].*\.parquet)", False)))
"""All *.parquet files at any depth below a folder, but nothing whose name starts with `.` or `_`."""

FILE = NamePattern(())
"""The root itself alone."""


def parse_glob(path: str) -> tuple[str, NamePattern]:
    """Split an absolute glob into its fixed root and the pattern of names below.

    `*` and `?` stand for any characters of one segment, `[...]` and `[!...]` for one character, and a
    segment `**` for any number of folders. A segment that begins with `.` is matched only by a pattern that
    does. What cannot be read as a pattern stands for itself or for nothing, as in a shell.
    """
    parts = path.split("/")
    fixed = next(i for i, part in enumerate(parts) if is_glob(part))
    below = [part for part in parts[fixed:] if part]
    if below[-1] == "**":
        below.append("*")
    return "/".join(parts[:fixed]) or "/", NamePattern(tuple(_step(part) for part in below))


def _step(part: str) -> tuple[str, bool]:
    if part == "**":
        return r"(?s:[^.].*)", True
    return ("" if part.startswith(".") else r"(?!\.)") + fnmatch.translate(part), False
