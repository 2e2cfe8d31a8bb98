"""Sessions with devices: the checks find cores that treat devices badly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import pytest
from tools.simulation.cores import failure

from fieldfare.core.core import Core
from fieldfare.core.devices import Device, Devices
from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING
from fieldfare.protocol.handover import DevicePlace
from fieldfare.simulation.actions.clients import Publish
from fieldfare.simulation.actions.members import AddDevice, SubscribeShared
from fieldfare.simulation.actions.nodes import Lose, Settle
from fieldfare.simulation.checker import check_devices, check_durable
from fieldfare.simulation.plans import Plan, Step, draw
from fieldfare.simulation.trace import (
    DeliveredToDevice,
    DeviceAdded,
    DeviceRemoved,
    Published,
    Quiet,
    Record,
    Subscribed,
)


def plans(count: int) -> list[Plan]:
    return list(itertools.islice((plan for seed in itertools.count() if (plan := draw(seed)).copies), count))


def test_random_runs_with_devices() -> None:
    assert [problem for plan in plans(8) if (problem := failure(plan))] == []


class Hasty(Devices):
    """Devices of which the fastest decides when an event is forgotten."""

    def _advance(self, name: str) -> None:
        session = self._core.sessions[name]
        number = max(one.acknowledged for one in self._all[name].values())
        if number > session.acknowledged:
            session.sent = max(session.sent, number)
            self._core.deliveries.acknowledge(name, number)


class Lost(Devices):
    """Devices whose places stay behind when their session moves."""

    def arrive(self, name: str, places: Mapping[str, DevicePlace], now: float) -> None:
        """Do nothing."""


class Unwritten(Devices):
    """Devices without rows."""

    def store_changed(self) -> None:
        """Do nothing."""
        self._changed = {}


class Ahead(Devices):
    """Devices that begin behind everything that a replica has."""

    def taken_over(self, name: str, now: float) -> None:
        """Take the last delivery for the place of all devices."""
        last = self._core.sessions[name].count
        for device in self.of(name):
            self._all[name][device] = Device(last, sent=last, last_seen=now)


def with_devices(kind: type[Devices]) -> Callable[..., Core]:
    class Faulty(Core):
        def __init__(self, *arguments: object, **options: object) -> None:
            self._devices: Devices = kind(self)
            super().__init__(*arguments, **options)  # type: ignore[arg-type]

        @property
        def devices(self) -> Devices:
            return self._devices

        @devices.setter
        def devices(self, _: Devices) -> None:
            pass

    return Faulty


@pytest.mark.parametrize("kind", [Hasty, Lost, Unwritten])
def test_faulty_devices_are_found(kind: type[Devices]) -> None:
    assert any("device" in failure(plan, with_devices(kind)) for plan in plans(30))


def test_devices_that_begin_too_late_after_a_take_over_are_found() -> None:
    steps = (
        Step(0.0, SubscribeShared("one", 0)),
        Step(0.0, Settle()),
        Step(0.0, Lose(leaf=12, refuge=31)),
        Step(0.0, Publish(51, (2,))),
    )
    plan = Plan(868, "simple", (1, 1), steps, replicas=1, clients=2, members=1, copies=True)
    assert failure(plan) == ""
    assert "is missing" in failure(plan, with_devices(Ahead))


A, B = Event({"x": 1}), Event({"x": 2})


def trace(*gets: tuple[str, int], late: bool = False, removed: bool = False) -> list[Record]:
    """Two events of `bob`; devices of `anna` get some by number."""
    found: list[Record] = [Subscribed(0, 0, "b", "anna", "all", EVERYTHING), Quiet(0, 1)]
    found += [DeviceAdded(0, 2, "b", "anna", "tablet")] if late else []
    found += [Published(0, 3, "b", "bob", 1, A), Published(0, 4, "b", "bob", 2, B)]
    for number, (device, sequence) in enumerate(gets):
        about = "bob", sequence, (A, B)[sequence - 1], ("all",), 0
        found.append(DeliveredToDevice(0, 5 + number, "b", "anna", *about, device))
    found += [DeviceRemoved(0, 90, "b", "anna", "tablet")] if removed else []
    return [*found, Quiet(0, 99)]


def problems(some: list[Record]) -> list[str]:
    return [one.problem for one in check_devices(some, check_durable, advertisements=False, in_order=True)]


def test_devices_that_get_everything_are_fine() -> None:
    assert problems(trace(("phone", 1), ("laptop", 1), ("phone", 2), ("laptop", 2))) == []
    assert problems(trace(("phone", 1), ("phone", 2), ("tablet", 1), ("tablet", 2), late=True)) == []
    assert problems(trace(("phone", 1), ("phone", 2), ("tablet", 1), late=True, removed=True)) == []


@pytest.mark.parametrize(
    ("some", "problem"),
    [
        (trace(("phone", 1), ("phone", 2), ("laptop", 1)), "is missing"),
        (trace(("phone", 2), ("phone", 1)), "device phone"),
        (trace(("phone", 1), ("phone", 2), ("phone", 2)), "had been delivered before"),
        (
            trace(("phone", 1), ("phone", 2), ("tablet", 2), late=True),
            "('bob', 1) is missing, which another device has",
        ),
        (trace(("phone", 1), ("phone", 2), ("tablet", 2), ("tablet", 1), late=True), "device tablet"),
        (
            trace(("phone", 1), ("phone", 2), *[("tablet", 1)] * 2, ("tablet", 2), late=True),
            "had been delivered before",
        ),
    ],
)
def test_what_devices_lack_or_get_twice_is_found(some: list[Record], problem: str) -> None:
    found = problems(some)
    assert found
    assert any(problem in one for one in found)


def test_two_devices_that_come_at_once_are_two() -> None:
    """Both had the same name, and the node served them in turn: an event came to the name twice."""
    steps = (
        Step(0.0, SubscribeShared("two", 6)),
        Step(0.03, Publish(3, (5,))),
        Step(0.0, AddDevice(25)),
        Step(0.0, AddDevice(10, oldest=True)),
    )
    assert failure(Plan(400000933, "simple", (), steps, members=1, copies=True)) == ""
