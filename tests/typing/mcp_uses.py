"""What a type checker knows of the client of MCP. Checked by `make types`, never run."""

from typing import assert_type

from becket import Gap
from becket.interop.mcp import (
    RESOURCES_READ,
    TOOLS_CALL,
    TOOLS_LIST,
    CallTool,
    McpClient,
    Page,
    Progress,
    Prompt,
    PromptText,
    Proposals,
    ReadResource,
    ResourceContents,
    ResourceRead,
    SampledMessage,
    Tool,
    ToolResult,
    ToolsChanged,
    ToolsPage,
)


async def uses(client: McpClient) -> None:
    assert_type(await client.list_tools(), tuple[Tool, ...])
    assert_type(await client.call_tool("a", {"b": 1}, timeout=5), ToolResult)
    assert_type(await client.call(TOOLS_CALL, CallTool("a"), timeout=None), ToolResult)
    assert_type(await client.call(RESOURCES_READ, ReadResource("a:b")), ResourceRead)
    assert_type(await client.call(TOOLS_LIST, Page("next")), ToolsPage)
    assert_type(await client.call(TOOLS_LIST, None), ToolsPage)
    assert_type(await client.read_resource("a:b"), tuple[ResourceContents, ...])
    assert_type(await client.get_prompt("a"), PromptText)
    assert_type(await client.complete(Prompt("a"), "b", "c"), Proposals)
    await client.call(TOOLS_CALL, ReadResource("a:b"))  # type: ignore[misc]  # pyright: ignore[reportArgumentType]


async def streams(client: McpClient) -> None:
    async with client.stream_tool("a") as run:
        async for event in run:
            assert_type(event, Progress | Gap)
        assert_type(await run.result(), ToolResult)


async def answers(client: McpClient) -> None:
    @client.on(ToolsChanged)
    def hear(event: ToolsChanged) -> None: ...

    McpClient.connect_process(["a"], sample=lambda asked: SampledMessage.of_text(str(asked.max_tokens), "m"))
    McpClient.connect_process(["a"], elicit=lambda asked: {"message": asked.message})
    McpClient.connect_process(["a"], elicit=lambda asked: None)
