"""Match names below a folder, segment by segment."""

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from transforms.file_format import ENDINGS

_MAGIC = re.compile(r"[*?[]")

States = frozenset[int]
"""Positions in a pattern that can be reached after the first segments of a name."""


def is_glob(path: str) -> bool:
    """Return whether `path` has a special character of globs."""
    return _MAGIC.search(path) is not None


@dataclass(frozen=True)
class NamePattern:
    """A pattern of names below a root. A name is one or more segments with `/` between them.

    Args:
        steps: each is a regular expression for one whole segment, and whether it matches any number of
            segments, including none.
    """

    steps: tuple[tuple[str, bool], ...]

    @property
    def start(self) -> States:
        """The states before the first segment."""
        return self._closed(frozenset({0}))

    def after(self, states: States, segment: str) -> States:
        """Return the states after one more segment; they are empty where no name with this prefix matches."""
        used = [at for at in states if at < len(self.steps) and re.fullmatch(self.steps[at][0], segment)]
        return self._closed(frozenset(at if self.steps[at][1] else at + 1 for at in used))

    def ends(self, states: States) -> bool:
        """Return whether a name with these states matches."""
        return len(self.steps) in states

    def goes_on(self, states: States) -> bool:
        """Return whether a longer name below one with these states may match."""
        return any(at < len(self.steps) for at in states)

    def matches(self, name: str) -> bool:
        """Return whether `name` matches."""
        return self.ends(self.after_all(name.split("/")))

    def after_all(self, segments: Sequence[str]) -> States:
        """Return the states after all given segments."""
        return reduce(self.after, segments, self.start)

    def _closed(self, states: States) -> States:
        """Add the states that are reached by skipping steps that match zero segments."""
        passed = {at + 1 for at in states if at < len(self.steps) and self.steps[at][1]} - states
        return self._closed(states | passed) if passed else states


_ENDS = "|".join(map(re.escape, ENDINGS))

FOLDER = NamePattern(((r"(?s:[^._].*)", True), (rf"(?s:[^._].*(?ai:{_ENDS}))", False)))
"""All files of a known format at any depth below a folder, except names that start with `.` or `_`."""

FILE = NamePattern(())
"""The root itself."""


def parse_glob(path: str) -> tuple[str, NamePattern]:
    """Split an absolute glob into its fixed root and the pattern of names below.

    `*` matches any characters of one segment, `?`, `[...]` and `[!...]` match one character, and a segment
    `**` matches any number of folders. A segment that begins with `.` or `_` is matched only by a pattern
    that does, too: a job of Spark that was killed leaves rows in `_temporary`.
    """
    parts = path.split("/")
    fixed = next(i for i, part in enumerate(parts) if is_glob(part))
    below = [part for part in parts[fixed:] if part]
    if below[-1] == "**":
        below.append("*")
    return "/".join(parts[:fixed]) or "/", NamePattern(tuple(_step(part) for part in below))


def _step(part: str) -> tuple[str, bool]:
    if part == "**":
        return r"(?s:[^._].*)", True
    return ("" if part.startswith((".", "_")) else r"(?![._])") + fnmatch.translate(part), False
