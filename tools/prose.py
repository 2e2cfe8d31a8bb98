"""Docstrings by numbers: pronouns for each 1,000 words, and docstrings that only repeat a name.

    python -m tools.prose                    # a table by package, the worst modules, the totals
    python -m tools.prose --module PATH      # the offending docstrings of a file or folder, with their lines
    python -m tools.prose --peers            # the same counts for h11, websockets, msgspec and httpx

A sentence whose subject is a noun can be read alone; a sentence with "what", "it" or "those" needs the sentence before.
The counted words are in `PRONOUNS`: what, who, whom, whose, whoever, whatever; it, its, itself; that, this, these,
those; they, them, their, themselves; one, ones. "Which" is not counted, because most uses follow a noun. The list gave
104 for Fieldfare before the rewriting, 52 for h11, 32 for websockets, 30 for msgspec and 18 for httpx.

An echo is a docstring with at most four words, or one whose words all stand in the name of its function, class or
module, common words such as "the" and "of" aside. Module docstrings of an empty `__init__.py` are no echoes.

Docstrings are those that `help()` shows: of modules, classes and functions. The ceilings stand in pyproject.toml under
`[tool.fieldfare.prose]`, and `tests/test_prose.py` holds the code against them.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PLACES: Final = ("src", "lab/src")
PEERS: Final = ("h11", "websockets", "msgspec", "httpx")


def _set(*lines: str) -> frozenset[str]:
    """The words of some lines as a set."""
    return frozenset(" ".join(lines).split())


PRONOUNS: Final = _set(
    "what who whom whose whoever whatever",
    "it its itself that this these those they them their themselves one ones",
)
COMMON: Final = PRONOUNS | _set(
    "a an the of to for in on at by with from as and or is are be was were do does did has have not no",
    "which all each some any there",
)
SHORT: Final = 4
"""A docstring of so few words says no more than a name."""

_WORD: Final = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ENDINGS: Final = re.compile(r"(?:ies|ied|ing|ed|es|e|s|y)$")


@dataclass(frozen=True, slots=True)
class Docstring:
    """The docstring of a module, class or function, with the place where it stands."""

    path: Path
    line: int
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """The words in lower case, in their order."""
        return [word.lower() for word in _WORD.findall(self.text)]

    @property
    def pronouns(self) -> Counter[str]:
        """How often each counted pronoun occurs; contractions such as "it's" count as their first part."""
        return Counter(word for word in (found.split("'")[0] for found in self.words) if word in PRONOUNS)

    @property
    def is_echo(self) -> bool:
        """Whether a reader of the name learns nothing from the docstring."""
        words = self.words
        if len(words) <= SHORT:
            return True
        known = {_stem(part.lower()) for part in _PART.findall(self.name)}
        return all(word in COMMON or _stem(word) in known for word in words)


def _stem(word: str) -> str:
    """A word without its usual endings, so that "matches" and "matching" are the same word."""
    stem = _ENDINGS.sub("", word)
    return stem if len(stem) > 2 else word


@dataclass(slots=True)
class Count:
    """Sums over some docstrings."""

    docstrings: int = 0
    words: int = 0
    pronouns: int = 0
    echoes: int = 0

    def add(self, docstring: Docstring) -> None:
        """Count one more docstring."""
        self.docstrings += 1
        self.words += len(docstring.words)
        self.pronouns += docstring.pronouns.total()
        self.echoes += docstring.is_echo

    @property
    def rate(self) -> float:
        """Pronouns for each 1,000 words; 0 where there are no words."""
        return 1000 * self.pronouns / self.words if self.words else 0.0


def docstrings_of(source: str, path: Path) -> Iterator[Docstring]:
    """The docstrings of a source text, from top to bottom.

    The docstring of an `__init__.py` without code is left out: such a file needs a docstring for the linter only.
    """
    tree = ast.parse(source)
    bare = path.name == "__init__.py" and len(tree.body) <= 1
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if text is None or (bare and isinstance(node, ast.Module)):
            continue
        module = path.parent.name if path.name == "__init__.py" else path.stem
        name = module if isinstance(node, ast.Module) else node.name
        found.append(Docstring(path, node.body[0].lineno, name, text))
    yield from sorted(found, key=lambda docstring: docstring.line)


def docstrings_in(place: Path) -> Iterator[Docstring]:
    """The docstrings of a file, or of all Python files below a folder; folders named `test` or `tests` are left out."""
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        if not {"test", "tests"} & set(path.relative_to(place).parts):
            yield from docstrings_of(path.read_text(encoding="utf-8"), path)


def places() -> list[Path]:
    """The source folders of this repository that exist."""
    return [ROOT / place for place in PLACES if (ROOT / place).is_dir()]


def total(docstrings: Iterable[Docstring]) -> Count:
    """The sums over all the given docstrings."""
    count = Count()
    for docstring in docstrings:
        count.add(docstring)
    return count


def by_package(docstrings: Iterable[Docstring], top: Sequence[Path]) -> dict[str, Count]:
    """Sums for each package, by the first two parts of the path below a source folder (`fieldfare/node`)."""
    counts: dict[str, Count] = {}
    for docstring in docstrings:
        base = next(place for place in top if docstring.path.is_relative_to(place))
        folders = docstring.path.relative_to(base).parent.parts[:2]
        counts.setdefault("/".join(folders), Count()).add(docstring)
    return counts


def by_module(docstrings: Iterable[Docstring]) -> dict[Path, Count]:
    """Sums for each file."""
    counts: dict[Path, Count] = {}
    for docstring in docstrings:
        counts.setdefault(docstring.path, Count()).add(docstring)
    return counts


def ceilings(pyproject: Path = ROOT / "pyproject.toml") -> tuple[float, int]:
    """The highest permitted rate of pronouns and number of echoes, from `[tool.fieldfare.prose]`."""
    table = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["fieldfare"]["prose"]
    return float(table["pronouns"]), int(table["echoes"])


def _row(name: str, count: Count) -> str:
    return f"{name:44} {count.docstrings:10,} {count.words:8,} {count.rate:9.1f} {count.echoes:7,}"


HEAD: Final = f"{'':44} {'docstrings':>10} {'words':>8} {'pronouns':>9} {'echoes':>7}"


def _table(docstrings: list[Docstring]) -> None:
    packages = by_package(docstrings, places())
    print("pronouns for each 1,000 words of docstrings; echoes: docstrings that only repeat a name\n")
    print(HEAD)
    for name, count in sorted(packages.items()):
        print(_row(name, count))
    modules = by_module(docstrings)
    worst = sorted(modules, key=lambda path: modules[path].pronouns - 0.05 * modules[path].words, reverse=True)
    print("\nthe 20 modules with the most pronouns above 50 a thousand")
    for path in worst[:20]:
        print(_row(path.relative_to(ROOT).as_posix(), modules[path]))
    pronouns, echoes = ceilings()
    print(f"\n{_row('all', total(docstrings))}")
    print(f"{'ceilings in pyproject.toml':63} {pronouns:9.1f} {echoes:7,}")


def _offenders(place: Path) -> int:
    if not place.exists():
        print(f"there is no {place}", file=sys.stderr)
        return 2
    found = list(docstrings_in(place))
    for docstring in found:
        faults = [f"{word} {times}" if times > 1 else word for word, times in docstring.pronouns.most_common()]
        if docstring.is_echo:
            faults.insert(0, "ECHO")
        if faults:
            print(f"{docstring.path}:{docstring.line}: {docstring.name}: {', '.join(faults)}")
            print("".join(f"    {line}\n" for line in docstring.text.splitlines()))
    print(HEAD)
    print(_row(str(place)[-44:], total(found)))
    return 0


def _peers() -> None:
    print(HEAD)
    for name in PEERS:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            print(f"{name:44} not installed")
        else:
            print(_row(name, total(docstrings_in(Path(spec.origin).parent))))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description="Docstrings by numbers.")
    parser.add_argument(
        "--module", type=Path, metavar="PATH", help="file or folder whose offending docstrings to print"
    )
    parser.add_argument("--peers", action="store_true", help="count the docstrings of four other packages instead")
    given = parser.parse_args(arguments)
    if given.module is not None:
        return _offenders(given.module)
    if given.peers:
        _peers()
    else:
        _table([docstring for place in places() for docstring in docstrings_in(place)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
