"""`Config`: the settings of a node, as values; `load` reads them from a file of TOML, the environment and flags.

Later ones win: defaults, the file, the environment, flags. A mistake is a `ConfigError`, which says where it is and
what one may write there. The defaults are the safe ones: a node listens to its own machine only, and one that others
can reach does not start unless it is told who may do what (`[security]`), or that anybody may do anything (`insecure`).

    name = "oslo"
    data = "oslo-data"          # beside this file
    join = ["wss://rome.example.org/link"]

    [log]
    max_bytes = "20GB"          # or a number
    max_seconds = "7d"

    [security.roles.trader]
    publish = "type = 'quote'"
    subscribe = true

In the environment a key is `FIELDFARE_` and its name: `FIELDFARE_PORT`, `FIELDFARE_SESSIONS_LIMIT`. What is empty there
counts as not given. The secret of tokens is `FIELDFARE_TOKEN_SECRET`.
"""

from __future__ import annotations

import difflib
import hashlib
import hmac
import re
import socket
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_type_hints
from urllib.parse import urlsplit

import msgspec

from fieldfare.filters import FilterSyntaxError, FilterTooComplex, parse
from fieldfare.node import machine
from fieldfare.routing.prefix.options import Layout, Prefix
from fieldfare.routing.strategies import Strategy, by_name

ALGORITHMS: Final = ("HS256", "HS384", "HS512", "RS256", "PS256", "ES256", "ES384", "EdDSA")
"""that tokens may be signed with; the first three with a secret, the others with a pair of keys"""

NAME_FILE: Final = "name"
"""where a folder keeps the name of its node"""


class ConfigError(ValueError):
    """What is wrong with the settings of a node: in which file, variable or flag, at which key, and what is allowed."""

    def __init__(self, source: str, key: str, problem: object) -> None:
        self.source = source
        self.key = key
        where = (source,) if source == f"--{key}" else (source, key)
        super().__init__(": ".join(part for part in (*where, str(problem)) if part))


class Secret:
    """A text that does not show itself: neither printed, nor in a message, nor when settings are encoded.

    >>> Secret("tell nobody")
    Secret(***)
    >>> Secret("tell nobody").reveal()
    'tell nobody'
    """

    # Not a Struct or a dataclass: msgspec would encode these with all they hold.
    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    @property
    def size(self) -> int:
        """How many bytes it has in UTF-8."""
        return len(self._text.encode())

    @property
    def is_empty(self) -> bool:
        """Is there none?"""
        return not self._text

    def __repr__(self) -> str:
        return "Secret(***)" if self._text else "Secret()"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)


class Table(dict[str, Any]):
    """A table whose keys are not ours to know. Any of its values may be a password, so it shows its keys only."""

    def __repr__(self) -> str:
        return f"Table({', '.join(self)})"


