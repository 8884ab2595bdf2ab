"""Commands that a synaps manifest leaves to its host: programs and tools run, with consent and hooks; skills do not."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from becket.contract.commands import CommandEvent, PlainText, SystemText, Text
from becket.errors import (
    CallTimeout,
    CommandFailed,
    ExtensionRefused,
    NotDeclared,
    NotSupported,
    RemoteError,
    StartFailed,
    ToolBlocked,
)
from becket.host import Host
from becket.host.host_settings import group_arguments
from becket.host.starting.discovery import discover_extensions

pytestmark = [pytest.mark.loops, pytest.mark.process]

on_asyncio = pytest.mark.loops("asyncio")  # for decisions and records, which are the same on any loop
PATIENCE = 60.0
DEMO = """
from becket.extension import ExtensionServer, tool

class Demo(ExtensionServer):
    id = "demo"
    version = "1.0.0"

    @tool("Says it again.")
    def echo(self, text: str) -> str:
        return f"echo {text}"

Demo().run()
"""
GUARD = """
from becket.contract.hooks import Block, Continue, HookEvent, Modify, Replace
from becket.extension import ExtensionServer, hook

class Guard(ExtensionServer):
    id = "guard"
    version = "1.0.0"

    @hook("before_tool_call")
    def before(self, event: HookEvent):
        words = str(event.tool_input)
        if "forbidden" in words:
            return Block(f"{event.tool_runtime_name} with {words}")
        if "other" in words:
            return Modify({**event.tool_input, "args": ["%s", "changed"]})
        if "elsewhere" in words:
            return Modify({**event.tool_input, "command": "rm"})
        return Continue()

    @hook("after_tool_call")
    def after(self, event: HookEvent):
        return Replace("hidden") if "secret" in (event.tool_output or "") else Continue()

