import datetime
import errno
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.transforms.tables import write
from transforms import join_table, public_keys
from transforms import open_source as open_module
from transforms.open_source import InputError, open_source


def names(path: Path | str) -> list[str]:
    return [file.name for file in open_source(str(path), ["x"]).files]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for name in ("b", "a", "deep/er/c", "_tmp/d", ".e", "f[1]"):
        write(root / f"{name}.parquet", x=[1.0])
    (root / "_SUCCESS").touch()
    (root / "notes.txt").write_text("not a table")
    return root


def test_a_single_file_is_named_by_its_base_name(tree: Path) -> None:
    assert names(tree / "deep/er/c.parquet") == ["c.parquet"]
    assert names(tree / "f[1].parquet") == ["f[1].parquet"]


def test_a_folder_is_all_its_parquet_files_in_order_of_name(tree: Path) -> None:
    assert names(tree) == ["a.parquet", "b.parquet", "deep/er/c.parquet", "f[1].parquet"]


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("*.parquet", ["a.parquet", "b.parquet", "f[1].parquet"]),
        ("[ab].parquet", ["a.parquet", "b.parquet"]),
        ("[!a].parquet", ["b.parquet"]),
        ("?.parquet", ["a.parquet", "b.parquet"]),
        ("deep/*/*.parquet", ["er/c.parquet"]),
        ("**/*.parquet", ["a.parquet", "b.parquet", "deep/er/c.parquet", "f[1].parquet"]),
        ("**/c.parquet", ["deep/er/c.parquet"]),
        ("_*/d.parquet", ["_tmp/d.parquet"]),
    ],
)
def test_a_glob_names_files_below_its_fixed_part(tree: Path, pattern: str, expected: list[str]) -> None:
    assert names(f"{tree}/{pattern}") == expected


def test_paths_become_absolute(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.parent)
    for path in ("data", "data/*.parquet", "data/a.parquet"):
        assert open_source(path, ["x"]).files[0].path == str(tree / "a.parquet")


def test_other_columns_may_differ(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1], y=["text"])
    write(tmp_path / "b.parquet", y=[2], x=[1])
    assert names(tmp_path) == ["a.parquet", "b.parquet"]


def test_the_unit_may_be_of_any_type(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1], user=["me"])
    assert open_source(str(tmp_path), ["x"], unit="user").unit == "user"


@pytest.mark.parametrize(
    "column, says",
    [
        (
            pa.array([1.5]),
            "input.order: t is double in a.parquet; give a column of integers, timestamps or dates",
        ),
        (pa.array(["9"]), "input.order: t is string in a.parquet; give a column of integers"),
        (pa.array([1], pa.timestamp("s")), "input.order: t is int64 in a.parquet but timestamp"),
        (None, "input.order: t is missing from a.parquet; its columns are x, user"),
    ],
)
def test_a_column_that_orders_no_rows_is_refused(tmp_path: Path, column: pa.Array | None, says: str) -> None:
    order = {} if column is None else {"t": column}
    write(tmp_path / "a.parquet", x=[1], user=["me"], **(order if "but" not in says else {"t": [1]}))
    if "but" in says:
        write(tmp_path / "b.parquet", x=[1], user=["me"], **order)
    assert says in refusal(tmp_path, ["x"], "user", "t")


