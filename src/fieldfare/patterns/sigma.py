r"""Correlation rules of Sigma as patterns: several events of other rules, counted or brought together in a time.

    correlation:
      type: event_count               # or value_count, temporal, temporal_ordered
      rules: [failed_login]
      group-by: [User]
      timespan: 10m
      condition: {gte: 10}

| rule | pattern |
|---|---|
| `event_count`, at least n | `failed_login{n} within 10 min for each User` |
| `value_count`, at least n | n events, each with a value new among the events |
| `temporal` | `(a and b) within 10 min`; with a condition, so many of the rules |
| `temporal_ordered` | `(a then b) within 10 min` |

Windows slide, and an event is part of a single detection at most; where a group has a field with other names in other
rules, each first event of a story is part of a detection. A rule with a reference to a correlation asks for the
composite events, `pattern = 'name'`. A condition with an upper bound is refused: only the end of a window would tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import Any, Final, NamedTuple

from fieldfare.filters.errors import FilterDocumentError
from fieldfare.filters.expressions import Literal
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages import sigma
from fieldfare.filters.languages.native import parse
from fieldfare.filters.languages.sigma.joins import some
from fieldfare.filters.languages.sigma.schema import LogSchema
from fieldfare.filters.literals import name as quoted
from fieldfare.filters.predicates import compared, conjunction
from fieldfare.patterns.composite import RESERVED
from fieldfare.patterns.definition import Pattern, pattern
from fieldfare.patterns.expression import Expression, any_of, event, some_of

MAX_VALUES: Final = 50
"""distinct values of a `value_count`: each is compared with all before"""
MAX_EVENTS: Final = 5_000
"""events of an `event_count`: a state of the automaton for each"""
_KEYS: Final = frozenset({"type", "rules", "group-by", "timespan", "condition", "aliases", "generate"})
_REFUSED: Final = ("value_sum", "value_avg", "value_percentile", "value_median")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_TYPES: Final = ("event_count", "value_count", "temporal", "temporal_ordered")
_COUNTED: Final = ("gt", "gte", "lt", "lte", "eq", "neq")
_WORDS: Final = frozenset({
    "after", "allow", "and", "any", "at", "by", "core", "each", "exactly", "followed", "for", "in", "least", "limit",
    "match", "most", "not", "of", "once", "or", "select", "then", "where", "windows", "within",
})  # fmt: skip
"""words of the language of patterns, which no event can have as a name"""


class _Part(NamedTuple):
    """A rule in a correlation: a name for the events, the filter, and the fields of the group in the events."""

    name: str
    filter: Filter
    group: tuple[str, ...]
    path: Mapping[str, str]
    """the paths of other fields; a field that is not in there has its own name"""


class Rules:
    """Rules of Sigma that refer to each other: detection rules and correlations, by id and name.

    >>> rules = Rules(sigma.documents('''
    ... name: failed
    ... detection: {s: {EventID: 4625}, condition: s}
    ... ---
    ... name: guessing
    ... correlation: {type: event_count, rules: [failed], group-by: [User], timespan: 5m, condition: {gte: 10}}
    ... '''))
    >>> print(rules.pattern("guessing").text)
    failed: [ANY EventID IN (4625, '4625')]
    core ([failed]{10}>)_{<=5min}
    for each User
    select User as User
    after match past last event
    """

    def __init__(self, documents: Iterable[Mapping[str, Any]], schema: LogSchema | None = None) -> None:
        self._schema = schema or LogSchema()
        self._known: dict[str, Mapping[str, Any]] = {}
        for document in documents:
            for key in ("id", "name"):
                if isinstance(document.get(key), str):
                    self._known.setdefault(document[key], document)
        self._patterns: dict[str, Pattern] = {}

    def pattern(self, reference: str) -> Pattern:
        """Return the pattern of the correlation with this id or name."""
        return self.parse(self._rule(reference, "/"))

    def parse(self, document: Mapping[str, Any]) -> Pattern:
        """Return the pattern of a correlation; FilterDocumentError names a part that no pattern can express."""
        return _pattern(document, self, self._schema)

    def referred(self) -> frozenset[str]:
        """Return names and ids of rules used only as parts of correlations: rules without `generate`."""
        found: set[str] = set()
        for document in self._known.values():
            table = document.get("correlation")
            if isinstance(table, Mapping) and not table.get("generate", False):
                for one in table.get("rules") or ():
                    rule = self._known.get(str(one), {})
                    found |= {rule[key] for key in ("id", "name") if key in rule}
        return frozenset(found)

    def _rule(self, reference: object, path: str) -> Mapping[str, Any]:
        if not isinstance(reference, str) or reference not in self._known:
            raise FilterDocumentError(path, f"no rule has the name or id {reference!r:.60}")
        return self._known[reference]

    def part(self, reference: object, group: Sequence[str], aliases: Mapping[str, Mapping[str, str]], at: str) -> _Part:
        """Return a rule of a correlation that groups by some fields."""
        rule = self._rule(reference, at)
        fields = [str(aliases.get(one, {}).get(str(reference), one)) for one in group]
        if "correlation" not in rule:
            return _Part(str(reference), sigma.parse(rule, self._schema), tuple(map(self._schema.path, fields)), {})
        inner = _grouped(rule["correlation"])
        for one in fields:
            if one not in inner:
                raise FilterDocumentError(at, f"the correlation {reference} does not group by {one}")
        selected = _selected([self._schema.path(one) for one in inner])
        names = dict(zip(inner, selected, strict=True))
        asked = compared("pattern", "=", Literal(title(rule)))
        return _Part(str(reference), asked, tuple(names[one] for one in fields), names)


def title(document: Mapping[str, Any]) -> str:
    """Return the name of a rule as a pattern of a node: the name, else the id, else the title."""
    return str(document.get("name") or document.get("id") or document.get("title") or "correlation")


def _grouped(table: Mapping[str, Any]) -> list[str]:
    found = table.get("group-by") or []
    return [str(one) for one in found] if isinstance(found, list) else [str(found)]


def _selected(paths: Sequence[str]) -> list[str]:
    """Return the names under which the composite event has the fields of the group.

    >>> _selected(["User", "source.ip", "type"])
    ['User', 'source_ip', 'group_type']
    """
    words = [re.sub(r"\W", "_", path) for path in paths]
    return [f"group_{word}" if word in RESERVED or not word.isidentifier() else word for word in words]


def _pattern(document: Mapping[str, Any], rules: Rules, schema: LogSchema) -> Pattern:
    table = document.get("correlation")
    if not isinstance(table, Mapping):
        raise FilterDocumentError("/correlation", "there is no correlation")
    for key in table:
        if key not in _KEYS:
            raise FilterDocumentError(f"/correlation/{key}", "a correlation has no such key")
    kind = table.get("type")
    if kind in _REFUSED:
        raise FilterDocumentError("/correlation/type", f"{kind}: a pattern cannot add up a window that slides")
    if kind not in _TYPES:
        raise FilterDocumentError("/correlation/type", f"expected {', '.join(_TYPES)}, not {kind!r:.40}")
    references = table.get("rules")
    references = [references] if isinstance(references, str) else references
    if not isinstance(references, list) or not references:
        raise FilterDocumentError("/correlation/rules", "there are no rules")
    group, aliases = _grouped(table), _aliases(table.get("aliases"))
    parts = [
        rules.part(one, group, aliases, f"/correlation/rules/{place}")._replace(name=name)
        for place, (one, name) in enumerate(zip(references, _names(references), strict=True))
    ]
    keys, same = _grouping(parts, str(kind))
    expression, where = _expression(str(kind), parts, table, schema)
    selected = {word: quoted(key) for word, key in zip(_selected(keys), keys, strict=True)}
    try:
        whole = expression.within(_timespan(table.get("timespan")))
        conditions = " AND ".join([*same, *where])
        skip = "to next" if same else "past last"  # without a key, a match would end those of other groups
        return pattern(whole, for_each=keys, where=conditions, select=selected, after_match=skip)
    except FilterDocumentError:
        raise
    except ValueError as error:
        raise FilterDocumentError("/correlation", str(error)) from None


def _aliases(written: object) -> Mapping[str, Mapping[str, str]]:
    if written is None:
        return {}
    if isinstance(written, Mapping) and all(isinstance(one, Mapping) for one in written.values()):
        return written
    raise FilterDocumentError("/correlation/aliases", "expected a map of fields by rule for each alias")


def _timespan(written: object) -> str:
    found = re.fullmatch(r"([1-9]\d{0,8})([smhd])", str(written))
    if found is None:
        raise FilterDocumentError("/correlation/timespan", f"expected a time such as 10m or 1h, not {written!r:.40}")
    return f"{found[1]} {_UNITS[found[2]]}"


def _names(references: Sequence[object]) -> list[str]:
    """Return a name of its own for the events of each rule; an id of letters and digits would say nothing."""
    found: list[str] = []
    for place, one in enumerate(references, 1):
        word = str(one)
        fits = word.isascii() and word.isidentifier() and not re.fullmatch(r"T\d+|e\d+", word)
        found.append(word if fits and word.lower() not in _WORDS and word not in found else f"rule_{place}")
    return found


def _grouping(parts: Sequence[_Part], kind: str) -> tuple[list[str], list[str]]:
    """Return the common fields of all rules, and conditions for fields with other names in other rules."""
    keys, same = [], []
    for paths in zip(*(part.group for part in parts), strict=True):
        if len(set(paths)) == 1:
            keys.append(paths[0])
        elif kind == "temporal_ordered" or (kind == "temporal" and len(parts) == 2):
            first = f"{parts[0].name}.{paths[0]}"
            same += [
                f"{_field(one.name, path)} = {quoted(first)}" for one, path in zip(parts[1:], paths[1:], strict=True)
            ]
        else:
            raise FilterDocumentError(
                "/correlation/group-by",
                f"fields with several names, {' and '.join(dict.fromkeys(paths))}, can only be compared in"
                " temporal_ordered, and in temporal with two rules",
            )
    return keys, same


def _field(name: str, path: str) -> str:
    return quoted(f"{name}.{path}")


def _expression(
    kind: str, parts: Sequence[_Part], table: Mapping[str, Any], schema: LogSchema
) -> tuple[Expression, list[str]]:
    """Return the events of a correlation, and conditions on their values."""
    condition = table.get("condition")
    if kind == "event_count":
        least = _least(condition, MAX_EVENTS)
        events = [event(part.name, part.filter) for part in parts]
        return (any_of(*events) if len(events) > 1 else events[0]).repeated(least), []
    if kind == "value_count":
        return _values(parts, _value_fields(condition, parts, schema), _least(condition, MAX_VALUES))
    least = len(parts) if condition is None else _least(condition, len(parts))
    events = [event(part.name, part.filter) for part in parts]
    if kind == "temporal":
        return (events[0] if len(events) == 1 else some_of(least, *events)), []
    chosen = [reduce(Expression.then, some) for some in combinations(events, least)]
    if len(chosen) > 1 and any(len(set(paths)) > 1 for paths in zip(*(part.group for part in parts), strict=True)):
        raise FilterDocumentError("/correlation/condition", "fields with several names need all rules")
    return reduce(Expression.__or__, chosen), []


def _least(condition: object, most: int) -> int:
    """Return the least count of a condition; an upper bound is refused."""
    if not isinstance(condition, Mapping):
        raise FilterDocumentError("/correlation/condition", "expected a map such as {gte: 10}")
    counts: dict[str, Any] = {key: value for key, value in condition.items() if key != "field"}
    for key, value in counts.items():
        if key not in _COUNTED or not isinstance(value, int) or isinstance(value, bool):
            raise FilterDocumentError(f"/correlation/condition/{key}", f"expected {', '.join(_COUNTED)} and a number")
        if key not in ("gt", "gte"):
            raise FilterDocumentError(
                f"/correlation/condition/{key}", "only the end of a window tells an upper bound; use gt or gte"
            )
    if not counts:
        raise FilterDocumentError("/correlation/condition", "expected a count such as {gte: 10}")
    least: int = max(value + (key == "gt") for key, value in counts.items())
    if not 1 <= least <= most:
        raise FilterDocumentError("/correlation/condition", f"a count is between 1 and {most} here, not {least}")
    return least


def _value_fields(condition: object, parts: Sequence[_Part], schema: LogSchema) -> list[str]:
    written = condition.get("field") if isinstance(condition, Mapping) else None
    given = written if isinstance(written, list) else [written]
    fields = [one for one in given if isinstance(one, str) and one]
    if len(fields) < len(given):
        raise FilterDocumentError("/correlation/condition/field", "value_count counts the values of a field: name it")
    paths = {tuple(part.path.get(one, schema.path(one)) for one in fields) for part in parts}
    if len(paths) > 1:
        raise FilterDocumentError("/correlation/condition/field", "the field has other names in other rules")
    return list(paths.pop())


def _values(parts: Sequence[_Part], fields: Sequence[str], count: int) -> tuple[Expression, list[str]]:
    """Return events with distinct values, or distinct combinations of values."""
    present = parse(" AND ".join(f"EXISTS {quoted(path)} AND NOT {quoted(path)} IS NULL" for path in fields))
    wanted = conjunction([some([part.filter for part in parts]), present])
    names = [f"value_{number}" for number in range(1, count + 1)]
    where = [
        " OR ".join(f"NOT ({_field(later, path)} = {_field(earlier, path)})" for path in fields)
        for earlier, later in combinations(names, 2)
    ]
    return reduce(Expression.then, [event(name, wanted) for name in names]), [f"({one})" for one in where]
