"""The fields of JSON texts as the full reader gives them, though only the fields that filters look at are decoded.

A kernel looks over each text for reasons to refuse it, msgspec checks the grammar, and a text with any doubt goes to
the full reader in `fieldfare.events`. Answers and errors are therefore always those of the full reader. Without
kernels, all texts go to the full reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fieldfare.events import cloudevents, json
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.matching.match.field_decoders import Decoders, decoders_of
from fieldfare.matching.match.json_layout import ADDRESS, BLANK, DOUBTFUL, PLAIN, RESULTS, WIDE, working_memory
from fieldfare.matching.store.store import Store

Ints = NDArray[np.int64]
Text: TypeAlias = bytes | str
Fields: TypeAlias = Mapping[str, object]
Found = TypeVar("Found")
Pairs: TypeAlias = tuple[Ints, Ints]
LINES: Final = 4096
"""lines that are decoded at once"""
_LONGEST: Final = 1 << 16
"""bytes of a single text that is looked over; a longer text is decoded whole"""
_SPECVERSION: Final = b"specversion"
_NO_PAIRS: Final[Pairs] = np.zeros(0, np.int64), np.zeros(0, np.int64)


class Part(NamedTuple):
    """The events of some lines: in columns, and as fields where columns cannot hold an event."""

    batch: Any
    lines: Ints
    """the number of the line of each row"""
    others: list[tuple[int, Fields]]

    def pairs(self, in_batch: Callable[[Any], Pairs], in_fields: Callable[[Fields], list[int]]) -> Pairs:
        """Return pairs of a line and a filter's number, sorted by line; the functions match."""
        rows, number = in_batch(self.batch) if self.batch is not None else _NO_PAIRS
        line = self.lines[rows]
        if not self.others:
            return line, number
        found = [(one, in_fields(fields)) for one, fields in self.others]
        line = np.concatenate([line, np.repeat([one for one, _ in found], [len(numbers) for _, numbers in found])])
        number = np.concatenate([number, np.array([one for _, numbers in found for one in numbers], np.int64)])
        order = np.argsort(line, kind="stable")
        return line[order], number[order]


