"""Substrings: filters that are found by a piece of text which an event must contain.

A suffix or a prefix is a key like any other; a substring is not, since a text has many. A filter whose best clue is a
substring is therefore indexed here: a single pass over the text of an event with an Aho–Corasick automaton finds all
substrings, and only the filters of these are verified. The automaton (pyahocorasick) is rebuilt after enough additions;
newer substrings, and all of them without the library, are searched one by one.

A substring of any case is stored in lower case ("folded") and searched in the folded text. Folding maps character by
character, so a text that contains a piece in any case contains the folded piece when folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fieldfare.matching.store.layout import VERIFY_FLAG

try:
    import ahocorasick
except ModuleNotFoundError:  # part of the extra `fast`
    ahocorasick = None


class Substring(NamedTuple):
    """A text that a field must contain, as is or with both folded."""

    path: str
    text: str
    folded: bool = False


_Group = tuple[str, bool]
"""a field, and whether its texts are folded"""
_LOOSE: Final = 64
"""substrings that are searched one by one before the automaton is rebuilt"""


class SubstringIndex:
    """Owners by substring. A single writer at a time; readers need no lock, since writers replace and never change."""

    def __init__(self) -> None:
        self._owners: dict[_Group, dict[str, tuple[int, ...]]] = {}
        self._of: dict[int, list[tuple[Substring, int]]] = {}
        self._automata: dict[_Group, Any] = {}
        self._loose: dict[_Group, tuple[str, ...]] = {}
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
        return list(dict.fromkeys(path for path, _ in list(self._owners)))  # of a copy: a writer may add a field

    def add(self, number: int, substring: Substring, owner: int) -> None:
        """Index a filter under a substring."""
        path, text, folded = substring
        group = (path, folded)
        known = self._owners.setdefault(group, {})
        if text not in known:
            self._loose[group] = (*self._loose.get(group, ()), text)
        known[text] = (*known.get(text, ()), owner)
        self._of.setdefault(number, []).append((substring, owner))
        self.version += 1
        if ahocorasick is not None and len(self._loose[group]) > max(_LOOSE, len(known) // 8):
            self._build(group)

    def compact(self) -> None:
        """Put all substrings into automata."""
        for group, loose in self._loose.items() if ahocorasick is not None else ():
            if loose:
                self._build(group)

    def _build(self, group: _Group) -> None:
        automaton = ahocorasick.Automaton()
        for text in self._owners[group]:
            automaton.add_word(text, text)
        automaton.make_automaton()
        self._automata[group] = automaton
        self._loose[group] = ()

    def kill(self, number: int) -> None:
        """Remove a filter. The substring stays in the automaton, without an owner."""
        for (path, text, folded), owner in self._of.pop(number, ()):
            known = self._owners[path, folded]
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
        if value is not None:
            for folded in (False, True):
                if (path, folded) in self._owners:
                    found += self._found((path, folded), value.casefold() if folded else value)
        return found

    def _found(self, group: _Group, value: str) -> list[int]:
        found: list[int] = []
        known, automaton = self._owners[group], self._automata.get(group)
        if automaton is not None:
            for text in {text for _, text in automaton.iter(value)}:
                found += known[text]
        for text in self._loose.get(group, ()):
            if text in value:
                found += known[text]
        return found

    def undecided(self, path: str) -> list[int]:
        """Return all owners with substrings in a field, to be verified."""
        groups = [self._owners.get((path, folded), {}) for folded in (False, True)]
        return [owner | VERIFY_FLAG for known in groups for owners in list(known.values()) for owner in owners]
