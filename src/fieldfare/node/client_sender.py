"""`ClientSender`: the frames of a node to a client after `Welcome`: answers, deliveries, and a farewell.

Much becomes due within one turn of the event loop: answers, the acceptance of events, deliveries. The end of the turn
sends all due frames in one write. Nothing is sent while the client does not read: a slow client makes nobody else wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fieldfare.core import losses
from fieldfare.core.delivery_frames import delivery_parts
from fieldfare.core.inputs import SendVoucher, Withhold
from fieldfare.core.losses import Losing
from fieldfare.core.state import Pending, Session
from fieldfare.events import msgpack
from fieldfare.node.accepted_socket import AcceptedSocket
from fieldfare.node.attachment import Attached
from fieldfare.node.counters import Counters
from fieldfare.node.node import Node
from fieldfare.node.security import Principal, rights, tickets
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import JSON_CODEC, Codec
from fieldfare.protocol.frames import Frame
from fieldfare.protocol.journal import JournalEntry
from fieldfare.protocol.versions import NEWEST, lacking

CHUNK: Final = 500
"""Largest number of deliveries in a turn of the event loop."""
MOST_REPLIES: Final = 1000
"""Answers that may wait for a client to read them; beyond that, its requests wait."""
MOST_CREDIT: Final = 1_000_000

Taken = Sequence[tuple[int, Pending]]
"""Deliveries with their numbers."""


def encoded(frames: Iterable[Frame], codec: Codec[Any], version: int, counters: Counters) -> list[Any]:
    """Return frames as messages of a socket, without those that a version lacks, and count them."""
    messages = [codec.encode(frame) for frame in frames if version == NEWEST or not lacking(version, frame)]
    counters.frames_out += len(messages)
    counters.bytes_out += sum(map(len, messages))
    return messages


class ClientSender:
    """The sending side of a client's connection."""

    def __init__(
        self,
        node: Node,
        socket: AcceptedSocket,
        codec: Codec[Any],
        principal: Principal,
        attached: Attached,
        *,
        credit: int,
        version: int,
    ) -> None:
        """Send to a client with an attached session; nothing is due yet."""
        self._node = node
        self._socket = socket
        self._codec = codec
        self._version = version
        self._principal = principal
        self._name, session = attached.name, attached.session
        self._identity = session.identity
        self._credit = min(max(credit, 0), MOST_CREDIT)
        self._accepted = session.sequence
        """Sequence number of the last accepted event."""
        self._accepts = False
        """Whether an `Accepted` frame is due."""
        self._told_dropped = session.warned
        """Number of dropped deliveries, as last sent to the client."""
        self._waited = attached.waited
        """Number of the last delivery that has waited."""
        self._may_read = rights.may_read(principal) if node.security is not None else None
        """Check for deliveries that waited since another token or role was here, and for dead letters; None: no check
        is needed."""
        self._replies: deque[Frame] = deque(f.Refused(one, code="denied") for one in attached.ended)
        self._answered = asyncio.Event()
        self._farewell: f.Bye | None = None
        self._reading: asyncio.Task[None] | None = None
        """Reads deliveries from the disk; later deliveries wait."""
        self._is_due = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the connection has ended; holds the exception that was the reason, if any."""

    # What is due

    def wake(self) -> None:
        """Send all due frames at the end of this turn of the event loop, or a moment later: see `DueFrames`."""
        if not self._is_due:
            self._is_due = True
            self._node.due.add(self._send)

    def reply(self, frame: Frame) -> None:
        """Send the answer to a request; answers keep the order of the requests."""
        self._replies.append(frame)
        self.wake()

    def accept(self, number: int) -> None:
        """Tell the client that all events up to a number are safe."""
        self._accepted = max(self._accepted, number)
        self._accepts = True
        self.wake()

    def add_credit(self, more: int) -> None:
        """Let so many more deliveries be sent; none waits unless the credit was used up."""
        was_used_up = self._credit <= 0
        self._credit = min(self._credit + max(more, 0), MOST_CREDIT)
        if was_used_up:
            self.wake()

    def close(self, reason: str, *, again: bool = False, to: str = "", follow: bool = False) -> None:
        """End the connection as soon as possible; see `Closer`.

        The first farewell counts: after a quick handover, the end of the session here must not hide the way there.
        """
        if self._farewell is not None:
            return
        self._farewell = f.Bye(reason, again, to, self._voucher_ticket() if to and follow else "")
        self.wake()

    @property
    def has_said_farewell(self) -> bool:
        """Tell whether the connection is about to end; then requests do not count any more."""
        return self._farewell is not None

    @property
    def is_behind(self) -> bool:
        """Tell whether the client must read answers before the next request."""
        return len(self._replies) > MOST_REPLIES

    async def caught_up(self) -> None:
        """Wait until the client has read its answers, or has gone."""
        while self.is_behind:
            self._answered.clear()
            await self._answered.wait()

    def is_current(self) -> bool:
        """Tell whether the session is still here; a later session of the same name does not count."""
        session = self._node.core.sessions.get(self._name)
        return session is not None and session.identity == self._identity

    def fail(self, error: BaseException) -> None:
        """End the connection because of a mistake of ours."""
        if not self.ended.done():
            self.ended.set_exception(error)

    def _voucher_ticket(self) -> str:
        """Return a ticket for the next node of the session, and send a voucher for the client there.

        Empty: the client has shown no token here, and needs none there.
        """
        departure, principal = self._node.core.handovers.departures.get(self._name), self._principal
        if departure is None or self._node.security is None or not principal.name:
            return ""
        ticket = tickets.new_ticket()
        voucher = tickets.vouch_for(principal, self._name, departure.ticket, ticket)
        self._node.submit_detached(SendVoucher(voucher))
        return ticket

    # Sending

    def _send(self) -> None:
        self._is_due = False
        try:
            self._send_due()
        except Exception as error:  # noqa: BLE001 - the owner of the connection raises it
            self.fail(error)

    def _send_due(self) -> None:
        """Send answers, and deliveries within the credit, in one write."""
        if self._socket.is_closing:
            self._replies.clear()
            self._answered.set()
            return
        if self._socket.is_full or self._reading is not None:
            return  # both end with a `wake`
        frames: list[Frame] = list(self._replies)
        self._replies.clear()
        self._answered.set()
        if self._accepts:
            self._accepts = False
            frames.append(f.Accepted(self._accepted))
        if self._farewell is not None:
            self._write([*frames, self._farewell])
            self._socket.hang_up(1008, self._farewell.reason[:100])
            if not self.ended.done():
                self.ended.set_result(None)
            return
        if self._credit > 0 and self.is_current():
            frames += self._next_deliveries()
        if frames:
            self._write(frames)

    def _write(self, frames: Sequence[Frame]) -> None:
        self._socket.write(encoded(frames, self._codec, self._version, self._node.counters))

    # Deliveries

    def _next_deliveries(self) -> list[f.Deliveries]:
        """Return the next deliveries as frames; deliveries on the disk come later."""
        core, node = self._node.core, self._node
        limit = min(CHUNK, self._credit)
        session = core.sessions[self._name]
        taken = self._take(limit)
        latest = node.storage.latest
        if all(pending.position in latest for _, pending in taken):
            if len(taken) == limit:
                self.wake()
            return self._frames(taken, latest, session)
        self._reading = node.spawn(self._read(taken, session))
        return []

    def _take(self, limit: int) -> Taken:
        return self._node.core.deliveries.next(self._name, limit, self._node.clock())

    async def _read(self, taken: Taken, session: Session) -> None:
        """Send deliveries from the disk."""
        try:
            entries = await self._node.entries([pending.position for _, pending in taken])
            self._write(self._frames(taken, entries, session))
        except Exception as error:  # noqa: BLE001 - the owner of the connection raises it
            self.fail(error)
        finally:
            self._reading = None
            self.wake()

    def _frames(self, taken: Taken, entries: Mapping[int, JournalEntry], session: Losing) -> list[f.Deliveries]:
        """Return deliveries as frames, without events that the client may not read; note the losses."""
        parts: list[list[f.Delivery]] = []
        if taken:
            core = self._node.core
            present = core.sessions.get(self._name)
            identified = self._name in core.replicas.holders or (present is not None and present.doubt > 0)
            may_have = self._may_have if self._may_read is not None else None
            found = delivery_parts(taken, entries, may_have, as_json=self._codec is JSON_CODEC, identified=identified)
            session.dropped += found.missing
            if found.withheld:
                self._node.submit_detached(Withhold(self._name, found.withheld))
            parts = found.parts
        if session.dropped > self._told_dropped:
            self._told_dropped = session.dropped
            losses.warn(session, parts[0][0].number if parts else session.sent)
            parts = parts or [[]]
        sent = sum(map(len, parts))
        self._credit -= sent
        self._node.counters.deliveries += sent
        return [f.Deliveries(part, self._told_dropped) for part in parts]

    def _may_have(self, number: int, entry: JournalEntry) -> bool:
        assert self._may_read is not None
        if not (number <= self._waited or rights.is_letter(entry.event)):
            return True
        return self._may_read(msgpack.decode(entry.event))
