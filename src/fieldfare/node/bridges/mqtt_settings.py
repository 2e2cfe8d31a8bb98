"""The settings of an MQTT bridge, and the rules that their types cannot express."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import aiomqtt
import msgspec

from fieldfare.filters import Filter, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.node.bridges.content import FIELD
from fieldfare.node.bridges.mqtt_messages import IncomingRule, OutgoingRule, is_mqtt_text
from fieldfare.node.bridges.registry import settings
from fieldfare.node.config import ConfigError, Secret

PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
"""the schemes of a URL, and their usual ports"""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"incoming": "in", "outgoing": "out"}):
    """The settings of a bridge, by their names in the file."""

    url: str
    """address of the MQTT broker: mqtt://HOST:PORT, or mqtts:// for TLS"""
    incoming: tuple[IncomingRule, ...] = ()
    outgoing: tuple[OutgoingRule, ...] = ()
    client_id: str = ""
    """client id at the MQTT broker; empty: made of the names of node and bridge"""
    username: str = ""
    password: Secret = Secret("")
    password_variable: str = ""
    """name of a variable of the environment with the password"""
    authorities: str = ""
    """file of certificates to trust, in PEM; empty: those of the machine"""
    certificate: str = ""
    key: str = ""
    session_seconds: Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)] = 7 * 86400
    """time for which the MQTT broker stores messages while the bridge is away"""
    keep_alive_seconds: Annotated[int, msgspec.Meta(ge=1, le=65_535)] = 30


def read(identity: str, table: Mapping[str, Any]) -> tuple[Settings, list[Filter]]:
    """Return the settings in a table, with the filters of `out` parsed; ConfigError if one is wrong."""
    given = settings(table, Settings)
    _check_url(given.url)
    if not given.incoming and not given.outgoing:
        raise ConfigError("", "", "no events come in or go out: add `in = [...]` or `out = [...]`")
    for place, coming in enumerate(given.incoming):
        _check_in(coming, f"in[{place}]")
    if len({coming.topic for coming in given.incoming}) < len(given.incoming):
        raise ConfigError("", "in", "two rules have the same topic: a message comes in once, so remove one rule")
    filters = [_check_out(going, f"out[{place}]") for place, going in enumerate(given.outgoing)]
    if given.password_variable:
        if given.password_variable not in os.environ:
            raise ConfigError("", "password_variable", f"the environment has no variable {given.password_variable}")
        given = msgspec.structs.replace(given, password=Secret(os.environ[given.password_variable]))
    if not given.password.is_empty and not given.username:
        raise ConfigError("", "username", "is missing, and a password needs it")
    if bool(given.certificate) != bool(given.key):
        raise ConfigError("", "certificate", "a certificate and its key go together: give both, or neither")
    for key in ("authorities", "certificate", "key"):
        if getattr(given, key) and not Path(getattr(given, key)).is_file():
            raise ConfigError("", key, f"there is no file {getattr(given, key)}")
    return msgspec.structs.replace(given, client_id=given.client_id or identity), filters


def _check_url(url: str) -> None:
    expected = "write mqtt://HOST:PORT, or mqtts://HOST:PORT for TLS"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError(
            "", "url", f"this is not a URL: {expected}"
        ) from None  # no quote: a URL may contain a password
    if "@" in url:
        raise ConfigError("", "url", "a URL must not contain a name or password: use username and password")
    if parts.scheme not in PORTS or not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigError("", "url", f"{url!r} is not valid: {expected}")


def _check_in(coming: IncomingRule, where: str) -> None:
    try:
        aiomqtt.Wildcard(coming.topic)
        levels = _levels(coming.topic)
        if not any(levels) or "#" in levels[:-1] or not is_mqtt_text(coming.topic):
            raise ValueError
    except ValueError:
        raise ConfigError(
            "",
            f"{where}.topic",
            f"{coming.topic!r} is not a topic: `+` stands for one level, `#` for all further levels",
        ) from None
    for name, level in coming.fields.items():
        if isinstance(level, int) and level >= len(levels) and levels[-1] != "#":
            raise ConfigError(
                "", f"{where}.fields", f"{name} = {level}: {coming.topic} has levels 0 to {len(levels) - 1}"
            )


def _check_out(going: OutgoingRule, where: str) -> Filter:
    rest = FIELD.sub("", going.topic)
    if not going.topic or any(sign in rest for sign in "{}+#") or going.topic.startswith("$") or not is_mqtt_text(rest):
        raise ConfigError("", f"{where}.topic", f"{going.topic!r} is not a topic with fields, such as alarms/{{room}}")
    try:
        return parse(going.filter)
    except (FilterSyntaxError, FilterTooComplex) as error:
        raise ConfigError("", f"{where}.filter", error) from None


def _levels(topic: str) -> list[str]:
    levels = topic.split("/")
    return levels[2:] if levels[0] == "$share" else levels
