"""Texts to numbers: a hash table over the bytes of the texts that filters mention.

`slots` is an open hash table of numbers; text n is the bytes from offsets[n] to offsets[n + 1], and heads[n] the first
eight bytes. Most texts are no longer, and the head decides alone. Positions of bytes are addresses.
"""

from __future__ import annotations

from fieldfare.matching.kernels.buffers import byte_at, half_at, word_at
from fieldfare.matching.kernels.compiled import i64, jit, u64
from fieldfare.matching.store.keys import MISSING_KEY, UNKNOWN_KEY

_MIX = 0x9FB21C651E98DF25


@jit
def text_word(at, end, limit):  # type: ignore[no-untyped-def]
    """Return the bytes from an address to `end`, at most eight, as a word; reads may go as far as `limit`."""
    if at + 8 <= end:
        return u64(word_at(at))
    if at + 8 <= limit:
        return u64(word_at(at)) & ((u64(1) << u64(8 * (end - at))) - u64(1))
    word, shift = u64(0), u64(0)
    while at < end:
        word |= u64(byte_at(at)) << shift
        shift += u64(8)
        at += 1
    return word


@jit
def text_hash(head, at, end, limit):  # type: ignore[no-untyped-def]
    """Return a hash of the bytes from an address to `end`; `head` is the first word."""
    value = (u64(end - at) ^ head) * u64(_MIX)
    at += 8
    while at < end:
        value = (value ^ (value >> u64(29)) ^ text_word(at, end, limit)) * u64(_MIX)
        at += 8
    return value ^ (value >> u64(32))


@jit
def text_insert(slots, offsets, heads, data, limit, first, last):  # type: ignore[no-untyped-def]
    """Enter texts `first` to `last` into a hash table."""
    mask = u64(len(slots) - 1)
    for number in range(first, last):
        at, end = data + offsets[number], data + offsets[number + 1]
        head = text_word(at, end, limit)
        heads[number] = head
        place = text_hash(head, at, end, limit) & mask
        while slots[place] >= 0:
            place = (place + u64(1)) & mask
        slots[place] = number


@jit
def _cut(at, end, length):  # type: ignore[no-untyped-def]
    """Return the bounds of the first (length > 0) or last (length < 0) characters of some bytes."""
    if length > 0:  # a character begins at every byte that is no continuation byte of UTF-8
        left, place = length, at
        while place < end:
            if byte_at(place) & 0xC0 != 0x80:
                if left == 0:
                    break
                left -= 1
            place += 1
        return at, place
    left, place = -length, end
    while place > at and left > 0:
        place -= 1
        if byte_at(place) & 0xC0 != 0x80:
            left -= 1
    return place, end


@jit
def put_texts(slots, offsets, heads, data, source, length, start, keys, column):  # type: ignore[no-untyped-def]
    """Write the numbers of texts in a table, or of their first or last characters, as the keys of a column.

    Begins with row `start` of the source and ends where keys (columns × rows) do. The source is: the address of the
    offsets, the size of an offset (4 or 8 bytes), the addresses of the bytes and of their end, the address of the
    validity bits (0: all rows are valid), and the bit of the first row.
    """
    mask, table_limit = u64(len(slots) - 1), data + offsets[len(offsets) - 1]
    bounds, width, begin, limit, valid, first = source[0], source[1], source[2], source[3], source[4], source[5] + start
    bounds += width * start
    for row in range(keys.shape[1]):
        if valid != 0 and (byte_at(valid + ((first + row) >> 3)) >> ((first + row) & 7)) & 1 == 0:
            keys[column, row] = MISSING_KEY
            continue
        if width == 8:
            at, end = begin + word_at(bounds + 8 * row), begin + word_at(bounds + 8 * row + 8)
        else:
            at, end = begin + half_at(bounds + 4 * row), begin + half_at(bounds + 4 * row + 4)
        if length != 0:
            at, end = _cut(at, end, length)
        head, size = text_word(at, end, limit), end - at
        place = text_hash(head, at, end, limit) & mask
        found = i64(UNKNOWN_KEY)
        while slots[place] >= 0:
            number = i64(slots[place])
            if heads[number] == head and offsets[number + 1] - offsets[number] == size:
                same, other = True, data + offsets[number]
                for more in range(8, size, 8):
                    if text_word(at + more, end, limit) != text_word(other + more, other + size, table_limit):
                        same = False
                        break
                if same:
                    found = number
                    break
            place = (place + u64(1)) & mask
        keys[column, row] = found
