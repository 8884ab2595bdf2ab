"""Provides Peer, one end of a JSON-RPC connection that calls and serves at once.

A façade: calls are in `outbound`, handlers in `inbound`, events in `streams`, bytes and the end in `link`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from becket._deprecated import RenamedMember
from becket.dialects import PLAIN, Dialect, find_dialect
from becket.errors import BecketError, ConnectionLost, NotSupported, StartFailed
from becket.framing.framing import FramingFactory
from becket.limits import Limits
from becket.methods.descriptors import Method, Notification
from becket.methods.registry import F, Registry
from becket.peer.inbound import Inbound
from becket.peer.link import Link
from becket.peer.loops.async_loops import current_loop, loop_for_start
from becket.peer.outbound import UNSET, BatchCall, BatchNotify, Outbound, Unset, resolve_timeout, wait_drained
from becket.peer.transport.stream import StreamTransport

if TYPE_CHECKING:
    from becket.jsonrpc.budget import SharedBudget
    from becket.methods.decorators import HandlerDecorator, NotificationHandlerDecorator
    from becket.methods.streams import Stream
    from becket.peer.options import CallOptions, PeerOptions, StreamOptions
    from becket.peer.permission_check import AskCallback
    from becket.peer.protocols import ByteStream, Loop, Transport
    from becket.peer.streams import CallStream, Overflow
    from becket.peer.transport.child_process import ChildProcess
    from becket.permissions.gate import Gate

__all__ = ["Peer", "PeerConnector"]

E = TypeVar("E")
P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


class Peer:
    """One end of a link: calls the other peer, and serves its calls. Created by its `connect_*` methods and by
    `over`."""

    def __init__(
        self,
        loop: Loop,
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
    ) -> None:
        try:
            resolved = find_dialect(dialect)
            self.name = name
            self.methods: Registry = Registry() if methods is None else methods.copy()
            connection = resolved.build_connection(limits or resolved.limits, framing, budget)
            self._link = Link(loop, transport, resolved, connection, name=name)
            self._outbound = Outbound(self._link)
            self._link.start(Inbound(self._link, self._outbound, self.methods, self, gate=gate, ask=ask))
        except BaseException:  # an unknown dialect, an invalid framing
            transport.close()
            loop.close()
            raise

    # -- opening

    @classmethod
    def connect_process(
        cls,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool | None = False,
        cwd: str | os.PathLike[str] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        name: str | None = None,
        guard: bool = False,
        loop: Loop | None = None,
        **options: Unpack[PeerOptions],
    ) -> PeerConnector:
        """Starts a program and connects to it over its stdin and stdout; closing the peer ends the program.

        The program's environment is a short list of variables and `env`; with `inherit_env` all variables and `env`,
        and with None `env` alone. Its stderr is passed line by line to `on_stderr` (default: the log); the error of a
        crash holds its last lines.

        With `guard` a small process beside this one kills the program and its session when this one is gone, even by
        SIGKILL. Without it a becket program then ends by itself, and one that does not read its stdin keeps running.
        `loop` must have been created for this link alone, and ends with it.

        Raises:
            StartFailed: the program cannot be started; mostly when entered or awaited.
            NotSupported: likewise, if `guard` is given on a system without support for it.
        """
        try:
            from becket.peer.transport.child_process import log_stderr, normalize_command, open_child
            from becket.peer.transport.child_transport import ChildTransport
        except OSError as error:  # no descriptor left to import the module
            raise StartFailed(str(command[0]), f"the code that starts programs cannot be imported: {error}") from error

        limits = options.get("limits") or find_dialect(options.get("dialect", PLAIN)).limits
        arguments = normalize_command(command)
        label = name or os.path.basename(arguments[0])

        async def connect() -> Peer:
            its_loop = loop or await loop_for_start(arguments[0])
            try:
                child, pipes = open_child(
                    arguments,
                    env=env,
                    inherit_env=inherit_env,
                    cwd=cwd,
                    on_stderr=on_stderr or log_stderr(label),
                    limits=limits,
                    guard=guard,
                )
            except BaseException:
                its_loop.close()
                raise
            transport = ChildTransport(child, pipes, limits)
            return cls(its_loop, transport, name=label, **options)

        return PeerConnector(connect)

    @classmethod
    def connect_stdio(
        cls,
        *,
        name: str = "host",
        **options: Unpack[PeerOptions],
    ) -> PeerConnector:
        """Connects over this program's own stdin and stdout, which it takes over: `print` then writes to stderr.

        If a handler has not returned shortly after the end of stdin, the program and its session are ended."""

        async def connect() -> Peer:
            from becket.peer.transport.stdio import open_stdio_transport
            from becket.peer.watchdog import watch_host

            transport = open_stdio_transport()
            loop = await current_loop()
            peer = cls(loop, transport, name=name, **options)
            watch_host(transport.read_fd, peer.observe_handlers)
            return peer

        return PeerConnector(connect)

    @classmethod
    def connect_tcp(
        cls,
        host: str,
        port: int,
        *,
        name: str | None = None,
        **options: Unpack[PeerOptions],
    ) -> PeerConnector:
        """Connects to a listening TCP socket.

        Raises:
            OSError: nothing listens there; raised when entered or awaited.
        """

        async def connect() -> Peer:
            from becket.peer.transport.sockets import connect_tcp

            transport = await connect_tcp(host, port)
            loop = await current_loop()
            label = name or f"{host}:{port}"
            return cls(loop, transport, name=label, **options)

        return PeerConnector(connect)

    @classmethod
    def connect_unix(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        **options: Unpack[PeerOptions],
    ) -> PeerConnector:
        """Connects to a listening unix socket.

        Raises:
            OSError: nothing listens there; raised when entered or awaited.
        """

        async def connect() -> Peer:
            from becket.peer.transport.sockets import connect_unix

            transport = await connect_unix(path)
            loop = await current_loop()
            label = name or os.fspath(path)
            return cls(loop, transport, name=label, **options)

        return PeerConnector(connect)

    @classmethod
    def over(
        cls,
        transport: Transport | ByteStream,
        *,
        name: str = "peer",
        loop: Loop | None = None,
        **options: Unpack[PeerOptions],
    ) -> PeerConnector:
        """Connects over a byte stream of anyio (or a similar object), or over one of becket's transports.

        `loop` must have been created for this link alone, and ends with it."""

        async def connect() -> Peer:
            is_ours = getattr(transport, "start", None) is not None
            chosen = cast("Transport", transport) if is_ours else StreamTransport(cast("ByteStream", transport))
            return cls(loop or await current_loop(), chosen, name=name, **options)

        return PeerConnector(connect)

    # -- calling

    @overload
    def call(
        self, method: Method[None, R], params: None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, R]: ...

    @overload
    def call(self, method: Method[P, R], params: P, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, R]: ...

    @overload
    def call(
        self, method: str, params: object = None, *, returns: type[T], **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def call(self, method: str, params: object = None, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, Any]: ...

    @overload  # for mypy: an assignment to a type other than the class must not fall through to the last overload
    def call(  # type: ignore[overload-cannot-match]  # pyright: ignore[reportOverlappingOverload]
        self, method: str, params: object = None, *, returns: type[object], **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, object]: ...

    @overload  # a union, for example, is no class: a type checker cannot infer it from the value
    def call(  # pyright: ignore[reportOverlappingOverload]
        self, method: str, params: object = None, *, returns: Any, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, Any]: ...

    def call(
        self,
        method: str | Method[Any, Any],
        params: object = None,
        *,
        timeout: float | Unset | None = UNSET,
        returns: Any = Any,
        on: Mapping[str, Callable[..., Any]] | None = None,
        on_progress: Callable[..., Any] | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Calls a method of the other peer and returns its result, decoded to `returns` or to its descriptor's type.

        Leaving the scope cancels the call at both ends. `on` maps notifications that belong to this call to functions
        (`def on_tick(event: Tick)`), subscribed before the request is sent; `on_progress` receives the call's progress.

        Raises:
            RemoteError: the other peer responded with an error.
            CallTimeout: no response within `timeout` seconds (default: the descriptor's, or 60; None: no limit).
            ConnectionLost: the link has ended; `PeerCrashed` with the details of a process.
            NotSent: it was not sent, because the other peer does not read or too many calls are in flight.
            BadReply: the result cannot be decoded.
            LocalProtocolError: the params cannot be encoded, or are too large for a frame.
        """
        return self._outbound.call(method, params, timeout, returns, on, on_progress)

    def call_in_group(
        self, group: str, method: str | Method[Any, Any], params: object, returns: Any, timeout: float | Unset | None
    ) -> Coroutine[Any, Any, Any]:
        """Makes a call that `end_calls` can end together with the others of its group; otherwise like `call`."""
        return self._outbound.call(method, params, timeout, returns, None, None, group)

    def end_calls(self, group: str, build_error: Callable[[], BecketError]) -> None:
        """Ends the calls and streams of a group, each with an error of its own, and cancels them at the other peer."""
        self._link.end_calls(group, build_error)

    @overload
    def stream(
        self, method: Stream[None, R, E], params: None = None, **options: Unpack[StreamOptions]
    ) -> CallStream[E, R]: ...

    @overload
    def stream(self, method: Stream[P, R, E], params: P, **options: Unpack[StreamOptions]) -> CallStream[E, R]: ...

    @overload
    def stream(
        self,
        method: str,
        params: object = None,
        *,
        events: Mapping[str, Any] | None = None,
        returns: Any = Any,
        **options: Unpack[StreamOptions],
    ) -> CallStream[Any, Any]: ...

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
    ) -> CallStream[Any, Any]:
        """Opens a call together with its events: those of its descriptor, of `events` (name to type), or its progress.

        `progress` is the type of its progress values; with it they are received beside the events.

        It ends when `idle_timeout` (60 s by default) passes without an event. A consumer that is too slow gets
        `StreamOverrun`, or a `Gap` with `Overflow.DROP_OLDEST`. With `pause_connection` reading of the whole link
        pauses instead, including responses to other calls: unsafe where calls are nested.
        """
        return self._outbound.stream(
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

    def batch(
        self, members: Sequence[BatchCall | BatchNotify], *, timeout: float | Unset | None = UNSET
    ) -> Coroutine[Any, Any, list[Any]]:
        """Sends calls and notifications in one frame; returns for each call its result or the error it would raise.

        Many programs do not support batches: use it only with a peer that is known to."""
        return self._outbound.batch(members, resolve_timeout(timeout, self._link.limits))

    @overload
    def notify(self, method: Notification[None], params: None = None) -> Coroutine[Any, Any, None]: ...

    @overload
    def notify(self, method: Notification[P], params: P) -> Coroutine[Any, Any, None]: ...

    @overload
    def notify(self, method: str, params: object = None) -> Coroutine[Any, Any, None]: ...

    def notify(self, method: str | Notification[Any], params: object = None) -> Coroutine[Any, Any, None]:
        """Sends a notification when called; awaiting it waits while the send queue is full.

        Raises:
            ConnectionLost: the link has ended.
            NotSent: the other peer has not read for a minute.
        """
        return self._outbound.notify(method, params)

    @overload
    def notify_nowait(self, method: Notification[None], params: None = None) -> None: ...

    @overload
    def notify_nowait(self, method: Notification[P], params: P) -> None: ...

    @overload
    def notify_nowait(self, method: str, params: object = None) -> None: ...

    def notify_nowait(self, method: str | Notification[Any], params: object = None) -> None:
        """Sends a notification without waiting.

        Raises:
            ConnectionLost: the link has ended.
            NotSent: the send queue is full.
        """
        self._outbound.notify_nowait(method, params)

    async def drain(self) -> None:
        """Waits until the other peer has read most of what was sent."""
        await wait_drained(self._link)

    async def ping(self, *, timeout: float = 5.0) -> None:
        """Checks that the other peer reads; its reader responds, never a handler.

        Raises:
            NotSupported: the peers have not agreed on pings.
            CallTimeout: it does not read.
        """
        await self.call(self._ping_method(), timeout=timeout)

    def ping_nowait(self) -> None:
        """Sends a ping and waits for nothing: the response updates `last_received_at`.

        Raises:
            NotSupported: the peers have not agreed on pings.
            ConnectionLost: the link has ended.
        """
        self._outbound.ping_aside(self._ping_method())

    def _ping_method(self) -> str:
        method = self._link.dialect.ping
        if method is None or "ping" not in self._link.features:
            raise NotSupported("ping", "the peers have not agreed on it")
        return method

    # -- serving

    @overload
    def handle(self, method: str, *, thread: bool = False) -> Callable[[F], F]: ...

    @overload
    def handle(self, method: Method[P, R], *, thread: bool = False) -> HandlerDecorator[P, R]: ...

    def handle(self, method: str | Method[Any, Any], *, thread: bool = False) -> Callable[..., Any]:
        """Registers the decorated function for this method: `()`, `(params)` or `(params, ctx)`.

        A plain `def` runs inline and must return within 50 ms; with `thread` it runs in a worker. The params are
        decoded strictly to their annotation or the descriptor's type. A handler that is registered before the first
        `await` after connecting misses nothing."""
        return self.methods.handle(method, thread=thread)

    def handle_unknown(self, *, thread: bool = False) -> Callable[[F], F]:
        """Registers the decorated function for requests of all methods without a handler; `ctx.method` is the name.

        Without it such a request gets the error "unknown method"."""
        return self.methods.handle_unknown(thread=thread)

    @overload
    def on(self, notification: str, *, thread: bool = False) -> Callable[[F], F]: ...

    @overload
    def on(self, notification: Notification[P], *, thread: bool = False) -> NotificationHandlerDecorator[P]: ...

    def on(self, notification: str | Notification[Any], *, thread: bool = False) -> Callable[..., Any]:
        """Registers the decorated function for this notification. Notifications are handled one at a time, in order."""
        return self.methods.on(notification, thread=thread)

    def observe_frames(self, observe: Callable[[bool, bytes], object]) -> Callable[[], None]:
        """Calls `observe(is_inbound, body)` for each frame from now on; returns a function that stops it.

        It runs within the link's own turn: it must be quick and must not raise."""
        from becket.peer.frame_observer import tap

        return tap(self._link, observe)

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
    def last_received_at(self) -> float:
        """When the last bytes of the other peer arrived, on the loop's clock; 0 before the first."""
        return self._link.connection.last_received

    @property
    def received(self) -> int:
        """How many frames have arrived, of any kind."""
        return self._link.connection.framing.frames

    @property
    def in_flight(self) -> int:
        """How many calls are pending, of both peers together."""
        return len(self._link.connection.calls) + len(self._link.connection.requests)

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

    def add_close_callback(self, callback: Callable[[], object]) -> None:
        """Calls a plain function when the link ends, or now if it has ended. It must neither wait nor raise."""
        self._link.add_close_callback(callback)

    def remove_close_callback(self, callback: Callable[[], object]) -> None:
        """Removes a close callback."""
        self._link.remove_close_callback(callback)

    async def wait_closed(self) -> ConnectionLost:
        """Waits until either peer has ended the link, and returns why."""
        return await self._link.wait_closed()

    async def aclose(self, because: str = "") -> None:
        """Ends the link and its process. May be called from any task, at any time, and twice.

        Pending calls fail with `ConnectionLost`, whose detail is `because`."""
        await self._link.aclose(because)

    async def __aenter__(self) -> Peer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        state = "open" if self._link.close_reason is None else self._link.close_reason.reason.value
        return f"<Peer {self.name} ({self._link.dialect.name}): {state}>"

    agree = RenamedMember("limit_features")
    heard_at = RenamedMember("last_received_at")


class PeerConnector:
    """A peer that is not connected yet: `async with` it, or `await` it and close it yourself."""

    def __init__(self, connect: Callable[[], Awaitable[Peer]]) -> None:
        self._connect = connect
        self._peer: Peer | None = None

    def __await__(self) -> Generator[Any, Any, Peer]:
        return self._connect().__await__()

    async def __aenter__(self) -> Peer:
        self._peer = await self._connect()
        return self._peer

    async def __aexit__(self, *_: object) -> None:
        if self._peer is not None:
            await self._peer.aclose()
