"""A recorded conversation that is held anew: one side says what was recorded, the other is ours and is compared.

What the recorded side has said is sent as it was, byte for byte; what our side must say is brought about as its user
would, and held against the recording. Nothing is sent before all has come that came before it. How a side is made to
say something is for the two kinds of rehearsals: `host_rehearsals` and `extension_rehearsals`.
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
from msgspec import Struct

from becket.contract.handshake import HostInfo
from becket.dialects.dialect import META, Dialect
from becket.dialects.handshakes import Greeted, Introduction
from becket.dialects.phrases import Scene
from becket.errors import NUMBERS, BecketError, Meaning, RpcError, quote
from becket.host.connecting import HOST
from becket.methods.permissions import PERMISSIONS
from becket.peer.loops import current_loop
from becket.rpc.messages import Failure, Message, Notification, Request, Success
from becket.testing.interpreters import Asked, Interpreter, Vocabulary
from becket.testing.pairs import MemoryTransport, memory_transports
from becket.testing.transcripts import Closed, Ended, Entry, Frame, Side, Stray, Transcript
from becket.wire.framing import Skipped

if TYPE_CHECKING:
    from becket.peer.roles import Describe, Loop

__all__ = ["Failed", "Particulars", "Recorded", "Rehearsal", "Said", "error_of", "is_unknown"]

PATIENCE = 5.0  # seconds for one message: far more than anything in memory takes
SETTLED = 20  # turns of the loop in which something that must not come would come
UNKNOWN = NUMBERS[Meaning.UNKNOWN_METHOD]
TIMEOUT = re.compile(re.escape(META[1:] + b'{"timeout_ms":') + rb"(\d+)")

Particulars = Callable[[Any], Any]
"""Makes what a dialect's own manifest says of what a transcript gives."""


# -- what was recorded


class Said(Struct, frozen=True):
    """An entry of a transcript; of a frame, with its message."""

    number: int
    entry: Entry
    message: Message | None = None

    def is_to(self, side: Side) -> bool:
        """Whether it is a frame for this side."""
        return isinstance(self.entry, Frame) and self.entry.to is side


class Recorded:
    """A conversation, and what can be known of it before it is held anew."""

    def __init__(self, dialect: Dialect, transcript: Transcript, particulars: Particulars | None) -> None:
        self.dialect = dialect
        self.transcript = transcript
        self.words = Vocabulary(dialect)
        self.given = transcript.given
        interpreter = Interpreter(dialect)
        self.said = [
            Said(number, entry, interpreter.read(entry.to, entry.body) if isinstance(entry, Frame) else None)
            for number, entry in enumerate(transcript.entries, 1)
        ]
        told = self.given.get("particulars")
        self.particulars = told if particulars is None else particulars(told)
        opening = next(self.requests(Side.CHILD), None)
        first = None
        if opening is not None and opening.method == self.words.opening:
            first = self.words.read_opening(opening.params, Scene(self.given.get("id", "extension")))
        self.id: str = self.given.get("id") or (first.plugin_id if first else "extension")
        self.config: Mapping[str, Any] = self.given.get("config", first.config if first else {})
        self.root: str | None = self.given.get("root", first.plugin_root if first else None)
        host = self.given.get("host")
        if host is not None:
            self.host = msgspec.convert(host, HostInfo)
        else:
            self.host = (first.host if first else None) or HOST

    def requests(self, to: Side) -> Iterator[Request]:
        """Yields the requests that one side gets."""
        for said in self.said:
            if isinstance(said.message, Request) and said.is_to(to):
                yield said.message

    def notifications(self, to: Side) -> Iterator[Notification]:
        """Yields the notifications that one side gets."""
        for said in self.said:
            if isinstance(said.message, Notification) and said.is_to(to):
                yield said.message

    def answer_to(self, request: Request, asked: Side) -> Success | Failure | None:
        """Returns what that side has answered; None where it has not."""
        for said in self.said:
            message = said.message
            if isinstance(message, Success | Failure) and message.id == request.id and said.is_to(asked.other):
                return message
        return None

    def greeted(self) -> Greeted:
        """Returns what the recorded extension has declared."""
        answers = (
            answer
            for request in self.requests(Side.CHILD)
            if (answer := self.answer_to(request, Side.CHILD)) is not None
        )
        introduction = Introduction(
            extension=self.id,
            host=self.host,
            root=self.root,
            config=self.config,
            grants=frozenset(PERMISSIONS),
            particulars=self.particulars,
        )
        return self.words.greet(introduction, answers) or Greeted(particulars=self.particulars)

    def scene(self, greeted: Greeted) -> Scene:
        """Returns what a host knows of the link after the first exchange."""
        particulars = self.particulars if greeted.particulars is None else greeted.particulars
        return Scene(self.id, greeted.declared, particulars)

    def ask(self, request: Request, scene: Scene, handled: Container[str] = ()) -> Asked | None:
        """Returns what a request means, None where there is no phrase for it, or it cannot be read."""
        try:
            scratch = Scene(scene.extension, scene.declared, scene.particulars)
            return self.words.ask(request.method, request.params, scratch, handled)
        except (BecketError, ValueError):
            return None


# -- one side


