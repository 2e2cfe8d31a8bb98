"""Dynamic filters of a client: `Subscribe` with parameters, and `SetParameters`, turned into inputs for the core.

A filter is filled in twice: in a thread, where work on a large filter blocks nobody and has a bound on time, and in the
step of the core, where the first result is found in a cache.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from fieldfare.core.dynamic_filters import Fill, encode_values
from fieldfare.core.parameter_inputs import SetParameters, SubscribeDynamic
from fieldfare.core.state import RequestRefused
from fieldfare.events.event import Event
from fieldfare.filters.dynamic import MYLOC, DynamicFilter, Values, is_dynamic
from fieldfare.node import replay
from fieldfare.node.node import Node
from fieldfare.node.security.filter_admission import TooMuch, check_size, within
from fieldfare.protocol import frames as f

BURST: Final = 1.0
"""seconds for which a client may save up changes"""


async def read(written: object, node: Node) -> DynamicFilter | None:
    """Return the filter of a client; None for a filter without parameters."""
    if not isinstance(written, str) or not (":" in written or MYLOC in written.lower()):
        return None
    check_size(len(written), node.config.limits)
    return await within(lambda: DynamicFilter(written) if is_dynamic(written) else None, node.config.limits)


class Pace:
    """The rate of a client's changes, as a time up to which the client has used its share."""

    def __init__(self, rate: float) -> None:
        """Allow so many changes in a second, and a second's changes at once."""
        self._share = 1 / rate
        self._used_until = 0.0

    def wait(self, now: float) -> float:
        """Count a change, and return the seconds to wait before it.

        >>> pace = Pace(2.0)
        >>> [pace.wait(now) for now in (10.0, 10.0, 10.0, 10.0, 13.0)]
        [0.0, 0.0, 0.5, 1.0, 0.0]
        """
        self._used_until = max(self._used_until, now - BURST) + self._share
        return max(0.0, self._used_until - now)


class Parameters:
    """The dynamic filters of a connection."""

    def __init__(self, node: Node, session: str, identity: str, fill: Fill) -> None:
        """Serve a session; `fill` decides which filters the client may have."""
        self._node = node
        self._session = session
        self._identity = identity
        self._fill = fill
        self._pace = Pace(node.config.limits.parameter_changes)

    async def subscribe(self, frame: f.Subscribe, filter: DynamicFilter) -> int:
        """Subscribe to a dynamic filter; return the first position of the log if older events are gone, else 0."""
        node, dynamic = self._node, self._node.core.dynamic
        # Earlier requests of the client are in effect after this, and none follows before the answer.
        await node.submit(lambda core, _: core.sessions.check_identity(self._session, self._identity))
        mine, most = dynamic.filters.get(self._session, {}), node.config.limits.dynamic_filters
        if len(mine) >= most and frame.id not in mine:
            raise RequestRefused(f"a session has at most {most} subscriptions with parameters")
        present = dynamic.present(dynamic.values.get(self._session, {}))
        filled = await within(lambda: self._fill(filter, present), node.config.limits)
        subscribe = SubscribeDynamic(self._session, frame.id, filter.text, self._identity, self._fill)
        if frame.since is None:
            await node.submit(subscribe)
            return 0
        about = self._session, frame.id, filled, frame.since
        more = {"life": frame.life, "complete": frame.complete, "identity": self._identity}
        return await replay.subscribe(node, *about, **more, change=subscribe)  # type: ignore[arg-type]

    async def set(self, changes: Event) -> SetParameters:
        """Return the input for a change of values, after the wait for the client's turn."""
        node, limits, tree = self._node, self._node.config.limits, dict(changes.tree)
        await asyncio.sleep(self._pace.wait(asyncio.get_running_loop().time()))
        dynamic = node.core.dynamic
        values = dynamic.merged(self._session, tree)
        if len(encode_values(values)) > limits.parameter_bytes:
            raise TooMuch(f"the parameters of a session have at most {limits.parameter_bytes} bytes")
        filters = list(dynamic.filters.get(self._session, {}).values())
        present = dynamic.present(values)
        await within(lambda: self._prepare(filters, present), limits)
        return SetParameters(self._session, tree, self._identity, self._fill, limits.parameters)

    def _prepare(self, filters: list[DynamicFilter], present: Values) -> None:
        """Fill the cache; the step of the core reports mistakes."""
        with suppress(ValueError):
            for filter in filters:
                self._fill(filter, present)
