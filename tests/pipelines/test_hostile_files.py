"""Hundreds of hostile files, each read as a run does: records, or one sentence; never a crash."""

import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.balls import Balls
from core.domain import Grid
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from tests.pipelines.hostile import SEED, beside, broken, columns, whole, written
from transforms.bound_units import Bounding, bound_in_memory
from transforms.open_source import InputError, open_source
from transforms.read_blocks import Reader, check_axes, list_row_groups, read_blocks
from transforms.screen_rows import OutputError, Screen, screen_row_group
from transforms.split_units import Splitting, gather, split_rows

GRID = Grid((0.0,), (100.0,), 0.5)
SALT = b"a salt of 16 byt"
BALLS = Balls(np.array([[100]]), np.array([20]))

FOOTER, LATER = "at the footer", "while reading"


def said(error: Exception, name: str) -> str:
    """Check that an error is one sentence of the file or field, without anything of the rows; return it."""
    text = str(error)
    assert text.isprintable() and text.endswith(".") and len(text) < 2000, text
    assert re.match(r"input\.(path|columns|unit)\b", text), text
    assert "Traceback" not in text and error.__cause__ is None
    return text


def read(path: Path, unit: str | None, output: Path) -> tuple[str | None, str]:
    """Do what runs do with a file; return when it was refused, and the sentence."""
    try:
        source = open_source(str(path), ["x"], unit)
        check_axes(source, GRID)
    except InputError as error:
        return FOOTER, said(error, path.name)
    try:
        (file,) = source.files
        descriptors = list_row_groups(file)
        if unit is None:
            reader = Reader.of(source, GRID)
            for descriptor in descriptors:
                for block in read_blocks(reader, descriptor):
                    assert block.points.min(initial=0) >= 0 and block.points.max(initial=0) <= 200
                screen_row_group(descriptor, Screen(reader, BALLS), str(output))
        else:
            list(bound_in_memory(source, Bounding.of(source, GRID, "one", SALT)))
        splitting = Splitting(("x",), unit, 4, SALT)
        for descriptor in descriptors:
            for part, shard in split_rows(splitting, descriptor):
                list(gather(splitting, part, [shard]))
    except (InputError, OutputError) as error:
        text = said(error, path.name) if isinstance(error, InputError) else str(error)
        assert path.name in text or "cannot be written" in text, text
        return LATER, text
    return None, ""


def outcomes(folder: Path, files: list[tuple[str, bytes]]) -> dict[str, list[tuple[str | None, str]]]:
    path, out = folder / "rows" / "hostile.parquet", {}
    path.parent.mkdir()
    for number, (name, data) in enumerate(files):
        path.write_bytes(data)
        try:
            out[name] = [read(path, unit, folder / f"out{number}") for unit in (None, "u")]
        except Exception as error:
            raise AssertionError(f"{name} of seed {SEED} raises {type(error).__name__}: {error}") from error
        assert os.listdir(path.parent) == ["hostile.parquet"]
        assert path.read_bytes() == data
    return out


def test_sound_files_of_every_type_are_read_or_refused_at_the_footer(tmp_path: Path) -> None:
    files = list(whole())
    found = outcomes(tmp_path, files)
    assert len(found) > 200
    assert {when for both in found.values() for when, _ in both} <= {None, FOOTER}
    assert sum(both[0][0] is None for both in found.values()) > 120
    assert sum(both[1][0] is None for both in found.values()) > 100
    for name, says in {
        "two columns of a name": "x occurs more than once in hostile.parquet",
        "no columns": "x is missing from hostile.parquet; its columns are none.",
        "odd names, none used": r"line\nbreak\tand\x1b[31mred",
        "a thousand columns": "and 970 more.",
        "deep": "input.columns: x is struct<",
    }.items():
        assert says in found[name][0][1]
    assert "u occurs more than once" in found["two units of a name"][1][1]


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    files = list(broken())
    assert len(files) > 900
    found = outcomes(tmp_path, files)
    whens = [when for both in found.values() for when, _ in both]
    assert min(whens.count(when) for when in (None, FOOTER, LATER)) > 100
    for name in (
        "empty",
        "text",
        "noise",
        "zeros",
        "wrong end",
        "huge footer",
        "no footer",
        "encrypted magic",
    ):
        assert {when for when, _ in found[name]} == {FOOTER}
    assert "is encrypted; give a file of Parquet" in found["encrypted footer"][0][1]
    late = {text for both in found.values() for when, text in both if when == LATER}
    assert "input.path: hostile.parquet can no longer be read, or is damaged." in late


