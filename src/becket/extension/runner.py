"""Runs an extension as a program: stdio, dialect detection, signals, exit codes.

A program that a host has started never reads from a terminal; one that does was started by hand, and says what it is
instead of waiting for ever. It ends when its host says so, closes its stdin, sends a signal, or is gone.
"""

from __future__ import annotations

import os
import sys
from _thread import start_new_thread
from typing import TYPE_CHECKING, Any, Final

from becket.dialects import NATIVE, find_dialect
from becket.errors import ConnectionLost, DisconnectReason, LocalProtocolError
from becket.extension._logging_import import install_log_handler_with_logging
from becket.extension.decorators import DeclaredCommand, DeclaredHook, DeclaredMethod, DeclaredProvider, DeclaredTool
from becket.framing.detect import AutoDetect
from becket.peer.watchdog import EXIT_STOP_TIMEOUT, end_program, watch_host

if TYPE_CHECKING:
    from collections.abc import Callable
    from signal import SIG_DFL, SIGINT, SIGTERM, signal as set_handler

    from becket.dialects import Dialect
    from becket.extension.server import ExtensionServer
    from becket.framing.framing import FramingFactory
    from becket.peer.blocking_peer import BlockingPeer
    from becket.peer.peer import Peer
    from becket.peer.transport.fd import FdTransport

    WireChoice = tuple[Dialect, FramingFactory | None]
    ServeOutcome = tuple[ConnectionLost, str | None]  # why it ended, and why the host was refused
else:
    from _signal import (  # the enums of `signal` take a child a millisecond
        SIG_DFL,
        SIGINT,
        SIGTERM,
        signal as set_handler,
    )

__all__ = [
    "EXIT_PROTOCOL_ERROR",
    "EXIT_REFUSED",
    "EXIT_STOPPED",
    "EXIT_STOP_TIMEOUT",
    "EXIT_USAGE",
    "STOP_GRACE",
    "run_extension",
    "usage_text",
]

EXIT_STOPPED: Final = 0  # the host ended us: it said so, closed our stdin, sent SIGTERM or SIGINT, or is gone
# 1 is Python's own, for an exception that nobody caught
EXIT_USAGE: Final = 2  # started by hand, in a terminal, or without a stdout: there is no host
EXIT_PROTOCOL_ERROR: Final = 3  # what came in was no message: the other side broke the protocol
# EXIT_STUCK is 4: the end took too long
EXIT_REFUSED: Final = 5  # the host is none that this extension can serve; stderr says why

STOP_GRACE: Final = 5.0  # seconds for the end; a host has killed us after four
STDIN: Final = 0
LOOPS: Final = ("asyncio", "trio", "uvloop")


def run_extension(extension: ExtensionServer, loop: str | None, dialect: Dialect | str | None = None) -> int:
    """Serves the host over stdin and stdout until the end, and returns the exit code.

    Raises:
        ValueError: there is no such loop, or no such dialect.
    """
    chosen = None if dialect is None else find_dialect(dialect)
    if loop not in (None, *LOOPS):
        raise ValueError(f"unknown loop: {loop} (known: {', '.join(LOOPS)})")
    if sys.stdin is not None and os.isatty(STDIN):
        print(usage_text(extension))
        return EXIT_USAGE
    from becket.peer.transport.stdio import open_stdio_transport

    try:
        transport = open_stdio_transport()
    except LocalProtocolError as error:
        print(f"{extension.id}: {error}", file=sys.stderr)
        return EXIT_USAGE
    install_log_handler_with_logging()
    life = ShutdownTrigger()
    watch_for_shutdown(life, transport)
    wire = (chosen, None) if chosen is not None else detect_dialect(transport)
    if loop is None and extension.__becket__.is_blocking:
        lost, refusal = serve_blocking(extension, transport, wire, life)
    else:
        lost, refusal = serve_async(loop or "asyncio", extension, transport, wire, life)
    if refusal is not None:
        print(f"{extension.id}: {refusal}", file=sys.stderr)
        return EXIT_REFUSED
    return EXIT_PROTOCOL_ERROR if lost.reason is DisconnectReason.REMOTE_VIOLATION else EXIT_STOPPED


def detect_dialect(transport: FdTransport) -> WireChoice:
    """Waits for the first thing that the host says, and returns the dialect that it speaks."""
    sniffing = AutoDetect()
    while data := transport.read_before_start():
        frames = sniffing.feed(data)
        if not frames and sniffing.error is None:
            continue
        frame = frames[0] if frames else None
        if isinstance(frame, (bytes, memoryview)) and sniffing.chosen is not None:
            from becket.dialects.detect import detect_dialect

            dialect = detect_dialect(bytes(frame), type(sniffing.chosen))
            return dialect, None if dialect.load_mapping is not None else type(sniffing.chosen)
        break
    return NATIVE, AutoDetect


