"""Programs without becket: extensions hosted by becket, and a host that drives an extension on becket."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Unpack

import anyio
import pytest

from becket.adapters.synaps import SYNAPS
from becket.adapters.synaps.manifest_reader import READER
from becket.contract.commands import CommandDone, SystemText, Table
from becket.contract.hooks import Block, Continue, HookEvent
from becket.contract.info import SidecarArgs
from becket.contract.providers import TextDelta, ThinkingDelta, Usage, user
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.errors import BadCapabilities, ConnectionLost, PeerCrashed, RemoteError
from becket.host import Host, HostSettings
from becket.host.events import ExtensionRestarted
from becket.host.host_config import ExtensionConfig
from becket.host.host_settings import group_arguments
from becket.host.starting.connect import ExtensionConnector, ExtensionOptions, connect_extension
from becket.peer.transport.child_process import INHERITED_VARIABLES

pytestmark = [pytest.mark.loops, pytest.mark.process]

PROGRAMS = Path(__file__).parents[3] / "examples" / "dialects" / "synaps"
PATIENCE = 60.0
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def start(name: str, **options: Unpack[ExtensionOptions]) -> ExtensionConnector:
    """Starts a plugin as its manifest defines, with all requested permissions."""
    path = PROGRAMS / name / ".synaps-plugin" / "plugin.json"
    found = READER.read(path.read_bytes(), str(path))
    assert found is not None
    program, *arguments = found.manifest.command
    command = [sys.executable if program == "python3" else program, *arguments]
    requested: ExtensionOptions = {"root": PROGRAMS / name, "grants": found.manifest.permissions, "dialect": "synaps"}
    return connect_extension(command, id=name, **{**requested, **options})


async def test_an_extension_that_calls_the_host_during_a_call_is_served() -> None:
    async with start("journal", config={"greeting": "Dear diary"}) as journal:
        assert [tool.name for tool in journal.tools] == ["write", "read", "whoami"]
        assert journal.about is not None
        assert journal.about.models[0].installed
        assert await journal.call_tool("write", {"text": "it rains"}) == "written"
        assert await journal.call_tool("read", {"text": "RAINS"}) == "Dear diary, it rains"
        assert await journal.call_tool("read") == "Dear diary, it rains\nfirst words"
        assert await journal.sidecar_args() == SidecarArgs(("--quiet",), "en")


async def test_a_program_sees_the_variables_and_the_folder_of_synaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    with anyio.fail_after(PATIENCE):
        async with Host(
            [PROGRAMS], grants={"journal": ALL}, data=None, settings=HostSettings(extensions=TOKEN, only=["journal"])
        ) as host:
            await host.ready("journal")
            received = json.loads(await host.call_tool("journal:whoami", {}))
    assert received["id"] == "journal"
    assert received["root"] == str(PROGRAMS / "journal")
    seen = {name for name in received["variables"] if not name.startswith("LC_")}
    assert seen <= {*SYNAPS.host_defaults.inherited_variables, *INHERITED_VARIABLES}
    assert "XDG_RUNTIME_DIR" in received["variables"]


async def test_the_memory_of_a_program_is_in_the_store_of_a_data_directory(tmp_path: Path) -> None:
    options: dict[str, Any] = {"grants": {"journal": ALL}, "extensions": TOKEN, "only": ["journal"]}
    with anyio.fail_after(2 * PATIENCE):
        async with Host([PROGRAMS], data=tmp_path, **group_arguments(options)) as host:
            await host.ready("journal")
            assert await host.call_tool("journal:write", {"text": "it rains"}) == "written"
        async with Host([PROGRAMS], data=tmp_path, **group_arguments(options)) as host:
            await host.ready("journal")
            assert await host.call_tool("journal:read", {"text": "rains"}) == "Dear diary, it rains"


TOKEN = {"journal": ExtensionConfig(allow_variables=("JOURNAL_TOKEN",))}
ALL = [
    "config.write",
    "memory.read",
    "memory.write",
    "providers.register",
    "tools.intercept",
    "tools.register",
]


async def test_the_events_of_a_program_are_read_in_every_form() -> None:
    async with start("journal", config={"greeting": "Hi"}) as journal:
        async with journal.stream("aloud", "slow", messages=[user("a b")]) as response:
            events = [event async for event in response]
            assert events == [ThinkingDelta("hm"), TextDelta("a"), TextDelta("b"), Usage({"output_tokens": 2})]
            assert (await response.result()).stop_reason == "end_turn"
            assert response.skipped == 1
        assert (await journal.complete("aloud", "slow", messages=[user("aloud")])).text == "ALOUD"
        async with journal.invoke_command("journal", ["tidy"]) as run:
            assert [event async for event in run] == [
                TaskStarted("tidy", "Tidying up", "rebuild"),  # type: ignore[arg-type]
                TaskUpdated("tidy", 1, 1),
                TaskLogged("tidy", "first words"),
                TaskEnded("tidy"),
                SystemText("mood: calm"),
                Table(("entry",), (("first words",),)),
                CommandDone(),
            ]
            assert await run.result() == {"tidied": 1, "args": ["tidy"]}


async def test_calls_made_at_once_do_not_confuse_a_simple_program() -> None:
    async with start("journal", config={"greeting": "Hi"}) as journal, anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(journal.call_tool, "write", {"text": str(number)})
            tasks.start_soon(journal.handle_hook, HookEvent.before_tool_call("bash", {}))


async def test_a_hook_is_called_as_its_manifest_declares() -> None:
    with anyio.fail_after(PATIENCE):
        async with Host(
            [PROGRAMS], grants={"journal": ALL}, data=None, settings=HostSettings(extensions=TOKEN, only=["journal"])
        ) as host:
            await host.ready("journal")
            wipe = HookEvent.before_tool_call("bash", {"command": "rm -rf /"})
            assert (await host.run_hooks(wipe)).result == Block("the journal would be lost")
            harmless = HookEvent.before_tool_call("bash", {"command": "ls"})
            assert (await host.run_hooks(harmless)).result == Continue()


async def test_a_shell_script_can_be_an_extension() -> None:
    async with start("guard") as guard:
        theft = HookEvent.before_tool_call("cat", {"file": "/etc/passwd"})
        assert await guard.handle_hook(theft) == Block("/etc is not yours")
        assert await guard.handle_hook(HookEvent.before_tool_call("ls", {})) == Continue()
        with pytest.raises(RemoteError) as failed:
            await guard.info()
        assert failed.value.code == -32601


@needs_node
async def test_an_extension_in_node_is_hosted() -> None:
    async with start("clock") as clock:
        assert clock.about is None
        assert await clock.call_tool("split", {"seconds": 90_061}) == "1d 1h 1m 1s"
        with pytest.raises(RemoteError) as failed:
            await clock.call_tool("split", {"seconds": -1})
        assert failed.value.message == "time does not run backwards"
        assert await clock.call_tool("split", {"seconds": 1}) == "0d 0h 0m 1s"  # the same process, which still runs


@needs_node
async def test_one_host_runs_all_of_them() -> None:
    grants = {"journal": ALL, "clock": ["tools.register"], "guard": ["tools.intercept"]}
    with anyio.fail_after(PATIENCE):
        async with Host([PROGRAMS], grants=grants, data=None, settings=HostSettings(extensions=TOKEN)) as host:
            assert host.problems == []
            for id in grants:
                await host.ready(id)
            assert await host.call_tool("clock:split", {"seconds": 60}) == "0d 0h 1m 0s"
            assert {one.manifest.dialect for one in host.report.candidates} == {"synaps"}


async def test_a_program_that_crashes_is_started_anew_with_its_configuration() -> None:
    with anyio.fail_after(PATIENCE):
        async with Host(
            [PROGRAMS], grants={"journal": ALL}, data=None, settings=HostSettings(extensions=TOKEN, only=["journal"])
        ) as host:
            back = anyio.Event()
            host.on(ExtensionRestarted)(lambda event: back.set())
            await host.ready("journal")
            (status,) = host.status()
            assert status.pid is not None
            os.kill(status.pid, signal.SIGKILL)
            await back.wait()
            assert await host.call_tool("journal:write", {"text": "again"}) == "written"
            assert (await host.call_tool("journal:read", {"text": "again"})) == "Dear diary, again"


async def test_no_two_copies_of_a_program_are_called_under_one_id(tmp_path: Path) -> None:
    (tmp_path / "counter" / ".synaps-plugin").mkdir(parents=True)
    received = {"runtime": "process", "command": sys.executable, "args": ["main.py"], "permissions": ["tools.register"]}
    manifest = {"name": "counter", "version": "1.0.0", "extension": received}
    (tmp_path / "counter" / ".synaps-plugin" / "plugin.json").write_text(json.dumps(manifest), encoding="utf-8")
    program = (
        RESPONSE + "while True:\n    asked = receive()['id']\n    send(b'{\"id\":%d,\"result\":%d}' % (asked, asked))"
    )
    (tmp_path / "counter" / "main.py").write_text(program, encoding="utf-8")
    with anyio.fail_after(PATIENCE):
        async with Host([tmp_path], grants={"counter": ["tools.register"]}, data=None) as host:
            back = anyio.Event()
            host.on(ExtensionRestarted)(lambda event: back.set())
            await host.ready("counter")
            assert [await host.call_tool("counter:t", {}) for _ in range(2)] == ["3", "4"]  # behind the handshake
            (status,) = host.status()
            assert status.pid is not None
            os.kill(status.pid, signal.SIGKILL)
            await back.wait()
            assert await host.call_tool("counter:t", {}) == "7"


# -- hostile programs


RESPONSE = """
import json, sys
def say(data):
    sys.stdout.buffer.write(data); sys.stdout.buffer.flush()
