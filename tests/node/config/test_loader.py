from __future__ import annotations

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.events import Event
from fieldfare.filters.distributions import Distributions
from fieldfare.node import config as c
from fieldfare.node.config import (
    Config,
    ConfigError,
    RoleSettings,
    Secret,
    checks,
    load,
    names,
    sources,
)
from fieldfare.node.config.settings import SECTIONS
from fieldfare.node.config.strategy import strategy_of
from fieldfare.routing.strategies import STRATEGIES

HIDDEN = "correct-horse-battery-staple-xyzzy-0123456789"


def read(tmp_path: Path, text: str, environment: dict[str, str] | None = None, **flags: object) -> Config:
    file = tmp_path / "node.toml"
    file.write_text(text, "utf-8")
    return load(file, environment or {}, flags)


def refused(tmp_path: Path, text: str, environment: dict[str, str] | None = None, **flags: object) -> str:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, environment, **flags)
    return str(caught.value).replace(str(tmp_path), "TMP")


# What there is


def test_with_nothing_given_a_node_is_safe_and_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "rome.example.org")
    monkeypatch.setattr(names, "_machine", lambda: "c0ffee")
    config = load(None, {}, {})
    assert config == Config(name="rome-7400-c0ffee")
    assert (config.host, config.port, config.data, config.security) == ("127.0.0.1", 7400, "", None)
    assert config.sessions.policy == "buffer"
    monkeypatch.setattr(socket, "gethostname", lambda: "_")
    assert load(None, {}, {"port": 1}).name == "node-1-c0ffee"


def test_all_settings_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "c.pem").touch()
    (tmp_path / "k.pem").touch()
    config = read(
        tmp_path,
        f"""
        name = "oslo"
        host = "0.0.0.0"
        port = 7401
        data = "here"
        join = ["ws://rome:7400", "wss://paris.example.org/link"]
        join_token = "abc"
        strategy = "merging+ads"
        dashboard = false
        public_url = "wss://oslo.example.org"
        [log]
        segment_bytes = "1MiB"
        segment_seconds = "1h"
        max_bytes = 1_000_000_000
        max_seconds = 86400
        archive = "s3://log/oslo"
        sync = "full"
        [sessions]
        limit = 5
        policy = "drop-oldest"
        life_seconds = "2w"
        queue = 7
        [channels]
        types = ["quote", "trade=rome"]
        hosts = ["oslo", "bern"]
        field = "kind"
        first = 1001
        [federation]
        domain = "north"
        [federation.borders.south]
        url = "wss://south.example.org"
        token = "abc"
        share = "type = 'quote'"
        [federation.borders.east]
        share = true
        [limits]
        frame_bytes = 1
        body_bytes = 2
        batch = 3
        filter_chars = 4
        subscriptions = 5
        connections = 6
        sessions = 7
        [tls]
        certificate = "c.pem"
        key = "k.pem"
        [security]
        secret = "{HIDDEN}"
        algorithms = ["HS256"]
        issuer = "me"
        audience = "you"
        anonymous = "guest"
        [security.roles.guest]
        subscribe = "public = TRUE"
        [security.roles.trader]
        publish = "type = 'quote'"
        subscribe = true
        advertise = false
        administer = true
        join = true
        [[bridge]]
        type = "mqtt"
        nested = {{ password = "{HIDDEN}" }}
        [[bridge]]
        type = "webhook"
        """,
    )
    assert config == Config(
        name="oslo",
        host="0.0.0.0",
        port=7401,
        data=str(tmp_path / "here"),
        join=("ws://rome:7400", "wss://paris.example.org/link"),
        join_token=Secret("abc"),
        strategy="merging+ads",
        dashboard=False,
        public_url="wss://oslo.example.org",
        log=c.Log(
            segment_bytes=1 << 20,
            segment_seconds=3600,
            max_bytes=10**9,
            max_seconds=86400,
            sync="full",
            archive="s3://log/oslo",
        ),
        sessions=c.Sessions(limit=5, policy="drop-oldest", life_seconds=14 * 86400, queue=7),
        channels=c.ChannelSettings(types=("quote", "trade=rome"), hosts=("oslo", "bern"), field="kind", first=1001),
        federation=c.FederationSettings(
            domain="north",
            borders={
                "south": c.BorderSettings(url="wss://south.example.org", token=Secret("abc"), share="type = 'quote'"),
                "east": c.BorderSettings(share=True),
            },
        ),
        limits=c.Limits(
            frame_bytes=1, body_bytes=2, batch=3, filter_chars=4, subscriptions=5, connections=6, sessions=7
        ),
        tls=c.Tls(certificate=str(tmp_path / "c.pem"), key=str(tmp_path / "k.pem")),
        security=c.SecuritySettings(
            secret=Secret(HIDDEN),
            algorithms=("HS256",),
            issuer="me",
            audience="you",
            anonymous="guest",
            roles={
                "guest": RoleSettings(subscribe="public = TRUE"),
                "trader": RoleSettings(
                    publish="type = 'quote'", subscribe=True, advertise=False, administer=True, join=True
                ),
            },
        ),
        bridge=({"type": "mqtt", "nested": {"password": HIDDEN}}, {"type": "webhook"}),
    )
    assert HIDDEN not in repr(config)
    assert isinstance(config.bridge[0], dict)


