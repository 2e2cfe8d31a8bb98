"""The version of a connection: who chooses, and what is not sent to a peer of an older version."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.protocol import channels, handover, link_frames, patterns, versions, wire
from fieldfare.protocol import messages as m
from fieldfare.protocol.frames import Frame, FromClient, FromNode
from fieldfare.protocol.versions import NEWEST, OLDEST, Subprotocol, chosen, lacking, subprotocols
from tools import protocol_vectors as pv

KINDS = {
    kind.__name__: kind
    for union in (
        FromClient,
        FromNode,
        link_frames.AnyLinkFrame,
        handover.AnyHandoverMessage,
        channels.AnyChannelMessage,
        patterns.AnyPatternMessage,
        wire.AnyMessage,
    )
    for kind in get_args(union)
}
FROZEN = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((pv.FOLDER / str(OLDEST)).glob("*.json"))
}
"""the vectors of the version before, as the code of that version wrote them; never written again"""
FROM_SUBPROTOCOL = {"Hello", "LinkHello"}
"""kinds whose version is, without the field, that of the subprotocol"""


def oldest() -> list[Any]:
    return [
        pytest.param(name, vector, id=f"{name} {vector['form']} {vector['name']}")
        for name in FROZEN
        for vector in FROZEN[name]
    ]


@pytest.mark.parametrize(("name", "vector"), oldest())
def test_what_the_version_before_has_written_keeps_its_meaning(name: str, vector: dict[str, Any]) -> None:
    form = pv.FORMS[name]
    read = form.decode(bytes.fromhex(vector["hex"])) if "hex" in vector else form.decode_text(vector["text"])  # type: ignore[misc]
    meaning, now = vector["meaning"], pv.meaning_of(read)
    if isinstance(meaning, dict) and meaning["is"] in FROM_SUBPROTOCOL:
        meaning = meaning | {"version": 0}
    assert without_new(now, meaning) == meaning


def without_new(now: Any, before: Any) -> Any:
    """Return a meaning without new fields; in a list of fields, new members stand behind."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {key: without_new(now[key], before[key]) for key in before}
    if isinstance(now, list) and isinstance(before, list):
        return [without_new(*pair) for pair in zip(now, before, strict=False)]
    return now


def test_a_new_kind_is_in_the_table() -> None:
    """Else an older peer would get it, and hang up."""
    known = {
        vector["meaning"]["is"] for name in FROZEN for vector in FROZEN[name] if isinstance(vector["meaning"], dict)
    }
    assert KINDS.keys() - known == {kind for kind in versions.SINCE if "." not in kind}


def test_the_table_names_what_exists() -> None:
    for name, since in versions.SINCE.items():
        kind, _, field = name.partition(".")
        assert since == NEWEST
        assert not field or field in KINDS[kind].__struct_fields__


@given(st.integers(1, NEWEST + 1), st.integers(1, NEWEST + 1), st.sampled_from(["json", "msgpack", "link"]))
def test_both_sides_agree_on_the_highest_that_both_speak(one: int, other: int, form: str) -> None:
    dials, listens = range(max(1, one - 1), one + 1), range(max(1, other - 1), other + 1)
    offered = [str(Subprotocol(form, version)) for version in sorted(dials, reverse=True)]
    if other in (OLDEST, NEWEST):  # the listening side is this code
        both = set(dials) & {version for version in listens if version >= OLDEST}
        assert chosen(offered, [form], other) == (Subprotocol(form, max(both)) if both else None)


def test_other_names_are_no_subprotocols() -> None:
    names = ["", "fieldfare.v3", "fieldfare.vx.link", "fieldfare.v3.link ", "v3.link", "fieldfare.v33333333333.link"]
    assert chosen(names, ["link"]) is None
    assert chosen(subprotocols("json"), ["link"]) is None


class Teleport(Frame, frozen=True):
    """A kind that only the newest version has."""

    to: str


class Publish(Frame, frozen=True):
    """A kind with a field that only the newest version has."""

    number: int
    scope: str = ""


@pytest.fixture
def since(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"Teleport": NEWEST, "Publish.scope": NEWEST, "TopicCheck": NEWEST}
    monkeypatch.setattr(versions, "SINCE", table)


@pytest.mark.usefixtures("since")
def test_a_version_lacks_new_kinds_and_new_fields_that_are_used() -> None:
    assert [lacking(version, Teleport("rome")) for version in (OLDEST, NEWEST)] == ["Teleport", ""]
    assert lacking(OLDEST, Publish(1)) == ""
    assert lacking(OLDEST, Publish(1, "house")) == "Publish.scope"
    assert lacking(NEWEST, Publish(1, "house")) == ""


@pytest.mark.usefixtures("since")
def test_a_numbered_message_that_a_neighbour_lacks_has_a_substitute() -> None:
    new, old = wire.encode(m.TopicCheck("t")), wire.encode(m.Envelope("bern", "oslo", b"\x80"))
    assert wire.for_version(new, OLDEST) == wire.NOTHING
    assert wire.for_version(new, NEWEST) == new
    assert wire.for_version(old, OLDEST, "bern") == old
    letter = wire.encode(m.Envelope("bern", "oslo", new))
    assert wire.for_version(letter, OLDEST, "bern") == wire.NOTHING
    assert wire.for_version(letter, OLDEST, "rome") == letter
    assert wire.decode(wire.NOTHING) == m.FilterUpdate()
