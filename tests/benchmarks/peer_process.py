"""Peers that want other packages than Shoal: each has an environment of its own, and a process for its runs.

An environment is made in `.engines/NAME`, once. Rows and results travel as files.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_ENGINES = Path(__file__).parents[2] / ".engines"


class NotThere(Exception):
    """A peer cannot be installed here, or it fails."""


@dataclass(frozen=True)
class Peer:
    """A library that is compared with Shoal.

    Args:
        name: of its folder; in capital letters, of the variable of the environment that names a Python which
            has the library already.
        packages: what to install.
        script: what to run. It gets a folder with `rows.parquet` and `asked.json`, and writes `runs.json`.
    """

    name: str
    packages: tuple[str, ...]
    script: str

    @property
    def python(self) -> str:
        """A Python that has the library; its environment is made if there is none."""
        given = os.environ.get(self.name.upper())
        if given is not None:
            return given
        home = _ENGINES / self.name
        python, stamp = home / "bin" / "python", home / "installed"
        if not stamp.exists():
            venv.create(home, clear=True, with_pip=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            if subprocess.run([*pip, *self.packages], check=False).returncode:
                raise NotThere(f"{self.name} cannot be installed.")
            stamp.touch()
        return str(python)

    def run(self, rows: Mapping[str, Sequence[Any]], asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what the script writes for each run.

        Raises:
            NotThere: the peer cannot be installed, or it fails.
        """
        with tempfile.TemporaryDirectory() as folder:
            pq.write_table(pa.table(dict(rows)), f"{folder}/rows.parquet")
            Path(folder, "asked.json").write_text(json.dumps(asked))
            command = [self.python, "-c", self.script, folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(done.stderr[-2000:], file=sys.stderr)
                raise NotThere(f"{self.name} failed.")
            found: list[dict[str, Any]] = json.loads(Path(folder, "runs.json").read_text())
            return found
