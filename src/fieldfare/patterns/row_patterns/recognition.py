"""MATCH_RECOGNIZE on tables of Arrow: a clause that is compiled for a schema, and then run on tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fieldfare.filters.errors import FilterSyntaxError, FilterTooComplex
from fieldfare.patterns.row_patterns import kernels
from fieldfare.patterns.row_patterns.automaton import compile_pattern
from fieldfare.patterns.row_patterns.binding import Binder, Bound, columns_of
from fieldfare.patterns.row_patterns.conditions import Conditions
from fieldfare.patterns.row_patterns.evaluation import Integers
from fieldfare.patterns.row_patterns.functions import plain
from fieldfare.patterns.row_patterns.matching import Search
from fieldfare.patterns.row_patterns.measures import Measured, points_of
from fieldfare.patterns.row_patterns.parser import parse_clause
from fieldfare.patterns.row_patterns.sorting import Key, in_order
from fieldfare.patterns.row_patterns.syntax import Clause
from fieldfare.patterns.row_patterns.types import type_of


@dataclass(frozen=True)
class RowPattern:
    """A clause for tables of a schema."""

    clause: Clause
    search: Search
    partition: tuple[Key, ...]
    order: tuple[Key, ...]
    measures: tuple[tuple[str, Bound], ...]
    schema: pa.Schema
    """of the output"""
    before: tuple[str, ...]
    """columns of the input that stand before the measures in the output"""
    after: tuple[str, ...]
    """columns of the input that stand behind"""
    columns: tuple[str, ...]
    """columns of the input that the clause needs, at least one"""

    def in_order(self, table: pa.Table) -> tuple[pa.Table, Integers]:
        """Return a table in the order of the clause, and the bounds of the partitions."""
        return in_order(table, self.partition, self.order)

    def run(self, table: pa.Table, bounds: Integers, loops: Any = None) -> pa.Table:
        """Return the output for rows in order; `loops` are those of `kernels`, by default by the number of rows."""
        clause = self.clause
        table = pa.table([plain(column) for column in table.columns], names=table.column_names)
        matches = self.search.matches(table, bounds, loops)
        points = points_of(
            matches, self.search.automaton, table.num_rows,
            all_rows=clause.all_rows, empty=clause.empty_matches, unmatched=clause.unmatched_rows,
        )  # fmt: skip
        context = Measured(table, bounds, matches, self.search.automaton, points, clause.text, loops)
        rows = pa.array(points.rows)
        columns = {name: table.column(name).take(rows) for name in (*self.before, *self.after)}
        columns |= {name: context.measure(bound) for name, bound in self.measures}
        return pa.table([columns[name] for name in self.schema.names], names=self.schema.names).cast(self.schema)


def compile_clause(text: str, schema: pa.Schema) -> RowPattern:
    """Return a clause, compiled for the columns of a table; FilterSyntaxError names the place of a mistake."""
    clause = parse_clause(text)
    schema = pa.schema([(name, _plain_type(kind)) for name, kind in zip(schema.names, schema.types, strict=True)])
    binder = Binder(clause, schema.names)
    try:
        automaton = compile_pattern(clause.pattern)
    except FilterTooComplex as error:
        raise FilterSyntaxError(text, text.upper().find("PATTERN"), str(error)) from None
    conditions = Conditions(text, schema, automaton.variables)
    bound = {variable: binder.condition(expression) for variable, expression in clause.definitions.items()}
    for variable, condition in bound.items():
        conditions.add(variable, condition)
    partition = tuple(Key(binder.column(column)) for column in clause.partition)
    order = tuple(Key(binder.column(one.column), one.descending, one.nulls_first) for one in clause.order)
    skip_set = binder.variables(clause.skip.variable, clause.skip.at) or frozenset()
    measures = tuple((one.name, binder.measure(one.value)) for one in clause.measures)
    before = tuple(dict.fromkeys(key.column for key in (*partition, *(order if clause.all_rows else ()))))
    after = tuple(name for name in schema.names if name not in before) if clause.all_rows else ()
    taken = {name.lower() for name in (*before, *after)}
    for one in clause.measures:
        if one.name.lower() in taken:
            binder.fail(f"the measure {one.name} has the name of a column of the output", one.value.at)
    read = set[str]().union(*(columns_of(one) for one in (*bound.values(), *(value for _, value in measures))))
    read |= {key.column for key in (*partition, *order)} | {*before, *after}
    needed = tuple(name for name in schema.names if name in read) or tuple(schema.names[:1])
    fields = [schema.field(name) for name in before]
    fields += [pa.field(name, type_of(bound, schema, text)) for name, bound in measures]
    fields += [schema.field(name) for name in after]
    search = Search(automaton, conditions, clause.skip, skip_set)
    return RowPattern(clause, search, partition, order, measures, pa.schema(fields), before, after, needed)


def _plain_type(kind: Any) -> Any:
    return plain(pa.array([], kind)).type


def match_recognize(table: pa.Table, clause: str) -> pa.Table:
    """Return the matches of a MATCH_RECOGNIZE clause in the rows of a table.

    >>> prices = pa.table({"day": [1, 2, 3, 4], "price": [90, 80, 70, 80]})
    >>> found = match_recognize(prices, '''
    ...     ORDER BY day MEASURES start.price AS high, LAST(down.price) AS low, count(up.*) AS days
    ...     PATTERN (start down+ up+) DEFINE down AS price < PREV(price), up AS price > PREV(price)
    ... ''')
    >>> found.to_pylist()
    [{'high': 90, 'low': 70, 'days': 1}]
    """
    compiled = compile_clause(clause, table.schema)
    return compiled.run(*compiled.in_order(table))


def warm_up() -> None:
    """Compile the loops, or load compiled code from the disk."""
    rows = pa.table({"x": [1, 2]})
    clause = compile_clause("MEASURES sum(x) AS total PATTERN (a+) DEFINE a AS count(a.*) < 9", rows.schema)
    clause.run(*clause.in_order(rows), kernels.compiled())
