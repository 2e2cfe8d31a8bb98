"""Effort that depends on no machine: the number of steps of Python a function takes.

Tests of "this must not become slow" count steps instead of reading a clock, which a busy machine makes lie.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """Run a function, and return the number of lines of Python that ran below; work inside of C counts nothing.

    A run takes some ten times as long as without counting. A debugger or coverage is out of work meanwhile.
    """
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
