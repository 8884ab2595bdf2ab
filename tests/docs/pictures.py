"""The pictures of terminals in the README: `python -m tests.docs.pictures` draws them anew.

They are taken from what `becket run` and `becket invoke` draw, with the extensions of the examples at work. Ids of
processes, times and counts differ from one picture to the next; `words_of` is what stays.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Awaitable, Callable, Iterable
from html import unescape
from io import StringIO
from pathlib import Path
from time import strftime

import anyio
from rich.console import Console
from rich.text import Text
from tests.docs.pages import ROOT

from becket.cli.support.event_format import format_event
from becket.cli.support.screen import WIDE, build_table
from becket.contract.providers import user
from becket.host import Host, HostSettings, SupervisionPolicy, live
from becket.host.events import ExtensionDiscovered, ExtensionEvent, ExtensionLogged, ExtensionRestarted

__all__ = ["PICTURES", "words_of"]

EXTENSIONS = ROOT / "examples" / "extensions"
SHOWN = ("census", "eliza", "guard", "notes")  # the fifth needs Node, which is not everywhere
TERMINAL = {"TERM": "xterm-256color"}
GRANTS = {
    "eliza": ["providers.register"],
    "guard": ["session.lifecycle", "tools.intercept", "tools.transform_output"],
    "notes": ["memory.read", "memory.write", "tools.register"],
}


def open_host() -> Host:
    """Returns a host that calls no extension slow: on a busy machine the picture would be another one."""
    return Host(
        [EXTENSIONS],
        grants=GRANTS,
        data=None,
        settings=HostSettings(only=SHOWN, supervision=SupervisionPolicy(heartbeat=None)),
    )


# -- becket run


async def draw_run() -> str:
    """Returns a picture of `becket run` while extensions work, one of which was killed and runs again."""
    host = open_host()
    lines: list[str] = []
    has_returned = anyio.Event()

    def on_event(event: ExtensionEvent) -> None:
        text = format_event(event)
        if text is not None and not isinstance(event, ExtensionDiscovered | ExtensionLogged):
            lines.append(f"{strftime('%H:%M:%S')} {text}")
        if isinstance(event, ExtensionRestarted):
            has_returned.set()

    unsubscribe = host.events.subscribe(ExtensionEvent, on_event)
    async with host:
        for id in host:
            await host.ready(id)
        await work(host)
        process = next(status.pid for status in host.status() if status.id == "census")
        assert process is not None
        os.kill(process, signal.SIGKILL)
        await has_returned.wait()
        unsubscribe()
        screen = record(WIDE)
        screen.print("$ becket run examples/extensions --disable dice", style="bold")
        for line in lines:
            screen.print(line, markup=False)
        screen.print(build_table(host.status()))
    return screen.export_svg(title="becket run")


async def work(host: Host) -> None:
    """Makes calls that the table can count."""
    for number in range(20):
        await host.call_tool("notes_keep", {"text": f"note {number}"})
    await host.complete("eliza:eliza:doctor", messages=[user("I need a holiday")])


# -- becket invoke


async def draw_invoke() -> str:
    """Returns a picture of `becket invoke` at the end of a command with a progress bar and a table."""
    output = StringIO()
    terminal = Console(
        file=output, force_terminal=True, color_system="truecolor", no_color=False, width=80, _environ=TERMINAL
    )
    async with open_host() as host:
        census = await host.ready("census")
        async with census.invoke_command("census", [str(ROOT / "examples" / "extensions")]) as run:
            await live(run, terminal)
    screen = record(80)
    screen.print('$ becket invoke --root examples/extensions census census "$PWD/examples/extensions"', style="bold")
    for line in what_is_seen(output.getvalue()):
        screen.print(Text.from_ansi(line))
    return screen.export_svg(title="becket invoke")


def what_is_seen(output: str) -> list[str]:
    """Returns the lines that a terminal shows at the end, with their colours, of what was written to it.

    It knows as much as `rich` needs to draw in place: to go up, to go to the beginning of a line, to erase one."""
    lines = [""]
    row = 0
    for part in re.split(r"(\n|\r|\x1b\[\d*A|\x1b\[\?25[hl]|\x1b\[2K)", output):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("A") and part.startswith("\x1b["):
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part != "\r" and not part.startswith("\x1b[?25"):
            lines[row] += part
    return [line.rstrip() for line in lines]


# -- pictures as files


def record(width: int) -> Console:
    """Returns a screen whose picture can be taken."""
    return Console(
        record=True,
        file=StringIO(),
        force_terminal=True,
        no_color=False,
        width=width,
        highlight=False,
        _environ=TERMINAL,
    )


PICTURES: dict[Path, Callable[[], Awaitable[str]]] = {
    ROOT / "docs" / "run.svg": draw_run,
    ROOT / "docs" / "invoke.svg": draw_invoke,
}


def words_of(picture: str) -> list[str]:
    """Returns the words of a picture, each once and sorted: without numbers, and without what is only drawn."""
    texts: Iterable[str] = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    return sorted(
        {word for text in texts for word in re.findall(r"[a-z$:.\-/]*[a-z]+[:]?", unescape(text), re.IGNORECASE)}
    )


async def draw_all() -> None:
    for path, draw in PICTURES.items():
        path.write_text(await draw(), encoding="utf-8")
        print(f"drawn: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    anyio.run(draw_all)
