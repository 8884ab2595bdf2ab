"""Runs an extension as a program: stdio, dialect detection, signals, exit codes.

Started in a terminal, it prints what it offers and exits. It ends when the host sends `shutdown`, closes stdin, sends a
signal or exits.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from becket._threads import start_daemon_thread
from becket.dialects import NATIVE, detect_dialect, find_dialect
from becket.errors import ConnectionLost, DisconnectReason, LocalProtocolError
from becket.extension._logging_import import install_log_handler_with_logging
from becket.extension.decorators import DeclaredCommand, DeclaredHook, DeclaredMethod, DeclaredProvider, DeclaredTool
from becket.framing.detect import AutoDetect
from becket.peer.watchdog import EXIT_STOP_TIMEOUT, end_program, watch_host

if TYPE_CHECKING:
    from collections.abc import Callable
    from signal import SIG_DFL, SIGINT, SIGTERM, set_wakeup_fd, signal as set_handler

    from becket.dialects import Dialect
    from becket.extension.protocols import RunnableExtension
    from becket.framing.framing import FramingFactory
    from becket.peer.blocking_peer import BlockingPeer
    from becket.peer.peer import Peer
    from becket.peer.transport.fd import FdTransport

    WireChoice = tuple[Dialect, FramingFactory | None]
    ServeOutcome = tuple[ConnectionLost, str | None]  # why the link ended, and why the host was refused
else:
    from _signal import (  # the enums of `signal` take a child a millisecond
        SIG_DFL,
        SIGINT,
        SIGTERM,
        set_wakeup_fd,
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

EXIT_STOPPED: Final = 0  # the host sent shutdown, closed stdin, sent SIGTERM or SIGINT, or exited
# 1 is Python's exit code for an uncaught exception
EXIT_USAGE: Final = 2  # started in a terminal, or without a stdout: there is no host
EXIT_PROTOCOL_ERROR: Final = 3  # the host broke the protocol
# EXIT_STOP_TIMEOUT is 4: shutdown took too long
EXIT_REFUSED: Final = 5  # this extension cannot serve the host; stderr has the reason

STOP_GRACE: Final = 5.0  # seconds for shutdown; a becket host kills its extension after four
STDIN: Final = 0
LOOPS: Final = ("asyncio", "trio", "uvloop")


def run_extension(extension: RunnableExtension, loop: str | None, dialect: Dialect | str | None = None) -> int:
    """Serves the host over stdin and stdout until the link ends, and returns the exit code.

    Raises:
        ValueError: there is no such loop, or no such dialect.
        MissingExtra: the package of the loop is not installed.
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
    trigger = ShutdownTrigger()
    watch_for_shutdown(trigger, transport)
    wire = (chosen, None) if chosen is not None else wait_for_dialect(transport, trigger.signal_fd)
    if loop is None and extension.__becket__.is_blocking:
        lost, refusal = serve_blocking(extension, transport, wire, trigger)
    else:
        lost, refusal = serve_async(loop or "asyncio", extension, transport, wire, trigger)
    if refusal is not None:
        print(f"{extension.id}: {refusal}", file=sys.stderr)
        return EXIT_REFUSED
    return EXIT_PROTOCOL_ERROR if lost.reason is DisconnectReason.REMOTE_VIOLATION else EXIT_STOPPED


def wait_for_dialect(transport: FdTransport, signal_fd: int) -> WireChoice:
    """Waits for the first frame, and returns the dialect that it belongs to."""
    detector = AutoDetect()
    while data := transport.read_before_start(signal_fd):
        frames = detector.feed(data)
        if not frames and detector.error is None:
            continue
        frame = frames[0] if frames else None
        if isinstance(frame, (bytes, memoryview)) and detector.chosen is not None:
            dialect = detect_dialect(bytes(frame), type(detector.chosen))
            return dialect, None if dialect.load_mapping is not None else type(detector.chosen)
        break
    return NATIVE, AutoDetect


def serve_blocking(
    extension: RunnableExtension, transport: FdTransport, wire: WireChoice, trigger: ShutdownTrigger
) -> ServeOutcome:
    dialect, framing = wire
    serving = extension.blocking_over(transport, dialect=dialect, framing=framing, on_stopping=trigger.begin_to_end)

    def end() -> None:
        serving.stop()
        peer.close()

    with serving as peer:
        # In a thread: the thread that a signal interrupts may be reading, and must go on.
        trigger.set_stop(lambda: start_daemon_thread(end), peer)
        if trigger.signal_fd >= 0:
            peer.add_reader(trigger.signal_fd, trigger.receive_signals)
        return peer.serve(), serving.refusal_reason