# The settings

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Bytes: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 60)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e10)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; what it does not know is a mistake."""


class Log(_Part, frozen=True):
    """The log of events on disk. It consists of segments, and is shortened by whole segments, the oldest first."""

    segment_bytes: Bytes = 64 << 20
    """a segment of this size is closed, and the next one begun"""
    segment_seconds: Seconds = 3600.0
    """so is one of this age"""
    max_bytes: Bytes = 10 << 30
    """how large the log may get"""
    max_seconds: Seconds = 7 * 86400.0
    """how old its events may get"""
    sync: Literal["normal", "full"] = "normal"
    """what is accepted survives the process being killed; with `full` the machine losing power, too, which is slower"""


class Sessions(_Part, frozen=True):
    """What waits for subscribers that are slow, or away."""

    limit: Count = 100_000
    """so many events of a session may wait: be undelivered, or delivered and not acknowledged"""
    policy: Literal["buffer", "drop-oldest", "disconnect"] = "buffer"
    """what happens when the limit is reached. Below it nothing is ever dropped; what is dropped is counted.

    - `buffer`: events wait, those of a durable session on disk; at the limit the oldest make room for the newest.
    - `drop-oldest`: the same, but for a subscriber without a durable session no more than `queue` events wait.
    - `disconnect`: as `drop-oldest`, and the subscriber is disconnected, so that it knows of the gap.
    """
    life_seconds: Seconds = 7 * 86400.0
    """a durable session that nobody came back to for so long ends"""
    replicas: Annotated[int, msgspec.Meta(ge=0, le=5)] = 0
    """so many neighbours keep a copy of each durable session, should this node fail for good"""
    patience_seconds: Seconds = 10.0
    """so long a node waits for a session from another node; then it asks the replica holders, if there are any"""
    queue: Count = 1000
    """so many events wait, in memory, for a subscriber without a durable session, unless the policy is `buffer`"""


_PREFIX: Final = Prefix()


class PrefixSettings(_Part, frozen=True):
    """Of the strategy `prefix`. `parts` must be the same at all nodes; the rest may differ."""

    optimizers: tuple[str, ...] = ()
    """the names of the nodes that may be in charge of the tree, the first ones rather than the last; none: all may"""
    parts: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """so many trees, each with its optimizer; filters are divided by their first attribute"""
    depth: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """how deep a tag goes; 0: as deep as the tree"""
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = _PREFIX.threshold
    """a tree that differs more than this from what was last published is published"""
    refresh_seconds: Seconds = _PREFIX.refresh
    """so is one that has changed at all, after so long"""
    layout: Layout = _PREFIX.layout
    """which attributes come first: by name, those that most filters ask about, those that the fewest events satisfy"""
    beat_seconds: Seconds = _PREFIX.beat
    """so often the optimizer in charge gives a sign of life"""
    patience_seconds: Seconds = _PREFIX.patience
    """without one for so long, another takes over"""


class Limits(_Part, frozen=True):
    """What is refused because it is too much."""

    frame_bytes: Bytes = 1 << 20
    """of one WebSocket message"""
    body_bytes: Bytes = 1 << 20
    """of one HTTP request"""
    header_bytes: Bytes = 64 << 10
    """of its headers, with the URL"""
    hello_seconds: Seconds = 10.0
    """in which a new connection must have said what it wants: the headers of a request, then Hello"""
    message_seconds: Seconds = 60.0
    """in which a body or a message that was begun must be complete, and some of what we send be read"""
    batch: Count = 10_000
    """events published at once"""
    filter_chars: Count = 10_000
    """of the text of one filter"""
    filter_seconds: Seconds = 5.0
    """that reading one filter may take"""
    subscriptions: Count = 10_000
    """of one session"""
    connections: Count = 20_000
    """of all kinds, also of those who have not said who they are; fewer where there are not as many file descriptors"""
    sessions: Count = 100_000
    owner_sessions: Count = 1000
    """of one owner, where there is security"""


class Http(_Part, frozen=True):
    """Which web pages may speak to this node, and by which names."""

    origins: tuple[str, ...] = ()
    """pages from there may, besides the node's own; as https://app.example.org"""
    hosts: tuple[str, ...] = ()
    """names of this node, besides its addresses, localhost, the machine's name, `host` and that of `public_url`"""


class Tls(_Part, frozen=True):
    """Files in PEM."""

    certificate: str = ""
    """what the node shows to those who connect to it; with the chain up to an authority"""
    key: str = ""
    """that belongs to the certificate; without a passphrase"""
    authorities: str = ""
    """whom the node trusts when it connects to others; empty: whom the machine trusts"""


class RoleSettings(_Part, frozen=True):
    """What a role permits: nothing, all (true), or what lies inside a filter. `security.Role` is what comes of it."""

    publish: bool | str = False
    subscribe: bool | str = False
    advertise: bool | str | None = None
    """not given: as `publish`"""
    administer: bool = False
    join: bool = False
    """be a neighbour: a node that gets and sends what its own clients want and publish, which nobody here checks"""
    interest: bool = False
    """ask what anybody here subscribes to (`client.wanted`, `only_wanted`), as far as it is inside `publish`"""


STANDARD_ROLES: Final = {
    "admin": RoleSettings(publish=True, subscribe=True, administer=True, interest=True),
    "client": RoleSettings(publish=True, subscribe=True),
    "node": RoleSettings(join=True),
}
"""where tokens are our own, and no others are given"""


