"""`StandIns`: advertisements of a publisher at a node without the publisher's session.

With advertisements, subscriptions go towards overlapping advertisements. A moving session takes the advertisements
along, and the handover ends when the subscriptions have followed: no policy loses an event. By the `PublisherPolicy`
a node advertises in other places, too, and less has to follow:

- *lingering*: after a departure the advertisements stand for a while, for the publisher's return;
- *ahead*: a client names the next node, and the advertisements stand there before the client comes;
- *proxies*: some nodes advertise for all publishers, and moves between proxies change nothing.

A stand-in is a client of the broker without a session, with the same advertisements as the session. So the filters of
all clients together stay the same when the session comes or goes, and neighbours hear nothing. Stand-ins are in rows,
and end in time, also after a kill.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fieldfare.core.base import Base
from fieldfare.core.sessions import SessionTable
from fieldfare.core.state import INTERNAL, RequestRefused
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import Row, StoredRows
from fieldfare.protocol.versions import has
from fieldfare.routing.publisher_policies import SAFE, PublisherPolicy

AHEAD: Final = 60.0
"""Seconds for which a node advertises for an expected publisher."""
PROXY: Final = 7 * 86400.0
"""Seconds for which a proxy advertises without another word of the publisher's node."""
MOST: Final = 10_000
"""Stand-ins of a node; more are not accepted from other nodes."""
_CLIENT: Final = "~stand-in:"

logger = logging.getLogger("fieldfare.node")


class StandIn(msgspec.Struct, frozen=True):
    """The advertisements of an absent publisher, as texts by id, and the time of the end."""

    identity: str
    """Identity of the publisher's session."""
    moves: int
    """Number of the session's moves when the node of the session announced the advertisements."""
    advertisements: dict[str, str]
    until: float
    seconds: float
    """Length of the present stay, since clocks may jump between two runs of a node."""


