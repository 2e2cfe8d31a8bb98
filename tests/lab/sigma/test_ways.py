"""The benchmark of rules of Sigma: events mixed of real ones, and ways that agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fieldfare_lab.sigma.corpus import load_rules, mixed, read_events, windows
from fieldfare_lab.sigma.measurement import measure
from fieldfare_lab.sigma.ways import WAYS, Corpus

RULE = "id: {name}\nlogsource: {{product: windows, category: process_creation}}\ndetection: {{s: {{Image|endswith: {name}.exe}}, condition: s}}\n"
SYSMON = "Microsoft-Windows-Sysmon/Operational"
HEAD = {"EventID": 1, "Channel": SYSMON, "Provider": {"#attributes": {"Name": "p"}}}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    for name in ("cmd", "net", "bad"):
        text = RULE.format(name=name) if name != "bad" else "detection: {s: {x|hour: 1}, condition: s}"
        (tmp_path / f"{name}.yml").write_text(text)
    one = {"Event": {"System": HEAD, "EventData": {"Image": "C:\\cmd.exe", "Hash": {"deep": 1}}}}
    (tmp_path / "one.json").write_text(json.dumps(one, indent=1))
    (tmp_path / "more.jsonl").write_text('{"EventID": 1, "Image": "net.exe"}\nno json\n{"EventID": 5}\n')
    (tmp_path / "other.json").write_text("[1, 2]")
    rules, refused = load_rules(tmp_path, "**/*.yml", windows())
    assert refused.total() == 1
    return Corpus(rules, mixed(read_events(tmp_path), 50), tmp_path)


def test_events_are_flat_and_mixed_of_the_same_kind(corpus: Corpus, tmp_path: Path) -> None:
    flat = {"EventID": 1, "Channel": SYSMON, "Provider_Name": "p", "Image": "C:\\cmd.exe"}
    assert flat in read_events(tmp_path)
    assert corpus.events == mixed(read_events(tmp_path), 50), "the same events every time"
    assert {one.get("Image") for one in corpus.events if "Channel" in one} == {"C:\\cmd.exe", "net.exe"}


@pytest.mark.parametrize("names", [("single", "lines"), pytest.param((*WAYS,)[:4], marks=pytest.mark.long)])
def test_ways_agree(corpus: Corpus, names: tuple[str, ...]) -> None:
    told: list[str] = []
    found = measure(corpus, names, 2, told.append)
    expected = sum(rule.matches(event) for rule in corpus.rules.values() for event in corpus.events)
    assert [(one.way, one.matches, one.correct) for one in found] == [(name, expected, True) for name in names]
    assert len(told) == 3 * len(names)
