"""The fifteen vectors of the specification of the core language."""

from __future__ import annotations

import pytest
from tests.patterns.histories import detections

from fieldfare.patterns.machine import Policy

ONE_SHOT = Policy(one_shot=True)
VECTORS = [
    ("1", "[A];[B]", "A1@1 B1@2", ["A1+B1@[1,2]"]),
    ("2", "[A];[B]", "A1@1 A2@2 B1@3 B2@4", ["A1+B1@[1,3]", "A2+B2@[2,4]"]),
    ("3", "[A];[B]", "A1@[1,5] B1@[4,6] B2@[7,8]", []),
    ("4", "[A][B]", "A1@[1,5] B1@[4,6]", ["A1+B1@[1,6]"]),
    ("5", "[A][B]", "A1@[2,5] B1@[1,6]", ["A1+B1@[1,6]"]),
    ("6 continuous", "[A ⊆ {A,B}]", "B1@1 A1@2", ["A1@[2,2]"]),
    ("7 before", "([A],[B ⊆ {B,T}])_{T=+60}", "A1@0 B1@59", ["A1+B1@[0,59]"]),
    ("7 tie", "([A],[B ⊆ {B,T}])_{T=+60}", "A1@0 B1@60", ["A1+B1@[0,60]"]),
    ("7 after", "([A],[B ⊆ {B,T}])_{T=+60}", "A1@0 B1@61", []),
    ("8 none", "([A],[T ⊆ {T,B}])_{T=+60}", "A1@0 B1@61", ["A1@[0,60]"]),
    ("8 one", "([A],[T ⊆ {T,B}])_{T=+60}", "A1@0 B1@59", []),
    ("9 bob", "[Ā][¬A ⊆ P][A]", "Ā1@1 bob@2 alice@3", ["Ā1+bob+alice@[1,3]"]),
    ("9 alice", "[Ā][¬A ⊆ P][A]", "Ā1@1 alice@2 bob@3 alice2@4", []),
    ("10", "[A]*;[B]", "A1@1 A2@2 B1@3", ["A1+A2+B1@[1,3]"]),
    ("11", "[A ⊆ {A,C}]*;[B ⊆ {B,C}]", "A1@1 C1@2 B1@3", ["B1@[3,3]"]),
    ("12", "([A];[B]) | [C]", "C1@1 A1@2 B1@3", ["C1@[1,1]", "A1+B1@[2,3]"]),
    ("13", "([A];[B]) ∥ [C]", "A1@1 C1@2 B1@3", ["C1+(A1+B1)@[1,3]"]),
    ("14", "[A];([B][C])", "A1@[1,3] B1@[5,8] C1@[2,9]", []),
    ("15 in time", "([A]|[B],[C ⊆ {C,t}])_{t=+300}", "A1@0 C1@299", ["A1+C1@[0,299]"]),
    ("15 late", "([A]|[B],[C ⊆ {C,t}])_{t=+300}", "B1@0 C1@301", []),
]


@pytest.mark.parametrize(
    ("expression", "events", "expected"), [one[1:] for one in VECTORS], ids=[one[0] for one in VECTORS]
)
def test_vector(expression: str, events: str, expected: list[str]) -> None:
    assert detections(expression, events) == expected


def test_vector_3_with_skip() -> None:
    assert detections("[A];[B]", "A1@[1,5] B1@[4,6] B2@[7,8]", skip=True) == ["A1+B2@[1,8]"]


def test_vector_6_in_one_shot() -> None:
    assert detections("[A ⊆ {A,B}]", "A1@1 B1@2", policy=ONE_SHOT) == ["A1@[1,1]"]
    assert detections("[A ⊆ {A,B}]", "B1@1 A1@2", policy=ONE_SHOT) == []
