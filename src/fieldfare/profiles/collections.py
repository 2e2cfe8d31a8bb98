"""`TrackingService`: collections of objects that keep themselves up to date.

An *object* is described by profiles: kind, place, time. Its data lies elsewhere, under its URI. A *collection* of a
client is described by queries and holds all objects with a profile that a query covers (or overlaps). When objects or
queries come and go, the service tells each client which objects have entered or left its collections: once for each
object and client, however many profiles and queries lead from the object to the client, because the service counts the
pairs.

The service is a function of requests and times: the service sends nothing, but returns messages for the caller to send.
A single message names all clients that a change concerns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fieldfare.filters.filter import Filter
from fieldfare.profiles.double_forest import DoubleForest
from fieldfare.profiles.pairs import Pairing
from fieldfare.tables.base import satisfiable

What: TypeAlias = Literal["added", "changed", "removed"]
Collection: TypeAlias = tuple[str, str]
"""the owner of the collection, and the owner's name for the collection"""


class AccessError(ValueError):
    """A client asked for objects outside its rules, or changed another client's object."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A permission for some clients, or for all: queries that the filter covers."""

    filter: Filter
    clients: frozenset[str] | None = None

    def allows(self, client: str, query: Filter) -> bool:
        """Tell whether the rule permits a query of a client."""
        return (self.clients is None or client in self.clients) and self.filter.covers(query)


@dataclass(frozen=True, slots=True)
class Description:
    """An object as clients see it. Each change of its data gives a higher version number."""

    uri: str
    owner: str
    version: int


@dataclass(frozen=True, slots=True)
class CollectionMessage:
    """A change of an object, for all clients that the change concerns."""

    service: str
    number: int
    """messages of a service are numbered from 1"""
    what: What
    object: Description
    recipients: tuple[str, ...]
    expires: float

    @property
    def replaces(self) -> Hashable:
        """The replace-identifier: a later message about the same object makes an earlier message superfluous."""
        return self.service, self.object.uri


@dataclass(frozen=True, slots=True)
class CollectionDifference:
    """The steps by which a client's copies become the content of its collection."""

    new: tuple[Description, ...]
    changed: tuple[Description, ...]
    gone: tuple[str, ...]
    number: int
    """the last message that the difference includes"""


@dataclass(eq=False, slots=True)
class _Object:
    description: Description
    profiles: dict[Filter, None] = field(default_factory=dict)


