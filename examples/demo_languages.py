"""The last part of the demonstration: the same extension in each language whose toolchain is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
from msgspec import Struct

from becket import Host
from demo_screen import Screen

__all__ = ["KITS", "Kit", "show_languages"]

PATIENCE = 20  # seconds for one language
BUILD_PATIENCE = 120  # for the first build; later ones take a second
SDK = Path(__file__).resolve().parents[1] / "sdk"
GRANTS = ["config.write", "memory.read", "memory.write", "providers.register", "tools.intercept", "tools.register"]


class Kit(Struct, frozen=True):
    """The kit of a language: the program that its example needs, and the command line that builds it, if any.

    `built` is a file of an example whose build takes too long for a demonstration: without it, the kit is skipped."""

    needs: str
    build: tuple[str, ...] = ()
    built: str = ""


KITS: dict[str, Kit] = {
    "typescript": Kit("node"),
    "go": Kit("go", ("go", "build", "-o", "build/", ".")),
    "rust": Kit("cargo", built="build/bin/rust-example"),
}


async def show_languages(screen: Screen) -> None:
    screen.section("Other languages", "One extension, written with the kit of each language that is installed here.")
    responses: list[str] = []
    for language, kit in KITS.items():
        if shutil.which(kit.needs) is None:
            screen.line(language, f"is skipped: {kit.needs} is not installed")
            continue
        folder = SDK / language / "example"
        if kit.built and not (folder / kit.built).exists():
            screen.line(language, f"is skipped: run `make sdk-ready-{language}` first")
            continue
        if kit.build:
            with anyio.fail_after(BUILD_PATIENCE):
                await anyio.run_process(kit.build, cwd=folder)
        with anyio.fail_after(PATIENCE):
            async with Host([folder], grants={language: GRANTS}, data=None) as host:
                await host.ready(language)
                greeting = await host.call_tool(f"{language}_greet", {"name": "Ada"})
        screen.line(language, greeting)
        responses.append(greeting)
    screen.check(set(responses) <= {"Hello, Ada!"}, "Each responds like any other extension.")
