"""Taking filters from outside: every place that takes one over the network reads it here, within a budget.

Whoever asks must be permitted to ask at all before anything is read (`permitted`). Then a filter is read in a thread of
its own pool, so that neither the event loop nor other threads' work waits for it. A thread cannot be stopped: so it is
the bounds on size that keep the work small, and the bound on time only says when nobody waits for it any longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal, TypeVar

import msgspec

from fieldfare.filters import EVERYTHING, admission, budget
from fieldfare.filters.filter import Filter
from fieldfare.node.config import Limits
from fieldfare.node.security.permissions import may_advertise, may_subscribe
from fieldfare.node.security.principals import Principal
from fieldfare.node.state import RequestRefused

T = TypeVar("T")

THREADS: Final = 2
"""filters that are read at the same time; others wait for their turn"""
_POOL: Final = ThreadPoolExecutor(THREADS, "filters")


class TooMuch(RequestRefused):
    """A filter that is too large, or takes too long."""


def permitted(principal: Principal, verb: Literal["subscribe", "advertise"]) -> None:
    """AccessDenied if somebody may not subscribe, or advertise, at all: then their filter is not even read."""
    if getattr(principal.permissions, verb) is False:
        (may_subscribe if verb == "subscribe" else may_advertise)(principal, EVERYTHING)


async def admitted(written: object, limits: Limits) -> Filter:
    """A filter that came from outside: TooMuch, FilterSyntaxError or FilterDocumentError if it is not taken."""
    return await within(lambda: taken(written, limits), limits)


def taken(written: object, limits: Limits) -> Filter:
    """The same at once, for those who are in a thread already; also a filter that was made of others."""
    if not isinstance(written, Filter):
        check_size(len(written if isinstance(written, str) else msgspec.json.encode(written)), limits)
    return admission.admit(written, admission.Limits(text=limits.filter_chars))


def check_size(size: int, limits: Limits) -> None:
    """TooMuch if the text of a filter, or of several together, has too many characters."""
    if size > limits.filter_chars:
        raise TooMuch(f"the filter has {size} characters, more than the limit of {limits.filter_chars}")


async def within(read: Callable[[], T], limits: Limits) -> T:
    """What comes of reading a filter, in a thread and within the budget of time; else TooMuch."""
    loop = asyncio.get_running_loop()
    began = asyncio.Event()

    def begin() -> T:
        loop.call_soon_threadsafe(began.set)
        return read()

    reading = loop.run_in_executor(_POOL, begin)
    reading.add_done_callback(lambda one: one.cancelled() or one.exception())  # perhaps nobody waits any more
    await began.wait()  # whoever waits for a turn has not used any time yet
    done, _ = await asyncio.wait([reading], timeout=limits.filter_seconds)
    if not done:
        raise TooMuch(f"to read the filter takes more than {limits.filter_seconds:g} s (limits.filter_seconds)")
    return await reading


def bounded(read: Callable[[], T]) -> T:
    """What comes of reading several filters together, within the steps that one may take; else FilterOverBudget."""
    with budget.within(admission.LIMITS.steps, 2 * admission.LIMITS.normal):
        return read()
