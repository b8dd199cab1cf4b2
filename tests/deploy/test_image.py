import fnmatch
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pipelines.job.job import load_job
from tests.deploy.manifests import DEPLOY, ROOT

IMAGE = DEPLOY / "image" / "Dockerfile"
TEMPLATE = DEPLOY / "dataflow" / "Dockerfile"
IMAGES = sorted(DEPLOY.rglob("*Dockerfile"))
SCRIPTS = sorted(DEPLOY.rglob("*.sh"))
BIN = Path(sys.executable).parent


def name_of(path: Path) -> str:
    return str(path.relative_to(DEPLOY))


def copied(image: Path) -> list[str]:
    """Return what a Dockerfile copies out of the checkout."""
    lines = re.findall(r"^COPY (?!.*--from)(.+)$", image.read_text(), re.M)
    return [source for line in lines for source in re.sub(r"--\S+ ", "", line).split()[:-1]]


def settings(image: Path) -> dict[str, str]:
    """Return the environment variables that the last stage sets."""
    last = image.read_text().rpartition("\nFROM ")[2].replace("\\\n", " ")
    return dict(
        pair for line in re.findall(r"^ENV (.+)$", last, re.M) for pair in re.findall(r"(\S+?)=(\S+)", line)
    )


@pytest.mark.parametrize("image", IMAGES, ids=name_of)
def test_the_linter_of_images_has_nothing_to_say(image: Path) -> None:
    checked = subprocess.run(
        [BIN / "hadolint", image], capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("image", IMAGES, ids=name_of)
def test_what_is_copied_is_there_and_not_ignored(image: Path) -> None:
    """The .dockerignore lists what may go into an image, so what it forgets would be missing from it."""
    rules = image.with_name("Dockerfile.dockerignore").read_text().splitlines()
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    assert "*" in rules
    assert copied(image)
    for source in copied(image):
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(source, rule) for rule in allowed), source
    assert sorted(allowed) == sorted(copied(image)), "nothing else is sent to the builder"


def test_the_image_is_what_its_users_count_on() -> None:
    text = IMAGE.read_text()
    assert re.search(r"^USER 10001:10001$", text.rpartition("\nFROM ")[2], re.M), "not root"
    assert settings(IMAGE)["PYTHONSAFEPATH"] == "1"
    assert settings(IMAGE)["OMP_NUM_THREADS"] == "1"
    assert settings(IMAGE)["RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT"] == "1"
    assert text.count("--require-hashes") == 2
    assert text.rstrip().endswith('ENTRYPOINT ["/opt/apache/beam/boot"]')


def test_the_worker_s_entry_point_is_of_the_locked_beam() -> None:
    """A worker of another version of Beam, or of Python, than the submission's would not start."""
    text = IMAGE.read_text()
    (python, beam) = re.search(r'^ARG SDK="apache/beam_python(\S+)_sdk:([^@]+)@', text, re.M).groups()  # type: ignore[union-attr]
    assert beam == version("apache-beam")
    assert re.search(rf"^ARG BASE=python:{re.escape(python)}\.\d+-slim@", text, re.M)
    assert f"python{python.replace('.', '')}-template-launcher-base" in TEMPLATE.read_text()


