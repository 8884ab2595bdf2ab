"""Plays a recorded conversation against a program: starts it, says what its host had said, and compares its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import anyio

from becket.dialects import PLAIN, Dialect
from becket.errors import BecketError
from becket.peer.child import ChildTransport
from becket.peer.loops import current_loop
from becket.peer.process import open_child
from becket.testing.replays import Replay
from becket.testing.transcripts import Transcript
from becket.wire.framing import Framing, Skipped

if TYPE_CHECKING:
    from becket.peer.roles import Describe

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
    """Runs a program through a recorded conversation and returns what was found. It has ended by then.

    Each message is waited for `timeout` seconds; after that it is missing, and the conversation goes on without it.

    Raises:
        StartFailed: the program cannot be started.
    """
    limits = dialect.limits
    played = Replay(transcript.entries, ignore=ignore, dialect=dialect)
    loop = await current_loop()
    try:
        child, pipes = open_child(command, inherit_env=True, on_stderr=on_stderr, limits=limits)
        transport = ChildTransport(child, pipes, limits)
        player = Player(played, transport, transcript.open_framing(limits))
        try:
            transport.start(loop, player)
            await player.play(timeout)
        finally:
            transport.close()
            with anyio.CancelScope(shield=True):
                await player.gone.wait()
    finally:
        loop.end()
    played.finish(f"the program has ended: {player.ended}" if player.ended else "it did not come")
    return played


class Player:
    """Speaks for the host on one link."""

    def __init__(self, played: Replay, transport: ChildTransport, framing: Framing) -> None:
        self.ended: BecketError | None = None
        self.gone = anyio.Event()
        self._played = played
        self._transport = transport
        self._framing = framing
        self._has_ended = anyio.Event()
        self._moved = anyio.Event()

    async def play(self, timeout: float) -> None:
        """Goes through the whole conversation, and lets the program end."""
        self._go_on()
        while self._played.awaited is not None and self.ended is None:
            self._moved = anyio.Event()
            with anyio.move_on_after(timeout) as scope:
                await self._moved.wait()
            if scope.cancelled_caught:
                self._played.give_up(f"it did not come within {timeout:g} s")
                self._go_on()
        self._transport.close_writing()
        with anyio.move_on_after(timeout):
            await self._has_ended.wait()

    def _go_on(self) -> None:
        before = self._played.position
        for body in self._played.advance():
            self._transport.write(self._framing.encode(body))
        if self._played.is_closed:
            self._transport.close_writing()
        if self._played.position != before:
            self._moved.set()

    # -- what the transport tells

    def data_received(self, data: bytes) -> None:
        for found in self._framing.feed(data):
            if isinstance(found, Skipped):
                self._end(found.error)
            else:
                self._played.take(bytes(found))
        self._go_on()
        if self._framing.error is not None:
            self._end(self._framing.error)

    def room_made(self) -> None:
        pass

    def transport_ended(self, describe: Describe) -> None:
        self._end(describe(""))

    def transport_gone(self) -> None:
        self.gone.set()

    def _end(self, error: BecketError) -> None:
        self.ended = self.ended or error
        self._has_ended.set()
        self._moved.set()
