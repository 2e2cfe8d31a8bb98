"""Composite events are ordinary events, which ordinary filters match."""

from __future__ import annotations

from tests.patterns.histories import history

from fieldfare.events import json, parse_timestamp
from fieldfare.filters import parse
from fieldfare.patterns import composite_event, composite_type
from fieldfare.patterns.machine import Policy, initial, steps
from fieldfare.patterns.parser import parse_core
from fieldfare.patterns.program import compile_program


def test_a_match_becomes_an_event_with_its_constituents() -> None:
    program = compile_program(parse_core("([A];[B]) || [C]"))
    _, (match,) = steps(program, Policy(), initial(program, Policy()), history("A1@1 C1@2 B1@3"))
    event = composite_event(match, "([A] ; [B]) || [C]", name="both", detector="oslo", selected={"total": 7})
    assert event.type == composite_type("([A] ; [B]) || [C]")
    assert (event["ts_lo"], event["ts_hi"]) == (
        parse_timestamp("1970-01-01T00:00:01Z"),
        parse_timestamp("1970-01-01T00:00:03Z"),
    )
    assert event["constituents.event.name"] == ("C1",)
    assert event["constituents.constituents.event.name"] == ("A1", "B1")
    for text in (
        f"type = '{event.type}' AND pattern = 'both' AND total > 5 AND detector = 'oslo'",
        "constituents HAS (event.name = 'C1')",
        "ts_hi < TIMESTAMP '1970-01-01T00:00:04Z'",
    ):
        assert parse(text).matches(event), text
    assert json.decode(json.encode(event))["constituents.event.name"] == ("C1",)
