"""`McpClient` with small servers in memory: the messages on the wire, and their results."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from tests.adapters.mcp.servers import initialized_by, served

from becket.adapters.mcp import (
    ELICITATION_COMPLETE,
    ELICITATION_CREATE,
    LOG_MESSAGE,
    RESOURCE_UPDATED,
    TOOLS_CALL,
    TOOLS_CHANGED,
    TOOLS_LIST,
    CallToolParams,
    CreateMessageResult,
    ElicitationCompleted,
    ElicitParams,
    ListCapability,
    LoggingLevel,
    LogMessage,
    McpClient,
    Progress,
    Prompt,
    PromptReference,
    ResourcesCapability,
    ResourceTemplate,
    ResourceTemplateReference,
    ResourceUpdated,
    ToolsChanged,
)
from becket.adapters.mcp.dialect import MCP
from becket.errors import CallTimeout, HandshakeFailed, NotSupported, RemoteError, RpcError, VersionMismatch
from becket.methods.registry import Registry
from becket.peer.context import Context
from becket.peer.peer import Peer
from becket.testing.pairs import memory_pair, memory_transports

ALL: dict[str, Any] = {
    "tools": ListCapability(),
    "resources": ResourcesCapability(subscribe=True),
    "prompts": ListCapability(),
}
pytestmark = pytest.mark.loops


# -- the handshake


async def test_the_client_sends_its_identity_and_capabilities_and_then_initialized() -> None:
    received: list[Any] = []
    methods = Registry()
    is_ready = anyio.Event()

    @methods.handle("initialize")
    def initialize(params: dict[str, Any]) -> dict[str, Any]:
        received.append(params)
        return {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

    @methods.on("notifications/initialized")
    def initialized() -> None:
        is_ready.set()

    async with served(methods, roots=["/work"], sample=lambda requested: CreateMessageResult.from_text("", "m")) as (
        client,
        _,
    ):
        assert client.version == "2025-03-26"
        with anyio.fail_after(60):
            await is_ready.wait()
    assert received[0]["protocolVersion"] == "2025-11-25"
    assert received[0]["capabilities"] == {"roots": {"listChanged": True}, "sampling": {}}
    assert received[0]["clientInfo"]["name"] == "becket"


async def test_the_link_to_a_server_of_an_unknown_version_is_closed() -> None:
    with pytest.raises(VersionMismatch):
        async with served(initialized_by("1999-01-01")):
            pass


async def test_the_error_for_a_server_that_refuses_has_its_message() -> None:
    methods = Registry()

    @methods.handle("initialize")
    def initialize(params: dict[str, Any]) -> None:
        raise RpcError(-32000, "not today")

    with pytest.raises(HandshakeFailed, match="not today"):
        async with served(methods):
            pass


async def test_a_server_that_never_responds_times_out() -> None:
    methods = Registry()

    @methods.handle("initialize")
    async def initialize(params: dict[str, Any]) -> None:
        await anyio.sleep_forever()

    with pytest.raises(CallTimeout):
        async with served(methods, handshake=0.01):
            pass


async def test_a_client_may_be_awaited_and_closed_by_hand() -> None:
    ours, theirs = memory_transports()
    async with Peer.over(theirs, dialect=MCP, methods=initialized_by()):
        client = await McpClient.over(ours)
        async with client as same:
            assert same is client
            assert "open" in repr(client)
        assert client.peer.is_closed
        assert "closed" in repr(client)


# -- lists


async def test_a_list_comes_whole_from_all_its_pages() -> None:
    methods = initialized_by(**ALL)
    requested: list[Any] = []

    @methods.handle("tools/list")
    def tools(params: dict[str, Any] | None) -> dict[str, Any]:
        requested.append(params)
        return {"tools": [{"name": f"t{len(requested)}"}], "nextCursor": "next" if len(requested) == 1 else None}

    async with served(methods) as (client, _):
        assert [tool.name for tool in await client.list_tools()] == ["t1", "t2"]
    assert requested == [{}, {"cursor": "next"}]


async def test_an_endless_list_is_abandoned() -> None:
    methods = initialized_by(**ALL)
    pages = iter(range(1_000_000))

    @methods.handle("prompts/list")
    def prompts(params: Any) -> dict[str, Any]:
        return {"prompts": [], "nextCursor": str(next(pages))}

    async with served(methods) as (client, _):
        with pytest.raises(NotSupported, match="pages"):
            await client.list_prompts()


async def test_a_server_with_resources_may_have_no_templates() -> None:
    async with served(initialized_by(resources={})) as (client, server):
        assert await client.list_resource_templates() == ()

        @server.handle("resources/templates/list")
        def broken() -> None:
            raise RpcError(-32603, "broken")

        with pytest.raises(RemoteError, match="broken"):
            await client.list_resource_templates()


async def test_a_missing_capability_is_an_empty_list_and_a_refused_call_and_nothing_is_sent() -> None:
    async with served(initialized_by()) as (client, server):

        @server.handle("resources/read")
        def never() -> None:
            pytest.fail("it was asked")

        for listed in (client.list_tools, client.list_prompts, client.list_resources, client.list_resource_templates):
            assert await listed() == ()
        with pytest.raises(NotSupported):
            await client.read_resource("a:b")
        with pytest.raises(NotSupported):
            await client.subscribe("a:b")
        with pytest.raises(NotSupported):
            await client.unsubscribe("a:b")
        with pytest.raises(NotSupported):
            await client.get_prompt("p")
        with pytest.raises(NotSupported):
            await client.complete(Prompt("p"), "a", "b")
        with pytest.raises(NotSupported):
            await client.set_log_level("info")


async def test_a_server_of_the_first_version_completes_without_a_capability() -> None:
    methods = initialized_by("2024-11-05", prompts=ListCapability())
    requested: list[Any] = []

    @methods.handle("completion/complete")
    def complete(params: dict[str, Any]) -> dict[str, Any]:
        requested.append(params)
        return {"completion": {"values": ["a"], "total": None}}

    async with served(methods) as (client, _):
        for of in (
            Prompt("p"),
            PromptReference("p"),
            ResourceTemplate("x://{y}"),
            ResourceTemplateReference("x://{y}"),
        ):
            assert (await client.complete(of, "y", "a", arguments={"z": "1"})).values == ("a",)
    assert [one["ref"] for one in requested] == [
        {"type": "ref/prompt", "name": "p"},
        {"type": "ref/prompt", "name": "p"},
        {"type": "ref/resource", "uri": "x://{y}"},
        {"type": "ref/resource", "uri": "x://{y}"},
    ]
    assert (requested[0]["argument"], requested[0]["context"]) == (
        {"name": "y", "value": "a"},
        {"arguments": {"z": "1"}},
    )


# -- any method


async def test_a_method_without_params_may_have_progress_too() -> None:
    methods = initialized_by(**ALL)
    requested: list[Any] = []

    @methods.handle("tools/list")
    def tools(params: dict[str, Any] | None) -> dict[str, Any]:
        requested.append(params)
        return {"tools": []}

    async with served(methods) as (client, _):
        for on_progress in (None, lambda progress: None):
            assert (await client.call(TOOLS_LIST, None, on_progress=on_progress)).tools == ()
    assert [sorted(params) for params in requested] == [[], ["_meta"]]


# -- tools


async def test_a_tool_without_arguments_is_called_with_an_empty_object() -> None:
    methods = initialized_by(**ALL)

    @methods.handle("tools/call")
    def call(params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": str(params)}]}

    async with served(methods) as (client, _):
        assert (await client.call_tool("now")).text == "{'name': 'now', 'arguments': {}}"


async def test_a_tool_that_fails_returns_a_result_with_the_error_flag() -> None:
    methods = initialized_by(**ALL)

    @methods.handle("tools/call")
    def call(params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "no such file"}], "isError": True}

    async with served(methods) as (client, _):
        result = await client.call_tool("read")
        assert (result.is_error, result.text) == (True, "no such file")


async def test_progress_reaches_the_call_with_its_token_and_no_other() -> None:
    methods = initialized_by(**ALL)
    both = anyio.Event()
    tokens: list[Any] = []

    @methods.handle("tools/call")
    async def call(params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        tokens.append(params["_meta"]["progressToken"])
        if len(tokens) == 2:
            both.set()
        await both.wait()  # the two are under way at once, and their progress interleaves
        for step in (1, 2):
            progress = {"progressToken": tokens[-1], "progress": step, "total": 2, "message": params["name"]}
            await ctx.notify("notifications/progress", {**progress, "progressToken": params["_meta"]["progressToken"]})
        return {"content": []}

    async with served(methods) as (client, _):
        received: dict[str, list[Progress]] = {"a": [], "b": []}

        async def run(name: str) -> None:
            await client.call_tool(name, on_progress=received[name].append)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, "a")
            tasks.start_soon(run, "b")
    assert [(one.progress, one.total, one.message) for one in received["a"]] == [(1, 2, "a"), (2, 2, "a")]
    assert [one.message for one in received["b"]] == ["b", "b"]
    assert len(set(tokens)) == 2


async def test_a_tool_can_be_run_as_a_stream_of_its_progress() -> None:
    methods = initialized_by(**ALL)

    @methods.handle("tools/call")
    async def call(params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        await ctx.notify("notifications/progress", {"progressToken": params["_meta"]["progressToken"], "progress": 1})
        return {"content": [{"type": "text", "text": "done"}]}

    async with served(methods) as (client, _), client.stream_tool("slow") as run:
        assert [event async for event in run] == [Progress(1, 1)]
        assert (await run.result()).text == "done"


async def test_an_async_function_may_take_progress_and_the_timeout_counts_from_the_last_progress() -> None:
    methods = initialized_by(**ALL)

    @methods.handle("tools/call")
    async def call(params: dict[str, Any], ctx: Context) -> None:
        await ctx.notify("notifications/progress", {"progressToken": params["_meta"]["progressToken"], "progress": 1})
        await anyio.sleep_forever()

    async with served(methods) as (client, _):
        received: list[Progress] = []

        async def take(progress: Progress) -> None:
            received.append(progress)

        with pytest.raises(CallTimeout):
            await client.call_tool("slow", on_progress=take, timeout=0.05)
        assert len(received) == 1


async def test_an_abandoned_call_is_cancelled_at_the_server_and_gets_no_response() -> None:
    methods = initialized_by(**ALL)
    has_begun, has_ended = anyio.Event(), anyio.Event()

    @methods.handle("tools/call")
    async def call(params: dict[str, Any]) -> None:
        has_begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            has_ended.set()

    async with served(methods) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "slow")
            await has_begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await has_ended.wait()
        assert server.is_closed is client.peer.is_closed is False


async def test_a_request_that_the_server_cancels_ends_at_the_client() -> None:
    has_begun, has_ended = anyio.Event(), anyio.Event()

    async def elicit(requested: ElicitParams) -> None:
        has_begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            has_ended.set()

    async with served(initialized_by(), elicit=elicit) as (_, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.call, ELICITATION_CREATE, ElicitParams("your name?"))
            await has_begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await has_ended.wait()


async def test_an_error_of_the_protocol_is_raised() -> None:
    async with served(initialized_by(**ALL)) as (client, _):
        with pytest.raises(RemoteError) as caught:
            await client.call(TOOLS_CALL, CallToolParams("x"))
        assert caught.value.code == -32601


# -- notifications of the server


async def test_notifications_of_the_server_reach_all_subscribers_in_order() -> None:
    received: list[Any] = []
    is_over = anyio.Event()
    async with served(initialized_by()) as (client, server):

        @client.on(LogMessage)
        def log(message: LogMessage) -> None:
            received.append(message.text)

        @client.on(LogMessage)
        async def again(message: LogMessage) -> None:
            received.append(message.level)

        @client.on(ResourceUpdated)
        def updated(event: ResourceUpdated) -> None:
            received.append(event.uri)

        @client.on(ElicitationCompleted)
        def completed(event: ElicitationCompleted) -> None:
            received.append(event.elicitation_id)

        @client.on(ToolsChanged)
        async def changed(event: ToolsChanged) -> None:
            received.append(event)
            is_over.set()

        await server.notify(LOG_MESSAGE, LogMessage(LoggingLevel.NOTICE, "one"))
        await server.notify(RESOURCE_UPDATED, ResourceUpdated("a:b"))
        await server.notify(ELICITATION_COMPLETE, ElicitationCompleted("7"))
        await server.notify(TOOLS_CHANGED, None)
        with anyio.fail_after(60):
            await is_over.wait()
    assert received == ["one", "notice", "a:b", "7", ToolsChanged()]


async def test_subscribing_to_a_class_that_no_server_sends_is_refused() -> None:
    async with served(initialized_by()) as (client, _):
        with pytest.raises(TypeError):
            client.on(int)


async def test_messages_before_the_end_of_the_handshake_are_accepted() -> None:
    methods = Registry()

    @methods.handle("initialize")
    async def initialize(params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        await ctx.notify("notifications/message", {"level": "info", "data": "early"})
        await ctx.notify("notifications/progress", {"progressToken": 1, "progress": 1})
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

    async with served(methods) as (client, _):
        assert client.server.server_info.name == "s"


# -- peers without a client


async def test_any_mcp_peer_sends_and_receives_progress() -> None:
    async with memory_pair(dialect="mcp") as (left, right):

        @right.handle("work")
        async def work(params: dict[str, Any], ctx: Context) -> str:
            for step in (1, 2):
                await ctx.progress({"progress": step, "total": 2})
            return "done"

        received: list[Any] = []
        assert await left.call("work", {"a": 1}, on_progress=received.append) == "done"
        assert [(one["progress"], one["total"]) for one in received] == [(1, 2), (2, 2)]
        async with left.stream("work", {}, progress=Progress) as run:
            assert [(one.progress, one.total) async for one in run if isinstance(one, Progress)] == [(1, 2), (2, 2)]
        assert await left.call("work", {}) == "done"  # no progress was requested, and none is sent
        assert len(received) == 2


async def test_progress_under_the_token_of_a_call_that_has_ended_reaches_the_general_handler() -> None:
    async with memory_pair(dialect="mcp") as (left, right):
        late: list[Any] = []
        arrived = anyio.Event()
        tokens: list[Any] = []

        @right.handle("work")
        def work(params: dict[str, Any]) -> str:
            tokens.append(params["_meta"]["progressToken"])
            return "done"

        @left.on("notifications/progress")
        def take(params: dict[str, Any]) -> None:
            late.append(params["progressToken"])
            arrived.set()

        of_the_call: list[Any] = []
        assert await left.call("work", {}, on_progress=of_the_call.append) == "done"
        await right.notify("notifications/progress", {"progressToken": tokens[0], "progress": 1})
        with anyio.fail_after(60):
            await arrived.wait()

    assert (of_the_call, late) == ([], tokens)


async def test_a_client_and_its_peer_do_not_take_each_others_progress() -> None:
    methods = initialized_by(**ALL)
    both = anyio.Event()
    count = 0

    @methods.handle("tools/call")
    async def call(params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        nonlocal count
        count += 1
        if count == 2:
            both.set()
        await both.wait()
        await ctx.progress({"progress": 1, "message": params["name"]})
        return {"content": []}

    async with served(methods) as (client, _):
        received: list[tuple[str, Any]] = []

        async def with_client() -> None:
            await client.call_tool("a", on_progress=lambda event: received.append(("client", event.message)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(with_client)
            await client.peer.call(
                "tools/call", {"name": "b"}, on_progress=lambda event: received.append(("peer", event["message"]))
            )
    assert sorted(received) == [("client", "a"), ("peer", "b")]
