"""`/admin/patterns`: the patterns that stand in the node, with their automata, open instances and last detections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec
from starlette.responses import Response

from fieldfare.core.pattern_inputs import RemovePattern
from fieldfare.core.patterns import Patterns
from fieldfare.core.standing_pattern import StandingPattern
from fieldfare.core.state import RequestRefused
from fieldfare.events import json, msgpack
from fieldfare.node.http.admin.views import DetectionView, PatternKey, PatternState, PatternView
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.resource import Call, Handler, answer, number
from fieldfare.node.node import Node
from fieldfare.patterns.detector import Detector
from fieldfare.patterns.picture import mermaid, picture
from fieldfare.protocol.journal import JournalEntry

MOST: Final = 200
"""patterns in an answer, at most"""
KEYS: Final = 10
"""keys of a pattern that are shown"""
COUNTED: Final = 1_000
"""open instances of a pattern whose states are counted"""


def handlers() -> dict[str, dict[str, Handler]]:
    """Return the handlers by path and method."""
    return {
        "/admin/patterns": {"get": _show_all},
        "/admin/patterns/{name:path}": {"delete": _remove},
    }


async def _show_all(call: Call) -> Response:
    node, most = call.service.node, number(call, "limit", MOST, 1, MOST)
    ones = sorted(node.core.patterns.known.values(), key=lambda one: (not one.named, one.key))[:most]
    positions = sorted({position for one in ones for _, position in one.latest})
    entries = await node.entries(positions)
    return answer([_view(node, one, entries) for one in ones])


async def _remove(call: Call) -> Response:
    name = call.request.path_params["name"]
    if name in call.service.node.config.patterns:
        raise Problem(409, f"the settings have the pattern {name[:200]}: remove it there")
    try:
        await call.service.node.submit(RemovePattern(name))
    except RequestRefused as error:
        raise Problem(404, str(error)) from None
    return Response(None, 204)


def _view(node: Node, one: StandingPattern, entries: dict[int, JournalEntry]) -> PatternView:
    patterns: Patterns = node.core.patterns
    detector = one.own or patterns.shared
    made = picture(one.pattern)
    shown = [entries[position] for _, position in reversed(one.latest) if position in entries]
    now = node.clock()
    waiting = Counter(state for states in islice(_states(detector, one.key), COUNTED) for state in states)
    return PatternView(
        name=one.key,
        type=one.type,
        text=one.text,
        named=one.named,
        mermaid=mermaid(one.pattern),
        states=[PatternState(*state, open=waiting[state.number]) for state in made.states],
        transitions=made.transitions,
        users=sorted(f"{session}: {id}" for session, id in one.users),
        instances=detector.open_of.get(one.key, 0),
        keys=[
            PatternKey([_plain(value) for value, _ in key], machine.open)
            for (_, key), machine in islice(detector.machines_of(one.key), KEYS)
        ],
        detections=one.count,
        last_minute=sum(now - time < 60.0 for time, _ in one.latest),
        dropped=detector.dropped_of.get(one.key, 0),
        late=one.own.late if one.own is not None else 0,
        latest=[DetectionView(entry.time, entry.position, _event(entry)) for entry in shown],
    )


def _states(detector: Detector, name: str) -> Iterator[frozenset[int]]:
    """Yield the states of each open instance."""
    for _, machine in detector.machines_of(name):
        for instance in machine.instances():
            yield frozenset(run.state for run in instance.runs)


def _event(entry: JournalEntry) -> msgspec.Raw:
    return msgspec.Raw(json.encode(msgpack.decode(entry.event)))


def _plain(value: Any) -> object:
    return value if isinstance(value, (str, int, float, bool)) else str(value)