class StandIns:
    """The stand-ins at a node, and the policy for the publishers of the node."""

    def __init__(
        self, base: Base, sessions: SessionTable, policy: PublisherPolicy = SAFE, proxies: tuple[str, ...] = ()
    ) -> None:
        """Begin without stand-ins; `proxies` are nodes advertising for all publishers, by a policy with proxies."""
        self._base = base
        self._sessions = sessions
        self._policy = policy
        self._proxies = proxies if policy.proxies else ()
        self._all: dict[str, StandIn] = {}
        self._greeted: set[str] = set()
        """Proxies that have heard of all publishers since the start of this node."""

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a stand-in for a session."""
        return name in self._all

    @property
    def count(self) -> int:
        """The number of stand-ins."""
        return len(self._all)

    # The node of the session

    def departing(self, name: str, now: float) -> None:
        """Let advertisements of a departing session linger, before the session drops all filters."""
        proxy = self._base.name in self._proxies
        seconds = PROXY if proxy else self._policy.linger if not self._policy.holds else 0.0
        texts = self._advertisements(name)
        if seconds and texts:
            session = self._sessions[name]
            new = StandIn(session.identity, session.moves, texts, now + seconds, seconds)
            self._base.links.send_all(self._stand(name, new, now))

    def arrived(self, name: str, now: float) -> None:
        """End the stand-in for an arrived session, and tell the proxies the new place of the session."""
        if name in self._all:
            self._end(name, now)
        self.changed(name)

    def changed(self, name: str) -> None:
        """Send the proxies the advertisements of a session; none, if the session has just ended the last."""
        session = self._sessions.get(name)
        if not self._proxies or session is None or not session.durable or name.startswith(INTERNAL):
            return
        self._tell_proxies(name, session.identity, session.moves, self._advertisements(name))

    def ended(self, name: str, identity: str, moves: int) -> None:
        """Let the proxies forget an ended session."""
        self._tell_proxies(name, identity, moves, {})

    def greet(self) -> None:
        """Tell proxies of all publishers here as soon as their versions are known, after a start or an upgrade."""
        base, states = self._base, self._sessions.states
        for proxy in self._proxies:
            known = base.envelopes.knows(proxy) and has(base.versions.of(proxy), "StandInRequest")
            if known and proxy not in self._greeted:
                self._greeted.add(proxy)
                for name in sorted(self._sessions.keys() - states.held.keys() - states.arrivals.keys()):
                    if self._advertisements(name):
                        self.changed(name)

    def _tell_proxies(self, name: str, identity: str, moves: int, texts: dict[str, str]) -> None:
        for proxy in self._proxies:
            if proxy != self._base.name:
                self._send(proxy, h.StandInRequest(name, "", identity, texts, PROXY, moves))

    def expect(self, name: str, target: str) -> None:
        """Advertise at the next node of a client, with a policy that looks ahead."""
        base, texts = self._base, self._advertisements(name)
        if not self._policy.ahead or target == base.name or not texts:
            return
        if not base.envelopes.knows(target):
            raise RequestRefused(f"{base.name} knows no way to the node {target}")
        base.versions.require("StandInRequest", target)
        session = self._sessions[name]
        self._send(target, h.StandInRequest(name, "", session.identity, texts, AHEAD, session.moves))

    # The node of the stand-in

    def accept(self, message: h.StandInRequest, now: float) -> None:
        """Advertise for a session of another node, or stop; an overtaken message is ignored."""
        name, known = message.session, self._all.get(message.session)
        if known is not None and known.identity == message.identity and message.moves < known.moves:
            return
        session = self._sessions.get(name)
        if session is not None and session.identity == message.identity and session.moves >= message.moves:
            return  # the client was faster than the message
        if known is not None and not message.advertisements:
            self._end(name, now)
        elif message.advertisements and (known is not None or len(self._all) < MOST):
            seconds = min(max(message.seconds, 0.0), PROXY)
            new = StandIn(message.identity, message.moves, message.advertisements, now + seconds, seconds)
            self._base.links.send_all(self._stand(name, new, now))

    def _stand(self, name: str, new: StandIn, now: float) -> list[m.Send]:
        """Advertise exactly the filters of a stand-in; return the filter updates for neighbours."""
        filters = {id: wire.filter_of(text) for id, text in new.advertisements.items()}
        old = self._all.get(name)
        self._all[name] = new
        self._base.buffer.store(Row("stand-in", (name,), msgspec.to_builtins(new)))
        news: list[m.Message] = [m.Advertise(id, filter) for id, filter in filters.items()]
        news += [m.Unadvertise(id) for id in (old.advertisements if old is not None else ()) if id not in filters]
        return [send for change in news for send in self._base.broker.receive(change, _CLIENT + name, now)]

    def _end(self, name: str, now: float) -> None:
        del self._all[name]
        self._base.buffer.store(Row("stand-in", (name,)))
        self._base.links.send_all(self._base.broker.receive(m.Leave(), _CLIENT + name, now))

    # Time

    @property
    def wakes(self) -> float | None:
        """The time at which the next stand-in ends."""
        return min((one.until for one in self._all.values()), default=None)

    def tick(self, now: float) -> None:
        """End the stand-ins whose time is over."""
        for name in [name for name, one in self._all.items() if one.until <= now]:
            self._end(name, now)

    def restore(self, stored: StoredRows, now: float) -> None:
        """Recover from stored rows; a stand-in stays no longer than it could have at the beginning."""
        for (name,), value in stored.get("stand-in", {}).items():
            one: StandIn = msgspec.convert(value, StandIn)
            until = min(one.until, now + one.seconds)
            try:
                self._stand(str(name), msgspec.structs.replace(one, until=until), now)
            except ValueError as error:
                logger.error("a stored filter cannot be read: one of a stand-in for %s. %s", name, str(error)[:300])

    def _advertisements(self, name: str) -> dict[str, str]:
        client: Any = self._base.broker.clients.all.get(name)
        known: Mapping[str, Any] = client.advertisements if client is not None else {}
        return {id: str(filter) for id, filter in known.items()} if self._base.broker.strategy.advertisements else {}

    def _send(self, to: str, message: h.StandInRequest) -> None:
        self._base.envelopes.send(to, message)
