"""Numbers in frames and rows: counts of events, deliveries and messages."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec

NUMBER_LIMIT: Final = 2**62
"""Every number is smaller, so that a node can count on from any number it hears and store the result in 64 bits."""

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=NUMBER_LIMIT)]
"""A count from another node; a decoder refuses a number that could neither be stored nor counted on."""
