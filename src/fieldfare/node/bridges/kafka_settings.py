"""The settings of a Kafka bridge, and the rules beyond the types."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from fieldfare.filters import Filter, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.node.bridges.content import FIELD
from fieldfare.node.bridges.kafka_records import IncomingRule, OutgoingRule
from fieldfare.node.bridges.registry import settings
from fieldfare.node.config import ConfigError, Secret

_SERVERS: Final = re.compile(r"[^\s,:/@]+:\d+(,[^\s,:/@]+:\d+)*")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
OURS: Final = frozenset(
    {
        "bootstrap.servers", "group.id", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset",
        "enable.idempotence", "acks", "enable.partition.eof", "transactional.id", "isolation.level",
    }
)  # fmt: skip
"""settings of librdkafka on which the promises of the bridge rest"""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"incoming": "in", "outgoing": "out"}):
    """The settings of a bridge, by the names in the file."""

    servers: str
    """addresses of Kafka brokers: HOST:PORT, separated by commas"""
    incoming: tuple[IncomingRule, ...] = ()
    outgoing: tuple[OutgoingRule, ...] = ()
    group: str = ""
    """consumer group under which Kafka shows the position of the bridge; empty: made of the names of node and bridge"""
    tls: bool = False
    mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = ""
    """SASL mechanism; empty: PLAIN if there is a username"""
    username: str = ""
    password: Secret = Secret("")
    password_variable: str = ""
    """name of a variable of the environment with the password"""
    authorities: str = ""
    """file of certificates to trust, in PEM; empty: those of the machine"""
    certificate: str = ""
    key: str = ""
    options: dict[str, str | int | float | bool] = {}
    """further settings of librdkafka, such as `compression.type`"""


def read(identity: str, table: Mapping[str, Any]) -> tuple[Settings, list[Filter]]:
    """Return the settings in a table, with the parsed filters of `out`; ConfigError for a mistake."""
    given = settings(table, Settings)
    if not _SERVERS.fullmatch(given.servers):
        raise ConfigError(
            "", "servers", f"{given.servers!r} is not valid: write HOST:PORT, with commas between several"
        )
    if not given.incoming and not given.outgoing:
        raise ConfigError("", "", "no events come in or go out: add `in = [...]` or `out = [...]`")
    for place, coming in enumerate(given.incoming):
        _check_topic(coming.topic, f"in[{place}].topic")
    if len({coming.topic for coming in given.incoming}) < len(given.incoming):
        raise ConfigError("", "in", "two rules have the same topic: a record comes in once, so remove one rule")
    filters = [_check_out(going, f"out[{place}]") for place, going in enumerate(given.outgoing)]
    if given.password_variable:
        if given.password_variable not in os.environ:
            raise ConfigError("", "password_variable", f"the environment has no variable {given.password_variable}")
        given = msgspec.structs.replace(given, password=Secret(os.environ[given.password_variable]))
    if bool(given.username) == given.password.is_empty:
        raise ConfigError("", "username", "a username and a password go together: give both, or neither")
    if bool(given.certificate) != bool(given.key):
        raise ConfigError("", "certificate", "a certificate and its key go together: give both, or neither")
    for key in ("authorities", "certificate", "key"):
        if getattr(given, key) and not Path(getattr(given, key)).is_file():
            raise ConfigError("", key, f"there is no file {getattr(given, key)}")
    if wrong := sorted(OURS & set(given.options)):
        raise ConfigError("", "options", f"{wrong[0]} is set by the bridge: remove it")
    return msgspec.structs.replace(given, group=given.group or identity), filters


def client(given: Settings) -> dict[str, str | int | float | bool]:
    """Return the settings of librdkafka for readers and writers."""
    protocol = ("SASL_" if given.username else "") + ("SSL" if given.tls else "PLAINTEXT")
    found: dict[str, str | int | float | bool] = {
        "client.id": given.group,
        "security.protocol": protocol,
        "log_level": 0,  # the bridge tells its errors itself
        **given.options,
        "bootstrap.servers": given.servers,
    }
    if given.username:
        found |= {
            "sasl.mechanism": given.mechanism or "PLAIN",
            "sasl.username": given.username,
            "sasl.password": given.password.reveal(),
        }
    files = {"ssl.ca.location": given.authorities, "ssl.certificate.location": given.certificate}
    return found | {name: file for name, file in {**files, "ssl.key.location": given.key}.items() if file}


def _check_topic(topic: str, where: str) -> None:
    if not _NAME.fullmatch(topic) or topic in (".", ".."):
        raise ConfigError("", where, f"{topic!r} is not a topic: a name has letters, digits, dots, dashes, underscores")


def _check_out(going: OutgoingRule, where: str) -> Filter:
    rest = FIELD.sub("x", going.topic)
    if not _NAME.fullmatch(rest):
        raise ConfigError("", f"{where}.topic", f"{going.topic!r} is not a topic with fields, such as alarms-{{room}}")
    try:
        return parse(going.filter)
    except (FilterSyntaxError, FilterTooComplex) as error:
        raise ConfigError("", f"{where}.filter", error) from None
