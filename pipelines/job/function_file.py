"""A function in a file of Python beside the job file. Its text is read with the job and travels with it."""

import hashlib
import re
from typing import Annotated, Any

from pydantic import PlainSerializer

from pipelines.errors import JobError
from pipelines.storage.locate import absolute, open_file

FILE = re.compile(r"([^\0]*\.py):[A-Za-z_]\w*")
"""How a job names a function in a file."""

_MOST_BYTES = 1_000_000


def digest(text: str | None) -> str | None:
    """Return what a job's hash and a release hold of a text."""
    return None if text is None else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


Code = Annotated[str | None, PlainSerializer(digest)]
"""Text of a file of Python. Another text makes another job, but no release shows it."""


def carry_function(raw: dict[str, Any], folder: str) -> None:
    """Put the text of a file into a job whose `params.function` names one and which has no `params.code`.

    Args:
        raw: the job as a mapping, not checked yet.
        folder: at which a relative path begins: that of the job file.

    Raises:
        JobError: the file cannot be read, or is not Python.
    """
    params = raw.get("params")
    if not isinstance(params, dict) or params.get("code") is not None:
        return
    named = params.get("function")
    match = FILE.fullmatch(named) if isinstance(named, str) else None
    if match is not None:
        raw["params"] = {**params, "code": _text(match[1], folder)}


def _text(file: str, folder: str) -> str:
    """Return the text of a file of Python.

    Raises:
        JobError: there is no such text.
    """
    apart = "://" in file or file.startswith(("/", "~"))
    path = absolute(file if apart else f"{folder}/{file}")
    says = f"params.function names the file {path}"
    where, name = open_file(path)
    size = where.size(name)
    if size is None:
        raise JobError(f"{says}, which does not exist. A relative path begins at the folder of the job.")
    if size > _MOST_BYTES:
        raise JobError(f"{says}, which has {size:,} bytes: it may have at most {_MOST_BYTES:,}.")
    try:
        data = where.read(name) or b""
        text = data.decode()
        compile(data, name, "exec", dont_inherit=True)  # as it will be run
    except JobError:
        raise  # which is a ValueError
    except SyntaxError as error:
        line = f" in line {error.lineno}" if error.lineno else ""
        raise JobError(f"{says}, which is not valid Python{line}.") from None
    except (OSError, ValueError, RecursionError, MemoryError):
        raise JobError(f"{says}, which cannot be read: give a file of Python in UTF-8.") from None
    return text
