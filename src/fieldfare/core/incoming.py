"""Messages of neighbours, on their way into a core: each counts once, and consecutive events are matched as a batch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fieldfare.core.domains import is_foreign
from fieldfare.core.state import Origin
from fieldfare.filters import EVERYTHING
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.channels import is_channel_message
from fieldfare.protocol.journal import Row
from fieldfare.protocol.messages import FilterUpdate, Message
from fieldfare.protocol.numbers import NUMBER_LIMIT
from fieldfare.protocol.patterns import is_pattern_message
from fieldfare.routing.broker import FROM_NEIGHBOURS

if TYPE_CHECKING:
    from fieldfare.core.core import Core

logger = logging.getLogger("fieldfare.node")


def receive(core: Core, neighbour: str, first: int, messages: Sequence[bytes], now: float) -> int:
    """Accept messages of a neighbour, each once; return how many new events there were."""
    links, link = core.links, core.links.known(neighbour)
    count = 0
    events: list[tuple[m.Forward, Origin]] = []
    for number, data in enumerate(messages, first):
        if number <= link.received:
            continue
        if number != link.received + 1:
            raise ValueError(f"{neighbour} has left out its message {link.received + 1}")
        message = _decode(core, neighbour, number, data)
        if is_foreign(neighbour):
            message = core.borders.entering(neighbour, number, message)
        event = core.channels.opened(message) if isinstance(message, m.Envelope) else message
        if number in link.already:
            del link.already[number]
        elif isinstance(event, m.Forward):
            events.append((event, Origin(number, link.last_change, numbered=event is not message)))
            count += 1
        else:
            core.route(events, neighbour, now)
            events = []
            _apply(core, neighbour, number, message, now)
            link.last_change = number
            links.changes += 1
        link.received = number
        core.buffer.wake(neighbour)
    core.route(events, neighbour, now)
    if link.received != link.written:
        links.store(neighbour)
    return count


def _decode(core: Core, neighbour: str, number: int, data: bytes) -> Message:
    """Decode a message. Unreadable bytes are set aside: a refused message would come again for ever."""
    try:
        message, unreadable = wire.decode_leniently(data)
        if not isinstance(message, (*FROM_NEIGHBOURS, m.Envelope)):  # a client may have the neighbour's name
            raise ValueError(f"{type(message).__name__} is nothing that nodes say to each other")
        if isinstance(message, m.Forward) and not 0 <= message.sequence < NUMBER_LIMIT:
            raise ValueError(f"{message.sequence} is no number of an event")
    except ValueError as error:
        logger.error("message %d of %s cannot be read, and is set aside: %s", number, neighbour, error)
        core.buffer.store(Row("unreadable", (neighbour, number), data))
        return FilterUpdate()
    for text in unreadable:
        logger.error("%s asks for what cannot be read here, so it gets everything: %.300s", neighbour, text)
    return message


def _apply(core: Core, neighbour: str, number: int, message: Message, now: float) -> None:
    if isinstance(message, m.Envelope):
        _open(core, message, neighbour, number, now)
        return
    applied = _apply_change(core, neighbour, number, message, now)
    if isinstance(applied, FilterUpdate):
        core.links.store_filters(applied, neighbour)


def _apply_change(core: Core, neighbour: str, number: int, message: Message, now: float) -> Message:
    """Give a message to the broker, and return the accepted message.

    A refused message is set aside. Instead of a refused filter update, the neighbour gets all events
    and misses none.
    """
    instead = [FilterUpdate((EVERYTHING,), about=message.about)] if isinstance(message, FilterUpdate) else []
    for one in (message, *instead):
        try:
            given = core.borders.cut(neighbour, one) if isinstance(one, FilterUpdate) else one
            core.links.send_all(core.broker.receive(given, neighbour, now))
            return one
        except Exception as error:  # noqa: BLE001 - whatever it is, it would be the same the next time
            logger.error("message %d of %s cannot be taken, and is set aside: %s", number, neighbour, error)
            core.buffer.store(Row("unreadable", (neighbour, number), wire.encode(message)))
    return FilterUpdate()


def _open(core: Core, envelope: m.Envelope, via: str, number: int, now: float) -> None:
    try:
        if envelope.to == core.broker.name and is_channel_message(envelope.content):
            core.channels.receive(envelope, now)
        elif envelope.to == core.broker.name and is_pattern_message(envelope.content):
            core.patterns.parts.receive(envelope, now)
        elif not core.channels.pass_on(envelope, via, Origin(number, core.links[via].last_change)):
            core.handovers.receive(envelope, now, via)
    except Exception:  # the link must not come to a halt: it would bring the same again and again
        logger.exception("an envelope from %s could not be opened", envelope.origin)


def receive_unnumbered(core: Core, neighbour: str, data: bytes, now: float) -> None:
    """Accept a message without a number; an unusable message is only logged."""
    try:
        message, _ = wire.decode_leniently(data)
        if not isinstance(message, m.ControlMessage):
            raise ValueError(f"{type(message).__name__} must have a number")
        core.links.send_all(core.broker.receive(message, neighbour, now))
    except Exception as error:  # noqa: BLE001 - it may get lost; but the link must not go with it
        logger.error("%s sends an unnumbered message that cannot be used: %s", neighbour, error)
