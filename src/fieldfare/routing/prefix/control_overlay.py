"""`ControlOverlay`: a small Fieldfare inside the brokers, over the same links, for messages about trees.

Each broker is the single client of an inner broker, and subscribes to the messages for itself. These messages never mix
with the events of users: a subscription to everything does not match them, and no broker stores them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from fieldfare.filters import parse
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.valueset import one_of
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.prefix.messages import (
    AnyTreeMessage,
    Heartbeat,
    InterestReport,
    MessageReader,
    TreeMessage,
    TreeNews,
    TreeRequest,
    events_of,
)
from fieldfare.routing.routes import Outgoing


class Received(NamedTuple):
    """The result of a message: messages to send, and tree messages for the broker itself."""

    sends: list[Outgoing]
    messages: list[AnyTreeMessage]


class ControlOverlay:
    """A broker's end of the control overlay."""

    def __init__(self, name: str, life: int) -> None:
        """Subscribe to the messages for all brokers, and to those for this broker alone."""
        self._name = name
        self._broker = Broker(name, life=life)
        self._reader = MessageReader()
        self._subscribe("all", _kinds(Heartbeat, TreeNews))
        self._subscribe("ours", Filter.where("to", Constraint(one_of([name]))))

    def _subscribe(self, id: str, filter: Filter) -> list[Outgoing]:
        return self._received(self._broker.receive(m.Subscribe(id, filter), self._name, 0.0)).sends

    def set_leading(self, part: int, leading: bool) -> list[Outgoing]:
        """Begin or end the subscription to the messages for the optimizer of a part."""
        id = f"optimizer of {part}"
        if leading:
            return self._subscribe(id, parse(f"part = {part}") & _kinds(InterestReport, TreeRequest))
        return self._received(self._broker.receive(m.Unsubscribe(id), self._name, 0.0)).sends

    def connect(self, neighbour: str) -> list[Outgoing]:
        """Begin to exchange messages with a reachable neighbour."""
        return self._received(self._broker.receive(m.Connect(), neighbour, 0.0)).sends

    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """Stop exchanging messages with a neighbour that cannot be reached."""
        if neighbour not in self._broker.neighbours:
            return []
        return self._received(self._broker.receive(m.Disconnect(), neighbour, 0.0)).sends

    def publish(self, message: AnyTreeMessage, now: float) -> Received:
        """Publish a tree message; the broker itself may be a recipient, too."""
        events = events_of(message, self._name)
        return self._received(
            [send for one in events for send in self._broker.receive(m.Publish(one), self._name, now)]
        )

    def receive(self, content: m.FilterUpdate | m.Forward, neighbour: str, now: float) -> Received:
        """Process the content of a neighbour's control message; messages of a former neighbour are dropped."""
        if neighbour not in self._broker.neighbours:
            return Received([], [])
        return self._received(self._broker.receive(content, neighbour, now))

    def _received(self, sends: list[m.Send]) -> Received:
        received = Received([], [])
        for send in sends:
            match send.message:
                case m.Deliver(event=event):
                    with suppress(ValueError):  # of another version of Fieldfare, say
                        message = self._reader.read(event)
                        received.messages.extend([] if message is None else [message])
                case m.FilterUpdate() | m.Forward() as content:
                    received.sends.append(Outgoing(send.to, m.ControlMessage(content)))
        return received


def _kinds(*kinds: type[TreeMessage]) -> Filter:
    """Return the filter of the events that carry messages of some kinds."""
    return Filter.where("message", Constraint(one_of([kind.__name__ for kind in kinds])))
