"""The settings of a NATS bridge, and the rules beyond the types."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from fieldfare.filters import Filter, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.node.bridges.content import FIELD
from fieldfare.node.bridges.nats_messages import SUBJECT, IncomingRule, OutgoingRule
from fieldfare.node.bridges.registry import settings
from fieldfare.node.config import ConfigError, Secret

_PATTERN: Final = re.compile(r"([^\s.*>]+|\*)(\.([^\s.*>]+|\*))*(\.>)?|>")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"incoming": "in", "outgoing": "out"}):
    """The settings of a bridge, by the names in the file."""

    url: str
    """address of a NATS server: nats://HOST:PORT, or tls://HOST:PORT"""
    incoming: tuple[IncomingRule, ...] = ()
    outgoing: tuple[OutgoingRule, ...] = ()
    username: str = ""
    password: Secret = Secret("")
    password_variable: str = ""
    """name of a variable of the environment with the password, or with the token"""
    token: Secret = Secret("")
    credentials: str = ""
    """file of credentials (JWT and seed), for servers with decentralised security"""
    authorities: str = ""
    """file of certificates to trust, in PEM; empty: those of the machine"""
    certificate: str = ""
    key: str = ""


def read(table: Mapping[str, Any]) -> tuple[Settings, list[Filter]]:
    """Return the settings in a table, with the parsed filters of `out`; ConfigError for a mistake."""
    given = settings(table, Settings)
    _check_url(given.url)
    if not given.incoming and not given.outgoing:
        raise ConfigError("", "", "no events come in or go out: add `in = [...]` or `out = [...]`")
    for place, coming in enumerate(given.incoming):
        if not _PATTERN.fullmatch(coming.subject):
            expected = "`*` stands for one token, `>` for all further ones"
            raise ConfigError("", f"in[{place}].subject", f"{coming.subject!r} is not a subject: {expected}")
    if len({coming.subject for coming in given.incoming}) < len(given.incoming):
        raise ConfigError("", "in", "two rules have the same subject: a message comes in once, so remove one rule")
    filters = [_check_out(going, f"out[{place}]") for place, going in enumerate(given.outgoing)]
    if given.password_variable:
        if given.password_variable not in os.environ:
            raise ConfigError("", "password_variable", f"the environment has no variable {given.password_variable}")
        secret = Secret(os.environ[given.password_variable])
        which = {"password": secret} if given.username else {"token": secret}
        given = msgspec.structs.replace(given, **which)
    if bool(given.username) == given.password.is_empty:
        raise ConfigError("", "username", "a username and a password go together: give both, or neither")
    if bool(given.certificate) != bool(given.key):
        raise ConfigError("", "certificate", "a certificate and its key go together: give both, or neither")
    for key in ("credentials", "authorities", "certificate", "key"):
        if getattr(given, key) and not Path(getattr(given, key)).is_file():
            raise ConfigError("", key, f"there is no file {getattr(given, key)}")
    return given, filters


def client(given: Settings) -> dict[str, Any]:
    """Return the arguments of `nats.connect`."""
    found: dict[str, Any] = {"servers": given.url}
    if given.username:
        found |= {"user": given.username, "password": given.password.reveal()}
    if not given.token.is_empty:
        found["token"] = given.token.reveal()
    if given.credentials:
        found["user_credentials"] = given.credentials
    if given.url.startswith("tls:") or given.authorities or given.certificate:
        context = ssl.create_default_context(cafile=given.authorities or None)
        if given.certificate:
            context.load_cert_chain(given.certificate, given.key)
        found["tls"] = context
    return found


def _check_url(url: str) -> None:
    expected = "write nats://HOST:PORT, or tls://HOST:PORT"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError("", "url", f"this is not a URL: {expected}") from None  # no quote: it may have a password
    if "@" in url:
        raise ConfigError("", "url", "a URL must not contain a name or password: use username and password")
    if parts.scheme not in ("nats", "tls") or not parts.hostname or parts.path not in ("", "/"):
        raise ConfigError("", "url", f"{url!r} is not valid: {expected}")


def _check_out(going: OutgoingRule, where: str) -> Filter:
    if not SUBJECT.fullmatch(FIELD.sub("x", going.subject)):
        raise ConfigError("", f"{where}.subject", f"{going.subject!r} is no subject with fields, as alarms.{{room}}")
    try:
        return parse(going.filter)
    except (FilterSyntaxError, FilterTooComplex) as error:
        raise ConfigError("", f"{where}.filter", error) from None
