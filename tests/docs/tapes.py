"""A byte stream whose other end is the test."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import anyio
import msgspec

from becket import Limits
from becket.framing import ContentLength

__all__ = ["MessageTape", "Tape"]


class Tape:
    """Delivers the input of the test, and stores the output until the test takes it."""

    def __init__(self) -> None:
        self.written = b""
        self._to_read: asyncio.Queue[bytes] = asyncio.Queue()
        self._change = asyncio.Event()

    def put(self, data: bytes) -> None:
        self._to_read.put_nowait(data)

    async def take(self, size: int) -> bytes:
        """Waits for this many bytes and returns all that there are; fewer where no more come."""
        with anyio.move_on_after(5):
            while len(self.written) < size:
                self._change.clear()
                await self._change.wait()
            for _ in range(10):  # time for a message that must not come
                await anyio.lowlevel.checkpoint()
        written, self.written = self.written, b""
        return written

    async def receive(self) -> bytes:
        return await self._to_read.get()

    async def send(self, item: bytes, /) -> None:
        self.written += item
        self._change.set()

    async def aclose(self) -> None:
        pass


class MessageTape(Tape):
    """The same in messages, framed with their length."""

    def __init__(self) -> None:
        super().__init__()
        self._framing = ContentLength(Limits())
        self._taken: deque[Any] = deque()

    def put_message(self, message: dict[str, Any]) -> None:
        self.put(self._framing.encode(msgspec.json.encode(message)))

    async def take_message(self) -> Any:
        """Returns the next message that was written; None where no more come."""
        if not self._taken:
            frames = self._framing.feed(await self.take(1))
            self._taken += [msgspec.json.decode(frame) for frame in frames if isinstance(frame, bytes | bytearray)]
        return self._taken.popleft() if self._taken else None