def refusal(path: Path | str, columns: list[str], unit: str | None = None, order: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        open_source(str(path), columns, unit, order)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    return message


@pytest.mark.parametrize(
    "path, expected",
    [
        ("nowhere", "does not exist"),
        ("nowhere/a.parquet", "does not exist"),
        ("nowhere/*.parquet", "matches no files"),
        ("data/*.csv", "matches no files"),
        ("empty", "is a folder without such files, apart from names that begin with . or _: give"),
        ("data/notes.txt", "notes.txt is not Parquet"),
        ("data/_SUCCESS", "_SUCCESS is not Parquet"),
    ],
)
def test_what_is_not_there_or_not_parquet_is_refused(tree: Path, path: str, expected: str) -> None:
    (tree.parent / "empty").mkdir()
    message = refusal(tree.parent / path, ["x"])
    assert expected in message
    assert (
        "give a file of Parquet, CSV, JSON lines, Arrow IPC or Avro, as the ending of its name says"
        in message
    )


def test_a_scheme_that_is_not_served_is_refused() -> None:
    assert "ftp://host/a.parquet has a scheme that is not supported" in refusal("ftp://host/a.parquet", ["x"])


@pytest.mark.parametrize("keep", [5, 0.5, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, keep: float) -> None:
    path = write(tmp_path / "a.parquet", x=list(range(1000)))
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    assert "a.parquet is truncated or damaged" in refusal(tmp_path, ["x"])


@pytest.mark.parametrize("field", ["input.path", "input.join.path", "group_by.keys"])
def test_a_file_that_the_system_denies_is_refused_with_its_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    path = str(write(tmp_path / "a.parquet", x=[1]))

    def deny(*_: object) -> None:
        raise PermissionError(errno.EACCES, "row 4711")

    system = SimpleNamespace(open_input_file=deny)
    for module in (open_module, join_table, public_keys):
        monkeypatch.setattr(module, "filesystem", lambda path: (system, path))
    opens: dict[str, Callable[[], object]] = {
        "input.path": lambda: open_source(path, ["x"]),
        "input.join.path": lambda: join_table.open_join(path, "x", None),
        "group_by.keys": lambda: public_keys.read_keys(path, ["x"], [None]),
    }
    with pytest.raises(InputError) as error:
        opens[field]()
    assert str(error.value) == f"{field}: a.parquet cannot be opened: Permission denied."


def test_a_missing_column_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1], y=[1])
    write(tmp_path / "b.parquet", x=[1])
    expected = "input.columns: y is missing from b.parquet; its columns are x."
    assert refusal(tmp_path, ["x", "y"]) == expected
    assert "input.unit: user is missing from a.parquet" in refusal(tmp_path, ["x"], unit="user")


TIMES = ("date32", "timestamp")


@pytest.mark.parametrize(
    "value, kind",
    [
        ("1", "string"),
        (b"1", "binary"),
        ([1.0], "list<"),
        (datetime.date(2026, 1, 1), "date32"),
        (datetime.datetime(2026, 1, 1), "timestamp"),
        (None, "null"),
    ],
)
def test_a_column_that_is_not_numeric_is_refused(tmp_path: Path, value: object, kind: str) -> None:
    write(tmp_path / "a.parquet", x=[value])
    message = refusal(tmp_path, ["x"])
    assert f"input.columns: x is {kind}" in message
    hint = (
        "; make a number of it in input.derive, such as days(day) or seconds(time), or, if the job has a "
        "domain, write its bounds as dates or timestamps"
    ) * (kind in TIMES)
    hint += ", or text that number(...) reads in input.derive" * (kind == "string")
    assert message.endswith(
        f"in a.parquet; used columns must be integers, floats, decimals or booleans{hint}."
    )


def test_an_order_of_two_types_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1], t=[1])
    write(tmp_path / "b.parquet", x=[1], t=pa.array([1], pa.int32()))
    said = refusal(tmp_path, ["x"], order="t")
    assert "t is int64 in a.parquet but int32 in b.parquet" in said


@pytest.mark.parametrize("columns", [[], ["x", "x"]])
def test_columns_are_at_least_one_and_each_once(tmp_path: Path, columns: list[str]) -> None:
    write(tmp_path / "a.parquet", x=[1])
    assert "give at least one column, each once" in refusal(tmp_path, columns)


def test_only_dates_and_timestamps_are_said_to_become_numbers(tmp_path):
    kinds = {"day": pa.date32(), "time": pa.timestamp("s"), "span": pa.duration("s"), "clock": pa.time32("s")}
    table = pa.table({name: pa.array([1], kind) for name, kind in kinds.items()})
    pq.write_table(table, tmp_path / "rows.parquet")
    for name in kinds:
        with pytest.raises(InputError, match="used columns must be integers") as caught:
            open_source(str(tmp_path), [name])
        assert ("make a number of it" in str(caught.value)) == (name in ("day", "time"))


FOOTERS = [([5, 10], 15, True), ([], 0, True), ([-5, 20], 15, False), ([5, 9], 15, False)]


@pytest.mark.parametrize(("groups", "total", "sound"), FOOTERS)
def test_a_footer_whose_row_groups_cannot_be_is_damaged(groups: list[int], total: int, sound: bool) -> None:
    each = [SimpleNamespace(num_rows=rows) for rows in groups]
    footer = SimpleNamespace(num_row_groups=len(each), num_rows=total, row_group=each.__getitem__)
    assert open_module._is_sound(footer) == sound
