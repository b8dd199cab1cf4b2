"""Each file counts once and by one name; whatever else lies there is never opened."""

import os
import socket
from pathlib import Path

import pytest

from transforms.list_files import InputError, lies_within, list_files, not_read


def names(path: Path | str) -> list[str]:
    return [file.name for file in list_files(str(path))]


def refusal(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        list_files(str(path))
    message = str(caught.value)
    assert message.isprintable() and message.endswith(".") and len(message) < 1000
    return message


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "2026-11-20").mkdir(parents=True)
    (folder / "2026-11-20/part.parquet").write_text("rows")
    return folder


def test_links_to_folders_and_files_are_not_followed(data: Path) -> None:
    (data / "latest").symlink_to("2026-11-20")
    (data / "self").symlink_to(".")
    (data / "again.parquet").symlink_to("2026-11-20/part.parquet")
    (data / "elsewhere.parquet").symlink_to("/etc/passwd")
    for path in (data, f"{data}/**/*.parquet", f"{data}/*/*.parquet"):
        assert [name.removeprefix("2026-11-20/") for name in names(path)] == ["part.parquet"]


def test_the_path_itself_may_lead_through_links(data: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(data)
    (tmp_path / "one.pq").symlink_to(data / "2026-11-20/part.parquet")
    assert names(tmp_path / "link") == names(f"{tmp_path}/link/**/*.parquet") == ["2026-11-20/part.parquet"]
    assert names(f"{tmp_path}/link/2026-11-20/*") == ["part.parquet"]
    assert names(tmp_path / "one.pq") == ["one.pq"]


def test_where_only_links_are_the_sentence_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").symlink_to("/etc/passwd")
    for path in (tmp_path, f"{tmp_path}/*.parquet"):
        assert "; symbolic links below it are not followed: give" in refusal(path)
    (tmp_path / "a.parquet").unlink()
    assert "not followed" not in refusal(tmp_path)


def test_two_names_of_one_file_are_refused(data: Path) -> None:
    os.link(data / "2026-11-20/part.parquet", data / "copy.parquet")
    assert "2026-11-20/part.parquet and copy.parquet are the same file" in refusal(data)
    assert names(f"{data}/*.parquet") == ["copy.parquet"]


@pytest.mark.parametrize(
    ("one", "other"), [("a.CSV", "a.csv.gz"), ("a.jsonl", "a.ndjson.gz"), ("a.arrow", "a.feather")]
)
def test_files_whose_names_differ_by_their_endings_are_refused(tmp_path: Path, one: str, other: str) -> None:
    """`gzip -k` leaves both: a row that counts twice is hidden half as well."""
    for name in (one, other, f"b{other[1:]}"):
        (tmp_path / name).write_text("rows")
    for path in (tmp_path, f"{tmp_path}/a*"):
        assert f"has {one} and {other}, which may be the same rows twice; keep one" in refusal(path)
    (tmp_path / "sub").mkdir()
    (tmp_path / one).rename(tmp_path / "sub" / one)
    assert names(tmp_path) == [other, f"b{other[1:]}", f"sub/{one}"]


@pytest.mark.parametrize(
    ("kind", "mark"),
    [
        ("Delta Lake", "_delta_log/00000000000000000000.json"),
        ("Hudi", ".hoodie/hoodie.properties"),
        ("Iceberg", "metadata/v1.metadata.json"),
    ],
)
def test_tables_with_earlier_versions_are_refused(data: Path, kind: str, mark: str) -> None:
    """Where small files were compacted, or a row was changed or deleted, earlier files are there, too."""
    (data / mark).parent.mkdir()
    (data / mark).write_text("{}")
    for path in (data, data.parent, f"{data}/**/*.parquet"):
        assert f"is a table of {kind}, which keeps files of earlier versions" in refusal(path)
    assert names(data / "2026-11-20") == names(f"{data}/2026-11-20/*.parquet") == ["part.parquet"]
    (data.parent / "part.parquet").write_text("rows")
    assert names(f"{data.parent}/*.parquet") == ["part.parquet"]


def test_only_regular_files_count(data: Path) -> None:
    os.mkfifo(data / "fifo.parquet")
    (data / "folder.parquet").mkdir()
    (data / "folder.parquet/in.parquet").write_text("rows")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(data / "s.parquet"))
        assert names(data) == ["2026-11-20/part.parquet", "folder.parquet/in.parquet"]
        assert "matches no files" in refusal(f"{data}/*.parquet")
        for special in (data / "fifo.parquet", data / "s.parquet", "/dev/null"):
            assert "is neither a file nor a folder" in refusal(special)


