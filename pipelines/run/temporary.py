"""The folder for temporary files, where rows wait during a run."""

import os
import tempfile

from pipelines.errors import JobError


def check_temporary() -> None:
    """Check that rows wait where the user wants them: Python takes another folder without a word.

    Raises:
        JobError: TMPDIR is no folder that can be written to, or it is not given and there is no other.
    """
    folder = os.environ.get("TMPDIR")
    if folder and not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise JobError(
            f"TMPDIR is {folder}, where rows wait during a run: it is no folder that can be written to. Give "
            "one, or unset TMPDIR."
        )
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        raise JobError(
            "There is no folder that temporary files can be written to, where rows wait during a run: let "
            "TMPDIR be one."
        ) from None
