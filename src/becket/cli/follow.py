"""`becket trace --follow`: a line for each message between a running host and its extensions, as it is sent."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from time import localtime, strftime

import anyio

from becket.cli.exits import Exit
from becket.cli.output import print_json_line, print_line, say
from becket.cli.sequence import content_of, step_object, time_text, without_meta
from becket.dialects import DIALECTS
from becket.errors import ConnectionLost, harmless
from becket.host.live_traffic import (
    TRACE_FOLLOW,
    TRACE_FOLLOWING,
    TRACE_FRAME,
    Follow,
    Following,
    TracedFrame,
    reachable,
)
from becket.limits import DEFAULT_LIMITS, MIB
from becket.peer.peer import Peer
from becket.testing.conversations import Kind, Step, StepReader
from becket.testing.interpreters import Interpreter
from becket.testing.transcripts import Frame, Side

__all__ = ["follow_host"]

SHORT = 100  # characters of params that a line shows
LIMITS = DEFAULT_LIMITS.but(frame=16 * MIB)  # of a body of 1 MiB each byte may be escaped


async def follow_host(folder: Path, extensions: tuple[str, ...], full: bool, as_json: bool) -> Exit:
    """Shows the traffic of the host that keeps its files in this folder, until it ends."""
    view = View(full=full, as_json=as_json)
    try:
        with reachable(folder) as path:
            peer = await Peer.connect_unix(path, limits=LIMITS)
    except OSError as error:
        say(f"error: no host whose traffic can be followed runs on {folder} ({error.strerror or error})")
        say("try: becket run, or Host(live_trace=True); --data or --name says which host is meant")
        return Exit.NOT_RUNNING
    peer.on(TRACE_FOLLOWING)(view.begin)
    peer.on(TRACE_FRAME)(view.show)
    async with peer, anyio.create_task_group() as tasks:
        tasks.start_soon(follow, peer, extensions, tasks.cancel_scope)
        await view.reader_gone.wait()
        tasks.cancel_scope.cancel()
    if view.reader_gone.is_set():
        raise BrokenPipeError
    return Exit.DONE


async def follow(peer: Peer, extensions: tuple[str, ...], scope: anyio.CancelScope) -> None:
    try:
        await peer.call(TRACE_FOLLOW, Follow(extensions), timeout=None)
    except ConnectionLost:
        say("the host has ended")
    scope.cancel()


class View:
    """Writes each message down; a response stands with the method of its request, where that was seen."""

    def __init__(self, *, full: bool, as_json: bool) -> None:
        self.reader_gone = anyio.Event()
        self._full = full
        self._as_json = as_json
        self._readers: dict[tuple[str, str], StepReader] = {}

    def begin(self, following: Following) -> None:
        """Says what is followed, on stderr."""
        say(f"following {following.host}: {', '.join(following.extensions) or 'no extension runs yet'}")

    def show(self, traced: TracedFrame) -> None:
        """Writes the messages of a frame."""
        try:
            self._show(traced)
        except BrokenPipeError:
            self.reader_gone.set()

    def _show(self, traced: TracedFrame) -> None:
        if traced.skipped:
            say(f"{traced.skipped} messages were not shown: they came faster than they could be read")
        for step in self._read(traced):
            if not self._full and step.method == DIALECTS[traced.dialect].ping:
                continue
            if self._as_json:
                print_json_line({"extension": traced.extension, **step_object(step)})
            else:
                print_line(line_of(traced, step if self._full else without_meta(step), full=self._full))

    def _read(self, traced: TracedFrame) -> list[Step]:
        body = b64decode(traced.base64) if traced.base64 else traced.text.encode()
        to = Side.CHILD if traced.to_child else Side.HOST
        if len(body) != traced.size:
            return [Step(0, traced.at, Kind.INVALID, to, size=traced.size, content="it is too long to be shown")]
        key = traced.extension, traced.dialect
        if key not in self._readers:
            self._readers[key] = StepReader(Interpreter(DIALECTS[traced.dialect]).read)
        return [*self._readers[key].read(Frame(traced.at, to, body))]


def line_of(traced: TracedFrame, step: Step, *, full: bool) -> str:
    at = f"{strftime('%H:%M:%S', localtime(step.at))}.{int(step.at * 1000) % 1000:03}"
    arrow = "->" if traced.to_child else "<-"
    took = "" if step.seconds is None else f"after {time_text(step.seconds)}"
    parts = [at, traced.extension, arrow, str(step.kind), step.method, f"#{step.id}" if step.id else "", took]
    content = content_of(step)
    if not full and len(content) > SHORT:
        content = f"{content[: SHORT - 3]}..."
    return harmless(" ".join(part for part in (*parts, content) if part))
