"""Runs our host or extension live against the other end of a transcript, and compares frames.

The frames of the recorded end are sent byte for byte; our end is triggered through its public API, and its frames
are compared with the recording. Nothing is sent before all earlier frames have arrived. `host_conformance` and
`extension_conformance` trigger the two ends.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, assert_never

import anyio
import anyio.abc
import anyio.lowlevel
import msgspec
from msgspec import Raw, Struct

from becket._text import quote
from becket.contract.handshake import HostInfo
from becket.dialects.dialect import META_PREFIX, Dialect
from becket.dialects.handshake import HandshakeContext, HandshakeResult
from becket.dialects.link_state import LinkState
from becket.errors import ERROR_CODES, BecketError, Meaning, RpcError
from becket.framing.framing import SkippedFrame
from becket.host.starting.connect import DEFAULT_HOST_INFO
from becket.jsonrpc.messages import Failure, Message, NotificationMessage, Request, Success
from becket.peer.loops.async_loops import current_loop
from becket.permissions.names import PERMISSIONS
from becket.testing.pairs import MemoryTransport, memory_transports
from becket.testing.transcripts.decoder import DecodedRequest, ReverseMapping, TranscriptDecoder
from becket.testing.transcripts.file_format import (
    ChildExited,
    EndClosed,
    FrameSent,
    LinkEnd,
    StrayBytes,
    Transcript,
    TranscriptEntry,
)

if TYPE_CHECKING:
    from becket.peer.protocols import ConnectionLostFactory, Loop

__all__ = [
    "ConformanceAborted",
    "ConformanceRun",
    "DecodedEntry",
    "ExtraDecoder",
    "RecordedSession",
    "build_rpc_error",
    "is_method_not_found",
]

MESSAGE_TIMEOUT = 5.0  # seconds for one message: far more than anything in memory takes
SETTLE_TURNS = 20  # loop iterations in which an unexpected frame would arrive
UNKNOWN = ERROR_CODES[Meaning.UNKNOWN_METHOD]
TIMEOUT = re.compile(re.escape(META_PREFIX[1:] + b'{"timeout_ms":') + rb"(\d+)")

ExtraDecoder = Callable[[Any], Any]
"""Decodes `given.extra` of a transcript to what a dialect's own manifest would contain."""


# -- the recording


class DecodedEntry(Struct, frozen=True):
    """An entry of a transcript; of a frame, with its message."""

    number: int
    entry: TranscriptEntry
    message: Message | None = None

    def is_to(self, end: LinkEnd) -> bool:
        """Whether it is a frame to this end."""
        return isinstance(self.entry, FrameSent) and self.entry.to is end


