"""A budget of steps for work on filters, so that what strangers wrote cannot cost more than was meant for it.

A small text can ask for much work: to bring it to normal form, to compare string patterns, to write it down again. The
places where such work is done call `spend`. Without a budget nothing is counted; within one, work ends early with
`FilterOverBudget`. Steps are counted, never seconds: a filter is refused on every machine or on none. What a cache
holds is paid for as if it were made anew, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Final, TypeVar

from fieldfare.filters.errors import FilterOverBudget


class _Budget:
    """How many steps are left, of how many; and how large a filter may become meanwhile."""

    __slots__ = ("left", "size", "steps")

    def __init__(self, steps: int, size: int, left: int | None = None) -> None:
        self.steps = steps
        self.left = steps if left is None else left
        self.size = size


_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_NO_END: Final = 1 << 62
_BUDGET: Final[ContextVar[_Budget | None]] = ContextVar("budget", default=None)


@contextmanager
def within(steps: int, size: int) -> Iterator[None]:
    """Work that may take so many steps, on filters of at most about so many characters."""
    token = _BUDGET.set(_Budget(steps, size))
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


def size(otherwise: int) -> int:
    """How large a filter may become."""
    budget = _BUDGET.get()
    return otherwise if budget is None else min(otherwise, budget.size)


def remembered(most: int) -> Callable[[Callable[[_Argument], _Result]], Callable[[_Argument], _Result]]:
    """A function with a cache of so many results; each costs what it cost to find, however often it is asked for."""

    def decorate(function: Callable[[_Argument], _Result]) -> Callable[[_Argument], _Result]:
        @lru_cache(maxsize=most)
        def measured(argument: _Argument) -> tuple[_Result, int]:
            outer = _BUDGET.get()
            inner = _Budget(_NO_END, _NO_END) if outer is None else _Budget(outer.steps, outer.size, outer.left)
            before = inner.left
            token = _BUDGET.set(inner)
            try:
                return function(argument), before - inner.left
            except Exception:
                if outer is not None:
                    outer.left = inner.left  # it was paid for, and is not remembered
                raise
            finally:
                _BUDGET.reset(token)

        @wraps(function)
        def call(argument: _Argument) -> _Result:
            result, cost = measured(argument)
            spend(cost)
            return result

        return call

    return decorate
