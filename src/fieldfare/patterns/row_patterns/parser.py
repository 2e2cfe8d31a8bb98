"""The parser of a whole MATCH_RECOGNIZE clause, and the checks that need no table."""

from __future__ import annotations

from fieldfare.patterns.row_patterns.expression_parser import ExpressionParser
from fieldfare.patterns.row_patterns.pattern_parser import parse_pattern
from fieldfare.patterns.row_patterns.syntax import (
    Clause,
    Column,
    Exclusion,
    Expression,
    Measure,
    Pattern,
    Skip,
    SortKey,
    variables_of,
)
from fieldfare.patterns.row_patterns.tokens import Tokens, variable


def parse_clause(text: str) -> Clause:
    """Return a clause; the words MATCH_RECOGNIZE and the parentheses around it may be left out.

    >>> clause = parse_clause("ORDER BY at PATTERN (start down+ up+) DEFINE down AS price < PREV(price)")
    >>> clause.variables
    ('START', 'DOWN', 'UP')
    """
    tokens = Tokens(text)
    wrapped = tokens.accept("MATCH_RECOGNIZE")
    if wrapped:
        tokens.expect("(")
    clause = _clause(tokens, text)
    if wrapped:
        tokens.expect(")")
    tokens.accept(";")
    if tokens.now.kind != "end":
        tokens.fail(f"{tokens.found} is not expected here")
    return clause


def _clause(tokens: Tokens, text: str) -> Clause:
    partition = _partition(tokens)
    order = _order(tokens)
    measures = _measures(tokens)
    all_rows, empty, unmatched = _rows_per_match(tokens)
    skip = _skip(tokens)
    for word in ("INITIAL", "SEEK"):
        if tokens.comes(word):
            tokens.fail(f"{word} belongs to row patterns in window functions, which are not supported")
    tokens.expect("PATTERN", "(")
    start = tokens.now.at
    pattern = parse_pattern(tokens)
    tokens.expect(")")
    variables = variables_of(pattern)
    if not variables:
        tokens.fail("the pattern has no variable", start)
    if unmatched and _excludes(pattern):
        tokens.fail("an exclusion {- -} cannot be used WITH UNMATCHED ROWS", start)
    names = {one.name for one in variables}
    subsets = _subsets(tokens, names)
    definitions = _definitions(tokens, names)
    if skip.variable is not None and skip.variable not in names | subsets.keys():
        tokens.fail(f"{skip.variable} is no variable of the pattern", skip.at)
    return Clause(
        text, partition, order, measures, all_rows, empty, unmatched, skip, pattern, subsets, definitions
    )  # fmt: skip


def _column(tokens: Tokens) -> Column:
    token = tokens.name("a column")
    if tokens.comes(".") or tokens.comes("("):
        tokens.fail("PARTITION BY and ORDER BY take columns, not expressions")
    return Column(token.text, None, token.at, token.kind == "quoted")


def _partition(tokens: Tokens) -> tuple[Column, ...]:
    if not tokens.accept("PARTITION"):
        return ()
    tokens.expect("BY")
    columns = [_column(tokens)]
    while tokens.accept(","):
        columns.append(_column(tokens))
    return tuple(columns)


def _order(tokens: Tokens) -> tuple[SortKey, ...]:
    if not tokens.accept("ORDER"):
        return ()
    tokens.expect("BY")
    keys = [_sort_key(tokens)]
    while tokens.accept(","):
        keys.append(_sort_key(tokens))
    return tuple(keys)


def _sort_key(tokens: Tokens) -> SortKey:
    column = _column(tokens)
    descending = tokens.accept("DESC")
    if not descending:
        tokens.accept("ASC")
    first = tokens.accept("NULLS", "FIRST")
    if not first:
        tokens.accept("NULLS", "LAST")
    return SortKey(column, descending, first)


def _measures(tokens: Tokens) -> tuple[Measure, ...]:
    if not tokens.accept("MEASURES"):
        return ()
    found: dict[str, Measure] = {}
    while True:
        value = ExpressionParser(tokens).parse()
        tokens.expect("AS")
        name = tokens.name("the name of a measure")
        if name.text.lower() in found:
            tokens.fail(f"there are two measures {name.text}", name.at)
        found[name.text.lower()] = Measure(name.text, value)
        if not tokens.accept(","):
            return tuple(found.values())


def _rows_per_match(tokens: Tokens) -> tuple[bool, bool, bool]:
    """Return whether all rows are shown, empty matches, and unmatched rows."""
    if tokens.accept("ONE"):
        tokens.expect("ROW", "PER", "MATCH")
        return False, True, False
    if not tokens.accept("ALL"):
        return False, True, False
    tokens.expect("ROWS", "PER", "MATCH")
    if tokens.accept("OMIT"):
        tokens.expect("EMPTY", "MATCHES")
        return True, False, False
    if tokens.accept("WITH"):
        tokens.expect("UNMATCHED", "ROWS")
        return True, True, True
    if tokens.accept("SHOW"):
        tokens.expect("EMPTY", "MATCHES")
    return True, True, False


def _skip(tokens: Tokens) -> Skip:
    if not tokens.accept("AFTER"):
        return Skip()
    tokens.expect("MATCH", "SKIP")
    if tokens.accept("PAST"):
        tokens.expect("LAST", "ROW")
        return Skip()
    tokens.expect("TO")
    if tokens.accept("NEXT", "ROW"):
        return Skip("NEXT ROW")
    to = "LAST"
    if tokens.now.word in {"FIRST", "LAST"} and tokens.ahead().kind in {"name", "quoted"} and not _clause_word(tokens):
        to = tokens.take().word
    token = tokens.name("a pattern variable")
    return Skip(to, variable(token), token.at)


def _clause_word(tokens: Tokens) -> bool:
    """Tell whether FIRST or LAST is itself a variable, because the next part of the clause follows."""
    return tokens.ahead().word == "PATTERN" and tokens.ahead(2).word == "("


def _excludes(pattern: Pattern) -> bool:
    if isinstance(pattern, Exclusion):
        return True
    parts = getattr(pattern, "parts", None) or ((pattern.part,) if hasattr(pattern, "part") else ())
    return any(_excludes(part) for part in parts)


def _subsets(tokens: Tokens, names: set[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    if not tokens.accept("SUBSET"):
        return found
    while True:
        token = tokens.name("the name of a subset")
        if variable(token) in names or variable(token) in found:
            tokens.fail(f"the name {variable(token)} is taken", token.at)
        tokens.expect("=", "(")
        members = [_member(tokens, names)]
        while tokens.accept(","):
            members.append(_member(tokens, names))
        tokens.expect(")")
        found[variable(token)] = tuple(dict.fromkeys(members))
        if not tokens.accept(","):
            return found


def _member(tokens: Tokens, names: set[str]) -> str:
    token = tokens.name("a pattern variable")
    if variable(token) not in names:
        tokens.fail(f"{variable(token)} is no variable of the pattern", token.at)
    return variable(token)


def _definitions(tokens: Tokens, names: set[str]) -> dict[str, Expression]:
    found: dict[str, Expression] = {}
    if not tokens.accept("DEFINE"):
        return found
    while True:
        token = tokens.name("a pattern variable")
        name = variable(token)
        if name not in names:
            tokens.fail(f"{name} is no variable of the pattern", token.at)
        if name in found:
            tokens.fail(f"{name} is defined twice", token.at)
        tokens.expect("AS")
        found[name] = ExpressionParser(tokens).parse()
        if not tokens.accept(","):
            return found
