"""Fetch the engines of the tests into `.engines/`, once: Flink, Beam's job server, Prism, Airflow, and
servers of object storage (fake-gcs-server, versitygw, Azurite).

Run by `make engines`. A part that is there is left alone; one that was interrupted is begun anew. Nothing is
installed: not into the environment (PyFlink would want an older Beam), nor into the system. Only the ordinary
clients (pip, Maven, Go, npm) are used, as they are set up on the machine.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINES = ROOT / ".engines"

FLINK = "1.19.3"
FLINK_RUNNER = "2.70.0"
JOB_SERVICE = "2.65.0"
BEAM = version("apache-beam")
FAKE_GCS = "1.56.1"
VERSITY = "1.8.0"
AZURITE = "3.35.0"
AZURITE_SUM = (
    "sha512-GzKmi+/5U0baNRjEEVtBMLpLuIKEJ0uSh0VWBzOI4qe4f5ziJyoZQmcTO7QhxZTF6+rphj7TZS3PtJY7uiiacA=="
)
AZURITE_BEFORE = "2026-06-01"
"""What Azurite needs in turn is of the versions that were the newest then."""
AIRFLOW = ("apache-airflow==3.3.2", "apache-airflow-providers-cncf-kubernetes==10.25.0")

JAVA = "Java 17 (Debian: openjdk-17-jre-headless)"
MAVEN = "Maven (Debian: maven)"
GO = "Go 1.26 or later"
NODE = "Node.js 20 or later, with npm (Debian: npm)"

POM = f"""\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>shoal.tests</groupId>
  <artifactId>job-server</artifactId>
  <version>1</version>
  <dependencyManagement><dependencies><dependency>
    <groupId>org.apache.beam</groupId>
    <artifactId>beam-runners-java-job-service</artifactId>
    <version>{JOB_SERVICE}</version>
  </dependency></dependencies></dependencyManagement>
  <dependencies><dependency>
    <groupId>org.apache.beam</groupId>
    <artifactId>beam-runners-flink-{FLINK.rpartition(".")[0]}</artifactId>
    <version>{FLINK_RUNNER}</version>
  </dependency></dependencies>
</project>
"""


class MissingPart(RuntimeError):
    """A part cannot be had: one line that says what to install or to run."""


@dataclass(frozen=True)
class Part:
    """Something to fetch.

    Args:
        name: of the part and of what it leaves in `.engines/`.
        version: written into the stamp, so that another version is fetched anew.
        needs: commands that must be on the path, each with what to install for it.
        place: where it lies below `.engines/`.
        make: fetches the part into an empty folder and returns what is to be moved to the place.
    """

    name: str
    version: str
    needs: tuple[tuple[str, str], ...]
    place: str
    make: Callable[[Path], Path]

    @property
    def path(self) -> Path:
        """Where the part lies once it is fetched."""
        return ENGINES / self.place

    @property
    def stamp(self) -> Path:
        """The file that says which version lies there."""
        return ENGINES / "stamps" / self.name

    def is_here(self) -> bool:
        """Say whether the part was fetched, whole and in this version."""
        return self.stamp.is_file() and self.stamp.read_text() == self.version and self.path.exists()

    def fetch(self) -> None:
        """Fetch the part; what is not whole never lies in its place with a stamp.

        Raises:
            MissingPart: a command is missing, or fails.
        """
        for command, install in self.needs:
            if shutil.which(command) is None:
                raise MissingPart(f"{command} is not on the path: install {install}, then run make engines.")
        self.stamp.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=ENGINES) as folder:
            made = self.make(Path(folder))
            if self.path.is_dir():
                shutil.rmtree(self.path)
            self.path.parent.mkdir(exist_ok=True)
            made.replace(self.path)
        self.stamp.parent.mkdir(exist_ok=True)
        self.stamp.write_text(self.version)


def _run(command: Sequence[str], **environment: str) -> None:
    ended = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=os.environ | environment,
    )  # fmt: skip
    if ended.returncode:
        said = "\n".join(ended.stdout.strip().splitlines()[-5:])
        raise MissingPart(f"{' '.join(command[:4])} ... failed with exit code {ended.returncode}:\n{said}")


def _make_flink(folder: Path) -> Path:
    """Put together what the project's two Python packages hold: jars in one, scripts in the other."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    _run([*pip, "--only-binary", ":all:", "--python-version", "3.11", f"apache-flink=={FLINK}"])
    _run([*pip, "--no-binary", ":all:", "--no-build-isolation", f"apache-flink-libraries=={FLINK}"])
    home = folder / "flink"
    home.mkdir()
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "jars", filter="data")
    jars = next((folder / "jars").glob("*/deps"))
    for name in ("lib", "opt", "plugins"):
        (jars / name).replace(home / name)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        archive.extractall(folder / "scripts")
    for name in ("bin", "conf"):
        (folder / "scripts" / "pyflink" / name).replace(home / name)
    for script in (home / "bin").iterdir():
        script.chmod(0o755)
    for jar in (jars / "bin").iterdir():
        jar.replace(home / "bin" / jar.name)
    return home