def send(body):
    say(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
def receive():
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length))
def answer(result):
    send(json.dumps({"jsonrpc": "2.0", "id": receive()["id"], "result": result}).encode())
tools = [{"name": "t", "description": "d", "input_schema": {}}]
answer({"protocol_version": 1, "capabilities": {"tools": tools}})
answer({})
"""


def hostile(program: str) -> ExtensionConnector:
    return connect_extension(
        [sys.executable, "-c", RESPONSE + program], id="hostile", grants=["tools.register"], dialect="synaps"
    )


@pytest.mark.parametrize(
    "program",
    [
        "say(b'oops, a print\\n\\n')",
        "send(b'no JSON')",
        "say(b'Content-Length: 9999999\\r\\n\\r\\n')",
        "say(b'X' * 2000)",
    ],
    ids=["print", "no json", "too large", "long header"],
)
async def test_an_invalid_frame_ends_the_link_and_every_call(program: str) -> None:
    async with hostile(f"receive(); {program}; receive()") as extension:
        with pytest.raises(ConnectionLost), anyio.fail_after(PATIENCE):
            await extension.call_tool("t")


async def test_the_end_of_the_program_ends_every_call() -> None:
    async with hostile("receive(); sys.exit(4)") as extension:
        with pytest.raises(PeerCrashed) as crashed, anyio.fail_after(PATIENCE):
            await extension.call_tool("t")
        assert crashed.value.exit_code == 4


async def test_a_flood_of_invalid_messages_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    program = """
asked = receive()["id"]
for number in range(1000):
    send(b'{"jsonrpc":"2.0","id":"%d","result":1}' % number)
    send(b'[]')
    send(b'{"id":%d,"result":0}' % (number + 100))
