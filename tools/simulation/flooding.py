"""A broker that sends every event everywhere: small enough to be right, and enough to try the simulator on."""

from __future__ import annotations

from fieldfare.filters import Filter
from fieldfare.protocol.messages import (
    Connect,
    Deliver,
    Disconnect,
    FilterUpdate,
    Forward,
    Leave,
    Message,
    Publish,
    Refuse,
    Send,
    Subscribe,
    Unsubscribe,
)


class Flooding:
    """A broker that floods; neighbours hear of some of the clients' filters, so that there is something to count."""

    def __init__(self, name: str, every: float | None = None) -> None:
        self.name = name
        self.every = every
        self.wakes = every
        self.neighbours: list[str] = []
        self.wanted: dict[str, dict[str, Filter]] = {}
        self.times: list[float] = []
        self.ticks: list[float] = []

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        self.times.append(now)
        match message:
            case Connect():
                assert sender not in self.neighbours
                self.neighbours.append(sender)
            case Disconnect():
                self.neighbours.remove(sender)
            case Subscribe() if message.filter.is_empty:
                return [Send(sender, Refuse("nothing matches", message.id))]
            case Subscribe():
                self.wanted.setdefault(sender, {})[message.id] = message.filter
                return [Send(neighbour, FilterUpdate((message.filter,))) for neighbour in self.neighbours]
            case Unsubscribe():
                self.wanted.get(sender, {}).pop(message.id, None)
            case Leave():
                self.wanted.pop(sender, None)
            case Publish():
                assert message.sequence is not None
                return self.spread(Forward(message.event, sender, message.sequence), sender)
            case Forward():
                assert sender in self.neighbours
                return self.spread(message, sender)
        return []

    def spread(self, forward: Forward, sender: str) -> list[Send]:
        sends = [Send(neighbour, forward) for neighbour in self.neighbours if neighbour != sender]
        for client, wanted in self.wanted.items():
            ids = tuple(id for id, filter in wanted.items() if filter.matches(forward.event))
            if ids:
                sends.append(Send(client, Deliver(forward.event, forward.publisher, forward.sequence, ids)))
        return sends

    def tick(self, now: float) -> list[Send]:
        assert self.wakes is not None
        assert self.every is not None
        assert now >= self.wakes
        self.ticks.append(now)
        self.wakes += self.every
        return []

    def snapshot(self) -> bytes:
        raise NotImplementedError
