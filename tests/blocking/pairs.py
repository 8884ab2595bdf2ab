"""Two blocking peers in one program, a raw end for invalid messages, and threads that must end."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from becket.blocking import BlockingPeer
from becket.peer.transport.fd import FdTransport

T = TypeVar("T")
Message = dict[str, Any]
PATIENCE = 60.0  # seconds for what takes milliseconds


class Started(Generic[T]):
    """A function that runs in a thread of its own."""

    def __init__(self, function: Callable[..., T], *arguments: object, **options: object) -> None:
        self._outcome: list[tuple[T | None, BaseException | None]] = []

        def run() -> None:
            try:
                self._outcome.append((function(*arguments, **options), None))
            except BaseException as error:
                self._outcome.append((None, error))

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def result(self) -> T:
        """Returns the result of the function, or raises its error. It must end in time."""
        self.thread.join(PATIENCE)
        assert self._outcome, "the thread did not come back"
        value, error = self._outcome[0]
        if error is not None:
            raise error
        return value  # type: ignore[return-value]

    @property
    def is_done(self) -> bool:
        return bool(self._outcome)


@contextmanager
def blocking_pair(*, listen: bool = True, **options: Any) -> Generator[tuple[BlockingPeer, BlockingPeer], None, None]:
    """Yields two connected peers and closes them. Unless they listen, they read only while a thread waits."""
    one, other = socket.socketpair()
    left = BlockingPeer(FdTransport.from_socket(one), name="left", **options)
    right = BlockingPeer(FdTransport.from_socket(other), name="right", **options)
    if listen:
        left.listen()
        right.listen()
    with left, right:
        yield left, right


class RawEnd:
    """The remote end of a peer's link, played by the test."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sock.settimeout(PATIENCE)
        self._file = sock.makefile("rb")

    def send(self, *messages: object) -> None:
        """Sends these messages in one chunk."""
        bodies = [json.dumps(message, separators=(",", ":")).encode() for message in messages]
        self._sock.sendall(b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies))

    def receive(self) -> Any:
        """Returns the next message of the peer."""
        length = 0
        while line := self._file.readline().strip():
            length = int(line.partition(b":")[2])
        return json.loads(self._file.read(length))

    def close(self) -> None:
        self._file.close()
        self._sock.close()


@contextmanager
def scripted(*, listen: bool = True, **options: Any) -> Generator[tuple[BlockingPeer, RawEnd], None, None]:
    """Yields a peer and the test's end of its link."""
    one, other = socket.socketpair()
    raw = RawEnd(other)
    with BlockingPeer(FdTransport.from_socket(one), **options) as peer:
        if listen:
            peer.listen()
        yield peer, raw
    raw.close()


class Watch:
    """Observes the threads of a peer: which one reads, and whether the one in the background sleeps."""

    def __init__(self, peer: BlockingPeer) -> None:
        loop = peer._loop
        self._before_wait = loop.before_wait
        self._gate = loop._background_wakeup
        self._reads = threading.Condition()
        self._reader = ""
        self._lies = threading.Event()
        loop.before_wait = self._note_reader
        loop._background_wakeup = self  # type: ignore[assignment]

    def wait_for_reader(self, name: str) -> None:
        """Waits until the thread of that name was the last that read."""
        with self._reads:
            assert self._reads.wait_for(lambda: self._reader == name, PATIENCE)

    def wait_until_background_lies_down(self) -> None:
        """Waits until the thread in the background has left the reading to the others, until one of them wakes it."""
        assert self._lies.wait(PATIENCE)

    def _note_reader(self) -> None:
        # Called with the lock of the link, which is released when the reader waits for input: not before.
        with self._reads:
            self._reader = threading.current_thread().name
            self._reads.notify_all()
        self._before_wait()

    # -- the gate at which the background thread waits

    def acquire(self, timeout: float = -1) -> bool:
        if timeout < 0:
            self._lies.set()
        try:
            return self._gate.acquire(timeout=timeout)
        finally:
            self._lies.clear()

    def release(self) -> None:
        self._gate.release()

    def locked(self) -> bool:
        return self._gate.locked()


def request(id: object, method: str, params: object = None) -> Message:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def notification(method: str, params: object = None) -> Message:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def response(called: Message, result: object = None) -> Message:
    return {"jsonrpc": "2.0", "id": called["id"], "result": result}
