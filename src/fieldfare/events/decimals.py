"""Decimals as numbers that events are matched with: no comparison loses a digit.

A filter's number is an integer or a float, and a float stands for the decimal that is written for it: 0.7 for seven
tenths, though no float is seven tenths. From 2**53 on floats have no fraction, and stand for themselves. So a decimal
is an integer of 64 bits, a float, or a number between two floats, which equals none.

>>> number(Decimal("0.70")), number(Decimal("7")), number(Decimal("0.70000000000000000001"))
(0.7, 7, Between('0.70000000000000000001'))
>>> number(Decimal("0.70000000000000000001")) > 0.7, number(Decimal("0.70")) > 0.7
(True, False)
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from fieldfare.events.values import INT64_MAX, INT64_MIN

_FRACTIONS: Final = 2.0**53
"""floats have fractions below this number"""


class Between(float):
    """A decimal that no float stands for. Its arithmetic is that of the nearest float, its order that of the decimal.

    A comparison with a float is a comparison with the decimal that the float stands for.
    """

    __slots__ = ("_exact",)
    _exact: Decimal

    def __new__(cls, value: Decimal) -> Between:
        """Make the number of a decimal."""
        made = super().__new__(cls, value)
        made._exact = value
        return made

    def __eq__(self, other: object) -> bool:
        return self._exact == _meant(other)

    def __ne__(self, other: object) -> bool:
        return self._exact != _meant(other)

    def __lt__(self, other: float) -> bool:
        return self._exact < _meant(other)

    def __le__(self, other: float) -> bool:
        return self._exact <= _meant(other)

    def __gt__(self, other: float) -> bool:
        return self._exact > _meant(other)

    def __ge__(self, other: float) -> bool:
        return self._exact >= _meant(other)

    def __hash__(self) -> int:
        return hash(self._exact)

    def __repr__(self) -> str:
        return f"Between('{self._exact}')"


def number(value: Decimal) -> int | float:
    """Return the integer or the float that a decimal is, or a number between two floats."""
    if INT64_MIN <= value <= INT64_MAX and value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    return nearest if _meant(nearest) == value else Between(value)


def _meant(other: object) -> Decimal | int:
    """Return the number that another number stands for; a value that is no number is compared as Python does."""
    if isinstance(other, Between):
        return other._exact
    if type(other) is float:
        return Decimal(repr(other)) if abs(other) < _FRACTIONS else Decimal(other)
    return other  # type: ignore[return-value]
