"""`Client`: a program's place at a node. It publishes, subscribes, and comes back when the connection breaks.

What the program does goes into books: what was published and is not safe (`publishing`), what was delivered and is not
done with (`delivering`), and what it subscribed to and promised. From there the `connection` takes what to say. A
broken socket loses only what was on its way, and all of that is still in the books: the next one begins with it.

- With a `session` that survives at the node nothing is lost or comes twice, not even if the node is restarted.
- Without one the node forgets the client when the connection breaks. What was not accepted is published again, so it
  may be there twice; what happens meanwhile is missed, except by subscriptions with `since`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import ssl as tls
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Final, TypeVar, overload

import msgspec

from fieldfare.client.connection import Connection, StateHook, settle
from fieldfare.client.errors import ConnectionLost, Refused, WindowFull
from fieldfare.client.inbox import Inbox
from fieldfare.client.outbox import FRAME_EVENTS, MARGIN, Posting, Window
from fieldfare.client.receipt import Receipt
from fieldfare.client.request_reply import Questions, answer_to
from fieldfare.client.subscription import AnySubscription, Item, Since, Subscription
from fieldfare.client.transactions import Advertisement, Transaction
from fieldfare.client.typed import event_of
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import JSON_CODEC, MSGPACK_CODEC, Codec

T = TypeVar("T")
logger = logging.getLogger("fieldfare.client")
Standing = AnySubscription | Advertisement
DroppedHook = Callable[[int, str], None]

WINDOW: Final = 10_000
"""events that may be posted and not safe"""
LEAVING: Final = 30.0
"""seconds without a connection after which whoever leaves does not wait any longer for what was posted"""
NOBODY: Final = "~nobody"
"""an id that nothing has"""


def connect(
    url: str | Sequence[str],
    *,
    session: str = "",
    token: str | Callable[[], str] = "",
    credit: int = 1000,
    only_wanted: bool = False,
    json: bool = False,
    ssl: tls.SSLContext | None = None,
    reconnect: bool = True,
    at: str = "",
    on_state: StateHook = lambda state, reason: None,
    on_dropped: DroppedHook = lambda count, reason: None,
    insecure: bool = False,
) -> Client:
    """A client of the node at a URL, to be used with `async with`.

    Args:
        url: such as `ws://127.0.0.1:7400`; of several, the next is tried if one does not answer.
        session: a name under which the node keeps what you asked for and what waits for you, when you are away. If you
            come to another node than the last time, it gets the session from there: nothing is lost or comes twice.
        token: who you are, for a node that wants to know; or what to call for one, each time that you come.
        credit: how many events the node may send that you are not done with.
        only_wanted: do not send what nobody wants.
        json: speak JSON, which is slower, and can be read by people.
        ssl: for `wss://`, if the default does not do.
        reconnect: come back when the connection breaks, however long that takes. The first time the node must be there.
        at: the node that has the session, if you know that it is another one; this one gets it from there.
        on_state: called with `connected`, `reconnecting`, `waiting` (for a session that comes from another node) or
            `closed`, and the reason.
        on_dropped: called when events for you were lost at the node, with how many (0: nobody knows) and the reason.
        insecure: show the token even where everybody on the way can read it: over `ws://` to another machine.
    """
    return Client(
        [url] if isinstance(url, str) else list(url),
        session=session,
        token=token,
        credit=credit,
        only_wanted=only_wanted,
        codec=JSON_CODEC if json else MSGPACK_CODEC,
        ssl=ssl,
        reconnect=reconnect,
        at=at,
        on_state=on_state,
        on_dropped=on_dropped,
        insecure=insecure,
    )


class Client:
    """A connection to a node that is made again when it breaks; made by `connect`."""

    def __init__(
        self,
        urls: list[str],
        *,
        session: str,
        token: str | Callable[[], str],
        credit: int,
        only_wanted: bool,
        codec: Codec[Any],
        ssl: tls.SSLContext | None,
        reconnect: bool,
        at: str,
        on_state: StateHook,
        on_dropped: DroppedHook,
        insecure: bool,
    ) -> None:
        """Nothing happens yet."""
        self.codec = codec
        self.node = at
        """the name of the node"""
        self.session = session
        """the name of the session; the node makes one up if there is none"""
        self.dropped = 0
        """how many events for this client were dropped at the node, since it was made"""
        self._dropped = 0
        """the same for the whole session, as far as was told"""
        self._on_dropped = on_dropped
        self._durable = bool(session)
        self._token = token
        self._connection = Connection(
            self, urls, codec, ssl=ssl, reconnect=reconnect, on_state=on_state, insecure=insecure
        )
        self._closing = False
        self._moving = False
        self._identity = ""
        self._max_batch = self._max_frame = 0
        self._keepers: tuple[str, ...] = ()
        self._moves = 0
        self._lives: tuple[tuple[str, int], ...] = ()
        self._window: Window[Receipt] = Window()
        self._unheard: deque[tuple[Receipt, Exception]] = deque(maxlen=1000)
        """posted events that were refused"""
        self._roomy, self._empty = asyncio.Event(), asyncio.Event()
        self._unsent = 0
        self._mailbox = Inbox(credit, self._connection.wake, durable=self._durable)
        self._advertisements: dict[str, Advertisement] = {}
        self._only_wanted = only_wanted
        self._curious = False
        """whether we asked what is wanted"""
        self._wanted: tuple[str, ...] | None = None
        self._wanted_filters: list[Filter] | None = None
        self._wanted_changed = asyncio.Event()
        self._questions = Questions(lambda filter, id: self.subscribe(filter, id=id))
        self._later: set[asyncio.Task[None]] = set()
        """that subscriptions and advertisements are over, as long as the node has not heard it"""

    async def __aenter__(self) -> Client:
        self._note_window()
        await self._connection.start()
        if self._only_wanted:
            await self.wanted()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and not self.closed:
                await self._finish(LEAVING)
            elif error is None:
                self._raise_unheard()
        finally:
            await self.close()

    @property
    def closed(self) -> bool:
        """Is it over? That is so after `close`, and if the node does not want us any more."""
        return self._connection.error is not None

    @property
    def connected(self) -> bool:
        """Is there a connection now?"""
        return self._connection.socket is not None

    async def close(self) -> None:
        """Hang up. What was posted and is not safe may be lost: `drain` first, as leaving `async with` does."""
        if not self.closed:
            self._connection.check()
        answering = self._questions.task
        if answering is not None and self._durable and self.connected:
            answering.cancel()  # it unsubscribes, so that no answers wait for a session that has gone
            await asyncio.wait([answering], timeout=1)
        self._closing = True
        for task in tuple(self._later):
            task.cancel()
        await self._connection.stop()
        if answering is not None:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    async def move(self, to: str) -> None:
        """Go to another node, at a URL, and take the session along. Events come from the old one until it is there.

        The two nodes must be linked, perhaps through others. If it cannot be done, everything stays as it is.
        """
        self._connection.check()
        await self._connection.move(to)

    async def leave(self) -> None:
        """End the session, with all that was asked for and all that waits for it, and hang up."""
        await self._settled()
        await self._connection.ask(f.Leave)
        await self.close()

    # Publishing

    async def publish(self, event: object, *, ttl: float | None = None, replaces: str = "") -> bool:
        """Publish an event: a mapping, an `Event`, a dataclass or a `msgspec.Struct`. It is safe afterwards.

        With `ttl`, nobody gets it later than so many seconds from now. Of events that wait for somebody under the same
        name `replaces`, only the last does. False: it was not sent, since nobody wants it (see `only_wanted`).
        """
        await self.room()
        return await self._post((event_of(event),), ttl, replaces)

    async def publish_batch(self, events: Iterable[object], *, ttl: float | None = None, replaces: str = "") -> int:
        """Publish events, all of them or none; says how many. More than the node takes in a frame are `Refused`."""
        batch = tuple(map(event_of, events))
        await self.room()
        wanted = tuple(filter(self._is_wanted, batch))
        return len(wanted) if wanted and await self._post(wanted, ttl, replaces, check=False) else 0

    def post(self, event: object, *, ttl: float | None = None, replaces: str = "") -> Receipt:
        """Publish without waiting. Await the ticket, or `drain`, to be sure that it is safe.

        If too much is under way, there is a `WindowFull`: `await client.room()` before you post more.
        """
        self._connection.check()
        if self._window.count >= WINDOW:
            raise WindowFull(f"{self._window.count} events are posted and not safe yet: await client.room() first")
        return self._post((event_of(event),), ttl, replaces)

    async def room(self) -> None:
        """Wait until more can be posted."""
        self._connection.check()
        if self._unsent >= FRAME_EVENTS:
            self._unsent = 0
            await asyncio.sleep(0)  # so that it is sent while more is made
        while self._window.count >= WINDOW and not self.closed:
            await self._roomy.wait()
        self._connection.check()

    async def drain(self) -> None:
        """Wait until all that was posted is safe. If some was refused and nobody awaited its ticket: `Refused`."""
        await self._settled()
        self._raise_unheard()

    async def _finish(self, seconds: float) -> None:
        """Let the node have what it must still hear. Not for ever: it may be away for good."""
        away = asyncio.create_task(self._connection.away_for(seconds))
        finishing = asyncio.create_task(self._all_said())
        try:
            await asyncio.wait([finishing, away], return_when=asyncio.FIRST_COMPLETED)
            if finishing.done() or self.closed:
                await finishing
                return
        finally:
            away.cancel()
            finishing.cancel()
        if self._window.count:
            raise ConnectionLost(f"{self._window.count} events that were posted are not safe: no node answers")
        logger.warning("the session %s goes on at %s as it was: no node answers", self.session, self.node)

    async def _all_said(self) -> None:
        await self.drain()
        if self._durable and self._later:
            await asyncio.wait(self._later)

    def _raise_unheard(self) -> None:
        refused = [(ticket, error) for ticket, error in self._unheard if not ticket.heard]
        self._unheard.clear()
        for ticket, _ in refused:
            ticket.heard = True
        if refused:
            raise refused[0][1]

    def transaction(self, *, ttl: float | None = None, replaces: str = "") -> Transaction:
        """Events that are published together when the block ends, and not at all if it raises."""
        self._connection.check()
        return Transaction(self, ttl, replaces)

    def put(self, event: Event, ttl: float | None = None, replaces: str = "") -> Receipt:
        """As `post`, for whoever looks after the window himself."""
        return self._post((event,), ttl, replaces)

    def _post(self, events: tuple[Event, ...], ttl: float | None, replaces: str, *, check: bool = True) -> Receipt:
        self._connection.check()
        if ttl is not None and not ttl > 0:
            raise Refused("a time to live is more than 0 seconds")
        ticket = Receipt()
        if check and self._only_wanted and not self._is_wanted(events[0]):
            ticket.answer(False)
            return ticket
        deadline = None if ttl is None else time.monotonic() + ttl
        posting = Posting(tuple(map(self.codec.raw, events)), ticket, deadline, replaces)
        size = posting.size + MARGIN + 6 * len(replaces)
        if self._max_batch and len(events) > self._max_batch:
            raise Refused(f"{len(events)} events at once: the node takes at most {self._max_batch}", "limit")
        if self._max_frame and size > self._max_frame:
            raise Refused(f"{size} bytes in a frame: the node takes at most {self._max_frame}", "limit")
        self._window.add(posting)
        self._unsent += len(events)
        self._note_window()
        self._connection.wake()
        return ticket

    async def _settled(self) -> None:
        """All that was published is answered."""
        if not self.closed:
            self._connection.check()
        await self._empty.wait()
        self._connection.check()

    def _note_window(self) -> None:
        for event, holds in (
            (self._empty, not self._window.count),
            (self._roomy, self._window.count < WINDOW),
        ):
            if holds != event.is_set():
                (event.set if holds else event.clear)()

    def _safe(self, postings: Iterable[Posting[Receipt]]) -> None:
        for posting in postings:
            posting.ticket.answer(True)
        self._note_window()

    def _not_accepted(self, frame: f.Refused) -> None:
        posting = self._window.refused(frame.number)
        if posting is not None:
            error = Refused(frame.reason, frame.code)
            self._unheard.append((posting.ticket, error))
            posting.ticket.answer(error)
            self._note_window()
        self._connection.wake()

    # What anybody wants

    async def wanted(self) -> tuple[str, ...]:
        """The filters that anybody at this node wants; what matches none of them need not be published."""
        self._connection.check()
        self._curious = True
        while self._wanted is None:
            self._connection.check()
            self._wanted_changed.clear()
            await self._connection.ask(f.WatchInterest)
            if self._wanted is None:
                await self._wanted_changed.wait()
        return self._wanted

    def _is_wanted(self, event: Event) -> bool:
        return (
            not self._only_wanted
            or self._wanted_filters is None
            or any(filter.matches_fields(event.fields) for filter in self._wanted_filters)
        )

    def _note_wanted(self, texts: tuple[str, ...] | None) -> None:
        self._wanted, self._wanted_filters = texts, None
        if texts is not None and self._only_wanted:
            # What cannot be read here, with a function of the node's own, say, might match anything.
            with contextlib.suppress(ValueError):
                self._wanted_filters = list(map(parse, texts))
        self._wanted_changed.set()

    # Subscribing

    @overload
    def subscribe(
        self, filter: object, *, since: Since | datetime = ..., id: str | None = ..., keep: bool = ..., type: None = ...
    ) -> Subscription[Event]: ...

    @overload
    def subscribe(
        self, filter: object, *, since: Since | datetime = ..., id: str | None = ..., keep: bool = ..., type: type[T]
    ) -> Subscription[T]: ...

    def subscribe(
        self,
        filter: object,
        *,
        since: Since | datetime = None,
        id: str | None = None,
        keep: bool = False,
        type: type[Any] | None = None,
    ) -> AnySubscription:
        """Events that match a filter: `async with client.subscribe(...) as events: async for event in events: ...`.

        Args:
            filter: a text, a `Filter`, or a document of CloudEvents' subscriptions.
            since: events that happened already, too: from a position in the log (a whole number) or a time on.
            id: under which a session that survives keeps it; made of the filter if it is not given.
            keep: let the session keep it when the block is left. Else what waits for it is dropped then.
            type: a class, of which you get instances instead of events.
        """
        self._connection.check()
        if isinstance(since, datetime):
            since = since.timestamp()
        if keep and not self._durable:
            raise ValueError("keep=True needs a session that survives: connect(..., session='a name')")
        written = _written(filter)
        return Subscription(self, id or _made_id(written, self._mailbox.subscriptions), written, since, type, keep=keep)

    def advertise(self, filter: object, *, id: str | None = None) -> Advertisement:
        """Promise to publish such events, as long as it is used with `async with`."""
        self._connection.check()
        written = _written(filter)
        return Advertisement(self, id or _made_id(written, self._advertisements), written)

    async def open(self, standing: Standing) -> None:
        """Let the node know of a subscription or an advertisement; for those themselves."""
        self._connection.check()
        among: Mapping[str, Standing] = self._advertisements
        if isinstance(standing, Subscription):
            among = self._mailbox.subscriptions
        if standing.id in among and not among[standing.id].over:
            raise ValueError(f"{standing.id!r} is in use already: give each a different id")
        if isinstance(standing, Subscription):
            self._mailbox.add(standing)
        else:
            self._advertisements[standing.id] = standing
        standing.answer = asyncio.get_running_loop().create_future()
        self._establish(standing, anew=True)
        try:
            await standing.answer
        except Refused:  # so the node has kept what it had under this id, and what waits for it
            if isinstance(standing, Subscription):
                self._mailbox.remove(standing, keep=self._durable)
            else:
                del self._advertisements[standing.id]
            raise
        except BaseException:
            await self.shut(standing)
            raise

    async def shut(self, standing: Standing) -> None:
        """Let the node know that one is over; for those themselves. While it is away nobody waits: it is told later."""
        standing.over = True
        if isinstance(standing, Subscription):
            self._mailbox.remove(standing, keep=standing.kept)
            if standing.kept:
                return
            ending = asyncio.create_task(self._tell(f.Unsubscribe, standing.id))
        else:
            ending = asyncio.create_task(self._end(standing))
        self._later.add(ending)
        ending.add_done_callback(self._later.discard)
        await self._connection.while_up(ending)

    async def _end(self, advertisement: Advertisement) -> None:
        await self._empty.wait()  # what was posted under it must get there before
        if self._advertisements.get(advertisement.id) is advertisement:  # else there is another one by now
            del self._advertisements[advertisement.id]
            await self._tell(f.Unadvertise, advertisement.id)

    async def _tell(self, make: Callable[[int, str], f.Frame], id: str) -> None:
        if not self.closed:
            with contextlib.suppress(ConnectionError, Refused):
                await self._connection.ask(lambda request: make(request, id))

    def finish(self, item: Item) -> None:
        """A subscription is done with something; for those themselves."""
        self._mailbox.finish(item)

    def _establish(self, standing: Standing, *, anew: bool) -> None:
        first = standing.answer
        assert first is not None

        def answered(error: Exception | None) -> None:
            if first.done() and isinstance(error, Refused):
                standing.end(error)
            settle(first, error)

        self._connection.request(lambda request: standing.frame(request, anew=anew), answered, again=False)

    # Questions and answers

    async def request(self, event: object, *, timeout: float = 5.0) -> Event:
        """Publish an event and wait for somebody's `reply`; a TimeoutError if there is none in so many seconds."""
        self._connection.check()
        answer: asyncio.Future[Event] | None = None
        try:
            async with asyncio.timeout(timeout):
                question, answer = await self._questions.ask(event)
                await self.room()
                await self._post((question,), timeout, "", check=False)
                return await answer
        except TimeoutError:
            raise TimeoutError(f"nobody answered in {timeout} seconds") from None
        finally:
            if answer is not None:
                answer.cancel()

    async def reply(self, request: object, answer: object) -> None:
        """Answer a request, as it came."""
        await self.room()
        await self._post((answer_to(request, answer),), None, "", check=False)

    # For the connection

    @property
    def has_token(self) -> bool:
        """Is there a token that must not get into wrong hands?"""
        return bool(self._token)

    def hello(self, *, moving: bool = False, ticket: str = "") -> f.Hello:
        """How to begin; if it is moving, while events still come from elsewhere; with a ticket instead of a token."""
        token = "" if ticket else self._token() if callable(self._token) else self._token
        self._moving = moving
        credit = 0 if moving else self._mailbox.credit()  # of which the other node knows nothing
        if not self._durable:
            return f.Hello(token=token, credit=credit)
        return f.Hello(
            session=self.session,
            token=token,
            credit=credit,
            at=self.node,
            identity=self._identity,
            keepers=self._keepers,
            moves=self._moves,
            lives=self._lives,
            seen=self._mailbox.seen,
            ticket=ticket,
        )

    def begin(self, welcome: f.Welcome) -> None:
        """Say again all that the node may have forgotten, and what it has not answered."""
        if self._moving:
            self._connection.say(f.Credit(self._mailbox.credit()))
        if self.node != welcome.node:
            for subscription in self._mailbox.subscriptions.values():
                subscription.moved()
        self.node, self.session = welcome.node, welcome.session
        self._max_batch, self._max_frame = welcome.max_batch, welcome.max_frame
        taken_over = welcome.doubt > 0 and welcome.moves != self._moves  # by a keeper, which counts anew
        self._keepers, self._moves, self._lives = welcome.keepers, welcome.moves, welcome.lives
        self._mailbox.doubt = welcome.doubt
        anew = welcome.identity != self._identity
        self._dropped = welcome.warned if anew or taken_over else self._dropped
        self._identity = welcome.identity
        self._mailbox.resume(welcome.acknowledged, anew=anew, void=welcome.void)
        if anew:
            self._window.renumber(welcome.accepted)
        standing: list[Standing] = [*self._advertisements.values(), *self._mailbox.subscriptions.values()]
        for one in standing:
            self._establish(one, anew=anew or (one.answer is not None and not one.answer.done()))
        if self._curious:
            self._note_wanted(None)
            self._connection.request(f.WatchInterest, lambda _: None, again=False)
        again = self._window.resume(welcome.accepted, time.monotonic())
        for frame in again:
            self._connection.say(frame)
        if again:  # then a request that does nothing: when it is answered, all before it is
            self._connection.request(
                lambda request: f.Unsubscribe(request, NOBODY),
                lambda _: self._safe(self._window.resumed()),
                again=False,
            )

    def hear(self, frame: f.FromNode) -> None:
        """The node says something."""
        match frame:
            case f.Deliveries(items=items, dropped=dropped):
                self._note_dropped(dropped)
                self._mailbox.take(items)
            case f.Done(gone=first) if first:
                self._lose(0, f"the log of {self.node} begins at position {first}: what is older is gone")
            case f.Accepted(number=number):
                self._safe(self._window.accepted(number))
            case f.Refused(number=0, reason=reason):
                logger.warning("the node refused something: %s", reason)
            case f.Refused():
                self._not_accepted(frame)
            case f.Interest(filters=filters):
                self._note_wanted(tuple(filters))

    def _note_dropped(self, total: int) -> None:
        count, self._dropped = total - self._dropped, max(total, self._dropped)
        if count > 0:
            self.dropped += count
            self._lose(count, f"{count} events were dropped at {self.node}: more waited for this session than it keeps")

    def _lose(self, count: int, reason: str) -> None:
        logger.warning("the session %s: %s", self.session, reason)
        self._on_dropped(count, reason)

    def next_frame(self) -> f.Frame | None:
        """What there is to say."""
        frame = self._mailbox.next_frame()
        if frame is not None:
            return frame
        self._unsent = 0
        return self._window.take(time.monotonic())

    def last_word(self) -> f.Frame | None:
        """What to say before hanging up."""
        return self._mailbox.acknowledgement()

    def over(self, error: Exception) -> None:
        """There is no node any more."""
        for posting in self._window.clear():
            self._unheard.append((posting.ticket, error))
            posting.ticket.answer(error)
        self._note_window()
        self._wanted_changed.set()
        self._mailbox.end(None if self._closing else error)


def _written(filter: object) -> object:
    """A filter as it stands in a frame."""
    if isinstance(filter, Filter):
        return str(filter)
    if isinstance(filter, (str, dict, list)):
        return filter
    raise TypeError(f"a filter is a text, a Filter or a document, not {type(filter).__name__}")


def _made_id(written: object, used: dict[str, Any]) -> str:
    """An id that the same program makes again when it is started again, so that it finds what waits for it."""
    text = written if isinstance(written, str) else msgspec.json.encode(written).decode()
    if len(text) > 64:
        text = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    id, count = text, 1
    while id in used:
        count += 1
        id = f"{text} #{count}"
    return id
