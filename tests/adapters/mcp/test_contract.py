"""A host and an extension use the contract through the MCP mapping, in memory."""

from __future__ import annotations

import logging

import anyio
import pytest
from tests.adapters.mcp.notebook import Notebook

from becket.adapters.mcp import MCP
from becket.contract.hooks import HookEvent
from becket.errors import BadValue, NotDeclared, NotSupported, PermissionDenied, RemoteError
from becket.testing import connected

pytestmark = pytest.mark.loops
GRANTS = ["tools.register"]


async def test_tools_are_declared_and_called_like_those_of_other_extensions() -> None:
    async with connected(Notebook(), dialect="mcp", grants=GRANTS) as (host, _):
        assert "find" in [tool.name for tool in host.tools]
        assert await host.call_tool("find", {"text": "milk"}) == "buy milk"
        assert await host.call_tool("add", {"text": "call Ada"}) == '{"notes":2}'
        drawn = await host.call_tool_json("draw")
        assert (drawn["content"], drawn["pieces"][1]["type"]) == ("a note:\n[image/png]", "image")


async def test_a_tool_that_fails_fails_the_call() -> None:
    async with connected(Notebook(), dialect=MCP, grants=GRANTS) as (host, _):
        with pytest.raises(RemoteError) as caught:
            await host.call_tool("fail", {"how": "told"})
        assert caught.value.message == "there is no such note"


async def test_arguments_that_the_contract_refuses_are_refused_before_anything_is_sent() -> None:
    async with connected(Notebook(), dialect=MCP, grants=GRANTS) as (host, _):
        with pytest.raises(NotDeclared):
            await host.call_tool("nope")
        with pytest.raises(BadValue):
            await host.call_tool("find", {"text": 5})
        with pytest.raises(NotSupported):
            await host.sidecar_args()
        host.gate.grant("tools.intercept")
        with pytest.raises(NotSupported):
            await host.handle_hook(HookEvent.before_tool_call("a", {}))
        host.gate.revoke("tools.register")
        with pytest.raises(PermissionDenied):
            await host.call_tool("find")


async def test_leaving_a_call_cancels_the_tool() -> None:
    async with connected(Notebook(), dialect=MCP, grants=GRANTS) as (host, notebook):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.call_tool, "wait")
            with anyio.fail_after(60):
                await notebook.has_begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await notebook.was_cancelled.wait()


async def test_a_prompt_is_a_command_of_the_host() -> None:
    async with (
        connected(Notebook(), dialect=MCP, grants=GRANTS) as (host, _),
        host.invoke_command("summary", ["short"]) as run,
    ):
        assert [event async for event in run] == []
        result = await run.result()
        assert result["content"].startswith("1 notes, asked for with ['short']")


async def test_log_messages_of_the_extension_reach_the_log_of_the_host(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "becket.ext.notebook")
    async with connected(Notebook(), dialect=MCP, grants=GRANTS) as (host, _):
        await host.call_tool("add", {"text": "a"})
    assert ("notebook: added a", logging.INFO) in [(record.getMessage(), record.levelno) for record in caplog.records]


async def test_the_description_of_the_extension_comes_from_the_handshake() -> None:
    async with connected(Notebook(), dialect=MCP, grants=GRANTS) as (host, _):
        about = await host.info()
        assert about.build is not None
        assert (about.build.backend, about.build.version) == ("notebook", "2.1.0")
        assert host.extra.version == "2025-11-25"
