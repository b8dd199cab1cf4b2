import pytest

from transforms.name_pattern import FILE, FOLDER, is_glob, parse_glob

MATCHES = [
    ("*.parquet", ["a.parquet"], [".a.parquet", "_a.parquet", "b/a.parquet", "a.parquet.gz"]),
    (
        "**/*.parquet",
        ["a.parquet", "b/a.parquet"],
        [".b/a.parquet", "b/.a.parquet", "b/_c/a.parquet"],
    ),
    ("?/**/a", ["b/a", "b/c/a", "b/c/d/a"], ["a", "b/.c/a", "_/a"]),
    ("_*/[!x]", ["_b/a"], ["b/a", "_b/_"]),
    ("*/**", ["b/a", "b/c/a"], ["a"]),
    ("**", ["a", "b/a", "b/c/a"], [".a"]),
    ("***", ["a"], ["b/a"]),
    ("[ab]?", ["a1", "b\n"], ["c1", "a"]),
    ("[!a]", ["b"], ["a", "."]),
    (".*", [".a"], ["a"]),
    ("[z-a]*", [], ["z", "a", "zz"]),
    ("[]", ["[]"], ["a"]),
    ("[]a]", ["]", "a"], ["b"]),
    ("[", ["["], ["a"]),
    ("a**b/c", ["ab/c", "axb/c"], ["a/b/c", "a/x/b/c"]),
    ("*a" * 30 + "b", [], ["a" * 200]),
]


@pytest.mark.parametrize(("glob", "meant", "others"), MATCHES, ids=[glob[:20] for glob, _, _ in MATCHES])
def test_what_a_glob_means(glob: str, meant: list[str], others: list[str]) -> None:
    _, pattern = parse_glob(f"/data/{glob}")
    assert all(pattern.matches(name) for name in meant)
    assert not any(pattern.matches(name) for name in others)


def test_the_root_is_the_fixed_part() -> None:
    assert parse_glob("/a/b*/c")[0] == "/a"
    assert parse_glob("/*")[0] == "/"
    assert not is_glob("/a/b.parquet")


def test_a_folder_is_its_files_of_known_formats_without_hidden_ones() -> None:
    names = [
        "a.parquet",
        "b/c/a.parquet",
        "b\nc/a.parquet",
        "a.csv",
        "b=1/a.ndjson.gz",
        "a.arrow",
        "a.b.avro",
        "A.CSV",
        "a.Csv.GZ",
        "A.PARQUET",
    ]
    others = [".a.parquet", "_b/a.parquet", ".b/a.parquet", "_a.parquet", ".parquet"]
    others += ["a.csv.zip", "acsv", "a.json", "a.gz", "a.c\u017fv"]
    assert all(FOLDER.matches(name) for name in names)
    assert not any(FOLDER.matches(name) for name in others)


@pytest.mark.parametrize(
    ("glob", "place", "below"),
    [
        ("*.parquet", "out", False),
        ("*.parquet", "out/x", False),
        ("**/*.parquet", "out/x", True),
        ("*/x/*.parquet", "out", True),
        ("*/x/*.parquet", "out/x", True),
        ("*/x/*.parquet", "out/y", False),
        ("*/x/*.parquet", "out/x/y", False),
    ],
)
def test_whether_a_name_below_a_place_could_be_meant(glob: str, place: str, below: bool) -> None:
    _, pattern = parse_glob(f"/{glob}")
    assert pattern.goes_on(pattern.after_all(place.split("/"))) == below


def test_a_file_has_nothing_below() -> None:
    assert FILE.ends(FILE.start)
    assert not FILE.after_all(["a"])
