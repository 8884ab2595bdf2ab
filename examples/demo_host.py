"""The second half of the demonstration: a host on the folder `extensions`, with a data directory."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path

from becket import Host, HostSettings, PeerCrashed, RemoteError
from becket.contract import Block, HookEvent, Table, TaskStarted, TaskUpdated, TextDelta, user
from becket.contract.audit import CallDecided
from becket.host.audit_log import read_audit
from becket.host.events import ExtensionRestarted
from demo_screen import Screen, bar

__all__ = ["show_host"]

EXTENSIONS = Path(__file__).with_name("extensions")
GRANTS = {
    "notes": ["memory.read", "memory.write", "tools.register"],
    "eliza": ["providers.register"],
    "guard": ["session.lifecycle", "tools.intercept", "tools.transform_output"],
    "census": [],
}


def open_host(data: Path) -> Host:
    # `dice` is written in JavaScript, and needs Node.
    return Host([EXTENSIONS], grants=GRANTS, data=data, settings=HostSettings(only=list(GRANTS)))


async def show_host(screen: Screen, data: Path) -> None:
    """Shows what a host does with four extensions; `data` is an empty folder for its data."""
    logging.getLogger("becket.ext").addHandler(logging.NullHandler())  # what they write to stderr is not shown here
    logging.getLogger("becket.ext").propagate = False
    async with open_host(data) as host:
        await show_start(screen, host)
        await show_tools(screen, host)
        await show_answer(screen, host)
        await show_command(screen, host)
        await show_guard(screen, host)
        await show_denial(screen, host, data)
        await show_recovery(screen, host)
    await show_memory(screen, data)


async def show_start(screen: Screen, host: Host) -> None:
    screen.section("A host and its extensions", "Four programs in a folder: found, approved and started.")
    for id in host:
        await host.ready(id)
    for status in host.status():
        screen.line("host", f"{status.id:8} {status.version}  {status.state}, {status.tools} tools")
    screen.check(len(host.status()) == 4, "All four run, with the permissions of their grants and no others.")


async def show_tools(screen: Screen, host: Host) -> None:
    screen.section("Tools and memory", "`notes` stores texts in the store of the host.")
    for text in ("buy milk", "call Ada", "milk the cow"):
        screen.line("notes", await host.call_tool("notes_keep", {"text": text}))
    found = await host.call_tool("notes_find", {"text": "MILK"})
    for line in found.splitlines():
        screen.line("notes", line)
    screen.check(found == "- milk the cow\n- buy milk", "It found both, whatever the case, the newest first.")


async def show_answer(screen: Screen, host: Host) -> None:
    screen.section("A streamed response", "`eliza` is a provider of models. Its words come one by one.")
    words: list[str] = []
    async with host.stream("eliza:eliza:doctor", messages=[user("I need a holiday")]) as response:
        async for event in response:
            if isinstance(event, TextDelta):
                words.append(event.text)
                screen.line("eliza", "".join(words))
    screen.check(
        (await response.result()).text == "Why do you need a holiday?" and len(words) > 3,
        "The words came as typed events, and the whole response at the end.",
    )


async def show_command(screen: Screen, host: Host) -> None:
    screen.section(
        "A command with a progress bar", "`census` counts the lines of these examples, and reports progress."
    )
    seen = 0
    tables: list[Table] = []
    async with host["census"].invoke_command("census", [str(EXTENSIONS)]) as run:
        async for event in run:
            match event:
                case TaskStarted():
                    screen.line("census", event.label)
                case TaskUpdated(current=int(current), total=int(total)):
                    seen += 1
                    screen.line("census", f"{bar(current, total, 20)} {current} of {total}")
                case Table():
                    tables.append(event)
                case _:
                    pass
    for table in tables:
        for row in (table.headers, *table.rows):
            screen.line("census", "".join(f"{cell:<10}" for cell in row).rstrip())
    screen.check(bool(tables) and seen > 5, "Progress and a table came while the command ran, as typed events.")


async def show_guard(screen: Screen, host: Host) -> None:
    screen.section("A hook that blocks", "`guard` is called before a model runs a command.")
    screen.line("host", "a model calls bash: rm -rf /")
    verdict = await host.run_hooks(HookEvent.before_tool_call("bash", {"command": "rm -rf /"}))
    screen.line("guard", f"responds: {type(verdict.result).__name__}")
    screen.check(isinstance(verdict.result, Block) and verdict.by == "guard", "It was blocked; the verdict names it.")


async def show_denial(screen: Screen, host: Host, data: Path) -> None:
    screen.section("A permission that is revoked", "`notes` may not write any more, from this moment on.")
    await host.revoke("notes", "memory.write")
    try:
        await host.call_tool("notes_keep", {"text": "a secret"})
    except RemoteError:
        screen.line("notes", "fails, without internal details")
    await host.grant("notes", "memory.write")
    events = (record.event for record in read_audit(data / "audit.jsonl"))
    denials = [event for event in events if isinstance(event, CallDecided) and not event.allowed]
    for denial in denials:
        screen.line("audit", f"{denial.extension} may not call {denial.method}: {denial.permission} required")
    screen.check(len(denials) == 1, "The host refused the call before it read the note, and the audit has a record.")


async def show_recovery(screen: Screen, host: Host) -> None:
    screen.section("A crash and its recovery", "The process of `notes` is killed. The host starts it again.")
    restarted: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    host.on(ExtensionRestarted)(lambda event: restarted.set_result(event.seconds))
    notes = await host.ready("notes")
    pid = next(status.pid for status in host.status() if status.id == "notes")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    try:
        await notes.call_tool("count")
    except PeerCrashed as error:
        screen.line("host", f"reports: the process was killed by {error.signal}")
    screen.line("host", f"has it running again after {await restarted:.2f} seconds")
    screen.line("notes", f"counts {await notes.call_tool('count')} notes")
    screen.check(notes.restarts == 1, "The same handle works with the new process.")


async def show_memory(screen: Screen, data: Path) -> None:
    screen.section("A memory that survives", "The host has ended. Another one opens the same folder.")
    async with open_host(data) as host:
        await host.ready("notes")
        count = await host.call_tool("notes_count")
        screen.line("notes", f"counts {count} notes")
    screen.check(count == "3", "What was acknowledged is there, with the grants and the audit.")
