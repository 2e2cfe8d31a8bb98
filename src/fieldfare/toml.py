"""The TOML reader of node, pipeline and scenario files: a text and a msgspec type in, a value or a `TomlError` out.

An error names the place as the author of the file wrote it (table path and line), and offers a way out: the setting
with a similar name for an unknown setting, the valid choices for a wrong value. Callers read the files.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec

T = TypeVar("T")
Hook: TypeAlias = Callable[[type, Any], Any]
"""a decoder of types that msgspec does not know; its ValueErrors become `TomlError`s"""
_Step: TypeAlias = str | int
"""a key of a table, or a place in an array"""

_WORDS: Final = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "a boolean",
    "array": "an array",
    "object": "a table",
}
"""TOML's words for what msgspec calls a type"""
_BACKWARD: Final = 200
"""lines that the search for a line goes back at most, within one long value"""


class TomlError(ValueError):
    """A mistake in a TOML document; the text has source, line, place and problem, as far as they are known."""

    def __init__(
        self,
        problem: object,
        place: str = "",
        line: int | None = None,
        source: str = "",
        *,
        steps: tuple[_Step, ...] = (),
    ) -> None:
        self.problem = str(problem)
        self.place = place
        """the path of a setting, as `sink[0].kind`; of an unknown setting, the path of its table"""
        self.line = line
        self.source = source
        self.steps = steps or _steps(place)
        """the way to the statement at fault, an unknown setting included"""
        super().__init__(": ".join(part for part in (where(source, line), place, self.problem) if part))


def decode(text: str, kind: type[T], *, source: str = "", hook: Hook | None = None) -> T:
    """Return the document as a value of a type; `source` is the name of its file, for errors.

    >>> class Log(msgspec.Struct, forbid_unknown_fields=True):
    ...     size: int = 1000
    ...     sync: Literal["normal", "full"] = "normal"
    >>> decode("size = 2000", Log).size
    2000
    >>> decode("sise = 2000", Log, source="log.toml")
    Traceback (most recent call last):
    fieldfare.toml.TomlError: log.toml, line 1: there is no setting 'sise'; did you mean 'size'? (there are size, sync)
    >>> decode("sync = 'ful'", Log)
    Traceback (most recent call last):
    fieldfare.toml.TomlError: line 1: sync: 'ful' is not valid; did you mean 'full'? (choices: 'normal', 'full')
    """
    tree = parse(text, source=source)
    try:
        return convert(tree, kind, hook=hook)
    except TomlError as error:
        raise located(error, text, source) from None