class SecuritySettings(_Part, frozen=True):
    """Who may do what. Tokens are checked with a secret or with a public key, never with both."""

    secret: Secret = Secret("")
    """at least as long as a hash: 32 bytes for HS256"""
    public_key: str = ""
    """a file in PEM; needs the package `cryptography`"""
    algorithms: tuple[str, ...] = ()
    """which a token may be signed with. With a secret HS256 unless given; with a public key they must be given."""
    issuer: str = ""
    """if given, tokens must be by this issuer"""
    audience: str = ""
    """if given, tokens must be for this audience; if not, tokens for a named audience are refused"""
    anonymous: str = ""
    """the role of those without a token; empty: they are refused"""
    void: str = ""
    """a file of tokens that are void before their time, read again whenever it changes"""
    roles: dict[str, RoleSettings] = {}
    """by name; none, with a secret: STANDARD_ROLES"""


class Config(_Part, frozen=True):
    """All settings of a node. Made by hand, nothing is checked: `load` does that."""

    name: str = ""
    """no two nodes of a network may share one. If it is not given, `load` takes the one that the folder `data` keeps,
    or makes one of host name, port and machine; a node without a folder may have another one after each start"""
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 7400
    """0: any that is free"""
    data: str = ""
    """the folder for all that survives; empty: all is in memory, and nothing does"""
    join: tuple[str, ...] = ()
    """the nodes to connect to, as ws:// or wss:// URLs"""
    role: Literal["peer", "parent"] = "peer"
    """what those nodes are to this one: all peers make a peer-to-peer overlay, parents a hierarchical one"""
    join_token: Secret = Secret("")
    """shown to these nodes; not needed where they share our secret"""
    strategy: str = "covering"
    dashboard: bool = True
    public_url: str = ""
    """how others reach this node"""
    insecure: bool = False
    """let anybody who reaches this node do anything, whatever `host` is"""
    log: Log = Log()
    sessions: Sessions = Sessions()
    prefix: PrefixSettings = PrefixSettings()
    limits: Limits = Limits()
    http: Http = Http()
    tls: Tls | None = None
    security: SecuritySettings | None = None
    """None: everybody may do everything"""
    bridge: tuple[dict[str, Any], ...] = ()
    """tables for bridges, which know what they mean"""


_SECTIONS: Final[dict[str, type[_Part]]] = {
    "log": Log,
    "sessions": Sessions,
    "prefix": PrefixSettings,
    "limits": Limits,
    "http": Http,
    "tls": Tls,
    "security": SecuritySettings,
}
_FILES: Final = frozenset(
    {"data", "tls.certificate", "tls.key", "tls.authorities", "security.public_key", "security.void"}
)


def _settable() -> Iterator[tuple[str, Any]]:
    """The keys that a variable or a flag can give, with their types."""
    for section, part in {"": Config, **_SECTIONS}.items():
        for key, kind in get_type_hints(part).items():
            place = f"{section}.{key}" if section else key
            if place not in (*_SECTIONS, "bridge", "security.roles"):
                yield place, kind


_KINDS: Final = dict(_settable())
VARIABLES: Final[dict[str, str]] = {
    **{f"FIELDFARE_{key.replace('.', '_').upper()}": key for key in _KINDS},
    "FIELDFARE_TOKEN_SECRET": "security.secret",
}
"""the variables of the environment, and the keys that they give"""


def load(path: Path | None, environment: Mapping[str, str], flags: Mapping[str, object]) -> Config:
    """The settings of a node; ConfigError if they are no good.

    Flags are keys with values, as `{"port": 7401, "log.sync": "full"}`; what is None or an empty list is not given.
    Names of files in the file are relative to its folder.

    >>> config = load(None, {"FIELDFARE_PORT": "7401", "FIELDFARE_NAME": "oslo"}, {"port": 7402})
    >>> config.name, config.port, config.host
    ('oslo', 7402, '127.0.0.1')
    >>> load(None, {}, {"prot": 7402})
    Traceback (most recent call last):
    fieldfare.node.config.config.ConfigError: --prot: there is no such setting; did you mean port?
    """
    given = _Given()
    if path is not None:
        given.add_file(path)
    given.add_environment(environment)
    given.add_flags(flags)
    config = given.convert()
    if not config.name:
        config = msgspec.structs.replace(config, name=_made_name(config, given))
    _check(config, given)
    return msgspec.structs.replace(config, bridge=tuple(map(Table, config.bridge)))


