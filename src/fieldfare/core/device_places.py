"""`DevicePlaces`: how far each device of a session has come in the queue of waiting events, durably."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from fieldfare.core.base import Base
from fieldfare.core.sessions import SessionTable
from fieldfare.core.watchers import SessionWatcher
from fieldfare.protocol.handover import DevicePlace
from fieldfare.protocol.journal import Row, StoredRows

DEVICE: Final = "device"
"""Kind of the rows with the places of devices."""


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


def device_at(place: DevicePlace, now: float) -> Device:
    """Return a device at a place that a row or another node has kept."""
    acknowledged, dropped, lost, warned = place
    return Device(acknowledged, acknowledged, 0, dropped, lost, warned, last_seen=now)


class DevicePlaces(SessionWatcher):
    """The devices of all sessions of a node, and of the replicas there."""

    def __init__(self, base: Base, sessions: SessionTable) -> None:
        """Begin without devices, for the sessions of a broker."""
        self._buffer = base.buffer
        self._sessions = sessions
        self._all: dict[str, dict[str, Device]] = {}
        self._changed: dict[tuple[str, str], None] = {}

    def of(self, name: str) -> Mapping[str, Device]:
        """Return the devices of a session by name; none for a session without devices."""
        return self._all.get(name, {})

    def names(self) -> list[str]:
        """Return the names of the sessions with devices."""
        return list(self._all)

    def set(self, name: str, device: str, one: Device) -> None:
        """Put a device, known or new, at a place."""
        self._all.setdefault(name, {})[device] = one
        self.note(name, device)

    def remove(self, name: str, device: str) -> None:
        """Forget a device and its place; a session without devices is like any other."""
        del self._all[name][device]
        self.note(name, device)
        if not self._all[name]:
            del self._all[name]

    def is_on_the_way(self, name: str, number: int) -> bool:
        """Tell whether a device was sent a delivery and has not acknowledged it."""
        return any(one.acknowledged < number <= one.sent for one in self.of(name).values())

    def miss(self, name: str, number: int) -> None:
        """Count a dropped delivery for each device that lacks it."""
        for device, one in self.of(name).items():
            if number > max(one.acknowledged, one.lost):
                one.dropped, one.lost = one.dropped + 1, number
                self.note(name, device)

    def session_ended(self, name: str) -> None:
        """Forget the devices of a session that has ended or left."""
        for device in self._all.pop(name, {}):
            self.note(name, device)

    # Rows and recovery

    def note(self, name: str, device: str) -> None:
        """Write the row of a device with the present step."""
        self._changed[name, device] = None

    def store_changed(self) -> None:
        """At the end of a step: write the rows of changed devices, once for all changes of the step."""
        changed, self._changed = self._changed, {}
        for name, device in changed:
            one = self.of(name).get(device)
            self._buffer.store(Row(DEVICE, (name, device), None if one is None else list(one.place)))

    def restore(self, stored: StoredRows, now: float) -> None:
        """Recover from stored rows; the log may have lost its end, and the numbers must not be given again."""
        for (name, device), row in stored.get(DEVICE, {}).items():
            one = device_at(DevicePlace(*row), now)
            self._all.setdefault(str(name), {})[str(device)] = one
            session = self._sessions[str(name)]
            session.count = max(session.count, one.acknowledged)

    def finish_restore(self) -> None:
        """After the last entry of the log: an earlier process may have sent all of it."""
        for name, devices in self._all.items():
            for one in devices.values():
                one.sent_before = self._sessions[name].count
