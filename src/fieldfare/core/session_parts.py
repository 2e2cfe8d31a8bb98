"""`SessionParts`: the sessions of a node, and all that the node holds for each of them."""

from __future__ import annotations

from typing import NamedTuple

from fieldfare.core.base import Base
from fieldfare.core.deliveries import Deliveries
from fieldfare.core.device_places import DevicePlaces
from fieldfare.core.devices import Devices
from fieldfare.core.dynamic_filters import DynamicFilters
from fieldfare.core.members import Members
from fieldfare.core.session_descriptions import SessionDescriptions
from fieldfare.core.sessions import SessionTable
from fieldfare.core.state import Policy
from fieldfare.routing.places import Places


class SessionParts(NamedTuple):
    """The parts of a core on which handovers and replicas stand."""

    sessions: SessionTable
    device_places: DevicePlaces
    deliveries: Deliveries
    dynamic: DynamicFilters
    members: Members
    devices: Devices
    descriptions: SessionDescriptions


def session_parts(base: Base, places: Places, *, limit: int, queue: int, policy: Policy) -> SessionParts:
    """Return the parts of a core without sessions; see `Core` for the arguments."""
    sessions = SessionTable(base)
    device_places = DevicePlaces(base, sessions)
    deliveries = Deliveries(base, sessions, device_places, limit=limit, queue=queue, policy=policy)
    dynamic = DynamicFilters(base, sessions, places)
    members = Members(base, sessions, deliveries)
    devices = Devices(base, sessions, device_places, deliveries)
    descriptions = SessionDescriptions(base, sessions, dynamic, device_places)
    return SessionParts(sessions, device_places, deliveries, dynamic, members, devices, descriptions)