class _Given:
    """What was given so far, and where each key comes from."""

    def __init__(self) -> None:
        self._tree: dict[str, Any] = {}
        self._origins: dict[str, str] = {}
        self._file = ""

    def add_file(self, path: Path) -> None:
        self._file = str(path)
        try:
            tree = tomllib.loads(path.read_text("utf-8-sig"))
        except OSError as error:
            raise ConfigError(self._file, "", f"cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise ConfigError(self._file, "", f"is no text in UTF-8: {error}") from None
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(self._file, "", f"is no TOML: {error}") from None
        for key, value in tree.items():
            if key in _SECTIONS and isinstance(value, dict):
                self._tree[key] = {}  # a section that is there counts, even if it is empty
                for inner, setting in value.items():
                    self._put(f"{key}.{inner}", setting, self._file, path.parent)
            else:
                self._put(key, value, self._file, path.parent)

    def add_environment(self, environment: Mapping[str, str]) -> None:
        for variable, key in VARIABLES.items():
            text = environment.get(variable, "")
            if key == "port" and "://" in text:
                raise ConfigError(
                    variable,
                    key,
                    "this is a URL, as Kubernetes sets for a service called fieldfare: call it otherwise, or set"
                    " enableServiceLinks: false",
                )
            if text:
                self._put(key, _typed(text, key), variable)
        for variable in environment:
            # Others may use the prefix for purposes of their own; what is almost one of ours is a slip.
            if variable.startswith("FIELDFARE_") and variable not in VARIABLES:
                near = difflib.get_close_matches(variable, VARIABLES, n=1, cutoff=0.9)
                if near:
                    raise ConfigError(variable, "", f"there is no such variable; did you mean {near[0]}?")

    def add_flags(self, flags: Mapping[str, object]) -> None:
        for flag, value in flags.items():
            if value is None or value in ([], ()):
                continue
            key, source = flag.replace("-", "_"), f"--{flag.replace('_', '-')}"
            if key not in _KINDS:
                raise ConfigError(source, "", f"there is no such setting{_similar(key, _KINDS)}")
            plain = str(value) if isinstance(value, Path) else value
            self._put(key, _typed(plain, key) if isinstance(plain, str) else plain, source)

    def _put(self, key: str, value: object, source: str, folder: Path | None = None) -> None:
        try:
            value = _measured(key, value)
            if key in _FILES and isinstance(value, str) and value:
                value = str((folder or Path()) / Path(value).expanduser())
        except (ValueError, RuntimeError) as error:
            raise ConfigError(source, key, error) from None
        section, _, inner = key.rpartition(".")
        place = self._tree.setdefault(section, {}) if section in _SECTIONS else self._tree
        if isinstance(place, dict):  # if not, the file has something else there, and `convert` says so
            place[inner if section in _SECTIONS else key] = value
        self._origins[key] = source

    def convert(self) -> Config:
        try:
            return msgspec.convert(self._tree, Config, dec_hook=_secret)
        except msgspec.ValidationError as error:
            problem, place = _split(error)
            if place.startswith("security.roles[...]"):  # msgspec does not say which of the roles it is
                for name, role in self._tree["security"]["roles"].items():
                    try:
                        msgspec.convert(role, RoleSettings)
                    except msgspec.ValidationError as narrower:
                        problem, inner = _split(narrower)
                        place = ".".join(filter(None, ["security.roles", name, inner]))
                        break
            raise self.error(place, _advice(problem, place)) from None

    def error(self, key: str, problem: object) -> ConfigError:
        """An error that says which file, variable or flag gave a key."""
        near = (key, *(other for other in self._origins if key.startswith((f"{other}.", f"{other}["))))
        return ConfigError(next((self._origins[k] for k in near if k in self._origins), self._file), key, problem)


# From texts to values

_SIZES: Final[dict[str, int | Decimal]] = {
    "b": 1,
    **{unit: 1000**power for power, unit in enumerate(("kb", "mb", "gb", "tb"), 1)},
    **{unit: 1024**power for power, unit in enumerate(("kib", "mib", "gib", "tib"), 1)},
}
_TIMES: Final[dict[str, int | Decimal]] = {
    "ms": Decimal("0.001"),
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86400,
    "w": 7 * 86400,
}
_QUANTITY: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)")
_TRUTHS: Final = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