def test_every_setting_has_a_variable() -> None:
    config = load(
        None,
        {
            "FIELDFARE_NAME": "oslo",
            "FIELDFARE_HOST": "0.0.0.0",
            "FIELDFARE_PORT": "7401",
            "FIELDFARE_DATA": "/data",
            "FIELDFARE_JOIN": "ws://rome:7400, wss://paris,",
            "FIELDFARE_STRATEGY": "flooding",
            "FIELDFARE_DASHBOARD": "off",
            "FIELDFARE_TOKEN_SECRET": HIDDEN,
            "FIELDFARE_SECURITY_ALGORITHMS": "HS256",
            "FIELDFARE_LOG_MAX_BYTES": "2GiB",
            "FIELDFARE_LOG_MAX_SECONDS": "30d",
            "FIELDFARE_SESSIONS_LIMIT": "12000",
            "FIELDFARE_SESSIONS_POLICY": "disconnect",
            "FIELDFARE_PUBLIC_URL": "",
            "FIELDFARE_KERNELS": "numpy",
            "PORT": "1",
        },
        {},
    )
    assert config == Config(
        name="oslo",
        host="0.0.0.0",
        port=7401,
        data="/data",
        join=("ws://rome:7400", "wss://paris"),
        strategy="flooding",
        dashboard=False,
        security=c.SecuritySettings(secret=Secret(HIDDEN), algorithms=("HS256",)),
        log=c.Log(max_bytes=2 << 30, max_seconds=30 * 86400.0),
        sessions=c.Sessions(limit=12000, policy="disconnect"),
    )
    keys = {
        *(key for key in Config.__struct_fields__ if key not in {*SECTIONS, "bridge", "patterns"}),
        *(f"{name}.{key}" for name, part in SECTIONS.items() for key in part.__struct_fields__ if key != "roles"),
    }
    assert set(sources.VARIABLES.values()) == keys


def test_flags_are_given_as_values_or_texts() -> None:
    config = load(
        None,
        {},
        {
            "port": "7402",
            "join": ["ws://a"],
            "log.sync": "full",
            "public-url": "http://x",
            "dashboard": False,
            "sessions.limit": 10_000,
            "sessions.life_seconds": "1h",
            "data": Path("/d"),
            "name": None,
            "host": None,
        },
    )
    assert (config.port, config.join, config.log.sync, config.public_url) == (7402, ("ws://a",), "full", "http://x")
    assert (config.dashboard, config.sessions.limit, config.sessions.life_seconds) == (False, 10_000, 3600.0)
    assert config.data == "/d"


def test_a_flag_that_is_an_empty_list_hides_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "join = ['ws://a']", join=[]).join == ("ws://a",)


def test_files_are_found_beside_the_file_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ana")
    assert read(tmp_path, "data = 'here'").data == str(tmp_path / "here")
    assert read(tmp_path, "data = '/there'").data == "/there"
    assert read(tmp_path, "data = '~/there'").data == "/home/ana/there"
    assert read(tmp_path, "data = ''").data == ""
    assert read(tmp_path, "", {"FIELDFARE_DATA": "here"}).data == "here"


# Which counts

ports = st.none() | st.integers(1, 65535)


@given(in_file=ports, variable=ports, flag=ports)
def test_flags_before_environment_before_file_before_defaults(
    tmp_path_factory: pytest.TempPathFactory, in_file: int | None, variable: int | None, flag: int | None
) -> None:
    folder = tmp_path_factory.mktemp("config")
    first = next((port for port in (flag, variable, in_file) if port is not None), None)
    environment = (
        {} if variable is None else {"FIELDFARE_PORT": str(variable), "FIELDFARE_SESSIONS_QUEUE": str(variable)}
    )
    text = "" if in_file is None else f"port = {in_file}\nsessions.queue = {in_file}\nsessions.limit = 70_000"
    config = read(folder, text, environment, port=flag, **{"sessions.queue": flag})
    assert config.port == (first or 7400)
    assert config.sessions.queue == (first or 1000)
    assert config.sessions.limit == (100_000 if in_file is None else 70_000)  # one key of a section leaves the others


