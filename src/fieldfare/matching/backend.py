"""The choice of implementation: compiled kernels, or NumPy until the kernels are compiled and where they cannot be.

numba compiles for some ten seconds on a fresh machine. No caller should wait: the first index starts the compilation in
a thread and uses `fallback` meanwhile. Compiled code in the cache (`fieldfare warmup` fills the cache) is loaded at
once, in about half a second. The kernels take 150 MB: a node, which may have few filters for ever, loads them late.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

CHOICES: Final = ("auto", "lazy", "numba", "numpy")
_lock: Final = threading.Lock()
_kernels: ModuleType | None = None
_thread: threading.Thread | None = None


def choose(wanted: str = "auto") -> ModuleType | None:
    """Return the kernels, or None while and where NumPy must serve.

    "numba" waits for the kernels, "numpy" does without, "auto" waits only if the kernels are in the cache, and "lazy"
    never waits. The environment variable FIELDFARE_KERNELS sets the meaning of "auto" and "lazy".
    """
    choice = meaning(wanted)
    if choice == "numpy":
        return None
    if _kernels is not None:
        return _kernels
    if not _installed():
        if choice == "numba":
            raise ModuleNotFoundError("numba is not installed: pip install 'fieldfare[fast]', or use kernels='numpy'")
        return None
    # Where kernels are being compiled, "auto" would wait for the thread.
    if choice == "numba" or (choice == "auto" and not compiling() and cached()):
        return load()
    _start()
    return _kernels


def meaning(wanted: str) -> str:
    """Return a choice with the environment variable applied; ValueError if it is none."""
    choice = os.environ.get("FIELDFARE_KERNELS", wanted) if wanted in ("auto", "lazy") else wanted
    if choice not in CHOICES:
        raise ValueError(f"kernels must be one of {', '.join(CHOICES)}, not {choice!r}")
    return choice


def load() -> ModuleType:
    """Return the kernels, after compilation if necessary."""
    global _kernels  # noqa: PLW0603 - one per process, like the compiled code itself
    with _lock:
        if _kernels is None:
            from fieldfare.matching import kernels, warmup  # noqa: PLC0415 - imports numba

            warmup.run(kernels)
            _kernels = kernels
        return _kernels


def _start() -> None:
    global _thread  # noqa: PLW0603
    if _thread is None:
        _thread = threading.Thread(target=load, name="fieldfare-compile", daemon=True)
        _thread.start()


@cache
def _installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def cached() -> bool:
    """Tell whether the cache has compiled code of the kernels; stale code is compiled anew on loading."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    place = Path(chosen) if chosen else Path(__file__).parent / "kernels" / "__pycache__"
    # The last kernel of all: if a process ended during compilation, the other kernels would still have to be compiled.
    return any(True for _ in place.rglob("texts.put_texts-*.nbi"))


def compiling() -> bool:
    """Tell whether this process compiles the kernels now, which makes the process slow."""
    return _thread is not None and _thread.is_alive()
