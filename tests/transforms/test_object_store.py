"""Files of S3 and Azure: what is listed, read and said, over obstore's store in memory.

`tests/engines` has the same over real servers.
"""

import io
from datetime import UTC, datetime

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore
from pyarrow import fs

from transforms import object_store
from transforms.list_files import InputError, list_files, not_read, version_of
from transforms.object_store import StoreError, StoreFiles, azure_settings, explained
from transforms.open_source import open_files, open_source
from transforms.read_batches import read_batches


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """The bucket `s3://b`."""
    held = MemoryStore()
    monkeypatch.setattr(object_store, "open_store", lambda bucket: held)
    return held


def put_rows(store: MemoryStore, name: str, rows: int = 5000) -> np.ndarray:
    x, sink = np.arange(rows) / rows, io.BytesIO()
    pq.write_table(pa.table({"x": x, "other": x[::-1]}), sink, row_group_size=1000)
    obstore.put(store, name, sink.getvalue())
    return x


ODD = (
    "a b.parquet",
    "a+b&c=d.parquet",
    "é.parquet",
    "100%.parquet",
    "day=1/country=%2F/p.parquet",
    "q?#.parquet",
)


def test_every_name_is_listed_and_can_be_read(store):
    for name in ODD:
        put_rows(store, f"rows/{name}")
    obstore.put(store, "rows2/p.parquet", b"of another folder")
    expected = sorted(name for name in ODD if "=1" not in name)
    obstore.delete(store, "rows/day=1/country=%2F/p.parquet")
    listed = list_files("s3://b/rows")
    assert [file.name for file in listed] == expected
    assert all(
        pq.read_metadata(StoreFiles("s3://").open_input_file(f"b/rows/{name}")).num_rows for name in expected
    )
    assert [file.name for file in list_files("s3://b/rows/*b*.parquet")] == ["a b.parquet", "a+b&c=d.parquet"]
    assert list_files("s3://b/rows/é.parquet")[0].path == "s3://b/rows/é.parquet"
    put_rows(store, "hive/day=1/country=%2F/p.parquet")
    assert list_files("s3://b/hive")[0].folders == (("country", "/"), ("day", "1"))


def test_more_than_a_thousand_files_are_listed(store):
    for number in range(2345):
        obstore.put(store, f"rows/{number:04}.parquet", b"x")
    assert [file.name for file in list_files("s3://b/rows")] == [f"{n:04}.parquet" for n in range(2345)]


def test_objects_that_show_empty_folders_are_no_files(store):
    put_rows(store, "rows/p.parquet")
    obstore.put(store, "rows/sub", b"")
    obstore.put(store, "rows", b"")
    assert [file.name for file in list_files("s3://b/rows")] == ["p.parquet"]
    obstore.put(store, "rows/empty.parquet", b"")
    with pytest.raises(InputError, match=r"empty\.parquet is not Parquet"):
        open_source("s3://b/rows", ["x"])


def test_objects_of_other_names_are_counted(store):
    put_rows(store, "other/p.parquet")
    for name, content in {"_SUCCESS": b"", "empty.txt": b"", "_note.txt": b"x", "a/p.parq": b"x"}.items():
        obstore.put(store, f"other/{name}", content)
    list_files("s3://b/other")
    says = not_read("s3://b/other") or ""
    assert "has what is not read; files not named as Parquet, " in says and says.endswith(": 1.")
    list_files("s3://b/other/*.parquet")
    assert not_read("s3://b/other/*.parquet") is None


def test_tables_with_earlier_versions_are_refused(store):
    put_rows(store, "table/p.parquet")
    obstore.put(store, "table/_delta_log/0.json", b"{}")
    for path in ("s3://b/table", "s3://b/table/*.parquet"):
        with pytest.raises(InputError, match="is a table of Delta Lake, which keeps files"):
            list_files(path)
    put_rows(store, "p.parquet")
    assert [file.name for file in list_files("s3://b/*.parquet")] == ["p.parquet"]