class TrackingService:
    """Objects and collections, and the messages about their changes.

    >>> from fieldfare.filters import parse
    >>> service = TrackingService([Rule(parse("type = 'photo'"))])
    >>> service.add_query("ana", "concerts", parse("type = 'photo' AND tag IN ('rock', 'concert')"), now=0)
    []
    >>> [message] = service.add_profile("ben", "ben/1.jpg", parse("type = 'photo' AND tag = 'rock'"), now=1)
    >>> message.what, message.object.uri, message.recipients
    ('added', 'ben/1.jpg', ('ana',))
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        *,
        name: str = "tracking",
        ttl: float = math.inf,
        pairing: Pairing[str, Collection] | None = None,
    ) -> None:
        """Make a service without objects and collections. Unread messages expire after the time to live, `ttl`."""
        self.name = name
        self.ttl = ttl
        self.pairing: Pairing[str, Collection] = DoubleForest() if pairing is None else pairing
        self._rules = tuple(rules)
        self._objects: dict[str, _Object] = {}
        self._queries: dict[Collection, dict[Filter, None]] = {}
        self._counts: dict[str, Counter[str]] = {}
        """for each client and object, the number of (query, profile) pairs that lead from the object to the client"""
        self._pulling: set[str] = set()
        self._messages = 0
        self._versions = 0

    # Objects

    def add_profile(self, client: str, uri: str, profile: Filter, *, now: float) -> list[CollectionMessage]:
        """Attach a profile to an object; a new object belongs to the client from now on."""
        return self._change_profiles(client, uri, [profile], [], now)

    def remove_profile(self, client: str, uri: str, profile: Filter, *, now: float) -> list[CollectionMessage]:
        """Detach a profile; an object without profiles is forgotten. An unknown profile is a KeyError."""
        if profile not in self._owned(client, uri).profiles:
            raise KeyError(profile)
        return self._change_profiles(client, uri, [], [profile], now)

    def replace_profiles(
        self, client: str, uri: str, profiles: Iterable[Filter], *, now: float
    ) -> list[CollectionMessage]:
        """Give an object exactly these profiles in a single step; clients that keep the object get no message."""
        wanted = dict.fromkeys(profiles)
        known = self._owned(client, uri).profiles if uri in self._objects else {}
        return self._change_profiles(client, uri, wanted, [old for old in known if old not in wanted], now)

    def touch(self, client: str, uri: str, *, now: float) -> list[CollectionMessage]:
        """Report a change of an object's data; all clients with the object get a message."""
        thing = self._owned(client, uri)
        thing.description = self._described(uri, client)
        concerned = [name for name, counts in self._counts.items() if counts[uri]]
        return self._told("changed", thing.description, concerned, now)

    # Collections

    def add_query(self, client: str, collection: str, query: Filter, *, now: float) -> list[CollectionMessage]:
        """Widen a collection by a query. A query outside the client's rules is an AccessError."""
        self._refuse_unless_allowed(client, query)
        queries = self._queries.setdefault((client, collection), {})
        if query in queries:
            return []
        queries[query] = None
        met = self.pairing.queries.add(query, (client, collection))
        return self._counted(Counter((client, uri) for p in met for uri in self.pairing.profiles.ids(p)), now)

    def remove_query(self, client: str, collection: str, query: Filter, *, now: float) -> list[CollectionMessage]:
        """Narrow a collection; a collection without queries is forgotten. An unknown query is a KeyError."""
        queries = self._queries[client, collection]
        del queries[query]
        if not queries:
            del self._queries[client, collection]
        met = self.pairing.queries.remove(query, (client, collection))
        less = Counter((client, uri) for p in met for uri in self.pairing.profiles.ids(p))
        return self._counted(_negative(less), now)

    def push(self, client: str, wanted: bool) -> None:
        """Choose whether a client gets messages, as by default, or asks with `sync` and `content`."""
        (self._pulling.discard if wanted else self._pulling.add)(client)

    # Questions

    def get(self, client: str, query: Filter) -> list[Description]:
        """Return the objects that a query finds now. A query outside the client's rules is an AccessError."""
        self._refuse_unless_allowed(client, query)
        return self._found([query])

    def content(self, client: str, collection: str) -> list[Description]:
        """Return the objects in a collection."""
        return self._found(self._queries.get((client, collection), ()))

    def sync(self, client: str, collection: str, have: Mapping[str, int]) -> CollectionDifference:
        """Return the difference between a client's copies, as versions by URI, and the content of a collection."""
        content = {thing.uri: thing for thing in self.content(client, collection)}
        return CollectionDifference(
            new=tuple(thing for uri, thing in content.items() if uri not in have),
            changed=tuple(thing for uri, thing in content.items() if uri in have and have[uri] != thing.version),
            gone=tuple(uri for uri in have if uri not in content),
            number=self._messages,
        )

    def knows(self, client: str, uri: str) -> int:
        """Return the number of (query, profile) pairs that lead a client to an object."""
        return self._counts.get(client, Counter())[uri]

    # Rules

    def govern(self, rules: Iterable[Rule], *, now: float) -> list[CollectionMessage]:
        """Replace the rules; queries that no new rule permits are removed."""
        self._rules = tuple(rules)
        held = [(collection, query) for collection, queries in self._queries.items() for query in queries]
        return [
            message
            for (client, collection), query in held
            if not self._is_allowed(client, query)
            for message in self.remove_query(client, collection, query, now=now)
        ]

    def _is_allowed(self, client: str, query: Filter) -> bool:
        return any(rule.allows(client, query) for rule in self._rules)

    def _refuse_unless_allowed(self, client: str, query: Filter) -> None:
        if not self._is_allowed(client, satisfiable(query)):
            raise AccessError(f"no rule lets {client} ask for {query}")

    # Inside

    def _owned(self, client: str, uri: str) -> _Object:
        thing = self._objects[uri]
        if thing.description.owner != client:
            raise AccessError(f"{uri} belongs to {thing.description.owner}: {client} cannot change it")
        return thing

    def _described(self, uri: str, owner: str) -> Description:
        self._versions += 1  # a common count of all objects, so that a returning object never has an old version
        return Description(uri, owner, self._versions)

    def _change_profiles(
        self, client: str, uri: str, wanted: Iterable[Filter], unwanted: Iterable[Filter], now: float
    ) -> list[CollectionMessage]:
        wanted = [satisfiable(profile) for profile in wanted]
        if uri in self._objects:
            thing = self._owned(client, uri)
        elif wanted:
            thing = self._objects[uri] = _Object(self._described(uri, client))
        else:
            return []
        changes: Counter[tuple[str, str]] = Counter()
        for profile in wanted:
            if profile not in thing.profiles:
                thing.profiles[profile] = None
                changes.update(self._askers(self.pairing.profiles.add(profile, uri), uri))
        for profile in unwanted:
            del thing.profiles[profile]
            changes.subtract(self._askers(self.pairing.profiles.remove(profile, uri), uri))
        messages = self._counted(changes, now)
        if not thing.profiles:
            del self._objects[uri]
        return messages

    def _askers(self, queries: Iterable[Filter], uri: str) -> list[tuple[str, str]]:
        return [(client, uri) for query in queries for client, _ in self.pairing.queries.ids(query)]

    def _found(self, queries: Iterable[Filter]) -> list[Description]:
        sides = self.pairing
        uris = (uri for query in queries for p in sides.queries.partners(query) for uri in sides.profiles.ids(p))
        return [self._objects[uri].description for uri in dict.fromkeys(uris)]

    def _counted(self, changes: Mapping[tuple[str, str], int], now: float) -> list[CollectionMessage]:
        """Apply changes of pair counts, and report the clients whose count has left zero or returned to zero."""
        lost: dict[str, list[str]] = {}
        found: dict[str, list[str]] = {}
        for (client, uri), change in changes.items():
            counts = self._counts.setdefault(client, Counter())
            before = counts[uri]
            counts[uri] += change
            if bool(before) != bool(counts[uri]):
                (lost if before else found).setdefault(uri, []).append(client)
            if not counts[uri]:
                del counts[uri]
            if not counts:
                del self._counts[client]
        messages = []
        for uri in dict.fromkeys(uri for _, uri in changes):
            thing = self._objects[uri].description
            messages += self._told("removed", thing, lost.get(uri, ()), now)
            messages += self._told("added", thing, found.get(uri, ()), now)
        return messages

    def _told(self, what: What, thing: Description, clients: Iterable[str], now: float) -> list[CollectionMessage]:
        recipients = tuple(sorted(client for client in clients if client not in self._pulling))
        if not recipients:
            return []
        self._messages += 1
        return [CollectionMessage(self.name, self._messages, what, thing, recipients, now + self.ttl)]


def _negative(counts: Counter[tuple[str, str]]) -> dict[tuple[str, str], int]:
    return {key: -count for key, count in counts.items()}


class View:
    """The objects that a client knows from messages.

    Messages of different services about the same object are kept apart: a removal by a service does not undo an
    addition by another. A late or repeated message does no harm.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[int, Description | None]] = {}
        self._known: Counter[str] = Counter()
        """for each service, the number of the message up to which the client knows everything"""

    def apply(self, message: CollectionMessage) -> None:
        """Note the change in a message, unless a later message about the object is known."""
        place = message.service, message.object.uri
        last, _ = self._last.get(place, (self._known[message.service], None))
        if last < message.number:
            self._last[place] = message.number, (None if message.what == "removed" else message.object)

    def reset(self, service: str, objects: Iterable[Description], number: int) -> None:
        """Replace all objects of a service by its full content, as of a message number."""
        self._known[service] = number
        self._last = {place: last for place, last in self._last.items() if place[0] != service}
        self._last.update({(service, thing.uri): (number, thing) for thing in objects})

    def objects(self, service: str) -> dict[str, Description]:
        """Return the present objects of a service, by URI."""
        return {uri: thing for (name, uri), (_, thing) in self._last.items() if name == service and thing is not None}
