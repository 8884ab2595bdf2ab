"""The floor without an event loop: one thread that reads when it waits."""

from __future__ import annotations

import os
from typing import Any

from endpoint import CHUNK, Endpoint, Settles

__all__ = ["BlockingPeer"]


class Slot:
    """Where the reply to one call is put."""

    __slots__ = ("is_done", "result")

    def __init__(self) -> None:
        self.is_done = False
        self.result: Any = None

    def set_result(self, result: Any, /) -> None:
        self.result = result
        self.is_done = True


class BlockingPeer(Endpoint):
    """One link. An asynchronous handler returns a function here, which runs when no chunk is being read."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        super().__init__()
        self.read_fd = read_fd
        self.write_fd = write_fd
        self.deferred: list[tuple[int, Any]] = []

    def call(self, method: str, params: Any, returns: type) -> Any:
        slot = Slot()
        self.request(method, params, returns, slot)
        if self.queue:
            self.flush()
        while not slot.is_done:
            self.pump()
        return slot.result

    def call_many(self, method: str, params: Any, returns: type, *, calls: int, in_flight: int) -> None:
        """Keeps `in_flight` calls open until `calls` of them have a response."""
        window = Refill(self, (method, params, returns), calls)
        for _ in range(min(calls, in_flight)):
            window.request()
        self.flush()
        while window.unanswered:
            self.pump()

    def serve(self) -> None:
        """Responds until the other peer closes."""
        while data := os.read(self.read_fd, CHUNK):
            self.receive(data)
            while self.deferred:
                call_id, function = self.deferred.pop(0)
                self.reply(call_id, function())
                self.flush()

    def pump(self) -> None:
        data = os.read(self.read_fd, CHUNK)
        if not data:
            raise EOFError
        self.receive(data)

    # -- what the endpoint needs

    def write(self, data: bytes) -> None:
        done = os.write(self.write_fd, data)
        if done < len(data):
            view = memoryview(data)
            while done < len(data):
                done += os.write(self.write_fd, view[done:])

    def start(self, call_id: int, coroutine: Any) -> None:
        self.deferred.append((call_id, coroutine))

    def flush_soon(self) -> None:
        pass  # a sender outside of a read flushes before it reads


class Refill(Settles):
    """Sends the next call for each reply."""

    def __init__(self, peer: BlockingPeer, call: tuple[str, Any, type], calls: int) -> None:
        self.peer = peer
        self.call = call
        self.unsent = self.unanswered = calls

    def request(self) -> None:
        self.unsent -= 1
        self.peer.request(*self.call, self)

    def set_result(self, result: Any, /) -> None:
        self.unanswered -= 1
        if self.unsent:
            self.request()
