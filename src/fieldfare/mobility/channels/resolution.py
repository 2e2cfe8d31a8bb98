"""`ResolutionServer`: a host of channels, which also knows the places of its channels and sessions.

A channel is at first at its home. On relocation, its state goes to the new server, and later messages to the old server
follow, behind the state. The new server informs the home; a message to a wrong server is corrected. No channel can get
lost: the old server points to the next, and the home to a server that is at least as late.

The home of a session's name numbers its visits at access servers. So the moves of a session have a single order,
however fast they are.
"""

from __future__ import annotations

import msgspec

from fieldfare.mobility.channels.channel import Channel
from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.messages import (
    BalanceLoad,
    ChannelMoved,
    ChannelRedirect,
    ChannelRequest,
    ChannelTransfer,
    ClockReply,
    ClockRequest,
    LoadReply,
    LoadRequest,
    Matrix,
    RelocateChannel,
    SessionCall,
    SessionCallReply,
    SessionEnd,
    SessionEndReply,
    copied,
    join,
)
from fieldfare.protocol import wire
from fieldfare.protocol.messages import Message, Send


class ResolutionServer:
    """A server that hosts channels, and tells clients where their sessions are."""

    wakes: float | None = None

    def __init__(self, name: str, domain: Domain) -> None:
        """Make a server without channels: a channel is made by its first message."""
        self.name = name
        self.domain = domain
        self.channels: dict[str, Channel] = {}
        self.clock = 0
        self.relocations = 0
        """number of channels given away"""
        self._pointers: dict[str, tuple[int, str]] = {}
        """servers of channels that are elsewhere, with their numbers of moves"""
        self._visits: dict[str, tuple[int, str]] = {}
        """the last visit of each session, and its server"""
        self._context: Matrix = {}
        """context of ended sessions"""
        self._loads: dict[str, float] = {}
        """loads of the others, as far as known"""

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message and return the messages to send."""
        match message:
            case ChannelRequest(channel=channel):
                if not self._hosts(channel):
                    to = self._whereabouts(channel)
                    return [Send(to, message), Send(message.server, ChannelRedirect(channel, to))]
                self.clock = max(self.clock, message.clock)
                self.channels[channel].cool(now, self.domain.half)
                return self.channels[channel].accept(message, self.clock, self._stamp)
            case ClockRequest(clock=clock):
                self.clock = max(self.clock, clock)
                return [Send(sender, ClockReply(self.clock))]
            case RelocateChannel(channel=channel, to=to):
                if not self._hosts(channel):
                    return [Send(self._whereabouts(channel), message)]
                return self._give(channel, to)
            case ChannelTransfer(channel=channel, state=state, clock=clock):
                self.clock = max(self.clock, clock)
                self.channels[channel] = Channel(channel, self.domain.log, state)
                self._pointers.pop(channel, None)
                home = self.domain.home(channel)
                return [Send(home, ChannelMoved(channel, state.moves))] if home != self.name else []
            case ChannelMoved(channel=channel, moves=moves):
                if channel not in self.channels and moves > self._pointers.get(channel, (0, ""))[0]:
                    self._pointers[channel] = moves, sender
                return []
            case SessionCall(server=server):
                return [Send(server, self._come(message))]
            case SessionEnd(session=session, visit=visit, context=context):
                if self._visits.get(session, (0, ""))[0] != visit:
                    return []  # the session has been called elsewhere
                del self._visits[session]
                join(self._context, context)
                return [Send(sender, SessionEndReply(session, visit))]
            case BalanceLoad() | LoadRequest() | LoadReply():
                return self._balance(message, sender, now)
        return []

    def tick(self, now: float) -> list[Send]:
        """Return nothing: a server has no timers."""
        return []

    def snapshot(self) -> bytes:
        """Return the channels and pointers, encoded."""
        states = {name: channel.state for name, channel in self.channels.items()}
        return msgspec.msgpack.encode((states, self._pointers, self._visits, self.clock), enc_hook=wire.to_wire)

    # Channels

    def _stamp(self) -> int:
        self.clock = self.domain.stamp_after(self.clock, self.name)
        return self.clock

    def _hosts(self, channel: str) -> bool:
        if channel not in self.channels and channel not in self._pointers and self.domain.home(channel) == self.name:
            self.channels[channel] = Channel(channel, self.domain.log)
        return channel in self.channels

    def _whereabouts(self, channel: str) -> str:
        pointer = self._pointers.get(channel)
        return self.domain.home(channel) if pointer is None else pointer[1]

    def _give(self, channel: str, to: str) -> list[Send]:
        if to == self.name or to not in self.domain.servers:
            return []
        state = self.channels.pop(channel).state
        state.moves += 1
        self.relocations += 1
        self._pointers[channel] = state.moves, to
        return [Send(to, ChannelTransfer(channel, state, self.clock))]

    # Sessions

    def _come(self, come: SessionCall) -> SessionCallReply:
        visit, source = self._visits.get(come.session, (0, ""))
        self._visits[come.session] = visit + 1, come.server
        return SessionCallReply(come.session, come.call, visit + 1, source, {} if source else copied(self._context))

    # Load

    def _balance(self, message: Message, sender: str, now: float) -> list[Send]:
        """Give a channel to the least loaded server, if that makes the two loads more even."""
        others = [server for server in self.domain.servers if server != self.name]
        mine = {name: channel.cool(now, self.domain.half) for name, channel in self.channels.items()}
        match message:
            case LoadRequest():
                return [Send(sender, LoadReply(sum(mine.values())))]
            case LoadReply(load=load):
                self._loads[sender] = load
                if len(self._loads) < len(others):
                    return []
                idlest = min(others, key=lambda server: (self._loads[server], server))
                channel = best_to_give(mine, sum(mine.values()) - self._loads[idlest])
                return [] if channel is None else self._give(channel, idlest)
        self._loads = {}
        return [Send(other, LoadRequest()) for other in others]


def best_to_give(loads: dict[str, float], gap: float) -> str | None:
    """Return the channel whose move leaves the smallest gap between two loads; None if no move makes the gap smaller.

    >>> best_to_give({"a": 50, "b": 30, "c": 5}, 60), best_to_give({"a": 50}, 50)
    ('b', None)
    """
    better = {name: abs(gap - 2 * load) for name, load in loads.items() if abs(gap - 2 * load) < gap}
    return min(better, key=lambda name: (better[name], name)) if better else None
