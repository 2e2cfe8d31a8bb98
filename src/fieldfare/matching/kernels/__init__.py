"""The compiled kernels: plain loops over an arena, made fast by numba, which release the GIL.

They are compiled on first use and cached on disk; until they are there, `scan` serves (see `backend`).
"""

from fieldfare.matching.kernels.build import fill_rows, list_visits
from fieldfare.matching.kernels.match import by_event, match_batch, match_one, number_keys_of, scan
from fieldfare.matching.kernels.texts import text_insert, text_keys

__all__ = [
    "by_event",
    "fill_rows",
    "list_visits",
    "match_batch",
    "match_one",
    "number_keys_of",
    "scan",
    "text_insert",
    "text_keys",
]