def test_what_builds_the_image_is_locked_too(tmp_path) -> None:
    """The Dockerfile cuts setuptools and its hashes out of the development lock, and nothing else."""
    (program,) = re.findall(r"awk '([^']+)' requirements-dev.txt", IMAGE.read_text())
    cut = subprocess.run(
        ["awk", program, ROOT / "requirements-dev.txt"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    assert re.fullmatch(r"setuptools==[\d.]+ \\", cut[0])
    assert len(cut) > 1
    assert all(line.startswith("    --hash=sha256:") for line in cut[1:])


def unpinned(text: str) -> list[str]:
    """Return the bases that are neither pinned nor refused, with a sentence, without a digest."""
    bases = dict(re.findall(r'^ARG (\w+)="?([^"\n]+)"?$', text, re.M))
    stages = re.findall(r" AS (\w+)$", text, re.M)
    named = re.findall(r"^FROM (\S+)|from=([^\s,]+)", text, re.M)
    used = {base for pair in named for base in pair} - {"", "${IMAGE}", *stages}
    # IMAGE is this project's own, which build.sh has just built.
    images = {bases.get(base[2:-1], base) for base in used}
    pinned = re.compile(r"[\w.:/-]+@(sha256:[0-9a-f]{64}|\$\{\w+_DIGEST:\?[\w ,./]+\})")
    return [image for image in images if not pinned.fullmatch(image)]


@pytest.mark.parametrize("image", IMAGES, ids=name_of)
def test_a_base_is_pinned_or_its_digest_asked_for(image: Path) -> None:
    """Without the argument, BuildKit fails with the sentence. An apostrophe in it would be a syntax error."""
    assert unpinned(image.read_text()) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r"@sha256:[0-9a-f]{64}", ""),
        (r"@sha256:[0-9a-f]{64}", "@sha256:abc"),
        (r":\?give [^}]*", ""),
        (r":\?give ", ":?give Beam's "),
        (r"@\$\{SDK_DIGEST.*\}", ""),
        (r"FROM \$\{SDK\}", "FROM apache/beam_python3.11_sdk:2.77.0"),
    ],
)
def test_a_base_that_can_be_moved_is_noticed(right: str, wrong: str) -> None:
    changed, count = re.subn(right, wrong, IMAGE.read_text())
    assert count
    assert unpinned(changed) != []


DIGEST = "sha256:" + "0123456789abcdef" * 4


def build(tmp_path: Path, **digests: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run build.sh where docker and gcloud only note what they are told; return its end and the calls."""
    noted = tmp_path / "calls"
    noted.touch()
    for name in ("docker", "gcloud"):
        stub = tmp_path / name
        stub.write_text(f'#!/bin/sh\necho {name} "$@" >> {noted}\n')
        stub.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    command = ["bash", str(DEPLOY / "dataflow/build.sh"), "my-project", "europe-west4", "my-tag"]
    environment = {**os.environ, "PATH": path, **digests}
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment, cwd=tmp_path
    )
    return ended, noted.read_text().splitlines()


@pytest.mark.parametrize("missing", ["SDK_DIGEST", "LAUNCHER_DIGEST"])
@pytest.mark.parametrize("given", [None, "", "2.77.0", "sha256:abc"])
def test_nothing_is_built_without_the_digest_of_a_base(tmp_path, missing: str, given: str | None) -> None:
    digests = {"SDK_DIGEST": DIGEST, "LAUNCHER_DIGEST": DIGEST, missing: given}
    ended, calls = build(tmp_path, **{name: value for name, value in digests.items() if value is not None})
    assert ended.returncode != 0
    assert calls == []
    (told,) = ended.stderr.splitlines()
    assert told == f"A digest is {given}: sha256: and 64 hexadecimal digits." if given else missing in told
    assert given or told.endswith("deploy/README.md says how to look it up")


def test_the_digests_go_to_the_images(tmp_path) -> None:
    ended, calls = build(tmp_path, SDK_DIGEST=DIGEST, LAUNCHER_DIGEST=DIGEST)
    assert ended.returncode == 0, ended.stderr
    worker, template = (call for call in calls if call.startswith("docker build"))
    assert f"--build-arg SDK_DIGEST={DIGEST}" in worker
    assert f"--build-arg LAUNCHER_DIGEST={DIGEST}" in template


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_a_shell_script_is_one(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in script.read_text()
    subprocess.run([shutil.which("bash") or "bash", "-n", script], check=True, timeout=60)
    checked = subprocess.run(
        [BIN / "shellcheck", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("job", sorted((DEPLOY / "jobs").glob("*.yaml")), ids=name_of)
def test_a_job_file_is_one(job: Path) -> None:
    checked = load_job(str(job))
    assert checked.privacy.ledger is not None, "what runs by itself has a ledger"
    places = [checked.input.path, checked.output, checked.privacy.ledger]
    buckets = [place.split("/")[2] for place in places]
    assert [bucket.rpartition("-shoal-")[2] for bucket in buckets] == ["data", "releases", "ledger"]
