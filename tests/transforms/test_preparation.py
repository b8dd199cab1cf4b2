"""Rows made ready: what is kept and derived is what a file made beforehand would hold, in its places."""

import gc
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.domain import Grid
from core.rounds import Block
from tests.transforms.tables import write
from transforms import join_table
from transforms.bound_together import BoundingOfQuestions, bound_together_in_memory
from transforms.bound_units import Bounding, bound_in_memory
from transforms.join_table import MOST_BYTES, Join, open_join
from transforms.keep import Keep
from transforms.list_files import InputError
from transforms.open_source import Source, open_source
from transforms.parse_expression import parse_expression
from transforms.preparation import Preparation
from transforms.read_batches import read_batches
from transforms.read_blocks import Reader, list_row_groups, read_blocks, read_in_memory, read_together
from transforms.read_prepared import read_prepared
from transforms.split_units import Splitting, gather, split_rows

LINE = Grid((0.0,), (100.0,), 1.0)
SALT = b"a salt of 16 byt"
N = 2000


def preparation(where: str | None = None, join: Join | None = None, **derive: str) -> Preparation:
    derived = tuple((name, parse_expression(text)) for name, text in derive.items())
    return Preparation(None if where is None else parse_expression(where), derived, join)


def records(source: Source, grid: Grid = LINE) -> Block:
    blocks = list(read_in_memory(source, grid))
    return Block(np.concatenate([b.points for b in blocks]), np.concatenate([b.ids for b in blocks]))


@pytest.fixture
def rows(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """Two files of 2,000 rows of visits: half of them are in DE, and a part of the columns is null."""
    rng = np.random.default_rng(3)
    columns = {
        "amount": rng.integers(0, 100, 2 * N).astype(float),
        "city": rng.choice(["DE", "FR", "IT"], 2 * N),
        "user": np.array([f"user {i}" for i in rng.integers(0, 300, 2 * N)]),
        "time": rng.integers(0, 10**15, 2 * N),
    }
    columns["amount"][::17] = np.nan
    for number in range(2):
        part = {name: column[number * N : (number + 1) * N] for name, column in columns.items()}
        part["time"] = pa.array(part["time"], pa.timestamp("us"))
        write(tmp_path / "rows" / f"{number}.parquet", 300, unused=[{"a": 1}] * N, **part)
    return tmp_path / "rows", columns


def test_rows_keep_their_places_when_others_are_left_out(rows) -> None:
    folder, columns = rows
    every = records(open_source(str(folder), ["amount"]))
    some = records(
        open_source(str(folder), ["amount"], preparation=preparation("city == 'DE' and amount > 50"))
    )
    kept = (columns["city"] == "DE") & (columns["amount"] > 50)
    places = np.r_[np.arange(N), np.arange(N) + (1 << 40)].astype(np.uint64)
    assert some.ids.tolist() == places[kept].tolist()
    assert some.points.ravel().tolist() == columns["amount"][kept].astype(int).tolist()
    assert np.isin(some.ids, every.ids).all()


def test_a_derived_column_is_an_axis(rows) -> None:
    folder, columns = rows
    made = preparation("later", later="amount + 1", hour="hour(time)")
    with pytest.raises(
        InputError, match=r"input\.where, for 0\.parquet: it gives a number, but must be true or"
    ):
        open_source(str(folder), ["later"], preparation=made)
    source = open_source(
        str(folder),
        ["later", "hour"],
        preparation=preparation("hour < 12", later="amount + 1", hour="hour(time)"),
    )
    hours = columns["time"] // 3_600_000_000 % 24
    kept = (hours < 12) & ~np.isnan(columns["amount"])
    expected = np.stack([columns["amount"][kept] + 1, hours[kept]], axis=1).astype(int)
    found = records(source, Grid((0.0, 0.0), (200.0, 23.0), 1.0))
    assert found.points.tolist() == expected.tolist()
    assert source.inexact == ("later",)


def test_a_condition_that_is_null_leaves_a_row_out(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1.0, 2.0, 3.0], y=[None, 5, 7])
    source = open_source(str(tmp_path), ["x"], preparation=preparation("y > 6 or x < 0"))
    assert records(source).points.ravel().tolist() == [3]
    source = open_source(str(tmp_path), ["x"], preparation=preparation("not (y > 6)"))
    assert records(source).points.ravel().tolist() == [2]


