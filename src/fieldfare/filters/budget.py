"""Budgets of work: a limit on the steps that a filter from an untrusted client may take.

A short filter can cause much work: normal form, comparison of string patterns, printing. The places where such work is
done call `spend`. Without a budget no step is counted; within a budget, work ends early with `FilterOverBudget`. The
unit is a step, never a second: a filter is refused on every machine or on none. A cached result is charged like a new
result, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Final, TypeVar

from fieldfare.filters.errors import FilterOverBudget


class _Budget:
    """The steps that are left of a budget, and the size that a filter may reach meanwhile."""

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
    """Limit the steps of the work inside the block, and the size of filters to about `size` characters."""
    token = _BUDGET.set(_Budget(steps, size))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def spend(steps: int) -> None:
    """Charge the current budget for steps of about a microsecond each; `FilterOverBudget` if too few are left."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.left -= steps
        if budget.left < 0:
            raise FilterOverBudget(f"the filter takes more than {budget.steps:,} steps of work")


def size(otherwise: int) -> int:
    """Return the size that a filter may reach, at most `otherwise`."""
    budget = _BUDGET.get()
    return otherwise if budget is None else min(otherwise, budget.size)


def remembered(most: int) -> Callable[[Callable[[_Argument], _Result]], Callable[[_Argument], _Result]]:
    """Cache up to `most` results of a function; a cached result is charged with the steps of its computation."""

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
                    outer.left = inner.left  # failures are charged, and not cached
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
