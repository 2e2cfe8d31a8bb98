"""The columns of an event table beside its fields, and the choice for fields that are not declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import pyarrow as pa

Unknown: TypeAlias = Literal["keep", "quarantine", "drop"]
"""the choice for a field that is not declared: keep the field in `rest`, quarantine the event, or drop the field"""
TIME: Final = pa.timestamp("us", "UTC")
ATTRIBUTES: Final[Mapping[str, pa.DataType]] = {
    "id": pa.string(),
    "source": pa.string(),
    "type": pa.string(),
    "time": TIME,
}
"""the columns of an event table that are taken from fields of the same name"""
