"""Random filters of every language, written from random syntax trees rather than made by the algebra.

Each function takes a source of chance, the interface of `random.Random`, so that Hypothesis can hand in one of its own.
What comes out may be refused by the language; much of it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.python import Value, call, field
from fieldfare.filters.literals import literal

NAMES = [
    "x", "y", "a", "b", "a.b", "a.b.c", "items", "items.qty", "type", "order", "timestamp", "path", "nan", "missing",
    '"x"', '"in"', '"a b"', '"a""b"', '"a.in"', '"É"', "é", "x1", "_", "Infinity1", '"TRUE"', '"1"', '"a."', '"."', "null.x",
    "cesql", "matches", "X", "with", '"$x"', '"\n"', '"\'"', "data", "compare", '" "', "string", "number",
]  # fmt: skip
NUMBERS = [
    "0", "1", "2", "2.5", ".5", "5.", "1e3", "1E-3", "1e308", "1.7976931348623157e308", "5e-324", "9007199254740993",
    "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e22", "-0", "-0.0", "0.1", "1" + "0" * 998,
    "-" + "9" * 1000, "9" * 1000, "INFINITY", "-INFINITY", "- 5", "1e-400", "123456789012345678901234567890",
]  # fmt: skip
STRINGS = [
    "", "a", "b", "ab", "ba", "abb", "it's", "%", "_", "\\", "a%", "%a", "%a%", "%a%b%", "a_", "_a", "__", "%_%", "a\\%b",
    "\\\\", "a\0", "\0", "\U0010ffff", "a\U0010ffff", "\ud7ff", "\ue000", "é", "É", "ß", "\u017f", "K", "İ", "ǅ", "\n", "\t", "5",
    "true", "2026-01-01T00:00:00Z", "x'61'", '"', "''", "a\\", "\\_", "%\\", "AbC", "%aB%", "a%b_c", "ÿ", "z", "Z",
]  # fmt: skip
PATTERNS = [text for text in STRINGS if text]
TIMES = [
    "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000001Z", "2026-01-01t01:00:00.5+01:00", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999998Z", "1970-01-01T00:00:00.001001Z",
]  # fmt: skip
BYTES = ["", "00", "61", "6100", "FFff", "ff", "00ff00"]
FUNCTIONS = ["ABS", "CEIL", "FLOOR", "ROUND", "LENGTH", "LOWER", "UPPER", "TRIM", "abs"]
SELECTORS = ["//a", "/a/b", "//a/b", "/*", "/a//b", "/a/*//b", "//*", "/a.b", "//a b", "/x"]
CESQL = ["INT(x)", "x + 1", "STRING(y)", "x", "LOWER(x)", "x LIKE 'a%'", "NOT EXISTS x", "-(-x)", "- 5 + x", "1 + 1"]


def native(chance: Random, depth: int = 4) -> str:
    """Text of the native language."""
    return Native(chance).condition(depth)


class Native:
    """A writer of the native language, as its grammar has it."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.pick = chance.choice

    def name(self) -> str:
        return self.pick(["x", "y", "x", "a", "b"] if self.chance.random() < 0.7 else NAMES)

    def string(self) -> str:
        return literal(self.pick(STRINGS))

    def constant(self) -> str:
        kind = self.chance.randrange(8)
        if kind < 3:
            return self.pick(NUMBERS if self.chance.random() < 0.3 else ["0", "1", "2", "3", "2.5"])
        if kind < 5:
            return self.string()
        if kind == 5:
            return f"TIMESTAMP '{self.pick(TIMES)}'"
        if kind == 6:
            return f"X'{self.pick(BYTES)}'"
        return self.pick(["TRUE", "FALSE", "NULL", "true", "Null"])

    def value(self, depth: int) -> str:
        kind = self.chance.randrange(12)
        if kind < 3 or depth <= 0:
            return self.constant()
        if kind < 6:
            return self.name()
        if kind == 6:
            return "$" + self.name()
        if kind == 7:
            return f"-{self.value(depth - 1)}"
        if kind == 8:
            return f"({self.value(depth - 1)})"
        if kind == 9:
            return self.function(depth)
        return f"{self.value(depth - 1)} {self.pick('+-*/%')} {self.value(depth - 1)}"

    def function(self, depth: int) -> str:
        kind = self.chance.randrange(6)
        first = self.value(depth - 1)
        if kind == 0:
            return f"{self.pick(['MATCHES', 'IMATCHES'])}({first}, {self.string()})"
        if kind == 1:
            return f"CIDR({first}, {self.pick(['10.0.0.0/8', '10.1.0.0/16', '::/0', 'no'])!r})"
        if kind == 2:
            return f"COMPARE({first}, {self.value(depth - 1)})"
        if kind == 3:
            return f"CESQL({literal(cesql(self.chance, 2) if self.chance.random() < 0.5 else self.pick(CESQL))})"
        return f"{self.pick(FUNCTIONS)}({first})"

    def operand(self, depth: int) -> str:
        return self.name() if self.chance.random() < 0.7 else self.value(depth)

    def condition(self, depth: int) -> str:
        kind = self.chance.randrange(9) if depth > 0 else 8
        if kind < 2:
            return " AND ".join(self.grouped(depth - 1) for _ in range(self.chance.randrange(2, 4)))
        if kind < 4:
            return " OR ".join(self.grouped(depth - 1) for _ in range(self.chance.randrange(2, 4)))
        if kind == 4:
            return f"NOT {self.grouped(depth - 1)}"
        if kind == 5 and self.chance.random() < 0.5:
            return f"{self.pick(NAMES)} HAS ({self.condition(depth - 1)})"
        if kind == 5:
            inner = f", {self.condition(depth - 1)}" if self.chance.random() < 0.7 else ""
            return f"PATH({literal(self.pick(SELECTORS))}{inner})"
        if kind == 6:
            return self.quantified(depth)
        return self.predicate(depth)

    def grouped(self, depth: int) -> str:
        return f"({self.condition(depth)})"

    def quantified(self, depth: int) -> str:
        name = self.name()
        inner = [self.predicate(0, name) for _ in range(self.chance.randrange(1, 4))]
        return f"{self.pick(['ANY', 'ALL'])} ({self.pick([' AND ', ' OR ', ' OR NOT '] if depth else [' OR ']).join(inner)})"

    def predicate(self, depth: int, subject: str | None = None) -> str:
        subject = subject or self.operand(depth - 1)
        kind = self.chance.randrange(8)
        negation = self.pick(["", "", "NOT "])
        if kind < 2:
            return f"{subject} {self.pick(['=', '!=', '<>', '<', '<=', '>', '>='])} {self.value(depth - 1)}"
        if kind == 2:
            return f"{subject} {negation}BETWEEN {self.value(depth - 1)} AND {self.value(depth - 1)}"
        if kind == 3:
            items = [self.value(depth - 2) for _ in range(self.chance.randrange(1, 5))]
            return f"{subject} {negation}IN ({', '.join(items)})"
        if kind == 4:
            test = self.pick(["LIKE", "ILIKE", "STARTS WITH", "ENDS WITH", "CONTAINS"])
            return f"{subject} {negation}{test} {self.string()}"
        if kind == 5:
            types = ["NULL", "BOOL", "NUMBER", "STRING", "TIMESTAMP", "BYTES", "LIST", "OBJECT", "NAN", "MISSING"]
            return f"{subject} IS {negation}{self.pick(types)}"
        if kind == 6:
            return f"EXISTS {subject}"
        return self.pick([self.name(), self.function(depth), "TRUE", "FALSE"])


