"""Sessions with devices: the checks find cores that treat devices badly."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from tools.simulation.cores import failure

from fieldfare.core.device_places import Device, DevicePlaces
from fieldfare.core.devices import Devices
from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING
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


def the_fastest_device_decides_when_an_event_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: Devices, name: str) -> None:
        session = self._sessions[name]
        number = max((one.acknowledged for one in self.of(name).values()), default=0)
        if number > session.acknowledged:
            session.sent = max(session.sent, number)
            self._deliveries.acknowledge(name, number)

    patch.setattr(Devices, "_advance", hasty)


def places_stay_behind_when_a_session_moves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Devices, "arrive", lambda *_: None)


def places_are_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DevicePlaces, "store_changed", lambda self: self._changed.clear())


def devices_begin_behind_everything_that_a_replica_has(patch: pytest.MonkeyPatch) -> None:
    def late(self: Devices, name: str, now: float) -> None:
        last = self._sessions[name].count
        for device in list(self.of(name)):
            self.places.set(name, device, Device(last, sent=last, last_seen=now))

    patch.setattr(Devices, "taken_over", late)


@pytest.mark.parametrize(
    "plant",
    [
        the_fastest_device_decides_when_an_event_is_forgotten,
        places_stay_behind_when_a_session_moves,
        places_are_not_written,
    ],
)
def test_faulty_devices_are_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any("device" in failure(plan) for plan in plans(30))


def test_devices_that_begin_too_late_after_a_take_over_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (
        Step(0.0, SubscribeShared("one", 0)),
        Step(0.0, Settle()),
        Step(0.0, Lose(leaf=12, refuge=31)),
        Step(0.0, Publish(51, (2,))),
    )
    plan = Plan(868, "simple", (1, 1), steps, replicas=1, clients=2, members=1, copies=True)
    assert failure(plan) == ""
    devices_begin_behind_everything_that_a_replica_has(monkeypatch)
    assert "is missing" in failure(plan)


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


def test_a_new_device_asks_the_others_again_if_their_node_is_gone_for_good() -> None:
    """Found by seed 1400017256: it knew of no replica, and its node waited for the lost one."""
    steps = (Step(0.0, Lose(51, 36, unheard=True)), Step(0.0, AddDevice(51)))
    assert failure(Plan(1400017256, "simple", (3, 1), steps, replicas=2, members=1, copies=True)) == ""
