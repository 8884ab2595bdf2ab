"""A program that the host runs to its end: its output as text, and its exit.

stdout comes in whole lines as `PlainText`, stderr as `SystemText`; its stdin is empty. A reader that is too slow makes
the program wait. Leaving the block ends the program and its whole session.
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

if TYPE_CHECKING:
    from becket.peer.protocols import ConnectionLostFactory, Loop, LoopFuture

__all__ = ["ProgramOutput", "run_program"]

MAX_HELD: Final = 256 * 1024  # bytes that wait for the reader; then stdout is not read any further
MAX_LINE: Final = 64 * 1024  # a longer one comes in parts


@asynccontextmanager
async def run_program(
    command: Sequence[str], *, cwd: str, env: Mapping[str, str], limits: Limits = DEFAULT_LIMITS, guard: bool = False
) -> AsyncGenerator[ProgramOutput, None]:
    """Starts a program with exactly these variables; leaving the block ends it.

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
    """The output of a program: `async for part in output`. Its exit is known after that."""

    def __init__(self, loop: Loop) -> None:
        self.dropped = 0  # lines of stderr without room
        self._loop = loop
        self._transport: ChildTransport
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._rest = ""  # the start of a line
        self._parts: deque[PlainText | SystemText] = deque()
        self._held = 0
        self._is_paused = False
        self._is_gone = False
        self._gone_waiters: list[LoopFuture] = []
        self._changed = anyio.Event()

    def begin(self, transport: ChildTransport) -> None:
        """Starts reading."""
        self._transport = transport
        transport.start(self._loop, self)
        transport.close_writing()

    @property
    def exit_code(self) -> int | None:
        """The exit code; None if a signal ended it."""
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
        while not self._parts:
            if self._is_gone:
                raise StopAsyncIteration
            if self._changed.is_set():
                self._changed = anyio.Event()
            await self._changed.wait()
        part = self._parts.popleft()
        self._held -= len(part.content)
        if self._is_paused and self._held <= MAX_HELD // 2:
            self._is_paused = False
            self._transport.resume()
        return part

    async def aclose(self) -> None:
        """Ends the program, unless it has ended."""
        if not self._is_gone:
            self._transport.child.terminate()
            self._transport.close()
            waiter = self._loop.create_future()
            self._gone_waiters.append(waiter)
            await self._loop.wait_shielded(waiter)

    # -- the transport's callbacks

    def add_remark(self, line: str) -> None:
        """Adds a line of stderr, without waiting for room: a child must not block on its stderr."""
        if self._held > 2 * MAX_HELD:
            self.dropped += 1
        else:
            self._add(SystemText(line))

    def data_received(self, data: bytes) -> None:
        """Adds the lines of stdout that end in these bytes."""
        lines, end, self._rest = (self._rest + self._decoder.decode(data)).rpartition("\n")
        if end:
            self._add(PlainText(lines))
        if len(self._rest) >= MAX_LINE:
            self._flush()
        if self._held >= MAX_HELD and not self._is_paused:
            self._is_paused = True
            self._transport.pause()

    def _flush(self) -> None:
        if self._rest:
            self._add(PlainText(self._rest))
            self._rest = ""

    def _add(self, part: PlainText | SystemText) -> None:
        self._parts.append(part)
        self._held += len(part.content)
        self._changed.set()

    def write_queue_drained(self) -> None:
        """Does nothing: nothing is written."""

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        """Records the end of stdout. The rest of stderr comes while it is closed."""
        self._rest += self._decoder.decode(b"", final=True)
        self._flush()
        self._transport.close()

    def transport_closed(self) -> None:
        """Records that the transport is closed."""
        self._is_gone = True
        self._changed.set()
        waiters, self._gone_waiters = self._gone_waiters, []
        for waiter in waiters:
            self._loop.wake(waiter)
        self._loop.call_soon(self._loop.close)
