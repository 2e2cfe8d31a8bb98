"""The film of a city: drives are held against a slow twin, and a run against what must come of it, without the checker."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.mobility import subscribers
from fieldfare.mobility.sessions import MobileSession
from fieldfare.routing.publisher_policies import PublisherPolicy
from fieldfare.simulation.trace import Delivered, Published, Subscribed
from fieldfare_lab.mobility import streets
from fieldfare_lab.mobility.film import DISPATCHER, FREE_TAXIS, NEWS, OFFICE, Film, antennas, record, rides_near

SECONDS = 40.0


@pytest.fixture(scope="module")
def film() -> Film:
    return record(8, SECONDS, 1)


# Streets


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_a_drive_is_on_streets_and_hears_the_antenna_of_its_cell(seed: int, tunnel: bool) -> None:
    way = streets.drive(Random(seed), SECONDS, (12, 22), tunnel=tunnel)
    known = {frozenset(street) for street in streets.streets()}
    for a, b in pairwise(way):
        assert a.time < b.time
        assert (frozenset((a.place, b.place)) in known) != a.below
        assert not a.below or {a.place, b.place} == set(streets.TUNNEL)
    assert not any(a.place == c.place for a, _, c in zip(way, way[1:], way[2:], strict=False))
    assert way[-1].time >= SECONDS
    contacts = streets.contacts(way)
    assert all(a[1] != b[1] for a, b in pairwise(contacts))
    times = [time for time, _ in contacts]
    for step in range(int(SECONDS * 10)):
        time = step / 10 + 1e-3
        if all(abs(time - other) > 1e-2 for other in times):
            heard = [cell for since, cell in contacts if since <= time][-1]
            below = [moment.below for moment in way if moment.time <= time][-1]
            assert heard == ("" if below else streets.cell_at(streets.position(way, time)))
    assert contacts[0][1]
    assert [cell for since, cell in contacts if since <= SECONDS][-1]
    assert tunnel or all(cell for _, cell in contacts)


def test_antennas_are_a_tree_over_the_cells() -> None:
    topology, places = antennas()
    assert len(topology.brokers) == 21
    assert len(topology.edges) == 20
    assert not topology.has_cycle
    assert {cell: places[cell] for cell in streets.cells()} == {cell: streets.centre(cell) for cell in streets.cells()}
    assert len(set(places.values())) == 21


# The run


def got(film: Film, client: str) -> list[tuple[str, int]]:
    return [(r.publisher, r.sequence) for r in film.trace if isinstance(r, Delivered) and r.client == client]


def published(film: Film, filter: str) -> list[Published]:
    wanted = parse(filter)
    return [r for r in film.trace if isinstance(r, Published) and wanted.matches(r.event)]


def away(film: Film, client: str) -> list[tuple[float, float]]:
    contacts = streets.contacts(film.drives[client])
    times = [(a, b) for (a, cell), (b, _) in pairwise(contacts) if not cell]
    return [(a + film.start, b + film.start) for a, b in times]


def test_the_checker_finds_nothing(film: Film) -> None:
    assert film.violations == []
    assert film.lost == 0
    assert len(film.handovers) > 15


@pytest.mark.parametrize(
    ("client", "filter"),
    [(OFFICE, "type = 'taxi'"), (DISPATCHER, FREE_TAXIS), *((f"taxi {number}", NEWS) for number in range(1, 9))],
)
def test_who_always_wants_the_same_gets_all_of_it_once_and_in_order(film: Film, client: str, filter: str) -> None:
    due: defaultdict[str, list[int]] = defaultdict(list)
    for event in published(film, filter):
        due[event.client].append(event.sequence)
    came: defaultdict[str, list[int]] = defaultdict(list)
    for publisher, sequence in got(film, client):
        if publisher in due:
            came[publisher].append(sequence)
    assert due
    assert came == due


def test_what_waits_for_a_taxi_in_the_tunnel_is_what_it_gets_then(film: Film) -> None:
    seen = 0
    when = {(r.client, r.sequence): r.time for r in film.trace if isinstance(r, Published)}
    for client in film.drives:
        for left, back in away(film, client):
            counts = [count for time, name, count in film.waiting if name == client and left < time + film.start < back]
            late = [
                when[r.publisher, r.sequence]
                for r in film.trace
                if isinstance(r, Delivered) and r.client == client and back <= r.time < back + 0.5
            ]
            most = sum(time < back for time in late)
            least = sum(left + 0.5 < time < back - 0.5 for time in late)  # others are on their way at the last look
            assert least <= (counts[-1] if counts else 0) <= most
            assert not any(isinstance(r, Delivered) and r.client == client and left < r.time < back for r in film.trace)
            seen += least
    assert seen > 0
    assert {name: count for _, name, count in film.waiting if count} != {}
    assert all(count == 0 for count in {name: count for _, name, count in film.waiting}.values())


def test_there_is_a_handover_for_each_change_of_antenna(film: Film) -> None:
    for client, way in film.drives.items():
        cells = [cell for time, cell in streets.contacts(way) if cell and time < SECONDS]
        changes = [(a, b) for a, b in pairwise(cells) if a != b]
        mine = sorted(one for one in film.handovers if one.client == client)
        assert [(one.source, one.target) for one in mine] == changes
        assert all(one.time < one.done < one.time + 1 for one in mine)


def test_what_a_taxi_wants_follows_it(film: Film) -> None:
    for client, way in film.drives.items():
        if client == DISPATCHER:
            continue
        settled = [(time, cell) for time, cell in streets.contacts(way) if time < SECONDS - 1]
        asked = [r.filter for r in film.trace if isinstance(r, Subscribed) and (r.client, r.id) == (client, "rides")]
        assert len(asked) > 1
        assert asked[-1] == parse(rides_near([cell for _, cell in settled if cell][-1]))


# Would it be noticed?


def test_the_same_seed_gives_the_same_film() -> None:
    assert record(2, 8, 3) == record(2, 8, 3) != record(2, 8, 4)


def test_publishers_that_do_not_wait_lose_events() -> None:
    careless = record(3, SECONDS, 1, policy=PublisherPolicy("careless"))
    assert careless.lost > 0
    assert len(got(careless, OFFICE)) < len(published(careless, "type = 'taxi'"))


def test_a_session_that_comes_empty_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(session: MobileSession, aside: object) -> MobileSession:
        return MobileSession(last=session.last, highest=session.highest, floor=session.highest)

    monkeypatch.setattr(subscribers, "merged", forgetful)
    assert record(8, SECONDS, 1).lost > 0


def test_rides_near_are_those_around() -> None:
    assert parse(rides_near("a1")).matches(Event({"type": "ride", "cell": "b2"}))
    assert not parse(rides_near("a1")).matches(Event({"type": "ride", "cell": "c1"}))