def test_a_folder_of_odd_things_is_read_for_its_files_alone(tmp_path: Path) -> None:
    every = columns()
    sound = written(pa.table({"x": every["float64"], "u": every["string"]}))
    made = beside(tmp_path, sound)
    (tmp_path / "there").mkdir()
    (tmp_path / "there/in.parquet").write_bytes(sound)
    with pytest.raises(InputError) as caught:
        open_source(str(tmp_path), ["x"], "u")
    assert r"\x1b[31m.parquet is truncated or damaged" in said(caught.value, "")
    made[6].unlink()
    assert [file.name for file in open_source(str(tmp_path), ["x"], "u").files] == [
        "li\nne.parquet",
        "there/in.parquet",
    ]
    for path in made[1:5]:
        with pytest.raises(InputError) as caught:
            open_source(str(path), ["x"])
        said(caught.value, path.name)


@pytest.mark.parametrize("path", ["", "*.parquet", "\udcff.parquet"])
def test_a_name_that_is_not_in_utf_8_is_told(tmp_path: Path, path: str) -> None:
    """Neither Arrow nor a job can name such a file."""
    (tmp_path / "\udcff.parquet").write_bytes(written(pa.table({"x": [0.5]})))
    with pytest.raises(
        InputError, match=r"\\udcff\.parquet cannot be .*: its name is not UTF-8 as this locale reads it"
    ):
        open_source(os.path.join(tmp_path, path), ["x"])


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    changed[int(rng.integers(len(data) - 200, len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


DAMAGE = {
    "cut": lambda data, rng: data[: int(rng.integers(0, len(data)))],
    "end": lambda data, rng: data[:-4] + b"PARE",
    "begin": lambda data, rng: data[: int(rng.integers(4, len(data)))].replace(b"PAR1", b"PARE", 1),
    "text": lambda data, rng: b"x,y\n1,2\n" * int(rng.integers(1, 9)),
    "data": lambda data, rng: data[:4] + rng.bytes(200) + data[204:],
    "flip": flipped,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_command_ends_in_a_sentence_and_charges_nothing_for_a_bad_footer(bench, damage) -> None:
    """Each run has its own budget in one ledger, so that what was charged can be counted."""
    rng = np.random.default_rng(SEED)
    ledger = str(bench.folder / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=50.0, delta=1e-3))
    sound = bench.rows.read_bytes()
    for number in range(4):
        bench.rows.write_bytes(DAMAGE[damage](sound, rng))
        try:
            open_source(str(bench.rows.parent), ["x", "y"])
            late = True
        except InputError:
            late = False
        before = len(read_ledger(ledger).charges)
        out = str(bench.folder / f"out{number}")
        result = bench.run({"privacy.ledger": ledger, "output": out, "run_id": f"run{number}"})
        code = 1 if "damaged" in result.stderr or "is empty" in result.stderr else 2
        assert result.exit_code in ((0, 1, 2) if late else (code,)), result.output
        assert "Traceback" not in result.output
        if result.exit_code:
            assert result.stderr.count("\n") == 1 and result.stderr.strip().isprintable()
            assert result.stderr.startswith("shoal: ") and result.stderr.endswith(".\n")
            assert not Path(out, "release.json").exists()
        assert late or len(read_ledger(ledger).charges) == before
        assert late or "part.parquet" in result.stderr
        assert os.listdir(bench.rows.parent) == ["part.parquet"]
