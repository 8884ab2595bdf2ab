"""What a type checker knows of the client of MCP. Checked by `make types`, never run."""

from typing import assert_type

from becket import Gap
from becket.adapters.mcp import (
    RESOURCES_READ,
    TOOLS_CALL,
    TOOLS_LIST,
    CallToolParams,
    Completion,
    CreateMessageResult,
    GetPromptResult,
    ListToolsResult,
    McpClient,
    McpTool,
    PaginatedParams,
    Progress,
    Prompt,
    ReadResourceResult,
    ResourceContents,
    ResourceParams,
    ToolResult,
    ToolsChanged,
)


async def uses(client: McpClient) -> None:
    assert_type(await client.list_tools(), tuple[McpTool, ...])
    assert_type(await client.call_tool("a", {"b": 1}, timeout=5), ToolResult)
    assert_type(await client.call(TOOLS_CALL, CallToolParams("a"), timeout=None), ToolResult)
    assert_type(await client.call(RESOURCES_READ, ResourceParams("a:b")), ReadResourceResult)
    assert_type(await client.call(TOOLS_LIST, PaginatedParams("next")), ListToolsResult)
    assert_type(await client.call(TOOLS_LIST, None), ListToolsResult)
    assert_type(await client.read_resource("a:b"), tuple[ResourceContents, ...])
    assert_type(await client.get_prompt("a"), GetPromptResult)
    assert_type(await client.complete(Prompt("a"), "b", "c"), Completion)
    await client.call(TOOLS_CALL, ResourceParams("a:b"))  # type: ignore[misc]  # pyright: ignore[reportArgumentType]


async def streams(client: McpClient) -> None:
    async with client.stream_tool("a") as run:
        async for event in run:
            assert_type(event, Progress | Gap)
        assert_type(await run.result(), ToolResult)


async def responses(client: McpClient) -> None:
    @client.on(ToolsChanged)
    def receive(event: ToolsChanged) -> None: ...

    McpClient.connect_process(
        ["a"], sample=lambda requested: CreateMessageResult.from_text(str(requested.max_tokens), "m")
    )
    McpClient.connect_process(["a"], elicit=lambda requested: {"message": requested.message})
    McpClient.connect_process(["a"], elicit=lambda requested: None)
