"""Correlations of Sigma as patterns in the settings of a node: a table `[patterns.NAME]` for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fieldfare.cli.errors import InputError
from fieldfare.cli.formats.filter_files import NamedEntry
from fieldfare.filters.languages import sigma
from fieldfare.filters.languages.sigma import LogSchema
from fieldfare.patterns.sigma import Rules, title

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED: Final = re.compile(r'[\\"\x00-\x09\x0b-\x1f\x7f]')


def pattern_tables(entries: Iterable[NamedEntry | InputError], schema: LogSchema) -> Iterator[str | InputError]:
    """Yield a table for each correlation among rules, which may refer to each other, and the errors."""
    given = [one for entry in entries for one in _documents(entry)]
    rules = Rules([rule for _, rule in given if not isinstance(rule, InputError)], schema)
    for place, rule in given:
        if isinstance(rule, InputError):
            yield rule
        elif "correlation" in rule:
            try:
                yield _table(title(rule), rules.parse(rule).text)
            except ValueError as error:
                yield InputError(place, error)


def _documents(entry: NamedEntry | InputError) -> Iterator[tuple[str, Mapping[str, Any] | InputError]]:
    if isinstance(entry, InputError):
        yield "", entry
    elif isinstance(entry.written, Mapping):
        yield entry.place, entry.written
    else:
        try:
            for rule in sigma.documents(str(entry.written)):
                yield entry.place, rule
        except ValueError as error:
            yield entry.place, InputError(entry.place, error)


def _table(name: str, text: str) -> str:
    """Return a table of TOML, with the text on several lines.

    >>> print(_table("many logins", "a: [x = 1]").replace('"', "'"))
    [patterns.'many logins']
    text = '''
    a: [x = 1]
    '''
    <BLANKLINE>
    """
    key = name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
    escaped = _ESCAPED.sub(lambda found: _escape(found[0]), text)
    return f'[patterns.{key}]\ntext = """\n{escaped}\n"""\n'


def _escape(sign: str) -> str:
    return f"\\{sign}" if sign in '\\"' else f"\\u{ord(sign):04x}"