def test_times_of_expressions_have_a_zone_in_all_files_or_in_none(tmp_path: Path) -> None:
    """Otherwise an hour of some rows would be in UTC, and of others as it is written."""
    times = np.arange(3) * 3_600_000_000
    for name, kind in (
        ("a", pa.timestamp("us")),
        ("b", pa.timestamp("ms")),
        ("c", pa.timestamp("us", "UTC")),
    ):
        unit = 1 if kind.unit == "us" else 1000
        pq.write_table(pa.table({"time": pa.array(times // unit).cast(kind)}), tmp_path / f"{name}.parquet")
    hours = preparation(None, hour="hour(time)")
    for made in (hours, preparation("hour(time) < 2", hour="minute(time)")):
        with pytest.raises(InputError, match=r"time has a zone in c\.parquet, .* but none in a\.parquet; it"):
            open_source(str(tmp_path), ["hour"], preparation=made)
    (tmp_path / "c.parquet").unlink()
    assert len(records(open_source(str(tmp_path), ["hour"], preparation=hours)).points) == 6


def test_a_time_of_a_zone_is_beside_a_text_of_any_zone(tmp_path: Path) -> None:
    """And without a zone in the column, a text must have none: a condition would mean another time."""
    write(
        tmp_path / "a.parquet",
        x=[1.0, 2.0, 3.0],
        t=pa.array([0, 3600, 7200], pa.timestamp("s", "Asia/Tokyo")),
    )
    for text in ("1970-01-01T02:00:00+01:00", "1970-01-01T01:00:00Z", "1970-01-01T01:00:00"):
        source = open_source(str(tmp_path), ["x"], preparation=preparation(f"t <= '{text}'"))
        assert records(source).points.ravel().tolist() == [1, 2]
        source = open_source(str(tmp_path), ["y"], preparation=preparation(y=f"if(t <= '{text}', 5, 6)"))
        assert records(source).points.ravel().tolist() == [5, 5, 6]
    write(tmp_path / "a.parquet", x=[1.0], t=pa.array([0], pa.timestamp("s")))
    with pytest.raises(InputError, match="has a zone, which timestamps beside it do not have"):
        open_source(str(tmp_path), ["x"], preparation=preparation("t <= '1970-01-01T01:00:00Z'"))


def test_a_derived_column_has_no_name_of_a_joined_one(tmp_path: Path) -> None:
    write(tmp_path / "rows" / "a.parquet", k=[1, 2], x=[1.0, 2.0])
    write(tmp_path / "table.parquet", k=[1, 2], y=[5, 6])
    made = preparation(join=open_join(str(tmp_path / "table.parquet"), "k", None), y="x + 1")
    with pytest.raises(
        InputError, match=r"input\.derive\.y: the joined table has a column y, too: rename one"
    ):
        open_source(str(tmp_path / "rows"), ["y"], preparation=made)


def test_times_of_dictionaries_have_a_zone_in_all_files_or_in_none(tmp_path: Path) -> None:
    for name, zone in (("a", None), ("b", "UTC")):
        times = pa.array([0, 1], pa.timestamp("us", zone)).dictionary_encode()
        table = pa.table({"time": times})
        with pa.ipc.new_file(tmp_path / f"{name}.arrow", table.schema) as file:
            file.write_table(table)
    with pytest.raises(InputError, match=r"time has a zone in b\.arrow, .* but none in a\.arrow; it"):
        open_source(str(tmp_path), ["hour"], preparation=preparation(None, hour="hour(time)"))


def test_only_the_columns_that_are_needed_are_read(rows, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = rows
    seen = []

    def watched(*given: object, **named: object):
        for batch in read_batches(*given, **named):
            seen.append(tuple(batch.schema.names))
            yield batch

    monkeypatch.setattr("transforms.read_prepared.read_batches", watched)
    made = preparation("city == 'DE'", hour="hour(time)", unread="amount + length(user)")
    records(open_source(str(folder), ["hour"], preparation=made))
    assert set(seen) == {("city", "time")}


@pytest.mark.parametrize("keep", ["one", "last", "mean", "count"])
def test_units_are_those_of_a_file_filtered_before(rows, tmp_path: Path, keep: Keep) -> None:
    """Derived units and orders are those that the file would have as columns."""
    folder, columns = rows
    kept = np.flatnonzero(columns["city"] != "FR")
    write(
        tmp_path / "filtered" / "0.parquet",
        amount=columns["amount"][kept],
        who=[f"{user}!".upper()[:-1] for user in columns["user"][kept]],
        when=-columns["time"][kept],
    )
    order = "when" if keep == "last" else None
    plain = open_source(str(tmp_path / "filtered"), ["amount"], "who", order)
    made = preparation("city != 'FR'", who="upper(user)", when="0 - floor(seconds(time) * 1000000)")
    prepared = open_source(str(folder), ["amount"], "who", order, preparation=made)
    found = [
        list(bound_in_memory(source, Bounding.of(source, LINE, keep, SALT, True)))
        for source in (prepared, plain)
    ]
    for one, other in zip(*found, strict=True):
        assert one.points.tolist() == other.points.tolist()
        assert one.ids.tolist() == other.ids.tolist()
        assert np.array_equal(one.outside, other.outside)
    assert sum(len(block.ids) for block in found[0]) > 200


def test_checks_count_only_rows_that_are_kept(rows) -> None:
    folder, columns = rows
    source = open_source(str(folder), ["amount"], preparation=preparation("city == 'DE'"))
    counts = sum(block.outside for block in read_checked(source))
    of_rows = columns["city"] == "DE"
    with np.errstate(invalid="ignore"):
        assert counts.tolist() == [
            np.isnan(columns["amount"][of_rows]).sum(),
            (columns["amount"][of_rows] > 60).sum(),
        ]


def read_checked(source: Source) -> list[Block]:
    reader = Reader.of(source, Grid((0.0,), (60.0,), 1.0), True)
    return [
        block
        for file in source.files
        for place in list_row_groups(file)
        for block in read_blocks(reader, place)
    ]


@pytest.mark.parametrize("unit", [None, "user"])
def test_the_number_of_batches_does_not_depend_on_what_is_kept(rows, unit: str | None) -> None:
    folder, _ = rows
    numbers = []
    for where in ("amount > -1", "amount > 1000", "city == 'DE'"):
        source = open_source(str(folder), ["amount"], unit, preparation=preparation(where))
        cut = Splitting(source.columns, unit, 7, SALT, source.preparation)
        numbers.append(
            [len(list(split_rows(cut, place))) for file in source.files for place in list_row_groups(file)]
        )
    assert numbers[0] == numbers[1] == numbers[2]


@pytest.mark.parametrize("unit", [None, "user"])
def test_a_row_is_in_the_same_block_whether_others_are_left_out(rows, unit: str | None) -> None:
    folder, _ = rows

    def blocks(source: Source) -> list[list[float]]:
        cut = Splitting(source.columns, unit, 7, SALT, source.preparation)
        parts: dict[int, list] = {}
        for file in source.files:
            for place in list_row_groups(file):
                for part, shard in split_rows(cut, place):
                    parts.setdefault(part, []).append(shard)
        every = sorted(each for part, some in parts.items() for each in gather(cut, part, some))
        return [pa.ipc.open_stream(rows).read_all()["amount"].to_pylist() for _, rows in every]

    whole = blocks(open_source(str(folder), ["amount"], unit))
    some = blocks(open_source(str(folder), ["amount"], unit, preparation=preparation("amount > 50")))
    assert some == [[x for x in block if x > 50] for block in whole]


def test_a_public_table_is_joined_by_key(rows, tmp_path: Path) -> None:
    folder, columns = rows
    table = write(
        tmp_path / "towns.parquet", city=["IT", None, "XX", "DE"], size=[60, 5, 1, 80], name=["a"] * 4
    )
    made = preparation("size > 70 or is_null(size)", open_join(str(table), "city", None), twice="size * 2")
    source = open_source(str(folder), ["size"], preparation=made)
    assert records(source).points.ravel().tolist() == [80] * (columns["city"] == "DE").sum()
    source = open_source(str(folder), ["twice"], preparation=made)
    assert set(records(source, Grid((0.0,), (200.0,), 1.0)).points.ravel().tolist()) == {160}
    assert source.every_file[-1].name == "towns.parquet"
    made = preparation("is_null(size)", open_join(str(table), "city", None), none="coalesce(size, 7)")
    points = records(open_source(str(folder), ["none"], preparation=made)).points.ravel()
    assert points.tolist() == [7] * (columns["city"] == "FR").sum(), "a key that is not there has no values"


def test_every_row_of_a_large_public_table_is_joined(tmp_path: Path) -> None:
    """It is read some thousands of rows at a time."""
    keys = np.random.default_rng(0).permutation(9_000)
    path = write(tmp_path / "towns.parquet", town=keys, size=keys % 101)
    found = open_join(str(path), "town", None).look_up(pa.array(np.arange(9_000)))
    assert found.column("size").to_pylist() == [key % 101 for key in range(9_000)]


@pytest.mark.parametrize("late", [False, True], ids=["before it is read", "while it is read"])
def test_a_joined_table_that_is_written_again_ends_a_run(rows, tmp_path: Path, late: bool) -> None:
    folder, _ = rows
    path = write(tmp_path / "towns.parquet", city=["DE"], size=[80])
    join = open_join(str(path), "city", ("size",))
    source = open_source(str(folder), ["size"], preparation=preparation(join=join))
    if not late:
        write(path, city=["DE"], size=[70])
    join_table._table.cache_clear()  # as in another process
    says = r"^input\.join\.path: towns\.parquet was written again during the run"
    with pytest.MonkeyPatch.context() as changed, pytest.raises(InputError, match=says):
        if late:
            changed.setattr(join_table, "_check_types", lambda *_: os.utime(path, ns=(0, 0)))
        records(source)


@pytest.mark.parametrize(
    ("columns", "given", "problem"),
    [
        ({"city": ["DE", "DE"], "size": [1, 2]}, {}, "path: t.parquet has a value of city in two rows"),
        ({"city": ["DE"]}, {}, "path: t.parquet has only the column city; give one more"),
        ({"city": [1.5], "size": [1]}, {}, "on: city is double in t.parquet; give a column of integers"),
        ({"city": [[1]], "size": [1]}, {}, "on: city is list<"),
        ({"city": ["DE"], "size": [[1]]}, {}, "columns: size is list<"),
        ({"town": ["DE"], "size": [1]}, {}, "on: city is missing from t.parquet; its columns are town, size"),
        ({"city": ["DE"], "size": [1]}, {"columns": ("big",)}, "columns: big is missing from t.parquet"),
        (
            {"city": [str(i) for i in range(20)], "size": ["x" * (4 << 20)] * 20},
            {},
            f"path: t.parquet takes more than {MOST_BYTES >> 20} MB in memory",
        ),
    ],
)
def test_a_table_that_cannot_be_joined_is_refused(tmp_path: Path, columns, given, problem: str) -> None:
    path = write(tmp_path / "t.parquet", **columns)
    with pytest.raises(InputError) as error:
        open_join(str(path), "city", given.get("columns"))
    assert str(error.value).startswith(f"input.join.{problem}")
    assert str(error.value).endswith(".")


def test_keys_of_a_table_that_are_of_another_kind_than_those_of_rows_are_refused(rows, tmp_path) -> None:
    join = open_join(str(write(tmp_path / "t.parquet", city=[1, 2], size=[1, 2])), "city", None)
    with pytest.raises(InputError, match=r"city is large_string in the rows, but int64 in the table"):
        open_source(str(rows[0]), ["size"], preparation=preparation(join=join))


@pytest.mark.parametrize(
    "known", [pa.array([0, 1]), pa.array(["", "a"], pa.large_string()), pa.array([0, 1], pa.date32())]
)
def test_a_row_without_a_key_gets_nothing(tmp_path: Path, known: pa.Array) -> None:
    """Also where the table has a key such as 0, or rows without one."""
    nulls = pa.nulls(1, known.type)
    write(tmp_path / "t.parquet", key=pa.concat_arrays([known, nulls]), size=[5, 6, 7])
    join = open_join(str(tmp_path / "t.parquet"), "key", None)
    wanted = pa.concat_arrays([nulls, known.slice(1), known.slice(0, 1)])
    for keys in (wanted, wanted.dictionary_encode()):
        assert join.look_up(keys).column("size").to_pylist() == [None, 6, 5]


def test_a_long_text_of_a_joined_table_is_in_memory_once(tmp_path: Path) -> None:
    """Rows with its key would take any memory. A unit has keys of one kind, whichever rows a batch has."""
    write(tmp_path / "t.parquet", key=pa.array([1, 2, 3]), text=["x" * (1 << 16), None, "y"])
    join = open_join(str(tmp_path / "t.parquet"), "key", None)
    found = join.look_up(pa.array([1] * 300 + [2, 3, 4])).column("text")
    assert found.nbytes < 2 << 16
    assert [text and text[:1] for text in found.to_pylist()] == ["x"] * 300 + [None, "y", None]
    assert found.dictionary.null_count == 0
    made = preparation("contains(text, 'x')", join, n="length(text)")
    batch, kept = made.prepare(pa.record_batch({"key": [1, 2, 3, 4]}), ["n"])
    assert kept is not None
    assert kept.to_pylist() == [True, False, False, False]
    assert batch.column("n").to_pylist() == [1 << 16, None, 1, None]


def test_a_text_of_a_joined_category_need_not_be_utf_8(tmp_path: Path) -> None:
    """Arrow itself reads no such file, as the index of the dictionary is a byte."""
    texts = pa.array([b"large", b"\xff"]).view(pa.string())
    size = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), texts)
    pq.write_table(pa.table({"city": ["DE", "FR"], "size": size}), tmp_path / "t.parquet")
    found = open_join(str(tmp_path / "t.parquet"), "city", None).look_up(pa.array(["DE"], pa.large_string()))
    assert found.column("size").to_pylist() == ["large"]


def test_a_category_in_an_extension_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Arrow ends the process where it reads one."""
    code = pa.array(["a"]).dictionary_encode()
    odd = pa.ExtensionArray.from_storage(pa.opaque(code.type, "t", "v"), code)
    pq.write_table(pa.table({"city": ["DE"], "size": odd}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"^input\.join\.columns: size is extension<.*an expression reads"):
        open_join(str(tmp_path / "t.parquet"), "city", None)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        (b"no parquet", "cannot be read as Parquet"),
        (b"PAR1", "cannot be read as Parquet"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(InputError, match=rf"^input\.join\.path: t\.parquet {says}; give one"):
        open_join(str(tmp_path / "t.parquet"), "city", None)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"where": "contry == 'DE'"}, "where, for 0.parquet: it names the column contry, which is not there"),
        ({"where": "unused == 1"}, "where, for 0.parquet: unused is struct<"),
        ({"where": "city > 1"}, "where, for 0.parquet: > takes values of one kind"),
        ({"where": "amount"}, "where, for 0.parquet: it gives a number, but must be true or false"),
        (
            {"twice": "amount * 2", "more": "twice + 1"},
            "derive.more, for 0.parquet: it names the derived column twice, which only input.where may",
        ),
        ({"own": "own + 1"}, "derive.own, for 0.parquet: it names the derived column own"),
        ({"where": "if(amount > 1, null, null)"}, "where, for 0.parquet: if has only null"),
        ({"a": "b + 1", "b": "amount"}, "derive.a, for 0.parquet: it names the derived column b, which only"),
        ({"amount": "amount + 1"}, "derive.amount: 0.parquet has a column amount, too: rename one"),
        ({"a": "hour(amount)"}, "derive.a, for 0.parquet: hour takes a timestamp, but here it has a number"),
        ({"amont": "amount", "where": "amonut > 1"}, "where, for 0.parquet: it names the column amonut"),
    ],
)
def test_an_expression_that_does_not_fit_is_refused(rows, given: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError) as error:
        open_source(str(rows[0]), ["amount"], preparation=preparation(**given))
    assert str(error.value).startswith(f"input.{problem}")
    assert str(error.value).endswith(".")


def test_a_text_as_an_axis_is_refused_like_a_column(rows) -> None:
    with pytest.raises(
        InputError, match=r"input\.columns: t is large_string in 0\.parquet; used columns must be"
    ):
        open_source(str(rows[0]), ["t"], preparation=preparation(t="lower(city)"))


@pytest.mark.parametrize("made", [{}, {"day": "date(time)"}])
def test_a_time_as_an_axis_is_refused_with_a_way_out(rows, made: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"; make a number of it in input\.derive, such as days\(day\) or"):
        open_source(str(rows[0]), ["day" if made else "time"], preparation=preparation(**made))


def test_files_may_differ_in_the_numbers_that_are_derived_alone(tmp_path: Path) -> None:
    write(tmp_path / "rows" / "a.parquet", x=[1])
    write(tmp_path / "rows" / "b.parquet", x=[1.5])
    source = open_source(str(tmp_path / "rows"), ["y"], preparation=preparation(y="x + 1"))
    assert source.mixed == (("y", pa.float64()),) and source.inexact == ("y",)
    write(tmp_path / "rows" / "b.parquet", x=["1"])
    with pytest.raises(InputError, match=r"^input\.derive\.y, for b\.parquet: \+ takes numbers"):
        open_source(str(tmp_path / "rows"), ["y"], preparation=preparation(y="x + 1"))


def test_a_column_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["x", "x", "y"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"it names the column x, which occurs more than once\.$"):
        open_source(str(tmp_path / "a.parquet"), ["y"], preparation=preparation("x > 1"))


@pytest.mark.parametrize("dictionary", [True, False])
def test_long_texts_in_a_condition_are_read_a_few_at_a_time(tmp_path: Path, dictionary: bool) -> None:
    """40 texts of 3 MB a row are 120 MB; a batch takes about 64 MB."""
    texts = ["x" * (3 << 20) + str(i % 2) for i in range(40)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": texts, "x": np.arange(40.0)}), path, use_dictionary=dictionary)
    source = open_source(str(path), ["x"], preparation=preparation("ends_with(t, '1')"))
    (file,) = source.files
    batches = list(read_prepared(source.preparation, file, 0, ("x",), 1000))
    assert max(len(batch) for batch, _ in batches) <= 22
    assert records(source).points.ravel().tolist() == list(range(1, 40, 2))


@pytest.mark.parametrize("unit", ["user", "city"])
def test_a_unit_may_also_be_in_a_condition(rows, unit: str) -> None:
    folder, columns = rows
    value = columns[unit][5]
    source = open_source(str(folder), ["amount"], unit, preparation=preparation(f"{unit} != '{value}'"))
    bounding = Bounding.of(source, LINE, "one", SALT)
    units = sum(len(block.ids) for block in bound_in_memory(source, bounding))
    held = columns[unit][~np.isnan(columns["amount"])]
    assert units == len(np.unique(held)) - 1


@pytest.mark.parametrize("unit", [None, "user"])
def test_questions_share_prepared_rows(rows, unit: str | None) -> None:
    """Each question has the records that it has alone."""
    folder, _ = rows
    made = preparation("city == 'DE' or hour < 6", hour="hour(time)")
    sources = [open_source(str(folder), [name], unit, preparation=made) for name in ("amount", "hour")]
    grids = (LINE, Grid((0.0,), (23.0,), 1.0))
    asked = list(zip(sources, grids, strict=True))
    if unit is not None:
        boundings = tuple(Bounding.of(source, grid, "one", SALT, True) for source, grid in asked)
        together = bound_together_in_memory(sources[0], BoundingOfQuestions(boundings))
        alone = [list(bound_in_memory(*each)) for each in zip(sources, boundings, strict=True)]
    else:
        readers = dict(enumerate(Reader.of(source, grid, True) for source, grid in asked))
        places = [place for file in sources[0].files for place in list_row_groups(file)]
        read = [each for place in places for each in read_together(readers, place)]
        together = [[block for number, block in read if number == own] for own in readers]
        alone = [[block for place in places for block in read_blocks(readers[own], place)] for own in readers]
    assert sum(len(block.ids) for block in together[0]) > 200
    for ours, theirs in zip(together, alone, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert np.array_equal(one.points, other.points) and np.array_equal(one.ids, other.ids)
            assert np.array_equal(one.outside, other.outside)


def test_batches_are_freed_when_they_were_read(rows) -> None:
    """No object refers to itself, or the rows of a batch would wait for the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        source = open_source(
            str(rows[0]), ["h"], preparation=preparation("city == 'DE' and h > 1", h="hour(time)")
        )
        records(source)
        seen = [each for each in gc.get_objects() if type(each).__name__ == "_Rows"]
        assert not seen
    finally:
        gc.enable()
