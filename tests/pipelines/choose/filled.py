"""Fill in a first job by one rule: every marked value becomes the example in the comment behind it."""

import re
from collections.abc import Sequence


def fill(lines: Sequence[str]) -> str:
    """Return the text of a job with the examples in the places of the marked values."""
    filled = []
    for line in lines:
        found = re.fullmatch(r"(\s*\w+): .*FILL_IN.*  # such as (.*)", line)
        assert found or "FILL_IN" not in line.partition("#")[0], line
        filled.append(f"{found[1]}: {found[2]}" if found else line)
    return "\n".join(filled)