@pytest.mark.parametrize("path", ["s3://b/rows", "s3://b", "s3://b/rows/*.csv"])
def test_nothing_there_is_one_sentence(store, path):
    with pytest.raises(InputError, match=r"does not exist|matches no files"):
        list_files(path)


@pytest.mark.parametrize("path", ["s3://b//rows", "s3://b/a//b", "s3://b/a/../b", "s3://b/a\0b"])
def test_what_no_store_can_hold_is_no_path(store, path):
    with pytest.raises(InputError, match="is not a path"):
        list_files(path)


def test_only_what_is_read_is_fetched(store, monkeypatch):
    """Of a file of two columns, a row group of one of them, and the footer."""
    x = put_rows(store, "rows/p.parquet", 1_000_000)
    (file,) = list_files("s3://b/rows")
    whole, fetched, get = obstore.head(store, "rows/p.parquet")["size"], [], obstore.get

    def counted(*arguments, **named):
        found = get(*arguments, **named)
        fetched.append(len(found.bytes()))
        return get(*arguments, **named)

    monkeypatch.setattr(obstore, "get", counted)
    read = pa.Table.from_batches(read_batches(file, 3, ["x"], 10_000))
    assert np.array_equal(read["x"].to_numpy(), x[3000:4000])
    assert sum(fetched) < whole / 10


def test_all_that_is_read_is_of_one_version(store):
    put_rows(store, "rows/p.parquet")
    (file,) = list_files("s3://b/rows")
    before = version_of(file)
    with StoreFiles("s3://").open_input_file("b/rows/p.parquet") as opened:
        assert opened.read(4) == b"PAR1"
        put_rows(store, "rows/p.parquet")
        assert version_of(file) != before
        with pytest.raises(OSError, match=r"refuses a request|did not respond"):
            opened.read(4)


def test_an_object_without_a_version_is_one_sentence(store, monkeypatch):
    """A server that shows a folder of a disk has none for files that were put there beside it."""
    put_rows(store, "rows/p.parquet")
    whole = obstore.head(store, "rows/p.parquet")
    monkeypatch.setattr(obstore, "head", lambda store, key: {**whole, "e_tag": None})
    with pytest.raises(StoreError, match=r"the object has no ETag: write it through the server"):
        StoreFiles("s3://").open_input_file("b/rows/p.parquet")
    with pytest.raises(InputError, match=r"^input\.path: rows cannot be opened: the object has no ETag: "):
        open_files("s3://b/rows")


def test_a_place_in_a_file_is_where_it_is_read(store):
    data = bytes(range(200))
    obstore.put(store, "f", data)
    with StoreFiles("s3://").open_input_file("b/f") as opened:
        assert opened.size() == 200
        assert opened.read_at(7, 3) == data[3:10]
        opened.seek(190)
        assert (opened.read(5), opened.tell(), opened.read(), opened.read()) == (
            data[190:195],
            195,
            data[195:],
            b"",
        )
        opened.seek(-3, 2)
        assert (opened.read(100), opened.tell()) == (data[-3:], 200)


def test_a_folder_is_listed_with_its_files_and_folders_alone(store):
    """By which an output is found to be empty. Objects that show empty folders are no files."""
    for name in ("out/a.parquet", "out/inside/b.parquet", "out2/c.parquet", "out/deep/er/d"):
        obstore.put(store, name, b"x")
    obstore.put(store, "out/shown", b"")
    files = StoreFiles("s3://")
    listed = files.get_file_info(fs.FileSelector("b/out"))
    assert {(each.path, each.type.name) for each in listed} == {
        ("b/out/a.parquet", "File"),
        ("b/out/inside", "Directory"),
        ("b/out/deep", "Directory"),
    }
    whole = files.get_file_info(fs.FileSelector("b/out", recursive=True))
    assert {each.path for each in whole} == {
        "b/out/a.parquet",
        "b/out/inside/b.parquet",
        "b/out/deep/er/d",
    }


