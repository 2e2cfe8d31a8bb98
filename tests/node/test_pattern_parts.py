"""Parts of patterns at running nodes: the settings, and a part at the node of the publisher."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.node.talking import line, settings, talking, until

from fieldfare.core.inputs import Maintain
from fieldfare.core.pattern_inputs import SettlePatterns
from fieldfare.events.event import Event
from fieldfare.node.config import ConfigError, load
from fieldfare.node.config.patterns import placements_of

TEXT = "a: [x = 1] b: [x = 2] c: [x = 3] (a followed by b followed by c) within 1 hour"


def test_a_part_is_detected_where_its_events_are_published() -> None:
    async def test() -> None:
        async with line(settings("a"), settings("b")) as (a, b), talking(a, "ana") as ana, talking(b, "bob") as bob:
            await bob.subscribe("s", "pattern = 'story'")
            await until(b.node.core.envelopes.reached)
            await b.node.submit(SettlePatterns({"story": TEXT}, {"story": "bandwidth"}))
            await until(lambda: a.node.core.patterns.parts.metering)
            await ana.publish(1, *({"x": x} for x in (1, 2, 3)))
            for one in (b, a):
                await one.node.submit(Maintain(1e9))
            await until(lambda: a.node.core.patterns.known and b.node.core.patterns.known)
            await until(lambda: a.node.core.links["b"].filters)
            await ana.publish(4, *({"x": x} for x in (1, 2, 3)))
            (event,) = await bob.events(1)
            assert Event(event)["constituents.event.x"] == (1, 2, 3)
            assert (event["detector"], event["pattern"]) == ("b", "story")
            await b.node.submit(SettlePatterns({}))
            await until(lambda: not a.node.core.patterns.known)

    asyncio.run(test())


def test_settings_name_a_policy(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text(f'[patterns.story]\ntext = "{TEXT}"\nplacement = "load"\n[patterns.other]\ntext = "{TEXT}"\n')
    assert placements_of(load(file, {}, {})) == {"story": "load"}
    file.write_text(f'[patterns.story]\ntext = "{TEXT}"\nplacement = "reliability"\n')
    with pytest.raises(ConfigError, match="placement"):
        load(file, {}, {})
