"""The sources of settings: a TOML file, variables of the environment, flags of the command line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_type_hints

from fieldfare import toml
from fieldfare.node.config.error import ConfigError
from fieldfare.node.config.quantities import duration, size
from fieldfare.node.config.secret import decode_secret
from fieldfare.node.config.settings import SECTIONS, Config
from fieldfare.toml import TomlError, similar

_FILES: Final = frozenset(
    {"data", "tls.certificate", "tls.key", "tls.authorities", "security.public_key", "security.void", "places.graph"}
)
"""keys whose values are paths, relative to the folder of the file"""
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


def _settable() -> Iterator[tuple[str, Any]]:
    """Yield the keys that a variable or a flag can give, with their types."""
    for section, part in {"": Config, **SECTIONS}.items():
        for key, kind in get_type_hints(part).items():
            place = f"{section}.{key}" if section else key
            if place not in (*SECTIONS, "bridge", "patterns", "security.roles"):
                yield place, kind


KINDS: Final = dict(_settable())
"""the types of the keys that a variable or a flag can give"""
VARIABLES: Final[dict[str, str]] = {
    **{f"FIELDFARE_{key.replace('.', '_').upper()}": key for key in KINDS},
    "FIELDFARE_TOKEN_SECRET": "security.secret",
}
"""the variables of the environment, and the keys that they give"""


class Sources:
    """The settings given so far, each with its origin; later sources replace earlier ones key by key."""

    def __init__(self) -> None:
        self._tree: dict[str, Any] = {}
        self._origins: dict[str, str] = {}
        self._file = self._text = ""

    def add_file(self, path: Path) -> None:
        """Read a TOML file; paths in it are relative to its folder."""
        self._file = str(path)
        try:
            self._text = path.read_text("utf-8-sig")
            tree = toml.parse(self._text)
        except OSError as error:
            raise ConfigError(self._file, "", f"cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise ConfigError(self._file, "", f"is not text in UTF-8: {error}") from None
        except TomlError as error:
            raise ConfigError(self._file, "", error.problem, error.line) from None
        for key, value in tree.items():
            if key in SECTIONS and isinstance(value, dict):
                self._tree[key] = {}  # an empty section counts, too: `[security]` alone is not "no security"
                for inner, setting in value.items():
                    self._put(f"{key}.{inner}", setting, self._file, path.parent)
            else:
                self._put(key, value, self._file, path.parent)

    def add_environment(self, environment: Mapping[str, str]) -> None:
        """Take the variables that begin with `FIELDFARE_`; an empty variable counts as absent."""
        for variable, key in VARIABLES.items():
            text = environment.get(variable, "")
            if key == "port" and "://" in text:
                raise ConfigError(
                    variable,
                    key,
                    "this is a URL, as Kubernetes sets for a service called fieldfare: call the service otherwise, or"
                    " set enableServiceLinks: false",
                )
            if text:
                self._put(key, _typed(text, key), variable)
        for variable in environment:
            # Other programs may use the prefix; only a variable that is almost one of ours is a slip.
            if variable.startswith("FIELDFARE_") and variable not in VARIABLES:
                near = difflib.get_close_matches(variable, VARIABLES, n=1, cutoff=0.9)
                if near:
                    raise ConfigError(variable, "", f"there is no such variable; did you mean {near[0]!r}?")

    def add_flags(self, flags: Mapping[str, object]) -> None:
        """Take flags by key; None and an empty list count as absent."""
        for flag, value in flags.items():
            if value is None or value in ([], ()):
                continue
            key, source = flag.replace("-", "_"), f"--{flag.replace('_', '-')}"
            if key not in KINDS:
                raise ConfigError(source, "", f"there is no such setting{similar(key, KINDS)}")
            plain = str(value) if isinstance(value, Path) else value
            self._put(key, _typed(plain, key) if isinstance(plain, str) else plain, source)

    def _put(self, key: str, value: object, source: str, folder: Path | None = None) -> None:
        self._origins[key] = source
        try:
            value = measured(key, value)
            if key in _FILES and isinstance(value, str) and value:
                value = str((folder or Path()) / Path(value).expanduser())
        except (ValueError, RuntimeError) as error:
            raise self.error(key, error) from None
        section, _, inner = key.rpartition(".")
        place = self._tree.setdefault(section, {}) if section in SECTIONS else self._tree
        if isinstance(place, dict):  # else the file has a plain value in place of the section: see `config`
            place[inner if section in SECTIONS else key] = value

    def config(self) -> Config:
        """Return the settings with their types checked; the rules of `checks` come later."""
        try:
            return toml.convert(self._tree, Config, hook=decode_secret)
        except TomlError as error:
            problem = error.problem
            if error.place.endswith(("_bytes", "_seconds")):
                problem += f'; a number, or a string as "{"64MB" if error.place.endswith("_bytes") else "7d"}"'
            line = toml.located(error, self._text).line
            raise self.error(error.place, problem, line=line) from None

    def error(self, key: str, problem: object, *, line: int | None = None) -> ConfigError:
        """Return an error that names the file and line, variable or flag that gave a key."""
        near = (key, *(other for other in self._origins if key.startswith((f"{other}.", f"{other}["))))
        source = next((self._origins[known] for known in near if known in self._origins), self._file)
        if source != self._file:
            line = None
        elif line is None:
            line = toml.line_of(self._text, key)
        return ConfigError(source, key, problem, line)


def measured(key: str, value: object) -> object:
    """Return a string with a unit as a number in the unit that the name of the key ends with."""
    if isinstance(value, str) and key in KINDS:
        if key.endswith("_bytes"):
            return size(value)
        if key.endswith("_seconds"):
            return duration(value)
    return value


def _typed(text: str, key: str) -> object:
    """Return the value that a variable or a flag stands for; an unfit text stays a string, and its type is refused."""
    kind = KINDS[key]
    if kind == tuple[str, ...]:
        return tuple(part for part in map(str.strip, text.split(",")) if part)
    if kind is bool:
        return _TRUTHS.get(text.strip().lower(), text)
    if kind is int and re.fullmatch(r"\s*[0-9]{1,18}\s*", text):
        return int(text)
    return text
