"""The kit for TypeScript: its example in a real host, the end of its process, new projects, and conformance cases."""

from __future__ import annotations

import logging
import os
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
from becket.contract.tasks import TaskEnded, TaskStarted, TaskUpdated
from becket.errors import CallTimeout
from becket.host.extension import Extension

KIT = Path(__file__).parents[2] / "sdk" / "typescript"
EXAMPLE = KIT / "example"
COMMAND = ["node", str(EXAMPLE / "example.js")]
CONFORM = KIT / "build" / "test" / "conform.js"
PERMISSIONS = [
    "config.write",
    "memory.read",
    "memory.write",
    "providers.register",
    "tools.intercept",
    "tools.register",
]
PATIENCE = 60  # seconds

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
]


@asynccontextmanager
async def run_example() -> AsyncIterator[tuple[Host, Extension]]:
    """Starts the example in a host, within a time bound."""
    with anyio.fail_after(PATIENCE):
        async with Host([EXAMPLE], grants={"typescript": PERMISSIONS}, data=None) as host:
            yield host, await host.ready("typescript")


# -- the example in a host


@pytest.mark.loops
async def test_the_example_offers_one_of_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "becket.ext.typescript")
    async with run_example() as (host, typescript):
        await check_tools(host)
        await check_command(typescript)
        await check_provider(typescript)
        await check_hook(host)
        await check_editor(typescript)
        await check_errors(host, typescript)
    assert "kept: tea" in caplog.text


async def check_tools(host: Host) -> None:
    greeting = await host.call_tool("typescript_greet", {"name": "Ada", "times": 2})
    assert greeting == "Hello, Ada! Hello, Ada!"
    await anyio.to_thread.run_sync(host.store.set_config, "typescript", ConfigSet("greeting", "Salve"))
    assert await host.call_tool("typescript_greet", {"name": "Ada"}) == "Salve, Ada!"
    assert [await host.call_tool_json("typescript_keep", {"text": text}) for text in ("milk", "tea")] == [1, 2]


async def check_command(typescript: Extension) -> None:
    async with typescript.invoke_command("letters", ["milk", "tea"]) as run:
        started, *updates, ended, table, done = [event async for event in run]
        assert await run.result() == {"milk": 4, "tea": 3}
    assert isinstance(started, TaskStarted)
    shown = [(it.current, it.total, it.message) for it in updates if isinstance(it, TaskUpdated)]
    assert shown == [(0, 2, None), (1, 2, "milk"), (2, 2, "tea")]
    assert ended == TaskEnded(started.id)
    assert table == Table(("word", "letters"), (("milk", "4"), ("tea", "3")))
    assert done == CommandDone()
    async with typescript.invoke_command("letters") as run:
        assert SystemText("Usage: letters WORD...") in [event async for event in run]


async def check_provider(typescript: Extension) -> None:
    async with typescript.stream("parrot", "small", messages=[user("good day")]) as answer:
        events = [event async for event in answer]
        assert "".join(it.text for it in events if isinstance(it, TextDelta)) == "You said: good day"
        assert Usage({"output_tokens": 4}) in events
        assert (await answer.result()).text == "You said: good day"


async def check_hook(host: Host) -> None:
    verdict = await host.run_hooks(HookEvent.before_tool_call("bash", {"command": "rm -rf /"}))
    assert (verdict.result, verdict.by) == (Block("it would delete everything"), "typescript")
    verdict = await host.run_hooks(HookEvent.before_tool_call("bash", {"command": "ls"}))
    assert verdict.result == Continue()


async def check_editor(typescript: Extension) -> None:
    ended: list[EditorCommitted | EditorClosed] = []
    typescript.on(EditorCommitted)(ended.append)
    typescript.on(EditorClosed)(ended.append)
    opened = await typescript.open_editor("lamp", "colour")
    assert opened is not None
    assert [row.label for row in opened.rows] == ["white", "blue", "red"]
    moved = await typescript.press_editor_key("lamp", "colour", "Down")
    assert moved is not None
    assert moved.cursor == 1
    assert await typescript.press_editor_key("lamp", "colour", "Enter") is None
    assert await typescript.press_editor_key("lamp", "colour", "Esc") is None
    assert ended == [EditorCommitted("blue"), EditorClosed("nothing has changed")]


async def check_errors(host: Host, typescript: Extension) -> None:
    with pytest.raises(RemoteError) as caught:
        await typescript.call("tool.call", {"name": "greet", "input": {"name": "Ada", "times": "x"}})
    assert caught.value.code == -32602
    assert "/input/times" in caught.value.message
    with anyio.move_on_after(0.2):
        await host.call_tool("typescript_wait")
    with pytest.raises((CallTimeout, RemoteError), match=r"within|timeout"):  # whichever clock is first
        await host.call_tool("typescript_wait", timeout=0.2)
    assert await host.call_tool("typescript_greet", {"name": "Ada"}) == "Salve, Ada!"


# -- the process


def test_it_ends_with_stdin_while_a_tool_waits() -> None:
    initialize = '{"extension_protocol_version":1,"plugin_id":"it","plugin_root":null,"config":{}}'
    requests = [
        f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{initialize}}}',
        '{"jsonrpc":"2.0","id":2,"method":"tool.call","params":{"name":"wait","input":{}}}',
    ]
    frames = "".join(f"Content-Length: {len(request)}\r\n\r\n{request}" for request in requests)
    done = subprocess.run(COMMAND, input=frames.encode(), capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0
    assert b'"id":1,"result"' in done.stdout


def test_it_ends_when_its_host_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text(
        "import subprocess, time\n"
        f"child = subprocess.Popen({COMMAND!r}, stdin=subprocess.PIPE)\n"
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


def test_prints_of_child_processes_stay_off_the_wire(tmp_path: Path) -> None:
    program = tmp_path / "main.mjs"
    program.write_text(
        f"import {{ createExtension }} from {str(KIT / 'dist' / 'index.js')!r};\n"
        "import { spawnSync } from 'node:child_process';\n"
        "createExtension({ id: 'it', version: '1' }).run();\n"
        "spawnSync('echo', ['by a child'], { stdio: 'inherit' });\n",
        encoding="utf-8",
    )
    done = subprocess.run(["node", program], input=b"", capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"by a child" in done.stderr


# -- projects, and conformance


def test_a_new_project_runs_without_an_installation(tmp_path: Path) -> None:
    becket = [sys.executable, "-m", "becket"]
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    subprocess.run([*becket, "new", "--language", "typescript", tmp_path / "greeter"], check=True, timeout=PATIENCE)
    check = [*becket, "check", "--call-tools", "--", "node", str(tmp_path / "greeter" / "main.js")]
    done = subprocess.run(check, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False, env=env)
    assert done.returncode == 0, done.stdout
    call = [*becket, "call", "--yes", "--root", str(tmp_path / "greeter"), "greeter", "greet", '{"name": "Ada"}']
    done = subprocess.run(call, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False, env=env)
    assert "Hello, Ada! (1)" in done.stdout, done.stderr


def test_a_template_for_python_is_refused_with_another_language(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "becket", "new", "--language", "typescript", "--template", "hook", tmp_path / "x"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert "--template is for extensions in Python" in done.stderr


@pytest.mark.skipif(not CONFORM.exists(), reason="the tests of the kit are not built: run `make sdk-test-typescript`")
def test_it_passes_the_conformance_cases() -> None:
    command = [sys.executable, "-m", "becket", "conform", "--", "node", str(CONFORM)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert ", 0 fail, 0 not offered" in done.stdout + done.stderr
