"""Mixed filters over the events of `stock`, with OR, NOT, LIKE and arithmetic: none has an equality that must hold.

There are four forms, each with a text in Fieldfare's language and a condition in SQL on a row of operands.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fieldfare_lab.bench.reference_workloads import SEED

Operands = dict[str, Any]


class Form(NamedTuple):
    """Filters that differ only in their operands, in two languages."""

    text: str
    sql: str
    operands: Callable[[random.Random], Operands]


def _wide(dice: random.Random) -> Operands:
    low = round(dice.uniform(0, 990), 2)
    return {"a": f"SYM{dice.randrange(500)}", "b": f"sec{dice.randrange(20)}", "low": low, "high": round(low + 5, 2)}


def _prefix(dice: random.Random) -> Operands:
    return {"a": f"SYM{dice.randrange(10, 50)}", "b": f"ex{dice.randrange(10)}", "low": round(dice.uniform(8, 10), 2)}


def _outside(dice: random.Random) -> Operands:
    return {"a": dice.randrange(990_000, 1_000_000), "b": round(dice.uniform(9, 10), 2), "low": 50.0, "high": 900.0}


def _spread(dice: random.Random) -> Operands:
    low = round(dice.uniform(0, 995), 2)
    return {"a": f"SYM{dice.randrange(10, 50)}", "low": low, "high": round(low + 2, 2), "b": dice.randrange(900_000)}


FORMS: Final = (
    Form(
        "(symbol = '{a}' OR sector = '{b}') AND price BETWEEN {low} AND {high}",
        "(e.symbol = f.a OR e.sector = f.b) AND e.price >= f.low AND e.price <= f.high",
        _wide,
    ),
    Form(
        "symbol LIKE '{a}%' AND NOT (exchange = '{b}' OR change < {low})",
        "startswith(e.symbol, f.a) AND NOT (e.exchange = f.b OR e.change < f.low)",
        _prefix,
    ),
    Form(
        "NOT (price BETWEEN {low} AND {high}) AND (volume > {a} OR change > {b} AND volume > 500000)",
        "NOT (e.price >= f.low AND e.price <= f.high) AND (e.volume > f.a OR e.change > f.b AND e.volume > 500000)",
        _outside,
    ),
    Form(
        "symbol LIKE '{a}%' AND bid + ask > {low} * 2 AND bid + ask < {high} * 2 AND volume > {b}",
        "startswith(e.symbol, f.a) AND e.bid + e.ask > f.low * 2 AND e.bid + e.ask < f.high * 2 AND e.volume > f.b",
        _spread,
    ),
)


def texts(count: int) -> list[str]:
    """Return so many filters, of the forms by turns."""
    return [FORMS[id % len(FORMS)].text.format(**operands) for id, operands in enumerate(_operands(count))]


def tables(count: int) -> dict[str, tuple[pa.Table, str]]:
    """Return the same filters as a table of operands for each form, with the condition in SQL."""
    made = _operands(count)
    return {
        f"form{number}": (
            pa.Table.from_pylist([{"id": id, **made[id]} for id in range(number, count, len(FORMS))]),
            form.sql,
        )
        for number, form in enumerate(FORMS)
        if number < count
    }


def _operands(count: int) -> list[Operands]:
    dice = random.Random(SEED)
    return [FORMS[id % len(FORMS)].operands(dice) for id in range(count)]
