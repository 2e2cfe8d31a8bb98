"""Patterns: composite events, from expressions to detectors of many patterns, without I/O and without a clock."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.patterns.composite import composite_event, composite_type
    from fieldfare.patterns.definition import Pattern, pattern
    from fieldfare.patterns.detector import Detection, Detector
    from fieldfare.patterns.expression import Expression, any_of, event, some_of
    from fieldfare.patterns.language import parse_pattern
    from fieldfare.patterns.machine import Match, Policy
    from fieldfare.patterns.parser import parse_core
    from fieldfare.patterns.printer import print_core
    from fieldfare.patterns.program import Program, compile_program
    from fieldfare.patterns.relaxations import NearMiss, near_misses
    from fieldfare.patterns.stamps import Occurrence, Stamp, occurrence

__all__ = [
    "Detection",
    "Detector",
    "Expression",
    "Match",
    "NearMiss",
    "Occurrence",
    "Pattern",
    "Policy",
    "Program",
    "Stamp",
    "any_of",
    "compile_program",
    "composite_event",
    "composite_type",
    "event",
    "near_misses",
    "occurrence",
    "parse_core",
    "parse_pattern",
    "pattern",
    "print_core",
    "some_of",
]
__getattr__ = lazy(
    __name__,
    {
        "composite": ("composite_event", "composite_type"),
        "detector": ("Detection", "Detector"),
        "expression": ("Expression", "any_of", "event", "some_of"),
        "language": ("parse_pattern",),
        "machine": ("Match", "Policy"),
        "parser": ("parse_core",),
        "definition": ("Pattern", "pattern"),
        "printer": ("print_core",),
        "program": ("Program", "compile_program"),
        "relaxations": ("NearMiss", "near_misses"),
        "stamps": ("Occurrence", "Stamp", "occurrence"),
    },
)
