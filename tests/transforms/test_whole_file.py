"""Run `whole_file_checks.py` by itself: its tests fork, and a fork of a process with threads may crash."""

import re
import subprocess
import sys
from pathlib import Path

CHECKS = Path(__file__).with_name("whole_file_checks.py")


def test_whole_files_in_a_process_without_threads() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CHECKS)]
    root = CHECKS.parents[2]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=root, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) >= 27, done.stdout
