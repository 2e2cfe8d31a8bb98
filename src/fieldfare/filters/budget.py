"""A budget of steps for work on filters, so that what strangers wrote cannot cost more than was meant for it.

A small text can ask for much work: to bring it to normal form, to compare string patterns, to write it down again. The
places where such work is done call `spend`. Without a budget nothing is counted; within one, work ends early with
`FilterOverBudget`. Steps are counted, never seconds: a filter is refused on every machine or on none. What a cache
holds is paid for as if it were made anew, for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from fieldfare.filters.errors import FilterOverBudget


class _Budget:
    """How many steps are left, of how many."""

    __slots__ = ("left", "steps")

    def __init__(self, steps: int) -> None:
        self.steps = self.left = steps


_BUDGET: Final[ContextVar[_Budget | None]] = ContextVar("budget", default=None)


@contextmanager
def within(steps: int) -> Iterator[None]:
    """Work that may take so many steps."""
    token = _BUDGET.set(_Budget(steps))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def spend(steps: int) -> None:
    """Pay for steps that come, about a microsecond each; `FilterOverBudget` if there are not so many left."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.left -= steps
        if budget.left < 0:
            raise FilterOverBudget(f"the filter takes more than {budget.steps:,} steps to be understood")


def left() -> int:
    """What is left of the budget; 0 if there is none."""
    budget = _BUDGET.get()
    return 0 if budget is None else budget.left
