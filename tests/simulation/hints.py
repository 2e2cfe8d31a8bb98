"""`seeds`: where a search for a planted fault begins.

A random run finds a fault at some seed of the search from 0 on. The seed at which that was stands beside the fault, and
is tried first: the search would only repeat a hundred runs that find nothing. Where it finds nothing any more, because
plans are drawn in another way, the search goes on as if there were none. With the long profile it is never tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hypothesis import settings


def seeds(first: int, others: Iterable[int]) -> Iterator[int]:
    """Yield the seed that should find the fault, then the others."""
    if settings.get_current_profile_name() != "long":
        yield first
    yield from others