def size(text: str) -> int:
    """Bytes, from a number with a unit: 1 MB is 1000 kB, 1 MiB is 1024 KiB.

    >>> size("64MB"), size("1 KiB"), size("512")
    (64000000, 1024, 512)
    """
    return int(_quantity(text, _SIZES, "a size is a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, as 64MB"))


def duration(text: str) -> float:
    """Seconds, from a number with a unit.

    >>> duration("7d"), duration("1.5h"), duration("250 ms"), duration("30")
    (604800.0, 5400.0, 0.25, 30.0)
    """
    return float(_quantity(text, _TIMES, "a duration is a number with ms, s, m, h, d or w, as 90s or 7d"))


def _quantity(text: str, units: Mapping[str, int | Decimal], expected: str) -> Decimal:
    found = _QUANTITY.fullmatch(text.strip())
    unit = found[2].lower() if found else ""
    if found is None or (unit and unit not in units):
        raise ValueError(f"{expected}; not {text!r}")
    return Decimal(found[1]) * (units[unit] if unit else 1)


def _measured(key: str, value: object) -> object:
    """The unit of a number stands in the name of its key; a text may have another."""
    if isinstance(value, str) and key in _KINDS:
        if key.endswith("_bytes"):
            return size(value)
        if key.endswith("_seconds"):
            return duration(value)
    return value


def _typed(text: str, key: str) -> object:
    """What a text of the environment or a flag stands for. What it cannot be stays a text, and is refused later."""
    kind = _KINDS[key]
    if kind == tuple[str, ...]:
        return tuple(part for part in map(str.strip, text.split(",")) if part)
    if kind is bool:
        return _TRUTHS.get(text.strip().lower(), text)
    if kind is int and re.fullmatch(r"\s*[0-9]{1,18}\s*", text):
        return int(text)
    return text


def _secret(kind: type, value: object) -> object:
    if kind is not Secret:
        raise NotImplementedError
    if not isinstance(value, str):
        raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
    try:
        value.encode()
    except UnicodeEncodeError:  # whose message would quote it
        raise ValueError("a secret must be text in UTF-8") from None
    return Secret(value)


# What is wrong


def _split(error: msgspec.ValidationError) -> tuple[str, str]:
    problem, _, place = str(error).partition(" - at ")
    return problem, place.strip("`").removeprefix("$").removeprefix(".")


def _advice(problem: str, place: str) -> str:
    """A problem in our words, with what one may write there instead."""
    plain = problem.replace("`", "").replace("object", "table").replace("array", "list").replace(" | null", "")
    plain = plain[:1].lower() + plain[1:]
    part: type[_Part] = RoleSettings if place.startswith("security.roles.") else _SECTIONS.get(place, Config)
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
        allowed = part.__struct_fields__
        elsewhere = {key for key in _KINDS if key.rpartition(".")[2] == unknown[1]}
        advice = f"; did you mean {min(elsewhere)}?" if elsewhere else _similar(unknown[1], allowed)
        return f"there is no setting {unknown[1]}{advice} (there are {', '.join(allowed)})"
    if "enum value" in problem:
        return f"{plain}; write {' or '.join(repr(value) for value in get_args(_KINDS[place]))}"
    if place == "bridge" and "got `object`" in problem:
        return f"{plain}: write [[bridge]]"
    if place in _SECTIONS:
        return f"{plain}: write [{place}], and its settings below"
    if place.endswith(("_bytes", "_seconds")):
        example = "64MB" if place.endswith("_bytes") else "7d"
        return f'{plain}; a number, or a text as "{example}"'
    return plain


