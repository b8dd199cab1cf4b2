"""Open the folder or file that a job names: the only place that knows schemes."""

import os
import posixpath

from pipelines.errors import JobError
from pipelines.storage.folder import GCS, Folder
from pipelines.storage.local_folder import LocalFolder


def open_folder(path: str) -> Folder:
    """Return the folder at `path`, which need not exist yet.

    Raises:
        JobError: a scheme that is not served.
    """
    if path.startswith(GCS):
        from pipelines.storage.object_storage import ObjectFolder

        return ObjectFolder(path.rstrip("/"))
    if "://" in path:
        raise JobError(f"{path} has a scheme that is not served: give a local path or one of {GCS}.")
    return LocalFolder(path)


def open_file(path: str) -> tuple[Folder, str]:
    """Return the folder of the file at `path`, and its name there.

    Raises:
        JobError: a scheme that is not served, or no name.
    """
    if not path:
        raise JobError("The path of a file is empty: give a local path or one of gs://.")
    scheme, mark, rest = path.rpartition("://")
    folder, name = (posixpath if mark else os.path).split(rest)
    if not name or (mark and not folder):
        raise JobError(f"{path} is a folder: give a file's name.")
    return open_folder(scheme + mark + folder), name


def absolute(path: str) -> str:
    """Return a local path made absolute, since workers run elsewhere; another as it is.

    Raises:
        JobError: a character that no path has, a home folder of nobody, or no current folder to start from.
    """
    if "\0" in path:
        raise JobError(f"{path!r} is not a path: it has a NUL character.")
    if "://" in path or not path:
        return path
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise JobError(f"{path} begins with the home folder of nobody who is known here: give another path.")
    try:
        return os.path.abspath(expanded)
    except FileNotFoundError:
        raise JobError(
            f"{path} is relative to a current folder that is gone: give an absolute path."
        ) from None