def test_the_named_secret_wins_over_the_general_name() -> None:
    both = {"FIELDFARE_TOKEN_SECRET": HIDDEN, "FIELDFARE_SECURITY_SECRET": HIDDEN[::-1]}
    for environment in (both, dict(reversed(both.items()))):
        security = load(None, environment, {}).security
        assert security is not None
        assert security.secret == Secret(HIDDEN)


# Mistakes

NORTH = "federation.domain = 'north'\n[federation.borders]\n"
SECURE = f"[security]\nsecret = '{HIDDEN}'\n"

MISTAKES = [
    ("channels.types = ['a']", "TMP/node.toml, line 1: channels.types: no node numbers the events of the type a: write a=NODE"),
    ("channels.types = ['a=b c']", "channels.types: 'a=b c' is no channel: write a type, or a type and a node"),
    ("channels.types = ['=b']", "channels.types: '=b' is no channel"),
    ("channels.types = ['a=b', 'a=c']", "channels.types: the type a is here twice"),
    ("channels.hosts = ['b c']", "channels.hosts: 'b c' is not the name of a node"),
    ("channels.types = ['a=@b c']", "channels.types: 'a=@b c' is no channel"),
    ("[federation.borders.south]", "federation.domain: is missing: other domains must know the name of this one"),
    ("federation.domain = 'a b'", "federation.domain: a name has letters"),
    (NORTH + "south.share = 'x <'", "federation.borders.south.share: expected true, false or a filter; line 1, column"),
    (NORTH + "south.url = 'http://a'", "federation.borders.south.url: 'http://a' is not valid; write a URL as ws://"),
    (NORTH + "north.share = true", "federation.borders.north: 'north' is not the name of another domain"),
    (NORTH + "south.shares = true", "federation.borders.south: there is no setting 'shares'; did you mean 'share'?"),
    ("strategy = 'prefix'\n" + NORTH + "south.share = true", "strategy: prefix does not go with borders: take covering"),
    ("role = 'parent'\n" + NORTH + "south.share = true", "role: a node with borders has peers only"),
    ("speaks = 2\n" + NORTH + "south.share = true", "speaks: version 2 has no borders"),
    ("prot = 7400", "TMP/node.toml, line 1: there is no setting 'prot'; did you mean 'port'? (there are name, host,"),
    ("[log]\nsegment_byte = 1", "TMP/node.toml, line 2: log: there is no setting 'segment_byte'; did you mean 'segment_bytes'?"),
    ("segment_bytes = 1", "there is no setting 'segment_bytes'; did you mean 'log.segment_bytes'?"),
    ("[lgo]\nsync = 'full'", "there is no setting 'lgo'; did you mean 'log'?"),
    ("zzz = 1", "there is no setting 'zzz' (there are name,"),
    ("port = '7400'", "TMP/node.toml, line 1: port: expected an integer, got a string"),
    ("port = 65536", "port: expected an integer <= 65535"),
    ("port = true", "port: expected an integer, got a boolean"),
    ("port = \n", "TMP/node.toml, line 1: this is not TOML: Invalid value (column "),
    ("port = 0", "TMP/node.toml: name: with port 0"),
    ("name = 'a b'", "name: a name has letters"),
    ("log.sync = 'ful'", "TMP/node.toml, line 1: log.sync: 'ful' is not valid; did you mean 'full'? (choices: 'normal', 'full')"),
    ("sessions.policy = 'drop'", "(choices: 'buffer', 'drop-oldest', 'disconnect')"),
    ("log = 1", "TMP/node.toml, line 1: log: expected a table, got an integer: write [log]"),
    ("log.max_bytes = '64 potatoes'", "log.max_bytes: a size is a number with B, kB"),
    ("log.max_bytes = 1.5", 'log.max_bytes: expected an integer, got a number; a number, or a string as "64MB"'),
    ("log.max_bytes = '0MB'", "log.max_bytes: expected an integer >= 1"),
    ("log.max_seconds = '-1d'", "log.max_seconds: a duration is a number with ms"),
    ("log.max_seconds = '7y'", "log.max_seconds: a duration is a number with ms"),
    ("log.max_seconds = nan", "log.max_seconds: expected a number"),
    ("log.max_seconds = inf", "log.max_seconds: expected a number <= 1"),
    ("log.max_bytes = 1000", "log.segment_bytes: a segment must not be larger than the log"),
    ("log.max_seconds = 60", "log.segment_seconds: a segment must not get older"),
    ("sessions.limit = 0", "sessions.limit: expected an integer >= 1"),
    ("join = 'ws://a'", "join: expected an array, got a string"),
    ("join = [1]", "TMP/node.toml, line 1: join[0]: expected a string, got an integer"),
    ("join = ['http://a:7400']", "join: 'http://a:7400' is not valid; write a URL as ws://"),
    ("join = ['rome:7400']", "join: 'rome:7400' is not valid"),
    ("join = ['ws://']", "join: 'ws://' is not valid"),
    ("join = ['ws://a:99999']", "join: this is not a URL"),
    ("join = ['ws://a b']", "is not valid"),
    ("join = ['ws://a/?token=b']", "join: a URL must end with its path, before ? and #; a token goes into join_token"),
    ("join = ['ws://ana:b@c']", "join: a URL must not contain a name or password"),
    ("public_url = 'ftp://a'", "public_url: 'ftp://a' is not valid; write a URL as ws://example.org:7400, with ws://, wss://, http://, https://"),
    ("strategy = 'best'", "strategy: there is no strategy 'best'; there are flooding, simple"),
    ("routing.merging_budget = 2", "routing.merging_budget"),
    ("routing.merging_statistics = 'x.json'", "routing.merging_statistics: the strategy covering needs none: statistics are for imperfect"),
    ("strategy = 'imperfect'\nrouting.merging_statistics = 'no-such.json'", "routing.merging_statistics: there is no file no-such.json"),
    ("strategy = 'covering+tree'", "strategy: covering+tree is for networks with cycles, and running nodes form a tree"),
    ("strategy = 'sources'", "strategy: sources is for networks with cycles"),
    ("strategy = 'rendezvous'", "strategy: rendezvous is for networks with cycles"),
    ("data = 'node.toml'", "data: TMP/node.toml is not a folder"),
    ("host = '0.0.0.0'", "TMP/node.toml, line 1: host: with 0.0.0.0 others can reach this node, and no setting says who may do what"),
    ("host = ''", "host: with no host others"),
    ("host = 'example.org'", "or write insecure = true"),
    ("[bridge]\ntype = 'mqtt'", "line 1: bridge: expected an array, got a table: write [[bridge]]"),
    ("tls.certificate = 'node.toml'", "tls.key: is missing, and a certificate needs it"),
    ("tls.key = 'node.toml'", "tls.certificate: is missing, and a key needs it"),
    ("tls.authorities = 'no.pem'", "tls.authorities: there is no file TMP/no.pem"),
    ("[security]", "TMP/node.toml, line 1: security: tokens are checked with a secret or with a public_key: give one"),
    ("security = 1", "security: expected a table, got an integer: write [security]"),
    (SECURE + "public_key = 'node.toml'", "give one of the two, not both"),
    ("security.secret = 'too short'", "security.secret: must have 32 bytes at least, and has 9"),
    ("security.secret = 12345678", "security.secret: expected a string, got an integer"),
    (SECURE + "algorithms = ['none']", "security.algorithms: 'none' is not valid with a secret (choices: HS256"),
    (SECURE + "algorithms = ['RS256']", "security.algorithms: 'RS256' is not valid with a secret"),
    (SECURE + "algorithms = ['HS512']", "security.secret: must have 64 bytes"),
    ("security.public_key = 'node.toml'", "security.algorithms: name the algorithms"),
    ("security.public_key = 'no.pem'", "security.public_key: there is no file TMP/no.pem"),
    ("security.public_key = 'node.toml'\nsecurity.algorithms = ['HS256']", "'HS256' is not valid with a public key"),
    (SECURE + "anonymous = 'clint'", "security.anonymous: there is no such role; did you mean 'client'? (there are admin, client, node)"),
    (SECURE + "anonymous = 'client'\n[security.roles.guest]", "security.anonymous: there is no such role (there are guest)"),
    (SECURE + "roles = 1", "security.roles: expected a table, got an integer"),
    (SECURE + "[security.roles.ok]\n[security.roles.trader]\npublsh = true", "line 5: security.roles.trader: there is no setting 'publsh'; did you mean 'publish'?"),
    (SECURE + "[security.roles.ok]\n[security.roles.trader]\npublish = 1", "TMP/node.toml, line 5: security.roles.trader.publish: expected a boolean or a string, got an integer"),
    (SECURE + "roles.trader = true", "security.roles.trader: expected a table, got a boolean"),
    (SECURE + "[security.roles.trader]\nsubscribe = 'price <'", "TMP/node.toml, line 4: security.roles.trader.subscribe: expected true, false or a filter; line 1, column"),
    (SECURE + "[security.roles.trader]\nsubscribe = ''", "security.roles.trader.subscribe: expected true, false or a filter"),
    (SECURE + "[security.roles.trader]\nsubscribe = 'a < 1 AND a > 2'", "nothing can match"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"FIELDFARE_PORT": "many"}, "FIELDFARE_PORT: port: expected an integer, got a string"),
        ({"FIELDFARE_PORT": "tcp://10.0.0.1:7400"}, "FIELDFARE_PORT: port: this is a URL, as Kubernetes sets"),
        ({"FIELDFARE_DASHBOARD": "maybe"}, "FIELDFARE_DASHBOARD: dashboard: expected a boolean, got a string"),
        ({"FIELDFARE_JOIN": "ws://a,b"}, "FIELDFARE_JOIN: join: 'b' is not valid"),
        ({"FIELDFARE_STRATEGIE": "simple"}, "FIELDFARE_STRATEGIE: there is no such variable; did you mean 'FIELDFARE_STRATEGY'?"),
        ({"FIELDFARE_HOST": "0.0.0.0"}, "FIELDFARE_HOST: host: with 0.0.0.0 others can reach"),
        ({"FIELDFARE_TOKEN_SECRET": "short"}, "FIELDFARE_TOKEN_SECRET: security.secret: must have 32 bytes"),
        ({"FIELDFARE_TOKEN_SECRET": "\udc80" * 40}, "FIELDFARE_TOKEN_SECRET: security.secret: a secret must be text"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_environment_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, environment, {})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"sesions.limit": 1}, "--sesions.limit: there is no such setting; did you mean 'sessions.limit'?"),
        ({"public_ulr": "x"}, "--public-ulr: there is no such setting; did you mean 'public_url'?"),
        ({"bridge": [{}]}, "--bridge: there is no such setting"),
        ({"public_url": "x"}, "--public-url: public_url: 'x' is not valid"),
        ({"port": -1}, "--port: expected an integer >= 0"),
    ],
)
def test_a_mistake_in_the_flags_is_named(flags: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, {}, flags)
    assert str(caught.value).startswith(message)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path, problem in [(tmp_path / "none.toml", "No such file"), (tmp_path, "Is a directory")]:
        with pytest.raises(ConfigError, match=rf"^{path}: cannot be read: {problem}"):
            load(path, {}, {})
    (tmp_path / "odd").write_bytes(b"name = '\xff'")
    with pytest.raises(ConfigError, match="is not text in UTF-8"):
        load(tmp_path / "odd", {}, {})