Guard().run()
"""
GUARD_TOML = """
id = "guard"
version = "1.0.0"
command = ["python3", "guard.py"]
permissions = ["tools.intercept", "tools.transform_output"]
"""
COMMANDS: list[dict[str, Any]] = [
    {"name": "say", "command": "printf", "args": ["%s|"]},
    {"name": "read", "command": "cat", "args": ["docs/x.md"]},
    {"name": "where", "command": "pwd"},
    {"name": "variables", "command": "env"},
    {"name": "own", "command": "bin/own.sh"},
    {"name": "fail", "command": "sh", "args": ["-c", "echo so far; echo why >&2; exit 3"]},
    {"name": "die", "command": "sh", "args": ["-c", "kill -9 $$"]},
    {"name": "wait", "command": "sh", "args": ["-c", 'echo $$; exec sleep "$0"', "600"]},
    {"name": "flood", "command": "yes", "args": ["all work and no play"]},
    {"name": "gone", "command": "bin/built"},
    {"name": "out", "command": "../other/run"},
    {"name": "leave", "command": "cat", "args": ["../secret"]},
    {"name": "echo", "tool": "echo", "input": {"text": "you said: ${args}"}},
    {"name": "broken", "tool": "none", "input": {}},
    {"name": "odd", "tool": "echo", "input": "text"},
    {"name": "review", "skill": "reviewer", "prompt": "Review: ${args}"},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Returns a folder with a plugin that has commands of every kind."""
    folder = tmp_path / "root" / "demo"
    for name, text in {
        "demo.py": DEMO,
        "docs/x.md": "# Read *me*\n",
        "skills/reviewer/SKILL.md": "Review it.",
        "bin/own.sh": '#!/bin/sh\necho "own: $*"\n',
        "../secret": "secret\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "bin" / "own.sh").chmod(0o755)
    write_plugin(folder)
    return folder.parent


def write_plugin(folder: Path, **extension: Any) -> None:
    extension = {"setup": "scripts/setup.sh", "permissions": ["tools.register"], **extension}
    plugin = {
        "name": "demo",
        "version": "1.0.0",
        "extension": {"runtime": "process", "command": "python3", "args": ["demo.py"], **extension},
        "commands": COMMANDS,
    }
    (folder / ".synaps-plugin").mkdir(exist_ok=True)
    (folder / ".synaps-plugin" / "plugin.json").write_text(json.dumps(plugin), encoding="utf-8")


def add_guard(root: Path) -> None:
    (root / "guard").mkdir()
    (root / "guard" / "guard.py").write_text(GUARD, encoding="utf-8")
    (root / "guard" / "becket.toml").write_text(GUARD_TOML, encoding="utf-8")


def host_of(root: Path, **options: Any) -> Host:
    grants = {"demo": ["tools.register"], "guard": ["tools.intercept", "tools.transform_output"]}
    return Host([root], **group_arguments({"grants": grants, "data": None, **options}))


@asynccontextmanager
async def running(root: Path, **options: Any) -> AsyncGenerator[Host, None]:
    async with host_of(root, **options) as host:
        await host.ready("demo")
        yield host


async def invoke(
    host: Host, name: str, *args: str, into: list[Any] | None = None, **options: Any
) -> tuple[list[CommandEvent], Any]:
    events: list[Any] = [] if into is None else into
    async with host["demo"].invoke_command(name, args, **options) as run:
        async for event in run:
            events.append(event)
        return events, await run.result()


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def written(events: list[CommandEvent]) -> str:
    return "\n".join(event.content for event in events if isinstance(event, Text))


# -- programs


async def test_a_program_runs_in_the_folder_of_its_extension_with_the_arguments_of_the_user(root: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            assert await invoke(host, "say", "a b", "c") == ([PlainText("a b|c|")], {"status": 0})
            assert await invoke(host, "read") == ([PlainText("# Read *me*")], {"status": 0})
            assert await invoke(host, "where") == ([PlainText(str(root / "demo"))], {"status": 0})
            assert await invoke(host, "own", "-x") == ([PlainText("own: -x")], {"status": 0})


@on_asyncio
async def test_a_program_sees_the_variables_of_its_extension_and_no_others(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "c4n4ry")
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            events, _ = await invoke(host, "variables")
    assert "PATH=" in written(events)
    assert "c4n4ry" not in written(events)


async def test_a_program_that_fails_is_reported_with_its_exit_code_and_stderr(root: Path) -> None:
    events: list[Any] = []
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            with pytest.raises(CommandFailed, match="code 3") as failed:
                await invoke(host, "fail", into=events)
            assert (failed.value.command, failed.value.exit_code) == ("demo:fail", 3)
            assert sorted(map(str, events)) == sorted(map(str, [PlainText("so far"), SystemText("why")]))
            with pytest.raises(CommandFailed, match="SIGKILL"):
                await invoke(host, "die")


async def test_leaving_a_run_ends_its_program(root: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            async with host["demo"].invoke_command("wait") as run:
                event = await anext(run)
                assert isinstance(event, PlainText)
                pid = int(event.content)
                assert is_running(pid)
            assert not is_running(pid)


async def test_a_program_may_have_a_timeout(root: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            with pytest.raises(CallTimeout):
                await invoke(host, "wait", timeout=0.3)
            with pytest.raises(CallTimeout):
                await invoke(host, "wait", idle_timeout=0.3)


async def test_a_program_that_floods_waits_for_its_reader(root: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with running(root) as host, host["demo"].invoke_command("flood") as run:
            for _ in range(40):
                event = await anext(run)
                assert isinstance(event, PlainText)
                assert len(event.content) <= 2 * 64 * 1024


@on_asyncio
async def test_a_missing_program_names_the_setup_script(root: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            with pytest.raises(StartFailed, match=str(root / "demo" / "scripts" / "setup.sh")):
                await invoke(host, "gone")


@on_asyncio
@pytest.mark.parametrize("name", ["out", "leave"])
async def test_nothing_outside_of_the_folder_is_run_or_named(root: Path, name: str) -> None:
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            with pytest.raises(StartFailed, match="leads out of the extension's folder"):
                await invoke(host, name)


@on_asyncio
async def test_a_wrapper_is_put_before_a_program_too(root: Path) -> None:
    def wrap(id: str, command: Any) -> list[str]:
        return ["env", f"WRAPPED={id}", *command]

    with anyio.fail_after(PATIENCE):
        async with running(root, wrap=wrap) as host:
            events, _ = await invoke(host, "variables")
    assert "WRAPPED=demo" in written(events)


@on_asyncio
async def test_the_start_of_a_program_is_recorded(root: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with anyio.fail_after(PATIENCE):
        async with running(root, data=data) as host:
            await invoke(host, "say", "--token=c4n4ry")
    starts = [line for line in (data / "audit.jsonl").read_text(encoding="utf-8").splitlines() if "printf" in line]
    assert len(starts) == 1
    assert "c4n4ry" not in starts[0]


# -- tools and skills


async def test_a_tool_of_the_extension_is_called_with_the_arguments_of_the_user(root: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            text = "echo you said: a b"
            assert await invoke(host, "echo", "a", "b") == ([PlainText(text)], text)
            with pytest.raises(NotDeclared):
                await invoke(host, "broken")
            with pytest.raises(NotSupported, match="`input` is not an object"):
                await invoke(host, "odd")


@on_asyncio
async def test_a_skill_is_not_supported_and_its_file_is_named(root: Path) -> None:
    file = root / "demo" / "skills" / "reviewer" / "SKILL.md"
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            with pytest.raises(NotSupported, match=str(file)):
                await invoke(host, "review")
            [note] = host.problems
    assert note.extension == "demo"
    assert "/commands/15: the command `review` is not supported" in note.problem
    assert str(file) in note.problem


async def test_a_command_that_the_manifest_does_not_name_is_sent_to_the_extension(root: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            with pytest.raises(RemoteError):
                await invoke(host, "nosuch")


async def test_event_functions_get_the_events_of_a_program(root: Path) -> None:
    taken: list[str] = []
    with anyio.fail_after(PATIENCE):
        async with running(root) as host, host["demo"].invoke_command("say", ["x"]) as run:

            @run.on(Text)
            def take(event: Text) -> None:
                taken.append(event.content)

            assert await run.result() == {"status": 0}
    assert taken == ["x|"]


# -- hooks


@on_asyncio
async def test_hooks_are_consulted_about_programs_and_tools(root: Path) -> None:
    add_guard(root)
    with anyio.fail_after(PATIENCE):
        async with running(root) as host:
            await host.ready("guard")
            with pytest.raises(ToolBlocked, match="demo:say"):
                await invoke(host, "say", "forbidden")
            with pytest.raises(ToolBlocked, match="demo:echo"):
                await invoke(host, "echo", "forbidden")
            assert written((await invoke(host, "say", "other"))[0]) == "changed"
            assert written((await invoke(host, "say", "a secret"))[0]) == "hidden"
            assert written((await invoke(host, "echo", "a secret"))[0]) == "hidden"
            with pytest.raises(Exception, match="/command"):
                await invoke(host, "say", "elsewhere")
            with pytest.raises(CommandFailed):
                await invoke(host, "fail")


# -- consent


@on_asyncio
async def test_no_command_runs_without_consent_and_the_prompt_shows_the_programs(root: Path) -> None:
    requested: list[str] = []

    def refuse(prompt: str, decision: Any) -> bool:
        requested.append(prompt)
        return False

    with anyio.fail_after(PATIENCE):
        async with host_of(root, grants={}, ask=refuse) as host:
            await host.settled()
            with pytest.raises(ExtensionRefused):
                await invoke(host, "say")
    [prompt] = requested
    assert "its command read runs the program: cat docs/x.md" in prompt.splitlines()


# -- what is found


def test_a_missing_program_of_an_extension_names_the_setup_script(root: Path) -> None:
    write_plugin(root / "demo", command="bin/built", args=[])

    refusal = host_of(root).survey().start_decisions["demo"]

    assert f"run its setup script, {root / 'demo' / 'scripts' / 'setup.sh'}" in getattr(refusal, "because", "")


def test_commands_that_can_be_run_stand_in_the_manifest(root: Path) -> None:
    [candidate] = discover_extensions([root]).candidates

    names = [command.name for command in candidate.manifest.commands]
    assert names == [command["name"] for command in COMMANDS if command["name"] != "review"]


def test_a_plugin_without_an_extension_is_noted(root: Path) -> None:
    (root / "demo" / ".synaps-plugin" / "plugin.json").write_text('{"name": "demo"}', encoding="utf-8")

    report = discover_extensions([root])

    assert report.candidates == ()
    [note] = report.diagnostics
    assert (note.problem, note.path) == ("holds no extension", os.fspath(root / "demo/.synaps-plugin/plugin.json"))
    assert note.hint
