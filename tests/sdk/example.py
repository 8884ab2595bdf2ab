"""What the example of every kit does in a real host, as `sdk/README.md` specifies it: a class to derive tests from."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
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

__all__ = ["GRANTS", "PATIENCE", "ExampleTests"]

GRANTS = ["config.write", "memory.read", "memory.write", "providers.register", "tools.intercept", "tools.register"]
PATIENCE = 60  # seconds
WAIT = 0.2  # for a tool that waits until it is cancelled


@pytest.mark.process
@pytest.mark.loops
class ExampleTests:
    """The tests of an example: `language` is its id, and `example` a fixture of its folder, with the program in it."""

    language: str

    @pytest.fixture
    def example(self) -> Path:
        """Returns the folder of the example."""
        raise NotImplementedError

    @asynccontextmanager
    async def started(self, folder: Path) -> AsyncGenerator[tuple[Host, Extension], None]:
        """Starts the example in a host, within a time bound."""
        with anyio.fail_after(PATIENCE):
            async with Host([folder], grants={self.language: GRANTS}, data=None) as host:
                yield host, await host.ready(self.language)

    async def test_tools_use_configuration_memory_and_log(
        self, example: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, f"becket.ext.{self.language}")
        async with self.started(example) as (host, _):
            greet, keep = f"{self.language}_greet", f"{self.language}_keep"
            assert await host.call_tool(greet, {"name": "Ada", "times": 2}) == "Hello, Ada! Hello, Ada!"
            await anyio.to_thread.run_sync(host.store.set_config, self.language, ConfigSet("greeting", "Salve"))
            assert await host.call_tool(greet, {"name": "Ada"}) == "Salve, Ada!"
            assert [await host.call_tool_json(keep, {"text": text}) for text in ("milk", "tea")] == [1, 2]
        assert "kept: tea" in caplog.text

    async def test_a_command_shows_a_task_and_a_table(self, example: Path) -> None:
        async with self.started(example) as (_, extension):
            async with extension.invoke_command("letters", ["milk", "tea"]) as run:
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
            async with extension.invoke_command("letters") as run:
                assert [event async for event in run] == [SystemText("Usage: letters WORD..."), CommandDone()]

    async def test_a_provider_streams_its_response(self, example: Path) -> None:
        async with (
            self.started(example) as (_, extension),
            extension.stream("parrot", "small", messages=[user("good day")]) as response,
        ):
            events = [event async for event in response]
            assert "".join(it.text for it in events if isinstance(it, TextDelta)) == "You said: good day"
            assert Usage({"output_tokens": 4}) in events
            assert (await response.result()).text == "You said: good day"

    async def test_a_hook_blocks_what_it_guards(self, example: Path) -> None:
        async with self.started(example) as (host, _):
            verdict = await host.run_hooks(HookEvent.before_tool_call("bash", {"command": "rm -rf /"}))
            assert (verdict.result, verdict.by) == (Block("it would delete everything"), self.language)
            verdict = await host.run_hooks(HookEvent.before_tool_call("bash", {"command": "ls"}))
            assert verdict.result == Continue()

    async def test_the_editor_of_a_setting_moves_commits_and_closes(self, example: Path) -> None:
        async with self.started(example) as (_, extension):
            ended: list[EditorCommitted | EditorClosed] = []
            extension.on(EditorCommitted)(ended.append)
            extension.on(EditorClosed)(ended.append)
            opened = await extension.open_editor("lamp", "colour")
            assert opened is not None
            assert [row.label for row in opened.rows] == ["white", "blue", "red"]
            moved = await extension.press_editor_key("lamp", "colour", "Down")
            assert moved is not None
            assert moved.cursor == 1
            assert await extension.press_editor_key("lamp", "colour", "Enter") is None
            assert await extension.press_editor_key("lamp", "colour", "Esc") is None
            assert ended == [EditorCommitted("blue"), EditorClosed("nothing has changed")]

    async def test_an_input_that_does_not_fit_is_rejected_with_its_path(self, example: Path) -> None:
        async with self.started(example) as (_, extension):
            with pytest.raises(RemoteError) as caught:
                await extension.call("tool.call", {"name": "greet", "input": {"name": "Ada", "times": "x"}})
            assert caught.value.code == -32602
            assert "/input/times" in caught.value.message

    async def test_a_cancelled_tool_ends_and_the_extension_continues(self, example: Path) -> None:
        async with self.started(example) as (host, extension):
            call: dict[str, object] = {"name": "wait", "input": {}}
            async with extension.peer.stream("tool.call", call, progress=str) as run:
                assert await anext(aiter(run)) == "waiting"
            assert await host.call_tool(f"{self.language}_greet", {"name": "Ada"}) == "Hello, Ada!"

    async def test_a_tool_that_misses_its_deadline_times_out(self, example: Path) -> None:
        async with self.started(example) as (host, _):
            with pytest.raises(
                (CallTimeout, RemoteError), match=r"within|deadline|timeout"
            ):  # whichever clock is first
                await host.call_tool(f"{self.language}_wait", timeout=WAIT)
            assert await host.call_tool(f"{self.language}_greet", {"name": "Ada"}) == "Hello, Ada!"
