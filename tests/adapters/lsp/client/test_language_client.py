"""The handshake of a language client, its responses to server requests, and its end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from lsprotocol import types
from tests.adapters.lsp.pairs import linked

from becket import ConnectionLost, Peer, RemoteError, RpcError
from becket.adapters import lsp
from becket.adapters.lsp.dialect import LSP
from becket.errors import HandshakeFailed, LocalProtocolError, StartFailed
from becket.testing.pairs import memory_transports

pytestmark = pytest.mark.loops


# -- lifecycle


async def test_initialize_initialized_shutdown_and_exit_are_sent_in_order() -> None:
    async with linked(lsp.LanguageClient()) as (client, _, received):
        assert client.server_info == types.ServerInfo("scripted", "1")
        await client.call(lsp.INITIALIZE, client.build_initialize())  # a response: all earlier messages were received
    assert received.words == ["initialize", "initialized", "initialize", "shutdown", "exit"]


async def test_the_project_is_sent_to_the_server(tmp_path: Path) -> None:
    client = lsp.LanguageClient(root=tmp_path, options={"fast": True}, name="editor", version="2")
    async with linked(client) as (_, _, received):
        params = received.initialize
    assert (params.root_uri, params.root_path) == (tmp_path.as_uri(), str(tmp_path))
    assert params.workspace_folders == (types.WorkspaceFolder(tmp_path.as_uri(), tmp_path.name),)
    assert params.initialization_options == {"fast": True}
    assert params.client_info == types.ClientInfo("editor", "2")


async def test_settings_are_sent_once_the_server_is_ready() -> None:
    async with linked(lsp.LanguageClient(settings={"a": 1})) as (_, _, received):
        pass
    assert received.words[:3] == ["initialize", "initialized", "settings {'a': 1}"]


async def test_a_server_that_refuses_is_closed() -> None:
    ours, theirs = memory_transports()
    async with Peer.over(theirs, dialect=LSP) as server:

        @server.handle(lsp.INITIALIZE)
        def initialize() -> types.InitializeResult:
            raise RpcError(-32803, "no licence")

        with pytest.raises(RemoteError, match="no licence"):
            await lsp.LanguageClient().over(ours)
        await server.wait_closed()


async def test_a_server_with_an_unknown_position_encoding_is_closed() -> None:
    capabilities = types.ServerCapabilities(position_encoding="utf-7")
    with pytest.raises(HandshakeFailed, match="utf-7"):
        async with linked(lsp.LanguageClient(), capabilities):
            pytest.fail("it was kept")


async def test_a_missing_program_is_reported() -> None:
    with pytest.raises(StartFailed):
        await lsp.LanguageClient().connect_process(["no-such-language-server"])


async def test_a_client_has_one_server_at_a_time() -> None:
    async with linked(lsp.LanguageClient()) as (client, _, _):
        with pytest.raises(LocalProtocolError, match="already connected"):
            await client.over(memory_transports()[0])


async def test_calls_without_a_server_are_refused() -> None:
    client = lsp.LanguageClient()

    with pytest.raises(LocalProtocolError, match="not connected"):
        client.call(lsp.SHUTDOWN)
    await client.aclose()


async def test_a_server_that_does_not_respond_to_shutdown_is_closed() -> None:
    async with linked(lsp.LanguageClient()) as (client, server, received):
        await server.aclose()
    assert "shutdown" not in received.words
    assert client.peer.is_closed


# -- requests of the server


async def test_a_configuration_request_gets_the_settings_by_section() -> None:
    client = lsp.LanguageClient(settings={"python": {"lint": {"on": True}}, "flat": 1})
    async with linked(client) as (_, server, _):
        items = [
            types.ConfigurationItem(section=section) for section in ("python.lint", "flat", "flat.deep", "none", None)
        ]
        responses = await server.call(lsp.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items))
    assert responses == ({"on": True}, 1, None, None, client.settings)


async def test_registrations_are_stored_and_removed() -> None:
    async with linked(lsp.LanguageClient()) as (client, server, _):
        intent = types.Registration("1", "textDocument/hover")
        await server.call(lsp.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams([intent]))
        assert client.registrations == {"1": intent}

        gone = types.UnregistrationParams([types.Unregistration("1", "textDocument/hover")])
        await server.call(lsp.CLIENT_UNREGISTER_CAPABILITY, gone)
        assert client.registrations == {}


async def test_every_request_of_a_server_has_a_response(tmp_path: Path) -> None:
    edit = types.ApplyWorkspaceEditParams(types.WorkspaceEdit())
    prompt = types.ShowMessageRequestParams(types.MessageType.Info, "restart?", [types.MessageActionItem("yes")])
    async with linked(lsp.LanguageClient(root=tmp_path)) as (_, server, _):
        assert not (await server.call(lsp.WORKSPACE_APPLY_EDIT, edit)).applied
        assert await server.call(lsp.WINDOW_SHOW_MESSAGE_REQUEST, prompt) is None
        assert not (await server.call(lsp.WINDOW_SHOW_DOCUMENT, types.ShowDocumentParams("file:///a"))).success
        folders = await server.call(lsp.WORKSPACE_WORKSPACE_FOLDERS)
        assert folders == (types.WorkspaceFolder(tmp_path.as_uri(), tmp_path.name),)
        await server.call(lsp.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams("t"))
        await server.call(lsp.WORKSPACE_DIAGNOSTIC_REFRESH)
        await server.call(lsp.WORKSPACE_SEMANTIC_TOKENS_REFRESH)


class Editor(lsp.LanguageClient):
    """A client that carries out the requests of its server."""

    def __init__(self) -> None:
        super().__init__()
        self.refreshed = 0

    async def apply_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        return types.ApplyWorkspaceEditResult(applied=True)

    async def show_message_request(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        return params.actions[0] if params.actions else None

    async def configuration(self, item: types.ConfigurationItem) -> Any:
        return f"own {item.section}"

    async def workspace_folders(self) -> Sequence[types.WorkspaceFolder] | None:
        return [types.WorkspaceFolder("file:///else", "else")]

    async def create_progress(self, params: types.WorkDoneProgressCreateParams) -> None:
        raise RpcError(-32803, "no room for another bar")

    async def refresh(self) -> None:
        self.refreshed += 1


async def test_every_default_response_can_be_replaced() -> None:
    prompt = types.ShowMessageRequestParams(types.MessageType.Info, "restart?", [types.MessageActionItem("yes")])
    requested = types.ConfigurationParams([types.ConfigurationItem(section="x")])
    async with linked(Editor()) as (editor, server, received):
        applied = await server.call(lsp.WORKSPACE_APPLY_EDIT, types.ApplyWorkspaceEditParams(types.WorkspaceEdit()))
        assert applied.applied
        assert await server.call(lsp.WINDOW_SHOW_MESSAGE_REQUEST, prompt) == types.MessageActionItem("yes")
        assert await server.call(lsp.WORKSPACE_CONFIGURATION, requested) == ("own x",)
        assert (await server.call(lsp.WORKSPACE_WORKSPACE_FOLDERS) or ())[0].name == "else"
        with pytest.raises(RemoteError, match="no room"):
            await server.call(lsp.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams("t"))
        await server.call(lsp.WORKSPACE_CODE_LENS_REFRESH)
        assert editor.refreshed == 1
    announced = received.initialize.capabilities.workspace
    assert announced is not None
    assert announced.apply_edit


async def test_a_response_may_come_from_a_plain_function() -> None:
    class Plain(lsp.LanguageClient):
        def configuration(self, item: types.ConfigurationItem) -> Any:  # type: ignore[override]
            return f"plain {item.section}"

    requested = types.ConfigurationParams([types.ConfigurationItem(section="x")])
    async with linked(Plain()) as (_, server, _):
        assert await server.call(lsp.WORKSPACE_CONFIGURATION, requested) == ("plain x",)


async def test_features_that_are_not_overridden_are_not_announced() -> None:
    async with linked(lsp.LanguageClient()) as (client, _, received):
        announced = received.initialize.capabilities.workspace
    assert announced is not None
    assert not announced.apply_edit
    assert lsp.WORKSPACE_APPLY_EDIT.name not in client.methods  # so a host does not announce it either
    assert lsp.WORKSPACE_APPLY_EDIT.name in Editor().methods


async def test_a_server_may_send_requests_during_a_call() -> None:
    async with linked(lsp.LanguageClient(settings={"depth": 3})) as (client, server, _):

        @server.handle(lsp.WORKSPACE_EXECUTE_COMMAND)
        async def execute(params: types.ExecuteCommandParams) -> Any:
            items = [types.ConfigurationItem(section="depth")]
            return (await server.call(lsp.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items)))[0]

        assert await client.call(lsp.WORKSPACE_EXECUTE_COMMAND, types.ExecuteCommandParams("x")) == 3


async def test_messages_go_to_the_log_with_their_level(caplog: pytest.LogCaptureFixture) -> None:
    async with linked(lsp.LanguageClient()) as (_, server, _):
        with caplog.at_level(logging.DEBUG, "becket.lsp"):
            await server.notify(lsp.WINDOW_LOG_MESSAGE, types.LogMessageParams(types.MessageType.Warning, "careful"))
            await server.notify(lsp.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(types.MessageType.Error, "broken"))
            await server.call(lsp.WORKSPACE_WORKSPACE_FOLDERS)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "scripted: careful"),
        ("ERROR", "scripted: broken"),
    ]


# -- progress


async def test_the_progress_of_a_call_and_the_parts_of_its_result_come_as_events() -> None:
    place = types.Location("file:///a.py", types.Range(types.Position(1, 1), types.Position(1, 2)))
    async with linked(lsp.LanguageClient()) as (client, server, _):

        @server.handle(lsp.TEXT_DOCUMENT_REFERENCES)
        async def find(params: types.ReferenceParams) -> Sequence[types.Location] | None:
            work, part = params.work_done_token, params.partial_result_token
            assert work is not None
            assert part is not None
            for token, value in (
                (work, types.WorkDoneProgressBegin("Search")),
                ("another", types.WorkDoneProgressBegin("not this one")),
                (part, [place]),
                (work, types.WorkDoneProgressReport(percentage=50)),
                (part, "no part"),
                (work, types.WorkDoneProgressEnd()),
            ):
                await server.notify(lsp.PROGRESS, types.ProgressParams(token, value))
            return []

        params = types.ReferenceParams(
            types.ReferenceContext(include_declaration=True),
            types.TextDocumentIdentifier("file:///a.py"),
            types.Position(0, 0),
        )
        async with client.stream(lsp.TEXT_DOCUMENT_REFERENCES, params) as run:
            events = [event async for event in run]
            assert await run.result() == ()
            assert run.skipped == 1
    assert events == [
        types.WorkDoneProgressBegin("Search"),
        lsp.PartialResult((place,)),
        types.WorkDoneProgressReport(percentage=50),
        types.WorkDoneProgressEnd(),
    ]


async def test_progress_that_the_server_began_itself_is_a_feed_of_its_own() -> None:
    async with linked(lsp.LanguageClient()) as (client, server, _):
        async with client.progress() as feed:
            for value in (types.WorkDoneProgressBegin("Index"), {"kind": "begin"}, [1], types.WorkDoneProgressEnd()):
                await server.notify(lsp.PROGRESS, types.ProgressParams("t", value))
            first, second = await anext(feed), await anext(feed)
        assert (first, second) == (
            lsp.WorkProgress("t", types.WorkDoneProgressBegin("Index")),
            lsp.WorkProgress("t", types.WorkDoneProgressEnd()),
        )


async def test_work_of_the_server_can_be_cancelled() -> None:
    async with linked(lsp.LanguageClient()) as (client, server, _):
        tokens: list[int | str] = []

        @server.on(lsp.WINDOW_WORK_DONE_PROGRESS_CANCEL)
        def cancel(params: types.WorkDoneProgressCancelParams) -> None:
            tokens.append(params.token)

        await client.cancel_progress(7)
        await client.call(lsp.SHUTDOWN)
        assert tokens == [7]


async def test_a_slow_subscriber_loses_the_oldest_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("becket.adapters.lsp.client.subscriptions.MAX_QUEUED", 2)
    async with linked(lsp.LanguageClient()) as (client, server, _), client.progress() as feed:
        for number in range(3):
            report = types.WorkDoneProgressReport(percentage=number)
            await server.notify(lsp.PROGRESS, types.ProgressParams("t", report))
        await server.call(lsp.WORKSPACE_WORKSPACE_FOLDERS)
        kept = [(await anext(feed)).value for _ in range(2)]
        assert [value.percentage for value in kept if isinstance(value, types.WorkDoneProgressReport)] == [1, 2]
        assert feed.dropped == 1


async def test_every_waiter_on_one_subscription_gets_an_item() -> None:
    async with linked(lsp.LanguageClient()) as (client, server, _), client.progress() as feed:
        got: list[lsp.WorkProgress] = []

        async def wait() -> None:
            got.append(await anext(feed))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                for number in (1, 2):
                    report = types.WorkDoneProgressReport(percentage=number)
                    await server.notify(lsp.PROGRESS, types.ProgressParams("t", report))
        assert len(got) == 2


async def test_a_feed_ends_with_the_link_and_raises_the_reason() -> None:
    async with linked(lsp.LanguageClient()) as (client, server, _), client.progress() as feed:
        await server.aclose()
        with pytest.raises(ConnectionLost):
            await anext(feed)


async def test_a_subscription_ends_quietly_when_the_client_closes() -> None:
    async with linked(lsp.LanguageClient()) as (client, _, _), client.progress() as feed:
        await client.aclose()
        assert [report async for report in feed] == []


# -- cancelling


async def test_leaving_a_call_cancels_it_at_the_server() -> None:
    async with linked(lsp.LanguageClient()) as (client, server, _):
        begun, ended = anyio.Event(), anyio.Event()

        @server.handle(lsp.TEXT_DOCUMENT_HOVER)
        async def hover() -> types.Hover | None:
            begun.set()
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        place = types.HoverParams(types.TextDocumentIdentifier("file:///a.py"), types.Position(0, 0))
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: client.call(lsp.TEXT_DOCUMENT_HOVER, place))
                await begun.wait()
                group.cancel_scope.cancel()
            await ended.wait()
