"""The settings of a node: `load` reads them from a TOML file, the environment and flags; `Config` holds them."""

from fieldfare.node.config.addresses import is_loopback, origin_of
from fieldfare.node.config.error import ConfigError
from fieldfare.node.config.loader import load
from fieldfare.node.config.names import NAME_FILE, is_name
from fieldfare.node.config.quantities import duration, size
from fieldfare.node.config.secret import Secret, Table
from fieldfare.node.config.settings import (
    STANDARD_ROLES,
    BorderSettings,
    ChannelSettings,
    Config,
    FederationSettings,
    Http,
    Limits,
    Log,
    PrefixSettings,
    RoleSettings,
    SecuritySettings,
    Sessions,
    Tls,
)
from fieldfare.node.config.strategy import strategy_of

__all__ = [
    "NAME_FILE",
    "STANDARD_ROLES",
    "BorderSettings",
    "ChannelSettings",
    "Config",
    "ConfigError",
    "FederationSettings",
    "Http",
    "Limits",
    "Log",
    "PrefixSettings",
    "RoleSettings",
    "Secret",
    "SecuritySettings",
    "Sessions",
    "Table",
    "Tls",
    "duration",
    "is_loopback",
    "is_name",
    "load",
    "origin_of",
    "size",
    "strategy_of",
]