def _make_job_server(folder: Path) -> Path:
    (folder / "pom.xml").write_text(POM)
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    jars = folder / "jars"
    _run(
        ["mvn", "--quiet", "--batch-mode", "--file", str(folder / "pom.xml"), copy,
         "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    )  # fmt: skip
    home = folder / "job-server"
    home.mkdir()
    every = sorted(jars.glob("*.jar"))
    _merge(every, home / "job-server.jar")
    # What Flink has itself is left out of what goes into its own lib folder.
    _merge([jar for jar in every if not jar.name.startswith(("flink-", "slf4j-"))], home / "worker.jar")
    return home


def _merge(jars: Sequence[Path], merged: Path) -> None:
    """Make one jar of many, as Beam does of its own: Flink takes 0.1 s for every jar of a job."""
    main = "org.apache.beam.runners.flink.FlinkJobServerDriver"
    services: dict[str, list[bytes]] = {}
    taken = {"META-INF/MANIFEST.MF"}
    with zipfile.ZipFile(merged, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        out.writestr("META-INF/MANIFEST.MF", f"Main-Class: {main}\nMulti-Release: true\n")
        for jar in jars:
            with zipfile.ZipFile(jar) as archive:
                for name in archive.namelist():
                    if name.startswith("META-INF/services/") and not name.endswith("/"):
                        services.setdefault(name, []).append(archive.read(name))
                    elif name not in taken and not name.endswith(("/", ".SF", ".RSA", ".DSA")):
                        taken.add(name)
                        out.writestr(name, archive.read(name))
        for name, texts in services.items():
            out.writestr(name, b"\n".join(texts))


def _make_prism(folder: Path) -> Path:
    return _go_install("github.com/apache/beam/sdks/v2/go/cmd/prism", BEAM, folder)


def _make_fake_gcs(folder: Path) -> Path:
    return _go_install("github.com/fsouza/fake-gcs-server", FAKE_GCS, folder)


def _make_versity(folder: Path) -> Path:
    return _go_install("github.com/versity/versitygw/cmd/versitygw", VERSITY, folder)


def _make_azurite(folder: Path) -> Path:
    home = folder / "azurite"
    _run(
        ["npm", "install", f"--prefix={home}", f"--before={AZURITE_BEFORE}", "--ignore-scripts",
         "--no-audit", "--no-fund", "--loglevel=error", f"azurite@{AZURITE}"]
    )  # fmt: skip
    lock = json.loads((home / "package-lock.json").read_text())
    if lock["packages"]["node_modules/azurite"]["integrity"] != AZURITE_SUM:
        raise MissingPart(
            f"azurite {AZURITE} has another checksum than the one pinned in tests/engines/fetch.py."
        )
    return home


def _go_install(package: str, number: str, folder: Path) -> Path:
    _run(["go", "install", f"{package}@v{number}"], GOBIN=str(folder))
    return folder / package.rpartition("/")[2]


def _make_airflow(folder: Path) -> Path:
    """Make an environment of its own: Airflow's pins are not the project's."""
    home = folder / "airflow"
    _run([sys.executable, "-m", "uv", "venv", "--quiet", "--relocatable", str(home)])
    python = str(home / "bin" / "python")
    _run([sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *AIRFLOW])
    return home


PARTS = {
    part.name: part
    for part in (
        Part("fake-gcs-server", FAKE_GCS, (("go", GO),), "bin/fake-gcs-server", _make_fake_gcs),
        Part("versitygw", VERSITY, (("go", GO),), "bin/versitygw", _make_versity),
        Part(
            "azurite", f"{AZURITE} {AZURITE_BEFORE}", (("node", NODE), ("npm", NODE)),
            "azurite", _make_azurite,
        ),
        Part("flink", FLINK, (("java", JAVA),), "flink", _make_flink),
        Part(
            "job-server", f"{FLINK} {FLINK_RUNNER} {JOB_SERVICE}", (("java", JAVA), ("mvn", MAVEN)),
            "job-server", _make_job_server,
        ),
        Part("prism", BEAM, (("go", GO),), "bin/prism", _make_prism),
        Part("airflow", " ".join(AIRFLOW), (), "airflow", _make_airflow),
    )
}  # fmt: skip


def have(name: str, needs: Sequence[str] = ()) -> Path:
    """Return where the part `name` lies.

    Raises:
        MissingPart: it was not fetched, or a command of `needs` is not on the path.
    """
    part = PARTS[name]
    installs = dict(part.needs)
    for command in needs:
        if shutil.which(command) is None:
            raise MissingPart(f"{command} is not on the path: install {installs[command]}.")
    if not part.is_here():
        wanted = " and ".join(install for _, install in part.needs) or "the network"
        raise MissingPart(f"{name} is not here: run make engines (it needs {wanted}).")
    return part.path


def main() -> int:
    """Fetch what is not here; one line per part. Returns the number of parts that cannot be had."""
    ENGINES.mkdir(exist_ok=True)
    missing = 0
    with (ENGINES / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second `make engines` waits, and then finds everything
        for leftover in ENGINES.glob(".part-*"):
            shutil.rmtree(leftover)
        for part in PARTS.values():
            start = time.monotonic()
            try:
                if not part.is_here():
                    part.fetch()
                    how = f"fetched in {time.monotonic() - start:.0f} s"
                else:
                    how = "is here"
            except MissingPart as error:
                missing += 1
                how = f"is missing: {error}"
            print(f"{part.name}: {how}", flush=True)
    return missing


if __name__ == "__main__":
    sys.exit(main())
