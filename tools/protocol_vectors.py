"""Test vectors of all wire forms, as JSON, for clients in other languages: docs/reference/vectors/.

    python -m tools.protocol_vectors            # write the files
    python -m tools.protocol_vectors --check    # only compare

`digests.json` remembers each vector of each version. A vector whose bytes change needs a higher version of its form:
the tool refuses to write otherwise. (Before a version is released, delete its digests by hand to change a vector.)
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import msgspec

from fieldfare.events import json as event_json
from fieldfare.events import msgpack as event_msgpack
from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol import channels, frames, handover, journal, link_frames, patterns, versions, wire
from fieldfare.protocol.codec import JSON_CODEC, MSGPACK_CODEC
from tools import protocol_samples as samples

FOLDER: Final = Path(__file__).parents[1] / "docs" / "reference" / "vectors"
DIGESTS: Final = FOLDER / "digests.json"
Vector = dict[str, Any]


class Form(NamedTuple):
    """A wire form: its samples, and how to write and read a value."""

    samples: Sequence[samples.Sample]
    classes: tuple[type, ...]
    """All classes of the form; each needs a vector."""
    version: int
    encode: Callable[[Any], bytes]
    """Writes a value as bytes."""
    decode: Callable[[bytes], Any]
    build: Callable[[Any], Any]
    """Makes a value from its meaning."""
    encode_text: Callable[[Any], str] | None = None
    """Writes a value as JSON text, if the form has one."""
    decode_text: Callable[[str], Any] | None = None


def meaning_of(value: object) -> Any:
    """Return a value as plain JSON, with all fields.

    Bytes are Base64, filters their text, events as in `fieldfare.events.json`. A form whose fields are told by their
    order is a list.
    """
    match value:
        case msgspec.Raw():
            return json.loads(bytes(value))
        case msgspec.Struct():
            info = value.__struct_config__
            fields = {name: meaning_of(getattr(value, name)) for name in value.__struct_fields__}
            if info.array_like:
                return list(fields.values())
            return {"is": info.tag, **fields}
        case Event():
            return json.loads(event_json.encode(value))
        case NamedFilter():
            return [value.name, str(value)]
        case Filter():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Enum():
            return value.value
        case dict():
            return {key: meaning_of(item) for key, item in value.items()}
        case list() | tuple():
            return [meaning_of(item) for item in value]
    return value


def _from_plain(type: type, value: Any) -> object:
    if type is Event:
        return event_json.decode(json.dumps(value).encode())
    return wire.from_wire(type, value)


def _canonical(value: Any) -> Any:
    """Return a value whose defaults are the objects of its class: msgspec leaves a default out by its identity."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_canonical, value))
    if not isinstance(value, msgspec.Struct):
        return value
    fields = {field.name: field.default for field in msgspec.structs.fields(type(value))}
    given = {name: getattr(value, name) for name in fields}
    same = {name: default for name, default in fields.items() if given[name] == default}
    return type(value)(**{name: _canonical(item) for name, item in given.items()} | same)


def _builder(kind: Any) -> Callable[[Any], Any]:
    return lambda meaning: _canonical(msgspec.convert(meaning, kind, dec_hook=_from_plain))


def _transcoded(frame: Any, change: Callable[[bytes], bytes]) -> Any:
    """Return a client frame with its events in another form."""
    match frame:
        case frames.SetParameters(values=values):
            return msgspec.structs.replace(frame, values=msgspec.Raw(change(bytes(values))))
        case frames.Publish(events=events):
            return msgspec.structs.replace(frame, events=[msgspec.Raw(change(bytes(event))) for event in events])
        case frames.Deliveries(items=items):
            replace = msgspec.structs.replace
            return replace(frame, items=[replace(item, event=msgspec.Raw(change(bytes(item.event)))) for item in items])
    return frame


def _encode_frame(frame: Any) -> bytes:
    return MSGPACK_CODEC.encode(_transcoded(frame, lambda raw: event_msgpack.encode(event_json.decode(raw))))


def _decode_frame(data: bytes) -> Any:
    read = msgspec.msgpack.Decoder(frames.FromClient | frames.FromNode).decode
    return _transcoded(read(data), lambda raw: event_json.encode(event_msgpack.decode(raw)))


def _decode_frame_text(text: str) -> Any:
    return msgspec.json.Decoder(frames.FromClient | frames.FromNode).decode(text)


