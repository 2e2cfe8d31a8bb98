"""Matching as a user of NumPy would write it: rule after rule, each over all events at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldfare_lab.bench.rules import Event, Predicate, Rule

Rows = NDArray[np.int64]


class Column(NamedTuple):
    """A field of all events: numbers, or the places of strings in `words`; NaN where the field is missing."""

    values: NDArray[np.float64]
    words: dict[str, int]


def columns(events: Sequence[Event]) -> dict[str, Column]:
    """Turn the events into a column for each field."""
    made: dict[str, Column] = {}
    for row, event in enumerate(events):
        for field, value in event.items():
            if field not in made:
                made[field] = Column(np.full(len(events), np.nan), {})
            values, words = made[field]
            values[row] = words.setdefault(value, len(words)) if isinstance(value, str) else number(value)
    return made


def number(value: Any) -> float:
    """Return a bool, number or time as a float; microseconds of our century fit exactly."""
    return value.timestamp() * 1e6 if isinstance(value, datetime) else float(value)


def count(rules: Sequence[Rule], given: dict[str, Column], events: int) -> int:
    """Count the matches of all rules in `events` rows."""
    lists: dict[str, tuple[NDArray[np.float64], Rows]] = {}
    everything = np.arange(events)
    total = 0
    for rule in rules:
        if any(field not in given for field, _, _ in rule):
            continue
        rows, rest = everything, rule
        for place, predicate in enumerate(rule):
            if predicate.op == "=":
                found = _equal(predicate, given, lists)
                if len(found) < len(rows):
                    rows, rest = found, rule[:place] + rule[place + 1 :]
        for predicate in rest:
            if not len(rows):
                break
            column = given[predicate.field]
            rows = rows[_mask(predicate, column, column.values[rows])]
        total += len(rows)
    return total


def _equal(predicate: Predicate, given: dict[str, Column], lists: dict[str, Any]) -> Rows:
    """The rows with the predicate's value, by binary search in the sorted column."""
    column = given[predicate.field]
    if predicate.field not in lists:
        order = np.argsort(column.values)
        lists[predicate.field] = column.values[order], order
    values, order = lists[predicate.field]
    key = _key(column, predicate.operands[0])
    first, last = np.searchsorted(values, key), np.searchsorted(values, key, "right")
    rows: Rows = order[first:last]
    return rows


def _key(column: Column, operand: Any) -> float:
    return column.words.get(operand, -1) if isinstance(operand, str) else number(operand)


def _mask(predicate: Predicate, column: Column, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    if predicate.op == "exists":
        return ~np.isnan(values)
    if predicate.op == "starts":
        places = [place for word, place in column.words.items() if word.startswith(predicate.operands[0])]
        return np.isin(values, places)
    keys = [_key(column, operand) for operand in predicate.operands]
    if predicate.op == "in":
        return np.isin(values, keys)
    if predicate.op == "!=":
        differs: NDArray[np.bool_] = (values != keys[0]) & ~np.isnan(values)
        return differs
    low = keys[0] if predicate.op in {"=", ">=", "between"} else -np.inf
    high = keys[-1] if predicate.op in {"=", "<=", "between"} else np.inf
    inside: NDArray[np.bool_] = (values >= low) & (values <= high)
    return inside
