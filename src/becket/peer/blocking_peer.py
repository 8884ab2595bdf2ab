"""Provides BlockingPeer and BlockingContext for programs without an event loop.

Link, connection, streams and rules are those of `Peer`; only the loop differs. A plain handler runs in the reading
thread, or in a worker if it was registered with `thread`; it may call back.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from becket._deprecated import RenamedMember
from becket.dialects import PLAIN, Dialect, find_dialect
from becket.errors import ConnectionLost, NotSupported, StartFailed
from becket.framing.framing import FramingFactory
from becket.limits import Limits
from becket.methods.descriptors import Method, Notification
from becket.methods.registry import F, Handler, Registry
from becket.peer.context import BaseContext
from becket.peer.inbound import Inbound
from becket.peer.link import Link
from becket.peer.loops.thread_loop import ThreadLoop
from becket.peer.outbound import (
    READY,
    UNSET,
    BatchCall,
    BatchNotify,
    Outbound,
    Unset,
    encode_notification,
    resolve_timeout,
    wait_drained,
)

if TYPE_CHECKING:
    from becket.jsonrpc.budget import SharedBudget
    from becket.methods.decorators import NotificationHandlerDecorator, SyncHandlerDecorator
    from becket.methods.streams import Stream
    from becket.peer.blocking_calls import BlockingStream, PendingCall
    from becket.peer.options import BeginOptions, CallOptions, PeerOptions, StreamOptions
    from becket.peer.permission_check import AskCallback
    from becket.peer.protocols import Transport
    from becket.peer.streams import Overflow
    from becket.peer.transport.child_process import ChildProcess
    from becket.permissions.gate import Gate

__all__ = ["BlockingContext", "BlockingPeer", "connect_process", "connect_stdio"]

E = TypeVar("E")
P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


def connect_process(
    command: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    inherit_env: bool | None = False,
    cwd: str | os.PathLike[str] | None = None,
    on_stderr: Callable[[str], None] | None = None,
    name: str | None = None,
    guard: bool = False,
    **options: Unpack[PeerOptions],
) -> BlockingPeer:
    """Starts a program and returns a peer connected to it: `with connect_process(cmd) as peer: peer.call(...)`.

    Reading starts with the first call, `listen` or `serve`: handlers registered before that miss nothing. With `guard`
    the program is killed when this process is gone. See `Peer.connect_process`.

    Raises:
        StartFailed: the program cannot be started.
        NotSupported: `guard` is given on a system without support for it.
    """
    try:
        from becket.peer.transport.child_process import log_stderr, normalize_command, open_child
        from becket.peer.transport.child_transport import ChildTransport
    except OSError as error:  # no descriptor left to import the module
        raise StartFailed(str(command[0]), f"the code that starts programs cannot be imported: {error}") from error

    limits = options.get("limits") or find_dialect(options.get("dialect", PLAIN)).limits
    arguments = normalize_command(command)
    label = name or os.path.basename(arguments[0])
    child, pipes = open_child(
        arguments,
        env=env,
        inherit_env=inherit_env,
        cwd=cwd,
        on_stderr=on_stderr or log_stderr(label),
        limits=limits,
        guard=guard,
    )
    transport = ChildTransport(child, pipes, limits)
    return BlockingPeer(transport, name=label, listens_when_used=True, **options)


def connect_stdio(
    *,
    name: str = "host",
    **options: Unpack[PeerOptions],
) -> BlockingPeer:
    """Takes over this program's stdin and stdout: `with connect_stdio(methods=methods) as peer: peer.serve()`.

    Reading starts with `serve`, `listen` or the first call: handlers registered before that miss nothing. If a handler
    has not returned shortly after the end of stdin, the program and its session are ended."""
    return BlockingPeer.over_stdio(name=name, **options)


class BlockingPeer:
    """One end of a link, for threads. The methods are those of `Peer`, without `await`."""

    def __init__(
        self,
        transport: Transport,
        *,
        dialect: Dialect | str = PLAIN,
        framing: FramingFactory | None = None,
        methods: Registry | None = None,
        limits: Limits | None = None,
        gate: Gate | None = None,
        ask: AskCallback | None = None,
        budget: SharedBudget | None = None,
        name: str = "peer",
        listens_when_used: bool = False,
    ) -> None:
        self._starts_reader_on_use = listens_when_used
        self.name = name
        self.methods: Registry = Registry() if methods is None else Registry().including(methods)
        self._loop = ThreadLoop()
        try:
            resolved = find_dialect(dialect)
            for handler in self.methods.handlers():
                check_not_async(handler)
            connection = resolved.build_connection(limits or resolved.limits, framing, budget)
            self._link = Link(self._loop, transport, resolved, connection, name=name)
            self._outbound = Outbound(self._link)
            self._loop.before_wait = self._link.before_wait
            self._loop.flush = self._link.flush
            with self._loop.locked():
                inbound = Inbound(self._link, self._outbound, self.methods, self, BlockingContext, gate=gate, ask=ask)
                self._link.start(inbound)
        except BaseException:  # an async handler, an unknown dialect, an invalid framing
            transport.close()
            self._loop.close()
            self._loop.join()
            raise

    @classmethod
    def over_stdio(cls, **options: Any) -> BlockingPeer:
        """Returns a peer over this program's stdin and stdout, with a watchdog. See `connect_stdio`."""
        from becket.peer.transport.stdio import open_stdio_transport
        from becket.peer.watchdog import watch_host

        transport = open_stdio_transport()
        peer = cls(transport, **options)
        watch_host(transport.read_fd, peer.observe_handlers)
        return peer

    # -- calling

    @overload
    def call(self, method: Method[None, R], params: None = None, **options: Unpack[CallOptions]) -> R: ...

    @overload
    def call(self, method: Method[P, R], params: P, **options: Unpack[CallOptions]) -> R: ...

    @overload
    def call(self, method: str, params: object = None, *, returns: type[T], **options: Unpack[CallOptions]) -> T: ...

    @overload
    def call(self, method: str, params: object = None, **options: Unpack[CallOptions]) -> Any: ...

    @overload  # as in `Peer.call`
    def call(  # type: ignore[overload-cannot-match]  # pyright: ignore[reportOverlappingOverload]
        self, method: str, params: object = None, *, returns: type[object], **options: Unpack[CallOptions]
    ) -> object: ...

    @overload
    def call(  # pyright: ignore[reportOverlappingOverload]
        self, method: str, params: object = None, *, returns: Any, **options: Unpack[CallOptions]
    ) -> Any: ...

    def call(
        self,
        method: str | Method[Any, Any],
        params: object = None,
        *,
        timeout: float | Unset | None = UNSET,
        returns: Any = Any,
        on: Mapping[str, Callable[..., Any]] | None = None,
        on_progress: Callable[..., Any] | None = None,
    ) -> Any:
        """Calls a method of the other peer and returns its result. Raises what `Peer.call` raises."""
        if self._starts_reader_on_use:
            self._start_reader()
        return self._loop.run(self._outbound.call(method, params, timeout, returns, on, on_progress))

    @overload
    def begin(
        self, method: Method[None, R], params: None = None, **options: Unpack[BeginOptions]
    ) -> PendingCall[R]: ...

    @overload
    def begin(self, method: Method[P, R], params: P, **options: Unpack[BeginOptions]) -> PendingCall[R]: ...

    @overload
    def begin(
        self, method: str, params: object = None, *, returns: type[T], **options: Unpack[BeginOptions]
    ) -> PendingCall[T]: ...

    @overload
    def begin(self, method: str, params: object = None, **options: Unpack[BeginOptions]) -> PendingCall[Any]: ...

    @overload
    def begin(  # type: ignore[overload-cannot-match]  # pyright: ignore[reportOverlappingOverload]
        self, method: str, params: object = None, *, returns: type[object], **options: Unpack[BeginOptions]
    ) -> PendingCall[object]: ...

    @overload
    def begin(  # pyright: ignore[reportOverlappingOverload]
        self, method: str, params: object = None, *, returns: Any, **options: Unpack[BeginOptions]
    ) -> PendingCall[Any]: ...

    def begin(
        self,
        method: str | Method[Any, Any],
        params: object = None,
        *,
        timeout: float | Unset | None = UNSET,
        returns: Any = Any,
    ) -> PendingCall[Any]:
        """Sends a call and returns at once, so that a thread can have many in flight: take `result()` later."""
        if self._starts_reader_on_use:
            self._start_reader()
        name = method if isinstance(method, str) else method.name
        from becket.peer.blocking_calls import PendingCall

        return PendingCall(self._loop, name, self._outbound.call(method, params, timeout, returns))

    @overload
    def stream(
        self, method: Stream[None, R, E], params: None = None, **options: Unpack[StreamOptions]
    ) -> BlockingStream[E, R]: ...

    @overload
    def stream(self, method: Stream[P, R, E], params: P, **options: Unpack[StreamOptions]) -> BlockingStream[E, R]: ...

    @overload
    def stream(
        self,
        method: str,
        params: object = None,
        *,
        events: Mapping[str, Any] | None = None,
        returns: Any = Any,
        **options: Unpack[StreamOptions],
    ) -> BlockingStream[Any, Any]: ...

    def stream(
        self,
        method: str | Stream[Any, Any, Any],
        params: object = None,
        *,
        events: Mapping[str, Any] | None = None,
        progress: Any = None,
        returns: Any = Any,
        timeout: float | Unset | None = UNSET,
        idle_timeout: float | Unset | None = UNSET,
        overflow: Overflow | None = None,
        pause_connection: bool = False,
    ) -> BlockingStream[Any, Any]:
        """Opens a call together with its events: `with peer.stream(...) as run: for event in run: ...`."""
        if self._starts_reader_on_use:
            self._start_reader()
        stream = self._outbound.stream(
            method,
            params,
            events=events,
            progress=progress,
            returns=returns,
            timeout=timeout,
            idle_timeout=idle_timeout,
            overflow=overflow,
            pause_connection=pause_connection,
        )
        from becket.peer.blocking_calls import BlockingStream

        return BlockingStream(self._loop, stream)

    def batch(self, members: Sequence[BatchCall | BatchNotify], *, timeout: float | Unset | None = UNSET) -> list[Any]:
        """Sends calls and notifications in one frame; returns for each call its result or the error it would raise."""
        if self._starts_reader_on_use:
            self._start_reader()
        return self._loop.run(self._outbound.batch(members, resolve_timeout(timeout, self._link.limits)))

    @overload
    def notify(self, method: Notification[None], params: None = None) -> None: ...

    @overload
    def notify(self, method: Notification[P], params: P) -> None: ...

    @overload
    def notify(self, method: str, params: object = None) -> None: ...

    def notify(self, method: str | Notification[Any], params: object = None) -> None:
        """Sends a notification; waits only while the send queue is full."""
        if self._starts_reader_on_use:
            self._start_reader()
        self.send_and_wait(self._outbound.notify, method, params)

    def send_and_wait(self, send: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Sends a message, and waits only if sending returned something to wait for."""
        loop = self._loop
        # A function that runs where its request arrived holds the lock.
        waits = send(*arguments) if loop.owns_lock() else loop.call_locked(send, *arguments)
        if waits is not READY:
            loop.run(cast("Coroutine[Any, Any, None]", waits))

    def call_locked(self, function: Callable[..., T], *arguments: object) -> T:
        """Calls a function of the link under the link's lock."""
        return self._loop.call_locked(function, *arguments)

    def drain(self) -> None:
        """Waits until the other peer has read most of what was sent."""
        self._loop.run(wait_drained(self._link))

    def ping(self, *, timeout: float = 5.0) -> None:
        """Checks that the other peer reads. Raises what `Peer.ping` raises."""
        method = self._link.dialect.ping
        if method is None or "ping" not in self._link.features:
            raise NotSupported("ping", "the peers have not agreed on it")
        self.call(method, timeout=timeout)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine that waits for this link alone."""
        return self._loop.run(coroutine)

    # -- serving

    @overload
    def handle(self, method: str, *, thread: bool = False) -> Callable[[F], F]: ...

    @overload
    def handle(self, method: Method[P, R], *, thread: bool = False) -> SyncHandlerDecorator[P, R]: ...

    def handle(self, method: str | Method[Any, Any], *, thread: bool = False) -> Callable[..., Any]:
        """Registers the decorated plain function for this method; with `thread` it runs in a worker."""
        return self._checked_registration(self.methods.handle(method, thread=thread), method)

    def handle_unknown(self, *, thread: bool = False) -> Callable[[F], F]:
        """Registers the decorated plain function for requests of all methods that have no handler."""

        def register(function: F) -> F:
            check_not_async(Handler("unknown method", function, thread=False, notifications=False))
            return self.methods.handle_unknown(thread=thread)(function)

        return register

    @overload
    def on(self, notification: str, *, thread: bool = False) -> Callable[[F], F]: ...

    @overload
    def on(self, notification: Notification[P], *, thread: bool = False) -> NotificationHandlerDecorator[P]: ...

    def on(self, notification: str | Notification[Any], *, thread: bool = False) -> Callable[..., Any]:
        """Registers the decorated plain function for this notification."""
        return self._checked_registration(self.methods.on(notification, thread=thread), notification)

    def _checked_registration(
        self, register: Callable[..., Any], method: str | Method[Any, Any] | Notification[Any]
    ) -> Callable[[F], F]:
        name = method if isinstance(method, str) else method.name

        def check(function: F) -> F:
            register(function)
            handler = self.methods.get(name)
            assert handler is not None
            try:
                check_not_async(handler)
            except TypeError:
                self.methods.remove(name)
                raise
            return function

        return check

    def listen(self) -> None:
        """Reads in a background thread while no other one waits for the link. The first call to a process starts it
        too."""
        self._loop.start_background()

    def _start_reader(self) -> None:
        self._starts_reader_on_use = False
        self.listen()

    def add_reader(self, fd: int, function: Callable[[], object]) -> None:
        """Calls a function in the thread that reads whenever this descriptor can be read, too."""
        self.call_locked(self._loop.add_reader, fd, function)

    def serve(self) -> ConnectionLost:
        """Serves the other peer in this thread until the link has ended; returns why."""
        return self.wait_closed()

    # -- the end

    @property
    def is_closed(self) -> bool:
        """Whether the link has ended."""
        return self._link.close_reason is not None

    @property
    def close_reason(self) -> ConnectionLost | None:
        """Why the link ended; None while it is open."""
        return self._link.close_reason

    @property
    def process(self) -> ChildProcess | None:
        """The child process, if there is one."""
        return getattr(self._link.transport, "child", None)

    @property
    def features(self) -> frozenset[str]:
        """The optional features of the dialect that both peers use."""
        return self._link.features

    def limit_features(self, features: Iterable[str]) -> None:
        """Restricts the optional features to those that both peers have announced."""
        self._link.limit_features(features)

    def observe_handlers(self) -> Callable[[], bool]:
        """Returns a function that reports later, from any thread, whether a handler that runs now has not returned."""
        from becket.peer.watchdog import observe_link

        return observe_link(self._link)

    def wait_closed(self) -> ConnectionLost:
        """Waits until either peer has ended the link, and returns why."""
        return self._loop.run(self._link.wait_closed())

    def close(self) -> None:
        """Ends the link and its process. May be called from any thread, at any time, and twice."""
        if not self._link.is_transport_closed:
            self._loop.run(self._link.aclose())
        with self._loop.locked():
            self._loop.close()
        self._loop.join()

    def __enter__(self) -> BlockingPeer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "open" if self._link.close_reason is None else self._link.close_reason.reason.value
        return f"<BlockingPeer {self.name} ({self._link.dialect.name}): {state}>"

    agree = RenamedMember("limit_features")


class BlockingContext(BaseContext):
    """The second argument of a handler in the blocking runtime."""

    __slots__ = ()

    @property
    def peer(self) -> BlockingPeer:
        """The peer that sent the request, for calls back."""
        peer: BlockingPeer = self._inbound.peer
        return peer

    def respond(self, result: object = None) -> None:
        """Sends the response now, while the handler goes on. See `Context.respond`.

        A handler that goes on for long belongs in a thread of its own: elsewhere it keeps the link from being read."""
        self.peer.call_locked(self._inbound.respond, self.method, self._request, result)

    def progress(self, value: object) -> None:
        """Sends progress of this call; waits while the send queue is full."""
        self.peer.send_and_wait(self._inbound.send_progress, self.method, self._request, value)

    @overload
    def notify(self, method: Notification[None], params: None = None) -> None: ...

    @overload
    def notify(self, method: Notification[P], params: P) -> None: ...

    @overload
    def notify(self, method: str, params: object = None) -> None: ...

    def notify(self, method: str | Notification[Any], params: object = None) -> None:
        """Sends a notification that belongs to this call."""
        name, encoded = encode_notification(method, params)
        self.peer.send_and_wait(self._inbound.send_event, self._request, name, encoded)

    @overload
    def call(self, method: Method[None, R], params: None = None, **options: Unpack[CallOptions]) -> R: ...

    @overload
    def call(self, method: Method[P, R], params: P, **options: Unpack[CallOptions]) -> R: ...

    @overload
    def call(self, method: str, params: object = None, *, returns: type[T], **options: Unpack[CallOptions]) -> T: ...

    @overload
    def call(
        self, method: str, params: object = None, *, returns: Any = Any, **options: Unpack[CallOptions]
    ) -> Any: ...

    def call(self, method: Any, params: Any = None, **options: Any) -> Any:
        """Calls the caller back as part of this request. Same as `ctx.peer.call`."""
        return self.peer.call(method, params, **options)

    answer = RenamedMember("respond")


def check_not_async(handler: Handler) -> None:
    """Raises TypeError for a handler that the blocking runtime cannot run."""
    if handler.is_async:
        raise TypeError(f"the handler of {handler.name!r} is `async def`: the blocking runtime needs a plain function")
