"""Bridges: other messaging systems, joined to a node by `[[bridge]]` tables of its settings.

Each table has a `kind`, which says whose it is, and perhaps a `name`; the rest is for the bridge itself. A bridge is
little more than a page (see `interface`), and may be anywhere: `kind = "package.module:make"` is a function that is
given the identity of the bridge and its settings, and returns it.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import msgspec.inspect

from fieldfare.node.bridges.interface import (
    Arrived,
    Batch,
    Bridge,
    BridgeConnection,
    BridgeError,
    Leaving,
    Problem,
)
from fieldfare.node.bridges.runner import Runner, Status
from fieldfare.node.config.config import Config, ConfigError, Secret
from fieldfare.node.context import Context

__all__ = [
    "Arrived",
    "Batch",
    "Bridge",
    "BridgeConnection",
    "BridgeError",
    "Leaving",
    "Problem",
    "Runner",
    "Status",
    "make_all",
    "settings",
    "start",
]

T = TypeVar("T")
Make = Callable[[str, Mapping[str, Any]], Bridge]

KINDS: Final[Mapping[str, str]] = {"mqtt": "fieldfare.node.bridges.mqtt:make"}
"""where each kind is made; imported only if it is used"""
_EXTRAS: Final = {"aiomqtt": "mqtt", "paho": "mqtt"}


class Made(NamedTuple):
    """A bridge that has not begun to work."""

    name: str
    kind: str
    bridge: Bridge


def make_all(config: Config) -> list[Made]:
    """The bridges of a node; ConfigError if a table is no good."""
    made: list[Made] = []
    for place, table in enumerate(config.bridge):
        where = f"bridge[{place}]"
        kind, name = table.get("kind"), table.get("name", table.get("kind"))
        if not isinstance(kind, str) or not kind:
            raise ConfigError("", f"{where}.kind", f"say which kind of bridge it is: {', '.join(KINDS)}")
        if ":" in kind and "name" not in table:
            raise ConfigError("", f"{where}.name", "is missing: a bridge of your own kind needs a name")
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
            raise ConfigError(
                "", f"{where}.name", "a name has letters, digits, dots, dashes and underscores, 100 at most"
            )
        if any(other.name == name for other in made):
            raise ConfigError("", f"{where}.name", f"there is a bridge {name} already: give each a name of its own")
        rest = {key: value for key, value in table.items() if key not in ("kind", "name")}
        make = _maker(kind, f"{where}.kind")
        try:
            made.append(Made(name, kind, make(f"fieldfare-{config.name}-{name}", rest)))
        except ConfigError as error:
            key = f"{where}.{error.key}" if error.key else where
            raise ConfigError("", key, str(error).removeprefix(f"{error.key}: ")) from None
        except ValueError as error:
            raise ConfigError("", where, error) from None
    return made


def start(service: Context) -> list[Runner]:
    """Begin with all bridges of a node; they end with it."""
    runners = [Runner(service.node, one.name, one.bridge, one.kind) for one in make_all(service.node.config)]
    for runner in runners:
        service.node.spawn(runner.run()).set_name(runner.session)
    return runners


def _maker(kind: str, key: str) -> Make:
    path = KINDS.get(kind, kind)
    module, colon, function = path.partition(":")
    if not colon:
        raise ConfigError(
            "",
            key,
            f"there is no kind {kind!r}: take {', '.join(KINDS)}, or write one of your own as package.module:make",
        )
    try:
        made: Make = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        advice = f"pip install 'fieldfare[{_EXTRAS[package]}]'" if package in _EXTRAS else f"no module {error.name}"
        raise ConfigError("", key, f"{kind} cannot be loaded: {advice}") from None
    except AttributeError:
        raise ConfigError("", key, f"{module} has no function {function}") from None
    return made


def settings(table: Mapping[str, Any], kind: type[T]) -> T:
    """A table as a value of a msgspec struct; ConfigError says which key is wrong. For bridges, in their `make`."""
    try:
        return msgspec.convert(table, kind, dec_hook=_secret)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        key = place.strip("`").removeprefix("$").removeprefix(".")
        plain = problem.replace("`", "").replace("Object", "table").replace("object", "table").replace("array", "list")
        if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
            near = difflib.get_close_matches(unknown[1], sorted(_names(msgspec.inspect.type_info(kind))), n=1)
            plain = f"there is no setting {unknown[1]}" + (f"; did you mean {near[0]}?" if near else "")
        elif missing := re.fullmatch(r"Object missing required field `(.*)`", problem):
            plain = f"{missing[1]} is missing"
        raise ConfigError("", key, plain[:1].lower() + plain[1:]) from None


def _names(kind: object) -> set[str]:
    """The keys of a struct, and of those in it."""
    match kind:
        case msgspec.inspect.StructType(fields=fields):
            return {field.encode_name for field in fields}.union(*(_names(field.type) for field in fields))
        case msgspec.inspect.VarTupleType(item_type=item) | msgspec.inspect.ListType(item_type=item):
            return _names(item)
        case msgspec.inspect.UnionType(types=types):
            return set().union(*map(_names, types))
    return set()


def _secret(kind: type, value: object) -> object:
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise ValueError(f"Expected `str`, got `{type(value).__name__}`")  # the value is not quoted: it is a secret
