"""Sentences about the messages between durable nodes, for the story of a run."""

from __future__ import annotations

from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire


def message_sentence(node: str, neighbour: str, data: bytes) -> str:
    """Return a sentence with the node as its subject; empty for a message of another node, which only passes by.

    >>> from fieldfare.filters import parse
    >>> message_sentence("b0", "b1", wire.encode(m.FilterUpdate((parse("x = 1"),))))
    'asks b1 for the events of: x = 1'
    """
    match wire.decode(data):
        case m.FilterUpdate(about="subscriptions", added=added, removed=removed) if added or removed:
            more, less = "; ".join(map(str, added)), "; ".join(map(str, removed))
            asks = [f"asks {neighbour} for the events of: {more}"] if added else []
            return ", and ".join([*asks, *([f"asks {neighbour} no more for: {less}"] if removed else [])])
        case m.Envelope(origin=origin, to=to, content=content) if origin == node:
            return _handover_sentence(h.decode(content), to)
    return ""


def _handover_sentence(message: h.AnyHandoverMessage, to: str) -> str:
    of = f"the session of {message.session}"
    match message:
        case h.SessionRequest(take_over=True):
            return f"asks {to} to make {of} of its replica"
        case h.SessionRequest():
            return f"asks {to} for {of}"
        case h.SessionOffer():
            return f"offers {to} {of}"
        case h.SessionDescription(replica=True):
            return f"gives {to} a replica of {of}"
        case h.SessionDescription():
            return f"describes {of} to {to}"
        case h.TargetReady():
            return f"has all filters of {of} now, and tells {to}"
        case h.StoredDeliveries(items=items):
            events = ", ".join(f"{one.sequence} of {one.publisher}" for one in items)
            return f"sends {to} what waits for {message.session}: event {events}"
        case h.SessionTransferred(count=count, acknowledged=acknowledged, last_events=last):
            seen = ", ".join(f"{sequence} of {publisher}" for publisher, _, sequence in last) or "none"
            known = f"{count} deliveries, {acknowledged} of them acknowledged; events given meanwhile: {seen}"
            return f"lets {to} have {of} ({known})"
        case h.ReplicaProgress(sequence=sequence, acknowledged=acknowledged):
            return f"tells {to} that {message.session} has published {sequence} and acknowledged {acknowledged}"
        case h.SessionTakenOver():
            return f"has taken over {of}, and tells {to}"
        case h.SessionNotHere(node=node):
            return f"has not got {of}, and tells {to}" + (f": ask {node}" if node else "")
        case h.CancelHandover():
            return f"takes back what it told {to} of {of}"
    return f"tells {to} something about {of}: {type(message).__name__}"
