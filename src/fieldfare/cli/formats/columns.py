"""Facts and rows as lines of text, in columns as wide as their longest entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def pairs(facts: dict[str, str]) -> str:
    """Return facts as lines, with their names in a column."""
    width = max(map(len, facts))
    return "\n".join(f"{title:<{width}}  {text}" for title, text in facts.items())


def columns(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows in columns; a column of numbers is aligned to the right.

    >>> print(columns(("name", "count"), [("ana", "7"), ("robert", "1,234")]))
    name    count
    ana         7
    robert  1,234
    """
    given = [list(titles), *map(list, rows)]
    widths = [max(len(row[place]) for row in given) for place in range(len(titles))]
    right = [
        len(given) > 1 and all(row[place][:1].isdigit() and row[place][-1:].isdigit() for row in given[1:])
        for place in range(len(titles))
    ]
    lines = []
    for row in given:
        cells = [
            f"{cell:>{width}}" if number else f"{cell:<{width}}"
            for cell, width, number in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
