"""Repetition of work that fails because a node is away for a moment, such as for a restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from fieldfare.client.errors import ConnectionLost

T = TypeVar("T")
PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0)
"""seconds before the second, third, ... attempt"""


def retry(work: Callable[[], T]) -> T:
    """Repeat work that may be done twice until a node answers; ConnectionLost if the node stays away."""
    for pause in PAUSES:
        try:
            return work()
        except ConnectionLost:
            time.sleep(pause)
    return work()
