"""`Devices`: sessions with several devices of one user. Each event goes to every device, in the same order.

A device is a member of its session, like a worker (`members`), in the other mode: workers share the events, devices
get a copy each. The events wait once, in `Session.pending`, until the slowest device has acknowledged them; a device
is only a place in that queue (`device_places`). The place is durable: a device that was away goes on behind its last
acknowledgement. The first device gets all that waits for the session; a further one begins now, or with the oldest
waiting event.

A device ends when it says so, when an administrator removes it, or after the life of a session without a connection,
if other devices are left. The last device takes the session along. Waiting events beyond the limit of a session are
dropped, the oldest first, and each device hears how many it has missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fieldfare.core import losses
from fieldfare.core.base import Base
from fieldfare.core.deliveries import Deliveries
from fieldfare.core.device_places import Device, DevicePlaces, device_at
from fieldfare.core.handover_table import HandoverInput
from fieldfare.core.sessions import SessionTable
from fieldfare.core.state import INTERNAL, Pending, RequestRefused
from fieldfare.protocol.handover import DevicePlace

SINCE: Final = 3
"""First version of nodes that take the places of devices along."""
MOST_DEVICES: Final = 100
LONGEST_NAME: Final = 200


class Devices:
    """The devices of all sessions of a node, which come, go, and acknowledge."""

    def __init__(self, base: Base, sessions: SessionTable, places: DevicePlaces, deliveries: Deliveries) -> None:
        """Serve the sessions of a broker."""
        self._base = base
        self._sessions = sessions
        self._deliveries = deliveries
        self.places = places
        self.of = places.of

    def is_open(self, name: str) -> bool:
        """Tell whether a device of a session is connected."""
        return any(one.member for one in self.of(name).values())

    def description(self, name: str) -> str:
        """Return a sentence about the devices of a session, for people."""
        return f"the session {name} has the devices {', '.join(sorted(self.of(name)))} at {self._base.name}"

    # Devices that come and go

    def check(self, name: str, device: str) -> None:
        """Refuse a device with a bad name, or one too many."""
        if name.startswith(INTERNAL):
            raise RequestRefused(f"the session {name} has no devices")
        if len(device) > LONGEST_NAME:
            raise RequestRefused(f"the name of a device has at most {LONGEST_NAME} characters")
        if len(self.of(name)) >= MOST_DEVICES and device not in self.of(name):
            raise RequestRefused(f"the session {name} has {MOST_DEVICES} devices, and no more are allowed")

    def attach(self, name: str, device: str, member: str, now: float, *, oldest: bool = False) -> Device:
        """Connect a device, known or new; with `oldest`, a new one begins with the oldest waiting event."""
        session, devices = self._sessions[name], self.of(name)
        one = devices.get(device)
        if one is None:
            begin = session.acknowledged if oldest or not devices else session.count
            one = Device(begin, sent=begin)
            if not devices:
                one.sent_before = max(session.sent, session.sent_before)
                one.dropped, one.warned = session.dropped, session.warned
            self.places.set(name, device, one)
            self._sessions.note_changed(name)
        one.sent_before, one.sent = max(one.sent_before, one.sent), one.acknowledged
        one.member, one.last_seen = member, now
        return one

    def detach(self, name: str, member: str, now: float) -> bool:
        """Note that the connection of a device has gone; tell whether it was the last of the session."""
        was_last = False
        for one in self.of(name).values():
            if one.member == member:
                one.member, one.last_seen = "", now
                was_last = not self.is_open(name)
        return was_last

    def remove(self, name: str, device: str) -> None:
        """Forget a device and its place; events that waited for nobody else are forgotten, too."""
        if device not in self.of(name):
            raise RequestRefused(f"the session {name} has no device {device}")
        self._sessions.states.check(name, HandoverInput.USE)
        self.places.remove(name, device)
        self._advance(name)
        self._sessions.note_changed(name)

    def expire(self, now: float, life: float) -> None:
        """Remove devices after `life` seconds without a connection, unless the session has no other."""
        for name in [name for name in self.places.names() if self._sessions.states.status(name) == "here"]:
            devices = self.of(name)
            for device in [label for label, one in devices.items() if not one.member and now - one.last_seen > life]:
                if len(devices) > 1 and name not in self._sessions.states.departures:
                    self.remove(name, device)
            self._advance(name)

    # Deliveries

    def take(self, name: str, device: str, member: str, limit: int, now: float) -> list[tuple[int, Pending]]:
        """Return the next deliveries to send to the present connection of a device."""
        one = self.of(name).get(device)
        if one is None or one.member != member:
            return []
        taken = self._deliveries.next(name, limit, now, one)
        session = self._sessions[name]
        session.sent = max(session.sent, one.sent)
        return taken

    def acknowledge(self, name: str, device: str, number: int) -> None:
        """Move a device behind a delivery, and forget the deliveries that no device lacks."""
        one = self.of(name).get(device)
        self._sessions.states.check(name, HandoverInput.USE)
        if one is None:
            return  # removed meanwhile
        last = max(one.sent, one.sent_before)
        if number > last:
            raise RequestRefused(f"delivery {number} was not sent to {device}: the last was {last}")
        if number > one.acknowledged:
            one.acknowledged, one.sent = number, max(one.sent, number)
            losses.confirm(one, number)
            self.places.note(name, device)
            self._advance(name)

    def _advance(self, name: str) -> None:
        """Acknowledge for the session what no device lacks."""
        session, devices = self._sessions[name], self.of(name)
        number = min((one.acknowledged for one in devices.values()), default=0)
        if number > session.acknowledged:
            session.sent = max(session.sent, number)  # a device that began later was never sent the events before
            self._deliveries.acknowledge(name, number)

    # Handover and replicas

    def may_go(self, name: str, node: str, *, offered: bool) -> bool:
        """Tell whether a session can go to a node: with connected devices, only on the wish of an administrator.

        A node of an older version would forget the devices.
        """
        return not self.of(name) or ((offered or not self.is_open(name)) and self._base.versions.of(node) >= SINCE)

    def arrive(self, name: str, places: Mapping[str, DevicePlace], now: float) -> None:
        """Take the devices of a session that has come from another node, which may have sent them everything."""
        for device, place in places.items():
            one = device_at(place, now)
            one.sent_before = self._sessions[name].count
            self.places.set(name, device, one)

    def set_names(self, name: str, devices: Iterable[str], now: float) -> None:
        """Take the names of a replica's devices; the places follow from a take-over."""
        for device in sorted(set(devices) ^ self.of(name).keys()):
            if device in self.of(name):
                self.places.remove(name, device)
            else:
                self.places.set(name, device, Device(0, last_seen=now))

    def taken_over(self, name: str, now: float) -> None:
        """Let all devices begin with the first waiting event: a replica does not know the places."""
        first = self._sessions[name].acknowledged
        for device in list(self.of(name)):
            self.places.set(name, device, Device(first, sent=first, last_seen=now))
