"""`McpClient` with the reference servers of the protocol, which others have written."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Unpack

import anyio
import pytest
from tests.adapters.mcp.servers import HASTY, needs_node, reference_server

from becket.adapters.mcp import (
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    EmbeddedResource,
    ImageContent,
    LogMessage,
    McpClient,
    Progress,
    ResourceLink,
    ResourceUpdated,
)
from becket.adapters.mcp.client.connector import ClientOptions

pytestmark = [needs_node, pytest.mark.process]


@asynccontextmanager
async def everything(**options: Unpack[ClientOptions]) -> AsyncGenerator[McpClient, None]:
    command = reference_server("everything", "stdio")
    options.setdefault("limits", HASTY)
    async with McpClient.connect_process(command, on_stderr=print, **options) as client:
        yield client


async def test_the_reference_server_everything_offers_every_feature() -> None:
    async with everything() as client:
        assert client.version == "2025-11-25"
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert {"echo", "get-sum", "get-structured-content"} <= tools.keys()
        assert (await client.call_tool("echo", {"message": "hi"})).text == "Echo: hi"

        image = await client.call_tool("get-tiny-image")
        assert [part.mime_type for part in image.content if isinstance(part, ImageContent)] == ["image/png"]
        structured = await client.call_tool("get-structured-content", {"location": "Chicago"})
        assert structured.structured_content["humidity"] == 82
        links = await client.call_tool("get-resource-links", {"count": 2})
        assert len([part for part in links.content if isinstance(part, ResourceLink)]) == 2
        held = await client.call_tool("get-resource-reference", {"resourceType": "Text", "resourceId": 1})
        assert any(isinstance(part, EmbeddedResource) and part.resource.text for part in held.content)

        wrong = await client.call_tool("get-sum", {"a": "x"})
        assert wrong.is_error

        resources = await client.list_resources()
        (contents,) = await client.read_resource(resources[0].uri)
        assert contents.text
        templates = await client.list_resource_templates()
        assert (await client.complete(templates[0], "resourceId", "1")).values == ("1",)

        prompts = {prompt.name: prompt for prompt in await client.list_prompts()}
        prompt = await client.get_prompt("args-prompt", {"city": "Ulm"})
        assert "Ulm" in str(prompt.messages[0].content)
        team = await client.complete(prompts["completable-prompt"], "name", "", arguments={"department": "Engineering"})
        assert "Alice" in team.values
        await client.ping()


@pytest.mark.loops
async def test_progress_comes_while_a_tool_runs_and_leaving_it_cancels_it() -> None:
    async with everything() as client:
        received: list[Progress] = []
        params = {"duration": 0.04, "steps": 4}
        await client.call_tool("trigger-long-running-operation", params, on_progress=received.append)
        assert [(one.progress, one.total) for one in received] == [(1, 4), (2, 4), (3, 4), (4, 4)]

        has_begun = anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                slow = {"duration": 60, "steps": 6000}
                await client.call_tool("trigger-long-running-operation", slow, on_progress=lambda _: has_begun.set())

            tasks.start_soon(run)
            with anyio.fail_after(60):
                await has_begun.wait()
            tasks.cancel_scope.cancel()
        assert (await client.call_tool("echo", {"message": "still here"})).text == "Echo: still here"


@pytest.mark.loops
async def test_the_server_uses_roots_sampling_and_elicitation() -> None:
    requested: list[Any] = []

    async def sample(request: CreateMessageParams) -> CreateMessageResult:
        requested.append(request)
        return CreateMessageResult.from_text("hello from a model", "small")

    def elicit(request: ElicitParams) -> dict[str, Any]:
        requested.append(request)
        return {"name": "Ada"}

    async with everything(roots=["/work"], sample=sample, elicit=elicit) as client:
        assert "file:///work" in (await client.call_tool("get-roots-list")).text
        sampled = await client.call_tool("trigger-sampling-request", {"prompt": "hi", "maxTokens": 7})
        assert "hello from a model" in sampled.text
        elicited = await client.call_tool("trigger-elicitation-request")
        assert "Ada" in elicited.text
    assert requested[0].max_tokens == 7
    assert "name" in requested[1].requested_schema["properties"]


async def test_the_server_sends_resource_updates_and_log_messages() -> None:
    uri = "demo://resource/dynamic/text/1"
    is_updated, is_logged = anyio.Event(), anyio.Event()
    async with everything() as client:

        @client.on(ResourceUpdated)
        def updated(event: ResourceUpdated) -> None:
            assert event.uri == uri
            is_updated.set()

        @client.on(LogMessage)
        def logged(message: LogMessage) -> None:
            assert uri in message.text
            is_logged.set()

        await client.set_log_level("debug")
        await client.subscribe(uri)
        await client.call_tool("toggle-subscriber-updates")
        with anyio.fail_after(60):
            await is_updated.wait()
            await is_logged.wait()
        await client.unsubscribe(uri)


async def test_the_server_of_files_reads_what_it_may_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("buy milk", encoding="utf-8")
    command = reference_server("filesystem", str(tmp_path))
    async with McpClient.connect_process(command, limits=HASTY, on_stderr=print) as client:
        read = await client.call_tool("read_text_file", {"path": str(tmp_path / "note.txt")})
        assert read.text == "buy milk"
        refused = await client.call_tool("read_text_file", {"path": "/etc/hostname"})
        assert refused.is_error


async def test_the_memory_server_stores_entities(tmp_path: Path) -> None:
    command = reference_server("memory")
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    entity = {"name": "Ada", "entityType": "person", "observations": ["likes engines"]}
    async with McpClient.connect_process(command, env=env, limits=HASTY, on_stderr=print) as client:
        await client.call_tool("create_entities", {"entities": [entity]})
        found = await client.call_tool("search_nodes", {"query": "engines"})
        assert found.structured_content["entities"][0]["name"] == "Ada"
