"""The other peer of a link, played by a test: it receives every message of the peer, and sends any bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
import trio
import trio.testing

from becket import Limits, Peer
from becket.framing.content_length import ContentLength
from becket.peer.transport.fd import build_remote_close
from becket.testing import run_in_virtual_time

if TYPE_CHECKING:
    from becket.peer.protocols import Loop, Receiver

Message = dict[str, Any]


def frame(message: object) -> bytes:
    """Returns a message, or a batch of them, in its wire form."""
    body = json.dumps(message, separators=(",", ":")).encode()  # as we write it: decoded by the fast path
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def request(id: object, method: str, params: object = None) -> Message:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def notification(method: str, params: object = None) -> Message:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def response(called: Message, result: object = None) -> Message:
    return {"jsonrpc": "2.0", "id": called["id"], "result": result}


def refusal(called: Message, code: int, message: str = "no", **more: object) -> Message:
    return {"jsonrpc": "2.0", "id": called["id"], "error": {"code": code, "message": message, **more}}


TURNS = 20  # of the loop; a message in memory needs two or three, and its response as many


async def settled() -> None:
    """Waits until all that is on its way in this program has arrived, and every task waits for something."""
    for _ in range(TURNS):
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()


class Script:
    """A transport whose remote end is the test."""

    def __init__(self) -> None:
        self.queued = 0
        self.is_paused = False
        self.is_closed = False
        self._framing = ContentLength(Limits())
        self._received: list[Any] = []
        self._next = 0
        self._more = anyio.Event()
        self._receiver: Receiver

    # -- what the test does

    def send(self, *messages: object) -> None:
        """Sends these messages, which arrive in one chunk."""
        self._receiver.data_received(b"".join(frame(message) for message in messages))

    async def receive(self) -> Any:
        """Returns the next message that the peer has sent, once it has."""
        with anyio.fail_after(60):
            while self._next == len(self._received):
                self._more = anyio.Event()
                await self._more.wait()
        self._next += 1
        return self._received[self._next - 1]

    def unread(self) -> list[Any]:
        """Returns what the peer has sent and the test has not received yet."""
        rest, self._next = self._received[self._next :], len(self._received)
        return rest

    def make_room(self) -> None:
        """Takes all that the peer has queued."""
        self.queued = 0
        self._receiver.write_queue_drained()

    def leave(self) -> None:
        """Sends nothing any more."""
        self._receiver.input_ended(build_remote_close)

    # -- what the peer does

    def start(self, loop: Loop, receiver: Receiver) -> None:
        self._receiver = receiver

    def write(self, data: bytes) -> None:
        assert data, "a write without bytes costs a system call"
        for body in self._framing.feed(data):
            assert isinstance(body, bytes | memoryview | bytearray)
            self._received.append(json.loads(bytes(body)))
            self._more.set()

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def close_writing(self) -> None: ...

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._receiver.transport_closed()


@asynccontextmanager
async def scripted(**options: Any) -> AsyncGenerator[tuple[Peer, Script], None]:
    """Yields a peer and the test's end of its link."""
    script = Script()
    async with Peer.over(script, **options) as peer:
        yield peer, script
        script.queued = 0  # whatever the test has made of it: closing would wait for it


# -- time that passes at once


def on_asyncio(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_in_virtual_time(main)


def on_trio(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


in_virtual_time = pytest.mark.parametrize("run", [on_asyncio, on_trio])
