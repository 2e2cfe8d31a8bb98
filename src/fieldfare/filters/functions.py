"""Functions that filters may call: a few built in, and functions that users register.

A function must be pure: the same result for the same arguments, in every process. A function that returns true or false
is a predicate, `CIDR(address, '10.0.0.0/8')`; the result of any other function is compared, `LENGTH(name) > 20`.
"""

from __future__ import annotations

import inspect
import ipaddress
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from fieldfare.filters.patterns import like

Implies = Callable[[Sequence[Any], Sequence[Any]], bool]


@dataclass(frozen=True)
class Function:
    """A named pure function of `least` to `most` arguments (None: any number)."""

    name: str
    call: Callable[..., object] = field(compare=False)
    least: int = 1
    most: int | None = 1
    implies: Implies | None = field(default=None, compare=False)
    """for predicates: whether a call with the first argument expressions implies a call with the second. A preorder."""


MAX_PATTERN: Final = 10_000
"""characters of a pattern for MATCHES"""
_FUNCTIONS: Final[dict[str, Function]] = {}


def register(name: str, call: Callable[..., object], *, implies: Implies | None = None) -> Function:
    """Make a pure Python function callable in filters, under an upper-case name.

    >>> _ = register("DOUBLE", lambda value: 2 * value)
    >>> from fieldfare.filters import parse
    >>> parse("DOUBLE(price) > 10").matches({"price": 6})
    True
    """
    parameters = list(inspect.signature(call).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    least = sum(p.default is p.empty for p in positional)
    function = Function(name.upper(), call, least, None if rest else len(positional), implies)
    _FUNCTIONS[function.name] = function
    return function


def find(name: str) -> Function | None:
    """Return the function of a name in any case, or None."""
    return _FUNCTIONS.get(name.upper())


def names() -> Iterator[str]:
    """Yield the names of all functions, sorted."""
    return iter(sorted(_FUNCTIONS))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    return value


_pattern = lru_cache(maxsize=1024)(like)


def _matches(value: object, pattern: str, *, ignore_case: bool) -> bool:
    if len(pattern) > MAX_PATTERN:  # the pattern may be the value of another field
        raise ValueError(f"the pattern has more than {MAX_PATTERN} characters")
    return isinstance(value, str) and _pattern(pattern, ignore_case=ignore_case).matches(value)


class _Fitting:
    """LIKE patterns, one of which must fit; pieces of ASCII texts are found in the text in lower case."""

    def __init__(self, patterns: tuple[str, ...], ignore_case: bool) -> None:
        made = [like(pattern, ignore_case=ignore_case) for pattern in patterns]
        pieces = [one.piece for one in made]
        self._pieces = [piece.lower() for piece in pieces if piece and ignore_case and piece.isascii()]
        self._ascii = [one for one, piece in zip(made, pieces, strict=True) if not (piece and ignore_case)]
        self._all = made

    def any(self, value: object) -> bool:
        """Tell whether a pattern fits a string, or an element of a list."""
        if isinstance(value, (tuple, list)):
            return any(self.any(element) for element in value)
        if not isinstance(value, str):
            return False
        if not value.isascii():
            return any(one.matches(value) for one in self._all)
        lower = value.lower()
        return any(piece in lower for piece in self._pieces) or any(one.matches(value) for one in self._ascii)


def _more_patterns(few: Sequence[Any], many: Sequence[Any]) -> bool:
    """Tell whether a call has all patterns of another call on the same field."""
    return bool(few[0] == many[0] and {*few[1:]} <= {*many[1:]})


_fitting = lru_cache(maxsize=4096)(_Fitting)


def check_regex(written: str) -> None:
    """Raise a ValueError for a regular expression that RE2 does not take, such as one with a look-ahead."""
    try:
        _finds("", written)
    except ValueError as error:
        raise ValueError(str(error).removeprefix("Invalid regular expression: ").strip()) from None


def _finds(value: object, written: str) -> bool:
    """Tell whether RE2, which takes linear time, finds a regular expression in a string, or in a string in the list."""
    if isinstance(value, (tuple, list)):
        return any(_finds(element, written) for element in value)
    if len(written) > MAX_PATTERN:
        raise ValueError(f"the regular expression has more than {MAX_PATTERN} characters")
    import pyarrow as pa  # noqa: PLC0415 - few filters have regular expressions
    from pyarrow import compute  # noqa: PLC0415

    found = compute.match_substring_regex(pa.scalar(value), pattern=written) if isinstance(value, str) else None
    return found is not None and found.as_py() is True


def _in_network(address: object, network: object) -> bool:
    """Tell whether the address, or an address in the list, is in the network."""
    if isinstance(address, (tuple, list)):
        return any(_in_network(element, network) for element in address)
    try:
        return ipaddress.ip_address(_text(address)) in ipaddress.ip_network(_text(network), strict=False)
    except (ValueError, TypeError):
        return False


def _in_wider_network(narrow: Sequence[Any], wide: Sequence[Any]) -> bool:
    """Tell whether a network contains another: 10.1.0.0/16 implies 10.0.0.0/8 for the same address."""
    if narrow[0] != wide[0]:
        return False
    try:
        inner, outer = (ipaddress.ip_network(side[1].value, strict=False) for side in (narrow, wide))
        return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]
    except (ValueError, AttributeError):
        return False


register("ABS", lambda value: abs(_number(value)))
register("CEIL", lambda value: math.ceil(_number(value)))
register("FLOOR", lambda value: math.floor(_number(value)))
register("ROUND", lambda value: round(_number(value)))
register("LENGTH", lambda value: len(value) if isinstance(value, (str, bytes, tuple, list)) else _text(value))
register("LOWER", lambda value: _text(value).lower())
register("UPPER", lambda value: _text(value).upper())
register("TRIM", lambda value: _text(value).strip())
CIDR: Final = register("CIDR", _in_network, implies=_in_wider_network)
REGEX: Final = register("REGEX", _finds)
"""a regular expression of RE2, found anywhere in a string or in an element of a list"""
LIKE_ANY: Final = register(
    "LIKE_ANY", lambda value, *patterns: _fitting(patterns, False).any(value), implies=_more_patterns
)
"""LIKE with several patterns, one of which must fit; of a list, some element"""
ILIKE_ANY: Final = register(
    "ILIKE_ANY", lambda value, *patterns: _fitting(patterns, True).any(value), implies=_more_patterns
)
"""ILIKE with several patterns, one of which must fit; of a list, some element"""
MATCHES: Final = register("MATCHES", lambda value, pattern: _matches(value, pattern, ignore_case=False))
"""LIKE for patterns too complex to analyse"""
IMATCHES: Final = register("IMATCHES", lambda value, pattern: _matches(value, pattern, ignore_case=True))
"""ILIKE for patterns too complex to analyse"""
