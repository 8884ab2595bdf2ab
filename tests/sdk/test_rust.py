"""The example of the kit for Rust in a real host, the end of its process, and the conformance cases."""

from __future__ import annotations

import logging
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from becket import Host, RemoteError
from becket.contract import (
    Block,
    CommandDone,
    Continue,
    EditorClosed,
    EditorCommitted,
    HookEvent,
    Table,
    TextDelta,
    Usage,
    user,
)
from becket.contract.commands import SystemText
from becket.contract.config import ConfigSet
from becket.contract.tasks import TaskEnded, TaskKind, TaskStarted, TaskUpdated
from becket.errors import CallTimeout
from becket.host.extension import Extension

KIT = Path(__file__).parents[2] / "sdk" / "rust"
EXAMPLE = KIT / "example"
PROGRAM = EXAMPLE / "build" / "bin" / "rust-example"
CONFORM = KIT / "target" / "debug" / "examples" / "conform"
PERMISSIONS = [
    "config.write",
    "memory.read",
    "memory.write",
    "providers.register",
    "tools.intercept",
    "tools.register",
]
PATIENCE = 60  # seconds


def find_missing() -> str:
    if shutil.which("cargo") is None:
        return "cargo is not installed"
    return "" if PROGRAM.exists() and CONFORM.exists() else "the example is not built: run `make sdk-ready-rust`"


pytestmark = [
    pytest.mark.process,
    pytest.mark.loops,
    pytest.mark.skipif(bool(find_missing()), reason=find_missing() or "it is built"),
]


# -- the example in a host


@asynccontextmanager
async def run_example() -> AsyncIterator[tuple[Host, Extension]]:
    """Starts the example in a host, within a time bound."""
    with anyio.fail_after(PATIENCE):
        async with Host([EXAMPLE], grants={"rust": PERMISSIONS}, data=None) as host:
            yield host, await host.ready("rust")


async def test_tools_use_configuration_memory_and_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "becket.ext.rust")
    async with run_example() as (host, _):
        assert await host.call_tool("rust_greet", {"name": "Ada", "times": 2}) == "Hello, Ada! Hello, Ada!"
        await anyio.to_thread.run_sync(host.store.set_config, "rust", ConfigSet("greeting", "Salve"))
        assert await host.call_tool("rust_greet", {"name": "Ada"}) == "Salve, Ada!"
        assert [await host.call_tool_json("rust_keep", {"text": text}) for text in ("milk", "tea")] == [1, 2]
    assert "kept: tea" in caplog.text


async def test_a_command_shows_a_task_and_a_table() -> None:
    async with run_example() as (_, rust):
        async with rust.invoke_command("letters", ["milk", "tea"]) as run:
            events = [event async for event in run]
            assert await run.result() == {"milk": 4, "tea": 3}
        started, *updates, ended, table, done = events
        assert isinstance(started, TaskStarted)
        assert (started.label, started.kind) == ("Counting letters", TaskKind.GENERIC)
        shown = [(it.current, it.total, it.message) for it in updates if isinstance(it, TaskUpdated)]
        assert shown == [(0, 2, None), (1, 2, "milk"), (2, 2, "tea")]
        assert ended == TaskEnded(started.id)
        assert table == Table(("word", "letters"), (("milk", "4"), ("tea", "3")))
        assert done == CommandDone()
        async with rust.invoke_command("letters") as run:
            assert [event async for event in run] == [SystemText("Usage: letters WORD..."), CommandDone()]


async def test_a_provider_streams_its_answer() -> None:
    async with run_example() as (_, rust), rust.stream("parrot", "small", messages=[user("good day")]) as answer:
        events = [event async for event in answer]
        assert "".join(it.text for it in events if isinstance(it, TextDelta)) == "You said: good day"
        assert Usage({"output_tokens": 4}) in events
        assert (await answer.result()).text == "You said: good day"


