"""What becket does, in a few seconds: `make demo`. Exits with 0 only if every check has passed.

Colours on a terminal, plain text elsewhere and where NO_COLOR is set.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from msgspec import Struct

from becket import BecketError, Peer, PeerCrashed
from demo_dialects import show_dialects
from demo_host import show_host
from demo_languages import show_languages
from demo_screen import Broken, Screen, bar

CHILD = Path(__file__).with_name("demo_child.py")
PATIENCE = 20  # seconds for the whole demonstration: a machine with much else to do is slow, never this slow


class Pair(Struct):
    a: int
    b: int


class Text(Struct):
    text: str


class Page(Struct):
    page: int
    of: int


# -- what is shown


async def show_calls(screen: Screen, peer: Peer) -> None:
    screen.section("Calls in both directions", "The child cannot add. It calls the host, in the middle of a call.")
    additions: list[Pair] = []

    @peer.handle("host/add")
    def add(params: Pair) -> int:
        additions.append(params)
        screen.line("child", f"calls: what is {params.a} + {params.b}?")
        return params.a + params.b

    screen.line("host", "calls: what is the total of 1, 2, 3 and 4?")
    total = await peer.call("total", {"numbers": [1, 2, 3, 4]}, returns=int)
    screen.line("child", f"responds: {total}")
    screen.check(total == 10 and len(additions) == 4, "One call went out, and four came back while it was open.")


async def show_stream(screen: Screen, peer: Peer) -> None:
    screen.section("A stream", "A long call reports as it goes. The host reads its events, then its result.")
    pages: list[int] = []
    async with peer.stream("print", {"pages": 5}, events={"page": Page}) as run:
        async for event in run:
            if isinstance(event, Page):
                pages.append(event.page)
                screen.line("child", f"page {event.page} of {event.of}  {bar(event.page, event.of)}")
        screen.line("child", f"responds: {await run.result()}")
    screen.check(pages == [1, 2, 3, 4, 5], "Five events came, in order, and the result came last.")


async def show_cancellation(screen: Screen, peer: Peer) -> None:
    screen.section("A cancellation", "The host stops waiting, and the work in the child is cancelled too.")
    received: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @peer.on("host/hear")
    def on_text(params: Text) -> None:
        received.set_result(params.text)

    async with peer.stream("think") as run:
        async for digits in run:
            screen.line("child", f"computes pi: {digits}")
            if len(str(digits)) == 5:
                break
    screen.line("host", "has enough digits, and leaves the call")
    screen.line("child", f"notifies: {await received}")
    screen.check("cancelled" in received.result(), "The cancellation crossed the pipe and reached the handler.")


async def show_stray_prints(screen: Screen, peer: Peer) -> None:
    screen.section("Stray prints", "The child writes to its stdout, where the wire was. None of it gets there.")
    lines = await peer.call("chatter", returns=int)
    for _ in range(lines):
        screen.line("stderr", await screen.stderr.get())
    screen.check(lines == 3 and not peer.is_closed, "Three lines ended up on stderr, and the link still works.")


async def show_crash(screen: Screen, peer: Peer) -> None:
    screen.section("A crash", "Three calls are open when a fourth kills the child. Every one of them must settle.")
    methods = ("wait", "wait", "wait", "crash")
    ends = await asyncio.gather(*(peer.call(method, timeout=None) for method in methods), return_exceptions=True)
    for method, end in zip(methods, ends, strict=True):
        screen.line("host", f"`{method}` failed: {end}")
    codes = [end.exit_code for end in ends if isinstance(end, PeerCrashed) and "on fire" in end.stderr_tail]
    screen.check(codes == [70] * 4, "All four ended with the exit code and the child's last line of stderr.")


# -- all of it


async def show_all(screen: Screen) -> None:
    print(screen.paint("title", "becket: a host and a child process that call each other"))
    child = Peer.connect_process([sys.executable, CHILD], on_stderr=screen.stderr.put_nowait)
    async with asyncio.timeout(PATIENCE), child as peer:
        await show_calls(screen, peer)
        await show_stream(screen, peer)
        await show_cancellation(screen, peer)
        await show_stray_prints(screen, peer)
        await show_crash(screen, peer)
    with tempfile.TemporaryDirectory(prefix="becket-demo-") as folder:
        async with asyncio.timeout(PATIENCE):
            await show_host(screen, Path(folder))
    async with asyncio.timeout(PATIENCE):
        await show_dialects(screen)
    await show_languages(screen)


def main() -> int:
    wants_colour = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    screen = Screen(coloured=sys.stdout.isatty() and wants_colour)
    try:
        asyncio.run(show_all(screen))
    except (Broken, BecketError, TimeoutError) as error:
        print(f"\n{screen.paint('FAILED', 'FAILED')}: {str(error) or 'it took too long'}")
        return 1
    print("\nEvery check has passed. To read on: README.md. To try it yourself: examples/.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