class RecordedSession:
    """A recorded session, and what is known of it in advance."""

    def __init__(self, dialect: Dialect, transcript: Transcript, extra: ExtraDecoder | None) -> None:
        self.dialect = dialect
        self.transcript = transcript
        self.mapping = ReverseMapping(dialect)
        self.given = transcript.given
        interpreter = TranscriptDecoder(dialect)
        self.entries = [
            DecodedEntry(
                number, entry, interpreter.decode(entry.to, entry.body) if isinstance(entry, FrameSent) else None
            )
            for number, entry in enumerate(transcript.entries, 1)
        ]
        given_extra = self.given.get("extra")
        self.extra = given_extra if extra is None else extra(given_extra)
        opening = next(self.requests(LinkEnd.CHILD), None)
        first = None
        if opening is not None and opening.method == self.mapping.handshake_method:
            first = self.mapping.decode_handshake_request(opening.params, LinkState(self.given.get("id", "extension")))
        self.id: str = self.given.get("id") or (first.plugin_id if first else "extension")
        self.config: Mapping[str, Any] = self.given.get("config", first.config if first else {})
        self.root: str | None = self.given.get("root", first.plugin_root if first else None)
        host = self.given.get("host")
        if host is not None:
            self.host = msgspec.convert(host, HostInfo)
        else:
            self.host = (first.host if first else None) or DEFAULT_HOST_INFO

    def requests(self, to: LinkEnd) -> Iterator[Request]:
        """Yields the requests to one end."""
        for step in self.entries:
            if isinstance(step.message, Request) and step.is_to(to):
                yield step.message

    def notifications(self, to: LinkEnd) -> Iterator[NotificationMessage]:
        """Yields the notifications to one end."""
        for step in self.entries:
            if isinstance(step.message, NotificationMessage) and step.is_to(to):
                yield step.message

    def find_response(self, request: Request, responder: LinkEnd) -> Success | Failure | None:
        """Returns the response of that end, or None."""
        for step in self.entries:
            message = step.message
            if isinstance(message, Success | Failure) and message.id == request.id and step.is_to(responder.other):
                return message
        return None

    def handshake_result(self) -> HandshakeResult:
        """Returns what the recorded extension declared."""
        responses = (
            response
            for request in self.requests(LinkEnd.CHILD)
            if (response := self.find_response(request, LinkEnd.CHILD)) is not None
        )
        context = HandshakeContext(
            extension=self.id,
            host=self.host,
            root=self.root,
            config=self.config,
            grants=frozenset(PERMISSIONS),
            extra=self.extra,
        )
        return self.mapping.decode_handshake_result(context, responses) or HandshakeResult(extra=self.extra)

    def link_state(self, result: HandshakeResult) -> LinkState:
        """Returns what a host knows of the connection after the handshake."""
        extra = self.extra if result.extra is None else result.extra
        return LinkState(self.id, result.capabilities, extra)

    def own_params(self, request: Request) -> Raw | None:
        """Returns the params of a request without `_meta`, which our end adds by itself."""
        if request.params is None or not self.dialect.features:
            return request.params
        return self.dialect.split_meta(request.params, self.dialect.features)[1]

    def decode_request(self, request: Request, state: LinkState, handled: Container[str] = ()) -> DecodedRequest | None:
        """Returns the contract's view of a request; None if there is no mapping for it, or it cannot be decoded."""
        try:
            scratch = LinkState(state.extension, state.capabilities, state.extra)
            return self.mapping.decode_request(request.method, request.params, scratch, handled)
        except (BecketError, ValueError):
            return None


# -- a run


class FrameCollector:
    """The recorded end of the connection: collects the frames that our end writes."""

    def __init__(self, recorded: RecordedSession) -> None:
        self.frames: deque[bytes] = deque()
        self.written = bytearray()
        self.has_ended = False
        self.changed = anyio.Event()
        self._framing = recorded.dialect.framing(recorded.dialect.limits)

    def data_received(self, data: bytes) -> None:
        """Receives what our end has written."""
        self.written += data
        self.frames += (bytes(frame) for frame in self._framing.feed(data) if not isinstance(frame, SkippedFrame))
        self._notify_waiters()

    def write_queue_drained(self) -> None:
        """Does nothing: this end has no write queue limit."""

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        """Our end has closed."""
        self.has_ended = True
        self._notify_waiters()

    def transport_closed(self) -> None:
        """Does nothing: this end holds no resources."""

    def _notify_waiters(self) -> None:
        news, self.changed = self.changed, anyio.Event()
        news.set()


class ConformanceAborted(Exception):
    """The run cannot continue."""