class Listener:
    """The end of the link at which the recorded side stands: it keeps what our side writes, frame by frame."""

    def __init__(self, recorded: Recorded) -> None:
        self.frames: deque[bytes] = deque()
        self.written = bytearray()
        self.has_ended = False
        self.news = anyio.Event()
        self._framing = recorded.dialect.framing(recorded.dialect.limits)

    def data_received(self, data: bytes) -> None:
        """Takes what our side has written."""
        self.written += data
        self.frames += (bytes(frame) for frame in self._framing.feed(data) if not isinstance(frame, Skipped))
        self._tell()

    def room_made(self) -> None:
        """Needs no room."""

    def transport_ended(self, describe: Describe) -> None:
        """Our side has closed."""
        self.has_ended = True
        self._tell()

    def transport_gone(self) -> None:
        """Holds nothing."""

    def _tell(self) -> None:
        news, self.news = self.news, anyio.Event()
        news.set()


class Failed(Exception):
    """The conversation cannot go on."""


class Rehearsal:
    """One conversation, with one side of ours."""

    who: ClassVar[str]
    me: ClassVar[Side]

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.problems: list[str] = []
        self.tasks: anyio.abc.TaskGroup
        self.link: MemoryTransport  # their end
        self.ours: MemoryTransport
        self.listener = Listener(recorded)
        self._framing = recorded.transcript.open_framing()
        self._loop: Loop
        self._began = 0.0

    async def run(self) -> list[str]:
        """Holds the conversation, and returns what went otherwise."""
        loop = self._loop = await current_loop()
        self._began = loop.time()
        self.ours, self.link = memory_transports()
        self.link.start(loop, self.listener)
        try:
            async with anyio.create_task_group() as self.tasks:
                try:
                    await self.begin()
                    for said in self.recorded.said:
                        await self.play(said)
                    await self.check_silence()
                except Failed as error:
                    self.problems.append(str(error))
                finally:
                    with anyio.CancelScope(shield=True), anyio.move_on_after(PATIENCE):
                        self.link.close()
                        await self.end()
                    self.tasks.cancel_scope.cancel()
        finally:
            self.dispose()
            loop.end()
        return self.problems

    async def play(self, said: Said) -> None:
        """Does one thing of the recording."""
        match said.entry:
            case Frame(_, to, body):
                if to is self.me:
                    self.note(said)
                    self.link.write(self._framing.encode(body))
                else:
                    await self.bring_about(said)
                    await self.compare(said.number, body)
            case Stray(_, to, data):
                if to is not self.me:
                    raise Failed(f"entry {said.number}: it writes nothing but messages, and this is none")
                self.link.write(data)
            case Closed(_, to):
                if to is self.me:
                    self.link.close_writing()
                else:
                    await self.close()
            case Ended():
                pass
            case _:
                assert_never(said.entry)

    async def compare(self, number: int, expected: bytes) -> None:
        """Waits for a frame, and holds it against the recorded one."""
        await self.until(lambda: bool(self.listener.frames), f"entry {number}: it did not write {show(expected)}")
        frame = self.listener.frames.popleft()
        found = set_timeout(frame, expected, self._loop.time() - self._began)
        if found != expected:
            place = next((at for at, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), None)
            place = min(len(found), len(expected)) if place is None else place
            raise Failed(
                f"entry {number}: it wrote\n  {show(found)}\nand recorded is\n  {show(expected)}\n"
                f"which differ from byte {place} on: {quote(found[place:])} instead of {quote(expected[place:])}"
            )
        framed = self._framing.encode(frame)
        written = bytes(self.listener.written[: len(framed)])
        if written != framed:
            raise Failed(f"entry {number}: the frame is {quote(written)}, and recorded is {quote(framed)}")
        del self.listener.written[: len(framed)]

    async def until(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Waits until something is so."""
        with anyio.move_on_after(PATIENCE):
            while not condition():
                self.check_alive(otherwise)
                await self.listener.news.wait()
            return
        raise Failed(otherwise)

    async def check_silence(self) -> None:
        """Notes what our side says beyond the recording."""
        for _ in range(SETTLED):
            await anyio.lowlevel.checkpoint()
        for frame in self.listener.frames:
            self.problems.append(f"at the end: it wrote {show(frame)}, which is not recorded")

    def check_alive(self, otherwise: str) -> None:
        """Raises Failed where our side will write no more."""
        if self.listener.has_ended:
            raise Failed(f"{otherwise}: it has closed the link")

    # -- what the two sides do differently

    async def begin(self) -> None:
        """Puts our side at its end of the link."""
        raise NotImplementedError

    def note(self, said: Said) -> None:
        """Something of the other side is about to come."""

    async def bring_about(self, said: Said) -> None:
        """Has our side say something, unless it does so by itself."""
        raise NotImplementedError

    async def close(self) -> None:
        """Ends our side of the link."""

    async def end(self) -> None:
        """Ends our side, whatever it does."""

    def dispose(self) -> None:
        """Lets go of what is left when nothing runs any more."""


def set_timeout(frame: bytes, expected: bytes, elapsed: float) -> bytes:
    """Returns a frame with the recorded `timeout_ms` where its own is shorter by no more than `elapsed` seconds.

    A request tells how much of its deadline is left, which depends on how busy the machine is. Any other difference
    stays."""
    recorded, written = TIMEOUT.search(expected), TIMEOUT.search(frame)
    if recorded is None or written is None:
        return frame
    used = int(recorded[1]) - int(written[1])
    if not 0 <= used <= elapsed * 1000 + 1:  # both are rounded
        return frame
    return frame[: written.start(1)] + recorded[1] + frame[written.end(1) :]


def show(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.hex(" ")


def error_of(failure: Failure) -> RpcError:
    """Returns the error that an answer bears, to be raised by whoever answers."""
    return RpcError(failure.code, failure.message, failure.data)


def is_unknown(answer: Success | Failure | None) -> bool:
    """Returns whether an answer says that there is no such method."""
    return isinstance(answer, Failure) and answer.code == UNKNOWN