def _similar(wrong: str, known: Iterator[str] | Mapping[str, Any] | tuple[str, ...]) -> str:
    near = difflib.get_close_matches(wrong, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _made_name(config: Config, given: _Given) -> str:
    """The name in the folder; or one that no other machine makes, not even one with the same host name."""
    if config.port == 0:
        raise given.error("name", "with port 0, any free one, a node needs a name: no two may share one")
    folder = Path(config.data) if config.data else None
    if folder is not None and (folder / NAME_FILE).is_file():
        return (folder / NAME_FILE).read_text("utf-8").strip()
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname().partition(".")[0]).strip("-")
    made = f"{host[:80] or 'node'}-{config.port}"
    if folder is not None and (folder / "node.sqlite").exists():  # of a version that made names so
        return made
    return f"{made}-{_machine()}"


def _machine() -> str:
    """Six digits that tell this machine from its clones, until it is started anew."""
    return hashlib.sha256(machine.boot().encode()).hexdigest()[:6]


def is_name(name: str) -> bool:
    """Can a node be called so?"""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) is not None


def _check(config: Config, given: _Given) -> None:
    """What the types cannot say."""
    if not is_name(config.name):
        raise given.error("name", "a name has letters, digits, dots, dashes and underscores, 100 at most")
    for url in config.join:
        if problem := _url_problem(url, ("ws", "wss")):
            raise given.error("join", problem)
    if config.public_url and (problem := _url_problem(config.public_url, ("ws", "wss", "http", "https"))):
        raise given.error("public_url", problem)
    _check_strategy(config.strategy, given)
    _check_http(config.http, given)
    if config.data and Path(config.data).exists() and not Path(config.data).is_dir():
        raise given.error("data", f"{config.data} is no folder")
    if config.log.segment_bytes > config.log.max_bytes:
        raise given.error("log.segment_bytes", "a segment must not be larger than the log, log.max_bytes")
    if config.log.segment_seconds > config.log.max_seconds:
        raise given.error("log.segment_seconds", "a segment must not get older than the log, log.max_seconds")
    if config.tls is not None:
        _check_tls(config.tls, given)
    if config.security is not None:
        _check_security(config.security, given)
    elif not config.insecure and not is_loopback(config.host):
        raise given.error(
            "host",
            f"with {config.host or 'no host'} others can reach this node, and nothing says who may do what: add a"
            " [security] section or set FIELDFARE_TOKEN_SECRET, keep to 127.0.0.1, or say insecure = true",
        )


def is_loopback(host: str) -> bool:
    """Does only this machine reach it?

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org", "")]
    [True, True, True, False, False, False]
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"  # any other name is what the resolver says today


def _url_problem(url: str, schemes: tuple[str, ...]) -> str | None:
    wanted = f"write a URL as {schemes[0]}://example.org:7400, with {', '.join(f'{s}://' for s in schemes)}"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return f"this is no URL; {wanted}"  # the URL is not quoted, here and below: it may hold a password
    if parts.username is not None or parts.password is not None:
        return "a URL must not hold a name or password; a token goes into join_token"
    if "?" in url or "#" in url:
        return "a URL must end with its path, before ? and #; a token goes into join_token"
    if parts.scheme not in schemes or not host or re.search(r"\s", url):
        return f"{url!r} will not do; {wanted}" if "@" not in url else f"this will not do; {wanted}"
    return None


def origin_of(text: str) -> str | None:
    """An origin as browsers write it; None if it is none.

    >>> [origin_of(text) for text in ("https://App.example:443", "http://[::1]:7400", "null", "http://a.example/path")]
    ['https://app.example', 'http://[::1]:7400', None, None]
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#@\\\s]+", text.lower()):
        return None
    name = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in (None, usual) else "")


def _check_http(http: Http, given: _Given) -> None:
    for origin in http.origins:
        if origin_of(origin) != origin or "*" in origin:
            raise given.error(
                "http.origins", f"{origin!r} is no origin: name each as browsers do, as https://app.example.org"
            )
    for host in http.hosts:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,253}", host):
            raise given.error("http.hosts", f"{host!r} is no name of a machine: write it as node.example.org, no port")