FORMS: Final = {
    "client-frames": Form(
        samples.CLIENT_FRAMES,
        (*get_args(frames.FromClient), *get_args(frames.FromNode)),
        versions.NEWEST,
        _encode_frame,
        _decode_frame,
        lambda meaning: _canonical(_decode_frame_text(msgspec.json.encode(meaning).decode())),
        JSON_CODEC.encode,
        _decode_frame_text,
    ),
    "link-frames": Form(
        samples.LINK_FRAMES,
        get_args(link_frames.AnyLinkFrame),
        versions.NEWEST,
        link_frames.encode,
        link_frames.decode,
        _builder(link_frames.AnyLinkFrame),
    ),
    "link-messages": Form(
        samples.LINK_MESSAGES,
        get_args(wire.AnyMessage),
        versions.NEWEST,
        wire.encode,
        wire.decode,
        _builder(wire.AnyMessage),
    ),
    "handover": Form(
        samples.HANDOVER,
        get_args(handover.AnyHandoverMessage),
        versions.NEWEST,
        handover.encode,
        handover.decode,
        _builder(handover.AnyHandoverMessage),
    ),
    "channels": Form(
        samples.CHANNELS,
        get_args(channels.AnyChannelMessage),
        versions.NEWEST,
        channels.encode,
        channels.decode,
        _builder(channels.AnyChannelMessage),
    ),
    "patterns": Form(
        samples.PATTERNS,
        get_args(patterns.AnyPatternMessage),
        versions.NEWEST,
        patterns.encode,
        patterns.decode,
        _builder(patterns.AnyPatternMessage),
    ),
    "journal": Form(
        samples.JOURNAL,
        (journal.EntryDetails,),
        journal.VERSION,
        journal.encode_details,
        msgspec.msgpack.Decoder(journal.EntryDetails).decode,
        _builder(journal.EntryDetails),
    ),
}


def vectors_of(form: Form) -> Iterator[Vector]:
    """Yield the vectors of a form: each sample as MessagePack, and as JSON text if the form has one."""
    for value, note, variant in form.samples:
        name = f"{type(value).__name__}, {variant}" if variant else type(value).__name__
        vector = {"name": name, "version": form.version, "form": "msgpack", "hex": form.encode(value).hex()}
        yield {**vector, "meaning": meaning_of(value), "note": note}
    if form.encode_text is not None:
        for value, note, variant in form.samples:
            name = f"{type(value).__name__}, {variant}" if variant else type(value).__name__
            vector = {"name": name, "version": form.version, "form": "json", "text": form.encode_text(value)}
            yield {**vector, "meaning": meaning_of(value), "note": note}


def digest_of(vector: Vector) -> str:
    """Return a short digest of the bytes of a vector."""
    written = bytes.fromhex(vector["hex"]) if vector["form"] == "msgpack" else vector["text"].encode()
    return hashlib.sha256(written).hexdigest()[:16]


def digests_of(made: dict[str, list[Vector]]) -> dict[str, str]:
    """Return the digests of all vectors, by form, version, encoding and name."""
    return {
        f"{form} {vector['version']} {vector['form']} {vector['name']}": digest_of(vector)
        for form, vectors in made.items()
        for vector in vectors
    }


def changed(made: dict[str, list[Vector]], known: dict[str, str]) -> list[str]:
    """Return the vectors whose bytes have changed, or that are gone, though their form has the same version."""
    present = digests_of(made)
    versions = {" ".join(key.split(" ", 2)[:2]) for key in present}
    same = {key: digest for key, digest in known.items() if " ".join(key.split(" ", 2)[:2]) in versions}
    return sorted(key for key, digest in same.items() if present.get(key) != digest)


def written(vectors: object) -> str:
    """Return a JSON file of vectors or digests, with a line for each."""
    items = vectors.items() if isinstance(vectors, dict) else [(None, vector) for vector in vectors]  # type: ignore[attr-defined]
    lines = [
        ("" if key is None else json.dumps(key, ensure_ascii=False) + ": ") + json.dumps(item, ensure_ascii=False)
        for key, item in items
    ]
    opening, closing = ("{", "}") if isinstance(vectors, dict) else ("[", "]")
    return f"{opening}\n  " + ",\n  ".join(lines) + f"\n{closing}\n"


def files() -> dict[Path, str]:
    """Return all files as they should be; SystemExit if a vector changed without its version."""
    made = {name: list(vectors_of(form)) for name, form in FORMS.items()}
    known: dict[str, str] = json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.exists() else {}
    if problems := changed(made, known):
        raise SystemExit("raise the VERSION of the form, or keep these vectors as they were:\n" + "\n".join(problems))
    return {
        **{FOLDER / f"{name}.json": written(vectors) for name, vectors in made.items()},
        DIGESTS: written({**known, **digests_of(made)}),
    }


def main(arguments: Sequence[str]) -> None:
    """Write or compare the files."""
    differing = [path for path, text in files().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        if differing:
            raise SystemExit("run python -m tools.protocol_vectors: " + ", ".join(path.name for path in differing))
        return
    FOLDER.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
