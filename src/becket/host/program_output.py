"""A program that the host runs to its end: what it writes, as text, and how it ended.

stdout comes in whole lines as `PlainText`, stderr as `SystemText`; its stdin is empty. A reader that is too slow makes
the program wait. Whoever leaves the block ends the program, and nothing of its session remains.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from becket.contract.commands import PlainText, SystemText
from becket.limits import DEFAULT_LIMITS, Limits
from becket.peer.loops.async_loops import current_loop
from becket.peer.transport.child_process import open_child
from becket.peer.transport.child_transport import ChildTransport
from becket.peer.transport.fd import wake

if TYPE_CHECKING:
    from becket.peer.protocols import ConnectionLostFactory, Loop, LoopFuture

__all__ = ["ProgramOutput", "run_program"]

MOST_HELD: Final = 256 * 1024  # bytes that wait for the reader; then stdout is not read any further
LONGEST_LINE: Final = 64 * 1024  # a longer one comes in parts


@asynccontextmanager
async def run_program(
    command: Sequence[str], *, cwd: str, env: Mapping[str, str], limits: Limits = DEFAULT_LIMITS, guard: bool = False
) -> AsyncGenerator[ProgramOutput, None]:
    """Starts a program with these variables and no others; leaving the block ends it.

    Raises:
        StartFailed: it cannot be started.
    """
    loop = await current_loop()
    output = ProgramOutput(loop)
    try:
        child, pipes = open_child(
            command, env=env, inherit_env=None, cwd=cwd, on_stderr=output.add_remark, limits=limits, guard=guard
        )
    except BaseException:
        loop.close()
        raise
    output.begin(ChildTransport(child, pipes, limits))
    try:
        yield output
    finally:
        await output.aclose()


class ProgramOutput:
    """What a program writes: `async for piece in output`. How it ended is known after that."""

    def __init__(self, loop: Loop) -> None:
        self.dropped = 0  # lines of stderr for which there was no room
        self._loop = loop
        self._transport: ChildTransport
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._rest = ""  # the start of a line
        self._pieces: deque[PlainText | SystemText] = deque()
        self._held = 0
        self._is_paused = False
        self._is_gone = False
        self._gone_waiters: list[LoopFuture] = []
        self._changed = anyio.Event()

    def begin(self, transport: ChildTransport) -> None:
        """Begins to read."""
        self._transport = transport
        transport.start(self._loop, self)
        transport.close_writing()

    @property
    def exit_code(self) -> int | None:
        """The exit code; None where a signal ended it."""
        code = self._transport.child.exit_code
        return code if code is not None and code >= 0 else None

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it, None if none did."""
        return self._transport.child.signal

    # -- reading

    def __aiter__(self) -> ProgramOutput:
        return self

    async def __anext__(self) -> PlainText | SystemText:
        while not self._pieces:
            if self._is_gone:
                raise StopAsyncIteration
            if self._changed.is_set():
                self._changed = anyio.Event()
            await self._changed.wait()
        piece = self._pieces.popleft()
        self._held -= len(piece.content)
        if self._is_paused and self._held <= MOST_HELD // 2:
            self._is_paused = False
            self._transport.resume()
        return piece

    async def aclose(self) -> None:
        """Ends the program, unless it has ended."""
        if not self._is_gone:
            self._transport.child.terminate()
            self._transport.close()
            waiter = self._loop.create_future()
            self._gone_waiters.append(waiter)
            await self._loop.wait_shielded(waiter)

    # -- what is written

    def add_remark(self, line: str) -> None:
        """Takes a line of stderr. There is no waiting for room here: a child must not block on its stderr."""
        if self._held > 2 * MOST_HELD:
            self.dropped += 1
        else:
            self._add(SystemText(line))

    def data_received(self, data: bytes) -> None:
        """Takes the lines of stdout that end in these bytes."""
        lines, end, self._rest = (self._rest + self._decoder.decode(data)).rpartition("\n")
        if end:
            self._add(PlainText(lines))
        if len(self._rest) >= LONGEST_LINE:
            self._flush()
        if self._held >= MOST_HELD and not self._is_paused:
            self._is_paused = True
            self._transport.pause()

    def _flush(self) -> None:
        if self._rest:
            self._add(PlainText(self._rest))
            self._rest = ""

    def _add(self, piece: PlainText | SystemText) -> None:
        self._pieces.append(piece)
        self._held += len(piece.content)
        self._changed.set()

    def write_queue_drained(self) -> None:
        """Nothing is written to it."""

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        """Its stdout has ended. The last of its stderr comes while it is closed."""
        self._rest += self._decoder.decode(b"", final=True)
        self._flush()
        self._transport.close()

    def transport_closed(self) -> None:
        """Nothing of it is left."""
        self._is_gone = True
        self._changed.set()
        waiters, self._gone_waiters = self._gone_waiters, []
        for waiter in waiters:
            wake(waiter)
        self._loop.call_soon(self._loop.close)