def serve_blocking(
    extension: ExtensionServer, transport: FdTransport, wire: WireChoice, life: ShutdownTrigger
) -> ServeOutcome:
    dialect, framing = wire
    serving = extension.blocking_over(transport, dialect=dialect, framing=framing, when_ending=life.begin_to_end)

    def end() -> None:
        serving.stop()
        peer.close()

    with serving as peer:
        # In a thread: the one that is interrupted by the signal may be reading, and must go on.
        life.set_stop(lambda: start_new_thread(end, ()), peer)
        return peer.serve(), serving.refusal_reason


def serve_async(
    loop: str, extension: ExtensionServer, transport: FdTransport, wire: WireChoice, life: ShutdownTrigger
) -> ServeOutcome:
    dialect, framing = wire

    async def serve() -> ServeOutcome:
        serving = extension.over(transport, dialect=dialect, framing=framing, when_ending=life.begin_to_end)

        async def end() -> None:
            await serving.stop()
            await peer.aclose()

        async with serving as peer:
            workers = serving.workers
            life.set_stop(lambda: workers.call_soon(lambda: workers.spawn(end)), peer)
            return await peer.wait_closed(), serving.refusal_reason

    if loop == "trio":
        import trio

        return trio.run(serve)
    import asyncio

    if loop == "uvloop":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve())
    with asyncio.Runner() as runner:
        return runner.run(serve())


# -- when it starts and ends


class ShutdownTrigger:
    """What a signal or the end of the host does: before the extension serves, the program ends at once."""

    def __init__(self) -> None:
        self.stop: Callable[[], object] = lambda: os._exit(EXIT_STOPPED)
        self._is_ending = False
        self._observe: Callable[[], Callable[[], bool]] = lambda: lambda: False

    def set_stop(self, end: Callable[[], object], peer: Peer | BlockingPeer) -> None:
        """From now on it serves, and its end begins with this function."""
        self.stop = end
        self._observe = peer.observe_handlers

    def begin_to_end(self) -> None:
        """From now on the program has so many seconds, whatever its functions and threads do."""
        self._is_ending = True

        def wait() -> None:
            from time import sleep

            sleep(STOP_GRACE)
            end_program(f"the end took longer than {STOP_GRACE:g} s: given up")

        start_new_thread(wait, ())

    def observe(self) -> Callable[[], bool]:
        """Returns a function that tells, some time later, whether a handler keeps the end from beginning."""
        is_stuck = self._observe()
        return lambda: not self._is_ending and is_stuck()


def watch_for_shutdown(life: ShutdownTrigger, transport: FdTransport) -> None:
    """Has a signal, or the death of the host, begin the end; a second signal ends the program at once.

    Where a handler keeps the reader from learning that stdin has ended, the watchdog ends the program."""

    def end() -> None:
        try:
            life.stop()
        except RuntimeError:
            pass  # the event loop is gone: the program is about to be

    def take(number: int, frame: Any) -> None:
        set_handler(number, SIG_DFL)
        end()

    for number in (SIGTERM, SIGINT):
        try:
            set_handler(number, take)
        except ValueError:
            break  # only the main thread may; whoever runs an extension in another one ends it otherwise
    # Once the end has begun it has its own time, unless the host is gone.
    watch_host(transport.read_fd, life.observe, on_host_gone=end)


# -- started by hand


def usage_text(extension: ExtensionServer) -> str:
    """Returns what a person who started the program in a terminal should know."""
    from shlex import join

    name = f"{extension.id} {extension.version}".strip()
    lines = [f"{name} is an extension: a host program starts it, and speaks with it over stdin and stdout.", ""]
    for title, entries in describe_offers(extension).items():
        lines += [f"{title}:", *(f"  {entry}" for entry in entries), ""]
    return "\n".join([*lines, "Give a host this command to start it:", f"  {join([sys.executable, *sys.argv])}"])


def describe_offers(extension: ExtensionServer) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in extension.__becket__.declared:
        match each.item:
            case DeclaredTool() as tool:
                found.setdefault("Tools", []).append(f"{tool.name}: {tool.description}")
            case DeclaredCommand() as command:
                found.setdefault("Commands", []).append(command.name)
            case DeclaredProvider() as provider:
                models = ", ".join(model.id for model in provider.models)
                found.setdefault("Providers", []).append(f"{provider.id}: {models}")
            case DeclaredHook() as hook:
                only = f" of {hook.match.tool}" if hook.match.tool else ""
                found.setdefault("Hooks", []).append(f"{hook.kind}{only}")
            case DeclaredMethod() as own:
                found.setdefault("Methods", []).append(own.method if isinstance(own.method, str) else own.method.name)
    for capability in extension.capabilities:
        found.setdefault("Capabilities", []).append(f"{capability.kind}: {capability.name}")
    return found
