"""A photo library that keeps itself up to date: profiles of photos, queries for collections, messages about changes.

Run the example with `python examples/photo_library.py`. A photo gets a time, a place and tags when it is taken. The
owner sends a profile of the photo to a tracking service; the photo itself stays where it is. A client defines a
collection once, by a query, and from then on receives messages about photos that come and go, even after an absence.
"""

import random
from collections.abc import Hashable
from datetime import UTC, datetime, timedelta

import fieldfare as ff
from fieldfare.profiles.collections import AccessError, CollectionMessage, Rule, TrackingService, View
from fieldfare.profiles.event_profile import profile_of

CITIES = {"Helsinki": (60.17, 24.94), "Turku": (60.45, 22.27), "Tampere": (61.50, 23.76)}
TAGS = ["concert", "rock", "jazz", "family", "harbour", "snow", "private"]
SUMMER = datetime(2026, 6, 1, tzinfo=UTC)


def photos(count: int) -> dict[str, dict[str, object]]:
    """Invent photos of two photographers who travel between cities all summer; the keys are the photos' addresses."""
    dice = random.Random(7)  # noqa: S311 - no secrets
    made: dict[str, dict[str, object]] = {}
    for number in range(1, count + 1):
        owner = dice.choice(["cleo", "dmitri"])
        city = dice.choice(list(CITIES))
        north, east = CITIES[city]
        made[f"{owner}/{number:03}.jpg"] = {
            "type": "photo",
            "owner": owner,
            "taken": SUMMER + timedelta(hours=dice.randint(0, 24 * 90)),
            "location": city,
            "lat": round(north + dice.gauss(0, 0.02), 4),
            "lon": round(east + dice.gauss(0, 0.04), 4),
            "tags": sorted(dice.sample(TAGS, dice.randint(1, 3))),
        }
    return made


class Network:
    """The transport of messages: at once to connected clients, to all others when they come back."""

    def __init__(self, *clients: str) -> None:
        """Start with all clients connected and with empty views."""
        self.waiting: dict[str, dict[Hashable, CollectionMessage]] = {}
        """for each absent client the waiting messages, one for each object"""
        self.views = {client: View() for client in clients}

    def send(self, messages: list[CollectionMessage]) -> None:
        """Send each message to all its recipients; for an absent client a message replaces an older one."""
        for message in messages:
            for client in message.recipients:
                if client in self.waiting:
                    self.waiting[client][message.replaces] = message
                else:
                    self.receive(client, message)

    def receive(self, client: str, message: CollectionMessage) -> None:
        """Apply a message to the view of a client, and print the change."""
        self.views[client].apply(message)
        print(f"  {client:<5} {message.what:<7} {message.object.uri}")


def main() -> None:
    """Add profiles and queries, let a client be away for a while, and synchronise its copies."""
    rules = [
        Rule(ff.parse("type = 'photo' AND NOT ANY tags = 'private'")),
        Rule(ff.parse("type = 'photo'"), frozenset({"cleo"})),
    ]
    service, network, library = TrackingService(rules), Network("ana", "ben", "cleo"), photos(60)
    for uri, photo in library.items():
        network.send(service.add_profile(str(photo["owner"]), uri, profile_of(photo), now=0))

    print("Ana asks for concerts in Helsinki, and Ben for Turku in June:")
    concerts = ff.parse(
        "type = 'photo' AND location = 'Helsinki' AND ANY tags IN ('concert', 'rock') AND NOT ANY tags = 'private'"
    )
    june = ff.parse(
        "type = 'photo' AND taken < :july AND location = 'Turku' AND NOT ANY tags = 'private'",
        july=datetime(2026, 7, 1, tzinfo=UTC),
    )
    network.send(service.add_query("ana", "concerts", concerts, now=1))
    network.send(service.add_query("ben", "june", june, now=1))

    print("\nBen asks for everything, which only Cleo may:")
    try:
        service.add_query("ben", "everything", ff.parse("type = 'photo'"), now=2)
    except AccessError as error:
        print(f"  refused: {error}")

    print("\nCleo takes a photo, and then tags it; Ana hears of it once:")
    photo = {"type": "photo", "owner": "cleo", "location": "Helsinki", "tags": ["concert"]}
    network.send(service.add_profile("cleo", "cleo/new.jpg", profile_of(photo), now=3))
    network.send(service.replace_profiles("cleo", "cleo/new.jpg", [profile_of({**photo, "tags": ["rock"]})], now=4))

    print("\nAna is away while Cleo thinks it over:")
    network.waiting["ana"] = {}
    network.send(service.remove_profile("cleo", "cleo/new.jpg", profile_of({**photo, "tags": ["rock"]}), now=5))
    network.send(service.add_profile("cleo", "cleo/new.jpg", profile_of(photo), now=6))
    network.send(service.replace_profiles("cleo", "cleo/new.jpg", [profile_of({**photo, "tags": ["private"]})], now=7))
    print(f"  {len(network.waiting['ana'])} message waits for Ana, for there is one photo to tell of; she comes back:")
    for message in network.waiting.pop("ana").values():
        network.receive("ana", message)

    print("\nAna's telephone has copies of some photos; it asks what to do to have her collection:")
    have = {thing.uri: thing.version for thing in service.content("ana", "concerts")[:3]} | {"cleo/new.jpg": 1}
    changed = next(iter(have))
    service.touch(str(library[changed]["owner"]), changed, now=9)
    difference = service.sync("ana", "concerts", have)
    print(f"  fetch {', '.join(thing.uri for thing in difference.new)}")
    print(f"  fetch again {', '.join(thing.uri for thing in difference.changed)}")
    print(f"  drop {', '.join(difference.gone)}")
    known = network.views["ana"].objects(service.name)
    assert known.keys() == {thing.uri for thing in service.content("ana", "concerts")}

    around = ff.parse(
        "type = 'photo' AND lat BETWEEN 60.16 AND 60.18 AND lon BETWEEN 24.9 AND 25.0 AND ANY tags = 'harbour'"
    )
    found = service.get("cleo", around)
    print(f"\nCleo asks once, for the harbour: {', '.join(thing.uri for thing in found) or 'nothing'}")
    compared = service.pairing.tests.cover
    print(f"All this took {compared:,} comparisons; {len(library)} photos were there from the beginning.")


if __name__ == "__main__":
    main()
