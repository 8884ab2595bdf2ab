"""pygls servers on becket's transports: every request gets a response, under becket's rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
from lsprotocol import types
from tests.adapters.lsp.pygls_server import Counting, build

from becket import ConnectionLost, Peer, RemoteError
from becket.adapters import lsp
from becket.adapters.lsp.dialect import LSP, LSP_LIMITS
from becket.errors import LocalProtocolError, NotSupported
from becket.testing.pairs import memory_transports

URI = "file:///a.py"
PLACE = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}


class Editor(lsp.LanguageClient):
    """A client with other responses than the default ones."""

    async def apply_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        return types.ApplyWorkspaceEditResult(applied=True)

    async def show_message_request(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        return params.actions[0] if params.actions else None

    async def configuration(self, item: types.ConfigurationItem) -> Any:
        if item.section == "slow":
            await asyncio.Event().wait()
        return await super().configuration(item)


@asynccontextmanager
async def served(server: Counting | None = None) -> AsyncGenerator[tuple[lsp.LanguageClient, Counting], None]:
    """Yields a client in this program, and the server behind it."""
    ours, theirs = memory_transports()
    chosen = build() if server is None else server
    serving = asyncio.ensure_future(lsp.serve(chosen, theirs))
    async with Editor(settings={"depth": 3}).over(ours) as client:
        yield client, chosen
    assert await serving == 0


@asynccontextmanager
async def served_raw() -> AsyncGenerator[tuple[Peer, asyncio.Future[int]], None]:
    """Yields a peer of a server in this program that has sent nothing yet."""
    ours, theirs = memory_transports()
    serving = asyncio.ensure_future(lsp.serve(build(), theirs))
    async with Peer.over(ours, dialect=LSP) as peer:
        yield peer, serving
    await serving


# -- features


async def test_features_of_all_kinds_are_served() -> None:
    async with served() as (client, _), client.open_document(URI, "first\nsecond") as document:
        assert [found.message for found in await document.diagnostics()] == ["opened"]

        hover = await client.call(lsp.TEXT_DOCUMENT_HOVER, types.HoverParams(document.identifier, document.position(7)))
        assert hover == types.Hover("second")

        await document.change("first\nchanged")
        hover = await client.call(lsp.TEXT_DOCUMENT_HOVER, types.HoverParams(document.identifier, document.position(7)))
        assert hover == types.Hover("changed")

        params = types.CompletionParams(document.identifier, document.position(0))
        found = await client.call(lsp.TEXT_DOCUMENT_COMPLETION, params)
        assert isinstance(found, list | tuple)
        assert "ThreadPoolExecutor" in found[0].label


async def test_custom_methods_are_served_also_if_they_are_added_later() -> None:
    async with served() as (client, _):
        assert await client.peer.call("own/settings", {"section": "depth"}) == {"found": 3}
        assert await client.peer.call("late/echo", {"text": "x"}) == {"late": "x"}
        assert await client.peer.call("own/object") == {"where": "here"}

        await client.peer.notify("own/told", {"n": 5})
        assert (await client.peer.call("own/events"))["events"] == ["told 5"]


async def test_the_server_calls_its_client() -> None:
    async with served() as (client, _), client.progress() as progress:

        async def execute(command: str, *arguments: Any) -> Any:
            return await client.call(
                lsp.WORKSPACE_EXECUTE_COMMAND, types.ExecuteCommandParams(command, list(arguments))
            )

        assert await execute("count.index", 4) == 4
        assert [(await anext(progress)).value.kind for _ in range(2)] == ["begin", "end"]
        assert await execute("count.rename") is True
        assert await execute("count.ask") == "yes"


async def test_progress_and_partial_results_are_streamed() -> None:
    async with served() as (client, _):
        params = types.ReferenceParams(
            types.ReferenceContext(include_declaration=True), types.TextDocumentIdentifier(URI), types.Position(0, 0)
        )
        async with client.stream(lsp.TEXT_DOCUMENT_REFERENCES, params) as run:
            events = [event async for event in run]
            assert await run.result() == ()
        assert [type(event).__name__ for event in events] == [
            "WorkDoneProgressBegin",
            "WorkDoneProgressReport",
            "WorkDoneProgressEnd",
            "PartialResult",
        ]
        assert len(await client.call(lsp.TEXT_DOCUMENT_REFERENCES, params) or ()) == 1


# -- settlement


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        pytest.param("textDocument/hover", {"textDocument": {}}, -32602, id="params that do not fit"),
        pytest.param("textDocument/hover", None, -32602, id="no params"),
        pytest.param("textDocument/hover", [1], -32602, id="params by position"),
        pytest.param("workspace/executeCommand", {"command": "none"}, -32602, id="a command that does not exist"),
        pytest.param("textDocument/rename", {**PLACE, "newName": "x"}, -32601, id="a feature that it does not have"),
        pytest.param("no/such", {}, -32601, id="a method that nobody knows"),
        pytest.param("own/unwritable", {}, -32603, id="a result without JSON"),
        pytest.param("own/settings", {}, -32603, id="params that its function stumbles over"),
        pytest.param("own/fails", {}, -32603, id="a function that fails"),
        pytest.param("initialize", {"capabilities": {}}, -32600, id="a second initialize"),
    ],
)
async def test_every_request_gets_a_response(method: str, params: Any, code: int) -> None:
    async with served() as (client, _):
        with pytest.raises(RemoteError) as caught:
            await client.peer.call(method, params, timeout=5)
        assert caught.value.code == code
        assert "Traceback" not in str(caught.value.data)
        assert "traceback" not in (caught.value.data or {})


async def test_problems_of_params_are_reported_with_pointers() -> None:
    async with served() as (client, _):
        with pytest.raises(RemoteError) as caught:
            await client.peer.call("textDocument/hover", {"textDocument": {"uri": 5}, "position": {"line": 0}})
        data: Any = caught.value.data
        assert [problem["pointer"] for problem in data["problems"]] == ["/textDocument/uri", "/position/character"]


async def test_requests_that_come_too_early_or_too_late_are_refused() -> None:
    async with served_raw() as (peer, serving):
        with pytest.raises(RemoteError) as early:
            await peer.call("textDocument/hover", PLACE)
        with pytest.raises(RemoteError) as bad:
            await peer.call("initialize", {"capabilities": 5})
        await peer.notify("textDocument/didOpen", {"nothing": "of it"})
        await peer.call("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        await peer.call("shutdown")
        with pytest.raises(RemoteError) as late:
            await peer.call("textDocument/hover", PLACE)
        assert (early.value.code, bad.value.code, late.value.code) == (-32002, -32602, -32600)
        await peer.notify("exit")
        assert await serving == 0


async def test_an_exit_without_a_shutdown_is_a_failure() -> None:
    async with served_raw() as (peer, serving):
        await peer.call("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        await peer.notify("exit")
        assert await serving == 1
        await peer.wait_closed()


async def test_a_client_that_disconnects_without_a_shutdown_is_a_failure() -> None:
    async with served_raw() as (peer, serving):
        await peer.aclose()
        assert await serving == 1


async def test_cancelling_reaches_the_function() -> None:
    async with served() as (client, server):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: client.peer.call("textDocument/definition", PLACE))
                while not server.events:
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            while not server.cancelled:
                await anyio.lowlevel.checkpoint()
            assert (await client.peer.call("own/events"))["kept"] == 0


async def test_a_cancelled_request_gets_a_response_once() -> None:
    async with served_raw() as (peer, _):
        await peer.call("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        pending = asyncio.ensure_future(peer.call("textDocument/definition", PLACE))
        await anyio.lowlevel.checkpoint()  # it has the id 2 then
        assert (await peer.call("own/events"))["events"] == ["begun"]
        await peer.notify("$/cancelRequest", {"id": 2})  # as a client does that continues to wait
        with pytest.raises(RemoteError) as caught:
            await pending
        assert caught.value.code == -32800


async def test_a_request_that_is_cancelled_at_once_does_not_continue() -> None:
    async with served_raw() as (peer, _):
        await peer.call("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        pending = asyncio.ensure_future(peer.call("textDocument/definition", PLACE))
        await anyio.lowlevel.checkpoint()
        await peer.notify("$/cancelRequest", {"id": 2})  # in the same turn: both are there before anything runs
        with pytest.raises(RemoteError) as caught:
            await pending
        assert caught.value.code == -32800
        state = await peer.call("own/events")
        assert (len(state["events"]) - state["cancelled"], state["kept"]) == (0, 0)


async def test_a_change_does_not_overtake_a_request() -> None:
    async with served() as (client, _), client.open_document(URI, "old") as document:
        place = types.HoverParams(document.identifier, types.Position(0, 0))
        before = asyncio.ensure_future(client.call(lsp.TEXT_DOCUMENT_HOVER, place))
        await anyio.lowlevel.checkpoint()
        await document.change("new")
        after = asyncio.ensure_future(client.call(lsp.TEXT_DOCUMENT_HOVER, place))
        assert (await before, await after) == (types.Hover("old"), types.Hover("new"))


async def test_notifications_of_the_server_do_not_overtake_its_requests() -> None:
    async with served() as (client, _):
        received: list[str] = []

        @client.peer.handle("demo/asked")
        def asked(params: Any) -> None:
            received.append(f"asked {params['n']}")

        @client.peer.on("demo/told")
        def on_notification(params: Any) -> None:
            received.append(f"told {params['n']}")

        await client.peer.call("own/burst")
        await client.peer.call("own/events")
        assert received == ["asked 1", "told 1", "asked 2", "told 2"]


async def test_all_that_a_server_publishes_at_once_is_sent() -> None:
    async with served() as (client, _):
        text = "x" * 1_000_000
        await client.peer.call("own/publish", {"times": 20, "text": text})
        assert [len(published.diagnostics) for published in client.diagnostics.values()] == [1] * 20


async def test_a_call_that_the_server_gives_up_is_cancelled_at_the_client() -> None:
    async with served() as (client, server):
        assert await client.peer.call("own/give up") == "gave up"
        assert server.protocol._request_futures == {}
        assert server.protocol._result_types == {}


async def test_calls_of_the_server_fail_when_its_client_is_gone() -> None:
    ours, theirs = memory_transports()
    server = build()
    serving = asyncio.ensure_future(lsp.serve(server, theirs))
    client = await Editor().over(ours)
    asked = server.workspace_configuration_async(types.ConfigurationParams([types.ConfigurationItem(section="slow")]))
    await client.peer.call("own/events")
    await client.peer.aclose()
    with pytest.raises((ConnectionLost, asyncio.CancelledError)):
        await asked
    with pytest.raises((ConnectionLost, asyncio.CancelledError)):
        await server.workspace_configuration_async(types.ConfigurationParams([]))
    await serving


async def test_an_error_of_the_client_reaches_the_server() -> None:
    async with served() as (client, server):

        @client.peer.handle("demo/refuse")
        def refuse() -> None:
            raise ValueError

        from pygls.exceptions import JsonRpcException

        with pytest.raises(JsonRpcException):
            await server.protocol.send_request_async("demo/refuse", {})
        with pytest.raises(JsonRpcException) as caught:
            await server.protocol.send_request_async("demo/none")
        assert caught.value.code == -32601


async def test_many_requests_run_at_once() -> None:
    async with served() as (client, server):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for _ in range(600):
                    group.start_soon(lambda: client.peer.call("textDocument/definition", PLACE))
                while len(server.events) < 600:
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()


async def test_nothing_is_stored_of_finished_requests() -> None:
    async with served() as (client, server):
        for number in range(50):
            async with client.open_document(f"file:///{number}.py", "x"):
                pass
        with anyio.fail_after(60):
            while server.protocol._request_futures:
                await anyio.lowlevel.checkpoint()


async def test_a_shutdown_ends_running_requests() -> None:
    async with served() as (client, server):
        pending = [asyncio.ensure_future(client.peer.call("textDocument/definition", PLACE)) for _ in range(3)]
        asked = asyncio.ensure_future(client.peer.call("own/settings", {"section": "slow"}))
        with anyio.fail_after(60):
            while len(server.events) < 3:
                await anyio.lowlevel.checkpoint()
            await client.call(lsp.SHUTDOWN)
            outcomes = await asyncio.gather(*pending, asked, return_exceptions=True)
        assert [getattr(outcome, "code", outcome) for outcome in outcomes] == [-32800] * 4


async def test_a_server_object_has_one_client_in_its_life() -> None:
    server = build()
    async with served(server):
        with pytest.raises(LocalProtocolError, match="counting has, or had, a client"):
            await lsp.serve(server, memory_transports()[0])


async def test_a_message_above_the_limit_ends_the_link() -> None:
    ours, theirs = memory_transports()
    serving = asyncio.ensure_future(lsp.serve(build(), theirs, limits=LSP_LIMITS.but(frame=10_000)))
    client = await Editor().over(ours)
    with pytest.raises(ConnectionLost):
        await client.peer.call("own/told", {"n": "x" * 20_000})
    assert await serving == 1
    await client.aclose()


async def test_cancelling_the_serving_ends_the_link() -> None:
    ours, theirs = memory_transports()
    serving = asyncio.ensure_future(lsp.serve(build(), theirs))
    client = await Editor().over(ours)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    await client.peer.wait_closed()
    await client.aclose()


# -- where it runs


def test_the_server_needs_asyncio() -> None:
    async def serve() -> None:
        with pytest.raises(NotSupported, match="pygls needs asyncio"):
            await lsp.serve(build(), memory_transports()[0])
        with pytest.raises(NotSupported):
            await lsp.serve_tcp(build).__aenter__()

    trio.run(serve)


async def test_on_a_port_each_client_has_a_server_of_its_own() -> None:
    async with (
        lsp.serve_tcp(build) as there,
        Editor().connect_tcp("127.0.0.1", there.port) as one,
        Editor().connect_tcp("127.0.0.1", there.port) as other,
    ):
        await one.peer.notify("own/told", {"n": 1})
        assert (await one.peer.call("own/events"))["events"] == ["told 1"]
        assert (await other.peer.call("own/events"))["events"] == []


async def test_a_unix_socket_serves_too(tmp_path: Path) -> None:
    async with lsp.serve_unix(build, tmp_path / "s"), Editor().connect_unix(tmp_path / "s") as client:
        assert client.server_info == types.ServerInfo("counting", "1.0")


async def test_leaving_the_block_ends_running_requests() -> None:
    async with lsp.serve_tcp(build) as there:
        client = await Editor().connect_tcp("127.0.0.1", there.port)
    assert (await client.peer.wait_closed()) is not None
    await client.aclose()
