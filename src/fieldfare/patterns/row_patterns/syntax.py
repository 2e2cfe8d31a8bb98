"""The parts of a MATCH_RECOGNIZE clause as values: patterns, expressions, the clause. `at` is a place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

FIRST: Final = "FIRST"
LAST: Final = "LAST"
PREV: Final = "PREV"
NEXT: Final = "NEXT"
AGGREGATES: Final = frozenset({"count", "sum", "avg", "min", "max"})


# Patterns


@dataclass(frozen=True, slots=True)
class Variable:
    """A row of a pattern variable."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The start (`^`) or the end (`$`) of a partition."""

    end: bool


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One part after the other; without parts, the empty pattern."""

    parts: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of several parts; an earlier one is preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Permutation:
    """All parts in any order; orders that come earlier in the lexicographic order are preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A part several times; `high` None is without limit. A greedy repetition prefers many, a reluctant one few."""

    part: Pattern
    low: int
    high: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A part whose rows are not in the output."""

    part: Pattern


Pattern: TypeAlias = Variable | Anchor | Concatenation | Alternation | Permutation | Repetition | Exclusion


# Expressions as written


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant, as a scalar of Arrow."""

    value: Any
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    """A column, at the rows of a variable or of all variables (None)."""

    name: str
    variable: str | None
    at: int = field(default=0, compare=False)
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Classifier:
    """The name of the variable of a row."""

    variable: str | None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """The number of the match within the partition, from 1."""

    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator, by the name in `functions`."""

    function: str
    arguments: tuple[Expression, ...]
    at: int = field(default=0, compare=False)
    option: Any = None
    """a type to cast to"""


@dataclass(frozen=True, slots=True)
class Navigation:
    """FIRST, LAST, PREV or NEXT; `semantics` is "RUNNING", "FINAL" or empty."""

    function: str
    argument: Expression
    offset: int
    semantics: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over the rows of a variable; without an argument, a count of rows."""

    function: str
    argument: Expression | None
    variable: str | None
    semantics: str
    at: int = field(default=0, compare=False)


Expression: TypeAlias = Literal | Column | Classifier | MatchNumber | Call | Navigation | Aggregate


# The clause


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column of ORDER BY."""

    column: Column
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of the output."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Skip:
    """The row at which the search goes on after a match: `to` is "PAST LAST ROW", "NEXT ROW", "FIRST" or "LAST"."""

    to: str = "PAST LAST ROW"
    variable: str | None = None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """A whole MATCH_RECOGNIZE clause."""

    text: str
    partition: tuple[Column, ...]
    order: tuple[SortKey, ...]
    measures: tuple[Measure, ...]
    all_rows: bool
    empty_matches: bool
    unmatched_rows: bool
    skip: Skip
    pattern: Pattern
    subsets: dict[str, tuple[str, ...]]
    definitions: dict[str, Expression]

    @property
    def variables(self) -> tuple[str, ...]:
        """The primary variables, in the order of the pattern."""
        return tuple(dict.fromkeys(variable.name for variable in variables_of(self.pattern)))


def variables_of(pattern: Pattern) -> list[Variable]:
    """Return the variables of a pattern from left to right, each as often as it occurs."""
    match pattern:
        case Variable():
            return [pattern]
        case Anchor():
            return []
        case Concatenation() | Alternation() | Permutation():
            return [found for part in pattern.parts for found in variables_of(part)]
    return variables_of(pattern.part)
