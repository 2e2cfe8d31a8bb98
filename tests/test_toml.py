"""The TOML reader says where a mistake is, and what to write instead."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare import toml
from fieldfare.toml import TomlError, decode, line_of


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Log(Part, frozen=True):
    sync: Literal["normal", "full"] = "normal"
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] = 10


class Role(Part, frozen=True):
    publish: bool | str = False


class Up(Part, frozen=True, tag_field="do", tag="up"):
    link: tuple[str, str]


class Crash(Part, frozen=True, tag_field="do", tag="crash"):
    broker: str


class Rule(Part, frozen=True, rename={"what": "in"}):
    what: str
    qos: Literal[0, 1] = 1


class Code:
    def __init__(self, text: str) -> None:
        self.text = text


class Node(Part, frozen=True):
    name: str = ""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    log: Log = Log()
    roles: dict[str, Role] = {}
    faults: list[Up | Crash] = []
    rules: tuple[Rule, ...] = ()
    raw: tuple[dict[str, Any], ...] = ()
    code: Code | None = None


def hook(kind: type, value: object) -> object:
    if kind is Code and isinstance(value, str) and value.isdigit():
        return Code(value)
    raise ValueError("a code has digits only")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "line 1: there is no setting 'prot'; did you mean 'port'? (there are name, port, log, roles,"),
        ("\n\n[log]\nsnc = 1", "line 4: log: there is no setting 'snc'; did you mean 'sync'? (there are sync, max_bytes)"),
        ("max_bytes = 1", "line 1: there is no setting 'max_bytes'; did you mean 'log.max_bytes'?"),
        ("zzz = 1", "line 1: there is no setting 'zzz' (there are name,"),
        ("[roles.ok]\n[roles.trader]\npublsh = true", "line 3: roles.trader: there is no setting 'publsh'; did you mean 'publish'?"),
        ("[[rules]]\nin = 'a'\n[[rules]]\nin = 'b'\nretained = 1", "line 5: rules[1]: there is no setting 'retained' (there are in, qos)"),
        ("[[faults]]\ndo = 'crash'\nlink = 1", "line 3: faults[0]: there is no setting 'link' (there are do, broker)"),
        ("log.sync = 'ful'", "line 1: log.sync: 'ful' is not valid; did you mean 'full'? (choices: 'normal', 'full')"),
        ("log.sync = 'a - at `$.b`'", "line 1: log.sync: 'a - at `$.b`' is not valid (choices: 'normal', 'full')"),
        ("[[rules]]\nin = 'a'\nqos = 2", "line 3: rules[0].qos: 2 is not valid (choices: 0, 1)"),
        ("[[faults]]\ndo = 'crush'", "line 2: faults[0].do: 'crush' is not valid; did you mean 'crash'? (choices: 'up', 'crash')"),
        ("[[faults]]\nbroker = 'x'", "line 1: faults[0]: the setting 'do' is missing"),
        ("\n[[faults]]\ndo = 'crash'", "line 2: faults[0]: the setting 'broker' is missing"),
        ("port = '1'", "line 1: port: expected an integer, got a string"),
        ("port = 65536", "line 1: port: expected an integer <= 65535"),
        ("port = true", "line 1: port: expected an integer, got a boolean"),
        ("log = 1", "line 1: log: expected a table, got an integer: write [log], and its settings below"),
        ("[faults]\ndo = 'up'", "line 1: faults: expected an array, got a table: write [[faults]]"),
        ("[raw]\na = 1", "line 1: raw: expected an array, got a table: write [[raw]]"),
        ("[roles.a]\npublish = 1", "line 2: roles.a.publish: expected a boolean or a string, got an integer"),
        ("roles.a = 1", "line 1: roles.a: expected a table, got an integer: write [roles.a], and its settings below"),
        ("[[faults]]\ndo = 'up'\nlink = ['a']", "line 3: faults[0].link: expected an array of length 2, got 1"),
        ("[[faults]]\ndo = 'up'\nlink = [\n 'a',\n 1,\n]", "line 3: faults[0].link[1]: expected a string, got an integer"),
        ("code = 'x'", "line 1: code: a code has digits only"),
        ("name = 'a'\nport = \n", "line 2: this is not TOML: Invalid value (column "),
        ("a = [", "this is not TOML: "),
        ("name = '''\nport = 1\n'''\nport = 'x'", "line 4: port: expected an integer, got a string"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(text: str, message: str) -> None:
    with pytest.raises(TomlError) as caught:
        decode(text, Node, hook=hook)
    assert str(caught.value).startswith(message)


def test_a_document_becomes_a_value() -> None:
    found = decode("port = 1\ncode = '12'\nraw = [{ a = 1 }]\n[log]\nsync = 'full'", Node, hook=hook)
    assert (found.port, found.log.sync, found.raw) == (1, "full", ({"a": 1},))
    assert found.code is not None
    assert found.code.text == "12"


def test_an_error_has_its_parts() -> None:
    with pytest.raises(TomlError) as caught:
        decode("[log]\nsync = 1", Node, source="node.toml")
    error = caught.value
    assert (error.source, error.line, error.place) == ("node.toml", 2, "log.sync")
    assert str(error) == f"node.toml, line 2: log.sync: {error.problem}"


def test_tables_that_a_caller_has_changed_have_no_line() -> None:
    with pytest.raises(TomlError) as caught:
        toml.convert({"log": {"snc": 1}}, Node)
    assert str(caught.value).startswith("log: there is no setting 'snc'; did you mean 'sync'?")
    assert toml.located(caught.value, "\n[log]\nsnc = 1", "a.toml").line == 3


@pytest.mark.parametrize(
    ("place", "line"),
    [("a", 1), ("t.b", 4), ("t.c", 5), ("t.c[1]", 5), ("t", 3), ("t.none", 3), ("x[0]", 9), ("x[1].y", 12), ("none", None)],
)  # fmt: skip
def test_the_line_of_a_place(place: str, line: int | None) -> None:
    text = "a = 1\n# a comment\n[t]\nb = false\nc = [\n 1,\n 2,\n]\n[[x]]\ny = 1\n[[x]]\ny = 2"
    assert line_of(text, place) == line


@given(st.integers(0, 300), st.integers(0, 300), st.booleans())
def test_the_line_is_found_in_long_documents(before: int, after: int, table: bool) -> None:
    comments = [f"# {number}" if number % 3 else f"a{number} = [\n{number},\n]" for number in range(before)]
    text = "\n".join(
        [*comments, *(["[t]"] if table else []), "wanted = 1", *(f"b{number} = 1" for number in range(after))]
    )
    found = line_of(text, "t.wanted" if table else "wanted")
    assert found is not None
    assert text.split("\n")[found - 1] == "wanted = 1"


def test_what_is_no_document_has_no_lines() -> None:
    assert line_of("a = [", "a") is None
