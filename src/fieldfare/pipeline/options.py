"""The options of a source or sink as a struct; an error names a wrong, missing or unknown option."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, TypeVar

import msgspec

SPARKS: Final = frozenset({"checkpointlocation", "queryname"})
"""options of the stream that Spark passes on to the sink"""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all structs of options; Spark gives all values of `.option(...)` as text."""


Given = TypeVar("Given", bound=Options)


class OptionError(ValueError):
    """A missing, unknown or wrong option."""


def read(name: str, options: Mapping[str, str], kind: type[Given]) -> Given:
    """Return the options of a format as a struct; OptionError names the problem and the known options.

    >>> class Some(Options):
    ...     url: str
    ...     max_rows: int = 10
    >>> read("mine", {"url": "ws://a", "max_rows": "5"}, Some)
    Some(url='ws://a', max_rows=5)
    >>> read("mine", {"url": "ws://a", "rows": "5"}, Some)
    Traceback (most recent call last):
        ...
    fieldfare.pipeline.options.OptionError: mine: there is no option `rows`; its options: url, max_rows
    """
    given = {key: value for key, value in options.items() if key not in SPARKS}
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        problem = str(error)
        if found := re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
            problem = f"there is no option `{found[1]}`"
        elif found := re.fullmatch(r"Object missing required field `(.*)`", problem):
            problem = f"the option `{found[1]}` is missing"
        raise OptionError(f"{name}: {problem}; its options: {', '.join(kind.__struct_fields__)}") from None


def texts(options: Mapping[str, object]) -> dict[str, str]:
    """Return options as Spark passes them on: all as text, and `true` for True.

    >>> texts({"max_rows": 5, "public": True})
    {'max_rows': '5', 'public': 'true'}
    """
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


def needs(name: str, module: str, extra: str) -> None:
    """Raise OptionError if a module that a format needs is not installed.

    >>> needs("mine", "no_such_module", "node")
    Traceback (most recent call last):
        ...
    fieldfare.pipeline.options.OptionError: mine needs the module no_such_module: pip install 'fieldfare[node]', ...
    """
    if find_spec(module) is None:
        raise OptionError(f"{name} needs the module {module}: pip install 'fieldfare[{extra}]', on all machines")
