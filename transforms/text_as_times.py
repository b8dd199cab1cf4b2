"""What to do with a column of text where dates or timestamps are needed."""

import pyarrow as pa

from transforms.list_files import File

_DATES, _ZONED = "dates", "timestamps with a zone"


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type has text."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def convert_text(file: File, column: str, kind: pa.DataType, times: str) -> str:
    """Return the advice for a column of text in place of times, as a clause; empty where it has no text.

    Args:
        file: a file that has the column. Where the file has no types, the job gives them.
        column: its name.
        kind: its type.
        times: what is needed, as `core.times.Times.kind` says it.
    """
    if not is_text(kind):
        return ""
    if column in dict(file.types):
        return f"give it the type {'date' if times == _DATES else 'timestamp'} in input.types"
    converted = f"pandas.to_datetime(frame[{column!r}]{', utc=True' if times == _ZONED else ''})"
    converted += ".astype('date32[day][pyarrow]')" if times == _DATES else ""
    if times == _ZONED:
        return f"convert the text first, such as by {converted}"
    read = "date" if times == _DATES else "timestamp"
    return f"convert the text first, such as by {converted}, or read it by {read}(...) in input.derive"
