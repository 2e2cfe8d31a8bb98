"""Nobody learns by a pattern, or by a composite event, what they may not subscribe to."""

from __future__ import annotations

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.security.rights import _readable, is_letter


def composite(*events: dict[str, object]) -> Event:
    return Event({"type": "ce:1", "pattern": "p", "constituents": [{"name": "a", "event": one} for one in events]})


def test_a_composite_event_is_for_those_who_may_read_all_of_it() -> None:
    trades = parse("type = 'trade'")
    assert _readable(trades, composite({"type": "trade"}, {"type": "trade"}))
    assert not _readable(trades, composite({"type": "trade"}, {"type": "salary"}))
    assert not _readable(trades, composite())
    assert not _readable(trades, composite(dict(composite({"type": "salary"}).tree)))
    assert _readable(trades, composite(dict(composite({"type": "trade"}).tree)))
    assert is_letter(b"... constituents ...")
