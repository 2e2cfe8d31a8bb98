"""`Devices`: sessions with several devices of one user. Each event goes to every device, in the same order.

A device is a member of its session, like a worker (`members`), in the other mode: workers share the events, devices
get a copy each. The events wait once, in `Session.pending`, until the slowest device has acknowledged them; a device
is only a place in that queue. The place is durable: a device that was away goes on behind its last acknowledgement.
The first device gets all that waits for the session; a further one begins now, or with the oldest waiting event.

A device ends when it says so, when an administrator removes it, or after the life of a session without a connection,
if other devices are left. The last device takes the session along. Waiting events beyond the limit of a session are
dropped, the oldest first, and each device hears how many it has missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from fieldfare.core import losses
from fieldfare.core.handover_table import HandoverInput
from fieldfare.core.state import INTERNAL, Pending, RequestRefused
from fieldfare.protocol.handover import DevicePlace
from fieldfare.protocol.journal import Row, StoredRows

if TYPE_CHECKING:
    from fieldfare.core.core import Core

DEVICE: Final = "device"
"""Kind of the rows with the places of devices."""
SINCE: Final = 3
"""First version of nodes that take the places of devices along."""
MOST_DEVICES: Final = 100
LONGEST_NAME: Final = 200


class Device(msgspec.Struct):
    """How far one device of a session has come in the queue of events."""

    acknowledged: int
    """Number of the last acknowledged delivery."""
    sent: int = 0
    """Number of the last delivery that the present connection has sent."""
    sent_before: int = 0
    """Number of the last delivery that an earlier connection may have sent."""
    dropped: int = 0
    """How many deliveries the device has missed in all."""
    lost: int = 0
    """Number of the last missed delivery: a restart must not count it again."""
    warned: int = 0
    """Number of missed deliveries that the device has confirmed to know."""
    warning: tuple[int, int] = 0, 0
    """Number of missed deliveries that the device is being told, and the delivery that carries the warning."""
    member: str = ""
    """Name of the present connection; empty: the device is away."""
    last_seen: float = 0.0

    @property
    def place(self) -> DevicePlace:
        """The part of the device that rows and other nodes keep."""
        return DevicePlace(self.acknowledged, self.dropped, self.lost, self.warned)


class Devices:
    """The devices of all sessions of a node, and of the replicas there."""

    def __init__(self, core: Core) -> None:
        """Serve the sessions of a broker."""
        self._core = core
        self._all: dict[str, dict[str, Device]] = {}
        self._changed: dict[tuple[str, str], None] = {}

    def of(self, name: str) -> Mapping[str, Device]:
        """Return the devices of a session by name; none for a session without devices."""
        return self._all.get(name, {})

    def is_open(self, name: str) -> bool:
        """Tell whether a device of a session is connected."""
        return any(one.member for one in self.of(name).values())

    def description(self, name: str) -> str:
        """Return a sentence about the devices of a session, for people."""
        return f"the session {name} has the devices {', '.join(sorted(self.of(name)))} at {self._core.broker.name}"

    # Devices that come and go

    def check(self, name: str, device: str) -> None:
        """Refuse a device with a bad name, or of a session with workers."""
        if name.startswith(INTERNAL):
            raise RequestRefused(f"the session {name} has no devices")
        if len(device) > LONGEST_NAME:
            raise RequestRefused(f"the name of a device has at most {LONGEST_NAME} characters")
        if self._core.members.of(name) is not None:
            raise RequestRefused(f"{self._core.members.description(name)}, and a device cannot join workers")
        if len(self.of(name)) >= MOST_DEVICES and device not in self.of(name):
            raise RequestRefused(f"the session {name} has {MOST_DEVICES} devices, and no more are allowed")

    def attach(self, name: str, device: str, member: str, now: float, *, oldest: bool = False) -> Device:
        """Connect a device, known or new; with `oldest`, a new one begins with the oldest waiting event."""
        session, devices = self._core.sessions[name], self._all.setdefault(name, {})
        one = devices.get(device)
        if one is None:
            begin = session.acknowledged if oldest or not devices else session.count
            one = devices[device] = Device(begin, sent=begin)
            if len(devices) == 1:
                one.sent_before = max(session.sent, session.sent_before)
                one.dropped, one.warned = session.dropped, session.warned
            self._note(name, device)
            self._core.replicas.mark_changed(name)
        one.sent_before, one.sent = max(one.sent_before, one.sent), one.acknowledged
        one.member, one.last_seen = member, now
        return one

    def detach(self, name: str, member: str, now: float) -> None:
        """Note that the connection of a device has gone; after the last, the session is away."""
        for one in self.of(name).values():
            if one.member == member:
                one.member, one.last_seen = "", now
                if not self.is_open(name):
                    self._core.sessions.detach(name, now)

    def remove(self, name: str, device: str) -> None:
        """Forget a device and its place; events that waited for nobody else are forgotten, too."""
        if device not in self.of(name):
            raise RequestRefused(f"the session {name} has no device {device}")
        self._core.handovers.states.check(name, HandoverInput.USE)
        self._core.handovers.cancel_departure(name)
        del self._all[name][device]
        self._note(name, device)
        if self._all[name]:
            self._advance(name)
        else:
            del self._all[name]
        self._core.replicas.mark_changed(name)

    def expire(self, now: float, life: float) -> None:
        """Remove devices after `life` seconds without a connection, unless the session has no other."""
        for name in [name for name in self._all if self._core.handovers.status(name) == "here"]:
            devices = self._all[name]
            for device in [label for label, one in devices.items() if not one.member and now - one.last_seen > life]:
                if len(devices) > 1 and name not in self._core.handovers.departures:
                    self.remove(name, device)
            self._advance(name)

    def ended(self, name: str) -> None:
        """Forget the devices of a session that has ended or left."""
        for device in self._all.pop(name, {}):
            self._note(name, device)

    # Deliveries

    def take(self, name: str, device: str, member: str, limit: int, now: float) -> list[tuple[int, Pending]]:
        """Return the next deliveries to send to the present connection of a device."""
        one = self.of(name).get(device)
        if one is None or one.member != member:
            return []
        taken = self._core.deliveries.next(name, limit, now, one)
        session = self._core.sessions[name]
        session.sent = max(session.sent, one.sent)
        return taken

    def acknowledge(self, name: str, device: str, number: int) -> None:
        """Move a device behind a delivery, and forget the deliveries that no device lacks."""
        core, one = self._core, self.of(name).get(device)
        core.handovers.states.check(name, HandoverInput.USE)
        if one is None:
            return  # removed meanwhile
        last = max(one.sent, one.sent_before)
        if number > last:
            raise RequestRefused(f"delivery {number} was not sent to {device}: the last was {last}")
        if number > one.acknowledged:
            one.acknowledged, one.sent = number, max(one.sent, number)
            losses.confirm(one, number)
            self._note(name, device)
            self._advance(name)

    def _advance(self, name: str) -> None:
        """Acknowledge for the session what no device lacks."""
        session = self._core.sessions[name]
        number = min(one.acknowledged for one in self._all[name].values())
        if number > session.acknowledged:
            session.sent = max(session.sent, number)  # a device that began later was never sent the events before
            self._core.deliveries.acknowledge(name, number)

    def is_on_the_way(self, name: str, number: int) -> bool:
        """Tell whether a device was sent a delivery and has not acknowledged it."""
        return any(one.acknowledged < number <= one.sent for one in self.of(name).values())

    def miss(self, name: str, number: int) -> None:
        """Count a dropped delivery for each device that lacks it."""
        for device, one in self.of(name).items():
            if number > max(one.acknowledged, one.lost):
                one.dropped, one.lost = one.dropped + 1, number
                self._note(name, device)

    # Handover and replicas

    def may_go(self, name: str, node: str, *, offered: bool) -> bool:
        """Tell whether a session can go to a node: with connected devices, only on the wish of an administrator.

        A node of an older version would forget the devices.
        """
        return not self.of(name) or ((offered or not self.is_open(name)) and self._core.version_of(node) >= SINCE)

    def places(self, name: str) -> dict[str, DevicePlace]:
        """Return the places of all devices, for the target of a handover."""
        return {device: one.place for device, one in self.of(name).items()}

    def arrive(self, name: str, places: Mapping[str, DevicePlace], now: float) -> None:
        """Take the devices of a session that has come from another node, which may have sent them everything."""
        session = self._core.sessions[name]
        for device, place in places.items():
            one = self._all.setdefault(name, {})[device] = _of_place(place, now)
            one.sent_before = session.count
            self._note(name, device)

    def set_names(self, name: str, devices: Iterable[str], now: float) -> None:
        """Take the names of a replica's devices; the places follow from a take-over."""
        wanted, known = set(devices), self._all.setdefault(name, {})
        for device in sorted(wanted ^ known.keys()):
            if device in wanted:
                known[device] = Device(0, last_seen=now)
            else:
                del known[device]
            self._note(name, device)
        if not known:
            del self._all[name]

    def taken_over(self, name: str, now: float) -> None:
        """Let all devices begin with the first waiting event: a replica does not know the places."""
        first = self._core.sessions[name].acknowledged
        for device in self.of(name):
            self._all[name][device] = Device(first, sent=first, last_seen=now)
            self._note(name, device)

    # Rows and recovery

    def _note(self, name: str, device: str) -> None:
        self._changed[name, device] = None

    def store_changed(self) -> None:
        """At the end of a step: write the rows of changed devices, once for all changes of the step."""
        changed, self._changed = self._changed, {}
        for name, device in changed:
            one = self.of(name).get(device)
            self._core.buffer.store(Row(DEVICE, (name, device), None if one is None else list(one.place)))

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the log may have lost its end, and the numbers must not be given again."""
        for (name, device), row in stored.get(DEVICE, {}).items():
            one = _of_place(DevicePlace(*row), self._core.now)
            self._all.setdefault(str(name), {})[str(device)] = one
            session = self._core.sessions[str(name)]
            session.count = max(session.count, one.acknowledged)

    def finish_restore(self) -> None:
        """After the last entry of the log: an earlier process may have sent all of it."""
        for name, devices in self._all.items():
            for one in devices.values():
                one.sent_before = self._core.sessions[name].count


def _of_place(place: DevicePlace, now: float) -> Device:
    acknowledged, dropped, lost, warned = place
    return Device(acknowledged, acknowledged, 0, dropped, lost, warned, last_seen=now)
