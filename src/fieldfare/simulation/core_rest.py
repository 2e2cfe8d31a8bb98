"""Rest of a network of durable nodes: nothing is on the way, and nobody waits for anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fieldfare.core.core import Core
from fieldfare.core.domains import is_foreign
from fieldfare.core.replicas import SINCE
from fieldfare.core.state import NEVER
from fieldfare.core.take_over import NUMBER_GAP
from fieldfare.simulation.trace import Published

if TYPE_CHECKING:
    from fieldfare.simulation.core_network import CoreNetwork

LONGEST_TTL = 60.0
"""seconds; no plan gives an event a longer time to live, and a clock that jumps is further ahead"""


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


def _has_copies_of_the_future(core: Core, now: float) -> bool:
    """Tell whether a replica has an event with an end that only a wrong clock can have given.

    The session's node, whose clock was ahead, has passed over the event; the copy stays until its end.
    """
    latest = now + core.journal.ahead + LONGEST_TTL
    carried = (pending for replica in core.replicas.held.values() for pending, _ in replica.carried.values())
    return any(latest < pending.expires < NEVER for pending in carried)


def leftovers(network: CoreNetwork) -> Iterable[str]:
    """Return the useless remainders on the disks of nodes at rest, in words."""
    yield from _miscounted(network)
    # Version 2 has no word for a complete replica: a holder keeps what it took by former filters until the next change.
    incomplete = network.options.replicas > 0 and network.oldest < SINCE
    for name, host in network.hosts.items():
        for kind in ("outbox", "arrival", "departure", "parked", "replayed", "acknowledged", "held"):
            if network.disks[name].rows.get(kind):
                yield f"{name} keeps rows that nobody needs: {kind} {list(network.disks[name].rows[kind])}"
        low, last = host.core.low_water(), host.core.position
        if low != last + 1 and not incomplete and not _has_copies_of_the_future(host.core, network.clock.now):
            yield f"{name} keeps the log from {low} on, although nobody needs anything up to {last}"


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
