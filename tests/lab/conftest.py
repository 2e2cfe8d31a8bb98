"""Processes of the laboratory without their start: an import costs half a second, and a benchmark has many processes."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Iterator
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from typing import Final

import pytest

MODULES: Final = (
    "fieldfare_lab.node.fieldfare_node",
    "fieldfare_lab.node.sessions",
    "fieldfare_lab.pipeline.bare_engine",
    "tests.lab.node.test_contest",
)
"""what the processes import"""


@pytest.fixture(scope="session")
def forks() -> Iterator[BaseContext]:
    """Make processes by a fork of one that has imported everything; processes match with NumPy, which starts sooner."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(MODULES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIELDFARE_KERNELS", "numpy")
        forkserver.ensure_running()
    yield context
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # else the process would not be waited for


@pytest.fixture(scope="session", autouse=True)
def frozen() -> Iterator[None]:
    """Keep the collected tests frozen, which benchmarks would unfreeze; each of their collections walks through them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "unfreeze", lambda: None)
        yield


@pytest.fixture
def swift(forks: BaseContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nodes and clients of a benchmark start soon; `test_bench_node.py` starts some as users do."""
    monkeypatch.setenv("FIELDFARE_KERNELS", "numpy")
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: forks)
