"""Admission of filters from the network: every filter of a client is parsed here, within bounds.

The caller needs the permission to subscribe or advertise before the node parses a filter (`permitted`). A filter is
parsed in a thread of a pool of its own, so neither the event loop nor other threads wait. A thread cannot be stopped:
the bounds on size keep the work small, and the bound on time only ends the wait for the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final, Literal, TypeVar

import msgspec

from fieldfare.core.dynamic_filters import Fill, decode_values, encode_values
from fieldfare.core.state import RequestRefused
from fieldfare.filters import EVERYTHING, admission, budget
from fieldfare.filters.dynamic import DynamicFilter, Values
from fieldfare.filters.filter import Filter
from fieldfare.node.config import Limits
from fieldfare.node.security.permissions import may_advertise, may_subscribe, subscribable
from fieldfare.node.security.principals import Principal

T = TypeVar("T")

THREADS: Final = 2
"""filters that are parsed at the same time; others wait for their turn"""
_POOL: Final = ThreadPoolExecutor(THREADS, "filters")


class TooMuch(RequestRefused):
    """The refusal of a filter that is too large, or takes too long to parse."""


def permitted(principal: Principal, verb: Literal["subscribe", "advertise"]) -> None:
    """Raise AccessDenied if a principal may not subscribe, or advertise, at all: then no filter is parsed."""
    if getattr(principal.permissions, verb) is False:
        (may_subscribe if verb == "subscribe" else may_advertise)(principal, EVERYTHING)


async def admitted(written: object, limits: Limits) -> Filter:
    """Return the filter in a text or document of a client; TooMuch, FilterSyntaxError or FilterDocumentError."""
    return await within(lambda: taken(written, limits), limits)


def taken(written: object, limits: Limits) -> Filter:
    """Return the filter as `admitted` does, for callers in a thread of their own; also checks a combined filter."""
    if not isinstance(written, Filter):
        check_size(len(written if isinstance(written, str) else msgspec.json.encode(written)), limits)
    return admission.admit(written, admission.Limits(text=limits.filter_chars))


def filling(principal: Principal, limits: Limits) -> Fill:
    """Return the function that fills in dynamic filters for a client: admitted, and permitted, as any other filter."""

    def fill(filter: DynamicFilter, values: Values) -> Filter:
        found = filled(filter, values, limits)
        return found if found.is_empty else subscribable(principal, found)

    return fill


def filled(filter: DynamicFilter, values: Values, limits: Limits) -> Filter:
    """Return a dynamic filter with present values, within the bounds for filters.

    Results are cached: a node fills in filters in a thread, and again at once in a step of its core.
    """
    present = {name: values[name] for name in filter.parameters if name in values}
    return _filled(filter.text, encode_values(present), limits.filter_chars)


@lru_cache(maxsize=1000)  # large filters of many clients must not fill the memory
def _filled(text: str, values: bytes, chars: int) -> Filter:
    bounds = admission.Limits(text=chars)
    with budget.within(bounds.steps, 2 * bounds.normal):
        found = DynamicFilter(text).fill(decode_values(values))
    return found if found.is_empty else admission.admit(found, bounds)


def check_size(size: int, limits: Limits) -> None:
    """Raise TooMuch if the text of a filter, or of several together, has too many characters."""
    if size > limits.filter_chars:
        raise TooMuch(f"the filter has {size} characters, more than the limit of {limits.filter_chars}")


async def within(read: Callable[[], T], limits: Limits) -> T:
    """Return the result of `read`, called in a thread of the pool; TooMuch after the bound on time."""
    loop = asyncio.get_running_loop()
    began = asyncio.Event()

    def begin() -> T:
        loop.call_soon_threadsafe(began.set)
        return read()

    reading = loop.run_in_executor(_POOL, begin)
    reading.add_done_callback(
        lambda one: one.cancelled() or one.exception()
    )  # after a timeout no caller reads the exception
    await began.wait()  # the time begins with the parsing, not with the wait for a thread
    done, _ = await asyncio.wait([reading], timeout=limits.filter_seconds)
    if not done:
        raise TooMuch(f"parsing the filter takes more than {limits.filter_seconds:g} s (limits.filter_seconds)")
    return await reading


def bounded(read: Callable[[], T]) -> T:
    """Return the result of parsing several filters within the steps of a single filter; FilterOverBudget."""
    with budget.within(admission.LIMITS.steps, 2 * admission.LIMITS.normal):
        return read()