def strategy_of(config: Config) -> Strategy:
    """How a node is to route."""
    strategy, given = by_name(config.strategy), config.prefix
    if strategy.prefix is None:
        return strategy
    settings = Prefix(
        given.optimizers,
        given.parts,
        given.depth or None,
        given.threshold,
        given.refresh_seconds,
        given.layout,
        given.beat_seconds,
        given.patience_seconds,
    )
    return replace(strategy, prefix=settings)


def _check_strategy(name: str, given: _Given) -> None:
    try:
        strategy = by_name(name)
    except ValueError as error:
        raise given.error("strategy", error) from None
    if strategy.overlay != "acyclic":
        raise given.error(
            "strategy",
            f"{name} is for networks with cycles, and running nodes form a tree for now: take one without +tree, as"
            " covering, merging or covering+ads",
        )


def _check_tls(tls: Tls, given: _Given) -> None:
    if bool(tls.certificate) != bool(tls.key):
        missing, there = ("key", "certificate") if tls.certificate else ("certificate", "key")
        raise given.error(f"tls.{missing}", f"is missing, and a {there} is of no use without it")
    for key in ("certificate", "key", "authorities"):
        _check_file(f"tls.{key}", getattr(tls, key), given)


def _check_file(key: str, file: str, given: _Given) -> None:
    if file and not Path(file).is_file():
        raise given.error(key, f"there is no file {file}")


def least_bytes(algorithm: str) -> int:
    """How long the secret of an algorithm must be: as long as the hash (RFC 7518, 3.2)."""
    return int(algorithm.removeprefix("HS")) // 8


def _check_security(security: SecuritySettings, given: _Given) -> None:
    by_secret = not security.secret.is_empty
    if by_secret == bool(security.public_key):
        raise given.error(
            "security",
            "tokens are checked with a secret or with a public_key: give one of them, and not both"
            " (the secret may be in FIELDFARE_TOKEN_SECRET)",
        )
    for algorithm in security.algorithms:
        _check_algorithm(algorithm, given, by_secret=by_secret)
    if by_secret:
        least = max(map(least_bytes, security.algorithms or ("HS256",)))
        if security.secret.size < least:
            raise given.error(
                "security.secret",
                f"must have {least} bytes at least, and has {security.secret.size}; to make one:"
                " python -c 'import secrets; print(secrets.token_urlsafe(48))'",
            )
    else:
        _check_file("security.public_key", security.public_key, given)
        if not security.algorithms:
            raise given.error("security.algorithms", 'say which the public key is for, as algorithms = ["EdDSA"]')
        if not security.roles:
            raise given.error("security.roles", "say what the roles in tokens permit: [security.roles.NAME]")
    for name, role in security.roles.items():
        _check_role(f"security.roles.{name}", role, given)
    roles = security.roles or STANDARD_ROLES
    if security.anonymous and security.anonymous not in roles:
        raise given.error(
            "security.anonymous",
            f"there is no such role{_similar(security.anonymous, roles)} (there are {', '.join(roles)})",
        )


def _check_algorithm(algorithm: str, given: _Given, *, by_secret: bool) -> None:
    allowed = [other for other in ALGORITHMS if other.startswith("HS") == by_secret]
    if algorithm not in allowed:
        what = "a secret" if by_secret else "a public key"
        raise given.error(
            "security.algorithms", f"{algorithm!r} will not do with {what}: there are {', '.join(allowed)}"
        )
    if not by_secret and find_spec("cryptography") is None:
        raise given.error(
            "security.algorithms", f"{algorithm} needs the package cryptography: pip install 'fieldfare[keys]'"
        )


def _check_role(place: str, role: RoleSettings, given: _Given) -> None:
    for key in ("publish", "subscribe", "advertise"):
        text = getattr(role, key)
        if isinstance(text, str):
            try:
                parse(text)
            except (FilterSyntaxError, FilterTooComplex) as error:
                raise given.error(f"{place}.{key}", f"true, false or a filter; {error}") from None
