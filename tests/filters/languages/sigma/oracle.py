"""A slow reader of Sigma rules: tries a decoded rule on an event, item by item, and knows nothing of filters.

Texts become regular expressions, which Python matches; the condition becomes a Python expression over the detections.
"""

from __future__ import annotations

import base64
import ipaddress
import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

Event = Mapping[str, Any]
_MISSING = object()
_DASHES = "-/–—―"


def matches(rule: Mapping[str, Any], event: Event) -> bool:
    detections = {name: value for name, value in rule["detection"].items() if name != "condition"}
    answers = {name: _detection(value, event) for name, value in detections.items()}
    source = event.get("logsource", {})
    same = all(source.get(key, _MISSING) == value for key, value in rule.get("logsource", {}).items())
    return same and _condition(rule["detection"]["condition"], answers)


def _condition(text: str, answers: Mapping[str, bool]) -> bool:
    def several(found: re.Match[str]) -> str:
        pattern = ".*" if found[2] == "them" else re.escape(found[2]).replace(r"\*", ".*")
        hits = [answer for name, answer in answers.items() if re.fullmatch(pattern, name)]
        if found[2] == "them":
            hits = [answer for name, answer in answers.items() if not name.startswith("_")]
        return str(sum(hits) >= (len(hits) if found[1] == "all" else int(found[1])))

    text = re.sub(r"\b(all|\d+) of ([\w*]+)", several, text)
    text = re.sub(r"\b(?!and\b|or\b|not\b|True\b|False\b)\w+", lambda found: str(answers[found[0]]), text)
    return bool(eval(text, {}))


def _detection(value: Any, event: Event) -> bool:
    if isinstance(value, dict):
        return all(_item(key, found, event) for key, found in value.items())
    if isinstance(value, list):
        return any(_detection(one, event) for one in value)
    return _item("", value, event)


def _item(key: str, written: Any, event: Event) -> bool:
    name, *modifiers = key.split("|")
    values = written if isinstance(written, list) else [written]
    tests = [_test(value, modifiers, bool(name)) for value in values]
    fields = [name] if name else ["message"]
    join = all if "all" in modifiers else any
    answer = join(any(test(_at(event, field), event) for field in fields) for test in tests)
    return answer != ("neq" in modifiers)


def _at(event: Event, path: str) -> Any:
    value: Any = event
    for step in path.split("."):
        if not isinstance(value, dict) or step not in value:
            return _MISSING
        value = value[step]
    return value


def _some(test: Callable[[Any], bool]) -> Callable[[Any, Event], bool]:
    return lambda value, _: any(map(test, value)) if isinstance(value, list) else test(value)


def _test(value: Any, modifiers: list[str], field: bool) -> Callable[[Any, Event], bool]:
    if "re" in modifiers:
        flags = sum(
            flag for name, flag in (("i", re.IGNORECASE), ("m", re.MULTILINE), ("s", re.DOTALL)) if name in modifiers
        )
        return _some(lambda found: isinstance(found, str) and re.search(str(value), found, flags) is not None)
    if "cidr" in modifiers:
        return _some(lambda found: _inside(found, value))
    if "exists" in modifiers:
        return lambda found, _: (found is not _MISSING) == value
    if "fieldref" in modifiers:
        return lambda found, event: _same(found, _at(event, value))
    for name, wanted in (("lt", (-1,)), ("lte", (-1, 0)), ("gt", (1,)), ("gte", (0, 1))):
        if name in modifiers:
            return _some(lambda found, wanted=wanted: _is_number(found) and (found > value) - (found < value) in wanted)  # type: ignore[misc]
    if value is None:
        return lambda found, _: found is None or found is _MISSING
    if isinstance(value, bool):
        return _some(lambda found: found is value or (isinstance(found, str) and found.lower() == str(value).lower()))
    changes = [name for name in modifiers if name not in ("all", "cased", "neq")]
    if isinstance(value, (int, float)) and not changes and field:
        return _some(lambda found: (_is_number(found) and found == value) or found == str(value))
    texts = [str(value)]
    before = after = "" if field else ".*"
    for name in changes:
        match name:
            case "windash":
                texts = [other for text in texts for other in _dashes(text)]
            case "wide" | "utf16le":
                texts = [text.encode("utf-16-le").decode() for text in texts]
            case "base64":
                texts = [base64.b64encode(_plain(text)).decode() for text in texts]
            case "base64offset":
                texts = [other for text in texts for other in _offsets(_plain(text))]
            case "contains":
                before, after = ".*", ".*"
            case "startswith":
                after = ".*"
            case "endswith":
                before = ".*"
    regexes = [
        re.compile(before + _regex(text) + after, re.DOTALL | (0 if "cased" in modifiers else re.IGNORECASE))
        for text in texts
    ]
    number = float(texts[0]) if not changes and field and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", texts[0]) else None
    return _some(
        lambda found: (
            (isinstance(found, str) and any(one.fullmatch(found) for one in regexes))
            or (number is not None and _is_number(found) and found == number)
        )
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    if one is _MISSING or other is _MISSING or isinstance(one, list) or isinstance(other, list):
        return False
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    return type(one) is type(other) and one == other


def _inside(found: Any, network: str) -> bool:
    try:
        return isinstance(found, str) and ipaddress.ip_address(found) in ipaddress.ip_network(network)
    except ValueError:
        return False


def _regex(text: str) -> str:
    parts = re.findall(r"\\[*?\\]|\*|\?|[^*?]", text, re.DOTALL)
    return "".join(
        ".*" if part == "*" else "." if part == "?" else re.escape(part[1:] if len(part) == 2 else part)
        for part in parts
    )


def _plain(text: str) -> bytes:
    return re.sub(r"\\([*?\\])", r"\1", text).encode()


def _dashes(text: str) -> list[str]:
    places = [found.start() for found in re.finditer(r"\B[-/]\b", text)]
    made = []
    for chosen in itertools.product(_DASHES, repeat=len(places)):
        chars = list(text)
        for place, dash in zip(places, chosen, strict=True):
            chars[place] = dash
        made.append("".join(chars))
    return made


def _offsets(data: bytes) -> list[str]:
    """Return what base64 makes of the data wherever it begins: the characters that depend on the data alone."""
    made = []
    for shift in range(3):
        forms = [
            base64.b64encode(bytes([filler]) * shift + data + bytes([filler]) * 3).decode()
            for filler in (0, 0x55, 0xFF)
        ]
        first = next(i for i in range(len(forms[0])) if len({form[i] for form in forms}) == 1 and i * 6 >= shift * 8)
        last = first
        while (last + 1) * 6 <= (shift + len(data)) * 8:
            last += 1
        made.append(forms[0][first:last])
    return made
