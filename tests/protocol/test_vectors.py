"""The test vectors that clients in other languages use are those of the code, and change only with the version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tools import protocol_vectors as pv

STORED: dict[str, list[pv.Vector]] = {
    name: json.loads((pv.FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in pv.FORMS
}
VECTORS = [
    pytest.param(name, vector, id=f"{name} {vector['form']} {vector['name']}")
    for name, vectors in STORED.items()
    for vector in vectors
]


@pytest.mark.parametrize(("name", "vector"), VECTORS)
def test_a_vector_is_decoded_to_its_meaning_and_encoded_from_it(name: str, vector: dict[str, Any]) -> None:
    form = pv.FORMS[name]
    assert vector.keys() - {"hex", "text"} == {"name", "version", "form", "meaning", "note"}
    built = form.build(vector["meaning"])
    assert vector["version"] == form.version
    if vector["form"] == "msgpack":
        assert pv.meaning_of(form.decode(bytes.fromhex(vector["hex"]))) == vector["meaning"]
        assert form.encode(built).hex() == vector["hex"]
    else:
        assert form.encode_text is not None
        assert form.decode_text is not None
        assert pv.meaning_of(form.decode_text(vector["text"])) == vector["meaning"]
        assert form.encode_text(built) == vector["text"]


@pytest.mark.parametrize("name", pv.FORMS)
def test_every_class_has_a_vector_with_a_name_of_its_own(name: str) -> None:
    form = pv.FORMS[name]
    assert {type(sample.value) for sample in form.samples} == set(form.classes)
    names = [(vector["form"], vector["name"]) for vector in STORED[name]]
    assert len(names) == len(set(names))


def test_the_files_are_those_of_the_code() -> None:
    pv.main(["--check"])


def test_a_vector_changes_only_with_its_version() -> None:
    known = json.loads(pv.DIGESTS.read_text(encoding="utf-8"))
    assert pv.changed(STORED, known) == []
    (first, *rest), *_ = STORED.values()
    other = {**STORED, "client-frames": [{**first, "hex": "80"}, *rest]}
    key = f"client-frames {first['version']} msgpack {first['name']}"
    assert pv.changed(other, known) == [key]
    assert pv.changed({**STORED, "client-frames": rest}, known) == [key]
    newer = [{**vector, "version": 99, "hex": "80", "text": ""} for vector in STORED["client-frames"]]
    assert pv.changed({**STORED, "client-frames": newer}, known) == []
