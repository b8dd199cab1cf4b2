"""However the rows of units are divided, their records are the same."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.domain import Grid
from core.errors import ShoalError
from transforms import reduce_units as reduce_units_module
from transforms import row_races as races_module
from transforms.bound_together import BoundingOfQuestions
from transforms.bound_together import _bound as _bound_together
from transforms.bound_units import Bounding, _bound, _OddUnits, split_points
from transforms.contributions import Contributing, _ChosenRows
from transforms.gather_parts import Pieces
from transforms.group_keys import GroupKeys
from transforms.keep import Keep
from transforms.open_source import open_source
from transforms.point_words import point_words
from transforms.read_blocks import list_row_groups
from transforms.reduce_units import Reduction, reduce_units
from transforms.row_races import race_of, races_of_copies
from transforms.spill import Spill, fetched
from transforms.unit_records import kept_by
from transforms.unit_rows import GatheredLabels

SALT = b"a salt of 16 byt"
GRIDS = {
    "line": Grid((0.0,), (63.0,), 1.0),
    "space": Grid((-1.0,) * 3, (1.0,) * 3, 2.0**-2),
    "wide": Grid((0,), (2**62 - 1,), 1),
}
KEYS = GroupKeys(("city",), (None,))
NUMBERED = GroupKeys(("city",), (None,), [("a",), ("b",), ("c",), ("d",)])


def reductions() -> Iterator[tuple[str, Reduction, Grid, int]]:
    """Yield every way to reduce rows: a name, the reduction, the grid, and further words of a row."""
    for name, grid in GRIDS.items():
        for keep in get_args(Keep):
            if keep == "count" and grid.dimension > 1:
                continue
            for ordered in (False, True)[keep == "last" :]:
                yield f"{keep} {name} {ordered}", kept_by(keep, grid, SALT, ordered), grid, 2 * ordered
        bounding = Bounding(("x", "y", "z")[: grid.dimension], grid, "u", "one", SALT)
        yield f"odd {name}", _OddUnits(bounding), grid, -1
        for groups, rows in ((1, 1), (2, 3), (4, 100)):
            for keys in (None, KEYS, NUMBERED):
                labels = GatheredLabels() if keys is KEYS else None
                if labels is not None:
                    labels._place.update({b"a": 0, b"d": 1, b"c": 2, b"b": 3})
                how = Contributing(bounding, keys, groups, rows)
                private = "none" if keys is None else "private" if labels is not None else "public"
                yield f"{groups} {rows} {private} {name}", _ChosenRows(how, labels), grid, keys is not None


CASES = list(reductions())
CUTS = {
    "units": {"_MANY": 8},
    "rows": {"_MANY": 8, "_WHOLE": 4, "_PART": 16},
    "file": {"_HELD": 500, "_MANY": 8},
    "all": {"_HELD": 500, "_MANY": 8, "_WHOLE": 4, "_PART": 8, "_MOST_PARTS": 4},
    "few": {"_HELD": 100, "_MANY": 50, "_PART": 64, "_MOST_PARTS": 2},
}


def rows(grid: Grid, further: int, two: bool, seed: int) -> list[np.ndarray]:
    """Return the words of 400 rows of 12 units, of which one has most, with many copies."""
    rng = np.random.default_rng(seed)
    unit = np.where(rng.random(400) < 0.7, 3, rng.integers(0, 12, 400))
    keys = [rng.integers(0, 2**64, 12, dtype=np.uint64)[unit]]
    if two:  # two units share the first word
        keys = [keys[0].copy(), rng.integers(0, 2**64, 12, dtype=np.uint64)[unit]]
        keys[0][unit == 4] = keys[0][unit == 3][0]
    if further < 0:
        return [*keys, rng.integers(0, 64, 400).astype(np.uint64)]
    most = np.array(grid.extents)
    points = np.where(rng.random((400, 1)) < 0.5, most - rng.integers(0, 3, (400, grid.dimension)), most // 7)
    own = [rng.integers(0, 4, 400).astype(np.uint64) for _ in range(further)]
    return [*keys, *point_words(points.astype(np.int64), grid), *own]


def found(words: list[np.ndarray], reduction: Reduction, order: np.ndarray) -> Any:
    """Return all records of all units in an order of their own, or the sum of counts."""
    pieces = [[word[some] for word in words] for some in np.array_split(order, 9)]
    results = list(reduce_units(pieces, reduction, SALT))
    if isinstance(reduction, _OddUnits):
        return sum(results).tolist()
    columns = [np.concatenate(each) for each in zip(*results, strict=True)]
    return Counter(zip(*(map(str, column.tolist()) for column in columns), strict=True))


@pytest.fixture(params=["real", "few"])
def hashes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash as always, or so that different rows have one hash."""
    if request.param == "few":
        real = races_module.keyed_blocks

        def few(*args: Any) -> np.ndarray:
            return real(*args) & np.uint64(3 << 61)

        monkeypatch.setattr(races_module, "keyed_blocks", few)


