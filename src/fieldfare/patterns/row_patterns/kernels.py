"""The loops of row patterns: the search for matches, and running aggregates.

These functions are plain Python over arrays. `compiled` compiles the loops with numba where numba is installed and the
rows are many; few rows are not worth the time of loading compiled code.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

# Instructions of conditions: (operation, a, b, c). The result of instruction k is value k.
(CONST_I, CONST_F, MISSING, LEAF_I, LEAF_F, VARIABLE, TOTAL_I, TOTAL_F, MATCH, HAS, TO_FLOAT, ADD_I, SUBTRACT_I,
 MULTIPLY_I, MODULO_I, NEGATE_I, ABS_I, ADD_F, SUBTRACT_F, MULTIPLY_F, DIVIDE_F, MODULO_F, NEGATE_F, ABS_F, LESS_I,
 LESS_EQUAL_I, EQUAL_I, LESS_F, LESS_EQUAL_F, EQUAL_F, AND, OR, NOT, IS_MISSING, SELECT) = range(35)  # fmt: skip
CURRENT, BACK, FORTH, LAST_OF, FIRST_OF = range(5)
"""kinds of routes: the current row; rows back from the current row within the match; rows after its first row; the
last and the first rows of some variables"""
COUNT, SUM_I, SUM_F, LEAST_I, LEAST_F, MOST_I, MOST_F = range(7)
"""kinds of totals"""
PAST_LAST, NEXT_ROW, TO_FIRST, TO_LAST = range(4)
"""how the search goes on after a match"""
DONE, FULL, ABSENT, STUCK, TOO_LONG, OVERFLOW = range(6)
"""why the search has come back"""
LIMIT: Final = 9.2e18
"""whole numbers beyond are an overflow"""
SMALL: Final = 20_000
"""rows for which compiled code is not worth the time of loading"""


def search(  # type: ignore[no-untyped-def]
    bounds, place, starts, successors, variable_at, mask_of, masks, memory_of, dead, dead_here, code_at, code, routes,
    whole, real, whole_missing, real_missing, constants, real_constants, ranks, members, tracked, totals, skip,
    skip_set, most_steps, trace, tried, last, first, total_i, total_f, total_n, values_i, values_f, values_n, begins,
    lengths, numbers, labels,
):  # fmt: skip
    """Find matches from a place (partition, row, match number) on, until all are found or the output is full.

    Returns the reason, the place to go on, and the numbers of matches and of labels written.
    """
    part, row, number = place[0], place[1], place[2]
    found, written = 0, 0
    sums = totals.shape[0]
    words = dead.shape[1]
    here = dead_here.shape[1] > 0
    while part < len(bounds) - 1:
        low, high = bounds[part], bounds[part + 1]
        row = max(row, low)
        while row < high:
            # One attempt: a depth-first search in the order of preference.
            depth, length, steps, furthest = 0, -1, 0, row
            at = (1 if row == low else 0) + (2 if row == high else 0)
            tried[0] = starts[at]
            while True:
                now = row + depth
                state = (trace[depth - 1] + 1 if depth else 0) * 4
                situation = (1 if now == low else 0) + (2 if now == high else 0)
                if tried[depth] < starts[state + situation + 1]:
                    to = successors[tried[depth]]
                    tried[depth] += 1
                    if to < 0:
                        length = depth
                        break
                    if now >= high:
                        continue
                    steps += 1
                    if steps > most_steps:
                        return TOO_LONG, part, row, number, found, written
                    mask = mask_of[to]
                    if mask >= 0 and not masks[mask, now]:
                        continue
                    memory = memory_of[to]
                    if memory == 0 and dead[now, to >> 3] >> (to & 7) & 1:
                        continue
                    if memory == 1 and dead_here[now, to >> 3] >> (to & 7) & 1:
                        continue
                    trace[depth] = to
                    variable = variable_at[to]
                    for s in range(tracked):
                        inside = members[s, variable]
                        if depth:
                            last[s, depth] = now if inside else last[s, depth - 1]
                            before = first[s, depth - 1]
                            first[s, depth] = now if inside and before < 0 else before
                        else:
                            last[s, 0] = now if inside else -1
                            first[s, 0] = now if inside else -1
                    for s in range(sums):
                        kind, vector, group = totals[s, 0], totals[s, 1], totals[s, 2]
                        if depth:
                            count, sum_i, sum_f = total_n[s, depth - 1], total_i[s, depth - 1], total_f[s, depth - 1]
                        else:
                            count, sum_i, sum_f = 0, 0, 0.0
                        inside = group < 0 or members[group, variable]
                        if inside and vector >= 0:
                            if kind == SUM_I or kind == LEAST_I or kind == MOST_I:
                                inside = not whole_missing[vector, now]
                            else:
                                inside = not real_missing[vector, now]
                        if inside:
                            if kind == SUM_I:
                                add_i = whole[vector, now]
                                if abs(float(sum_i) + float(add_i)) >= LIMIT:
                                    return OVERFLOW, part, now, number, found, written
                                sum_i += add_i
                            elif kind == SUM_F:
                                sum_f += real[vector, now]
                            elif kind == LEAST_I:
                                if count == 0 or whole[vector, now] < sum_i:
                                    sum_i = whole[vector, now]
                            elif kind == MOST_I:
                                if count == 0 or whole[vector, now] > sum_i:
                                    sum_i = whole[vector, now]
                            elif kind == LEAST_F:
                                if count == 0 or real[vector, now] < sum_f or sum_f != sum_f:
                                    sum_f = real[vector, now]
                            elif kind == MOST_F and (count == 0 or real[vector, now] > sum_f or sum_f != sum_f):
                                sum_f = real[vector, now]
                            count += 1
                        total_n[s, depth], total_i[s, depth], total_f[s, depth] = count, sum_i, sum_f
                    good = True
                    for k in range(code_at[to], code_at[to + 1]):
                        op, a, b, c = code[k, 0], code[k, 1], code[k, 2], code[k, 3]
                        i = k - code_at[to]
                        null = False
                        whole_value, real_value = 0, 0.0
                        if op == CONST_I:
                            whole_value = constants[a]
                        elif op == CONST_F:
                            real_value = real_constants[a]
                        elif op == MISSING:
                            null = True
                        elif op == LEAF_I or op == LEAF_F or op == VARIABLE or op == HAS:
                            kind, group = routes[b, 0], routes[b, 1]
                            offset, shift = routes[b, 2], routes[b, 3]
                            target = now
                            if kind == BACK:
                                target = now - offset
                                if target < row:
                                    target = -1
                            elif kind == FORTH:
                                target = row + offset
                                if target > now:
                                    target = -1
                            elif kind == LAST_OF:
                                target = last[group, depth]
                                while offset > 0 and target >= 0:
                                    target = last[group, target - row - 1] if target > row else -1
                                    offset -= 1
                            elif kind == FIRST_OF:
                                target = first[group, depth]
                                while offset > 0 and target >= 0:
                                    target += 1
                                    while target <= now and not members[group, variable_at[trace[target - row]]]:
                                        target += 1
                                    if target > now:
                                        target = -1
                                    offset -= 1
                            if target >= 0:
                                target += shift
                                if target < low or target >= high:
                                    target = -1
                            if op == VARIABLE and (target < row or target > now):
                                target = -1
                            if target < 0:
                                null = op != HAS
                            elif op == LEAF_I:
                                null = whole_missing[a, target]
                                whole_value = whole[a, target]
                            elif op == LEAF_F:
                                null = real_missing[a, target]
                                real_value = real[a, target]
                            elif op == VARIABLE:
                                whole_value = ranks[variable_at[trace[target - row]]]
                            else:
                                whole_value = 1
                        elif op == TOTAL_I:
                            whole_value = total_i[a, depth]
                            if b == 1:
                                whole_value = total_n[a, depth]
                            else:
                                null = total_n[a, depth] == 0
                        elif op == TOTAL_F:
                            real_value = total_f[a, depth]
                            null = total_n[a, depth] == 0
                        elif op == MATCH:
                            whole_value = number
                        elif op == IS_MISSING:
                            whole_value = 1 if values_n[a] else 0
                        elif op == AND:
                            no = (not values_n[a] and values_i[a] == 0) or (not values_n[b] and values_i[b] == 0)
                            null = not no and (values_n[a] or values_n[b])
                            whole_value = 0 if no else 1
                        elif op == OR:
                            yes = (not values_n[a] and values_i[a] != 0) or (not values_n[b] and values_i[b] != 0)
                            null = not yes and (values_n[a] or values_n[b])
                            whole_value = 1 if yes else 0
                        elif op == SELECT:
                            chosen = b if not values_n[a] and values_i[a] != 0 else c
                            null, whole_value, real_value = values_n[chosen], values_i[chosen], values_f[chosen]
                        elif values_n[a] or (b >= 0 and values_n[b]):
                            null = True
                        elif op == TO_FLOAT:
                            real_value = float(values_i[a])
                        elif op == ADD_I or op == SUBTRACT_I:
                            other = values_i[b] if op == ADD_I else -values_i[b]
                            if abs(float(values_i[a]) + float(other)) >= LIMIT:
                                return OVERFLOW, part, now, number, found, written
                            whole_value = values_i[a] + other
                        elif op == MULTIPLY_I:
                            if abs(float(values_i[a]) * float(values_i[b])) >= LIMIT:
                                return OVERFLOW, part, now, number, found, written
                            whole_value = values_i[a] * values_i[b]
                        elif op == MODULO_I:
                            if values_i[b] == 0:
                                null = True
                            else:
                                whole_value = abs(values_i[a]) % abs(values_i[b])
                                if values_i[a] < 0:
                                    whole_value = -whole_value
                        elif op == NEGATE_I:
                            whole_value = -values_i[a]
                        elif op == ABS_I:
                            whole_value = abs(values_i[a])
                        elif op == ADD_F:
                            real_value = values_f[a] + values_f[b]
                        elif op == SUBTRACT_F:
                            real_value = values_f[a] - values_f[b]
                        elif op == MULTIPLY_F:
                            real_value = values_f[a] * values_f[b]
                        elif op == DIVIDE_F or op == MODULO_F:
                            if values_f[b] == 0:
                                null = True
                            elif op == DIVIDE_F:
                                real_value = values_f[a] / values_f[b]
                            else:
                                real_value = np.fmod(values_f[a], values_f[b])
                        elif op == NEGATE_F:
                            real_value = -values_f[a]
                        elif op == ABS_F:
                            real_value = abs(values_f[a])
                        elif op == LESS_I:
                            whole_value = 1 if values_i[a] < values_i[b] else 0
                        elif op == LESS_EQUAL_I:
                            whole_value = 1 if values_i[a] <= values_i[b] else 0
                        elif op == EQUAL_I:
                            whole_value = 1 if values_i[a] == values_i[b] else 0
                        elif op == LESS_F:
                            whole_value = 1 if values_f[a] < values_f[b] else 0
                        elif op == LESS_EQUAL_F:
                            whole_value = 1 if values_f[a] <= values_f[b] else 0
                        elif op == EQUAL_F:
                            whole_value = 1 if values_f[a] == values_f[b] else 0
                        else:  # NOT
                            whole_value = 1 - values_i[a]
                        values_i[i], values_f[i], values_n[i] = whole_value, real_value, null
                        good = not null and whole_value != 0
                    if good:
                        depth += 1
                        now += 1
                        furthest = max(furthest, now)
                        at = (1 if now == low else 0) + (2 if now == high else 0)
                        tried[depth] = starts[(to + 1) * 4 + at]
                    elif memory == 1:
                        dead_here[now, to >> 3] |= 1 << (to & 7)
                    elif memory == 0:
                        dead[now, to >> 3] |= 1 << (to & 7)
                elif depth:
                    depth -= 1
                    to = trace[depth]
                    if memory_of[to] == 0:
                        dead[row + depth, to >> 3] |= 1 << (to & 7)
                    elif memory_of[to] == 1:
                        dead_here[row + depth, to >> 3] |= 1 << (to & 7)
                else:
                    break
            if here:
                for k in range(row, min(furthest + 1, high)):
                    for w in range(words):
                        dead_here[k, w] = 0
            if length < 0:
                row += 1
                continue
            if found >= len(begins) or written + length > len(labels):
                return FULL, part, row, number, found, written
            begins[found], lengths[found], numbers[found] = row, length, number
            for k in range(length):
                labels[written + k] = trace[k]
            found += 1
            written += length
            number += 1
            if length == 0 or skip == NEXT_ROW:
                row += 1
            elif skip == PAST_LAST:
                row += length
            else:
                target = -1
                for k in range(length):
                    if members[skip_set, variable_at[trace[k]]] and (skip == TO_LAST or target < 0):
                        target = k
                if target <= 0:
                    return (ABSENT if target < 0 else STUCK), part, row, number, found, written
                row += target
        part += 1
        number = 1
    return DONE, part, row, number, found, written


def run_sums(kind, offsets, inside, whole, real, out_i, out_f, out_n):  # type: ignore[no-untyped-def]
    """Write the running count, and the running sum or the place of the least or greatest value, within each match."""
    for match in range(len(offsets) - 1):
        count, sum_i, sum_f = 0, 0, 0.0
        for k in range(offsets[match], offsets[match + 1]):
            if inside[k]:
                if kind == SUM_I:
                    if abs(float(sum_i) + float(whole[k])) >= LIMIT:
                        return OVERFLOW
                    sum_i += whole[k]
                elif kind == SUM_F:
                    sum_f += real[k]
                elif (kind == LEAST_I and (count == 0 or whole[k] < whole[sum_i])) or (
                    kind == MOST_I and (count == 0 or whole[k] > whole[sum_i])
                ):
                    sum_i = k
                count += 1
            out_i[k], out_f[k], out_n[k] = sum_i, sum_f, count
    return DONE


_PLAIN: Final = SimpleNamespace(search=search, run_sums=run_sums)


def loops(rows: int) -> Any:
    """Return the loops for a number of rows, compiled or not."""
    if rows < SMALL or importlib.util.find_spec("numba") is None:
        return _PLAIN
    return compiled()


@cache
def compiled() -> Any:
    """Return the compiled loops; the code is cached on disk."""
    from fieldfare.matching.kernels.compiled import jit  # noqa: PLC0415 - imports numba

    return SimpleNamespace(search=jit(search), run_sums=jit(run_sums))
