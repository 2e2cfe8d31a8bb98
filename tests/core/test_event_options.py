"""The options of an event reach everybody on its way; a new option that is left out of a record fails here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fieldfare.core.core import Core
from fieldfare.core.state import NEVER, Pending, Publication
from fieldfare.core.stored_deliveries import details_for, stored_deliveries
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.event_options import EventOptions, options_of
from fieldfare.protocol.handover import StoredDelivery
from fieldfare.protocol.journal import details_of
from fieldfare.protocol.messages import Role
from fieldfare.routing.broker import Broker

NOT_IN_A_HANDOVER = {"tag"}
"""options that matter only to brokers on the way: an event of a handover has arrived"""


def values() -> dict[str, Any]:
    """Return a value of each option that differs from the default."""
    found: dict[str, Any] = {}
    for number, field in enumerate(msgspec.structs.fields(EventOptions), 1):
        kind = type(field.default)
        found[field.name] = {str: f"text {number}", bytes: b"%d" % number, bool: not field.default}.get(
            kind, kind(number)
        )
    return found


NONE = msgspec.structs.asdict(EventOptions())


@pytest.mark.parametrize(
    "options", [values(), NONE, *({**NONE, name: value} for name, value in values().items())], ids=str
)
def test_every_option_travels_from_the_publication_to_the_neighbour_and_with_a_session(options: dict[str, Any]) -> None:
    core = Core(Broker("b"))
    for name in ("ana", "bob"):
        core.presence.attach(name, f"{name}@1", 0.0)
    core.presence.change_filters(m.Subscribe("s", parse("x = 1")), "ana", 0.0)
    core.links.connect("rome", Role.PARENT, 0.0)
    step = core.step([Publication("bob", 1, [Event({"x": 1})], **options)], 0.0)
    core.release(step)
    (entry,) = step.entries
    assert options_of(details_of(entry)) == options
    forward = wire.decode(wire.encode_forward(entry))
    assert isinstance(forward, m.Forward)
    assert options_of(forward) == options
    waiting = core.sessions["ana"].pending
    key = ("bob", options["replaces"]) if options["replaces"] else None
    assert waiting[1] == Pending(1, ("s",), options["expires"] or NEVER, replaces=key)
    (stored,) = stored_deliveries(waiting.items(), {entry.position: entry})
    carried = {name: value for name, value in options.items() if name not in NOT_IN_A_HANDOVER}
    assert options_of(stored, StoredDelivery) == carried
    assert options_of(details_for(stored, "ana", "mark"), StoredDelivery) == carried