@pytest.mark.parametrize("name", [name for name, *_ in CASES])
def test_records_do_not_depend_on_how_rows_are_divided(
    name: str, hashes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    reduction, grid, further = next(case[1:] for case in CASES if case[0] == name)
    for seed, two in enumerate((False, True)):
        words = rows(grid, further, two, seed)
        expected = found(words, reduction, np.arange(400))
        assert expected
        for number, cut in enumerate(CUTS.values()):
            order = np.random.default_rng(number).permutation(400)
            with monkeypatch.context() as small:
                for constant, value in cut.items():
                    small.setattr(reduce_units_module, constant, value)
                small.setattr(races_module, "_COPIES", 3)
                small.setattr(races_module, "_MANY_COPIES", 10)
                assert found(words, reduction, order) == expected


def test_the_hashes_of_copies_are_those_of_rows() -> None:
    """The least three of each row: 50 rows with up to 40,000 copies."""
    rng = np.random.default_rng(0)
    points, of_unit = np.arange(50, dtype=np.uint64), np.arange(50) % 7
    copies = np.where(np.arange(50) == 8, 40_000, rng.integers(1, 6, 50))
    named = [of_unit.astype(np.uint64), points]
    each = race_of([np.repeat(word, copies) for word in named], np.repeat(of_unit, copies), SALT)
    ends = np.cumsum(copies)
    spans = zip((ends - copies).tolist(), ends.tolist(), strict=True)
    wanted = {row: sorted(each[start:end].tolist())[:3] for row, (start, end) in enumerate(spans)}
    index, race = races_of_copies(named, of_unit, copies, 3, SALT)
    got = {i: race[index == i].tolist() for i in range(50)}
    assert got == wanted


@pytest.mark.parametrize("keep", ["one", "sum"])
def test_a_large_unit_is_never_held(keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 400,000 rows of one unit, what is handled at a time is a part, and pieces wait in a file."""
    seen: list[int] = []

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(some: Any, *rest: Any) -> Any:
            seen.append(len(some[0]))
            return real(some, *rest)

        return call

    monkeypatch.setattr(reduce_units_module, "unit_rows", watched(reduce_units_module.unit_rows))
    monkeypatch.setattr(reduce_units_module, "_HELD", 1 << 16)
    monkeypatch.setattr(reduce_units_module, "_PART", 1 << 12)
    puts: list[int] = []
    real = Spill.put
    monkeypatch.setattr(Spill, "put", lambda own, piece: (puts.append(len(piece[0])), real(own, piece))[1])
    rng = np.random.default_rng(0)
    grid = GRIDS["wide"]
    pieces = ([np.zeros(4000, np.uint64), rng.integers(0, 2**60, 4000).astype(np.uint64)] for _ in range(100))
    (result,) = reduce_units(pieces, kept_by(keep, grid, SALT), SALT)
    assert len(result[0]) == 1 and sum(seen) < 500_000
    assert max(seen) < 3 * (1 << 12)
    assert sum(puts) == (400_000 if keep == "sum" else 800_000)


@pytest.mark.parametrize("several", [False, True])
def test_a_step_that_is_repeated_has_all_pieces_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: bool
) -> None:
    """Some runners repeat a step that failed half-way with the same elements."""
    pq.write_table(pa.table({"u": np.arange(100) % 7, "x": np.arange(100.0)}), tmp_path / "a.parquet")
    source = open_source(str(tmp_path), ["x"], "u")
    bounding = Bounding.of(source, GRIDS["line"], "sum", SALT)
    spill, (descriptor,) = Spill(), list_row_groups(source.files[0])
    for number, piece in split_points(bounding, descriptor):
        pieces = Pieces([spill.put(piece), spill.put(piece)], spill)
        step: Any = partial(_bound, bounds=bounding, spill=spill)
        if several:
            step = partial(_bound_together, bounding=BoundingOfQuestions((bounding,)), spill=spill)
        real, calls = Spill.get, iter([True, False, True, True])

        def failing(own: Spill, kept: Any, real: Any = real, calls: Any = calls) -> Any:
            if next(calls):
                return real(own, kept)
            raise MemoryError

        with monkeypatch.context() as broken:
            broken.setattr(Spill, "get", failing)
            with pytest.raises(ShoalError, match="ran out of memory"):
                step((number, pieces))
            found = step((number, pieces))
        found = fetched(found[1] if several else found)
        assert found == bounding.bound(number, [piece, piece])
        assert not pieces.kept
