"""`load` reads the settings of a node from a TOML file, the environment and flags.

Later sources win: defaults, the file, the environment, flags. A mistake is a `ConfigError`, which names the place and
the allowed values. The defaults are the safe ones: a node listens to its own machine only, and a node that others can
reach does not start unless its settings say who may do what (`[security]`), or that anybody may do anything
(`insecure`).

    name = "oslo"
    data = "oslo-data"          # beside this file
    join = ["wss://rome.example.org/link"]

    [log]
    max_bytes = "20GB"          # or a number
    max_seconds = "7d"

    [security.roles.trader]
    publish = "type = 'quote'"
    subscribe = true

A variable of the environment is `FIELDFARE_` and the key: `FIELDFARE_PORT`, `FIELDFARE_SESSIONS_LIMIT`. An empty
variable counts as absent. The secret of tokens is `FIELDFARE_TOKEN_SECRET`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from fieldfare.node.config.checks import check
from fieldfare.node.config.names import default_name
from fieldfare.node.config.secret import Table
from fieldfare.node.config.settings import Config
from fieldfare.node.config.sources import Sources


def load(path: Path | None, environment: Mapping[str, str], flags: Mapping[str, object]) -> Config:
    """Return the settings of a node; ConfigError if one is wrong.

    Flags are keys with values, as `{"port": 7401, "log.sync": "full"}`; None and an empty list count as absent.
    Paths in the file are relative to its folder.

    >>> config = load(None, {"FIELDFARE_PORT": "7401", "FIELDFARE_NAME": "oslo"}, {"port": 7402})
    >>> config.name, config.port, config.host
    ('oslo', 7402, '127.0.0.1')
    >>> load(None, {}, {"prot": 7402})
    Traceback (most recent call last):
    fieldfare.node.config.error.ConfigError: --prot: there is no such setting; did you mean 'port'?
    """
    sources = Sources()
    if path is not None:
        sources.add_file(path)
    sources.add_environment(environment)
    sources.add_flags(flags)
    config = sources.config()
    if not config.name:
        try:
            config = msgspec.structs.replace(config, name=default_name(config))
        except ValueError as error:
            raise sources.error("name", error) from None
    check(config, sources)
    return msgspec.structs.replace(config, bridge=tuple(map(Table, config.bridge)))
