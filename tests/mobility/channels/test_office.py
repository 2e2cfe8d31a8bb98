"""A day of a mobile user: the smart-office scenario, with sessions that go from phone to desktop and back."""

from __future__ import annotations

from typing import Any

import pytest
from tools.mobility.channels import world

from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.messages import Attach
from fieldfare.mobility.messages import Acknowledge, MoveOut
from fieldfare.protocol.messages import Deliver, Message
from fieldfare.simulation.network import Network


@pytest.mark.parametrize("ordered", [True, False])
def test_a_day_at_the_office(ordered: bool) -> None:
    shown: dict[str, list[str]] = {}

    def hear(client: str, message: Message) -> None:
        if isinstance(message, Deliver):
            shown.setdefault(client, []).append(str(message.event["text"]))
            network.send(client, Acknowledge(message.number))

    domain = Domain(("r0", "r1"), types=("news", "presence", "note"), ordered=ordered)
    network: Network[Any] = world(domain, 4, on_message=hear).network  # a0 is on the way, a1 to a3 are at the office
    at = {"phone": "a0", "desktop": "a1", "bob": "a2", "carol": "a3", "agency": "a3"}
    for client, server in at.items():
        network.attach(client, server)

    def say(client: str, type: str, text: str, **fields: object) -> None:
        network.publish(client, {"type": type, "text": text, **fields})
        network.drain()

    network.send("phone", Attach("ana"))
    network.subscribe("phone", "news", "type = 'news' AND topic = 'trains'")
    network.subscribe("bob", "people", "type = 'presence'")
    network.subscribe("carol", "people", "type = 'presence' AND who = 'ana'")
    network.drain()
    say("agency", "news", "late", topic="trains")
    say("agency", "news", "won", topic="sport")
    assert shown == {"phone": ["late"]}

    # She arrives: her presence changes, and with it what she wants to hear; the session goes to the desktop.
    say("phone", "presence", "ana is in", who="ana")
    network.subscribe("phone", "context", "type = 'note' AND place = 'office' AND project = 'x'")
    network.drain()
    assert shown["bob"] == shown["carol"] == ["ana is in"]
    network.send("phone", MoveOut("a1"))
    network.send("phone", MoveOut())
    say("bob", "note", "meeting in 10 minutes", place="office", project="x")  # while she goes to her desk
    network.send("desktop", Attach("ana"))
    network.drain()
    say("agency", "news", "on time", topic="trains")
    assert shown["desktop"] == ["meeting in 10 minutes", "on time"]

    # And back to the phone, at another access server: it has its place in the session, and gets nothing twice.
    network.send("desktop", MoveOut())
    say("carol", "note", "anyone for lunch?", place="office", project="x")
    network.move("phone", "a2", Attach("ana", source="a0"))
    network.drain()
    assert shown["phone"] == ["late", "anyone for lunch?"]
    network.unsubscribe("phone", "context")
    say("phone", "presence", "ana is out", who="ana")
    say("carol", "note", "where is ana?", place="office", project="x")
    assert shown["phone"][2:] == []
    assert shown["carol"] == ["ana is in", "ana is out"]
