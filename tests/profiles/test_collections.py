"""The tracking service and its messages, against a model that recomputes the content of each collection."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.examples import few
from tests.filters.strategies import value_sets
from tests.matching.strategies import filters, lists, singles, trees
from tests.tables.spaces import everyday, rectangles

from fieldfare.events import Event, Interval
from fieldfare.filters import Filter, ValueSet, parse
from fieldfare.filters.constraint import Constraint, all_of, any_of
from fieldfare.filters.filter import EVERYTHING, NOTHING
from fieldfare.profiles.collections import AccessError, Collection, CollectionMessage, Rule, TrackingService, View
from fieldfare.profiles.double_forest import DoubleForest
from fieldfare.profiles.event_profile import profile_of
from fieldfare.profiles.pairs import NaivePairing, Operator

ANYTHING = Rule(EVERYTHING)
ROCK, JAZZ, MUSIC = parse("tag = 'rock'"), parse("tag = 'jazz'"), parse("tag IN ('rock', 'jazz')")


def heads(messages: list[CollectionMessage]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(message.what, message.object.uri, message.recipients) for message in messages]


# Profiles


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"type": "photo", "taken": Interval(2024, 2025)}, "type = 'photo' AND taken BETWEEN 2024 AND 2025"),
        ({"place": {"city": "Helsinki"}}, "place IS OBJECT AND place.city = 'Helsinki'"),
        (
            {"tags": ["rock", "live", "rock"]},
            "ANY tags = 'rock' AND ANY tags = 'live' AND ALL tags IN ('rock', 'live')",
        ),
        ({"a": math.nan, "b": None, "c": True}, "a IS NAN AND b IS NULL AND c = TRUE"),
        ({}, "TRUE"),
    ],
)
def test_an_event_as_a_profile(event: dict[str, object], text: str) -> None:
    assert profile_of(event) == parse(text)
    assert profile_of(Event(event)) == parse(text)


@given(wanted=filters(), tree=trees)
def test_what_covers_the_profile_of_an_event_matches_it(wanted: Filter, tree: dict[str, object]) -> None:
    profile = profile_of(tree)
    assert profile.matches(tree, "covers")
    if wanted.covers(profile):
        assert wanted.matches(tree, "covers")
    if wanted.matches(tree, "overlaps"):
        assert wanted.overlaps(profile)


@given(values=value_sets(), make=st.sampled_from([Constraint, any_of, all_of]), value=st.one_of(singles, lists))
def test_a_query_covers_the_profile_of_just_what_it_matches(
    values: ValueSet, make: Callable[[ValueSet], Constraint], value: object
) -> None:
    wanted = Filter.where("a", make(values))
    assert wanted.covers(profile_of({"a": value})) == wanted.matches({"a": value}, "covers")


# Messages


def test_everybody_concerned_is_told_in_one_message() -> None:
    service = TrackingService([ANYTHING])
    for client in ("zoe", "ana", "ben"):
        service.add_query(client, "mine", MUSIC if client != "ben" else JAZZ, now=0)
    [message] = service.add_profile("cy", "cy/1", ROCK, now=5)
    assert (message.number, message.what, message.recipients) == (1, "added", ("ana", "zoe"))
    [message] = service.touch("cy", "cy/1", now=6)
    assert (message.number, message.what, message.recipients) == (2, "changed", ("ana", "zoe"))
    [message] = service.remove_profile("cy", "cy/1", ROCK, now=7)
    assert (message.number, message.what, message.recipients) == (3, "removed", ("ana", "zoe"))


def test_only_the_first_way_to_an_object_is_told_and_the_last() -> None:
    service = TrackingService([ANYTHING])
    assert service.add_profile("cy", "cy/1", ROCK, now=0) == []
    assert heads(service.add_query("ana", "rock", ROCK, now=1)) == [("added", "cy/1", ("ana",))]
    assert service.add_query("ana", "rock", MUSIC, now=1) == []
    assert service.add_query("ana", "all", MUSIC, now=1) == []
    assert service.add_query("ana", "all", MUSIC, now=1) == []
    assert service.add_profile("cy", "cy/1", JAZZ, now=2) == []
    assert service.knows("ana", "cy/1") == 5
    assert service.remove_profile("cy", "cy/1", ROCK, now=3) == []
    assert service.remove_query("ana", "rock", MUSIC, now=4) == []
    assert [thing.uri for thing in service.content("ana", "rock")] == []
    assert heads(service.remove_query("ana", "all", MUSIC, now=5)) == [("removed", "cy/1", ("ana",))]
    assert service.knows("ana", "cy/1") == 0


def test_an_object_that_moves_is_told_to_those_who_win_or_lose_it() -> None:
    service = TrackingService([ANYTHING])
    for client, query in (("rosa", ROCK), ("jo", JAZZ), ("mo", MUSIC)):
        service.add_query(client, "mine", query, now=0)
    service.replace_profiles("cy", "cy/1", [ROCK], now=1)
    moved = service.replace_profiles("cy", "cy/1", [JAZZ], now=2)
    assert heads(moved) == [("removed", "cy/1", ("rosa",)), ("added", "cy/1", ("jo",))]
    assert heads(service.replace_profiles("cy", "cy/1", [], now=3)) == [("removed", "cy/1", ("jo", "mo"))]
    assert service.replace_profiles("cy", "cy/1", [], now=3) == []
    assert service.get("mo", MUSIC) == []


def test_a_rule_must_cover_the_query() -> None:
    service = TrackingService([Rule(JAZZ), Rule(MUSIC, frozenset({"ana"}))])
    service.add_query("ana", "mine", ROCK, now=0)
    service.add_query("ben", "mine", JAZZ, now=0)
    for ask in (lambda: service.add_query("ben", "mine", ROCK, now=0), lambda: service.get("ben", MUSIC)):
        with pytest.raises(AccessError, match="no rule lets ben ask"):
            ask()
    with pytest.raises(AccessError):
        TrackingService([]).get("ana", ROCK)
    assert service.content("ben", "mine") == []


def test_a_query_that_is_no_longer_allowed_goes() -> None:
    service = TrackingService([ANYTHING])
    service.add_profile("cy", "cy/1", ROCK, now=0)
    service.add_query("ana", "mine", MUSIC, now=0)
    service.add_query("ana", "mine", ROCK, now=0)
    service.add_query("ben", "mine", MUSIC, now=0)
    assert heads(service.govern([Rule(ROCK)], now=1)) == [("removed", "cy/1", ("ben",))]
    assert [thing.uri for thing in service.content("ana", "mine")] == ["cy/1"]


def test_only_the_owner_changes_an_object() -> None:
    service = TrackingService([ANYTHING])
    service.add_profile("cy", "cy/1", ROCK, now=0)
    for change in (service.add_profile, service.remove_profile):
        with pytest.raises(AccessError, match="cy/1 belongs to cy"):
            change("eve", "cy/1", ROCK, now=1)
    with pytest.raises(AccessError, match="belongs to cy"):
        service.replace_profiles("eve", "cy/1", [JAZZ], now=1)
    with pytest.raises(AccessError, match="belongs to cy"):
        service.touch("eve", "cy/1", now=1)


def test_refusals() -> None:
    service = TrackingService([ANYTHING])
    with pytest.raises(ValueError, match="no event"):
        service.add_profile("cy", "cy/1", NOTHING, now=0)
    with pytest.raises(ValueError, match="no event"):
        service.add_query("ana", "mine", NOTHING, now=0)
    with pytest.raises(KeyError):
        service.touch("cy", "cy/1", now=0)
    with pytest.raises(KeyError):
        service.remove_query("ana", "mine", ROCK, now=0)
    service.add_profile("cy", "cy/1", ROCK, now=0)
    with pytest.raises(KeyError):
        service.remove_profile("cy", "cy/1", JAZZ, now=0)
    assert heads(service.add_query("ana", "mine", EVERYTHING, now=0)) == [("added", "cy/1", ("ana",))]


def test_who_pulls_is_not_told() -> None:
    service = TrackingService([ANYTHING])
    service.push("ana", False)
    service.add_query("ana", "mine", MUSIC, now=0)
    assert service.add_profile("cy", "cy/1", ROCK, now=1) == []
    assert [thing.uri for thing in service.sync("ana", "mine", {}).new] == ["cy/1"]
    service.push("ana", True)
    assert heads(service.remove_profile("cy", "cy/1", ROCK, now=2)) == [("removed", "cy/1", ("ana",))]


def test_sync_tells_what_to_fetch_and_what_to_drop() -> None:
    service = TrackingService([ANYTHING])
    service.add_query("ana", "mine", MUSIC, now=0)
    for uri in ("same", "changed", "back", "gone"):
        service.add_profile("cy", uri, ROCK, now=0)
    have = {thing.uri: thing.version for thing in service.sync("ana", "mine", {}).new}
    service.touch("cy", "changed", now=1)
    service.remove_profile("cy", "gone", ROCK, now=1)
    service.remove_profile("cy", "back", ROCK, now=1)
    service.add_profile("dan", "back", ROCK, now=1)  # another object of the same name
    service.add_profile("cy", "new", JAZZ, now=1)
    difference = service.sync("ana", "mine", have)
    assert [thing.uri for thing in difference.new] == ["new"]
    assert {thing.uri for thing in difference.changed} == {"changed", "back"}
    assert difference.gone == ("gone",)


def test_services_are_independent() -> None:
    a, b, view = TrackingService([ANYTHING], name="a"), TrackingService([ANYTHING], name="b"), View()
    for service in (a, b):
        service.add_query("ana", "mine", MUSIC, now=0)
        for message in service.add_profile("cy", "cy/1", ROCK, now=0):
            view.apply(message)
    [removed] = a.remove_profile("cy", "cy/1", ROCK, now=1)
    view.apply(removed)
    assert (list(view.objects("a")), list(view.objects("b"))) == ([], ["cy/1"])


def test_late_and_double_messages_do_no_harm() -> None:
    service, view = TrackingService([ANYTHING]), View()
    service.add_query("ana", "mine", MUSIC, now=0)
    added = service.add_profile("cy", "cy/1", ROCK, now=0)
    removed = service.remove_profile("cy", "cy/1", ROCK, now=1)
    for message in (*removed, *added, *removed):
        view.apply(message)
    assert view.objects("tracking") == {}
    view.reset("tracking", [added[0].object], 2)
    view.apply(removed[0])
    assert list(view.objects("tracking")) == ["cy/1"]


# Everything at once

CLIENTS = ["ana", "ben", "cy"]
URIS = ["u1", "u2", "u3"]
NAMES = ["c1", "c2"]
some = st.one_of(rectangles, everyday)


class Library(RuleBasedStateMachine):
    """Clients come and go, objects and queries as well; the model says from scratch who should have what."""

    operator: Operator
    make: Callable[[Operator], Any]
    ttl = 6.0

    @initialize()
    def start(self) -> None:
        self.service = TrackingService([ANYTHING], ttl=self.ttl, pairing=type(self).make(self.operator))
        self.mail: dict[str, dict[Hashable, CollectionMessage]] = {}
        self.profiles: dict[str, set[Filter]] = {}
        self.owners: dict[str, str] = {}
        self.queries: dict[Collection, set[Filter]] = {}
        self.in_force = [ANYTHING]
        self.had: set[tuple[str, str]] = set()
        self.views = {client: View() for client in CLIENTS}
        self.replicas: dict[Collection, dict[str, int]] = {}
        self.now, self.number = 0.0, 0

    # The model

    def meets(self, query: Filter, profile: Filter) -> bool:
        return query.covers(profile) if self.operator == "cover" else query.overlaps(profile)

    def ways(self, client: str, uri: str) -> int:
        return sum(
            self.meets(query, profile)
            for (owner, _), queries in self.queries.items()
            if owner == client
            for query in queries
            for profile in self.profiles.get(uri, ())
        )

    def content(self, collection: Collection) -> set[str]:
        queries = self.queries.get(collection, ())
        return {
            uri for uri, profiles in self.profiles.items() if any(self.meets(q, p) for q in queries for p in profiles)
        }

    def check(self, messages: list[CollectionMessage], *, changed: str | None = None, at_once: bool = True) -> None:
        """The messages tell exactly the difference to what clients had before, and reach those who are there."""
        has = {(client, uri) for client in CLIENTS for uri in URIS if self.ways(client, uri)}
        expected = {("added", uri, client) for client, uri in has - self.had} | {
            ("removed", uri, client) for client, uri in self.had - has
        }
        if changed is not None:
            expected |= {("changed", uri, client) for client, uri in has if uri == changed}
        told = [(message.what, message.object.uri, client) for message in messages for client in message.recipients]
        assert len(told) == len(set(told))
        assert set(told) == expected
        if at_once:
            assert len({(what, uri) for what, uri, _ in told}) == len(messages)
        self.had = has
        for message in messages:
            self.number += 1
            assert (message.number, message.expires) == (self.number, self.now + self.ttl)
            for client in message.recipients:
                if client in self.mail:
                    self.mail[client][message.replaces] = message
                else:
                    self.views[client].apply(message)

    # What happens

    @rule(client=st.sampled_from(CLIENTS), uri=st.sampled_from(URIS), profile=some)
    def add_profile(self, client: str, uri: str, profile: Filter) -> None:
        if self.owners.setdefault(uri, client) != client:
            with pytest.raises(AccessError):
                self.service.add_profile(client, uri, profile, now=self.now)
            return
        self.profiles.setdefault(uri, set()).add(profile)
        self.check(self.service.add_profile(client, uri, profile, now=self.now))

    @rule(uri=st.sampled_from(URIS), profiles=st.lists(some, max_size=3))
    def replace_profiles(self, uri: str, profiles: list[Filter]) -> None:
        owner = self.owners.setdefault(uri, "ana")
        self.profiles[uri] = set(profiles)
        self.check(self.service.replace_profiles(owner, uri, profiles, now=self.now))
        if not profiles:
            del self.profiles[uri], self.owners[uri]

    @precondition(lambda self: self.profiles)
    @rule(data=st.data())
    def remove_profile(self, data: st.DataObject) -> None:
        uri, profile = data.draw(
            st.sampled_from([(uri, p) for uri, some in self.profiles.items() for p in sorted(some, key=str)])
        )
        self.profiles[uri].remove(profile)
        self.check(self.service.remove_profile(self.owners[uri], uri, profile, now=self.now))
        if not self.profiles[uri]:
            del self.profiles[uri], self.owners[uri]

    @precondition(lambda self: self.profiles)
    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        uri = data.draw(st.sampled_from(sorted(self.profiles)))
        self.check(self.service.touch(self.owners[uri], uri, now=self.now), changed=uri)

    @rule(client=st.sampled_from(CLIENTS), name=st.sampled_from(NAMES), query=some)
    def add_query(self, client: str, name: str, query: Filter) -> None:
        if not any(rule.allows(client, query) for rule in self.in_force):
            with pytest.raises(AccessError):
                self.service.add_query(client, name, query, now=self.now)
            return
        self.queries.setdefault((client, name), set()).add(query)
        self.check(self.service.add_query(client, name, query, now=self.now))

    @precondition(lambda self: any(self.queries.values()))
    @rule(data=st.data())
    def remove_query(self, data: st.DataObject) -> None:
        held = [(where, query) for where, queries in self.queries.items() for query in sorted(queries, key=str)]
        (client, name), query = data.draw(st.sampled_from(held))
        self.queries[client, name].remove(query)
        self.check(self.service.remove_query(client, name, query, now=self.now))

    @rule(
        rules=st.lists(st.builds(Rule, some, st.none() | st.just(frozenset({"ana"}))), max_size=2), free=st.booleans()
    )
    def govern(self, rules: list[Rule], free: bool) -> None:
        self.in_force = [*rules, ANYTHING] if free else rules
        for (client, name), queries in self.queries.items():
            self.queries[client, name] = {q for q in queries if any(rule.allows(client, q) for rule in self.in_force)}
        self.check(self.service.govern(self.in_force, now=self.now), at_once=False)

    @rule(client=st.sampled_from(CLIENTS))
    def leave(self, client: str) -> None:
        self.mail.setdefault(client, {})

    @rule(client=st.sampled_from(CLIENTS))
    def enter(self, client: str) -> None:
        mail = self.mail.pop(client, {}).values()
        for message in mail:
            self.views[client].apply(message)
        if any(message.expires <= self.now for message in mail):
            found = {thing.uri: thing for name in NAMES for thing in self.service.content(client, name)}
            self.views[client].reset("tracking", found.values(), self.number)

    @rule(passed=st.integers(1, 4))
    def wait(self, passed: int) -> None:
        self.now += passed

    @rule(client=st.sampled_from(CLIENTS), name=st.sampled_from(NAMES))
    def sync(self, client: str, name: str) -> None:
        replica = self.replicas.setdefault((client, name), {})
        difference = self.service.sync(client, name, replica)
        assert not set(difference.gone) & self.content((client, name))
        for uri in difference.gone:
            del replica[uri]
        replica.update({thing.uri: thing.version for thing in (*difference.new, *difference.changed)})
        assert replica == {thing.uri: thing.version for thing in self.service.content(client, name)}
        again = self.service.sync(client, name, replica)
        assert (again.new, again.changed, again.gone) == ((), (), ())

    # What always holds

    @invariant()
    def content_is_what_the_queries_find(self) -> None:
        for client in CLIENTS:
            for name in NAMES:
                found = [thing.uri for thing in self.service.content(client, name)]
                assert len(found) == len(set(found))
                assert set(found) == self.content((client, name))
            assert {uri: self.service.knows(client, uri) for uri in URIS} == {
                uri: self.ways(client, uri) for uri in URIS
            }

    @invariant()
    def who_is_there_knows_everything(self) -> None:
        for client in set(CLIENTS) - self.mail.keys():
            known = self.views[client].objects("tracking")
            now = {thing.uri: thing for name in NAMES for thing in self.service.content(client, name)}
            assert known == now


class Covered(Library):
    operator: Operator = "cover"
    make = DoubleForest


class Overlapped(Library):
    operator: Operator = "overlap"
    make = NaivePairing


TestCovered = pytest.mark.timeout(1200)(Covered.TestCase)
TestOverlapped = pytest.mark.timeout(1200)(Overlapped.TestCase)
TestCovered.settings = TestOverlapped.settings = settings(few(40), stateful_step_count=25)
