"""Patterns: composite events, from expressions to detectors of many patterns, without I/O and without a clock."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.patterns.composite import composite_event, composite_type
    from fieldfare.patterns.machine import Match, Policy
    from fieldfare.patterns.parser import parse_core
    from fieldfare.patterns.printer import print_core
    from fieldfare.patterns.program import Program, compile_program
    from fieldfare.patterns.stamps import Occurrence, Stamp, occurrence

__all__ = [
    "Match",
    "Occurrence",
    "Policy",
    "Program",
    "Stamp",
    "compile_program",
    "composite_event",
    "composite_type",
    "occurrence",
    "parse_core",
    "print_core",
]
__getattr__ = lazy(
    __name__,
    {
        "composite": ("composite_event", "composite_type"),
        "machine": ("Match", "Policy"),
        "parser": ("parse_core",),
        "printer": ("print_core",),
        "program": ("Program", "compile_program"),
        "stamps": ("Occurrence", "Stamp", "occurrence"),
    },
)
