"""Dead letters: events about events that a sink has refused, or has not accepted after `maxattempts`.

A dead letter has the type `fieldfare.deadletter`, and the event and the reason inside. The node publishes it, so that a
subscription can watch for failures. A dead letter that fails itself makes no other.
"""

from __future__ import annotations

from fieldfare.events import binary_mode, msgpack
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.node.http.webhooks import sinks
from fieldfare.node.http.webhooks.description import Webhook
from fieldfare.node.internal_session import Delivered
from fieldfare.node.security.rights import DEAD_LETTER


def dead_letter(hook: Webhook, delivered: Delivered, reason: str, attempts: int, *, id: str, source: str) -> Event:
    """Return the dead letter of an event; without the event if both are too large together."""
    about: dict[str, object] = {
        "reason": reason,
        "attempts": attempts,
        "subscription": hook.id,
        "sink": sinks.masked(hook.description.sink),
        "position": delivered.position,
    }
    head = {
        "specversion": "1.0",
        "id": id,
        "source": source,
        "type": DEAD_LETTER,
        "subject": hook.id,
        "datacontenttype": binary_mode.PLAIN,
    }
    try:
        letter = Event({**head, "data": {**about, "event": dict(delivered.event.tree)}})
        msgpack.decode(msgpack.encode(letter))  # within the limits only if this passes
    except EventError:
        return Event({**head, "data": about})
    return letter