async def test_a_hook_blocks_what_it_guards() -> None:
    async with run_example() as (host, _):
        verdict = await host.run_hooks(HookEvent.before_tool_call("bash", {"command": "rm -rf /"}))
        assert (verdict.result, verdict.by) == (Block("it would delete everything"), "rust")
        verdict = await host.run_hooks(HookEvent.before_tool_call("bash", {"command": "ls"}))
        assert verdict.result == Continue()


async def test_the_editor_of_a_setting_moves_commits_and_closes() -> None:
    async with run_example() as (_, rust):
        ended: list[EditorCommitted | EditorClosed] = []
        rust.on(EditorCommitted)(ended.append)
        rust.on(EditorClosed)(ended.append)
        opened = await rust.open_editor("lamp", "colour")
        assert opened is not None
        assert [row.label for row in opened.rows] == ["white", "blue", "red"]
        moved = await rust.press_editor_key("lamp", "colour", "Down")
        assert moved is not None
        assert moved.cursor == 1
        assert await rust.press_editor_key("lamp", "colour", "Enter") is None
        assert await rust.press_editor_key("lamp", "colour", "Esc") is None
        assert ended == [EditorCommitted("blue"), EditorClosed("nothing has changed")]


async def test_an_input_that_does_not_fit_is_rejected_with_its_path() -> None:
    async with run_example() as (_, rust):
        with pytest.raises(RemoteError) as caught:
            await rust.call("tool.call", {"name": "greet", "input": {"name": "Ada", "times": "x"}})
        assert caught.value.code == -32602
        assert "/input/times" in caught.value.message


async def test_a_cancelled_tool_ends_and_the_extension_goes_on() -> None:
    async with run_example() as (host, _):
        with anyio.move_on_after(0.2):
            await host.call_tool("rust_wait")
        assert await host.call_tool("rust_greet", {"name": "Ada"}) == "Hello, Ada!"


async def test_a_tool_that_misses_its_deadline_times_out() -> None:
    async with run_example() as (host, _):
        with pytest.raises((CallTimeout, RemoteError), match=r"within|deadline"):  # whichever clock is first
            await host.call_tool("rust_wait", timeout=0.2)
        assert await host.call_tool("rust_greet", {"name": "Ada"}) == "Hello, Ada!"


# -- the process


def test_it_ends_with_its_host_while_a_tool_waits() -> None:
    initialize = '{"extension_protocol_version":1,"plugin_id":"rust","plugin_root":null,"config":{}}'
    requests = [
        f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{initialize}}}',
        '{"jsonrpc":"2.0","id":2,"method":"tool.call","params":{"name":"wait","input":{}}}',
    ]
    frames = "".join(f"Content-Length: {len(request)}\r\n\r\n{request}" for request in requests)
    done = subprocess.run([PROGRAM], input=frames.encode(), capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0
    assert b'"id":1,"result"' in done.stdout


def test_it_ends_when_its_host_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text(
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([{str(PROGRAM)!r}], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n",
        encoding="utf-8",
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert int(host.stdout.readline()) > 0
        host.send_signal(signal.SIGKILL)
        assert host.stdout.read() == b""  # which the extension has inherited: it ends when the extension has
        host.wait(PATIENCE)


def test_it_passes_the_conformance_cases() -> None:
    command = [sys.executable, "-m", "becket", "conform", "--", str(CONFORM)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert ", 0 fail, 0 not offered" in done.stdout + done.stderr


@pytest.mark.slow
def test_a_new_project_compiles_without_a_network(tmp_path: Path) -> None:
    project = tmp_path / "greeter"
    subprocess.run([sys.executable, "-m", "becket", "new", "--language", "rust", project], check=True, timeout=PATIENCE)
    command = ["cargo", "check", "--quiet", "--offline", "--tests", "--target-dir", KIT / "target"]
    subprocess.run(command, cwd=project, check=True, timeout=280)
    assert (project / "build").stat().st_mode & 0o100
