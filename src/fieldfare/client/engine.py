"""`Engine`: the client's side of the protocol, without sockets, tasks and clocks: frames in, frames out.

The engine remembers everything the node may have to be told again: unsafe events (`outbox`), open deliveries (`inbox`),
subscriptions and advertisements (`registrations`), and unanswered requests. A broken connection therefore loses
nothing: `begin` makes the frames with which the next connection starts.

The caller sends `hello`, passes the node's frames to `begin` and `receive`, and sends the frames of `next_frame` after
`pause`. Answers arrive as calls of the functions given with a request.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import msgspec

from fieldfare.client.errors import Refused
from fieldfare.client.inbox import Inbox
from fieldfare.client.interest import Interest
from fieldfare.client.outbox import Submission, Window
from fieldfare.client.registrations import (
    NO_SUBSCRIPTION,
    AdvertisementRegistration,
    Answer,
    Item,
    Registration,
    SubscriptionRegistration,
)
from fieldfare.client.requests import Requests
from fieldfare.client.stated_values import StatedValues
from fieldfare.events.event import Event
from fieldfare.protocol import frames as f
from fieldfare.protocol.versions import lacking, refusal

OutcomeHook = Callable[[bool | Exception], None]
"""called with True when events are safe, False if they need not be sent, or the error"""
DroppedHook = Callable[[int, str], None]
"""called when the node lost events: with how many (0: not known) and the reason"""

logger = logging.getLogger("fieldfare.client")


class Engine:
    """The state of a client, over all connections."""

    def __init__(
        self,
        *,
        encode_event: Callable[[Event], bytes],
        session: str = "",
        at: str = "",
        credit: int = 1000,
        quench: bool = False,
        shared: bool = False,
        member: str = "",
        key: str = "",
        device: str = "",
        oldest: bool = False,
        on_dropped: DroppedHook = lambda count, reason: None,
    ) -> None:
        if (shared or member or key) and not (shared and session):
            raise ValueError("a member of a shared session needs its name: connect(..., session='a name', shared=True)")
        if (device or oldest) and (shared or not (device and session)):
            raise ValueError("a device has a name and a session: connect(..., session='anna', device='phone')")
        self.node = at
        """the name of the node that has the session"""
        self.session = session
        """the name of the session; a node makes up a name for a client without a durable session"""
        self.durable = bool(session)
        """whether the node keeps the session while the client is away"""
        self.connected = False
        self.error: Exception | None = None
        """why the engine has ended, if it has"""
        self.dropped = 0
        """events for this client that the node has dropped, since the engine was made"""
        self.interest = Interest(quench=quench)
        self.shared = shared
        """whether the client is a member of a session, and each event goes to one of the members"""
        self.inbox = Inbox(credit, durable=self.durable, shared=shared)
        self.device = device
        """the name of this device of the session, of which each device gets every event"""
        self._member, self._key, self._oldest = member, key, oldest
        self.advertisements: dict[str, AdvertisementRegistration] = {}
        self._dropped_in_session = 0
        """events that were dropped in the life of the session, as far as the node has said"""
        self._on_dropped = on_dropped
        self._encode_event = encode_event
        self._stated = StatedValues(encode_event)
        self._requests = Requests()
        self._frames: deque[f.Frame] = deque()
        """frames to send before any others"""
        self._window: Window[OutcomeHook] = Window()
        self._when_safe: list[Answer] = []
        """functions to call when no event is unsafe"""
        self._moving = False
        self._identity = ""
        self._max_batch = self._max_frame = 0
        self._version = 0
        """version of the present connection"""
        self._replicas: tuple[str, ...] = ()
        self._moves = 0
        self._lives: tuple[tuple[str, int], ...] = ()

    @property
    def is_member(self) -> bool:
        """Whether the session and its subscriptions belong to several clients, workers or devices."""
        return self.shared or bool(self.device)

    # Connections

    def hello(self, token: str, *, moving: bool = False, ticket: str = "") -> f.Hello:
        """Return the first frame of a connection.

        While the client is `moving`, an earlier connection still delivers, so the new connection starts without
        credit. A ticket takes the place of the token at an address named by a node.
        """
        self._moving = moving
        if not moving:
            self.inbox.give_back()
        credit = 0 if moving else self.inbox.credit()
        token = "" if ticket else token
        if not self.durable:
            return f.Hello(token=token, credit=credit)
        return f.Hello(
            session=self.session,
            token=token,
            credit=credit,
            at=self.node,
            identity=self._identity,
            replicas=self._replicas,
            moves=self._moves,
            lives=self._lives,
            seen=0 if self.shared else self.inbox.last,
            ticket=ticket,
            shared=self.shared,
            member=self._member,
            key=self._key,
            device=self.device,
            oldest=self._oldest,
        )

    def begin(self, welcome: f.Welcome, now: float) -> None:
        """Start on a new connection: repeat everything forgotten or unanswered by the node."""
        self.connected = True
        self._frames.clear()
        self.inbox.give_back()
        self._frames.extend(self._requests.resume())
        if self._moving:
            self._frames.append(f.Credit(self.inbox.credit()))
        if self.node != welcome.node:
            for subscription in self.inbox.subscriptions.values():
                subscription.move()
        anew = self._join(welcome)
        self.inbox.resume(welcome.acknowledged, anew=anew, void_from=welcome.void_from)
        if anew:
            self._window.renumber(welcome.accepted)
        self._repeat_parameters(welcome.life, anew=anew)
        registrations: list[Registration] = [*self.advertisements.values(), *self.inbox.subscriptions.values()]
        for registration in registrations:
            self._request_registration(registration, anew=anew or registration.pending)
        if self.interest.watched:
            self.interest.forget()
            self._watch_interest()
        repeated = self._window.resume(welcome.accepted, now)
        self._frames.extend(repeated)
        if repeated:  # when the node answers a request that does nothing, all frames before are answered
            self._request(lambda request: f.Unsubscribe(request, NO_SUBSCRIPTION), self._confirm_repeated)

    def _join(self, welcome: f.Welcome) -> bool:
        """Take the node's description of the session; return True if the node does not know the earlier session."""
        self.node, self.session, self._version = welcome.node, welcome.session, welcome.version
        self._max_batch, self._max_frame = welcome.max_batch, welcome.max_frame
        from_replica = welcome.may_repeat > 0 and welcome.moves != self._moves  # a replica counts anew
        self._replicas, self._moves, self._lives = welcome.replicas, welcome.moves, welcome.lives
        self.inbox.may_repeat = welcome.may_repeat
        anew = welcome.identity != self._identity
        self._identity = welcome.identity
        if anew or from_replica:
            self._dropped_in_session = welcome.warned
        return anew

    def disconnect(self) -> None:
        """Note a broken connection. `begin` makes unsent frames again."""
        self.connected = False
        self._frames.clear()

    def fail(self, error: Exception, *, closing: bool = False) -> None:
        """End for good: answer all waiting calls with an error. Subscriptions end without an error when `closing`."""
        if self.error is not None:
            return
        self.error = error
        self.connected = False
        self._requests.fail(error)
        for submission in self._window.clear():
            submission.receipt(error)
        self._run_when_safe(error)
        self.interest.resolve(error)
        self.inbox.end(None if closing else error)

    # Frames

    @property
    def pause(self) -> float | None:
        """Seconds until `next_frame` should be called: 0 at once, None if there is nothing to send."""
        return 0.0 if self._frames or self._window.waiting else self.inbox.pause

    def next_frame(self, now: float) -> f.Frame | None:
        """Return the next frame to send, or None. What the node's version lacks is refused here, as the node would."""
        while (frame := self._next(now)) is not None and (what := lacking(self._version, frame)):
            reason, of = refusal(self.node, self._version, what), frame.number if isinstance(frame, f.Publish) else 0
            self.receive(f.Refused(reason, getattr(frame, "request", 0), of, "version"))
        return frame

    def _next(self, now: float) -> f.Frame | None:
        if self._frames:
            return self._frames.popleft()
        frame = self.inbox.next_frame()
        return frame if frame is not None else self._window.take(now)

    def last_frame(self) -> f.Frame | None:
        """Return the last acknowledgement, to send before the connection is closed."""
        return self.inbox.acknowledgement()

    def receive(self, frame: f.FromNode) -> None:
        """Take a frame of the node, after `Welcome`. `Bye` is for the caller, because a connection must follow."""
        match frame:
            case f.Deliveries(items=items, dropped=dropped, redelivered=redelivered):
                self._note_dropped(dropped)
                self.inbox.receive(items, frozenset(redelivered))
            case f.Done(request=request, log_start=first):
                if first:
                    self._report_loss(0, f"the log of {self.node} begins at position {first}: older events are gone")
                self._requests.resolve(request, None)
            case f.Accepted(number=number):
                self._resolve(self._window.accept(number))
            case f.Refused(request=request, reason=reason, code=code) if request:
                self._requests.resolve(request, Refused(reason, code))
            case f.Refused(number=0, reason=reason):
                logger.warning("the node refused an earlier request: %s", reason)
            case f.Refused(number=number, reason=reason, code=code):
                submission = self._window.refuse(number)
                if submission is not None:
                    submission.receipt(Refused(reason, code))
                    self._check_safe()
            case f.Interest(filters=filters):
                self.interest.update(filters)

    def _note_dropped(self, total: int) -> None:
        count, self._dropped_in_session = total - self._dropped_in_session, max(total, self._dropped_in_session)
        if count > 0:
            self.dropped += count
            reason = f"{count} events were dropped at {self.node}: more waited for this session than the node keeps"
            self._report_loss(count, reason)

    def _report_loss(self, count: int, reason: str) -> None:
        logger.warning("the session %s: %s", self.session, reason)
        self._on_dropped(count, reason)

    # Publishing

    @property
    def unsafe(self) -> int:
        """The number of unsafe published events."""
        return self._window.count

    def publish(self, events: tuple[Event, ...], options: f.PublishOptions, outcome: OutcomeHook, now: float) -> None:
        """Publish events, all or none; `outcome` is called later. `Refused` for events beyond the node's limits."""
        ttl, options = options.ttl, msgspec.structs.replace(options, ttl=None)
        if ttl is not None and not ttl > 0:
            raise Refused("a time to live is more than 0 seconds")
        deadline = None if ttl is None else now + ttl
        submission = Submission(tuple(map(self._encode_event, events)), outcome, deadline, options)
        size = submission.size_alone
        if self._max_batch and len(events) > self._max_batch:
            raise Refused(f"{len(events)} events at once: the node takes at most {self._max_batch}", "limit")
        if self._max_frame and size > self._max_frame:
            raise Refused(f"{size} bytes in a frame: the node takes at most {self._max_frame}", "limit")
        self._window.add(submission)

    def _resolve(self, safe: Iterable[Submission[OutcomeHook]]) -> None:
        for submission in safe:
            submission.receipt(True)
        self._check_safe()

    def _confirm_repeated(self, error: Exception | None) -> None:
        del error  # the node may refuse this request, but its answer comes after all others
        self._resolve(self._window.confirm_resumed())

    def _check_safe(self) -> None:
        if not self._window.count and self._when_safe:
            self._run_when_safe(None)

    def _run_when_safe(self, error: Exception | None) -> None:
        waiting, self._when_safe = self._when_safe, []
        for call in waiting:
            call(error)

    # Subscriptions and advertisements

    def register(self, registration: Registration, answer: Answer) -> None:
        """Ask the node for a subscription or an advertisement."""
        among: dict[str, AdvertisementRegistration] | dict[str, SubscriptionRegistration]
        among = self.inbox.subscriptions if isinstance(registration, SubscriptionRegistration) else self.advertisements
        if registration.id in among and not among[registration.id].closed:
            raise ValueError(f"{registration.id!r} is in use already: give each a different id")
        registration.open(answer)
        if isinstance(registration, SubscriptionRegistration):
            self.inbox.add(registration)
        elif isinstance(registration, AdvertisementRegistration):
            self.advertisements[registration.id] = registration
        self._request_registration(registration, anew=True)

    def discard(self, registration: Registration) -> None:
        """Forget a refused registration: under the id, the node still has the earlier registration, if any."""
        if isinstance(registration, SubscriptionRegistration):
            self.inbox.remove(registration, keep=self.durable)
        else:
            del self.advertisements[registration.id]

    def withdraw(self, registration: Registration, answer: Answer) -> None:
        """End a subscription (with `keep`, only here), or an advertisement, when all published events are safe."""
        registration.closed = True
        if not isinstance(registration, SubscriptionRegistration):
            unadvertise = partial(self._unadvertise, registration, answer)
            if self._window.count:  # the events must be accepted before the node forgets the advertisement
                self._when_safe.append(unadvertise)
            else:
                unadvertise(None)
            return
        self.inbox.remove(registration, keep=registration.keep)
        if registration.keep:
            answer(None)
        else:
            self.request(lambda request: f.Unsubscribe(request, registration.id), answer)

    def _unadvertise(self, advertisement: Registration, answer: Answer, error: Exception | None) -> None:
        if error is not None or self.advertisements.get(advertisement.id) is not advertisement:
            answer(error)  # under the same id there is another advertisement by now
            return
        del self.advertisements[advertisement.id]
        self.request(lambda request: f.Unadvertise(request, advertisement.id), answer)

    def _request_registration(self, registration: Registration, *, anew: bool) -> None:
        self._request(lambda request: registration.frame(request, anew=anew), registration.resolve)

    def acknowledge(self, item: Item) -> None:
        """Note the acknowledgement of a subscription for a delivery."""
        self.inbox.acknowledge(item)

    # Requests

    def set_parameters(self, values: Mapping[str, object], answer: Answer) -> None:
        """State values for the parameters of filters, all or none; None forgets a value."""
        take_back = self._stated.state(values)

        def answered(error: Exception | None) -> None:
            if isinstance(error, Refused):
                take_back()
            answer(error)

        self.request(lambda request: self._stated.frame(request, values), answered)

    def _repeat_parameters(self, life: str, *, anew: bool) -> None:
        """State all values again where the node may lack some."""

        def answered(error: Exception | None) -> None:
            if error is None:
                self._stated.inform(life)

        if self._stated.must_be_repeated(life, anew=anew):
            self._request(self._stated.frame_of_all, answered)

    def watch_interest(self, answer: Answer) -> None:
        """Ask the node for the interest, now and at each change; `answer` is called once."""
        self.interest.wait(answer)
        self._watch_interest()

    def _watch_interest(self) -> None:
        self._request(f.WatchInterest, lambda error: self.interest.resolve(error) if error is not None else None)

    def request(self, make: Callable[[int], f.Frame], answer: Answer) -> None:
        """Send a request, again after each broken connection, until the node answers."""
        if self.error is not None:
            answer(self.error)
        else:
            self._request(make, answer, repeat=True)

    def _request(self, make: Callable[[int], f.Frame], answer: Answer, *, repeat: bool = False) -> None:
        frame = self._requests.add(make, answer, repeat=repeat)
        if self.connected:  # else `begin` makes the frame again
            self._frames.append(frame)
