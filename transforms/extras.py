"""Packages that few need: an extra of the distribution has them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from core.errors import ShoalError


class MissingExtra(ShoalError, ImportError):
    """A package of an extra is not installed. No row was read."""

    exit_code: ClassVar[int] = 2


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Translate a failing import of packages of an extra.

    Args:
        extra: its name.
        what: who needs it, as the beginning of a sentence.

    Raises:
        MissingExtra: a package is missing.
    """
    try:
        yield
    except ImportError:
        raise MissingExtra(
            f"{what} needs packages that are not installed here: install shoal[{extra}]."
        ) from None
