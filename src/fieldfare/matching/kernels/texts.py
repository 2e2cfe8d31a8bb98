"""Texts to numbers: a hash table over the bytes of the texts that filters mention."""

from __future__ import annotations

from fieldfare.matching.kernels.compiled import i64, jit, u64


@jit
def _text_hash(data, first, last):  # type: ignore[no-untyped-def]
    value = u64(0xCBF29CE484222325)
    for i in range(first, last):
        value = (value ^ u64(data[i])) * u64(0x100000001B3)
    return value ^ (value >> u64(29))


@jit
def text_insert(slots, offsets, data, first, last):  # type: ignore[no-untyped-def]
    """Enter texts `first` to `last` into an open hash table of their numbers."""
    mask = u64(len(slots) - 1)
    for number in range(first, last):
        place = _text_hash(data, offsets[number], offsets[number + 1]) & mask
        while slots[place] >= 0:
            place = (place + u64(1)) & mask
        slots[place] = number


@jit
def text_keys(slots, offsets, data, length, event_offsets, event_data, out):  # type: ignore[no-untyped-def]
    """The numbers of events' texts in a table, or of their first (length > 0) or last (length < 0) characters."""
    mask = u64(len(slots) - 1)
    for event in range(len(out)):
        first, last = i64(event_offsets[event]), i64(event_offsets[event + 1])
        if length > 0:  # characters are bytes that do not go on one begun before
            left, at = length, first
            while at < last:
                if event_data[at] & 0xC0 != 0x80:
                    if left == 0:
                        break
                    left -= 1
                at += 1
            last = at
        elif length < 0:
            left, at = -length, last
            while at > first and left > 0:
                at -= 1
                if event_data[at] & 0xC0 != 0x80:
                    left -= 1
            first = at
        size = last - first
        place = _text_hash(event_data, first, last) & mask
        found = i64(-2)
        while slots[place] >= 0:
            number = i64(slots[place])
            start = offsets[number]
            if offsets[number + 1] - start == size:
                same = True
                for i in range(size):
                    if data[start + i] != event_data[first + i]:
                        same = False
                        break
                if same:
                    found = number
                    break
            place = (place + u64(1)) & mask
        out[event] = found
