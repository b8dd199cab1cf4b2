"""Wrong versions of how files of other formats than Parquet are read."""

from tests.mutants.mutant import Mutant, Selection

_FORMATS = "tests/transforms/test_file_format.py"
_LINES = Selection((_FORMATS,), "leaves_out_itself or are_split or is_bounded")
_TEXTS = Selection((_FORMATS,), "whatever_the_others")
_SAME = Selection((_FORMATS,), "same_rows")
_ALLOWED = Selection((_FORMATS,), "its_type_does_not_allow")
_DATA = Selection(("tests/shoal/test_data.py",), "object or cannot_store")
_REFUSED = Selection((_FORMATS,), "refused")

READING = (
    Mutant(
        12,
        "transforms/read_csv.py",
        "a quote that is never closed spoils the next lines",
        "before = np.searchsorted(quotes, starts)[np.searchsorted(ends, commas)]",
        "before = 0",
        _LINES,
    ),
    Mutant(
        12,
        "transforms/read_csv.py",
        "a line that is no record is dropped with its neighbor",
        "held = ends > starts",
        "held = (ends > starts) & np.append(True, sound[:-1])",
        _LINES,
    ),
    Mutant(
        12,
        "transforms/read_csv.py",
        "a line of too many fields is a record",
        "== fields",
        ">= fields",
        _LINES,
    ),
    Mutant(
        12,
        "transforms/read_csv.py",
        "a type is that of the first row",
        "parse_texts(text, types.get(name, TEXT))",
        'parse_texts(text, INTEGER if (text[0].as_py() or b"-").isdigit() else types.get(name, TEXT))',
        _LINES,
    ),
    Mutant(
        12,
        "transforms/read_lines.py",
        "whether a line is too long depends on where blocks end",
        "return block if end <= MOST_LINE else UNREADABLE + block[end:]",
        "return block",
        _LINES,
    ),
    Mutant(
        12,
        "transforms/read_json_lines.py",
        "a line of many brackets ends a run",
        "_depth(line) > _MOST_DEEP",
        "False",
        _LINES,
    ),
    Mutant(
        12,
        "transforms/read_json_lines.py",
        "the mark in front of a line is left out of the first one alone",
        'line.removeprefix(MARK) for line in block.split(b"\\n")',
        'line for line in block.removeprefix(MARK).split(b"\\n")',
        _LINES,
    ),
    Mutant(
        12,
        "transforms/parse_texts.py",
        "what is an integer depends on the other texts",
        "return _integers(_trimmed(texts, _INTEGER))",
        "try:\n            return pc.cast(texts.view(TEXT), INTEGER)\n        except pa.ArrowInvalid:\n"
        "            return _integers(_trimmed(texts, _INTEGER))",
        _TEXTS,
    ),
    Mutant(
        12,
        "transforms/parse_texts.py",
        "what is a number depends on the other texts",
        "return pc.if_else(pc.is_finite(values), values, pa.scalar(None, NUMBER))",
        "return values",
        _TEXTS,
    ),
    Mutant(
        12,
        "transforms/column_types.py",
        "whole numbers are read as floats where these do not hold them",
        "if grid.wide and not grid.serves_floats(axis))",
        "if False)",
        _SAME,
    ),
    Mutant(
        12,
        "transforms/read_arrow.py",
        "the rows of a record batch have the identities of others",
        "list(accumulate(rows, initial=0))[:-1]",
        "[0 for _ in rows]",
        _SAME,
    ),
    Mutant(
        12,
        "transforms/read_arrow.py",
        "one value that its type does not allow ends a run",
        "_stored(column).validate(full=True)",
        "column.validate(full=True)",
        _ALLOWED,
    ),
    Mutant(
        12,
        "transforms/read_arrow.py",
        "a value that its type does not allow is read",
        "pc.less_equal(values, most)",
        "pc.is_valid(values)",
        _ALLOWED,
    ),
    Mutant(
        12,
        "transforms/read_avro.py",
        "a row of a type that contains itself may be of any depth",
        "return written in around",
        "return False",
        Selection((_FORMATS,), "contains_itself"),
    ),
    Mutant(
        12,
        "transforms/list_files.py",
        "the same rows are read twice, in two formats",
        "if len(first) > 1:",
        "if False:",
        _REFUSED,
    ),
    Mutant(
        12,
        "transforms/open_source.py",
        "a unit stands in the name of a folder",
        "if unit in dict(files[0].folders):",
        "if False:",
        _REFUSED,
    ),
    Mutant(
        12,
        "transforms/open_source.py",
        "an error quotes the first row of a file without a header",
        'if file.format == "CSV":',
        "if False:",
        _REFUSED,
    ),
    Mutant(
        12,
        "transforms/read_batches.py",
        "a file of another format may be written during a run",
        "pa.concat_batches([part])  # which copies\n    _check_version(file)",
        "pa.concat_batches([part])  # which copies",
        Selection((_FORMATS,), "written_during"),
    ),
    Mutant(
        12,
        "shoal/data.py",
        "the type of a column of objects follows from its values",
        "return pa.array([_text(value) for value in values.astype(object)], pa.large_binary()).view(_TEXT)",
        "return pa.array(values, from_pandas=True)",
        _DATA,
    ),
    Mutant(
        12,
        "shoal/data.py",
        "an axis of objects is refused by its values",
        "_check_axes(objects, job)",
        "_check_axes([n for n, v in columns if n in objects and any(isinstance(e, str) for e in v)], job)",
        _DATA,
    ),
    Mutant(
        12,
        "shoal/data.py",
        "one time that milliseconds do not hold ends a run",
        "_is_written(_without_seconds(table.select(fit)), place)",
        "_is_written(table.select(fit), place)",
        _DATA,
    ),
)
