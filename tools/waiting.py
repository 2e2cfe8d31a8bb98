"""How long a test waits for what must happen: long enough for a machine that is ten times slower.

A test waits for a condition and never for a time; a limit is only there so that one that will never hold is reported.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

PATIENCE: Final = 300.0
"""seconds until what must happen has happened, on any machine; less than the limit of a test in `pyproject.toml`"""


async def until(true: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not happen"
        await asyncio.sleep(0.005)


def wait_until(true: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait until something holds, without a loop of events."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)
