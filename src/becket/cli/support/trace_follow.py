"""`becket trace --follow`: prints each message between a running host and its extensions."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from time import localtime, strftime

import anyio

from becket._text import escape, truncate
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.output import print_json_line, print_line, print_message
from becket.cli.support.sequence_diagram import format_content, format_seconds, step_object, without_meta
from becket.dialects import DIALECTS
from becket.errors import ConnectionLost
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
from becket.testing.transcripts.decoder import TranscriptDecoder
from becket.testing.transcripts.file_format import FrameSent, LinkEnd
from becket.testing.transcripts.steps import StepKind, StepReader, TranscriptStep

__all__ = ["follow_host"]

SHORT = 100  # characters of content per line
LIMITS = DEFAULT_LIMITS.but(frame=16 * MIB)  # a body of 1 MiB grows if its bytes are escaped


async def follow_host(folder: Path, extensions: tuple[str, ...], full: bool, as_json: bool, start: str) -> ExitCode:
    """Shows the traffic of the host with this data directory until it ends.

    `start` is the command line that starts such a host."""
    view = View(full=full, as_json=as_json)
    try:
        with reachable(folder) as path:
            peer = await Peer.connect_unix(path, limits=LIMITS)
    except OSError as error:
        print_message(f"error: no running host with a live trace in {folder} ({error.strerror or error})")
        print_message(f"try: {start}")
        print_message("a host in Python needs `HostSettings(live_trace=True)`; --data, --name or --config select one")
        return ExitCode.NOT_RUNNING
    peer.on(TRACE_FOLLOWING)(view.begin)
    peer.on(TRACE_FRAME)(view.show)
    async with peer, anyio.create_task_group() as tasks:
        tasks.start_soon(follow, peer, extensions, tasks.cancel_scope)
        await view.reader_gone.wait()
        tasks.cancel_scope.cancel()
    if view.reader_gone.is_set():
        raise BrokenPipeError
    return ExitCode.DONE


async def follow(peer: Peer, extensions: tuple[str, ...], scope: anyio.CancelScope) -> None:
    try:
        await peer.call(TRACE_FOLLOW, Follow(extensions), timeout=None)
    except ConnectionLost:
        print_message("the host has ended")
    scope.cancel()


class View:
    """Prints each message; a response with the method of its request, if that was seen."""

    def __init__(self, *, full: bool, as_json: bool) -> None:
        self.reader_gone = anyio.Event()
        self._full = full
        self._as_json = as_json
        self._readers: dict[tuple[str, str], StepReader] = {}

    def begin(self, following: Following) -> None:
        """Prints to stderr which extensions are followed."""
        print_message(f"following {following.host}: {', '.join(following.extensions) or 'no extension is running yet'}")

    def show(self, traced: TracedFrame) -> None:
        """Prints the messages of a frame."""
        try:
            self._show(traced)
        except BrokenPipeError:
            self.reader_gone.set()

    def _show(self, traced: TracedFrame) -> None:
        if traced.skipped:
            print_message(f"{traced.skipped} messages were skipped: they arrived faster than they were read")
        for step in self._read(traced):
            if not self._full and step.method == DIALECTS[traced.dialect].ping:
                continue
            if self._as_json:
                print_json_line({"extension": traced.extension, **step_object(step)})
            else:
                print_line(line_of(traced, step if self._full else without_meta(step), full=self._full))

    def _read(self, traced: TracedFrame) -> list[TranscriptStep]:
        body = b64decode(traced.base64) if traced.base64 else traced.text.encode()
        to = LinkEnd.CHILD if traced.to_child else LinkEnd.HOST
        if len(body) != traced.size:
            return [
                TranscriptStep(0, traced.at, StepKind.INVALID, to, size=traced.size, content="too long to be shown")
            ]
        key = traced.extension, traced.dialect
        if key not in self._readers:
            self._readers[key] = StepReader(TranscriptDecoder(DIALECTS[traced.dialect]).decode)
        return [*self._readers[key].read(FrameSent(traced.at, to, body))]


def line_of(traced: TracedFrame, step: TranscriptStep, *, full: bool) -> str:
    at = f"{strftime('%H:%M:%S', localtime(step.at))}.{int(step.at * 1000) % 1000:03}"
    arrow = "->" if traced.to_child else "<-"
    took = "" if step.seconds is None else f"after {format_seconds(step.seconds)}"
    parts = [at, traced.extension, arrow, str(step.kind), step.method, f"#{step.id}" if step.id else "", took]
    content = format_content(step)
    if not full:
        content = truncate(content, SHORT)
    return escape(" ".join(part for part in (*parts, content) if part))
