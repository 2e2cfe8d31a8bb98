"""`LinkEnd`: an end of a connection between two simulated nodes, with the frames of the link protocol.

Both ends say `LinkHello` and `LinkResume`, and then resume or replace the link, by the inputs of a node's connection
(`node.link_connection`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fieldfare.core.domains import visible
from fieldfare.core.inputs import (
    AcknowledgeMessages,
    ConnectLink,
    LinkDown,
    LinkUp,
    LivesOfLink,
    ReceiveMessages,
    ReceiveUnnumbered,
    ResumeLink,
    SetReachable,
)
from fieldfare.core.state import Link
from fieldfare.protocol import handover, wire
from fieldfare.protocol.lineage import extend
from fieldfare.protocol.link_frames import (
    LinkHello,
    LinkResume,
    Messages,
    ReachableNodes,
    Received,
    UnnumberedMessage,
)
from fieldfare.protocol.messages import Envelope, Role
from fieldfare.protocol.versions import NEWEST, lacking
from fieldfare.simulation.pipes import Pipe
from fieldfare.simulation.processes import Inbox, Work

if TYPE_CHECKING:
    from fieldfare.simulation.core_host import CoreHost

CHUNK = 3
"""messages in a frame; small, so that small runs have several frames"""


def _unknown(frame: Any, to: str, version: int) -> str:
    """Return the kind of a frame, a message inside, or the content of an envelope to a node that its version lacks."""
    insides: list[Any] = [frame]
    for data in frame.messages if isinstance(frame, Messages) else ():
        insides.append(wire.decode(data))
        if isinstance(insides[-1], Envelope) and insides[-1].to == to:
            insides.append(handover.decode(insides[-1].content))
    return next((found for one in insides if (found := lacking(version, one))), "")


class LinkEnd:
    """One side of a connection to a neighbour."""

    def __init__(self, host: CoreHost, neighbour: str, role: Role, out: Pipe) -> None:
        """Begin the meeting with a `LinkHello`."""
        self.host, self.neighbour, self.role = host, neighbour, role
        self.peer = host.network.options.domains.name(neighbour, host.name)
        self.out = out
        self.inbox = Inbox()
        self.open = True
        self.up = False
        """whether numbered messages flow"""
        self.life = ""
        self._sent = self._acknowledged = 0
        self._reachable = ReachableNodes({})
        self._process = host.spawn(self._serve())

    def receive(self, frame: object) -> None:
        """Take a frame of the neighbour; None is the end of the connection."""
        if not self.open or not self.host.up:
            return
        if frame is None:
            self.end()
        else:
            self.inbox.put(frame)

    def end(self, *, quietly: bool = False) -> None:
        """End the connection here, with a word to the neighbour unless `quietly`."""
        if not self.open:
            return
        was_up = self.up
        self.open = self.up = False
        self._process.end()
        if not quietly:
            self.out.send(None)
        host = self.host
        host.network.link_ended(host.name, self.neighbour, was_up=was_up)
        if host.links.get(self.peer) is self:
            del host.links[self.peer]
            host.submit(LinkDown(self.peer))

    # The meeting

    def _serve(self) -> Work:
        try:
            yield from self._meet()
            while True:
                frame = yield self.inbox
                yield from self._accept(frame)
        except ValueError as error:
            self.host.network.problem(f"{self.host.name} ends the link to {self.neighbour}: {error}")
            self.end()

    def _meet(self) -> Work:
        host, other, core = self.host, self.peer, self.host.core
        reaches = {"": dict.fromkeys(self._reachable_without(other), "")}
        role = self.role.value
        self.out.send(LinkHello(host.name, "", "", core.versions.speaks, role, reaches=reaches, life=core.life))
        hello = yield self.inbox
        self.life, version = hello.life, min(hello.version, core.versions.speaks)
        former = host.links.get(other)
        if former is not None:
            if former.life != self.life:  # the end of another process of the neighbour is not noticed yet
                self.end()
                return
            host.links.pop(other)
            former.end()
        host.links[other] = self
        known = core.links.get(other)
        if known is not None and known.role is not self.role:
            known = None
        mine = yield from self._resume_frame(known)
        self.out.send(mine)
        theirs = yield self.inbox
        host.behind[other] = (other, *hello.reaches[""])
        if known is not None and (theirs.local_name, theirs.remote_name) == (mine.remote_name, mine.local_name):
            self._sent = yield ResumeLink(other, theirs, version=version)
        else:
            host.network.note(host.name, f"begins a new link to {self.neighbour}")
            names = mine.local_name, theirs.local_name
            yield ConnectLink(other, self.role, *names, theirs.lives, version=version)
        yield SetReachable(other, host.behind[other])
        yield LinkUp(other)
        self._acknowledged = core.links[other].written
        self.up = True
        self.pump()
        host.network.link_is_up(host.name, self.neighbour)
        for link in host.links.values():
            link.pump()

    def _resume_frame(self, known: Link | None) -> Any:
        host, core = self.host, self.host.core
        if known is None:
            return LinkResume(host.network.fresh("link"), "", 0, lives=extend((), core.life, 1))
        lives = yield LivesOfLink(self.peer)
        names, received = (known.local_name, known.remote_name), (known.written, known.remote_lives)
        return LinkResume(*names, *received, lives, known.acknowledged + 1, known.last, known.incomplete)

    # Frames

    def _accept(self, frame: Any) -> Work:
        host, other = self.host, self.peer
        if host.core.versions.speaks < NEWEST and (kind := _unknown(frame, host.name, host.core.versions.speaks)):
            host.network.problem(f"{other} sends {kind} to {host.name}, which does not know it")
        match frame:
            case Messages(first=first, messages=messages):
                yield ReceiveMessages(other, first, messages)
            case UnnumberedMessage(message=message):
                yield ReceiveUnnumbered(other, message)
            case Received(number=number):
                yield AcknowledgeMessages(other, number)
            case ReachableNodes(nodes=nodes, versions=versions):
                host.behind[other] = tuple(name for name in nodes if name != host.name)
                yield SetReachable(other, host.behind[other], versions)
                for link in host.links.values():
                    link.pump()

    def pump(self) -> None:
        """Send all released messages, from the first unsent message on."""
        host, other = self.host, self.peer
        links = host.core.links
        if not self.up or not self.open or other not in links:
            return
        nodes = self._reachable_without(other)
        reachable = ReachableNodes(dict.fromkeys(nodes, ""), host.core.versions.newer(nodes))
        if reachable != self._reachable:
            self._reachable = reachable
            self.out.send(reachable)
        for message in links.take_unnumbered(other):
            self.out.send(UnnumberedMessage(message))
        written = links[other].written
        if written > self._acknowledged:
            self._acknowledged = written
            self.out.send(Received(written))
        while outgoing := links.outgoing(other, self._sent, CHUNK):
            messages = [self._encoded(what) for _, what in outgoing]
            self._sent = outgoing[-1][0]
            self.out.send(Messages(outgoing[0][0], messages))

    def _reachable_without(self, other: str) -> tuple[str, ...]:
        host = self.host
        found = {host.name, *host.core.links} - {other}
        for neighbour, nodes in host.behind.items():
            if neighbour != other:
                found.update(nodes)
        return tuple(sorted(visible(found, other, host.network.options.domains.domain(host.name))))

    def _encoded(self, what: bytes | int) -> bytes:
        host = self.host
        if isinstance(what, bytes):
            host.network.told(host.name, self.neighbour, what)
            return what
        entry = host.disk.entries((what,)).get(what)
        if entry is None:
            host.network.lost_event(host.name, what, self.neighbour)
            return wire.NOTHING
        host.network.forwarded(host.name, self.neighbour, entry)
        return wire.encode_forward(entry)
