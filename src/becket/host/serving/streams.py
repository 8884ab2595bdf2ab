"""Streams of commands and completions, and notifications outside of a call.

A stream ends when the extension loses its permission. Events right after the response still belong to the stream, as
the contract allows. If events cannot be distinguished, one stream waits for the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import anyio
from msgspec import Raw

from becket._deprecated import RenamedMember
from becket._loggers import host_logger
from becket.contract.commands import COMMAND_INVOKE, CommandDone
from becket.contract.providers import PROVIDER_STREAM, ProviderDone
from becket.contract.settings import SETTINGS_EDITOR_CLOSE, SETTINGS_EDITOR_COMMITTED, SETTINGS_EDITOR_RENDER
from becket.contract.tasks import TASK_READERS
from becket.contract.widgets import WIDGET_DISMISS, WIDGET_UPSERT
from becket.conversion.decode import get_result_decoder
from becket.errors import JSON_ERRORS, BecketError, LocalProtocolError, NotSent
from becket.host.serving.client import EventStream, MappedStream
from becket.host.serving.revocation import RevocableCalls
from becket.methods.registry import Registry
from becket.methods.streams import EventReader
from becket.peer.context import BaseContext
from becket.peer.event_routing import EventHandler
from becket.peer.streams import Gap

if TYPE_CHECKING:
    from becket.peer.protocols import Loop

__all__ = [
    "ExtensionNotifications",
    "ExtensionStream",
    "ExtensionStreams",
    "build_notification_handler",
    "check_notification_types",
]

E = TypeVar("E")
K = TypeVar("K")
K2 = TypeVar("K2")
R = TypeVar("R")

TRAIL_GRACE = 0.02  # seconds for events that an old extension sends after its response, unless it sent `done`
MAX_TRAILING = 1_024  # events that are kept for a consumer that does not read them
DONE_EVENTS = (CommandDone, ProviderDone)
READERS: Final[Mapping[str, EventReader[Any]]] = MappingProxyType(
    {
        **TASK_READERS,
        **{
            notification.name: EventReader(get_result_decoder(notification.params), (notification.params,))
            for notification in (
                SETTINGS_EDITOR_RENDER,
                SETTINGS_EDITOR_COMMITTED,
                SETTINGS_EDITOR_CLOSE,
                WIDGET_UPSERT,
                WIDGET_DISMISS,
            )
        },
    }
)
NOTIFICATION_TYPES: Final = frozenset(kind for reader in READERS.values() for kind in reader.types)


class ExtensionStreams:
    """The streams of one extension, and what they share."""

    def __init__(self, revocable_calls: RevocableCalls, loop: Loop, *, turn_timeout: float | None) -> None:
        self.revocable_calls = revocable_calls
        self.loop = loop
        self._turn_timeout = turn_timeout
        self.open: set[ExtensionStream[Any, Any]] = set()
        self._turn = anyio.Semaphore(1)

    async def acquire_turn(self) -> None:
        """Waits until no other stream is open whose events could be mistaken for one's own.

        Raises:
            NotSent: it has not ended within the timeout of a stream, in seconds.
        """
        with anyio.move_on_after(self._turn_timeout):
            await self._turn.acquire()
            return
        raise NotSent("streams whose events cannot be distinguished", 1)

    def release_turn(self) -> None:
        """Lets the next stream begin."""
        self._turn.release()

    def accept_trailing(self, name: str, raw: Raw) -> None:
        """Passes a notification to the streams that it belongs to although they have their response."""
        for stream in tuple(self.open):
            stream.accept_trailing(name, raw)


class ExtensionStream(Generic[E, R]):
    """A call to an extension and its events: `async with notes.invoke_command(...) as stream`, and in it
    `async for event in stream`.

    `stream.result()` returns its result. `dropped` and `skipped` count events, as those of a `CallStream` do."""

    def __init__(
        self,
        streams: ExtensionStreams,
        mapped: MappedStream[E, R],
        *,
        is_marked: bool,
        permission: str | None = None,
        ended: Callable[[R | None, BecketError | None], None] | None = None,
    ) -> None:
        """`is_marked` says whether the link marks each event with the request that it belongs to."""
        self._permission = permission
        self._ended = ended
        self._resend: Callable[[BecketError], Awaitable[ExtensionStream[E, R] | None]] | None = None
        self._resending = anyio.Lock()
        self._adopt(streams, mapped, is_marked)
        self._is_entered = False
        self._is_open = False
        self._has_turn = False
        self._opening = anyio.CancelScope()
        self._error: BecketError | None = None  # the error that the host has ended it with
        self._handlers: list[tuple[tuple[type, ...], EventHandler]] = []
        # events after the response
        self._trailing: deque[E] = deque()
        self._trail_until: float | None = None
        self._has_done_event = False
        self._arrived = anyio.Event()
        self._lost = 0
        self._unread = 0

    def _adopt(self, streams: ExtensionStreams, mapped: MappedStream[E, R], is_marked: bool) -> None:
        self._call = streams, mapped, is_marked
        self._streams = streams
        self._stream = mapped.stream
        self._method = method = mapped.method
        self._params = mapped.params
        self._read = mapped.read
        ends_with_response = method.gather is None  # else the last event ends it, and nothing can come after that
        is_addressed = any(reader.belongs is not None for reader in method.events.values())
        self._is_untagged = ends_with_response and not is_marked
        self._takes_turns = self._is_untagged and not is_addressed
        self._may_trail = ends_with_response and (is_addressed or self._is_untagged)

    @property
    def dropped(self) -> int:
        """How many events were not taken in time."""
        return self._stream.dropped + self._lost

    @property
    def skipped(self) -> int:
        """How many events could not be decoded."""
        return self._stream.skipped + self._unread

    # -- lifecycle

    async def __aenter__(self) -> ExtensionStream[E, R]:
        if self._is_entered:
            raise LocalProtocolError("a run is opened once")
        self._is_entered = True
        try:
            await self._streams.revocable_calls.check(self._method.name, self._permission)
            if self._permission is not None:
                self._streams.revocable_calls.add(self._permission, self)
            with self._opening:  # which `end` leaves: it may wait for its turn, or for room on the link
                await self._open()
            if self._error is not None:
                raise copy(self._error)
        except BaseException as error:
            self._error = self._error or (error if isinstance(error, BecketError) else None)
            await self.__aexit__()
            raise
        return self

    async def _open(self) -> None:
        if self._takes_turns:
            await self._streams.acquire_turn()
            self._has_turn = True
        await self._stream.__aenter__()
        self._is_open = True
        self._streams.open.add(self)

    async def __aexit__(self, *_: object) -> None:
        if self._permission is not None:
            self._streams.revocable_calls.remove(self._permission, self)
        self._streams.open.discard(self)
        was_open, self._is_open = self._is_open, False
        has_response = was_open and self._stream.done()
        ended, self._ended = self._ended, None
        if ended is not None:
            await self._call_ended(ended, has_response)
        if was_open and self._has_turn and not has_response:
            # The extension does not notice that the stream was left, and goes on: its events are not for the next one.
            self._error = self._error or LocalProtocolError(f"{self._method.name}: left before its response arrived")
            self._streams.loop.spawn(self._drain_abandoned())
            return
        await self._stream.__aexit__()
        self._end_turn()

    async def _drain_abandoned(self) -> None:
        try:
            await self._stream.result()
        except BecketError:
            pass
        finally:
            await self._stream.__aexit__()
            self._end_turn()

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._streams.release_turn()

    def end(self, error: BecketError) -> None:
        """Ends the stream with this error, unless it has its response; cancels it at the extension, if that is
        supported."""
        if self._is_open and self._stream.done():
            return
        self._error = self._error or error
        self._opening.cancel()
        if self._is_open:
            self._streams.loop.spawn(self._stream.__aexit__())

    async def _call_ended(self, ended: Callable[[R | None, BecketError | None], None], has_response: bool) -> None:
        if self._error is not None or not has_response:
            ended(None, self._error or LocalProtocolError("left before its response arrived"))
            return
        try:
            result = self._read(await self._stream.result())
        except BecketError as error:
            ended(None, error)
        else:
            ended(result, None)

    # -- retry

    def resend_with(self, resend: Callable[[BecketError], Awaitable[ExtensionStream[E, R] | None]]) -> None:
        """Continues with the stream that `resend` returns for the error of this one, if it returns one; at most
        once."""
        self._resend = resend

    async def _goes_on(self, failed: EventStream[E], error: BecketError) -> bool:
        """Returns whether another call has replaced one that has failed."""
        async with self._resending:  # one task may read the events, and another wait for the response
            resend, self._resend = self._resend, None
            if self._stream is not failed:
                return True
            if resend is None or self._error is not None or not self._is_open:
                return False
            other = await resend(error)
            if other is None:
                return False
            self._streams.open.discard(self)
            await failed.__aexit__()
            self._end_turn()
            self._lost += failed.dropped
            self._unread += failed.skipped
            self._adopt(*other._call)
            self._trail_until, self._has_done_event = None, False
            await self._open()
            return True

    # -- events

    def __aiter__(self) -> AsyncIterator[E | Gap]:
        return self

    async def __anext__(self) -> E | Gap:
        stream = self._stream
        try:
            event = await stream.__anext__()
        except StopAsyncIteration:
            pass
        except BecketError as error:
            if self._error is not None:
                raise copy(self._error) from None
            if await self._goes_on(stream, error):
                return await self.__anext__()
            raise
        else:
            if isinstance(event, DONE_EVENTS):
                self._has_done_event = True
            return event
        await self._wait_trailing()
        if not self._trailing:
            self._may_trail = False
            raise StopAsyncIteration
        return self._trailing.popleft()

    async def batches(self) -> AsyncIterator[list[E | Gap]]:
        """Yields lists of all events since the last one: the cheapest way to consume many."""
        async for event in self:
            yield [event, *self.batch_nowait()]

    def batch_nowait(self) -> list[E | Gap]:
        """Returns the buffered events, without waiting."""
        ready: list[E | Gap] = self._stream.batch_nowait()
        if ready and isinstance(ready[-1], DONE_EVENTS):
            self._has_done_event = True
        if self._stream.done():
            ready += self._trailing
            self._trailing.clear()
        return ready

    @overload
    def on(self, kind: type[K], /) -> Callable[[Callable[[K], Any]], Callable[[K], Any]]: ...

    @overload
    def on(self, kind: type[K], other: type[K2], /) -> Callable[[Callable[[K | K2], Any]], Callable[[K | K2], Any]]: ...

    @overload
    def on(self, *kinds: type[Any]) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]: ...

    def on(self, *kinds: type[Any]) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        """Registers the decorated function, plain or `async def`, for events of these classes.

        `result` calls it with the events, in order. An event goes to all functions registered for its class.

        Raises:
            TypeError: there are no such events in this stream.
        """
        known = [*(kind for reader in self._method.events.values() for kind in reader.types), Gap]
        for kind in kinds:
            if not any(issubclass(event, kind) for event in known):
                names = ", ".join(sorted({event.__name__ for event in known}))
                raise TypeError(f"a run of {self._method.name} has no `{kind.__name__}`; it has: {names}")

        def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            self._handlers.append((kinds, EventHandler(function)))
            return function

        return register

    async def result(self) -> R:
        """Returns the result. Unread events go to the functions of `on`, or are dropped.

        Raises:
            PermissionDenied: the extension has lost the permission of this stream.
            RemoteError, CallTimeout, ConnectionLost, StreamOverrun, BadReply: as for any call.
        """
        if self._handlers and self._is_open:
            async for event in self:
                await self._dispatch(event)
        if self._error is not None:
            raise copy(self._error)
        stream = self._stream
        try:
            return self._read(await stream.result())
        except BecketError as error:
            if self._error is not None:
                raise copy(self._error) from None
            if await self._goes_on(stream, error):
                return await self.result()
            raise

    async def _dispatch(self, event: E | Gap) -> None:
        for kinds, handler in self._handlers:
            if isinstance(event, kinds):
                outcome = handler.function(*((event,) if handler.arity else ()))
                if handler.is_async:
                    await outcome

    # -- events after the response

    def accept_trailing(self, name: str, raw: Raw) -> None:
        """Handles a notification that came after the response, if it is for this stream."""
        reader = self._method.events.get(name)
        if reader is None or not self._may_trail or not self._is_open or not self._stream.done():
            return
        if reader.belongs is not None and not reader.belongs(raw, self._params):
            return
        if len(self._trailing) >= MAX_TRAILING:
            self._lost += 1
            return
        try:
            event = reader.decode(raw)
        except JSON_ERRORS:
            self._unread += 1
            return
        self._has_done_event = self._has_done_event or isinstance(event, DONE_EVENTS)
        self._trailing.append(event)
        self._arrived.set()

    async def _wait_trailing(self) -> None:
        if self._trailing or not self._is_untagged or not self._may_trail or self._has_done_event:
            return
        if self._trail_until is None:
            self._trail_until = anyio.current_time() + TRAIL_GRACE
        self._arrived = anyio.Event()
        with anyio.move_on_after(max(0.0, self._trail_until - anyio.current_time())):
            await self._arrived.wait()

    take_ready = RenamedMember("batch_nowait")


# -- notifications


class ExtensionNotifications:
    """The notifications of one extension: all of those that functions may subscribe to, and the late ones of
    streams."""

    def __init__(self, streams: ExtensionStreams) -> None:
        self.skipped = 0
        self._streams = streams
        self._handlers: list[tuple[tuple[type, ...], EventHandler]] = []

    def register(self, methods: Registry) -> None:
        """Adds a handler for each of them. Those without functions are handled only if no running call receives them: a
        stream of such events stays on the fast path."""
        for name in {*READERS, *COMMAND_INVOKE.events, *PROVIDER_STREAM.events}:
            methods.on(name, unless_streamed=name not in READERS)(self._handler(name))

    def _handler(self, name: str) -> Callable[[Raw, BaseContext], None]:
        def take(params: Raw, ctx: BaseContext) -> None:
            if not ctx.is_streamed:
                self._streams.accept_trailing(name, params)
            if self._handlers and name in READERS:
                self._dispatch(READERS[name], params)

        return take

    def _dispatch(self, reader: EventReader[Any], raw: Raw) -> None:
        try:
            event = reader.decode(raw)
        except JSON_ERRORS:
            self.skipped += 1
            return
        for kinds, handler in tuple(self._handlers):
            if isinstance(event, kinds):
                try:
                    handler.function(*((event,) if handler.arity else ()))
                except Exception:  # the others receive it all the same
                    host_logger().exception("a function for `%s` failed", type(event).__name__)

    def add(self, kinds: tuple[type, ...], handler: EventHandler) -> None:
        """Calls a handler with notifications of these classes."""
        self._handlers.append((kinds, handler))


def check_notification_types(kinds: Iterable[type]) -> None:
    """Raises TypeError for a class without notifications."""
    for kind in kinds:
        if kind not in NOTIFICATION_TYPES:
            known = ", ".join(sorted(known.__name__ for known in NOTIFICATION_TYPES))
            raise TypeError(f"an extension sends no `{kind.__name__}` to functions of `on`, only: {known}")


def build_notification_handler(function: Callable[..., Any]) -> EventHandler:
    """Returns a handler that calls a plain function. Raises TypeError for one that is `async def`."""
    handler = EventHandler(function)
    if handler.is_async:
        raise TypeError(f"{handler.function!r} is `async def`: functions of `on` must be plain")
    return handler
