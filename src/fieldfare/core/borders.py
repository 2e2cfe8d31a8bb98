"""`Borders`: the traffic between domains, and the names in it.

A border lets shared events pass, with the filters for such events, and the envelopes of channels: a question to the
home of a channel, its answer, and events for the home. Nothing else crosses: no session, replica or overview, no name
of a node but in the form `NODE@DOMAIN`, and no move of a channel inside a domain.

The home of a type of events is in one domain only. The other domains name the domain as the home, as `bid=@south`.
Envelopes to `@south` go to the border like envelopes to any node there; the node on the other side knows the home. So
events of the type still enter the tree at one node, with one number for all domains.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from msgspec.structs import replace

from fieldfare.core.base import Base
from fieldfare.core.channel_homes import ChannelHomes
from fieldfare.core.domains import Federation, domain_of, is_foreign, seen_from_outside
from fieldfare.core.watchers import LinkWatcher
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol import channels as c
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import Row
from fieldfare.routing.broker import Routed

NOTHING = m.FilterUpdate()
"""Stands for a message that does not cross."""

logger = logging.getLogger("fieldfare.node")


class Borders(LinkWatcher):
    """The borders of a node; most nodes have none."""

    def __init__(self, base: Base, homes: ChannelHomes, federation: Federation) -> None:
        """Begin without known filters of other domains."""
        self._base = base
        self._homes = homes
        self.federation = federation
        self._cut: dict[tuple[str, str], dict[Filter, set[Filter]]] = {}
        """By neighbour and subject: each filter in force, with the filters of the neighbour behind the filter."""
        self._refused: set[str] = set()
        """Types of events of which an error was logged already."""

    def share_of(self, neighbour: str) -> Filter | None:
        """Return the filter of the events for both sides of a border; None: the settings name no such domain."""
        return self.federation.shares.get(domain_of(neighbour))

    # Events and filters

    def without_private(self, routed: list[Routed]) -> list[Routed]:
        """Keep private events in the domain, even where a strategy sends all events to everybody."""
        if not self.federation.domain:
            return routed
        return [one._replace(neighbours=tuple(self._open_to(one))) for one in routed]

    def _open_to(self, routed: Routed) -> Iterable[str]:
        for neighbour in routed.neighbours:
            if not is_foreign(neighbour) or self._is_shared(neighbour, routed.event):
                yield neighbour

    def _is_shared(self, neighbour: str, event: m.Forward) -> bool:
        share = self.share_of(neighbour)
        return share is not None and share.matches(event.event)

    def cut(self, neighbour: str, update: m.FilterUpdate) -> m.FilterUpdate:
        """Return a filter update of a neighbour for the shared events alone.

        Several filters of the neighbour may be one after the cut, which ends with the last of them. And a filter may
        cover another only after the cut: the tables forget the other then, so it comes again when the first ends.
        """
        if not is_foreign(neighbour):
            return update
        known = {} if update.all else self._cut.get((neighbour, update.about), {})
        self._cut[neighbour, update.about] = known
        added, removed = [], []
        for one in update.removed:
            small = self._small(neighbour, one)
            known.get(small, set()).discard(one)
            if small in known and not known[small]:
                del known[small]
                removed.append(small)
        for one in update.added:
            small = self._small(neighbour, one)
            if small.is_empty:
                continue
            if small not in known:
                added.append(small)
            known.setdefault(small, set()).add(one)
        again = (one for one in known if removed and any(gone.covers(one) for gone in removed))
        return replace(update, added=tuple(dict.fromkeys((*added, *again))), removed=tuple(removed))

    def _small(self, neighbour: str, filter: Filter) -> Filter:
        share = self.share_of(neighbour)
        if share is None:
            return Filter(())
        try:
            small = share & filter
        except FilterTooComplex:
            small = share
        return NamedFilter(filter.name, small) if isinstance(filter, NamedFilter) else small

    def link_ended(self, neighbour: str, _: Iterable[bytes | int]) -> None:
        """Forget the filters of a former neighbour."""
        self._cut = {key: known for key, known in self._cut.items() if key[0] != neighbour}

    # Messages from other domains

    def entering(self, neighbour: str, number: int, message: m.Message) -> m.Message:
        """Return a message of another domain with the address of the receiver here; an unwanted message is nothing.

        An accepted event that cannot go on is set aside, with an error in the log.
        """
        if isinstance(message, m.Forward):
            return self._event(neighbour, message)
        if not isinstance(message, m.Envelope):
            return message if isinstance(message, m.FilterUpdate) else NOTHING
        try:
            return self._envelope(neighbour, message)
        except ValueError as error:
            logger.error("message %d of %s does not cross the border, and is set aside: %s", number, neighbour, error)
            self._base.buffer.store(Row("unreadable", (neighbour, number), wire.encode(message)))
            return NOTHING

    def _event(self, neighbour: str, forward: m.Forward) -> m.Message:
        """Return an event, unless the domain does not share such events or has another channel for the type."""
        if not self._is_shared(neighbour, forward):
            return NOTHING
        type = c.type_of(forward.by)
        home = self._homes.of(type).node
        if forward.channel_number and home and not is_foreign(home):
            if type not in self._refused:
                self._refused.add(type)
                text = "%s numbers events of the type %s, and so does this domain: such events do not cross the border"
                logger.error(text, domain_of(neighbour), type)
            return NOTHING
        return replace(forward, source=seen_from_outside(forward.source, domain_of(neighbour)))

    def _envelope(self, neighbour: str, envelope: m.Envelope) -> m.Message:
        own = self.federation.domain
        if not is_foreign(envelope.origin) or domain_of(envelope.origin) == own:
            raise ValueError(f"its origin is {envelope.origin}")
        content = _content_of(envelope)
        if not isinstance(content, m.Forward | c.JoinChannel | c.ChannelOpen | c.ChannelClosed):
            raise ValueError(f"{type(content).__name__} is about one domain alone")
        if isinstance(content, m.Forward):
            if not self._is_shared(neighbour, content):
                raise ValueError("such events are not shared")
            content = replace(content, source=seen_from_outside(content.source, domain_of(neighbour)))
            envelope = replace(envelope, content=wire.encode(content))
        if isinstance(content, c.JoinChannel) and (reason := self._refusal_of(content.type, neighbour)):
            self._close(envelope, content.type, reason)
            return NOTHING
        node, _, domain = envelope.to.partition("@")
        if domain != own:
            return envelope
        return replace(envelope, to=node or self._home_for(envelope, content))

    def _home_for(self, envelope: m.Envelope, content: m.Forward | c.AnyChannelMessage) -> str:
        """Return the home of a channel of the own domain, as the node knows the home."""
        type = c.type_of(content.by) if isinstance(content, m.Forward) else content.type
        home = self._homes.of(type).node
        if home and not is_foreign(home):
            return home
        if isinstance(content, c.JoinChannel):  # its receiver is asked, and says no
            return self._base.name
        raise ValueError(f"{envelope.to} has no channel of the type {type}")

    # Envelopes to other domains

    def leaving(self, neighbour: str, envelope: m.Envelope) -> m.Envelope | None:
        """Return an envelope under a name for answers of other domains; None: the border is closed to the content."""
        try:
            content = _content_of(envelope)
        except ValueError:  # about a session, as if a client names the other domain as the former node
            logger.warning("an envelope of %s to %s is not for another domain", envelope.origin, envelope.to)
            return None
        if isinstance(content, c.JoinChannel) and (reason := self._refusal_of(content.type, neighbour)):
            self._close(envelope, content.type, reason)
            return None
        return replace(envelope, origin=seen_from_outside(envelope.origin, self.federation.domain))

    def _refusal_of(self, type: str, neighbour: str) -> str:
        """Return the reason why not all events of a type may cross a border; empty if they may."""
        share, mine, other = self.share_of(neighbour), self.federation.domain, domain_of(neighbour)
        if share is not None and share.covers(self._homes.map.filter_of(type)):
            return ""
        return f"the domains {mine} and {other} do not share all events of this type"

    def _close(self, question: m.Envelope, type: str, reason: str) -> None:
        """Answer for the other domain that a channel is closed."""
        answer = c.ChannelClosed(type, reason)
        if question.origin == self._base.name:
            self._homes.close(answer)
        else:
            self._base.envelopes.forward(m.Envelope(question.origin, question.to, c.encode(answer)))


def _content_of(envelope: m.Envelope) -> m.Forward | c.AnyChannelMessage:
    """Return the content of an envelope; ValueError if it is neither an event nor about a channel."""
    if c.is_channel_message(envelope.content):
        return c.decode(envelope.content)
    content = wire.decode(envelope.content)
    if not isinstance(content, m.Forward):
        raise ValueError(f"{type(content).__name__} in an envelope")
    return content
