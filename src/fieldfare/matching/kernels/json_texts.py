"""A look over JSON texts: the reasons for which the full reader may refuse a text that is well-formed.

A decoder that skips most of a text still checks the grammar. The walk here finds the rest: equal keys, names that can
meet by a dot, numbers without a value, nesting and size beyond the limits, and tags, which only the full reader reads.
A doubt costs a full reading and nothing else, so the walk may doubt too often, and never too seldom.
"""

from __future__ import annotations

from fieldfare.matching.kernels.buffers import byte_at, word_at
from fieldfare.matching.kernels.compiled import i64, jit, trailing_zeros, u64
from fieldfare.matching.kernels.texts import text_hash, text_word
from fieldfare.matching.match.json_layout import (
    ADDRESS,
    BLANK,
    DOTTED,
    DOUBTFUL,
    HASHES,
    LEVELS,
    MOST_LEVELS,
    PLAIN,
    RESULTS,
    WIDE,
)

_ONES, _HIGHS = 0x0101010101010101, 0x8080808080808080
_QUOTE, _BACKSLASH, _COLON, _COMMA, _DOT, _DOLLAR, _MINUS = 0x22, 0x5C, 0x3A, 0x2C, 0x2E, 0x24, 0x2D
_OPEN_LIST, _CLOSE_LIST, _OPEN, _CLOSE, _NEWLINE, _SPACE = 0x5B, 0x5D, 0x7B, 0x7D, 0x0A, 0x20
_ZERO, _NINE, _E = 0x30, 0x39, 0x65
_LONGEST_INT, _LONGEST_NUMBER, _LONGEST_EXPONENT = 18, 200, 2


@jit
def _equal(word, byte):  # type: ignore[no-untyped-def]
    """Return a word whose lowest set bit is in the first byte of `word` that equals a byte; zero if there is none."""
    there = word ^ (u64(byte) * u64(_ONES))
    return (there - u64(_ONES)) & ~there & u64(_HIGHS)


@jit
def _string_end(at, limit):  # type: ignore[no-untyped-def]
    """Return the address of the quote that ends a string, or `limit`; and whether there is a backslash, or no ASCII."""
    escaped, wide = False, u64(0)
    while at < limit:
        if at + 8 <= limit:
            word = u64(word_at(at))
            found = _equal(word, _QUOTE) | _equal(word, _BACKSLASH)
            wide |= word  # a byte after the string makes no harm
            if found == 0:
                at += 8
                continue
            at += trailing_zeros(found) >> 3
        byte = byte_at(at)
        if byte == _QUOTE:
            return at, escaped, wide & u64(_HIGHS) != 0
        wide |= u64(byte)
        if byte == _BACKSLASH:
            escaped = True
            at += 1
        at += 1
    return limit, True, True


@jit
def _digits_end(at, limit):  # type: ignore[no-untyped-def]
    """Return the address after some digits."""
    while at + 8 <= limit:
        word = u64(word_at(at)) ^ u64(_ZERO * _ONES)  # digits become 0 to 9
        others = (((word & u64(0x7F * _ONES)) + u64(0x76 * _ONES)) | word) & u64(_HIGHS)
        if others:
            return at + (trailing_zeros(others) >> 3)
        at += 8
    while at < limit and _ZERO <= byte_at(at) <= _NINE:
        at += 1
    return at


@jit
def _number_end(begin, limit):  # type: ignore[no-untyped-def]
    """Return the address after the digits of a number, and whether the number has a value of 64 bits."""
    at = _digits_end(begin, limit)
    size = at - begin
    sound = size <= _LONGEST_INT or (size == _LONGEST_INT + 1 and byte_at(begin) < _NINE)  # 19 digits may be too large
    if at < limit and byte_at(at) == _DOT:
        at = _digits_end(at + 1, limit)
        sound = True
    if at < limit and byte_at(at) | 0x20 == _E:
        at += 1
        if at < limit and byte_at(at) < _ZERO:
            at += 1  # the sign
        digits = at
        at = _digits_end(at, limit)
        sound = at - digits <= _LONGEST_EXPONENT
    return at, sound and at - begin <= _LONGEST_NUMBER


