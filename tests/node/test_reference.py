"""The reference has all there is: every setting with its default, every metric, route and frame."""

from __future__ import annotations

import asyncio
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.node.http.helpers import api

from fieldfare.node.config import Config, Secret
from fieldfare.node.config.settings import SECTIONS
from fieldfare.node.config.sources import KINDS as SETTABLE
from fieldfare.node.config.sources import measured
from fieldfare.node.http import openapi
from fieldfare.protocol import frames as f
from fieldfare.protocol import link_frames
from fieldfare.protocol.codec import JSON_CODEC

PAGES = Path(__file__).parents[2] / "docs" / "reference"
NODE, HTTP, PROTOCOL = ((PAGES / f"{name}.md").read_text("utf-8") for name in ("node", "http", "protocol"))
SETTINGS = dict(re.findall(r"^\| `([a-z_.]+)` \| `([^`]+)` \|", NODE.partition("## The folder")[0], re.MULTILINE))
KINDS = {kind.__name__: kind for kind in (*get_args(f.FromClient), *get_args(f.FromNode))}


def settings() -> dict[str, object]:
    """All settings that have a default and can be written as TOML."""
    sections: dict[str, Any] = {"": Config, **SECTIONS}
    return {
        f"{section}.{key}".lstrip("."): getattr(part(), key)
        for section, part in sections.items()
        for key in part.__struct_fields__
        if f"{section}.{key}".lstrip(".") in SETTABLE
    }


@pytest.mark.parametrize("key", settings())
def test_every_setting_is_there_with_its_default(key: str) -> None:
    default = settings()[key]
    written = tomllib.loads(f"x = {SETTINGS[key]}")["x"]
    if isinstance(default, Secret):
        default = default.reveal()
    elif isinstance(default, tuple):
        default = list(default)
    assert measured(key, written) == default


def test_no_setting_is_there_that_is_none() -> None:
    assert not SETTINGS.keys() - settings().keys()


def test_every_metric_is_there() -> None:
    async def shown() -> str:
        async with api(strategy="prefix") as (_, client):
            return str((await client.get("/metrics")).text)

    names = set(re.findall(r"^# TYPE (fieldfare_\w+) ", asyncio.run(shown()), re.MULTILINE))
    found = {re.sub(r"_(total|info|created)$", "", name) for name in names}
    assert found == set(re.findall(r"`(fieldfare_\w+)`", NODE))


@pytest.mark.parametrize("path", openapi.PATHS)
def test_every_route_is_there(path: str) -> None:
    methods = [method.upper() for method in openapi.PATHS[path]]
    listed = re.search(rf"^\| `{re.escape(path)}` \| ([A-Z, ]+) \|", HTTP, re.MULTILINE)
    if listed is not None:
        assert set(listed[1].split(", ")) == set(methods)
    else:
        assert all(f"`{method} {path}`" in HTTP for method in methods)


@pytest.mark.parametrize("path", openapi.PATHS)
def test_every_parameter_is_there(path: str) -> None:
    for operation in openapi.PATHS[path].values():
        for parameter in operation.parameters:
            if parameter["in"] != "path" and parameter["name"] != "key":
                assert f"`{parameter['name']}`" in HTTP


def examples() -> list[str]:
    found = re.findall(r"^```json\n(.*?)^```$", PROTOCOL, re.MULTILINE | re.DOTALL)
    return [line for block in found for line in block.splitlines()]


def test_every_frame_is_there() -> None:
    shown = set()
    for line in examples():
        kind = re.match(r'\{"is": "(\w+)"', line)
        assert kind is not None
        read = JSON_CODEC.from_client if KINDS[kind[1]] in get_args(f.FromClient) else JSON_CODEC.from_node
        assert type(read(line)).__name__ == kind[1]
        shown.add(kind[1])
    assert shown == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_member_of_a_frame_is_there(kind: type[f.Frame]) -> None:
    mine = "".join(line for line in examples() if f'"is": "{kind.__name__}"' in line)
    assert [name for name in kind.__struct_fields__ if f'"{name}"' not in mine] == []


@pytest.mark.parametrize("kind", get_args(link_frames.AnyLinkFrame), ids=lambda kind: kind.__name__)
def test_every_frame_of_a_link_is_there(kind: type[link_frames.LinkFrame]) -> None:
    assert f"`{kind.__name__}({', '.join(kind.__struct_fields__)})`" in PROTOCOL
