"""The kinds of bridges, and the bridges of a node, made from the `[[bridge]]` tables of its settings."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from fieldfare import toml
from fieldfare.node.bridges.interface import Bridge
from fieldfare.node.bridges.runner import Runner
from fieldfare.node.config import Config, ConfigError
from fieldfare.node.config.secret import decode_secret
from fieldfare.node.context import Context
from fieldfare.toml import TomlError, similar

T = TypeVar("T")
Make = Callable[[str, Mapping[str, Any]], Bridge]

KINDS: Final[Mapping[str, str]] = {kind: f"fieldfare.node.bridges.{kind}:make" for kind in ("mqtt", "kafka", "nats")}
"""the function that makes a bridge of each kind; its module is imported only if a table has the kind"""
_EXTRAS: Final = {"aiomqtt": "mqtt", "paho": "mqtt", "confluent_kafka": "kafka", "nats": "nats"}


class Made(NamedTuple):
    """A bridge before its start."""

    name: str
    kind: str
    bridge: Bridge


def make_all(config: Config) -> list[Made]:
    """Return the bridges of a node, not started; ConfigError if a table is wrong."""
    made: list[Made] = []
    for place, table in enumerate(config.bridge):
        where = f"bridge[{place}]"
        kind, name = table.get("kind"), table.get("name", table.get("kind"))
        if not isinstance(kind, str) or not kind:
            raise ConfigError("", f"{where}.kind", f"the kind of the bridge is missing (choices: {', '.join(KINDS)})")
        if ":" in kind and "name" not in table:
            raise ConfigError("", f"{where}.name", "the name is missing: a bridge of your own kind needs a name")
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
            raise ConfigError(
                "", f"{where}.name", "a name has letters, digits, dots, dashes and underscores, 100 at most"
            )
        if any(other.name == name for other in made):
            raise ConfigError(
                "", f"{where}.name", f"there is a bridge {name} already: give each bridge a name of its own"
            )
        rest = {key: value for key, value in table.items() if key not in ("kind", "name")}
        make = _maker(kind, f"{where}.kind")
        try:
            made.append(Made(name, kind, make(f"fieldfare-{config.name}-{name}", rest)))
        except ConfigError as error:
            key = f"{where}.{error.key}" if error.key else where
            raise ConfigError("", key, error.problem) from None
        except ValueError as error:
            raise ConfigError("", where, error) from None
    return made


def start(service: Context) -> list[Runner]:
    """Start all bridges of a node; the end of the node ends them."""
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
            f"there is no kind {kind!r}{similar(kind, KINDS)} (choices: {', '.join(KINDS)}, or your own as"
            " package.module:make)",
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
    """Return a table as a value of a msgspec struct; a ConfigError names the wrong key. For the `make` of a bridge."""
    try:
        return toml.convert(table, kind, hook=decode_secret)
    except TomlError as error:
        raise ConfigError("", error.place, error.problem) from None
