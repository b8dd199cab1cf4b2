"""Open the folder or file at a path."""

import os
import posixpath
import re

from pipelines.errors import JobError, without_credentials
from pipelines.storage.folder import Folder
from pipelines.storage.local_folder import LocalFolder
from transforms.extras import needs
from transforms.schemes import EXTRAS, GCS, KNOWN, LOCAL, split_scheme

_SIGNED = re.compile(r"[?&](sig|[\w-]*signature|[\w-]*credential|[\w-]*token|[\w-]*key(id)?)=", re.IGNORECASE)
"""What URLs have that were signed for Azure, S3 or Google, and no name of a file."""


def open_folder(path: str) -> Folder:
    """Return the folder at `path`, which need not exist yet.

    Raises:
        JobError: the scheme is not supported.
        MissingExtra: its packages are not installed.
    """
    scheme, _ = split_scheme(path)
    if scheme == LOCAL:
        return LocalFolder(path)
    if scheme not in EXTRAS:
        raise JobError(f"{path} has a scheme that is not supported: give a local path or {KNOWN}.")
    with needs(EXTRAS[scheme], f"{path}: {scheme}"):
        if scheme == GCS:
            from pipelines.storage.google_folder import GoogleFolder

            return GoogleFolder(path.rstrip("/"))
        from pipelines.storage.store_folder import StoreFolder

        return StoreFolder(path.rstrip("/"))


def open_file(path: str) -> tuple[Folder, str]:
    """Return the folder of the file at `path`, and the name of the file.

    Raises:
        JobError: the scheme is not supported, or the path has no file name.
    """
    if not path:
        raise JobError(f"The path of a file is empty: give a local path or {KNOWN}.")
    scheme, mark, rest = path.rpartition("://")
    folder, name = (posixpath if mark else os.path).split(rest)
    if not name or (mark and not folder):
        raise JobError(f"{path} is a folder: give the name of a file.")
    return open_folder(scheme + mark + folder), name


def absolute(path: str) -> str:
    """Return a local path as an absolute one, and a URL unchanged. Workers may have other current folders.

    Raises:
        JobError: the path has a NUL character, or one that no file name has in this locale, or its home
            folder or the current folder does not exist; or it is a URL with credentials, which reports and
            logs would show.
    """
    if "\0" in path:
        raise JobError(f"{path!r} is not a path: it contains a NUL character.")
    scheme, rest = split_scheme(path)
    if scheme in EXTRAS and {":", "@"} & {*rest.partition("/")[0]}:
        raise JobError(
            f"A path has a : or an @ right after {scheme}, which no bucket has. If these are credentials, "
            "logs would show them: give them in the environment."
        )
    if scheme in EXTRAS and _SIGNED.search(rest):
        raise JobError(
            f"A path that begins with {scheme} has a ? and a token, as signed URLs do. Logs would show it: "
            "give the path without it, and credentials in the environment."
        )
    if scheme not in EXTRAS and scheme != LOCAL and without_credentials(path) != path:
        raise JobError(
            f"A path begins with {scheme}, which is not supported. It may have credentials, so it is not "
            f"shown: give a local path or {KNOWN}."
        )
    if scheme != LOCAL or not path:
        return path
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise JobError(f"{path} begins with the home folder of an unknown user: give another path.")
    try:
        os.fsencode(expanded)
    except UnicodeEncodeError:
        raise JobError(
            f"{path!a} has characters that no file name has in this locale: set LC_ALL=C.UTF-8, or give "
            "another path."
        ) from None
    try:
        return os.path.abspath(expanded)
    except FileNotFoundError:
        raise JobError(
            f"{path} is relative, but the current folder was removed: give an absolute path."
        ) from None
