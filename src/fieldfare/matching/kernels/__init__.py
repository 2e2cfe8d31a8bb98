"""The compiled kernels: plain loops over an arena that numba compiles; kernels release the GIL.

The kernels are compiled at first use and cached on disk; `fallback` serves until then (see `backend`).
"""

from fieldfare.matching.kernels.buffers import put_numbers
from fieldfare.matching.kernels.candidates import post_entries, satisfied_by_both, shortest_postings, survivors
from fieldfare.matching.kernels.json_texts import judgement_of, look_over
from fieldfare.matching.kernels.match import by_event, match_batch, match_one, scan
from fieldfare.matching.kernels.pairs import drop_repeats
from fieldfare.matching.kernels.plan import best_first, constants_of, lay_out, places_of, shares_of
from fieldfare.matching.kernels.relations import judge
from fieldfare.matching.kernels.rows import fill_rows, list_visits
from fieldfare.matching.kernels.texts import put_texts, text_insert

__all__ = [
    "best_first",
    "by_event",
    "constants_of",
    "drop_repeats",
    "fill_rows",
    "judge",
    "judgement_of",
    "lay_out",
    "list_visits",
    "look_over",
    "match_batch",
    "match_one",
    "places_of",
    "post_entries",
    "put_numbers",
    "put_texts",
    "satisfied_by_both",
    "scan",
    "shares_of",
    "shortest_postings",
    "survivors",
    "text_insert",
]
