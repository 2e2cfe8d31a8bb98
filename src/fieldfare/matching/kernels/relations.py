"""The comparison of entries of an arena with a branch in the form of a `Query`.

`judge` says yes, maybe, or nothing. The predicates of an entry without verification are exact, the predicates of other
entries only necessary.
"""

from __future__ import annotations

import numpy as np

from fieldfare.filters.valueset import Atom
from fieldfare.matching.kernels.compiled import (
    i64,
    jit,
    prefetch,
    u64,
)
from fieldfare.matching.relations.layout import (
    ALL,
    AROUND,
    CO_AROUND,
    CO_JOINED,
    CO_LOW,
    CO_POINTS,
    COVERED,
    COVERING,
    DECIDED,
    DOUBT,
    DOUBT_FLAG,
    FULL,
    INSIDE,
    JOINED,
    KINDS,
    LOW,
    MAYBE,
    MEETS,
    MORE,
    NO,
    OPEN,
    OVERLAPPING,
    PARTS,
    POINTS,
    RANGES,
    RANGES_AT,
    REQUESTED,
    SIDE,
    SIDES,
    SIDES_AT,
    SINGLE,
    SOME,
    UNSURE,
    WHOLE,
    YES,
)  # fmt: skip
from fieldfare.matching.store.keys import (
    ALONE,
    BYTES_TAG,
    HIGHEST,
    LOWEST,
    NOT_RANGE,
    NUMBER,
    NUMBER_TAG,
    OPEN_HIGH,
    OPEN_LOW,
    STRING_TAG,
    TAG,
    TIME,
    TIME_TAG,
    number_key,
)
from fieldfare.matching.store.layout import (
    ALIVE,
    BLOCK_COLUMNS_AT,
    OWNER,
    PREDICATE,
    PREDICATES_AT,
    SETS,
    SHARED_FLAG,
    VERIFY_FLAG,
)  # fmt: skip

FALSE, TRUE, UNKNOWN = range(3)
TOGETHER, NEVER = -1, -2
"""verdicts: the entry does not cover the branch, but several entries of the filter together may; the filter is not
covered, although the filter may be less than the entry"""

_MISSING, _LIST = Atom.MISSING, Atom.LIST
_SMALL, _LARGE = number_key(-(2.0**53)), number_key(2.0**53)
"""limits outside of which some integers equal no float"""
# The evidence of the predicates on a kind of an attribute: there is a predicate, there are several, a predicate
# decides, a predicate is undecided. Four bits for each of numbers, strings and times, above the possible kinds.
_SEEN, _MANY, _HIT, _UNTOLD = 1, 2, 4, 8
_SHOWN_AT = 11


