from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fieldfare.matching import backend


def test_kernels_that_were_compiled_in_part_are_not_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "match.match_batch-181.py311.nbi").touch()
    assert not backend.cached()  # whoever compiled them was ended: the next one would wait for the rest
    (tmp_path / "texts.put_texts-76.py311.nbi").touch()
    assert backend.cached()


def test_nobody_waits_for_the_thread_that_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over, locked = threading.Event(), threading.Event()

    def busy() -> None:
        with backend._lock:
            locked.set()
            over.wait()

    thread = threading.Thread(target=busy, daemon=True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FIELDFARE_KERNELS", raising=False)
    monkeypatch.setattr(backend, "_kernels", None)
    monkeypatch.setattr(backend, "_thread", thread)
    thread.start()
    locked.wait()
    for kernel in ("match.match_batch-181", "texts.put_texts-76"):  # another process has compiled them meanwhile
        (tmp_path / f"{kernel}.py311.nbi").touch()
    found: list[object] = []
    asking = threading.Thread(target=lambda: found.append(backend.choose()), daemon=True)
    asking.start()
    asking.join(5)
    answered = list(found)
    over.set()
    thread.join()
    asking.join()
    assert answered == [None]


def test_the_last_kernel_is_the_last_that_is_run() -> None:
    code = """
from numba.core.dispatcher import Dispatcher
from fieldfare.matching import kernels, warmup
loaded, load = [], Dispatcher.compile
def compile(self, sig):
    found = load(self, sig)
    loaded.append(self.py_func.__name__)
    return found
Dispatcher.compile = compile
warmup.run(kernels)
print(loaded[-1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "put_texts"
