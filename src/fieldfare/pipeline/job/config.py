"""A pipeline as a TOML file: the source of events, their decoding and matching, and the sinks.

    name = "market"
    state = "market-state"              # checkpoint, subscriptions and reports; keep it

    [source]                            # log, node, files, mqtt or kafka, and its options
    kind = "log"
    path = "node-data"

    [normalise]
    fields = "symbol string, price double, volume long"

    [match]
    subscriptions = "subscriptions.parquet"     # or a catalogue, or a node: "http://127.0.0.1:7400"

    [[sink]]                            # lake, subscribers, parquet, node, webhooks or package.module:make, and options
    kind = "lake"
    of = "deliveries"                   # or events, quarantine, late, composites
    path = "deliveries"

    [patterns.fraud]                    # composite events; see docs/reference/patterns.md
    text = "small: [amount < 10] large: [amount > 500] ... for each card"

A file is read without Spark. An error names the place in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from fieldfare import toml
from fieldfare.patterns import parse_pattern
from fieldfare.patterns.bounds import Bounds, check
from fieldfare.pipeline.options import OptionError
from fieldfare.pipeline.sinks import check_kind
from fieldfare.pipeline.sinks.interface import Scalar, SinkSettings
from fieldfare.toml import TomlError

SourceKind = Literal["log", "node", "files", "mqtt", "kafka"]
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "log": ("path",),
    "files": ("path",),
    "kafka": ("servers", "topic"),
}


class PipelineError(ValueError):
    """An error in a pipeline, with the place in its file."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Source(_Part, frozen=True):
    """The source of the events; the options depend on the kind."""

    kind: SourceKind
    options: dict[str, Scalar] = {}


class Normalise(_Part, frozen=True):
    """The decoding of records to events; see `normalise`."""

    fields: str | None = None
    """the declared fields as DDL; by default inferred from the events at the first start, and kept"""
    id: str | None = None
    source: str | None = None
    sequence: str | None = None
    time: str | None = None
    type: str | None = None
    require: list[str] = []
    unknown: Literal["keep", "quarantine", "drop"] = "keep"
    duplicates: str | None = None
    """the time for which copies of an event are recognised and dropped: `1 hour`"""
    late: str | None = None
    """the delay after which an event goes to the table `late` instead: `1 hour`"""


class Match(_Part, frozen=True):
    """The subscriptions that events are matched with."""

    subscriptions: str | list[str]
    """a file of subscriptions, a catalogue, or the HTTP addresses of nodes with live subscriptions"""
    dialect: Literal["native", "cesql", "cloudevents", "ruler", "sigma"] = "native"
    mode: Literal["overlap", "cover"] = "overlap"
    """whether an interval must overlap the filter's values or be covered by them; no difference for single values"""
    refresh: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    """seconds between two checks of the subscriptions of nodes, or of the file"""
    token: str = ""
    """a token, for a node with security"""


class PatternSettings(_Part, frozen=True):
    """A pattern of `[patterns.NAME]`."""

    text: str


class Detect(_Part, frozen=True):
    """The detection of patterns; see `detect`."""

    by: list[str] = []
    """fields added to the key of every pattern"""
    delay: str = ""
    """how late events may come: `10 seconds`; by default the longest `allow ... of disorder`"""


class Report(_Part, frozen=True):
    """The receivers of reports: a node's dashboard, and Prometheus."""

    node: str = ""
    """the HTTP address of a node: its dashboard shows the pipeline"""
    token: str = ""
    metrics: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """the port on which Prometheus reads metrics; 0 for none"""
    statistics: bool = True
    """whether to count the values of the fields, for the dashboard"""


class Pipeline(_Part, frozen=True):
    """All settings of a pipeline."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[\w.-]+$")]
    state: str
    """the folder of subscriptions, reports and Spark's log, and of the checkpoint if nothing else is said"""
    source: Source
    sink: list[SinkSettings]
    normalise: Normalise = Normalise()
    match: Match | None = None
    patterns: dict[str, PatternSettings] = {}
    detect: Detect = Detect()
    report: Report = Report()
    spark: dict[str, str] = {}
    """settings of Spark; `master` is the address of the cluster"""
    checkpoint: str = ""
    """the place of Spark's checkpoint if not in the state: a folder, or a URL such as `s3://bucket/market/checkpoint`"""
    every: str = ""
    """the time between two micro-batches, such as `5 seconds`; by default a batch begins as soon as there are events"""


def read(path: str | Path) -> Pipeline:
    """Read the pipeline in a file; relative paths are relative to the file."""
    file = Path(path)
    try:
        found = parse(file.read_text(encoding="utf-8"), source=str(path))
    except UnicodeDecodeError as error:
        raise PipelineError(f"{path}: not UTF-8: {error.reason}") from None
    return _relative(found, file.absolute().parent)


def parse(text: str, *, source: str = "") -> Pipeline:
    """Read the pipeline in a text; relative paths stay relative.

    >>> parse('name = "a"')
    Traceback (most recent call last):
        ...
    fieldfare.pipeline.job.config.PipelineError: the setting 'state' is missing
    """
    try:
        return _checked(toml.parse(text, source=source))
    except TomlError as error:
        raise PipelineError(str(toml.located(error, text, source) if error.line is None else error)) from None


