"""What a type checker knows of LSP's methods, and of a client. Checked by `make types`, never run."""

from collections.abc import Sequence
from typing import Any, assert_type

from lsprotocol import types

from becket import Gap, Peer
from becket.adapters import lsp
from becket.host import Host
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import Stream


async def calls(peer: Peer, client: lsp.LanguageClient, place: types.HoverParams, where: types.ReferenceParams) -> None:
    assert_type(await peer.call(lsp.TEXT_DOCUMENT_HOVER, place), types.Hover | None)
    assert_type(await client.call(lsp.TEXT_DOCUMENT_HOVER, place, timeout=5), types.Hover | None)
    assert_type(await client.call(lsp.TEXT_DOCUMENT_REFERENCES, where), Sequence[types.Location] | None)
    assert_type(await client.call(lsp.SHUTDOWN), None)
    assert_type(await client.call(lsp.WORKSPACE_EXECUTE_COMMAND, types.ExecuteCommandParams("x")), Any)
    await client.notify(lsp.INITIALIZED, types.InitializedParams())
    await client.notify(lsp.EXIT)
    await client.call(lsp.TEXT_DOCUMENT_HOVER, where)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]


async def streams(client: lsp.LanguageClient, where: types.ReferenceParams) -> None:
    async with client.stream(lsp.TEXT_DOCUMENT_REFERENCES, where) as run:
        async for event in run:
            if isinstance(event, lsp.PartialResult):
                assert_type(event.value, Sequence[types.Location])
            elif not isinstance(event, Gap):
                assert_type(
                    event, types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
                )
        assert_type(await run.result(), Sequence[types.Location] | None)
    async with client.progress() as feed:
        async for report in feed:
            assert_type(report, lsp.WorkProgress)


async def documents(client: lsp.LanguageClient) -> None:
    async with client.connect_process(["pylsp"]) as connected:
        assert_type(connected, lsp.LanguageClient)
    document = await client.open_document("a.py")
    assert_type(document, lsp.TextDocument)
    assert_type(await document.diagnostics(), Sequence[types.Diagnostic])


def handlers(peer: Peer) -> None:
    @peer.handle(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None: ...

    @peer.handle(lsp.WORKSPACE_CONFIGURATION)
    async def configuration(params: types.ConfigurationParams) -> Sequence[Any]:
        return [None for _ in params.items]

    @peer.on(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def published(params: types.PublishDiagnosticsParams) -> None: ...


async def hosted(host: Host, client: lsp.LanguageClient) -> None:
    client.follow(await host.ready("pylsp"))


assert_type(lsp.TEXT_DOCUMENT_HOVER, Stream[types.HoverParams, types.Hover | None, lsp.WorkDone])
assert_type(lsp.CODE_LENS_RESOLVE, Method[types.CodeLens, types.CodeLens])
assert_type(lsp.PROGRESS, Notification[types.ProgressParams])