@pytest.mark.parametrize("changed", [{"e_tag": "2"}, {"last_modified": datetime(2026, 1, 2, tzinfo=UTC)}])
def test_a_version_changes_with_the_content_and_with_the_time(monkeypatch, store, changed):
    """Of some servers one of them stays where a file is written again."""
    found = {"e_tag": "1", "last_modified": datetime(2026, 1, 1, tzinfo=UTC)}
    monkeypatch.setattr(obstore, "head", lambda store, key: found)
    before = StoreFiles("s3://").version("b/f")
    found |= changed
    assert StoreFiles("s3://").version("b/f") != before


def test_what_is_written_appears_whole(store):
    files = StoreFiles("s3://")
    with pytest.raises(KeyError), files.open_output_stream("b/out/f") as stream:
        stream.write(pa.py_buffer(b"half"))
        raise KeyError
    assert files.get_file_info("b/out").type.name == "NotFound"
    with files.open_output_stream("b/out/f") as stream:
        stream.write(pa.py_buffer(b"whole"))
    assert bytes(obstore.get(store, "out/f").bytes()) == b"whole"


def answered(status: int | None, text: str = "") -> GenericError:
    said = (
        "HTTP error: error sending request" if status is None else f"non-2xx status code: {status} X: {text}"
    )
    return GenericError(
        f"Generic S3 error: Error performing GET http://h/b/k in 1ms - Server returned {said}"
    )


@pytest.mark.parametrize(
    ("error", "says", "ours"),
    [
        (
            answered(404, "<Code>NoSuchBucket</Code>"),
            "bucket b does not exist (404): create it, or give",
            True,
        ),
        (answered(404), "bucket b does not exist (404)", True),
        (answered(403, "<Code>SignatureDoesNotMatch</Code>"), "bucket b refuses the credentials (403)", True),
        (answered(400, "<Code>ExpiredToken</Code>"), "bucket b refuses the credentials (400)", True),
        (answered(401), "bucket b refuses the credentials (401)", True),
        (answered(403), "bucket b denies access (403): check the key, and let its account", True),
        (answered(400, "<Code>AuthorizationHeaderMalformed</Code>"), "bucket b is in another region", True),
        (answered(400, "<Code>InvalidBucketName</Code>"), "bucket b has a name that is not allowed", True),
        (answered(418), "bucket b refuses a request (418)", False),
        (answered(503), "bucket b did not respond (503), also when it was asked again", False),
        (answered(429), "bucket b did not respond (429), also when it was asked again", False),
        (answered(None), "bucket b did not respond (no connection), also when it was", False),
        (
            GenericError("PUT http://169.254.169.254/latest/api/token"),
            "bucket b needs credentials, but none",
            True,
        ),
    ],
)
def test_what_a_server_answers_is_one_sentence(error, says, ours):
    """Without what it quotes, which may be anything."""
    with pytest.raises(StoreError) as told, explained("s3://b/k"):
        raise error
    assert told.value.sentence.startswith(says)
    assert told.value.ours == ours
    assert "Error" not in told.value.sentence
    assert told.value.strerror == f"the {told.value.sentence}"


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        ({}, {}),
        (
            {"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_KEY": "k=="},
            {"account_name": "a", "account_key": "k=="},
        ),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=k==;"},
            {"account_name": "a", "account_key": "k==", "endpoint": "https://a.blob.core.windows.net"},
        ),
        (
            {
                "AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=https://a.blob.host/;SharedAccessSignature=sv=1&sig=x"
            },
            {"account_name": "a", "sas_key": "sv=1&sig=x", "endpoint": "https://a.blob.host"},
        ),
        ({"AZURE_STORAGE_CONNECTION_STRING": "UseDevelopmentStorage=true"}, {"use_emulator": True}),
    ],
)
def test_what_users_of_azure_set(environment, settings):
    assert azure_settings(environment) == settings


def test_a_connection_string_that_names_no_account_is_refused():
    with pytest.raises(StoreError) as told:
        azure_settings({"AZURE_STORAGE_CONNECTION_STRING": "AccountKey=k==;EndpointSuffix=core.example"})
    assert told.value.ours
    assert told.value.sentence == (
        "connection string in AZURE_STORAGE_CONNECTION_STRING has neither AccountName nor BlobEndpoint: "
        "give one of them"
    )