@jit
def _meets(known, first, top, value):  # type: ignore[no-untyped-def]
    """Tell whether a key, or the beginning of a key, may be equal to one of the object's before."""
    for i in range(first, top):
        both = known[i] ^ value
        if both == 1 or (both == 0 and value & 1):
            return True
    return False


@jit
def _write(work, out, offset, judgement, parts, wide, doubt):  # type: ignore[no-untyped-def]
    """Write the end and the judgement of a text."""
    work[out] = offset
    if doubt or parts > work[1]:
        judgement = i64(DOUBTFUL)
    elif parts == 0:
        judgement = i64(BLANK)
    work[out + 1] = judgement | WIDE if wide else judgement


@jit
def look_over(at, limit, lines, work):  # type: ignore[no-untyped-def]
    """Judge a text, or lines of a text, as many as fit; return the number of judgements.

    `json_layout` describes `work`.
    """
    source, begin, out = at, at, RESULTS
    depth, top, parts, judgement, closed, wide = 0, HASHES, 0, i64(PLAIN), False, False
    while at < limit:
        byte = byte_at(at)
        at += 1
        if _ZERO <= byte <= _NINE:
            at, sound = _number_end(at - 1, limit)
            if not sound:
                judgement = i64(DOUBTFUL)
        elif byte == _COMMA:
            parts += 1
        elif byte == _QUOTE:
            start = at
            at, escaped, beyond = _string_end(at, limit)
            wide |= beyond
            end = at
            at += 1
            while at < limit and byte_at(at) <= _SPACE and (byte_at(at) != _NEWLINE or not lines):
                at += 1
            if at >= limit or byte_at(at) != _COLON:
                continue
            at += 1
            if escaped or (end > start and byte_at(start) == _DOLLAR) or depth == 0:
                judgement = i64(DOUBTFUL)
                continue
            first, dots = work[LEVELS + depth], u64(0)
            for place in range(start, end, 8):
                dots |= _equal(text_word(place, end, limit), _DOT)
            if dots:
                judgement = max(judgement, i64(DOTTED))
                for place in range(start, end):
                    if byte_at(place) == _DOT and top < LEVELS:
                        value = i64(text_hash(text_word(start, place, limit), start, place, limit) & ~u64(1))
                        if _meets(work, first, top, value):
                            judgement = i64(DOUBTFUL)
                        work[top] = value
                        top += 1
            value = i64(text_hash(text_word(start, end, limit), start, end, limit) | u64(1))
            if top == LEVELS or _meets(work, first, top, value):
                judgement = i64(DOUBTFUL)
            else:
                work[top] = value
                top += 1
        elif byte in (_OPEN, _OPEN_LIST):
            parts += 1
            if depth >= work[0] or (depth == 0 and (closed or byte != _OPEN)):
                judgement = i64(DOUBTFUL)
            depth = min(depth + 1, MOST_LEVELS - 1)
            work[LEVELS + depth] = top
        elif byte in (_CLOSE, _CLOSE_LIST):
            if depth > 0:
                top = work[LEVELS + depth]
                depth -= 1
            closed = depth == 0
        elif byte == _NEWLINE and lines:
            _write(work, out, at - 1 - source, judgement, parts, wide, depth > 0 or at - begin > work[2])
            out += 2
            if out + 1 >= len(work):
                return (out - RESULTS) >> 1
            begin = at
            depth, top, parts, judgement, closed, wide = 0, HASHES, 0, i64(PLAIN), False, False
    if begin < limit:
        _write(work, out, limit - source, judgement, parts, wide, depth > 0 or limit - begin > work[2])
        out += 2
    return (out - RESULTS) >> 1


@jit
def judgement_of(size, work):  # type: ignore[no-untyped-def]
    """Return the judgement of a text of some bytes at the address in `work`."""
    at = work[ADDRESS]
    return work[RESULTS + 1] if look_over(at, at + size, False, work) else i64(DOUBTFUL)
