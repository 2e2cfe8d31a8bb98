"""Compiled kernels of prefix forwarding: one writes the tag of an event, the other reads a tag.

A tree is rows of numbers, one row a node (`rows`), and one list of all nodes' children. numba compiles both kernels
when they are first called; `warm_up` calls them once.
"""

from __future__ import annotations

import numpy as np

from fieldfare.matching.kernels.compiled import jit
from fieldfare.routing.prefix.rows import COLUMNS, KIDS, KIDS_AT, PARENT, PLACE, SHIFTED


@jit
def read_tag(data, at, newest, rows, kids, masks, everyone):  # type: ignore[no-untyped-def]
    """Return the interfaces at the nodes of a tag, as bits; -1 for a tag with a limit, or of another tree.

    Reading starts after the version: `since`, which is at most the `newest` number, the limit, and the steps follow.
    """
    end = len(data)
    for header in range(2):
        number, shift, more = 0, 0, True
        while more:
            if at >= end or shift > 56:
                return -1
            number |= (data[at] & 127) << shift
            more = data[at] > 127
            shift += 7
            at += 1
        if (header == 1 and number != 0) or (header == 0 and number > newest):
            return -1
    found = masks[0]
    waiting = np.empty(2 * (end - at) + 2, np.int64)
    top, node, place, whole = 0, 0, -1, at == end
    while at < end:
        number, shift, more = 0, 0, True
        while more:
            if at >= end or shift > 56:
                return -1
            number |= (data[at] & 127) << shift
            more = data[at] > 127
            shift += 7
            at += 1
        place += 1 + (number >> 2)
        if whole or place >= rows[node, KIDS]:
            return -1
        child = kids[rows[node, KIDS_AT] + place]
        found |= masks[child]
        if found == everyone:
            return found
        if number & 2:
            if number & 1:
                waiting[top], waiting[top + 1] = node, place
                top += 2
            node, place = child, -1
        elif not number & 1:
            if top:
                top -= 2
                node, place = waiting[top], waiting[top + 1]
            else:
                whole = True
    return found if whole else -1


@jit
def write_tag(selected, rows, steps):  # type: ignore[no-untyped-def]
    """Write the steps of a tag for some nodes; return the number of bytes, and the number from which they are valid."""
    count = len(selected)
    keys = np.empty(count, np.int64)
    for i in range(count):
        keys[i] = rows[selected[i], PARENT] << 32 | rows[selected[i], PLACE]
    order = np.argsort(keys)
    since = rows[0, SHIFTED]
    waiting = np.empty(2 * count + 2, np.int64)
    top, size, i, before = 0, 0, 0, -1  # the root's children come first
    while i < count:
        node, key = selected[order[i]], keys[order[i]]
        since = max(since, rows[node, SHIFTED])
        more = i + 1 < count and keys[order[i + 1]] >> 32 == key >> 32
        low, high = 0, count  # the first child of the node
        while low < high:
            middle = (low + high) >> 1
            if keys[order[middle]] >> 32 < node:
                low = middle + 1
            else:
                high = middle
        down = low < count and keys[order[low]] >> 32 == node
        place = key & 0xFFFFFFFF
        number = (place - before - 1) << 2 | (2 if down else 0) | (1 if more else 0)
        while number > 127:
            steps[size] = number & 127 | 128
            number >>= 7
            size += 1
        steps[size] = number
        size += 1
        if down:
            if more:
                waiting[top], waiting[top + 1] = i + 1, place
                top += 2
            i, before = low, -1
        elif more:
            i, before = i + 1, place
        elif top:
            top -= 2
            i, before = waiting[top], waiting[top + 1]
        else:
            break
    return size, since


def warm_up() -> None:
    """Call each kernel once with a tree of a single node: numba compiles the kernel, or loads it from the cache."""
    numbers, none = np.zeros((1, COLUMNS), np.int64), np.zeros(4, np.int64)
    write_tag(none[:0], numbers, np.zeros(9, np.uint8))
    read_tag(np.frombuffer(b"\0\0", np.uint8), 0, 0, numbers, none, none, 0)
