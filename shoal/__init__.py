"""Differentially private answers about personal data, from Python: `run` a job, or see its `plan`.

Names are imported when they are first used, because every worker and every process of a function imports this
package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.errors import ShoalError
    from shoal.calls import plan, run
    from shoal.choose import simulate, solve, sweep
    from shoal.estimators import KMeans, KMedians, quantiles
    from shoal.ledger import Ledger
    from shoal.shown import Plan, Release

    __version__: str

__all__ = [
    "KMeans",
    "KMedians",
    "Ledger",
    "Plan",
    "Release",
    "ShoalError",
    "__version__",
    "plan",
    "quantiles",
    "run",
    "simulate",
    "solve",
    "sweep",
]

_PLACES = {
    **dict.fromkeys(("KMeans", "KMedians", "quantiles"), "estimators"),
    **dict.fromkeys(("Plan", "Release", "ShoalError"), "shown"),
    **dict.fromkeys(("plan", "run"), "calls"),
    **dict.fromkeys(("simulate", "solve", "sweep"), "choose"),
    "Ledger": "ledger",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    if name == "__version__":
        from importlib.metadata import version  # takes longer than all else here

        return version(__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
