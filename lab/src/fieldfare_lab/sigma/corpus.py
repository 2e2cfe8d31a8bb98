"""A corpus of Sigma: the rules of a folder as filters, and log events like those of another folder.

Real events of attacks are few. `mixed` makes as many events as wanted: each is a real event in which some fields
come from other events of the same kind, so most events fit parts of many rules, and few fit a whole rule.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from fieldfare.filters import Filter, parse
from fieldfare.filters.languages import sigma
from fieldfare.filters.languages.sigma import LogSchema, Source

Event = dict[str, Any]
_CHANGED: Final = 0.3
"""share of the fields of an event that come from another one"""
_SYSMON: Final = {
    "process_creation": "1",
    "file_change": "2",
    "network_connection": "3",
    "sysmon_status": "4 16",
    "process_termination": "5",
    "driver_load": "6",
    "image_load": "7",
    "create_remote_thread": "8",
    "raw_access_thread": "9",
    "process_access": "10",
    "file_event": "11",
    "registry_add": "12",
    "registry_delete": "12",
    "registry_set": "13",
    "registry_rename": "14",
    "registry_event": "12 13 14",
    "create_stream_hash": "15",
    "pipe_created": "17 18",
    "wmi_event": "19 20 21",
    "dns_query": "22",
    "file_delete": "23 26",
}
_POWERSHELL: Final = {"ps_module": "4103", "ps_script": "4104"}
_SERVICES: Final = {
    "security": "Security",
    "system": "System",
    "application": "Application",
    "sysmon": "Microsoft-Windows-Sysmon/Operational",
    "powershell": "Microsoft-Windows-PowerShell/Operational",
}


def windows() -> LogSchema:
    """Return the schema of Windows: kinds of events by channel and number; other sources by the field `source`."""
    sources = [_kind(name, _SERVICES["sysmon"], numbers) for name, numbers in _SYSMON.items()]
    sources += [_kind(name, _SERVICES["powershell"], numbers) for name, numbers in _POWERSHELL.items()]
    sources += [
        Source(parse(f"Channel = '{channel}'"), product="windows", service=name) for name, channel in _SERVICES.items()
    ]
    products = ("windows", "linux", "macos", "aws", "azure", "gcp", "m365", "okta", "github", "kubernetes")
    sources += [Source(parse(f"source = '{product}'"), product=product) for product in products]
    return LogSchema(sources=(*sources, Source(parse("source = 'other'"))))


def _kind(category: str, channel: str, numbers: str) -> Source:
    listed = ", ".join(f"'{number}'" for number in numbers.split())
    return Source(parse(f"Channel = '{channel}' AND EventID IN ({listed})"), category=category)


def load_rules(folder: Path, glob: str, schema: LogSchema) -> tuple[dict[str, Filter], Counter[str]]:
    """Return the filters of all rules that load, and the reasons why the others do not."""
    loaded: dict[str, Filter] = {}
    refused: Counter[str] = Counter()
    for file in sorted(folder.glob(glob)):
        try:
            for number, rule in enumerate(sigma.documents(file.read_bytes())):
                loaded[f"{file.relative_to(folder)}:{number}"] = sigma.parse(rule, schema)
        except ValueError as error:
            refused[re.sub(r"^at /.*?: |%.*?%|'.*?'", "", str(error))] += 1
    return loaded, refused


def read_events(folder: Path) -> list[Event]:
    """Return the events in the JSON files below a folder; events of Windows become flat, as rules expect them.

    A file has one event over several lines, or an event on each line; files of other JSON are passed over.
    """
    found: list[Event] = []
    for file in sorted([*folder.rglob("*.json"), *folder.rglob("*.jsonl")]):
        found += [_flat(tree) for tree in _trees(file.read_text("utf-8", errors="replace")) if isinstance(tree, dict)]
    return found


def _trees(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text)
    except json.JSONDecodeError:
        for line in text.splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def _flat(tree: Event) -> Event:
    """Return an event of Windows as its data and the parts of its head that rules look at.

    >>> _flat({"Event": {"System": {"EventID": 1, "Channel": "Sysmon"}, "EventData": {"Image": "cmd.exe"}}})
    {'EventID': 1, 'Channel': 'Sysmon', 'Image': 'cmd.exe'}
    """
    if not isinstance(tree.get("Event"), dict):
        return tree
    system = tree["Event"].get("System") or {}
    head = {key: system[key] for key in ("EventID", "Channel", "Computer") if key in system}
    name = ((system.get("Provider") or {}).get("#attributes") or {}).get("Name")
    data = tree["Event"].get("EventData") or {}
    plain = {key: value for key, value in data.items() if isinstance(value, (str, int, float, bool))}
    return {**head, **({"Provider_Name": name} if name else {}), **plain}


def mixed(real: Sequence[Event], count: int, seed: int = 1) -> list[Event]:
    """Return so many events made of real ones, the same every time; every value is a text, as in logs.

    >>> mixed([{"EventID": 1, "Image": "cmd.exe"}], 2)
    [{'EventID': '1', 'Image': 'cmd.exe'}, {'EventID': '1', 'Image': 'cmd.exe'}]
    """
    chance = random.Random(seed)
    kinds: dict[Any, list[Event]] = {}
    for event in real:
        kinds.setdefault(event.get("EventID"), []).append(event)
    found = []
    for _ in range(count):
        event = dict(chance.choice(real))
        for key in event:
            other = chance.choice(kinds[event.get("EventID")])
            if key != "EventID" and key in other and chance.random() < _CHANGED:
                event[key] = other[key]
        found.append({key: str(value) for key, value in event.items()})
    return found
