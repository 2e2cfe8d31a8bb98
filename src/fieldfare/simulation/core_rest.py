"""Rest of a network of durable nodes: nothing is on the way, and nobody waits for anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fieldfare.core.core import Core
from fieldfare.core.domains import is_foreign
from fieldfare.core.replicas import SINCE
from fieldfare.core.take_over import NUMBER_GAP
from fieldfare.simulation.trace import Published

if TYPE_CHECKING:
    from fieldfare.simulation.core_network import CoreNetwork


def unrest(network: CoreNetwork, *, absent: bool = False) -> Iterable[str]:
    """Return the obstacles to rest, in words; clients may be `absent`, or deaf."""
    if network.clock.pending != network.planned:
        yield "frames are on the way"
    for a, b in network.edges:
        if not network.lost & {a, b} and not network.linked(a, b):
            yield f"no link between {a} and {b}"
    for name, host in network.hosts.items():
        if name in network.lost:
            continue
        core = host.core
        if not host.up or not host.idle:
            yield f"{name} is busy"
        for other, link in core.links.items():
            if link.outbox and other not in network.lost:
                yield f"{name} has messages for {other}"
        if core.channels.homes.waiting:
            yield f"{name} waits for the homes of {core.channels.homes.waiting}"
        if core.channels.homes.busy:
            yield f"{name} has the channels of {core.channels.homes.busy} on the move"
        if core.handovers.arrivals or core.handovers.departures or core.replicas.due():
            yield f"{name} has sessions on the move"
    for name, client in network.clients.items():
        if absent and (client.away or name in network.deaf):
            continue
        if not client.satisfied:
            yield f"{name} waits"
        elif not client.away:
            session = network.hosts[client.node].core.sessions.get(name)
            if session is not None and session.sent < session.count:
                yield f"{client.node} has deliveries for {name}"
    for name, member in network.members.items():
        if absent and member.away:
            continue
        at = network.hosts[member.node].core if member.node else None
        sharing = at.members.of(member.name) if at is not None else None
        device = at.devices.of(member.name).get(member.label) if at is not None else None
        if not member.satisfied:
            yield f"{name} waits"
        elif not member.away and sharing is not None and sharing.waiting:
            yield f"{member.node} has deliveries for {name}"
        elif not member.away and at is not None:
            session = at.sessions.get(member.name)
            if session is not None and (device or session).sent < session.count:
                yield f"{member.node} has deliveries for {name}"


def leftovers(network: CoreNetwork) -> Iterable[str]:
    """Return the useless remainders on the disks of nodes at rest, in words."""
    yield from _miscounted(network)
    for name, host in network.hosts.items():
        for kind in ("outbox", "arrival", "departure", "parked", "replayed", "acknowledged", "held"):
            if network.disks[name].rows.get(kind):
                yield f"{name} keeps rows that nobody needs: {kind} {list(network.disks[name].rows[kind])}"
        copies = _lasting_copies(network, name)
        for position in sorted(_in_use(host.core) - copies):
            yield f"{name} keeps event {position}, which nobody needs"
        low, last = host.core.low_water(), host.core.position
        if low != min(copies, default=last + 1):
            yield f"{name} keeps the log from {low} on; it has copies of {sorted(copies)} for others, up to {last}"


def _in_use(core: Core) -> set[int]:
    """Return the positions of all events that wait for a session or a copy of one."""
    waiting = [one for session in core.sessions.values() if session.durable for one in session.pending.values()]
    waiting += [one for replica in core.replicas.held.values() for one, _ in replica.carried.values()]
    return {one.position for one in waiting}


def _lasting_copies(network: CoreNetwork, name: str) -> set[int]:
    """Return the positions of events in copies of sessions that the session itself has no more.

    Such a copy stays until its time to live ends, if the clock of the session's node once was ahead: that node has
    passed over the event. And a copy is not complete where a node has spoken version 2, which has no word for that:
    what the holder took by former filters stays until the next change.
    """
    core, now, latest = (
        network.hosts[name].core,
        network.wall(name),
        max(one.highest for one in network.clocks.values()),
    )
    incomplete = network.oldest < SINCE
    found = set[int]()
    for session, replica in core.replicas.held.items():
        taken = list(core.sessions[session].pending.values())
        both = [*taken, *(one for one, _ in replica.carried.values())]
        found |= {one.position for one in both if now < one.expires <= latest}
        found |= {one.position for one in taken if incomplete}
    return found


def _miscounted(network: CoreNetwork) -> Iterable[str]:
    """Return the channels with another count than events were published, or with homes not all agree on, in words.

    A home skips numbers when its disk may be a copy.
    """
    channels = network.options.channels
    published = Counter(channels.type_of(one.event) for one in network.trace if isinstance(one, Published))
    for type in channels.homes:
        known = {host.core.channels.homes.of(type).node for host in network.hosts.values()}
        homes = {home for home in known if not is_foreign(home)}  # other domains know the domain of the home alone
        if len(homes) != 1:
            yield f"the channel of {type} is at {' or '.join(sorted(homes))}"
        for home in homes:
            count = network.hosts[home].core.channels.numbers.counts.get(type, 0)
            if count % NUMBER_GAP != published[type]:
                yield f"{home} has numbered {count} events of the type {type}, and {published[type]} were published"
