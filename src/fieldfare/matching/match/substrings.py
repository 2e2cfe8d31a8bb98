"""Substrings: filters that are found by a piece of text which an event must contain.

A suffix or a prefix is a key like any other; a substring is not, since a text has many. A filter whose best clue is a
substring is therefore indexed here: a single pass over the text of an event with an Aho–Corasick automaton finds all
substrings, and only the filters of these are verified. The automaton (pyahocorasick) is rebuilt after enough additions;
newer substrings, and all of them without the library, are searched one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fieldfare.matching.store.layout import VERIFY_FLAG

try:
    import ahocorasick
except ModuleNotFoundError:  # part of the extra `fast`
    ahocorasick = None

Substring = tuple[str, str]
"""a field, and a text that the field must contain"""
_LOOSE: Final = 64
"""substrings that are searched one by one before the automaton is rebuilt"""


class SubstringIndex:
    """Owners by substring. A single writer at a time; readers need no lock, since writers replace and never change."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, tuple[int, ...]]] = {}
        self._of: dict[int, list[tuple[Substring, int]]] = {}
        self._automata: dict[str, Any] = {}
        self._loose: dict[str, tuple[str, ...]] = {}
        self.version = 0
        """a number that changes with every change"""

    def __len__(self) -> int:
        return sum(len(places) for places in self._of.values())

    def __contains__(self, number: int) -> bool:
        return number in self._of

    @property
    def numbers(self) -> list[int]:
        """The numbers of all filters in the index."""
        return list(self._of)

    @property
    def paths(self) -> list[str]:
        """The fields with substrings to search."""
        return list(self._owners)  # a copy: a writer may add a field meanwhile

    def add(self, number: int, substring: Substring, owner: int) -> None:
        """Index a filter under a substring."""
        path, text = substring
        known = self._owners.setdefault(path, {})
        if text not in known:
            self._loose[path] = (*self._loose.get(path, ()), text)
        known[text] = (*known.get(text, ()), owner)
        self._of.setdefault(number, []).append((substring, owner))
        self.version += 1
        if ahocorasick is not None and len(self._loose[path]) > max(_LOOSE, len(known) // 8):
            self._build(path)

    def compact(self) -> None:
        """Put all substrings into automata."""
        for path, loose in self._loose.items() if ahocorasick is not None else ():
            if loose:
                self._build(path)

    def _build(self, path: str) -> None:
        automaton = ahocorasick.Automaton()
        for text in self._owners[path]:
            automaton.add_word(text, text)
        automaton.make_automaton()
        self._automata[path] = automaton
        self._loose[path] = ()

    def kill(self, number: int) -> None:
        """Remove a filter. The substring stays in the automaton, without an owner."""
        for (path, text), owner in self._of.pop(number, ()):
            known = self._owners[path]
            known[text] = tuple(other for other in known[text] if other != owner)
            self.version += 1

    def owners(self, fields: Mapping[str, object]) -> list[int]:
        """Return the owners whose substrings occur in the fields; for a list in a field, all owners, to be verified."""
        found: list[int] = []
        for path in self.paths:
            value = fields.get(path)
            if isinstance(value, str):
                found += self.owners_in(path, value)
            elif value is not None and not isinstance(value, (int, float)):  # a list, or an interval of strings
                found += self.undecided(path)
        return found

    def owners_in(self, path: str, value: str | None) -> list[int]:
        """Return the owners whose substrings occur in the text of a field."""
        found: list[int] = []
        if value is None:
            return found
        known, automaton = self._owners[path], self._automata.get(path)
        if automaton is not None:
            for text in {text for _, text in automaton.iter(value)}:
                found += known[text]
        for text in self._loose.get(path, ()):
            if text in value:
                found += known[text]
        return found

    def undecided(self, path: str) -> list[int]:
        """Return all owners with substrings in a field, to be verified."""
        return [owner | VERIFY_FLAG for owners in list(self._owners[path].values()) for owner in owners]
