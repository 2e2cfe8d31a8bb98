r"""Rules of Sigma as filters: the YAML, the detections, and the condition that joins the detections.

    logsource: {product: windows, category: process_creation}
    detection:
      selection: {Image|endswith: '\certutil.exe', CommandLine|contains: [urlcache, '-decode']}
      filter: {User: SYSTEM}
      condition: selection and not filter

The items of a map must all match, of a list of maps one. `not` is true of an event without the field. Rules of other
kinds (correlations, filters of rules, collections by `action`) are refused by name, and so are aggregations and
modifiers that no filter can express.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from fieldfare.filters.errors import FilterDocumentError, FilterSyntaxError, FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.sigma.conditions import AtLeast, Condition, Detection, Not
from fieldfare.filters.languages.sigma.conditions import parse as parse_condition
from fieldfare.filters.languages.sigma.items import item
from fieldfare.filters.languages.sigma.joins import every, excepted, some
from fieldfare.filters.languages.sigma.schema import LogSchema
from fieldfare.filters.machines import TooComplex

LOGSOURCE: Final = LogSchema()
"""the schema without a mapping: the field `logsource` of an event says where the event comes from"""
_OTHER_KINDS: Final = {
    "correlation": "a correlation rule looks at several events and is no filter; see fieldfare.patterns.sigma",
    "filter": "a filter of other rules is no rule",
    "action": "a collection by action is not supported; write a rule as a whole",
}


def parse(rule: str | bytes | Mapping[str, Any], schema: LogSchema = LOGSOURCE) -> Filter:
    """Return the filter of a rule, given as YAML text or decoded; FilterDocumentError names a part without a meaning.

    >>> print(parse("detection: {s: {EventID: 4625, Status: null}, condition: s}"))
    ANY EventID IN (4625, '4625') AND (Status IS MISSING OR Status IS NULL)
    """
    try:
        document = rule if isinstance(rule, Mapping) else _single(rule)
        for key, problem in _OTHER_KINDS.items():
            if key in document:
                raise FilterDocumentError(f"/{key}", problem)
        found = every([_detected(document, schema), schema.events(_table(document.get("logsource", {}), "/logsource"))])
    except RecursionError:
        raise FilterDocumentError("/", "the rule is nested too deeply") from None
    except TooComplex as error:
        raise FilterTooComplex(f"the texts of a field cannot be combined: {error}") from None
    if found.is_empty:
        raise FilterDocumentError("/detection", "nothing can match")
    return found


def documents(text: str | bytes) -> Iterator[dict[str, Any]]:
    """Yield the documents of a YAML text: a file may have several, divided by `---`.

    A name twice in a map, and aliases, are refused: of the first YAML keeps the last, by the second a small text is
    large.
    """
    from fieldfare.filters.languages.sigma.yaml_texts import load_all  # noqa: PLC0415 - needs the extra `sigma`

    for found in load_all(text):
        yield _table(found, "/")


def _single(text: str | bytes) -> Mapping[str, Any]:
    found = list(itertools.islice(documents(text), 2))
    if len(found) != 1:
        raise FilterDocumentError("/", "expected a single rule" if found else "there is no rule")
    return found[0]


def _table(value: object, path: str) -> dict[str, Any]:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return dict(value)
    raise FilterDocumentError(path, f"expected a map of names, not {value!r:.40}")


def _detected(document: Mapping[str, Any], schema: LogSchema) -> Filter:
    if "detection" not in document:
        raise FilterDocumentError("/", "there is no detection")
    detections = _table(document["detection"], "/detection")
    conditions = detections.pop("condition", None)
    detections.pop("timeframe", None)  # only aggregations, which are refused, look at it
    written = conditions if isinstance(conditions, list) else [conditions]
    trees = [_condition(one, detections) for one in written]
    meaning = _Meaning(detections, schema)
    return meaning.of(trees[0] if len(trees) == 1 else AtLeast(1, tuple(trees)), True)


def _condition(text: object, detections: Mapping[str, object]) -> Condition:
    if not isinstance(text, str) or not text.strip():
        raise FilterDocumentError("/detection/condition", "there is no condition")
    try:
        return parse_condition(text, list(detections))
    except FilterSyntaxError as error:
        raise FilterDocumentError("/detection/condition", f"{error.problem} (column {error.column})") from None


class _Meaning:
    """The filters of the detections of a rule, each made at first use."""

    def __init__(self, detections: Mapping[str, object], schema: LogSchema) -> None:
        self._detections, self._schema = detections, schema
        self._known: dict[Hashable, Filter] = {}

    def of(self, condition: Condition, wanted: bool) -> Filter:
        """Return the events for which the condition is `wanted`, true or false: negation goes down to the items."""
        match condition:
            case Not(part):
                return self.of(part, not wanted)
            case Detection(name):
                key = (name, wanted)
                if key not in self._known:
                    self._known[key] = self._definition(self._detections[name], wanted, f"/detection/{name}")
                return self._known[key]
            case AtLeast(least, parts):
                needed = least if wanted else len(parts) - least + 1
                filters = [self.of(part, wanted) for part in parts]
                return _joined(filters, needed)

    def _definition(self, written: object, wanted: bool, path: str) -> Filter:
        """Return the meaning of a detection: a map of items, a list of alternatives, or a keyword."""
        if isinstance(written, Mapping):
            if not written:
                raise FilterDocumentError(path, "the map is empty")
            items = [item(str(key), value, self._schema, f"{path}/{key}") for key, value in written.items()]
            return every(items) if wanted else excepted(every(items))
        if isinstance(written, list):
            if not written:
                raise FilterDocumentError(path, "the list is empty")
            if not any(isinstance(one, (Mapping, list)) for one in written):
                return self._definition({"": written}, wanted, path)
            parts = [self._definition(one, wanted, f"{path}/{place}") for place, one in enumerate(written)]
            return _joined(parts, 1 if wanted else len(parts))
        return self._definition({"": [written]}, wanted, path)


def _joined(filters: Sequence[Filter], least: int) -> Filter:
    """Return the events that match so many of the filters."""
    if least == len(filters):
        return every(filters)
    if least == 1:
        return some(filters)
    return some([every(chosen) for chosen in itertools.combinations(filters, least)])