def _checked(tree: dict[str, Any]) -> Pipeline:
    if isinstance(source := tree.get("source"), dict):
        tree["source"] = _stage(source, {"kind"})
    if isinstance(sinks := tree.get("sink"), list):
        tree["sink"] = [_stage(sink, {"kind", "of"}) if isinstance(sink, dict) else sink for sink in sinks]
    if isinstance(spark := tree.get("spark"), dict):
        tree["spark"] = {key: _text(value) for key, value in _flat(spark)}
    try:
        found = toml.convert(tree, Pipeline)
    except TomlError as error:
        steps = tuple(step for step in error.steps if step != "options")  # which `_stage` added
        raise TomlError(error.problem, error.place.replace(".options", ""), steps=steps) from None
    _check(found)
    return found


def _stage(table: dict[str, Any], own: set[str]) -> dict[str, Any]:
    """Separate the options of a source or sink from its own keys, which stand beside them in the file."""
    options = {key: value for key, value in table.items() if key not in own}
    return {**{key: value for key, value in table.items() if key in own}, "options": options}


def _flat(tree: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Return dotted keys of TOML, which are nested tables, as flat pairs of key and value."""
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        found += _flat(value, f"{above}{key}.") if isinstance(value, dict) else [(f"{above}{key}", value)]
    return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(found: Pipeline) -> None:
    """Raise a TomlError for the first rule broken that the types cannot express."""
    if not found.sink:
        raise TomlError("a pipeline needs at least one [[sink]]")
    for needed in _NEEDED.get(found.source.kind, ()):
        if needed not in found.source.options:
            raise TomlError(f"a {found.source.kind} needs the setting {needed!r}", "source")
    if found.match is not None and isinstance(found.match.subscriptions, list):
        for one in found.match.subscriptions:
            if not one.startswith(("http://", "https://")):
                raise TomlError(
                    f"a list is of nodes, such as http://127.0.0.1:7400, not {one!r}", "match.subscriptions"
                )
    for number, sink in enumerate(found.sink):
        try:
            check_kind(sink.kind)
        except OptionError as error:
            raise TomlError(error, f"sink[{number}].kind") from None
        if sink.table == "deliveries" and found.match is None:
            raise TomlError("there are no deliveries without [match]; say of = 'events'", f"sink[{number}]")
        if sink.table == "late" and found.normalise.late is None:
            raise TomlError("nothing is late unless normalise.late says after how long", f"sink[{number}]")
    _check_patterns(found)
    if found.checkpoint and found.patterns:
        raise TomlError("a pipeline with patterns keeps its checkpoints in the state", "checkpoint")
    paths = [sink.options["path"] for sink in found.sink if "path" in sink.options]
    for path in paths:
        if paths.count(path) > 1:
            raise TomlError(f"two sinks have the same path: {path}")


def _check_patterns(found: Pipeline) -> None:
    wanted = [number for number, sink in enumerate(found.sink) if sink.table == "composites"]
    if wanted and not found.patterns:
        raise TomlError("there are no composites without [patterns.NAME]", f"sink[{wanted[0]}]")
    if not found.patterns:
        return
    if not wanted:
        raise TomlError("nobody gets the composite events: a [[sink]] says of = 'composites'", "patterns")
    if found.normalise.duplicates is not None:
        problem = "with patterns, copies must be dropped before: two watermarks would delay each other"
        raise TomlError(problem, "normalise.duplicates")
    for name, one in found.patterns.items():
        try:
            check(parse_pattern(one.text), Bounds())
        except ValueError as error:
            raise TomlError(error, f"patterns.{name}.text") from None


def sink_name(sink: SinkSettings) -> str:
    """Return the name of a sink in messages: its kind, table and place."""
    where = next((str(sink.options[key]) for key in ("path", "url") if key in sink.options), "")
    return f"{sink.kind} of {sink.table}{f' at {where}' if where else ''}"


def _relative(found: Pipeline, folder: Path) -> Pipeline:
    """Return the pipeline with absolute paths, so that the working directory does not matter."""

    def placed(path: str) -> str:
        return path if "://" in path or path.startswith(("{", "[")) else str(folder / path)

    def stage(options: dict[str, Scalar]) -> dict[str, Scalar]:
        paths = {key: placed(value) for key, value in options.items() if key in _PATHS and isinstance(value, str)}
        return {**options, **paths}

    match = found.match
    if match is not None and isinstance(match.subscriptions, str):
        match = msgspec.structs.replace(match, subscriptions=placed(match.subscriptions))
    return msgspec.structs.replace(
        found,
        state=placed(found.state),
        checkpoint=placed(found.checkpoint) if found.checkpoint else "",
        source=msgspec.structs.replace(found.source, options=stage(found.source.options)),
        match=match,
        sink=[msgspec.structs.replace(sink, options=stage(sink.options)) for sink in found.sink],
    )


_PATHS: Final = frozenset({"path", "dead_letters", "folder", "schema"})