send(b'{"jsonrpc":"2.0","id":%d,"result":"still here"}' % asked)
receive()
"""
    async with hostile(program) as extension:
        with anyio.fail_after(PATIENCE):
            assert await extension.call_tool("t") == "still here"
    assert len(caplog.records) < 20


async def test_a_tool_that_is_not_allowed_ends_the_program() -> None:
    with pytest.raises(BadCapabilities):
        await connect_extension([sys.executable, "-c", RESPONSE + "receive()"], id="hostile", dialect="synaps")


# -- our extension with a foreign host


def test_a_host_of_synaps_drives_an_extension_of_becket() -> None:
    done = subprocess.run(
        [sys.executable, PROGRAMS / "mini_host.py", sys.executable, PROGRAMS / "served.py"],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    output: list[tuple[str, Any]] = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    (opening, initialized), *rest = output
    assert opening == "initialize"
    assert initialized["protocol_version"] == 1
    assert initialized["capabilities"]["tools"][0]["name"] == "note"
    assert "features" not in initialized
    assert rest == [
        ("info.get", {"build": {"backend": "cpu", "version": "1.0.0"}}),
        ("tool.call", "1 of milk"),
        ("tool.call", {"failed": "invalid params: /input/text: is missing"}),
        ("provider.complete", {"content": [{"type": "text", "text": "hello"}]}),
        ("provider.stream.event", {"type": "text", "delta": "hel"}),
        ("provider.stream.event", {"type": "text", "delta": "lo"}),
        ("provider.stream.event", {"type": "done"}),
        ("provider.stream", {"content": [{"type": "text", "text": "hello"}]}),
        ("task.start", {"id": "r1/1", "label": "Tidying", "kind": "rebuild"}),
        ("task.update", {"id": "r1/1", "current": 0, "total": 2}),
        ("task.update", {"id": "r1/1", "current": 2, "total": 2}),
        ("task.done", {"id": "r1/1"}),
        (
            "command.output",
            {"request_id": "r1", "event": {"kind": "error", "content": "permission denied: config.write required"}},
        ),
        ("command.output", {"request_id": "r1", "event": {"kind": "table", "headers": ["what"], "rows": [["all"]]}}),
        ("command.output", {"request_id": "r1", "event": {"kind": "done"}}),
        ("command.invoke", "None"),
        ("hook.handle", {"action": "block", "reason": "no"}),
        ("sidecar.spawn_args", {"args": ["--fast"]}),
        ("settings.editor.open", {"failed": "unknown method: settings.editor.open"}),
        ("no.such.method", {"failed": "unknown method: no.such.method"}),
        ("exit", 0),
    ]
