"""Texts that are nearly values of a type: those that are, and what becomes of the others."""

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.transforms.test_file_format import MARK, REFERENCES, as_time, columns_of
from transforms.evaluate_expression import evaluate
from transforms.parse_expression import parse_expression
from transforms.parse_texts import INTEGER, TEXT, parse_texts

DAYS = ("2012-02-29", "2013-02-29", "2013-04-31", "2013-12-31", "2013-13-01", "2013-00-10", "2013-01-00")
DAYS += ("0000-01-01", "0001-01-01", "9999-12-31", "1969-12-31", "2013-1-31", "20130131", "12013-01-31")
CLOCKS = ("06:00", "23:59:59", "23:59:60", "23:60", "24:01", "06:00:00.2", "06:00:00.25", "06:00:00.1234567")
ZONES = ("Z", "z", "+01:00", "-05:30", "+0130", "-00:00", "+23:59", "+24:00")
NO_ZONES = ("", "+1:00", " Z", "+01", "+01:00:00", "UTC")
TIMES = tuple(product(("2012-02-29", "2013-02-29", "1969-12-31"), "Tt _", CLOCKS, (*ZONES, *NO_ZONES)))
NUMBERS = ("0", "7", "+7", "-7", "--7", "+-7", "007", "-0", "1.", "1.0", "1.5", "-1.000", ".5", "1e3", "1E-3")
NUMBERS += ("1e400", "-1e400", "inf", "nan", "1,000", "1_000", "0x1F", "", " ", "7 7", "\u0667", "7\u00a0")
WORDS = ("true", "TRUE", "False", "1", "0", "01", "yes", "no", "t", "f", "on", "null")
EDGES = (*DAYS, *map("".join, TIMES), *NUMBERS, *WORDS)


@pytest.mark.parametrize("kind", REFERENCES, ids=str)
def test_a_text_that_is_nearly_a_value_is_one_or_null(kind: pa.DataType) -> None:
    """As Python reads it, without spaces and tabs around it."""
    texts = [blank.format(text) for text in EDGES for blank in ("{}", " {}\t", "\n{}", "{}\n")]
    found = parse_texts(pa.array([text.encode() for text in texts], pa.binary()), kind).to_pylist()
    expected = [REFERENCES[kind](text.strip(" \t")) for text in texts]
    differ = [each for each in zip(texts, found, expected, strict=True) if each[1] != each[2]]
    assert differ == []


def test_a_timestamp_with_a_zone_takes_no_text_without_one() -> None:
    found = parse_texts(
        pa.array(["".join(each).encode() for each in TIMES], pa.binary()), pa.timestamp("us", "UTC")
    )
    instants = found.cast(pa.timestamp("us")).to_pylist()
    for each, instant in zip(TIMES, instants, strict=True):
        assert instant == (as_time("".join(each)) if each[-1] in ZONES else None), each


@pytest.mark.parametrize("first", [b"x,t", b'"x","t"', b" x , t "])
@pytest.mark.parametrize("mark", [b"", MARK])
def test_a_header_is_read_without_its_byte_order_mark(tmp_path: Path, first: bytes, mark: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(mark + first + b"\n1,a\n2,b")
    assert columns_of(tmp_path / "a.csv", {"x": INTEGER, "t": TEXT}) == [[1, 2], ["a", "b"]]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_carriage_return_ends_no_line_and_is_left_out_at_its_end_alone(tmp_path: Path, end: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(b'x,t\r\n1,a\rb\r\n2,"c\r"\r\n3,\rd' + end)
    assert columns_of(tmp_path / "a.csv", {"x": INTEGER, "t": TEXT}) == [[1, 2, 3], ["a\rb", "c\r", "\rd"]]


@pytest.mark.parametrize("line", [b'[{"x": 1}]', b'{"x": 1},', b'"{}"', b"null", b'{"x": 1} 1'])
def test_a_line_of_json_around_an_object_is_none(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"x": 2}\n' + line)
    assert columns_of(tmp_path / "a.jsonl", {"x": INTEGER}) == [[2, None]]


def test_texts_behind_many_others_are_read() -> None:
    """Offsets of 32 bits do not hold their places. Whether there are so many bytes depends on rows."""
    data = np.zeros(2**31 + 2, dtype=np.uint8)  # which takes no memory where nothing is written
    data[2**31 :] = np.frombuffer(b"75", dtype=np.uint8)
    offsets = np.array([2**31, 2**31 + 1, 2**31 + 2])
    texts = pa.Array.from_buffers(pa.large_string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    for given in (texts, texts.slice(1)):
        found = evaluate(parse_expression("number(t)", constant=True), lambda _, t=given: t, len(given))
        assert found.to_pylist() == [7, 5][-len(given) :]


def test_a_timestamp_that_its_zone_moves_out_of_all_years_is_null() -> None:
    texts = ["9999-12-31T23:59-00:01", "9999-12-31T23:59+00:01", "0001-01-01T00:00+00:01", "0001-01-01T00:00"]
    given = pa.array(texts, pa.large_string())
    for written, known in (("year(timestamp(t))", 9999), ("timestamp(t) > '0001-01-01'", True)):
        found = evaluate(parse_expression(written, constant=True), lambda _: given, len(given))
        assert found.to_pylist() == [None, known, None, {9999: 1, True: False}[known]]
