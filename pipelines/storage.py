"""Open the folder or file that a job names: the only place that knows schemes."""

import os
import posixpath

from pipelines.folder import GCS, Folder
from pipelines.local_folder import LocalFolder
from pipelines.refusal import JobError


def open_folder(path: str) -> Folder:
    """Return the folder at `path`, which need not exist yet.

    Raises:
        JobError: a scheme that is not served.
    """
    if path.startswith(GCS):
        from pipelines.object_storage import ObjectFolder

        return ObjectFolder(path.rstrip("/"))
    if "://" in path:
        raise JobError(f"{path} has a scheme that is not served: give a local path or one of {GCS}.")
    return LocalFolder(path)


def open_file(path: str) -> tuple[Folder, str]:
    """Return the folder of the file at `path`, and its name there.

    Raises:
        JobError: a scheme that is not served, or no name.
    """
    folder, name = (posixpath if "://" in path else os.path).split(path)
    if not name:
        raise JobError(f"{path} is a folder: give a file's name.")
    return open_folder(folder), name


def absolute(path: str) -> str:
    """Return a local path made absolute, since workers run elsewhere; another as it is.

    Raises:
        JobError: a character that no path has.
    """
    if "\0" in path:
        raise JobError(f"{path!r} is not a path: it has a NUL character.")
    return path if "://" in path or not path else os.path.abspath(os.path.expanduser(path))
