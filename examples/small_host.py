"""A host of four extensions: `python small_host.py`. Each is a process of its own, and may do what is granted here."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from becket import connect_extension
from becket.contract import Block, Confirm, HookEvent, Modify, TextDelta, user
from becket.errors import BadCapabilities
from becket.host import Extension, live
from becket.host.starting.connect import ExtensionConnector

EXTENSIONS = Path(__file__).parent / "extensions"
GRANTS = {
    "notes": ["memory.read", "memory.write", "tools.register"],
    "eliza": ["providers.register"],
    "census": [],
    "guard": ["session.lifecycle", "tools.intercept", "tools.transform_output"],
}


def start(name: str, grants: list[str]) -> ExtensionConnector:
    folder = EXTENSIONS / name
    return connect_extension([sys.executable, f"{name}.py"], id=name, root=folder, grants=grants)


async def use_tools(notes: Extension) -> None:
    print("notes offers:", ", ".join(tool.name for tool in notes.tools))
    print(await notes.call_tool("keep", {"text": "buy milk", "tags": ["shop"]}))
    print(await notes.call_tool("keep", {"text": "call Ada"}))
    print(await notes.call_tool("find", {"text": "MILK"}))


async def ask_model(eliza: Extension) -> None:
    async with eliza.stream("eliza", "doctor", messages=[user("I am tired of my old code.")]) as response:
        async for event in response:
            if isinstance(event, TextDelta):
                print(event.text, end="", flush=True)
    print()


async def run_command(census: Extension) -> None:
    async with census.invoke_command("census", [str(EXTENSIONS / "guard")]) as run:
        print("census returned", await live(run))


async def ask_before(guard: Extension, command: str) -> None:
    match await guard.handle_hook(HookEvent.before_tool_call("bash", {"command": command})):
        case Block(reason):
            print(f"blocked: {reason}")
        case Confirm(question):
            print(f"to be asked: {question}")
        case Modify(changed):
            print(f"run as {changed}")
        case _:
            print("run as it is")


async def main() -> None:
    async with (
        start("notes", GRANTS["notes"]) as notes,
        start("eliza", GRANTS["eliza"]) as eliza,
        start("census", GRANTS["census"]) as census,
        start("guard", GRANTS["guard"]) as guard,
    ):
        await use_tools(notes)
        await ask_model(eliza)
        await run_command(census)
        for command in ("rm -rf /", "git push --force", "ls"):
            await ask_before(guard, command)
    try:
        await start("notes", grants=["memory.read"])
    except BadCapabilities as error:
        print(f"not started: {error}")


if __name__ == "__main__":
    asyncio.run(main())
