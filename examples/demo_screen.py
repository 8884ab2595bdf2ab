"""How the demonstration is shown: sections of short lines, in colour where that is wanted."""

from __future__ import annotations

import asyncio

__all__ = ["Broken", "Screen", "bar"]

COLOURS = {"title": "1", "host": "36", "child": "35", "stderr": "33", "ok": "32", "FAILED": "31"}


class Broken(Exception):
    """A check has failed."""


class Screen:
    """Writes sections of short lines, in colour where that is wanted."""

    def __init__(self, *, coloured: bool) -> None:
        self.stderr: asyncio.Queue[str] = asyncio.Queue()  # what the child has written there
        self._coloured = coloured
        self._sections = 0

    def section(self, title: str, promise: str) -> None:
        self._sections += 1
        print(f"\n{self.paint('title', f'{self._sections}. {title}')}\n   {promise}\n", flush=True)

    def line(self, who: str, text: str, colour: str = "child") -> None:
        print(f"   {self.paint(who if who in COLOURS else colour, f'{who:>10}')} | {text}", flush=True)

    def check(self, happened: bool, sentence: str) -> None:
        if not happened:
            raise Broken(f"this was not seen: {sentence}")
        print(f"\n   {self.paint('ok', 'ok')}: {sentence}", flush=True)

    def paint(self, colour: str, text: str) -> str:
        return f"\033[{COLOURS[colour]}m{text}\033[0m" if self._coloured else text


def bar(done: int, all: int, width: int | None = None) -> str:
    """Returns a bar that is filled as far as the work is done."""
    wide = all if width is None else width
    filled = done if width is None else wide * done // max(all, 1)
    return "[" + "#" * filled + "." * (wide - filled) + "]"
