"""The folder for temporary files, where rows wait during a run."""

import os

from pipelines.errors import JobError


def check_temporary() -> None:
    """Check that rows wait where the user wants them: Python takes another folder without a word.

    Raises:
        JobError: TMPDIR is no folder that can be written to.
    """
    folder = os.environ.get("TMPDIR")
    if folder and not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise JobError(
            f"TMPDIR is {folder}, where rows wait during a run: it is no folder that can be written to. Give "
            "one, or unset TMPDIR."
        )
