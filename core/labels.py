"""Labels of public keys: many texts in the memory of their bytes."""

import hashlib
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

_END = 0x0A
"""Ends a label. JSON escapes it, so none holds it."""

_AT_ONCE = 1 << 14
"""Labels that are objects of Python at one time."""


class Labels(Sequence[str]):
    """An immutable sequence of labels, each the canonical JSON of the values of a key.

    A million of them take 17 MB as one text, and 75 MB as objects of Python. The steps of a pipeline hold
    them, so equal labels are one object in a process, however often they are unpickled.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._set("\n".join(labels).encode("utf-8", "surrogatepass"))

    def _set(self, text: bytes) -> None:
        self._text = text
        self._hash = hashlib.sha256(text).digest()
        self._length = text.count(b"\n") + 1 if text else 0
        _KNOWN.setdefault(self._hash, self)

    @cached_property
    def array(self) -> NDArray[np.bytes_]:
        """The labels as UTF-8, shape (len(self),); each takes as many bytes as the longest."""
        if not self._length:
            return np.empty(0, "S1")
        data = np.frombuffer(self._text, np.uint8)
        ends = np.append(np.flatnonzero(data == _END), len(data))
        lengths = np.diff(ends, prepend=-1) - 1
        width = max(1, int(lengths.max()))
        found = np.zeros((self._length, width), dtype=np.uint8)
        found[np.arange(width) < lengths[:, None]] = data[data != _END]
        return found.view(f"S{width}")[:, 0]

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Pickle the labels as their hash for a while, for steps that only this process runs."""
        held, mine = _HELD.setdefault(self._hash, {}), object()
        held[mine] = self
        try:
            yield
        finally:
            del held[mine]

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [_decoded(label) for label in self.array[place].tolist()]
        return _decoded(self.array[place])

    def __iter__(self) -> Iterator[str]:
        for first in range(0, self._length, _AT_ONCE):
            yield from self[first : first + _AT_ONCE]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self._hash == other._hash

    def __hash__(self) -> int:
        return hash(self._hash)

    def __repr__(self) -> str:
        return f"Labels of {self._length:,} keys, {self._hash.hex()}"

    def __reduce__(self) -> tuple[Any, ...]:
        staying = any(each is self for each in [*_HELD.get(self._hash, {}).values()])
        return (_known, (self._hash,)) if staying else (_unpickled, (self._hash, self._text))


_KNOWN: weakref.WeakValueDictionary[bytes, Labels] = weakref.WeakValueDictionary()
"""One object of each equal labels, as long as somebody has it."""

_HELD: dict[bytes, dict[object, Labels]] = {}
"""Equal labels of the steps that run now. The object in `_KNOWN` may be that of a run that ended."""


def _decoded(label: bytes) -> str:
    return label.decode("utf-8", "surrogatepass")


def _known(key: bytes) -> Labels:
    found = next(iter([*_HELD.get(key, {}).values()]), None) or _KNOWN.get(key)
    if found is None:
        raise LookupError("The labels of public keys are in another process.")
    return found


def _unpickled(key: bytes, text: bytes) -> Labels:
    found = _KNOWN.get(key)
    if found is None:
        found = Labels.__new__(Labels)
        found._set(text)
    return found