@jit
def _last_from(words, at, count, key):  # type: ignore[no-untyped-def]
    """Return the last range that begins at a key or before, or -1."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if words[at + 3 * middle] <= key:
            low = middle + 1
        else:
            high = middle
    return low - 1


@jit
def _within(low, high, how, outer_low, outer_high, outer_how):  # type: ignore[no-untyped-def]
    """Tell whether a range lies in another; at equal keys an open end reaches further than a closed end."""
    return (outer_low < low or (outer_low == low and how & OPEN_LOW <= outer_how & OPEN_LOW)) and (
        high < outer_high or (high == outer_high and how & OPEN_HIGH <= outer_how & OPEN_HIGH)
    )


@jit
def _before(high, how, low, other_how):  # type: ignore[no-untyped-def]
    """Tell whether a range ends before another begins; two open ends leave numbers between, even between neighbours."""
    return high < low and not (high + 1 == low and how & OPEN_HIGH and other_how & OPEN_LOW)


@jit
def _range_is(words, part, low, high, how, test):  # type: ignore[no-untyped-def]
    """Test a range of keys against a part: inside, meeting, around the part, or around the complement."""
    if test in (AROUND, CO_AROUND):
        at = part + (LOW if test == AROUND else CO_LOW)
        return i64(_within(words[at], words[at + 1], words[at + 2], low, high, how))
    at, count = words[part + RANGES_AT], words[part + RANGES]
    place = _last_from(words, at, count, low) if count > 1 else i64(words[at] <= low) - 1
    piece = at + 3 * place
    if test == INSIDE:
        return i64(place >= 0 and _within(low, high, how, words[piece], words[piece + 1], words[piece + 2]))
    for i in range(max(piece, at), min(piece + 6, at + 3 * count), 3):  # no other range can meet the keys
        if not _before(words[i + 1], words[i + 2], low, how) and not _before(high, how, words[i], words[i + 2]):
            return i64(TRUE)
    return i64(FALSE)


@jit
def _set_is(words, part, count, inside, test):  # type: ignore[no-untyped-def]
    """Test a set of `count` keys, of which `inside` keys lie in the part."""
    if test == INSIDE:
        return i64(inside == count)
    if test == MEETS:
        return i64(inside > 0)
    if test == AROUND:
        return i64(0 < words[part + POINTS] == inside)
    return i64(0 < words[part + CO_POINTS] == count - inside)


@jit
def _keys_are(words, part, arena, first, last, test):  # type: ignore[no-untyped-def]
    """Test a set of numbers or times against a part."""
    at, count, inside = words[part + RANGES_AT], words[part + RANGES], 0
    for i in range(first, last):
        place = _last_from(words, at, count, arena[i])
        inside += place >= 0 and arena[i] <= words[at + 3 * place + 1]
    return _set_is(words, part, last - first, inside, test)


@jit
def _texts_are(words, part, tables, table, arena, first, last, test):  # type: ignore[no-untyped-def]
    """Test a set of texts against a part; unknown texts are marked as requested."""
    inside, unknown = 0, False
    for i in range(first, last):
        known = tables[table + arena[i]]
        if known & OPEN:
            tables[table + arena[i]] = known | REQUESTED
            unknown = True
        inside += known & INSIDE
    return i64(UNKNOWN) if unknown else _set_is(words, part, last - first, inside, test)


@jit
def _text_is(tables, place, test):  # type: ignore[no-untyped-def]
    """Test a text, or all texts with an affix, against a part; an unknown text is marked as requested."""
    known = tables[place]
    if known & OPEN:
        tables[place] = known | REQUESTED
        return i64(UNKNOWN)
    return i64(known & test != 0)


@jit
def _covers(words, side, kind, positive, answer):  # type: ignore[no-untyped-def]
    """Return the verdict of a predicate on part of a kind: whether the entry covers the demand of a side."""
    some, here = words[side + SOME], i64(1) << kind
    if positive:
        rest = some & ~here
        if rest and rest != _LIST:
            return NO
        verdict = DOUBT if rest else YES
        if some & here:
            if words[side + WHOLE] & here or answer == FALSE:
                return NO
            if answer == UNKNOWN:
                return min(verdict, MAYBE)
        return verdict
    if some & here == 0:
        return YES
    if words[side + WHOLE] & here or answer == TRUE:
        return NO
    return MAYBE if answer == UNKNOWN else YES


@jit
def _is_covered(words, side, shown):  # type: ignore[no-untyped-def]
    """Return the verdict of all predicates on an attribute: whether they imply the demand of a side."""
    rest = shown & KINDS & ~words[side + FULL]
    if rest & ~(words[side + SOME] & (i64(7) << NUMBER_TAG)):
        return NO
    verdict = YES
    for k in range(3):
        if rest >> (NUMBER_TAG + k) & 1:
            seen = shown >> (_SHOWN_AT + 4 * k)
            if seen & _HIT:
                continue
            if seen & _SEEN == 0:
                return NO
            if seen & _UNTOLD or (seen & _MANY and words[words[side + PARTS + k] + CO_JOINED] == 0):
                verdict = MAYBE
            else:
                return NO
    return verdict


@jit
def _overlaps(words, side, shown):  # type: ignore[no-untyped-def]
    """Return the verdict of all predicates on an attribute: whether they leave some of the demand of a side."""
    some = words[side + SOME]
    if shown & words[side + WHOLE] or shown & some & (i64(1) << BYTES_TAG):
        return YES
    verdict = DOUBT if some & _LIST else NO
    for k in range(3):
        if (shown & some) >> (NUMBER_TAG + k) & 1:
            seen = shown >> (_SHOWN_AT + 4 * k)
            if seen & _HIT:
                continue
            if seen & _UNTOLD or (seen & _MANY and words[words[side + PARTS + k] + JOINED] == 0):
                verdict = MAYBE
            else:
                return YES
    return verdict


@jit
def _verdict(arena, first, last, owner, words, columns, tables, shown, relation):  # type: ignore[no-untyped-def]
    """Return the relation of an entry to the sides of a query. `shown` has a word for each side."""
    verify, together = owner & VERIFY_FLAG != 0, False
    for side in range(words[SIDES]):
        shown[side] = KINDS
    verdict = YES
    for p in range(first, last, 3):
        word, low, high = arena[p], arena[p + 1], arena[p + 2]
        place = columns[word & 0xFFFF] if word & 0xFFFF < len(columns) else i64(-1)
        if place < 0:
            if relation == COVERING:
                return NO
            continue
        number, role, table = place & 0xFFFF, (place >> 16) & 0xFF, place >> 24
        side = SIDES_AT + number * SIDE
        some = words[side + SOME]
        positive, listed, how = (word >> 16) & 3 < NOT_RANGE, (word >> 16) & 1 != 0, word >> 18
        if listed:
            low, high = low + arena[SETS], high + arena[SETS]
        fits = YES
        if role == TAG:
            tags = i64(0)
            if listed:
                for i in range(low, high):
                    tags |= i64(1) << arena[i]
            else:
                tags = (i64(2) << min(high, BYTES_TAG)) - (i64(1) << max(low, 1))
            tags = tags if positive else KINDS & ~tags
            if relation == COVERING:
                fits = YES if some & ~tags == 0 else DOUBT if some & ~tags == _LIST else NO
            else:
                shown[number] &= tags | ~KINDS
        else:
            kind = i64(NUMBER_TAG if role == NUMBER else TIME_TAG if role == TIME else STRING_TAG)
            here = i64(1) << kind
            part = words[side + PARTS + kind - NUMBER_TAG]
            partial = some & ~words[side + WHOLE] & here != 0
            answer = i64(UNKNOWN)
            if partial and words[part + DECIDED]:
                if relation == COVERED:
                    test = INSIDE if positive else CO_AROUND
                elif relation == OVERLAPPING:
                    test = MEETS if positive else AROUND
                else:
                    test = AROUND if positive else MEETS
                if kind == STRING_TAG:
                    if listed:
                        answer = _texts_are(words, part, tables, table, arena, low, high, test)
                    else:
                        answer = _text_is(tables, table + low, test)
                elif listed:
                    answer = _keys_are(words, part, arena, low, high, test)
                else:
                    if verify and kind == NUMBER_TAG and positive:  # an end that no float equals was rounded
                        if low != LOWEST and (low >= _LARGE or low <= _SMALL):
                            low, how = low - 1, how & ~OPEN_LOW
                        if high != HIGHEST and (high >= _LARGE or high <= _SMALL):
                            high, how = high + 1, how & ~OPEN_HIGH
                    answer = _range_is(words, part, low, high, how, test)
            if relation == COVERING:
                fits = _covers(words, side, kind, positive, answer)
            else:
                # A predicate decides if it alone implies the side, or excludes the side.
                decides = answer == (FALSE if relation == OVERLAPPING and positive else TRUE)
                if positive:
                    shown[number] &= here | ~KINDS
                    # A positive predicate of an exact entry is the only predicate on the attribute.
                    if relation == COVERED:
                        if not verify and (some & here == 0 or answer == FALSE):
                            return NO
                    elif some & _LIST == 0 and (some & here == 0 or decides):
                        return NO
                if partial:
                    at = _SHOWN_AT + 4 * (kind - NUMBER_TAG)
                    seen = _MANY if (shown[number] >> at) & _SEEN else _SEEN
                    seen |= (_HIT if decides else 0) | (_UNTOLD if answer == UNKNOWN else 0)
                    shown[number] |= i64(seen) << at
        if fits == NO:
            if owner & SHARED_FLAG == 0 or words[side + SINGLE] or how & ALONE:
                return NO
            together = True
        else:
            verdict = min(verdict, fits)
    if relation == COVERING:
        return TOGETHER if together else verdict
    for number in range(words[SIDES]):
        side = SIDES_AT + number * SIDE
        if relation == COVERED:
            if verify and shown[number] == KINDS and words[side + SOME] & _MISSING == 0:
                return NEVER  # where a filter wants a value, its entry says so
            verdict = min(verdict, _is_covered(words, side, shown[number]))
        elif shown[number] != KINDS:
            verdict = min(verdict, _overlaps(words, side, shown[number]))
        if verdict == NO and not verify:
            return NO
    return verdict


@jit
def judge(arena, entries, count, words, columns, tables, relation, which, out):  # type: ignore[no-untyped-def]
    """Write the owners of the entries in a relation to a branch to `out`; return their number.

    -owner - 1 stands for maybe. An entry to verify contains its filter: the filter is covered if the entry is covered,
    and is not if the entry does not even overlap; the filter overlaps or covers at most maybe. `out` may be `entries`.
    """
    alive = arena[arena[ALIVE] : arena[BLOCK_COLUMNS_AT]].view(np.uint64)
    predicates_at = arena[arena[PREDICATES_AT] : arena[PREDICATE]].view(np.int32)
    shown = np.zeros(words[SIDES] + 1, np.int64)
    found = 0
    for c in range(count):
        if c + 24 < count:
            prefetch(arena, arena[PREDICATES_AT] + (entries[c + 24] >> 1))
            prefetch(arena, arena[OWNER] + entries[c + 24])
        if c + 12 < count:
            ahead = arena[PREDICATE] + i64(predicates_at[entries[c + 12]]) * 3
            prefetch(arena, ahead)
            prefetch(arena, ahead + 8)
        entry = entries[c]
        owner = arena[arena[OWNER] + entry]
        verify = owner & VERIFY_FLAG != 0
        if which != ALL and verify != (which == UNSURE):
            continue
        if (alive[entry >> 6] >> u64(entry & 63)) & u64(1) == u64(0):
            continue
        if relation == COVERED and words[MORE] and not verify:
            continue  # the branch wants something computed, of which entries tell nothing
        first = arena[PREDICATE] + i64(predicates_at[entry]) * 3
        last = arena[PREDICATE] + i64(predicates_at[entry + 1]) * 3
        verdict, test = i64(NO), i64(relation)
        for turn in range(2):
            answer = _verdict(arena, first, last, owner, words, columns, tables, shown, test)
            if turn == 0:
                verdict = min(answer, MAYBE) if verify and (relation != COVERED or words[MORE]) else answer
                if answer == NEVER:
                    verdict = i64(NO)
                    break
                if verdict != TOGETHER and not (verify and relation == COVERED and verdict != YES):
                    break
                test = i64(OVERLAPPING)
            else:
                verdict = NO if answer == NO or (answer == DOUBT and relation == COVERED) else MAYBE
        if verdict == YES:
            out[found] = owner
            found += 1
        elif verdict != NO:
            out[found] = -(owner | (DOUBT_FLAG if verdict == DOUBT else 0)) - 1
            found += 1
    return found
