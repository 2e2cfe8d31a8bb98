"""`ChannelHomes`: the home of each channel, as this node knows it.

At first the home is the node that the settings name. A channel that moves gets a later home: each move from neighbour
to neighbour raises the *epoch* by one, and the home with the highest epoch is valid. A node that learns of a later home
tells all its other neighbours; and both ends of a link tell each other, whenever the link begins or goes on, in case
one of them has forgotten or was of an earlier version.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fieldfare.core.base import Base
from fieldfare.core.channel_map import ChannelMap
from fieldfare.core.domains import is_foreign
from fieldfare.core.state_rows import filled
from fieldfare.core.watchers import LinkWatcher
from fieldfare.protocol import channels as c
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import Row, StoredRows

ADVERTISER: Final = "~channels"
"""Client of the broker that advertises the events of channels, so that subscriptions find the home."""

logger = logging.getLogger("fieldfare.node")


class Home(msgspec.Struct, frozen=True, array_like=True):
    """The home of a channel, and the part of this node in a move."""

    node: str
    epoch: int = 0
    """How often the channel has gone from a neighbour to the next; 0: the home of the settings."""
    target: str = ""
    """At the home: the node to which the channel goes on."""
    source: str = ""
    """At the home: the former home, which may still send back events from here; until then all events are held."""
    leaving: bool = False
    """At the former home: the next home does not advertise the events yet, so this node goes on to do so."""


class ChannelHomes(LinkWatcher):
    """The homes of all channels, by type."""

    def __init__(self, base: Base, channels: ChannelMap) -> None:
        """Begin with the homes of a map, as the settings say."""
        self._base = base
        self._settings = dict(channels.homes)
        self.map = channels
        self._moved: dict[str, Home] = {}
        """By type: all that differs from the settings."""
        self.joined: dict[str, str] = {}
        """By type: the home that has answered."""
        self.closed: dict[str, str] = {}
        """By type: reason of a home that does not know the channel."""

    def of(self, type: str) -> Home:
        """Return the home of a channel, which has no node if the type has no channel."""
        return self._moved.get(type) or Home(self._settings.get(type, ""))

    def here(self, type: str) -> bool:
        """Tell whether this node is the home of a channel."""
        return self.of(type).node == self._base.name

    @property
    def moving(self) -> list[str]:
        """The types of channels at home here that are to go on."""
        return [type for type, home in self._moved.items() if home.target and self.here(type)]

    @property
    def busy(self) -> list[str]:
        """The types of channels on the move, in which this node has a part."""
        return [
            type for type, one in self._moved.items() if one.source or one.leaving or (one.target and self.here(type))
        ]

    @property
    def types(self) -> list[str]:
        """The types of the settings."""
        return list(self._settings)

    @property
    def any_moved(self) -> bool:
        """Tell whether any channel has, or may get, another home than the settings say."""
        return bool(self._moved)

    @property
    def waiting(self) -> list[str]:
        """The types whose homes have not answered yet: such events are refused."""
        return [type for type in self._settings if not self._is_open(type)]

    def _is_open(self, type: str) -> bool:
        home = self.of(type)
        return home.epoch > 0 or home.node in (self._base.name, self.joined.get(type))

    def join(self, type: str) -> None:
        """Note that the home of a channel has answered."""
        self.joined[type] = home = self.of(type).node
        self._base.buffer.store(Row("joined", (type,), home))

    def close(self, answer: c.ChannelClosed) -> None:
        """Note why a channel is closed; `Channels.ask_again` asks once more."""
        logger.error("the channel of %s is not at %s: %s", answer.type, self.of(answer.type).node, answer.reason)
        self.closed[answer.type] = answer.reason

    def set(self, type: str, home: Home) -> None:
        """Note the home of a channel, durably."""
        self._moved[type] = home
        self._base.buffer.store(Row("home", (type,), msgspec.to_builtins(home)))

    # Advertisements

    def begin(self, now: float) -> None:
        """Advertise the events of the channels at home here, after a start."""
        for type in dict.fromkeys((*self._settings, *self._moved)):
            if self.here(type) or self.of(type).leaving:
                self.advertise(type, now)

    def advertise(self, type: str, now: float) -> None:
        """Let subscriptions come to this node."""
        self._announce(m.Advertise(type, self.map.filter_of(type)), now)

    def unadvertise(self, type: str, now: float) -> None:
        """Let subscriptions go to the next home alone."""
        self._announce(m.Unadvertise(type), now)

    def _announce(self, message: m.Message, now: float) -> None:
        broker = self._base.broker
        if broker.strategy.advertisements is not None:
            self._base.links.send_all(broker.receive(message, ADVERTISER, now))

    # Neighbours

    def tell(self, type: str, *, but: str) -> None:
        """Tell all neighbours but one of a home."""
        for neighbour in self._base.links:
            if neighbour != but and not is_foreign(neighbour):
                self._tell(neighbour, type)

    def link_begun(self, neighbour: str) -> None:
        """Tell a neighbour, which may have forgotten, of all channels that have moved."""
        for type, home in self._moved.items():
            if home.epoch and not is_foreign(neighbour):
                self._tell(neighbour, type)

    link_resumed = link_begun

    def _tell(self, neighbour: str, type: str) -> None:
        home = self.of(type)
        self._base.envelopes.send(neighbour, c.ChannelHome(type, home.node, home.epoch))

    # Rows and recovery

    def restore(self, stored: StoredRows) -> None:
        """Read the homes of moved channels, and warn of settings that name a former home."""
        self.joined = {str(type): home for (type,), home in stored.get("joined", {}).items()}
        for (type,), row in stored.get("home", {}).items():
            self._moved[str(type)] = _home_of_row(row)
        for type, home in self._differing():
            if type in self._settings:
                named = self._settings[type]
                logger.warning("the channel of %s has moved to %s; the settings still say %s", type, home.node, named)

    def _differing(self) -> Iterator[tuple[str, Home]]:
        for type, home in self._moved.items():
            if home.epoch and self._settings.get(type, "") != home.node:
                yield type, home


def _home_of_row(row: list[Any]) -> Home:
    return Home(*filled(row, "", 0, "", "", False))