def parse(text: str, *, source: str = "") -> dict[str, Any]:
    """Return the document as plain tables; for callers that change the tables before `convert`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, line, column = _syntax(str(error))
        raise TomlError(f"this is not TOML: {problem}{column}", line=line, source=source) from None


def convert(tree: Mapping[str, Any], kind: type[T], *, hook: Hook | None = None) -> T:
    """Return plain tables as a value of a type; the error has a place and no line: see `located`."""
    try:
        return msgspec.convert(tree, kind, dec_hook=hook)
    except msgspec.ValidationError as error:
        problem, path = _split(str(error))
        raise _explained(problem, _resolve(path, tree, kind, hook), tree, kind) from None


def located(error: TomlError, text: str, source: str = "") -> TomlError:
    """Return the same error with its source and line, from the text that the tables were parsed from."""
    return TomlError(error.problem, error.place, _line(text, error.steps), source, steps=error.steps)


def line_of(text: str, place: str) -> int | None:
    r"""Return the line of a setting, or of the table around it if the setting is missing; None if neither is there.

    >>> line_of("port = 1\n[[sink]]\nkind = 'lake'", "sink[0].kind")
    3
    """
    return _line(text, _steps(place))


def where(source: str, line: int | None) -> str:
    """Return a file and a line as one text: `node.toml, line 3`."""
    return ", ".join(part for part in (source, "" if line is None else f"line {line}") if part)


def similar(wrong: object, known: Iterable[object]) -> str:
    """Return "; did you mean 'port'?" for the most similar of some names, or "" if none is similar."""
    near = difflib.get_close_matches(str(wrong), [str(one) for one in known], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


# The words of a problem


def _explained(problem: str, steps: tuple[_Step, ...], tree: Mapping[str, Any], kind: Any) -> TomlError:
    """Return a problem of msgspec in the words of TOML, with a way out."""
    here, at = [*_kinds_at(steps, tree, kind)], steps
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
        problem, at = _unknown(unknown[1], here, kind), (*steps, unknown[1])
    elif missing := re.fullmatch(r"Object missing required field `(.*)`", problem):
        problem = f"the setting {missing[1]!r} is missing"
    elif wrong := re.fullmatch(r"Invalid (?:enum )?value (.*)", problem, re.DOTALL):
        problem = _invalid(wrong[1], _choices(steps, tree, kind))
    elif expected := re.fullmatch(r"Expected `([^`]+)`(.*?)(?:, got (.+))?", problem):
        problem = _expected(expected[1], expected[2], expected[3], steps, here)
    return TomlError(problem, _place(steps), steps=at)


def _unknown(name: str, here: list[Any], root: Any) -> str:
    known = [key for kind in here if _is_struct(kind) for key in _keys(kind)]
    elsewhere = [path for path in _paths(root) if path.rpartition(".")[2] == name]
    advice = f"; did you mean {elsewhere[0]!r}?" if elsewhere else similar(name, known)
    return f"there is no setting {name!r}{advice} (there are {', '.join(dict.fromkeys(known))})"


def _invalid(value: str, choices: list[object]) -> str:
    advice = similar(value.strip("'"), choices)
    return f"{value} is not valid{advice} (choices: {', '.join(map(repr, choices))})"


def _expected(kinds: str, bound: str, got: str | None, steps: tuple[_Step, ...], here: list[Any]) -> str:
    named = [kind for kind in kinds.split(" | ") if kind != "null"]  # TOML has no null
    problem = f"expected {' or '.join(_WORDS.get(kind, kind) for kind in named)}{bound}"
    if got is not None:
        problem += f", got {_WORDS.get(got.strip('`'), got.strip('`'))}"
    if any(isinstance(step, int) for step in steps) or not steps:
        return problem
    if got == "`object`" and any(_holds_tables(kind) for kind in here):
        return f"{problem}: write [[{_place(steps)}]]"
    if named == ["object"]:
        return f"{problem}: write [{_place(steps)}], and its settings below"
    return problem


def _syntax(message: str) -> tuple[str, int | None, str]:
    found = re.fullmatch(r"(.*) \(at line (\d+), (column \d+)\)", message, re.DOTALL)
    return (found[1], int(found[2]), f" ({found[3]})") if found else (message, None, "")


def _split(message: str) -> tuple[str, str]:
    problem, _, path = message.rpartition(" - at `")  # from the right: a wrong value may contain the same text
    return (problem, path.removesuffix("`")) if problem else (message, "$")


# Places


def _steps(place: str) -> tuple[_Step, ...]:
    found = re.findall(r"([^.\[\]]+)|\[(\d+)\]", place)
    return tuple(int(number) if number else key for key, number in found)


def _place(steps: Iterable[_Step]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _resolve(path: str, tree: Any, kind: Any, hook: Hook | None) -> tuple[_Step, ...]:
    """Return the steps of a path of msgspec, which names a value of a dict as `[...]` only: the first wrong one."""
    steps: tuple[_Step, ...] = ()
    for key, number, unnamed in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]|(\[\.\.\.\])", path):
        step: _Step | None = int(number) if number else key
        if unnamed:
            step = _first_wrong(_at(tree, steps), [*_kinds_at(steps, tree, kind)], hook)
        if step is None:
            return steps
        steps = (*steps, step)
    return steps


def _first_wrong(table: Any, here: list[Any], hook: Hook | None) -> str | None:
    values = [get_args(kind)[1] for kind in here if get_origin(kind) is dict]
    for key, value in table.items() if isinstance(table, Mapping) else ():
        for kind in values:
            try:
                msgspec.convert(value, kind, dec_hook=hook)
            except msgspec.ValidationError:
                return str(key)
    return None


def _at(tree: Any, steps: Iterable[_Step]) -> Any:
    """Return the value at a place; None if there is none."""
    for step in steps:
        if isinstance(step, int):
            tree = tree[step] if isinstance(tree, list | tuple) and step < len(tree) else None
        else:
            tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def _line(text: str, steps: tuple[_Step, ...]) -> int | None:
    """Return the line at which the statement begins that sets a place, or else the nearest table around it.

    tomllib tells no lines. But a beginning of the document, up to some line, is a document itself unless a value is
    cut in two; the shortest one that has the place ends with its statement. A bisection finds it.
    """
    lines = text.split("\n")

    def has(count: int) -> bool | None:
        """Tell whether the first lines have the place; None: they are no document."""
        try:
            return _at(tomllib.loads("\n".join(lines[:count])), steps) is not None
        except tomllib.TOMLDecodeError:
            return None

    while steps and not has(len(lines)):
        steps = steps[:-1]
    if not steps:
        return None
    without, with_it = 0, len(lines)
    while with_it - without > 1:
        middle = probe = (without + with_it) // 2
        while (found := has(probe)) is None and probe > max(without, middle - _BACKWARD):
            probe -= 1
        if found:
            with_it = probe
        else:
            without = middle  # a document up to `probe` lacks the place, and none ends between the two
    first = with_it
    while first > 1 and first > with_it - _BACKWARD and has(first - 1) is None:
        first -= 1
    return first


# Types


def _alternatives(kind: Any) -> list[Any]:
    """Return the types in a union, without annotations."""
    if get_origin(kind) is Annotated:
        return _alternatives(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [inner for one in get_args(kind) for inner in _alternatives(one)]
    return [kind]


def _kinds_at(steps: Iterable[_Step], tree: Any, kind: Any) -> Iterator[Any]:
    """Yield the types that a value may have at a place; of tagged structs only the one that the tag names."""
    kinds = _alternatives(kind)
    for step in steps:
        kinds = [inner for one in _named(kinds, tree) for inner in _inside(one, step)]
        tree = _at(tree, (step,))
    yield from _named(kinds, tree)


def _named(kinds: list[Any], value: Any) -> list[Any]:
    named = [
        kind
        for kind in kinds
        if _is_struct(kind)
        and isinstance(value, Mapping)
        and kind.__struct_config__.tag is not None
        and value.get(kind.__struct_config__.tag_field) == kind.__struct_config__.tag
    ]
    return named or kinds


def _inside(kind: Any, step: _Step) -> list[Any]:
    if _is_struct(kind):
        return [
            one
            for field in msgspec.structs.fields(kind)
            if field.encode_name == step
            for one in _alternatives(field.type)
        ]
    arguments = get_args(kind)
    if get_origin(kind) is dict:
        return _alternatives(arguments[1])
    if get_origin(kind) in (list, tuple) and isinstance(step, int):
        if get_origin(kind) is list or arguments[-1] is Ellipsis:
            return _alternatives(arguments[0])
        return _alternatives(arguments[step]) if step < len(arguments) else []
    return []


def _choices(steps: tuple[_Step, ...], tree: Any, kind: Any) -> list[object]:
    """Return the values that a `Literal` allows, or the tags of the structs around."""
    above = [one for one in _kinds_at(steps[:-1], tree, kind) if _is_struct(one)]
    tags = [one.__struct_config__.tag for one in above if steps and one.__struct_config__.tag_field == steps[-1]]
    here = _kinds_at(steps, tree, kind)
    return tags or [value for one in here if get_origin(one) is Literal for value in get_args(one)]


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _holds_tables(kind: Any) -> bool:
    inner = get_args(kind)[:1] if get_origin(kind) in (list, tuple) else ()
    return any(_is_struct(one) or get_origin(one) is dict for item in inner for one in _alternatives(item))


def _keys(kind: type[msgspec.Struct]) -> list[str]:
    tag = [kind.__struct_config__.tag_field] if kind.__struct_config__.tag_field else []
    return [*tag, *(field.encode_name for field in msgspec.structs.fields(kind))]


def _paths(kind: Any, above: str = "") -> Iterator[str]:
    """Yield the dotted paths of the settings in a type and in its tables, but not in arrays."""
    for struct in filter(_is_struct, _alternatives(kind)):
        for field in msgspec.structs.fields(struct):
            yield f"{above}{field.encode_name}"
            yield from _paths(field.type, f"{above}{field.encode_name}.")