def serve_async(
    loop: str, extension: RunnableExtension, transport: FdTransport, wire: WireChoice, trigger: ShutdownTrigger
) -> ServeOutcome:
    dialect, framing = wire

    async def serve() -> ServeOutcome:
        serving = extension.over(transport, dialect=dialect, framing=framing, on_stopping=trigger.begin_to_end)

        async def end() -> None:
            await serving.stop()
            await peer.aclose()

        async with serving as peer:
            workers = serving.workers
            trigger.set_stop(lambda: workers.call_soon(lambda: workers.spawn(end)), peer)
            if loop == "asyncio" and trigger.signal_fd >= 0:
                asyncio.get_running_loop().add_reader(trigger.signal_fd, trigger.receive_signals)
            return await peer.wait_closed(), serving.refusal_reason

    if loop != "asyncio" and trigger.signal_fd >= 0:
        set_wakeup_fd(-1)  # trio and uvloop set their own
    if loop == "trio":
        from becket._extras import needs_extra

        with needs_extra("trio"):
            import trio
        return trio.run(serve)
    import asyncio

    if loop == "uvloop":
        from becket._extras import needs_extra

        with needs_extra("uvloop"):
            import uvloop
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve())
    with asyncio.Runner() as runner:
        return runner.run(serve())


# -- shutdown


class ShutdownTrigger:
    """What a signal or the exit of the host does: before the extension serves, the program exits at once."""

    def __init__(self) -> None:
        self.stop: Callable[[], object] = lambda: os._exit(EXIT_STOPPED)
        self.signal_fd = -1  # readable when a signal has arrived; -1 outside the main thread
        self._is_ending = False
        self._observe: Callable[[], Callable[[], bool]] = lambda: lambda: False

    def set_stop(self, end: Callable[[], object], peer: Peer | BlockingPeer) -> None:
        """Sets the function that begins shutdown, once the extension serves."""
        self.stop = end
        self._observe = peer.observe_handlers

    def receive_signals(self) -> None:
        """Makes `signal_fd` wait for the next signal. The handler of the last one has run before."""
        os.read(self.signal_fd, 4096)

    def begin_to_end(self) -> None:
        """Limits the rest of the program to `STOP_GRACE` seconds."""
        self._is_ending = True

        def wait() -> None:
            from time import sleep

            sleep(STOP_GRACE)
            end_program(f"this program did not end within {STOP_GRACE:g} s: killed")

        start_daemon_thread(wait)

    def observe(self) -> Callable[[], bool]:
        """Returns a function that reports later whether a handler has prevented shutdown since."""
        is_stuck = self._observe()
        return lambda: not self._is_ending and is_stuck()


def watch_for_shutdown(trigger: ShutdownTrigger, transport: FdTransport) -> None:
    """Begins shutdown at a signal or when the host exits; a second signal ends the program at once.

    If a handler blocks the reader after stdin has ended, the watchdog ends the program."""

    def end() -> None:
        try:
            trigger.stop()
        except RuntimeError:
            pass  # the event loop is closed: the program is about to end

    def on_signal(number: int, frame: Any) -> None:
        set_handler(number, SIG_DFL)
        end()

    try:
        for number in (SIGTERM, SIGINT):
            set_handler(number, on_signal)
    except ValueError:
        pass  # only the main thread may set a handler
    else:
        # Python runs a handler once the main thread's wait has returned, and a signal just before the wait, or one that
        # another thread receives, does not interrupt it. So that no signal is missed, each wait includes this pipe.
        trigger.signal_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    # During shutdown the limit is STOP_GRACE, unless the host has exited.
    watch_host(transport.read_fd, trigger.observe, on_host_gone=end)


# -- in a terminal


def usage_text(extension: RunnableExtension) -> str:
    """Returns the text for a user who started the program in a terminal."""
    from shlex import join

    name = f"{extension.id} {extension.version}".strip()
    lines = [f"{name} is an extension: a host program starts it, and connects to it over stdin and stdout.", ""]
    for title, entries in describe_offers(extension).items():
        lines += [f"{title}:", *(f"  {entry}" for entry in entries), ""]
    return "\n".join([*lines, "Give a host this command to start it:", f"  {join([sys.executable, *sys.argv])}"])


def describe_offers(extension: RunnableExtension) -> dict[str, list[str]]:
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
