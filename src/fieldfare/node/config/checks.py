"""Rules that the types of the settings cannot express, such as files that must exist."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fieldfare.core.channel_map import channel_of
from fieldfare.core.domains import AT
from fieldfare.filters import FilterSyntaxError, FilterTooComplex, parse
from fieldfare.filters.distributions import Distributions
from fieldfare.node.config.addresses import is_loopback, origin_of, url_problem
from fieldfare.node.config.federation import check_federation
from fieldfare.node.config.movement_graph import places_of
from fieldfare.node.config.names import is_name
from fieldfare.node.config.patterns import problem_of
from fieldfare.node.config.settings import (
    STANDARD_ROLES,
    ChannelSettings,
    Config,
    Http,
    RoleSettings,
    SecuritySettings,
    Tls,
)
from fieldfare.node.config.sources import Sources
from fieldfare.protocol.versions import has
from fieldfare.routing.strategies import by_name
from fieldfare.toml import similar

ALGORITHMS: Final = ("HS256", "HS384", "HS512", "RS256", "PS256", "ES256", "ES384", "EdDSA")
"""algorithms that may sign tokens: those of HMAC with a secret, the others with a pair of keys"""


def check(config: Config, sources: Sources) -> None:
    """Raise a ConfigError for the first setting that breaks a rule."""
    if not is_name(config.name):
        raise sources.error("name", "a name has letters, digits, dots, dashes and underscores, 100 at most")
    for url in config.join:
        if problem := url_problem(url, ("ws", "wss")):
            raise sources.error("join", problem)
    if config.public_url and (problem := url_problem(config.public_url, ("ws", "wss", "http", "https"))):
        raise sources.error("public_url", problem)
    _check_strategy(config.strategy, sources)
    _check_channels(config.channels, sources)
    check_federation(config, sources)
    _check_versions(config, sources)
    _check_merging(config, sources)
    _check_http(config.http, sources)
    if config.data and Path(config.data).exists() and not Path(config.data).is_dir():
        raise sources.error("data", f"{config.data} is not a folder")
    _check_places(config, sources)
    for name, pattern in config.patterns.items():
        if problem := problem_of(name, pattern.text, config.limits):
            raise sources.error(f"patterns.{name}.text", problem)
    if config.log.segment_bytes > config.log.max_bytes:
        raise sources.error("log.segment_bytes", "a segment must not be larger than the log, log.max_bytes")
    if config.log.segment_seconds > config.log.max_seconds:
        raise sources.error("log.segment_seconds", "a segment must not get older than the log, log.max_seconds")
    if config.tls is not None:
        _check_tls(config.tls, sources)
    if config.security is not None:
        _check_security(config.security, sources)
    elif not config.insecure and not is_loopback(config.host):
        raise sources.error(
            "host",
            f"with {config.host or 'no host'} others can reach this node, and no setting says who may do what: add a"
            " [security] section or set FIELDFARE_TOKEN_SECRET, keep to 127.0.0.1, or write insecure = true",
        )


def _check_places(config: Config, sources: Sources) -> None:
    try:
        places_of(config.places)
    except (OSError, ValueError) as error:
        raise sources.error("places.graph", error) from None
    for key in ("here", "ahead"):
        if getattr(config.places, key) and not config.places.graph:
            raise sources.error(f"places.{key}", "needs a movement graph: set places.graph")


def _check_http(http: Http, sources: Sources) -> None:
    for origin in http.origins:
        if origin_of(origin) != origin or "*" in origin:
            raise sources.error(
                "http.origins", f"{origin!r} is not an origin: write origins as browsers do, as https://app.example.org"
            )
    for host in http.hosts:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,253}", host):
            raise sources.error(
                "http.hosts", f"{host!r} is not the name of a machine: write node.example.org, without a port"
            )


def _check_channels(channels: ChannelSettings, sources: Sources) -> None:
    for host in channels.hosts:
        if not is_name(host):
            raise sources.error("channels.hosts", f"{host!r} is not the name of a node")
    known: set[str] = set()
    for text in channels.types:
        type, node = channel_of(text)
        if not type or (node and not is_name(node.removeprefix(AT))):
            raise sources.error(
                "channels.types",
                f"{text!r} is no channel: write a type, or a type and a node or domain, as quote=oslo or bid=@south",
            )
        if not node and not channels.hosts:
            raise sources.error(
                "channels.types", f"no node numbers the events of the type {type}: write {type}=NODE, or channels.hosts"
            )
        if type in known:
            raise sources.error("channels.types", f"the type {type} is here twice")
        known.add(type)


def _check_versions(config: Config, sources: Sources) -> None:
    if config.channels.types and not has(config.speaks, "JoinChannel"):
        raise sources.error(
            "channels.types",
            f"version {config.speaks} has no channels, and would leave events on their way to a home: let all events"
            " arrive, take the types out, and then go back to that version",
        )


def _check_strategy(name: str, sources: Sources) -> None:
    try:
        strategy = by_name(name)
    except ValueError as error:
        raise sources.error("strategy", error) from None
    if strategy.overlay != "acyclic":
        raise sources.error(
            "strategy",
            f"{name} is for networks with cycles, and running nodes form a tree for now: take a strategy without"
            " +tree, as covering, merging or covering+ads",
        )


def _check_merging(config: Config, sources: Sources) -> None:
    merging, file = by_name(config.strategy).merging, config.routing.merging_statistics
    if not file:
        return
    if merging is None or not merging.imperfect:
        raise sources.error(
            "routing.merging_statistics", f"the strategy {config.strategy} needs none: statistics are for imperfect"
        )
    _check_file("routing.merging_statistics", file, sources)
    try:
        Distributions.read(Path(file).read_bytes())
    except (OSError, ValueError) as error:
        raise sources.error("routing.merging_statistics", f"{file}: {error}") from None


def _check_tls(tls: Tls, sources: Sources) -> None:
    if bool(tls.certificate) != bool(tls.key):
        missing, there = ("key", "certificate") if tls.certificate else ("certificate", "key")
        raise sources.error(f"tls.{missing}", f"is missing, and a {there} needs it")
    for key in ("certificate", "key", "authorities"):
        _check_file(f"tls.{key}", getattr(tls, key), sources)


def _check_file(key: str, file: str, sources: Sources) -> None:
    if file and not Path(file).is_file():
        raise sources.error(key, f"there is no file {file}")


def least_bytes(algorithm: str) -> int:
    """Return the bytes that the secret of an algorithm needs: as many as the hash has (RFC 7518, 3.2)."""
    return int(algorithm.removeprefix("HS")) // 8


def _check_security(security: SecuritySettings, sources: Sources) -> None:
    by_secret = not security.secret.is_empty
    if by_secret == bool(security.public_key):
        raise sources.error(
            "security",
            "tokens are checked with a secret or with a public_key: give one of the two, not both"
            " (the secret may be in FIELDFARE_TOKEN_SECRET)",
        )
    for algorithm in security.algorithms:
        _check_algorithm(algorithm, sources, by_secret=by_secret)
    if by_secret:
        least = max(map(least_bytes, security.algorithms or ("HS256",)))
        if security.secret.size < least:
            raise sources.error(
                "security.secret",
                f"must have {least} bytes at least, and has {security.secret.size}; to make a secret:"
                " python -c 'import secrets; print(secrets.token_urlsafe(48))'",
            )
    else:
        _check_file("security.public_key", security.public_key, sources)
        if not security.algorithms:
            raise sources.error(
                "security.algorithms", 'name the algorithms of the public key, as algorithms = ["EdDSA"]'
            )
        if not security.roles:
            raise sources.error("security.roles", "describe the roles in tokens: [security.roles.NAME]")
    for name, role in security.roles.items():
        _check_role(f"security.roles.{name}", role, sources)
    roles = security.roles or STANDARD_ROLES
    if security.anonymous and security.anonymous not in roles:
        raise sources.error(
            "security.anonymous",
            f"there is no such role{similar(security.anonymous, roles)} (there are {', '.join(roles)})",
        )


def _check_algorithm(algorithm: str, sources: Sources, *, by_secret: bool) -> None:
    allowed = [other for other in ALGORITHMS if other.startswith("HS") == by_secret]
    if algorithm not in allowed:
        what = "a secret" if by_secret else "a public key"
        raise sources.error(
            "security.algorithms", f"{algorithm!r} is not valid with {what} (choices: {', '.join(allowed)})"
        )
    if not by_secret and find_spec("cryptography") is None:
        raise sources.error(
            "security.algorithms", f"{algorithm} needs the package cryptography: pip install 'fieldfare[keys]'"
        )


def _check_role(place: str, role: RoleSettings, sources: Sources) -> None:
    for key in ("publish", "subscribe", "advertise"):
        text = getattr(role, key)
        if isinstance(text, str):
            try:
                parse(text)
            except (FilterSyntaxError, FilterTooComplex) as error:
                raise sources.error(f"{place}.{key}", f"expected true, false or a filter; {error}") from None
