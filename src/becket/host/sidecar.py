"""`Sidecar`: runs a companion program of an extension and exchanges JSON lines with it.

`async with connect_sidecar(command) as sidecar` starts it, sends `init` and waits for its hello, in either order, since
programs of both kinds exist. Its messages become events; when a bounded number of them wait, it is not read further.
Unknown types are ignored. `contract.sidecar` defines the messages.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from becket._loggers import host_logger
from becket.contract.sidecar import (
    HELLO_TIMEOUT,
    SIDECAR_VERSION,
    CustomSidecarEvent,
    InsertText,
    SidecarFailed,
    SidecarHello,
    SidecarShutdown,
    SidecarStatus,
    SidecarTrigger,
    check_hello,
    decode_event,
    encode_line,
)
from becket.errors import (
    BadMessage,
    ConnectionLost,
    DisconnectReason,
    HandshakeFailed,
    NotSent,
    PeerCrashed,
    RemoteProtocolError,
    StartFailed,
    VersionMismatch,
)
from becket.framing.framing import Frame, SkippedFrame
from becket.framing.json_lines import JsonLines
from becket.jsonrpc.connection import build_connection_lost
from becket.limits import DEFAULT_LIMITS, Limits
from becket.peer.loops.async_loops import current_loop
from becket.peer.transport.child_process import log_stderr, normalize_command, open_child
from becket.peer.transport.child_transport import ChildTransport

if TYPE_CHECKING:
    from becket.peer.protocols import ConnectionLostFactory, Loop, LoopFuture

__all__ = ["Sidecar", "SidecarConnector", "connect_sidecar"]

MAX_EVENTS: Final = 1_024  # events that wait for a consumer

DeliveredEvent = SidecarStatus | InsertText | SidecarFailed


def connect_sidecar(
    command: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    config: Mapping[str, Any] | None = None,
    name: str | None = None,
    on_stderr: Callable[[str], None] | None = None,
    timeout: float = HELLO_TIMEOUT,
    limits: Limits = DEFAULT_LIMITS,
    guard: bool = False,
) -> SidecarConnector:
    """Starts a sidecar and performs the handshake; leaving the block ends it.

    It gets a short list of variables and `env`, or all with `inherit_env`, as hosts of its own system pass on. `config`
    is sent to it beside the version. Its stderr goes to the log, or line by line to `on_stderr`. With `guard` it is
    killed when this program is gone, as by `Peer.connect_process`.

    Raises, when entered or awaited:
        StartFailed: the program cannot be started, or ended before its hello.
        VersionMismatch: its version is too old.
        HandshakeFailed: no hello in time, or a line that is too long.
    """
    arguments = normalize_command(command)
    label = os.path.basename(arguments[0]) if name is None else name
    first = {"type": "init", "config": {**(config or {}), "protocol_version": SIDECAR_VERSION}}

    async def connect() -> Sidecar:
        loop = await current_loop()
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
            loop.close()
            raise
        sidecar = Sidecar(loop, ChildTransport(child, pipes, limits), label, limits)
        try:
            await sidecar.initialize(msgspec.json.encode(first) + b"\n", timeout)
        except BaseException:
            await sidecar.aclose()
            raise
        return sidecar

    return SidecarConnector(connect)


class SidecarConnector:
    """A sidecar that is not started yet: `async with` it, or `await` it and close it yourself."""

    def __init__(self, connect: Callable[[], Awaitable[Sidecar]]) -> None:
        self._connect = connect
        self._sidecar: Sidecar

    def __await__(self) -> Generator[Any, Any, Sidecar]:
        return self._connect().__await__()

    async def __aenter__(self) -> Sidecar:
        self._sidecar = await self._connect()
        return self._sidecar

    async def __aexit__(self, *_: object) -> None:
        await self._sidecar.aclose()


class Sidecar:
    """A running sidecar: `async for event in sidecar` yields its messages, `trigger` sends it an event.

    `ignored` counts lines of unknown types, `skipped` those that are not messages."""

    def __init__(self, loop: Loop, transport: ChildTransport, name: str, limits: Limits) -> None:
        self.name = name
        self.ignored = 0
        self.skipped = 0
        self._hello: SidecarHello | None = None
        self._loop = loop
        self._transport = transport
        self._limits = limits
        self._lines = JsonLines(limits)
        self._events: deque[DeliveredEvent] = deque()
        self._is_full = False
        self._lost: ConnectionLost | None = None
        self._is_gone = False
        self._gone_waiters: list[LoopFuture] = []
        self._changed = anyio.Event()

    @property
    def hello(self) -> SidecarHello:
        """Its hello message."""
        assert self._hello is not None  # only available after the handshake
        return self._hello

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._transport.child.pid

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self._lost is not None

    # -- the start

    async def initialize(self, init: bytes, timeout: float) -> None:
        """Sends `init`, and waits for the hello."""
        self._transport.start(self._loop, self)
        self._transport.write(init)
        with anyio.move_on_after(timeout):
            while self._hello is None and self._lost is None:
                await self._wait()
        if self._hello is None:
            raise self._build_start_error(timeout)
        try:
            check_hello(self._hello)
        except RemoteProtocolError as error:
            version = self._hello.protocol_version
            raise VersionMismatch(self.name, str(error), given=version, supported=SIDECAR_VERSION) from error

    def _build_start_error(self, timeout: float) -> StartFailed | HandshakeFailed:
        match self._lost:
            case None:
                return HandshakeFailed(self.name, f"no hello within {timeout:g} s")
            case PeerCrashed(exit_code=code, stderr_tail=tail) as lost:
                return StartFailed(
                    self.name, f"ended before its hello: {lost.detail}", exit_code=code, stderr_tail=tail
                )
            case lost:
                return HandshakeFailed(self.name, str(lost))

    # -- its messages

    def __aiter__(self) -> Sidecar:
        return self

    async def __anext__(self) -> DeliveredEvent:
        """Returns the next event; ends when the sidecar was closed, or has exited with 0.

        Raises:
            PeerCrashed, ConnectionLost: it ended otherwise.
        """
        while not self._events:
            if self._lost is not None:
                if is_clean_exit(self._lost):
                    raise StopAsyncIteration
                raise copy(self._lost)
            await self._wait()
        event = self._events.popleft()
        if self._is_full and len(self._events) <= MAX_EVENTS // 2:
            self._is_full = False
            self._transport.resume()
        return event

    async def _wait(self) -> None:
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()

    # -- messages to it

    async def trigger(self, name: str, payload: Any = None) -> None:
        """Sends it an event, such as `press` and `release` of its key.

        Raises:
            ConnectionLost: it has ended.
            NotSent: it does not read.
        """
        if self._lost is not None:
            raise copy(self._lost)
        if self._transport.queued > self._limits.send_queue:
            raise NotSent("bytes that the sidecar has not read", self._limits.send_queue)
        self._transport.write(encode_line(SidecarTrigger(name, payload)))
        await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Requests it to end, waits a moment, and ends it. From any task, and twice."""
        if self._lost is None:
            self._transport.write(encode_line(SidecarShutdown()))
        self._on_lost(ConnectionLost(DisconnectReason.LOCAL_CLOSE))
        if not self._is_gone:
            waiter = self._loop.create_future()
            self._gone_waiters.append(waiter)
            await self._loop.wait_shielded(waiter)

    def _on_lost(self, lost: ConnectionLost) -> None:
        self._lost = self._lost or lost
        self._changed.set()
        self._transport.close()

    # -- the transport's callbacks

    def data_received(self, data: bytes) -> None:
        """Handles the lines that end in these bytes."""
        for line in self._lines.feed(data):
            self._on_line(line)
        if self._lines.error is not None:
            self._on_lost(build_connection_lost(self._lines.error))
        self._changed.set()

    def _on_line(self, line: Frame | SkippedFrame) -> None:
        try:
            if isinstance(line, SkippedFrame):
                raise BadMessage(str(line.error))
            event = decode_event(bytes(line))
        except BadMessage as error:
            self._skip(error)
            return
        match event:
            case SidecarHello() if self._hello is None:
                self._hello = event
            case SidecarHello() | CustomSidecarEvent():
                self.ignored += 1
            case _:
                self._events.append(event)
                if len(self._events) >= MAX_EVENTS and not self._is_full:
                    self._is_full = True
                    self._transport.pause()

    def _skip(self, error: BadMessage) -> None:
        self.skipped += 1
        if self.skipped & (self.skipped - 1) == 0:  # the first, the second, the fourth: a flood must not fill a log
            host_logger().warning("%s: a line that is not a message: %s", self.name, error)

    def write_queue_drained(self) -> None:
        """Does nothing: what does not fit is rejected."""

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        """Records that it sends no more."""
        self._on_lost(describe(str(self._lines.end() or "")))

    def transport_closed(self) -> None:
        """Records that the transport is closed."""
        self._is_gone = True
        waiters, self._gone_waiters = self._gone_waiters, []
        for waiter in waiters:
            self._loop.wake(waiter)
        self._loop.call_soon(self._loop.close)

    def __repr__(self) -> str:
        return f"<Sidecar {self.name}, {'closed' if self.is_closed else 'running'}>"


def is_clean_exit(lost: ConnectionLost) -> bool:
    return lost.reason is DisconnectReason.LOCAL_CLOSE or (isinstance(lost, PeerCrashed) and lost.exit_code == 0)
