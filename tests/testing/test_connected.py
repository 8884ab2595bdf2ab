"""An extension and its host in one program: both ends of a whole conversation, in memory and on every loop."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from msgspec import Struct
from tests.peer.scripted import settled

from becket import Context, RemoteError
from becket.contract.commands import CommandDone, Table, Text
from becket.contract.config import ConfigChanged, ConfigSet
from becket.contract.handshake import DeclaredCapability
from becket.contract.hooks import Block, Continue, HookEvent, HookResult
from becket.contract.info import BuildInfo, CapabilityInfo, ExtensionInfo, SidecarArgs
from becket.contract.providers import Model, ProviderDone, ProviderRequest, ProviderResult, TextDelta, user
from becket.contract.settings import EditorKey, EditorRender, EditorRow
from becket.contract.tasks import TaskEnded, TaskStarted, TaskUpdated
from becket.errors import BadCapabilities, BadValue, HandshakeFailed, LocalProtocolError
from becket.extension import CommandOutput, ExtensionServer, ProviderStream, command, handles, hook, provider, tool
from becket.stores.in_memory import InMemoryStore
from becket.testing import connected

pytestmark = pytest.mark.loops

GRANTS = (
    "tools.register",
    "providers.register",
    "tools.intercept",
    "memory.read",
    "memory.write",
    "config.subscribe",
    "audio.input",
)


class Stats(Struct, frozen=True):
    kept: int


class Notes(ExtensionServer):
    id, version = "notes", "1.2.0"
    capabilities = (DeclaredCapability("ocr", "Tess", ("audio.input",)),)

    def __init__(self) -> None:
        self.life: list[str] = []
        self.changes: list[ConfigChanged] = []
        self.has_changed = anyio.Event()

    def on_start(self) -> None:
        self.life.append(f"started in {self.root} with {dict(self.config)}")

    async def on_stop(self) -> None:
        self.life.append("stopped")

    @tool("Keeps a note.")
    async def keep(self, text: str) -> str:
        await self.host.memory.append(text)
        return "kept"

    @tool("Counts the notes that contain a text.")
    async def count(self, text: str, limit: int = 10) -> int:
        return len(await self.host.memory.query(content_contains=text, limit=limit))

    @tool("Says it again, from a plain function.")
    def echo(self, text: str) -> str:
        self.host.log(f"echo {text}", level="warning")
        return text

    @tool("Watches the configuration.")
    async def watch(self) -> str:
        self.host.config.on_change(self.note)
        return str((await self.host.config.subscribe()).snapshot)

    async def note(self, change: ConfigChanged) -> None:
        self.changes.append(change)
        self.has_changed.set()

    @command("reindex")
    async def reindex(self, args: list[str], out: CommandOutput) -> None:
        async with out.task("Indexing", kind="rebuild", total=2) as task:
            await task.advance()
        await out.text(" ".join(args))
        await out.table(["file", "lines"], [["todo.md", "12"]])

    @provider("local", models=[Model("small", streaming=True)])
    async def response(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        await out.text("good ")
        await out.text("day")
        return ProviderResult.of_text("good day")

    @hook("before_tool_call", tool="bash")
    async def guard(self, event: HookEvent) -> HookResult:
        return Block("no") if "rm -rf" in str(event.tool_input) else Continue()

    @handles("notes/stats")
    async def stats(self, params: dict[str, Any], ctx: Context) -> Stats:
        return Stats(len(await self.host.memory.query()))

    def on_editor_key(self, pressed: EditorKey) -> object:
        return EditorRender((EditorRow(pressed.key),))

    def sidecar_args(self) -> SidecarArgs:
        return SidecarArgs(("--fast",))


async def test_tools_run_and_preserve_their_arguments() -> None:
    async with connected(Notes(), grants=GRANTS) as (host, notes):
        assert {tool.name for tool in host.tools} == {"keep", "count", "echo", "watch"}
        assert await host.call_tool("keep", {"text": "Milk"}) == "kept"
        assert await host.call_tool("count", {"text": "milk"}) == "1"
        assert await host.call_tool_json("count", {"text": "milk", "limit": 1}) == 1
        assert isinstance(notes, Notes)


async def test_a_plain_function_runs_too_and_its_log_reaches_the_host(caplog: pytest.LogCaptureFixture) -> None:
    async with connected(Notes(), grants=GRANTS) as (host, _):
        assert await host.call_tool("echo", {"text": "x"}) == "x"
        await settled()
    (record,) = [record for record in caplog.records if record.name == "becket.ext.notes"]
    assert record.levelno == logging.WARNING
    assert "echo x" in record.getMessage()


async def test_an_input_that_does_not_fit_the_signature_is_refused_by_the_host() -> None:
    async with connected(Notes(), grants=GRANTS) as (host, _):
        with pytest.raises(BadValue) as caught:
            await host.call_tool("count", {"limit": "many"})
        assert {pointer for pointer, _ in caught.value.problems} == {"/text", "/limit"}


async def test_a_command_puts_out_text_tables_and_tasks() -> None:
    async with connected(Notes(), grants=GRANTS) as (host, _):
        async with host.invoke_command("reindex", ["all", "of", "it"]) as run:
            events = [event async for event in run]
        kinds = [type(event) for event in events]
        assert kinds[0] is TaskStarted
        assert TaskUpdated in kinds
        assert TaskEnded in kinds
        assert [event for event in events if isinstance(event, Text | Table)] == [
            Text("all of it"),
            Table(("file", "lines"), (("todo.md", "12"),)),
        ]
        assert events[-1] == CommandDone()


async def test_a_model_responds_whole_and_in_deltas() -> None:
    async with connected(Notes(), grants=GRANTS) as (host, _):
        assert await host.complete("local", "small", messages=[user("hi")]) == ProviderResult.of_text("good day")
        async with host.stream("local", "small", messages=[user("hi")]) as response:
            events = [event async for event in response if not isinstance(event, ProviderDone)]
        assert events == [TextDelta("good "), TextDelta("day")]
        assert await response.result() == ProviderResult.of_text("good day")


async def test_two_concurrent_responses_stay_separate() -> None:
    async with (
        connected(Notes(), grants=GRANTS) as (host, _),
        host.stream("local", "small", messages=[user("hi")]) as one,
        host.stream("local", "small", messages=[user("hi")]) as other,
    ):
        for response in (one, other):
            texts = [event.text async for event in response if isinstance(event, TextDelta)]
            assert texts == ["good ", "day"]


async def test_a_guard_decides() -> None:
    async with connected(Notes(), grants=GRANTS) as (host, _):
        assert await host.handle_hook(HookEvent.before_tool_call("bash", {"command": "rm -rf /"})) == Block("no")
        assert await host.handle_hook(HookEvent.before_tool_call("bash", {"command": "ls"})) == Continue()


async def test_the_configuration_is_given_at_the_start_and_changes_are_sent() -> None:
    store = InMemoryStore()
    async with connected(Notes(), grants=GRANTS, store=store, config={"mode": "fast"}, root="/x") as (host, notes):
        assert notes.life == ["started in /x with {'mode': 'fast'}"]
        assert await host.call_tool("watch") == "{}"
        store.set_config("notes", ConfigSet("mode", "slow"))
        with anyio.fail_after(60):
            await notes.has_changed.wait()
        assert notes.changes == [ConfigChanged("mode", "slow", 1)]


async def test_the_rest_of_the_contract_is_there() -> None:
    async with connected(Notes(), grants=GRANTS) as (host, _):
        received = ExtensionInfo(BuildInfo("cpu", version="1.2.0"), (CapabilityInfo("ocr", "Tess"),))
        assert await host.info() == received == host.about
        assert await host.sidecar_args() == SidecarArgs(("--fast",))
        assert await host.press_editor_key("notes", "mode", "Down") == EditorRender((EditorRow("Down"),))
        assert await host.peer.call("notes/stats", {}, returns=Stats) == Stats(0)
        assert host.features >= {"cancel", "progress", "deadline", "credit", "ping"}


async def test_a_missing_permission_is_refused() -> None:
    with pytest.raises(BadCapabilities) as caught:
        async with connected(Notes()):
            pass
    assert [pointer for pointer, _ in caught.value.problems] == [
        "/capabilities/tools",
        "/capabilities/providers",
        "/capabilities/capabilities/0/permissions/0",
        "/capabilities/hooks/0",
    ]
    grants = [grant for grant in GRANTS if grant != "memory.write"]
    async with connected(Notes(), grants=grants) as (host, _):
        with pytest.raises(RemoteError):
            await host.call_tool("keep", {"text": "x"})
        assert await host.call_tool("count", {"text": "x"}) == "0"


async def test_both_ends_have_ended_afterwards_in_order() -> None:
    notes = Notes()
    async with connected(notes, grants=GRANTS) as (host, _):
        assert not host.is_closed
    assert host.is_closed
    assert notes.life[-1] == "stopped"
    with pytest.raises(LocalProtocolError):
        _ = notes.host
    async with connected(notes, grants=GRANTS):  # and the same object may serve another host
        pass
    assert [line for line in notes.life if line == "stopped"] == ["stopped", "stopped"]


async def test_an_extension_can_be_connected_under_another_id() -> None:
    async with connected(Notes(), id="jotter", grants=GRANTS) as (host, _):
        assert host.id == "jotter"
        assert await host.call_tool("keep", {"text": "x"}) == "kept"


class Broken(ExtensionServer):
    id, version = "broken", "0"

    def on_start(self) -> None:
        raise RuntimeError("the index is gone")


async def test_an_extension_that_does_not_start_fails_the_block_and_leaves_nothing() -> None:
    with pytest.raises(HandshakeFailed):
        async with connected(Broken()):
            pass


async def test_an_error_of_the_test_ends_host_and_extension() -> None:
    notes = Notes()
    with pytest.raises(ZeroDivisionError):
        async with connected(notes, grants=GRANTS):
            raise ZeroDivisionError
    assert notes.life[-1] == "stopped"


async def test_leaving_in_the_middle_of_a_call_cancels_it() -> None:
    ended = anyio.Event()

    class Slow(ExtensionServer):
        id, version = "slow", "0"

        @tool("Takes long.")
        async def wait(self) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

    async with connected(Slow(), grants=GRANTS) as (host, _):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.call_tool, "wait")
            await settled()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await ended.wait()
