"""The kernels in C, compiled on the spot and called as those of numba are; and the keys that an index asks about."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
from numpy.ctypeslib import ndpointer
from numpy.typing import NDArray

from fieldfare.events.event import fields_of
from fieldfare.matching import kernels
from fieldfare.matching.index import Index
from fieldfare.matching.kernels import match

Ints = NDArray[np.int64]
Pairs = tuple[NDArray[np.int32], Ints]
SOURCE = Path(__file__).with_name("match.c")
OPTIONS = ("-O3", "-march=native", "-shared", "-fPIC", "-Wno-psabi")


def compiler() -> str | None:
    """Where a C compiler is, if there is one."""
    return shutil.which("gcc") or shutil.which("cc")


def constants() -> dict[str, int]:
    """The constants that the kernels in Python see: the layout of an arena, keys and kinds of predicates."""
    named = {name.lstrip("_"): value for name, value in vars(match).items() if name.isupper()}
    return {name: value for name, value in named.items() if isinstance(value, int)}


def build(folder: Path) -> Native:
    """Compile the kernels into a folder and load them."""
    found = compiler()
    assert found is not None
    library = folder / "match.so"
    defined = [f"-D{name}=((int64_t){value % 2**64:#x}ULL)" for name, value in constants().items()]
    subprocess.run([found, *OPTIONS, *defined, str(SOURCE), "-o", str(library)], check=True)
    return Native(ctypes.CDLL(str(library)))


class Native:
    """The kernels of a compiled library; they take what those in Python take."""

    def __init__(self, library: ctypes.CDLL) -> None:
        words, rows, number = ndpointer(np.int64, flags="C"), ndpointer(np.int32, flags="C"), ctypes.c_int64
        self._one = _typed(library.match_one, words, words, words, words, number)
        self._many = _typed(library.match_many, words, number, words, words, words, number)
        self._batch = _typed(library.match_batch, words, number, words, rows, words, number)

    def match_one(self, arena: Ints, keys: Ints, scratch: Ints, out: Ints) -> int:
        """The owners of one event."""
        return int(self._one(arena, keys, scratch, out, len(out)))

    def match_many(self, arena: Ints, keys: Ints, scratch: Ints, out: Ints) -> int:
        """How many owners all events have, each matched by itself; keys are events × columns × 1."""
        return int(self._many(arena, len(keys), keys, scratch, out, len(out)))

    def match_batch(self, arena: Ints, keys: Ints, out_event: NDArray[np.int32], out_owner: Ints) -> int:
        """Pairs of events and owners."""
        return int(self._batch(arena, keys.shape[1], keys, out_event, out_owner, len(out_event)))


def _typed(function: Any, *arguments: Any) -> Any:
    function.argtypes, function.restype = arguments, ctypes.c_int64
    return function


class _Recorder:
    """Stands between an index and its kernels, and writes down the keys of the events that it matches one by one."""

    def __init__(self) -> None:
        self.asked: dict[int, tuple[Ints, list[Ints]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(kernels, name)

    def match_one(self, arena: Ints, keys: Ints, scratch: Ints, out: Ints) -> int:
        """As the kernel."""
        found = int(kernels.match_one(arena, keys, scratch, out))
        if found <= len(out):  # else it is called again with more room
            self.asked.setdefault(id(arena), (arena, []))[1].append(keys.copy())
        return found


def asked(index: Index[Any], events: Iterable[Mapping[str, object]]) -> list[tuple[Ints, Ints]]:
    """The arenas of an index, and for each the keys of the events (events × columns × 1) as kernels get them."""
    recorder, store = _Recorder(), index._store
    before, store.kernels = store.kernels, cast(ModuleType, recorder)
    try:
        for event in events:
            index._reader.owners(fields_of(event))  # as `match` does, without verifying what is found
    finally:
        store.kernels = before
    return [(arena, np.stack(keys)) for arena, keys in recorder.asked.values()]


def batch_of(keys: Ints) -> Ints:
    """The keys of single events as those of a batch (columns × events)."""
    return np.ascontiguousarray(keys[:, :, 0].T)


def owners(kernel: Callable[..., int], arena: Ints, keys: Ints, scratch: Ints) -> Ints:
    """What `match_one` finds for one event."""
    out = np.empty(kernel(arena, keys, scratch, np.empty(0, np.int64)), np.int64)
    assert kernel(arena, keys, scratch, out) == len(out)
    return out


def pairs(kernel: Callable[..., int], arena: Ints, keys: Ints) -> Pairs:
    """What `match_batch` finds for some events."""
    found = kernel(arena, keys, np.empty(0, np.int32), np.empty(0, np.int64))
    events, out = np.empty(found, np.int32), np.empty(found, np.int64)
    assert kernel(arena, keys, events, out) == found
    return events, out
