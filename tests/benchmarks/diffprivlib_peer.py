"""Run diffprivlib's k-means live, in an environment of its own, and say what it really spends.

It wants an older scikit-learn than Shoal's, so it is installed into `.engines/diffprivlib`, once, and points
and centers travel as files.

diffprivlib.models.KMeans 0.6.6 draws, in each of T iterations and for each cluster, a geometric noise for its
count and a Laplace noise, bounded to a domain, for its sum on each of d axes. With c = (4 d 0.225^2)^(1/3),
Su et al. (2016) give e / (T (d + c)) to each axis and c times that to the count. `_update_centers` unpacks
the two in the wrong order: the count gets the part of one axis, and each of the d axes c times that. For
d > 4, where c > 1, this costs more than e. A sum also moves by max(|lower|, |upper|) when a record is added
or removed, where upper - lower is paid for: twice what is needed on a domain about 0, and too little far from
it. And a cluster without records is skipped without any noise, which no epsilon covers: `real_epsilon` leaves
that out.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid

VERSION = "0.6.6"
HOME = Path(__file__).parents[2] / ".engines" / "diffprivlib"
_PACKAGES = (f"diffprivlib=={VERSION}", "scikit-learn==1.8.*")
_SCRIPT = """
import sys
import numpy as np
from diffprivlib.models import KMeans

folder, k, epsilon, runs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
points, bounds = np.load(folder + "/points.npy"), np.load(folder + "/bounds.npy")
fits = [KMeans(k, epsilon=epsilon, bounds=(bounds[0], bounds[1])).fit(points) for _ in range(runs)]
np.save(folder + "/centers.npy", np.stack([fit.cluster_centers_ for fit in fits]))
np.save(folder + "/iterations.npy", fits[0].n_iter_)
"""

Floats = NDArray[np.float64]


class NotThere(RuntimeError):
    """It cannot be had here: a line that says why."""


def install() -> Path:
    """Return its interpreter; make the environment where there is none.

    Raises:
        NotThere: the environment cannot be made.
    """
    python = HOME / "bin" / "python"
    stamp = HOME / f"installed-{VERSION}"
    if not stamp.exists():
        commands = (
            [sys.executable, "-m", "venv", "--clear", str(HOME)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_PACKAGES],
        )
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                said = (done.stderr.strip() or "no reason given").splitlines()[-1]
                raise NotThere(f"diffprivlib {VERSION} cannot be installed: {said}")
        stamp.touch()
    return python


def fit(points: Floats, grid: Grid, k: int, epsilon: float, runs: int) -> tuple[Floats, int]:
    """Return its centers, shape (runs, k, d), data units, and the number of its iterations.

    Args:
        points: shape (n, d), data units.
        grid: its bounds are given as public; a ball it does not know.
        k: how many centers.
        epsilon: what it is told to spend.
        runs: how many.

    Raises:
        NotThere: it cannot be installed, or fails.
    """
    python = install()
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/points.npy", points)
        np.save(f"{folder}/bounds.npy", np.array([grid.lower, grid.upper]))
        command = [str(python), "-c", _SCRIPT, folder, str(k), str(epsilon), str(runs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotThere(f"diffprivlib failed: {done.stderr.strip().splitlines()[-1]}")
        return np.load(f"{folder}/centers.npy"), int(np.load(f"{folder}/iterations.npy"))


def real_epsilon(grid: Grid, epsilon: float, iterations: int) -> float:
    """Return what its noise costs under add_or_remove_one, by the composition that it uses itself.

    A Laplace noise of scale b, bounded to a domain far wider than b, lets a sum that moves by f b from the
    domain's edge be told at ln(2 e^f - 1): b is chosen so that its own sensitivity s = upper - lower costs
    the epsilon it is given, hence s / b = ln((e^epsilon + 1) / 2).
    """
    d = grid.dimension
    c = float(np.cbrt(4 * d * 0.225**2))
    count = epsilon / iterations / (d + c)
    lower, upper = np.array(grid.lower), np.array(grid.upper)
    part = np.maximum(np.abs(lower), np.abs(upper)) / (upper - lower)
    moved = part * np.log((np.exp(c * count) + 1) / 2)
    return float(iterations * (count + np.log(2 * np.exp(moved) - 1).sum()))
