"""Replays a transcript against a program as its host and compares the responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import anyio

from becket.dialects import PLAIN, Dialect
from becket.errors import BecketError
from becket.framing.framing import Framing, SkippedFrame
from becket.peer.loops.async_loops import current_loop
from becket.peer.transport.child_process import open_child
from becket.peer.transport.child_transport import ChildTransport
from becket.testing.transcripts.file_format import Transcript
from becket.testing.transcripts.replay import Replay

if TYPE_CHECKING:
    from becket.peer.protocols import ConnectionLostFactory

__all__ = ["replay"]


async def replay(
    transcript: Transcript,
    command: Sequence[str],
    *,
    dialect: Dialect = PLAIN,
    timeout: float,
    ignore: Iterable[str] = (),
    on_stderr: Callable[[str], None] | None = None,
) -> Replay:
    """Runs a program, replays a transcript to it, and returns the comparison after the program has ended.

    A message that does not arrive within `timeout` seconds counts as missing, and the replay continues.

    Raises:
        StartFailed: the program cannot be started.
    """
    limits = dialect.limits
    played = Replay(transcript.entries, ignore=ignore, dialect=dialect)
    loop = await current_loop()
    try:
        child, pipes = open_child(command, inherit_env=True, on_stderr=on_stderr, limits=limits)
        transport = ChildTransport(child, pipes, limits)
        player = ReplayDriver(played, transport, transcript.open_framing(limits))
        try:
            transport.start(loop, player)
            await player.run(timeout)
        finally:
            transport.close()
            with anyio.CancelScope(shield=True):
                await player.gone.wait()
    finally:
        loop.close()
    played.finish(f"the program has ended: {player.ended}" if player.ended else "not received")
    return played


class ReplayDriver:
    """Sends the host's messages of a replay over a transport, and receives those of the program."""

    def __init__(self, played: Replay, transport: ChildTransport, framing: Framing) -> None:
        self.ended: BecketError | None = None
        self.gone = anyio.Event()
        self._played = played
        self._transport = transport
        self._framing = framing
        self._has_ended = anyio.Event()
        self._moved = anyio.Event()

    async def run(self, timeout: float) -> None:
        """Replays the whole transcript, then closes stdin and waits for the program to exit."""
        self._advance()
        while self._played.expected is not None and self.ended is None:
            self._moved = anyio.Event()
            with anyio.move_on_after(timeout) as scope:
                await self._moved.wait()
            if scope.cancelled_caught:
                self._played.skip_expected(f"not received within {timeout:g} s")
                self._advance()
        self._transport.close_writing()
        with anyio.move_on_after(timeout):
            await self._has_ended.wait()

    def _advance(self) -> None:
        before = self._played.position
        for body in self._played.advance():
            self._transport.write(self._framing.encode(body))
        if self._played.is_closed:
            self._transport.close_writing()
        if self._played.position != before:
            self._moved.set()

    # -- called by the transport

    def data_received(self, data: bytes) -> None:
        for found in self._framing.feed(data):
            if isinstance(found, SkippedFrame):
                self._end(found.error)
            else:
                self._played.receive(bytes(found))
        self._advance()
        if self._framing.error is not None:
            self._end(self._framing.error)

    def write_queue_drained(self) -> None:
        pass

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        self._end(describe(""))

    def transport_closed(self) -> None:
        self.gone.set()

    def _end(self, error: BecketError) -> None:
        self.ended = self.ended or error
        self._has_ended.set()
        self._moved.set()