def test_public_keys_need_the_package_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[security]\npublic_key = 'node.toml'\nalgorithms = ['EdDSA']\n"
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert "security.algorithms: EdDSA needs the package cryptography" in refused(tmp_path, text)
    monkeypatch.setattr(checks, "find_spec", lambda name: object())
    assert "security.roles: describe the roles in tokens" in refused(tmp_path, text)
    assert read(tmp_path, text + "[security.roles.a]").security is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost", "LOCALHOST"])
def test_who_keeps_to_this_machine_needs_no_security(host: str) -> None:
    assert load(None, {}, {"host": host}).security is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "", "example.org", "localhost.example.org", "127.1"])
def test_whom_others_reach_needs_security_or_says_that_it_is_insecure(tmp_path: Path, host: str) -> None:
    assert "host: with" in refused(tmp_path, f"host = '{host}'")
    assert read(tmp_path, f"insecure = true\nhost = '{host}'").host == host
    assert read(tmp_path, f"host = '{host}'\n{SECURE}").host == host
    assert read(tmp_path, f"host = '{host}'", {"FIELDFARE_TOKEN_SECRET": HIDDEN}).host == host


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_for_trees_will_do(strategy: str) -> None:
    assert load(None, {}, {"strategy": strategy}).strategy == strategy


def test_merging_follows_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "statistics.json"
    file.write_bytes(Distributions.of([Event({"x": 1})]).text())
    for name in ("imperfect", "imperfect+ads"):
        flags = {"strategy": name, "routing.merging_budget": 0.1, "routing.merging_statistics": str(file)}
        merging = strategy_of(load(None, {}, flags)).merging
        assert merging is not None
        assert (merging.budget, merging.statistics) == (0.1, Distributions.read(file.read_bytes()))
    without = strategy_of(load(None, {}, {"strategy": "imperfect", "routing.merging_budget": 0})).merging
    assert without is not None
    assert not without.imperfect
    file.write_text("{}")
    with pytest.raises(ConfigError, match=r"routing.merging_statistics: .*statistics.json: no statistics of events"):
        load(None, {}, {"strategy": "imperfect", "routing.merging_statistics": str(file)})
