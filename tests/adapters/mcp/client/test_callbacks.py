"""Roots, sampling and elicitation: which client features are announced and served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.mcp.servers import initialized_by, served

from becket.adapters.mcp import (
    ELICITATION_CREATE,
    ROOTS_LIST,
    SAMPLING_CREATE_MESSAGE,
    USER_REJECTED,
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    ElicitResult,
    Root,
    SamplingMessage,
    TextContent,
)
from becket.errors import NotSupported, RemoteError, RpcError

pytestmark = pytest.mark.loops


async def test_roots_are_listed_and_may_change() -> None:
    has_changed = anyio.Event()
    async with served(initialized_by(), roots=["/work/a b", Root("file:///b", "B"), "mem://c"]) as (client, server):

        @server.on("notifications/roots/list_changed")
        def changed() -> None:
            has_changed.set()

        first = await server.call(ROOTS_LIST, None)
        await client.set_roots([Path("/work/new")])
        with anyio.fail_after(60):
            await has_changed.wait()
        second = await server.call(ROOTS_LIST, None)
    assert first.roots == (Root("file:///work/a%20b", "a b"), Root("file:///b", "B"), Root("mem://c"))
    assert second.roots == (Root("file:///work/new", "new"),)


async def test_a_client_without_roots_offers_none_and_cannot_send_a_change() -> None:
    async with served(initialized_by()) as (client, server):
        with pytest.raises(RemoteError) as caught:
            await server.call(ROOTS_LIST, None)
        assert caught.value.code == -32601
        with pytest.raises(NotSupported):
            await client.set_roots([])


SAMPLING_REQUEST = CreateMessageParams((SamplingMessage("user", TextContent("hi")),), 10)


async def test_sampling_calls_a_function_plain_or_async() -> None:
    def plain(requested: CreateMessageParams) -> CreateMessageResult:
        return CreateMessageResult.from_text(f"plain {requested.max_tokens}", "m")

    async def slow(requested: CreateMessageParams) -> CreateMessageResult:
        return CreateMessageResult.from_text("async", "m")

    async with served(initialized_by(), sample=plain) as (_, server):
        assert (await server.call(SAMPLING_CREATE_MESSAGE, SAMPLING_REQUEST)).text == "plain 10"
    async with served(initialized_by(), sample=slow) as (_, server):
        assert (await server.call(SAMPLING_CREATE_MESSAGE, SAMPLING_REQUEST)).text == "async"


async def test_a_sampling_function_may_refuse() -> None:
    def sample(requested: CreateMessageParams) -> CreateMessageResult:
        raise RpcError(USER_REJECTED, "User rejected sampling request")

    async with served(initialized_by(), sample=sample) as (_, server):
        with pytest.raises(RemoteError) as caught:
            await server.call(SAMPLING_CREATE_MESSAGE, SAMPLING_REQUEST)
        assert caught.value.code == -1


async def test_the_exception_of_a_function_is_not_sent() -> None:
    def sample(requested: CreateMessageParams) -> CreateMessageResult:
        raise ValueError("a secret")

    async with served(initialized_by(), sample=sample) as (_, server):
        with pytest.raises(RemoteError) as caught:
            await server.call(SAMPLING_CREATE_MESSAGE, SAMPLING_REQUEST)
        assert caught.value.code == -32603
        assert "secret" not in str(caught.value)


async def test_tools_for_a_model_are_refused_unless_they_were_offered() -> None:
    with_tools = CreateMessageParams(SAMPLING_REQUEST.messages, 10, tools=())
    response = CreateMessageResult.from_text("", "m")
    async with served(initialized_by(), sample=lambda requested: response) as (_, server):
        with pytest.raises(RemoteError) as caught:
            await server.call(SAMPLING_CREATE_MESSAGE, with_tools)
        assert caught.value.code == -32602
    async with served(initialized_by(), sample=lambda requested: response, samples_tools=True) as (_, server):
        await server.call(SAMPLING_CREATE_MESSAGE, with_tools)


@pytest.mark.parametrize(
    ("given", "response"),
    [
        ({"name": "Ada"}, ElicitResult("accept", {"name": "Ada"})),
        (None, ElicitResult("decline")),
        (ElicitResult("cancel"), ElicitResult("cancel")),
    ],
)
async def test_elicitation_calls_a_function(given: Any, response: ElicitResult) -> None:
    async with served(initialized_by(), elicit=lambda requested: given) as (_, server):
        assert await server.call(ELICITATION_CREATE, ElicitParams("your name?")) == response


async def test_url_elicitation_is_refused_unless_it_was_offered() -> None:
    url = ElicitParams("sign in", mode="url", url="https://example.org", elicitation_id="1")
    async with served(initialized_by(), elicit=lambda requested: {}) as (_, server):
        with pytest.raises(RemoteError) as caught:
            await server.call(ELICITATION_CREATE, url)
        assert caught.value.code == -32602
    async with served(initialized_by(), elicit=lambda requested: {}, elicits_urls=True) as (_, server):
        assert (await server.call(ELICITATION_CREATE, url)).action == "accept"


async def test_a_ping_of_the_server_gets_a_response() -> None:
    async with served(initialized_by()) as (_, server):
        assert await server.call("ping") == {}