# --- CESQL ------------------------------------------------------------------------------------------------------------

ATTRIBUTES = ["x", "y", "hop", "type", "data", "5x", "X"]
LIKES = ["a%", "%a", "%a%", "a_", "_", "%", "", "5%", "a\\%b", "%\\_"]


def cesql(chance: Random, depth: int = 4) -> str:
    """Text of CloudEvents SQL."""
    pick = chance.choice

    def quoted(text: str) -> str:
        return "'" + text.replace("'", "\\'") + "'" if chance.random() < 0.7 else '"' + text.replace('"', '\\"') + '"'

    def value(depth: int) -> str:
        kind = chance.randrange(13) if depth > 0 else chance.randrange(4)
        below = depth - 1
        if kind < 2:
            return pick(ATTRIBUTES)
        if kind == 2:
            return pick(["0", "1", "5", "-1", "+5", "2147483647", "-2147483648", "TRUE", "false"])
        if kind == 3:
            return quoted(pick(STRINGS))
        if kind == 4:
            return f"{pick(['NOT ', '-', '- '])}{value(below)}"
        if kind == 5:
            return f"({value(below)})"
        if kind == 6:
            return f"{value(below)} {pick(['AND', 'OR', 'XOR'])} {value(below)}"
        if kind == 7:
            return f"{value(below)} {pick(['=', '!=', '<>', '<', '<=', '>', '>='])} {value(below)}"
        if kind == 8:
            return f"{value(below)} {pick('+-*/%')} {value(below)}"
        if kind == 9:
            return f"{value(below)} {pick(['', 'NOT '])}LIKE {quoted(pick(LIKES))}"
        if kind == 10:
            listed = ", ".join(value(below) for _ in range(chance.randrange(1, 4)))
            return f"{value(below)} {pick(['', 'NOT '])}IN ({listed})"
        if kind == 11:
            return f"EXISTS {pick(ATTRIBUTES)}"
        name = pick(["INT", "BOOL", "STRING", "ABS", "LENGTH", "LOWER", "CONCAT", "LEFT", "SUBSTRING"])
        listed = ", ".join(value(below) for _ in range(2 if name in ("LEFT", "SUBSTRING", "CONCAT") else 1))
        return f"{name}({listed})"

    return value(depth)