def test_a_folder_that_is_not_meant_is_not_looked_into(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan, seen = os.scandir, []
    monkeypatch.setattr(os, "scandir", lambda path: seen.append(path) or scan(path))
    (data / "_private").mkdir()
    (data / ".git").mkdir()
    names(data)
    assert [Path(path) for path in seen] == [data, data / "2026-11-20"]


def test_a_folder_that_cannot_be_listed_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", denied)
    assert "cannot be listed: Permission denied." in refusal(data)


@pytest.mark.parametrize(
    "name",
    [
        "a\nb",
        "a\0b",
        "\udcff",
        "\ud800",
        "a" * 300,
        "a/" * 3000,
        "\x1b[31m",
        "[z-a]*",
        "[]",
        "[",
        "***",
        "[!]",
        "a\n*",
        "a\0*",
        "\ud800*",
        "a" * 300 + "*",
        "*a" * 50 + "*b",
    ],
)
def test_odd_paths_end_in_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / ("a" * 200)).mkdir()
    message = refusal(f"{tmp_path}/{name}")
    assert message.startswith("input.path ")


@pytest.mark.parametrize("name", ["a\nb.parquet", "\x1b[31m.parquet"])
def test_a_name_with_control_characters_is_a_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("rows")
    assert names(tmp_path) == names(tmp_path / name) == [name]


@pytest.mark.parametrize(
    ("path", "place", "within"),
    [
        ("data", "data", True),
        ("data", "data/out", True),
        ("data", "data/_hidden/ledger.json", True),
        ("data", "database/out", False),
        ("data", "out", False),
        ("data", ".", False),
        ("data", "data/../out", False),
        ("data", "link/out", True),
        ("link", "data/out", True),
        ("data", "data/away/out", False),  # a link, which a listing does not follow
        ("*.parquet", "out/x", False),
        ("*.parquet", "ledger.json", False),
        ("*", "ledger.json", True),
        ("**/*.parquet", "out/x", True),
        ("data/*/*.parquet", "data/out", True),
        ("data/*/*.parquet", "data/out/inside", False),
        ("lin[k]/*/*.parquet", "data/out", False),
        ("link/*/*.parquet", "data/out", True),
        ("data/2026-11-20/part.parquet", "data/2026-11-20/part.parquet", True),
        ("data/2026-11-20/part.parquet", "data/2026-11-20", False),
        ("data/2026-11-20/part.parquet", "data/2026-11-20/out", False),
        ("data", "gs://bucket/data/out", False),
    ],
)
def test_whether_a_listing_could_cover_a_place(data: Path, path: str, place: str, within: bool) -> None:
    (data.parent / "link").symlink_to(data)
    (data / "away").symlink_to("/var")
    there = place if "://" in place else f"{data.parent}/{place}"
    assert lies_within(f"{data.parent}/{path}", there) == within


def test_a_file_of_a_name_that_looks_like_a_glob_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].parquet").write_text("rows")
    assert names(tmp_path / "a[1].parquet") == ["a[1].parquet"]
    assert not lies_within(f"{tmp_path}/a[1].parquet", f"{tmp_path}/a1.parquet")


def test_folders_give_texts_of_any_characters_and_null(tmp_path: Path) -> None:
    for kind in ("a%2Fb%3D1", "__HIVE_DEFAULT_PARTITION__", "c=d", ""):
        (tmp_path / f"kind={kind}").mkdir()
        (tmp_path / f"kind={kind}" / "rows.parquet").touch()
    assert [dict(file.folders) for file in list_files(str(tmp_path))] == [
        {"kind": kind} for kind in ("", None, "a/b=1", "c=d")
    ]


def left_out(path: Path | str) -> str:
    """Return what is said of `path` after it was listed."""
    list_files(str(path))
    says = not_read(str(path)) or ""
    assert not_read(str(path)) is None  # it is said once
    return says


def test_what_is_not_read_is_counted(data: Path) -> None:
    assert left_out(data) == ""
    for name in ("_SUCCESS", ".part.crc", "2026-11-20/_note.txt"):
        (data / name).write_text("")
    assert left_out(data) == ""
    for name in ("part.parq", "2026-11-20/part.gz"):
        (data / name).write_text("rows")
    (data / "yesterday").symlink_to("2026-11-20")
    says = left_out(data)
    assert "symbolic links, which are not followed: 1; files not named as Parquet, CSV, " in says
    assert says.endswith(": 2.")
    says = left_out(f"{data}/**/*.parquet")
    assert says.endswith("has what is not read; symbolic links, which are not followed: 1.")
    assert left_out(f"{data}/2026*/*") == ""
    assert left_out(data / "2026-11-20/part.parquet") == ""
    (data / "yesterday").unlink()
    assert left_out(f"{data}/**/*.parquet") == ""
