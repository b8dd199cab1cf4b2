"""What a terminal shows of a comparison: each change with its sign, and those that matter first."""

import io

from rich.console import Console

from pipelines.compare.compare import Side, compare
from pipelines.compare.estimate import Estimate
from pipelines.compare.shown import _MOST, show_comparison


def test_a_comparison_is_shown():
    same = [Estimate(f"same {number}", 5.0, bound=1.0) for number in range(_MOST)]
    first = [*same, Estimate("unknown", 1.0), Estimate("fell", 10.0, bound=1.0), Estimate("gone", 1.0)]
    second = [*same, Estimate("unknown", 1.0), Estimate("fell", 7.0, bound=0.5)]
    second += [Estimate("new", 1.0), Estimate("newer", 1.0)]
    found = compare(
        *(Side(name, {"": {}}, {"": {}}, {"": its}) for name, its in (("a", first), ("b", second)))
    )
    assert (found["only_a"], found["only_b"]) == (1, 2)
    written = io.StringIO()
    show_comparison(found, Console(file=written, width=300))
    lines = [" ".join(line.split()) for line in written.getvalue().splitlines()]
    rows = lines[next(i for i, line in enumerate(lines) if line.startswith("answer ")) + 2 :]
    assert rows[0] == "fell 10 7 -3 1.5 yes"
    assert rows[_MOST] == "and 2 more"
    says = f"1 of {_MOST + 1} figures changed by more than noise explains. Of 1 more it is not known."
    assert says in " ".join(rows) and "Figures 1 only in A and 2 only in B are not compared." in " ".join(
        rows
    )