# --- CloudEvents subscriptions ----------------------------------------------------------------------------------------


def subscription(chance: Random, depth: int = 3, sql: bool = True) -> dict[str, Any]:
    """A document of the CloudEvents Subscriptions API."""
    texts = [*PATTERNS, "05", "false", "\U0010ffff", "com.", ".sale", "2026", "Z", "="]
    kind = chance.randrange(7) if depth > 0 else 0
    if kind == 1 and sql:
        return {"sql": cesql(chance, 3)}
    if kind == 2:
        return {"not": subscription(chance, depth - 1, sql)}
    if kind > 2:
        parts = [subscription(chance, depth - 1, sql) for _ in range(chance.randrange(1, 4))]
        return {chance.choice(["all", "any"]): parts}
    names = chance.sample(["x", "y", "type"], chance.choice([1, 1, 2]))
    return {chance.choice(["exact", "prefix", "suffix"]): {name: chance.choice(texts) for name in names}}


# --- event patterns ---------------------------------------------------------------------------------------------------


def ruler(chance: Random, depth: int = 3) -> dict[str, Any]:
    """An event pattern of Ruler and EventBridge."""
    pattern: dict[str, Any] = {}
    for name in chance.sample(["x", "y", "a", "b", "a.b", "é", "a b", "$or"], chance.randrange(1, 4)):
        if name == "$or":
            pattern[name] = [ruler(chance, depth - 1) for _ in range(2)] if depth > 0 else [{"z": [1]}, {"w": [2]}]
        elif depth > 0 and chance.random() < 0.4:
            pattern[name] = ruler(chance, depth - 1)
        else:
            pattern[name] = [_alternative(chance) for _ in range(chance.randrange(1, 4))]
    return pattern


def _alternative(chance: Random) -> Any:
    text = chance.choice(PATTERNS)
    number = chance.choice([0, 1, -1, 2.5, 1e300, 5e-324, 2**63, 10])
    return chance.choice([
        text, number, None, True, False, {"prefix": text}, {"suffix": text}, {"exists": chance.random() < 0.5},
        {"equals-ignore-case": text}, {"wildcard": chance.choice(["a*", "*a", "a*b", "*"])},
        {"numeric": [chance.choice(["<", "<=", ">", ">=", "="]), number]}, {"numeric": [">", 0, "<=", number]},
        {"anything-but": [text]}, {"anything-but": {"prefix": text}}, {"anything-but": number},
        {"cidr": chance.choice(["10.0.0.0/8", "10.1.2.3/16", "::/0"])}, {"prefix": {"equals-ignore-case": text}},
    ])  # fmt: skip


# --- Python -----------------------------------------------------------------------------------------------------------

CONSTANTS: list[Any] = [
    None, True, False, 0, 1, -1, 2.5, -0.0, float("inf"), float("-inf"), float("nan"), 10**400, -(10**999), 2**63, "", "a",
    "it's", b"", b"a", datetime(2026, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC),
]  # fmt: skip


def python(chance: Random, depth: int = 3) -> Filter:
    """A filter written in Python."""
    if depth > 0 and chance.random() < 0.5:
        a, b = python(chance, depth - 1), python(chance, depth - 1)
        return chance.choice([a & b, a | b, ~a, a - b])
    some, other = _value(chance, 2), _value(chance, 2)
    constant = chance.choice(
        [*CONSTANTS, datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(3))]
    )
    text = chance.choice(STRINGS)
    makers: list[Callable[[], Filter]] = [
        lambda: some < constant, lambda: some == constant, lambda: some != constant, lambda: some >= other,
        lambda: some == other, lambda: some.isin([constant, other, text]), lambda: some.between(constant, other),
        lambda: some.startswith(text), lambda: some.endswith(text), lambda: some.contains(text), lambda: some.like(text),
        lambda: some.ilike(text), some.is_null, some.is_true, some.exists, some.missing,
    ]  # fmt: skip
    return chance.choice(makers)()


def _value(chance: Random, depth: int) -> Value:
    if depth == 0 or chance.random() < 0.5:
        return field[chance.choice(["x", "y", "a.b", "in", "unit price", "é", 'a"b', "nan", "$x", "1"])]
    some, other = _value(chance, depth - 1), _value(chance, depth - 1)
    constant: Any = chance.choice([*CONSTANTS, 3])
    makers: list[Callable[[], Value]] = [
        lambda: some + other, lambda: some - constant, lambda: constant * some, lambda: some / other,
        lambda: some % constant, lambda: -some, lambda: call("LENGTH", some), lambda: call("COMPARE", some, constant),
        lambda: call("COMPARE", some, other), lambda: call("MATCHES", some, chance.choice(STRINGS)),
    ]  # fmt: skip
    return chance.choice(makers)()
