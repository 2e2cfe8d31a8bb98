"""The working memory of the look over JSON texts, and its judgements.

    limits (levels, parts, bytes), address │ hashes of the keys of open objects │ first key of each level │ results

A result is two words: the offset at which a line ends, and the judgement of the line.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldfare.events.limits import DEFAULT_LIMITS

PLAIN, DOTTED, DOUBTFUL, BLANK = range(4)
"""judgements: nothing to doubt; nothing but dots in names; to be read in full; no text"""
WIDE: Final = 4
"""a flag beside the judgement: there are bytes beyond ASCII, which may be no UTF-8"""
ADDRESS: Final = 3
HASHES: Final = 4
LEVELS: Final = HASHES + 256
MOST_LEVELS: Final = 64
RESULTS: Final = LEVELS + MOST_LEVELS


def working_memory(results: int) -> NDArray[np.int64]:
    """Return memory for some results, with the limits of events.

    Commas and opening brackets are parts: an event without more parts than the limit of fields has no more fields. A
    text within the limit of a string has no longer string.
    """
    memory = np.zeros(RESULTS + 2 * results, np.int64)
    limits = DEFAULT_LIMITS
    memory[:ADDRESS] = min(limits.depth, MOST_LEVELS - 1), limits.fields, min(limits.string, limits.bytes)
    return memory