class ConformanceRun:
    """One run, with one end of ours."""

    role: ClassVar[str]
    end_of_link: ClassVar[LinkEnd]

    def __init__(self, recorded: RecordedSession) -> None:
        self.recorded = recorded
        self.problems: list[str] = []
        self.tasks: anyio.abc.TaskGroup
        self.link: MemoryTransport  # the recorded end
        self.ours: MemoryTransport
        self.collector = FrameCollector(recorded)
        self._framing = recorded.transcript.open_framing()
        self._loop: Loop
        self._began = 0.0

    async def run(self) -> list[str]:
        """Replays the session, and returns the differences."""
        loop = self._loop = await current_loop()
        self._began = loop.time()
        self.ours, self.link = memory_transports()
        self.link.start(loop, self.collector)
        try:
            async with anyio.create_task_group() as self.tasks:
                try:
                    await self.start()
                    for step in self.recorded.entries:
                        await self.run_entry(step)
                    await self.check_no_extra_output()
                except ConformanceAborted as error:
                    self.problems.append(str(error))
                finally:
                    with anyio.CancelScope(shield=True), anyio.move_on_after(MESSAGE_TIMEOUT):
                        self.link.close()
                        await self.stop()
                    self.tasks.cancel_scope.cancel()
        finally:
            self.dispose()
            loop.close()
        return self.problems

    async def run_entry(self, step: DecodedEntry) -> None:
        """Replays one entry."""
        match step.entry:
            case FrameSent(_, to, body):
                if to is self.end_of_link:
                    self.prepare_incoming(step)
                    self.link.write(self._framing.encode(body))
                else:
                    await self.trigger(step)
                    await self.expect_frame(step.number, body)
            case StrayBytes(_, to, data):
                if to is not self.end_of_link:
                    raise ConformanceAborted(f"entry {step.number}: our end writes only messages, and this is not one")
                self.link.write(data)
            case EndClosed(_, to):
                if to is self.end_of_link:
                    self.link.close_writing()
                else:
                    await self.close()
            case ChildExited():
                pass
            case _:
                assert_never(step.entry)

    async def expect_frame(self, number: int, expected: bytes) -> None:
        """Waits for a frame, and compares it with the recorded one."""
        await self.wait_until(
            lambda: bool(self.collector.frames), f"entry {number}: it did not write {format_body(expected)}"
        )
        frame = self.collector.frames.popleft()
        found = set_timeout(frame, expected, self._loop.time() - self._began)
        if found != expected:
            offset = next(
                (at for at, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), None
            )
            offset = min(len(found), len(expected)) if offset is None else offset
            raise ConformanceAborted(
                f"entry {number}: it wrote\n  {format_body(found)}\nand recorded is\n  {format_body(expected)}\n"
                f"which differ from byte {offset} on: {quote(found[offset:])} instead of {quote(expected[offset:])}"
            )
        framed = self._framing.encode(frame)
        written = bytes(self.collector.written[: len(framed)])
        if written != framed:
            raise ConformanceAborted(f"entry {number}: the frame is {quote(written)}, and recorded is {quote(framed)}")
        del self.collector.written[: len(framed)]

    async def wait_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Waits until a condition holds."""
        with anyio.move_on_after(MESSAGE_TIMEOUT):
            while not condition():
                self.check_alive(otherwise)
                await self.collector.changed.wait()
            return
        raise ConformanceAborted(otherwise)

    async def check_no_extra_output(self) -> None:
        """Reports frames of our end beyond the recording."""
        for _ in range(SETTLE_TURNS):
            await anyio.lowlevel.checkpoint()
        for frame in self.collector.frames:
            self.problems.append(f"at the end: it wrote {format_body(frame)}, which is not recorded")

    def check_alive(self, otherwise: str) -> None:
        """Raises ConformanceAborted if our end has closed the connection."""
        if self.collector.has_ended:
            raise ConformanceAborted(f"{otherwise}: it has closed the link")

    # -- overridden for each end

    async def start(self) -> None:
        """Starts our end of the connection."""
        raise NotImplementedError

    def prepare_incoming(self, step: DecodedEntry) -> None:
        """Prepares for a frame of the other end."""

    async def trigger(self, step: DecodedEntry) -> None:
        """Makes our end send a message, unless it does so by itself."""
        raise NotImplementedError

    async def close(self) -> None:
        """Closes our end of the connection."""

    async def stop(self) -> None:
        """Stops our end, whatever it does."""

    def dispose(self) -> None:
        """Releases what is left when nothing runs any more."""


def set_timeout(frame: bytes, expected: bytes, elapsed: float) -> bytes:
    """Returns a frame with the recorded `timeout_ms` if its own is shorter by at most `elapsed` seconds.

    A request carries its remaining time, which depends on how busy the machine is. Any other difference stays."""
    recorded, written = TIMEOUT.search(expected), TIMEOUT.search(frame)
    if recorded is None or written is None:
        return frame
    used = int(recorded[1]) - int(written[1])
    if not 0 <= used <= elapsed * 1000 + 1:  # both are rounded
        return frame
    return frame[: written.start(1)] + recorded[1] + frame[written.end(1) :]


def format_body(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.hex(" ")


def build_rpc_error(failure: Failure) -> RpcError:
    """Returns the error of a response, to be raised in a handler."""
    return RpcError(failure.code, failure.message, failure.data)


def is_method_not_found(response: Success | Failure | None) -> bool:
    """Returns whether a response is the error for an unknown method."""
    return isinstance(response, Failure) and response.code == UNKNOWN