class _Judged(NamedTuple):
    """Some lines: their text, the number of the first, where each ends, and the judgements."""

    text: memoryview
    first: int
    ends: Ints
    judgements: Ints

    def line(self, place: int) -> bytes:
        """Return the bytes of a line without its end."""
        return bytes(self.text[self.ends[place - 1] + 1 if place else 0 : self.ends[place]])

    def lines(self, places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Yield some lines with their numbers. A string without an end made one line of two, and is found in one."""
        for place in places:
            yield from enumerate(self.line(place).split(b"\n"), self.first + place)


class JsonReader:
    """A reader of JSON texts for the fields that the filters of a store look at, for many threads."""

    def __init__(self, store: Store, *, cloudevents: bool = False) -> None:
        """Make a reader; with `cloudevents`, a text with `specversion` is a CloudEvent."""
        self._store = store
        self._cloudevents = cloudevents
        self._kernels: ModuleType | None = None
        self._known: tuple[int, Decoders | None] = (-1, None)
        self._desks: list[_Desk] = []

    @property
    def latest(self) -> Decoders | None:
        """The decoders of the last call of `decoders`, which may be too old."""
        return self._known[1]

    def decoders(self) -> Decoders | None:
        """Return the decoders for the fields that filters look at now; None if all texts are to be read in full."""
        version = self._store.looked_at.version()
        if self._known[0] != version or self._kernels is None:
            self._known = version, self._made()
        return self._known[1]

    def _made(self) -> Decoders | None:
        self._kernels = self._store.kernels
        paths = self._store.looked_at.paths()
        if paths is None or self._kernels is None:
            return None
        return decoders_of(paths, dotted=not self._store.looked_at.by_prefix)

    def fields(self, text: Text, decoders: Decoders | None) -> Fields:
        """Return the fields of an event, at least those that filters look at."""
        raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        if decoders is not None and len(raw) <= _LONGEST:
            desk = self._desk()
            judgement = desk.judged(self._kernels, raw)
            self._desks.append(desk)
            if judgement & WIDE:
                judgement = judgement & ~WIDE if _is_unicode(raw) else DOUBTFUL
            if self._cloudevents and _SPECVERSION in raw:
                judgement = DOUBTFUL
            if judgement < DOUBTFUL and (decoder := decoders[judgement]) is not None:
                try:
                    return decoder.fields(decoder.decode(raw))
                except (ValueError, RecursionError):
                    pass  # the full reader names the mistake
        return self._read(raw).fields

    def settled(self, text: Text, match: Callable[[Fields], Found]) -> Found:
        """Return what `match` finds for the fields of a text, once filters look at no others meanwhile."""
        decoders = self.latest or self.decoders()
        while True:
            found = match(self.fields(text, decoders))
            used, decoders = decoders, self.decoders()
            if used is decoders:  # else a filter may have replaced another
                return found

    def pairs(
        self, lines: Text | Iterable[Text], in_batch: Callable[[Any], Pairs], in_fields: Callable[[Fields], list[int]]
    ) -> Iterator[Pairs]:
        """Yield pairs of a line and a filter's number, for some lines at a time; the two functions match.

        Blank lines are skipped. An error names the line.
        """
        for read in self._parts(lines):
            while True:
                decoders = self.decoders()
                found = read(decoders).pairs(in_batch, in_fields)
                if decoders is self.decoders():  # else a filter may have replaced another, and look at other fields
                    break
            yield found

    def _parts(self, lines: Text | Iterable[Text]) -> Iterator[Callable[[Decoders | None], Part]]:
        """Yield functions that read some lines each."""
        if isinstance(lines, (bytes, str)):
            yield from self._parts_of_text(_bytes(lines))
            return
        given, first = iter(lines), 0
        while some := [_bytes(line).removesuffix(b"\n") for line in islice(given, LINES)]:
            text = b"\n".join([*some, b""])
            judged = self._judged(text, first) if text.count(b"\n") == len(some) else None
            if judged is None or len(judged.ends) != len(some):  # no kernels, or an element that is no line
                yield partial(self._singly, list(enumerate(some, first)))
            else:
                yield partial(self._part, judged)
            first += len(some)

    def _parts_of_text(self, text: bytes) -> Iterator[Callable[[Decoders | None], Part]]:
        start, first = 0, 0
        while start < len(text):
            judged = self._judged(text, first, start)
            if judged is None:
                yield partial(self._singly, list(enumerate(text[start:].split(b"\n"), first)))
                return
            yield partial(self._part, judged)
            start += int(judged.ends[-1]) + 1
            first += len(judged.ends)

    def _judged(self, text: bytes, first: int, start: int = 0) -> _Judged | None:
        """Return the next lines with their judgements; None if all texts are to be read in full."""
        if self.decoders() is None:
            return None
        desk = self._desk()
        ends, judgements = desk.judged_lines(self._kernels, text, start)
        self._desks.append(desk)
        judged = _Judged(memoryview(text)[start : start + int(ends[-1])], first, ends, judgements)
        for place in np.flatnonzero(judgements & WIDE).tolist():
            judgements[place] = judgements[place] & ~WIDE if _is_unicode(judged.line(place)) else DOUBTFUL
        if self._cloudevents and _SPECVERSION in text:
            judgements[[_SPECVERSION in judged.line(place) for place in range(len(ends))]] = DOUBTFUL
        return judged

    def _part(self, judged: _Judged, decoders: Decoders | None) -> Part:
        text, first, _, judgements = judged
        rows = np.flatnonzero(judgements == PLAIN)
        doubted = np.flatnonzero((judgements != PLAIN) & (judgements != BLANK)).tolist()
        if decoders is None:
            return self._singly(judged.lines(range(len(judgements))), decoders)
        try:
            plain = b"\n".join(map(judged.line, rows.tolist())) if doubted else text
            batch, odd = decoders[0].columns(plain, len(rows))
        except (ValueError, RecursionError):  # the full reader names the mistake
            return self._singly(judged.lines(range(len(judgements))), decoders)
        others = [(first + int(rows[row]), fields) for row, fields in odd.items()]
        if odd:
            even = np.delete(np.arange(len(rows)), [*odd])
            batch, rows = batch.take(pa.array(even)), rows[even]
        more = self._singly(judged.lines(doubted), decoders).others
        return Part(batch, first + rows, others + more)

    def _singly(self, lines: Iterable[tuple[int, bytes]], decoders: Decoders | None) -> Part:
        """Return the events of lines, read one by one."""
        others = []
        for number, line in lines:
            if line and not line.isspace():
                try:
                    others.append((number, self.fields(line, decoders)))
                except EventError as error:
                    raise EventError(error.field, f"{error.problem} (line {number + 1})") from None
        return Part(None, np.zeros(0, np.int64), others)

    def _desk(self) -> _Desk:
        try:
            return self._desks.pop()
        except IndexError:  # all are in use
            return _Desk()

    def _read(self, raw: bytes) -> Event:
        return cloudevents.decode_any(raw) if self._cloudevents else json.decode(raw)


class _Desk:
    """Memory for the kernel, used by one thread at a time."""

    def __init__(self) -> None:
        self._work = working_memory(LINES)
        self._text = np.zeros(_LONGEST, np.uint8)
        self._bytes = self._text.data
        self._work[ADDRESS] = self._text.ctypes.data

    def judged(self, kernels: Any, raw: bytes) -> int:
        """Return the judgement of a text."""
        size = len(raw)
        self._bytes[:size] = raw
        return kernels.judgement_of(size, self._work)  # type: ignore[no-any-return]

    def judged_lines(self, kernels: Any, text: bytes, start: int) -> tuple[Ints, Ints]:
        """Return where the next lines of a text end, counted from `start`, and their judgements."""
        whole = np.frombuffer(text, np.uint8)
        address = whole.ctypes.data
        found = kernels.look_over(address + start, address + len(text), True, self._work)
        results = self._work[RESULTS : RESULTS + 2 * found]
        return results[::2].copy(), results[1::2].copy()


def _bytes(text: Text) -> bytes:
    return text.encode(errors="surrogatepass") if isinstance(text, str) else text


def _is_unicode(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
