"""Build the distribution in a copy of the tree, and install it beside a project that has the same folders."""

import os
import subprocess
import sys
import sysconfig
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.deploy.manifests import ROOT
from tests.mutants.runner import copy_tree

INNER = ("core", "transforms", "pipelines")

_BUILD = "import one_package, sys; print(getattr(one_package, sys.argv[1])(sys.argv[2]))"


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a project whose own folders have the names of Shoal's.

    Args:
        folder: of both.
        wheel: what is installed.
        other: the wheel that was built from the tree itself, and not from its sdist.
    """

    folder: Path
    wheel: Path
    other: Path

    @property
    def bin(self) -> Path:
        """Folder of the commands."""
        return self.folder / "environment" / "bin"

    @property
    def project(self) -> Path:
        """Folder of the project."""
        return self.folder / "project"

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in the project, whose folders come first on the path."""
        path = os.pathsep.join([str(self.bin), os.environ["PATH"]])
        own = {"PATH": path, "PYTHONPATH": str(self.project), "OMP_NUM_THREADS": "1", **environment}
        env = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"} | own
        place = str(self.bin / command[0])
        return _run(place, *command[1:], cwd=self.project, env=env)


def _run(*command: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **more)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def build(hook: str, tree: Path, to: Path) -> Path:
    """Call a hook of the backend of a tree, as pip would; return the file that it makes."""
    to.mkdir(exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(tree / "deploy" / "package"), "PYTHONSAFEPATH": "1"}
    told = _run(sys.executable, "-c", _BUILD, hook, to, cwd=tree, env=env).stdout
    return to / told.splitlines()[-1]


def make_environment(folder: Path, wheel: Path) -> None:
    """Make an environment with a wheel, and with the dependencies of this one."""
    environment = folder / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", environment)
    uv = (sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--offline")
    _run(*uv, "--python", environment / "bin" / "python", wheel)
    packages = environment / "lib" / Path(sysconfig.get_path("purelib")).parent.name / "site-packages"
    # Its own .pth files, such as that of an editable install of Shoal, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")


def install(folder: Path) -> Installed:
    """Build the sdist, and from it the wheel, and install that."""
    copy_tree(ROOT, folder / "tree")
    other = build("build_wheel", folder / "tree", folder / "from-tree")
    sdist = build("build_sdist", folder / "tree", folder / "sdist")
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    wheel = build("build_wheel", unpacked, folder / "from-sdist")
    make_environment(folder, wheel)
    for name in INNER:
        place = folder / "project" / name
        place.mkdir(parents=True)
        (place / "__init__.py").write_text(f'raise RuntimeError("this is the project\'s own {name}")\n')
    return Installed(folder, wheel, other)
