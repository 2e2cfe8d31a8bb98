"""The story of a run: the words and deeds of clients and nodes, with times, in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fieldfare.simulation import trace as t


class Note(NamedTuple):
    """A sentence of a story; `who` is the subject, or empty."""

    time: float
    who: str
    text: str


def sentence(record: t.Record) -> tuple[str, str]:
    """Return the subject and the rest of a sentence about a record.

    >>> sentence(t.Unsubscribed(1.0, 7, "b0", "ana", "s"))
    ('ana', 'has unsubscribed from s')
    """
    match record:
        case t.Published(client=client, sequence=sequence, event=event, ttl=ttl):
            until = f", good for {ttl:g} s" if ttl else ""
            return client, f"publishes its event {sequence}: {dict(event)}{until}"
        case t.Delivered(client=client, publisher=publisher, sequence=sequence, broker=node, subscriptions=ids):
            return client, f"gets event {sequence} of {publisher} from {node}, for {', '.join(ids)}"
        case t.DeliveredToMember(client=client, member=member, publisher=publisher, sequence=sequence, broker=node):
            again = ", which a member may have had" if record.redelivered else ""
            return f"{client}/{member}", f"gets event {sequence} of {publisher} from {node}{again}"
        case t.DeliveredToDevice(client=client, member=member, publisher=publisher, sequence=sequence, broker=node):
            return f"{client}/{member}", f"gets event {sequence} of {publisher} from {node}"
        case t.DeviceAdded(client=client, member=member, broker=node):
            return f"{client}/{member}", f"is a new device at {node}"
        case t.DeviceRemoved(client=client, member=member):
            return f"{client}/{member}", "is removed"
        case t.AcknowledgedByMember(client=client, member=member, publisher=publisher, sequence=sequence):
            return f"{client}/{member}", f"has acknowledged event {sequence} of {publisher}"
        case t.MemberGone(client=client, member=member, broker=node):
            return f"{client}/{member}", f"has lost the connection to {node}, or {node} to it"
        case t.Subscribed(client=client, id=id, filter=filter):
            return client, f"subscribes to {filter}, as {id}"
        case t.Unsubscribed(client=client, id=id):
            return client, f"has unsubscribed from {id}"
        case t.Advertised(client=client, id=id, filter=filter):
            return client, f"advertises {filter}, as {id}"
        case t.Unadvertised(client=client, id=id):
            return client, f"advertises {id} no more"
        case t.Left(client=client):
            return client, "ends its session"
        case t.Departed(client=client):
            return client, "goes away"
        case t.Arrived(client=client, broker=node):
            return client, f"comes to {node}"
        case t.Refused(client=client, broker=node, reason=reason):
            return node, f"refuses a request of {client}: {reason}"
        case t.Forwarded(broker=node, neighbour=other, publisher=publisher, sequence=sequence):
            return node, f"sends event {sequence} of {publisher} to {other}"
        case t.Told(broker=node, neighbour=other, added=added, removed=removed):
            return node, f"tells {other} of {added} new filters and {removed} removed"
        case t.Up(broker=node, neighbour=other):
            return node, f"is linked to {other}"
        case t.Down(broker=node, neighbour=other):
            return node, f"has lost the link to {other}, or {other} to it"
        case t.Crashed(broker=node):
            return node, "is down"
        case t.Restarted(broker=node):
            return node, "is up again"
        case t.Forgot(broker=node):
            return node, "has lost the end of what was on its disk"
        case t.Quiet():
            return "", "all is quiet"


def text(story: Iterable[Note]) -> str:
    """Return a story as lines: time, subject and sentence.

    >>> text([Note(1.5, "ana", "goes away")])
    '   1.500  ana    goes away'
    """
    return "\n".join(f"{note.time:8.3f}  {note.who:5}  {note.text}" for note in story)
