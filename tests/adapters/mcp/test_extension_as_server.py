"""Any `ExtensionServer` as an MCP server: its tools, commands and methods for a client."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Unpack

import anyio
import pytest
from tests.adapters.mcp.notebook import Notebook
from tests.adapters.mcp.servers import HASTY

from becket.adapters.mcp import (
    CreateMessageResult,
    ElicitParams,
    ImageContent,
    LoggingLevel,
    LogMessage,
    McpClient,
    Progress,
    TextContent,
    ToolAnnotations,
)
from becket.adapters.mcp.client.connector import ClientOptions
from becket.adapters.mcp.dialect import MCP
from becket.errors import RemoteError
from becket.extension import ExtensionServer, tool
from becket.peer.peer import Peer
from becket.testing.pairs import memory_transports

pytestmark = pytest.mark.loops
PROGRAM = Path(__file__).with_name("notebook.py")


@asynccontextmanager
async def opened(server: ExtensionServer, **options: Unpack[ClientOptions]) -> AsyncGenerator[McpClient, None]:
    ours, theirs = memory_transports()
    async with server.over(theirs, dialect=MCP), McpClient.over(ours, **options) as client:
        yield client


async def test_the_server_sends_its_identity_and_capabilities() -> None:
    async with opened(Notebook()) as client:
        assert (client.server.server_info.name, client.server.server_info.version) == ("notebook", "2.1.0")
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.prompts is not None
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.completions is None


async def test_a_tool_that_is_read_only_is_annotated_as_such() -> None:
    async with opened(Notebook()) as client:
        tools = {each.name: each for each in await client.list_tools()}

        assert tools["find"].annotations == ToolAnnotations(read_only_hint=True)
        assert tools["add"].annotations is None


async def test_tools_are_listed_with_their_schemas_and_called() -> None:
    async with opened(Notebook()) as client:
        tools = {each.name: each for each in await client.list_tools()}
        assert tools["add"].description == "Adds a note and returns how many there are."
        assert tools["add"].input_schema["required"] == ["text"]

        added = await client.call_tool("add", {"text": "call Ada"})
        assert (added.structured_content, added.text) == ({"notes": 2}, '{"notes":2}')
        assert (await client.call_tool("find", {"text": "Ada"})).text == "call Ada"  # a plain function, in a thread
        drawn = await client.call_tool("draw")
        assert drawn.content == (TextContent("a note:"), ImageContent("aGk=", "image/png"))


async def test_a_tool_that_fails_responds_with_an_error_that_a_model_can_read() -> None:
    async with opened(Notebook()) as client:
        failed = await client.call_tool("fail", {"how": "told"})
        assert (failed.is_error, failed.text) == (True, "there is no such note")
        assert failed.meta == {"becket/error": {"message": "there is no such note", "code": 7, "data": {"left": 0}}}

        broken = await client.call_tool("fail", {"how": "broken"})
        assert broken.is_error
        assert "secret" not in str(broken)
        assert broken.meta is not None
        assert broken.meta["becket/error"]["data"]["incident"]

        misused = await client.call_tool("add", {"text": 5})
        assert misused.is_error
        assert "/arguments/text" in misused.text


async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol() -> None:
    async with opened(Notebook()) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("nope")
        assert caught.value.code == -32602


async def test_progress_is_sent_only_to_a_caller_that_requested_it() -> None:
    async with opened(Notebook()) as client:
        received: list[Progress] = []
        assert (await client.call_tool("count", {"to": 2}, on_progress=received.append)).text == "counted to 2"
        assert [(one.progress, one.total, one.message) for one in received] == [(1, 2, "step 1"), (2, 2, "step 2")]
        stray: list[object] = []

        @client.peer.on("notifications/progress")
        def on_notification(params: object) -> None:
            stray.append(params)

        await client.call_tool("count")
        await client.ping()
        assert stray == []


async def test_a_cancelled_tool_ends_and_never_gets_a_response() -> None:
    notebook = Notebook()
    async with opened(notebook) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait")
            with anyio.fail_after(60):
                await notebook.has_begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await notebook.was_cancelled.wait()
        await client.ping()


async def test_a_tool_may_use_sampling_and_elicitation_of_its_client() -> None:
    def sample(requested: object) -> CreateMessageResult:
        return CreateMessageResult.from_text("hello", "small")

    def elicit(requested: ElicitParams) -> dict[str, str]:
        return {"name": "Ada"}

    async with opened(Notebook(), sample=sample, elicit=elicit) as client:
        assert (await client.call_tool("ask")).text == "hello {'name': 'Ada'}"


async def test_a_tool_sends_no_request_that_its_client_has_not_announced_to_serve() -> None:
    async with opened(Notebook()) as client:

        @client.peer.handle("sampling/createMessage")
        def never(params: object) -> None:
            pytest.fail("it was requested")

        failed = await client.call_tool("ask")

    assert (failed.is_error, failed.text) == (True, "not supported here: `sampling/createMessage`")


async def test_log_messages_are_sent_from_the_set_level_on() -> None:
    received: list[str] = []
    async with opened(Notebook()) as client:

        @client.on(LogMessage)
        def log(message: LogMessage) -> None:
            received.append(message.text)

        await client.set_log_level(LoggingLevel.INFO)
        await client.call_tool("add", {"text": "a"})
        await client.set_log_level(LoggingLevel.ERROR)
        await client.call_tool("add", {"text": "b"})
        await client.ping()
    assert received == ["added a"]


async def test_commands_are_prompts_whose_text_is_what_they_put_out() -> None:
    async with opened(Notebook()) as client:
        (prompt,) = await client.list_prompts()
        assert prompt.name == "summary"
        text = await client.get_prompt("summary", {"args": "short 'and sweet'"})
        (message,) = text.messages
        assert isinstance(message.content, TextContent)
        assert message.content.text.splitlines() == [
            "1 notes, asked for with ['short', 'and sweet']",
            "number | note",
            "0 | buy milk",
        ]
        with pytest.raises(RemoteError) as caught:
            await client.get_prompt("nope")
        assert caught.value.code == -32602


async def test_methods_of_the_protocol_that_an_author_writes_are_served_unchanged() -> None:
    async with opened(Notebook()) as client:
        (resource,) = await client.list_resources()
        (contents,) = await client.read_resource(resource.uri)
        assert (resource.name, contents.text) == ("buy milk", "buy milk")


async def test_requests_before_the_handshake_are_refused_but_a_ping_is_not() -> None:
    ours, theirs = memory_transports()
    async with Notebook().over(theirs, dialect=MCP), Peer.over(ours, dialect=MCP) as raw:
        assert await raw.call("ping") == {}
        with pytest.raises(RemoteError):
            await raw.call("tools/list")
        with pytest.raises(RemoteError) as caught:
            await raw.call("server/discover")
        assert caught.value.code == -32601


async def test_memory_is_not_supported_by_a_client_of_mcp() -> None:
    class Forgetful(ExtensionServer):
        id, version = "forgetful", "1.0.0"

        @tool("Remembers.")
        async def remember(self) -> None:
            await self.host.memory.append("a")

        @tool("Remembers in a thread.")
        def remember_plainly(self) -> None:
            self.host.blocking.memory.append("a")

    async with opened(Forgetful()) as client:
        for name in ("remember", "remember_plainly"):
            failed = await client.call_tool(name)
            assert (failed.is_error, failed.text) == (True, "not supported here: `memory.append`")
            assert failed.meta is not None
            assert failed.meta["becket/error"]["meaning"] == "not supported"


@pytest.mark.process
@pytest.mark.parametrize("arguments", [[], ["--heard"]], ids=["told", "by hearing"])
async def test_a_program_is_an_mcp_server_by_argument_or_by_detection(arguments: list[str]) -> None:
    stderr: list[str] = []
    command = [sys.executable, str(PROGRAM), *arguments]
    env = {"PYTHONPATH": str(PROGRAM.parents[3])}
    async with McpClient.connect_process(command, env=env, limits=HASTY, on_stderr=stderr.append) as client:
        assert (await client.call_tool("find")).text == "buy milk"
        pid = client.peer.process
        assert pid is not None
    assert client.peer.close_reason is not None
