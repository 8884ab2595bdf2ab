"""Diagnostics of a document: pulled, or awaited until they are published."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from lsprotocol import types
from tests.adapters.lsp.pairs import linked
from tests.peer.scripted import in_virtual_time

from becket import CallTimeout, ConnectionLost, RemoteError, RpcError
from becket.adapters import lsp

pytestmark = pytest.mark.loops


def report(uri: str, text: str, version: int | None = None) -> types.PublishDiagnosticsParams:
    place = types.Range(types.Position(0, 0), types.Position(0, 1))
    return types.PublishDiagnosticsParams(uri, [types.Diagnostic(place, text)], version)


SYNCED = types.ServerCapabilities(text_document_sync=types.TextDocumentSyncKind.Full)


async def test_the_first_diagnostics_after_the_last_change_are_returned() -> None:
    async with (
        linked(lsp.LanguageClient(), SYNCED) as (client, server, _),
        client.open_document("file:///a%20b.py", "x") as document,
    ):
        await server.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, report("file:///a b.py", "first"))
        assert [one.message for one in await document.diagnostics()] == ["first"]

        await document.change("y")
        await server.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, report(document.uri, "late", 1))
        await server.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, report(document.uri, "second", 2))
        assert [one.message for one in await document.diagnostics()] == ["second"]
        assert [one.message for one in client.diagnostics[document.uri].diagnostics] == ["second"]


@in_virtual_time
def test_all_parts_of_published_diagnostics_are_awaited(run: Any) -> None:
    async def main() -> None:
        async with (
            linked(lsp.LanguageClient(), SYNCED) as (client, server, _),
            client.open_document("file:///a.py", "x") as document,
            anyio.create_task_group() as group,
        ):

            async def publish() -> None:
                for text in ("syntax", "types", "style"):
                    await anyio.sleep(2)
                    await server.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, report(document.uri, text))

            group.start_soon(publish)
            assert [one.message for one in await document.diagnostics(quiet=3)] == ["style"]

    run(main)


@in_virtual_time
@pytest.mark.parametrize("quiet", [0, 10])
def test_diagnostics_for_a_change_made_meanwhile_are_awaited(run: Any, quiet: float) -> None:
    async def main() -> None:
        async with (
            linked(lsp.LanguageClient(), SYNCED) as (client, server, _),
            client.open_document("file:///a.py", "x") as document,
        ):
            found: list[str] = []

            async def wait() -> None:
                found.extend(one.message for one in await document.diagnostics(quiet=quiet, timeout=60))

            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                if quiet:
                    await server.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, report(document.uri, "of x", 1))
                    await server.call(lsp.WORKSPACE_WORKSPACE_FOLDERS)
                await anyio.wait_all_tasks_blocked()
                await document.change("y")
                await anyio.sleep(20)  # past the quiet time after the diagnostics of the earlier text
                await server.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, report(document.uri, "of y", 2))
            assert found == ["of y"]

    run(main)


async def test_diagnostics_of_all_documents_can_be_subscribed_to() -> None:
    async with linked(lsp.LanguageClient()) as (client, server, _), client.published_diagnostics() as feed:
        await server.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, report("file:///other.py", "x"))
        assert (await anext(feed)).uri == "file:///other.py"


async def test_the_oldest_published_diagnostics_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("becket.adapters.lsp.client.language_client.MAX_DIAGNOSTIC_DOCUMENTS", 2)
    async with linked(lsp.LanguageClient()) as (client, server, _):
        for name in ("a", "b", "a", "c"):
            await server.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, report(name, "x"))
        await server.call(lsp.WORKSPACE_WORKSPACE_FOLDERS)
        assert list(client.diagnostics) == ["a", "c"]


async def test_missing_diagnostics_are_a_timeout_and_a_lost_server_is_an_error() -> None:
    async with (
        linked(lsp.LanguageClient(), SYNCED) as (client, server, _),
        client.open_document("file:///a.py", "x") as document,
    ):
        with pytest.raises(CallTimeout, match="publishDiagnostics"):
            await document.diagnostics(timeout=0.01)
        await server.aclose()
        with pytest.raises(ConnectionLost):
            await document.diagnostics()


PULL_CAPABILITIES = types.ServerCapabilities(
    diagnostic_provider=types.DiagnosticOptions(
        inter_file_dependencies=False, workspace_diagnostics=False, identifier="lint"
    )
)


async def test_diagnostics_are_pulled_from_a_server_that_supports_it() -> None:
    async with linked(lsp.LanguageClient(), PULL_CAPABILITIES) as (client, server, _):
        known: list[str | None] = []

        @server.handle(lsp.TEXT_DOCUMENT_DIAGNOSTIC)
        def diagnose(
            params: types.DocumentDiagnosticParams,
        ) -> types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport:
            known.append(params.previous_result_id)
            if params.previous_result_id == "r1":
                return types.RelatedUnchangedDocumentDiagnosticReport("r1")
            return types.RelatedFullDocumentDiagnosticReport(report("a", "found").diagnostics, result_id="r1")

        async with client.open_document("file:///a.py", "x") as document:
            first, second = await document.diagnostics(), await document.diagnostics()
        assert [one.message for one in (*first, *second)] == ["found", "found"]
        assert known == [None, "r1"]


async def test_diagnostics_are_pulled_again_when_the_server_requests_it() -> None:
    async with linked(lsp.LanguageClient(), PULL_CAPABILITIES) as (client, server, _):
        again = iter([True, False])

        @server.handle(lsp.TEXT_DOCUMENT_DIAGNOSTIC)
        def diagnose() -> types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport:
            retrigger = next(again, None)
            if retrigger is not None:
                raise RpcError(-32802, "the project has changed", {"retriggerRequest": retrigger})
            return types.RelatedFullDocumentDiagnosticReport(report("a", "found").diagnostics)

        async with client.open_document("file:///a.py", "x") as document:
            with pytest.raises(RemoteError, match="the project has changed"):
                await document.diagnostics()
            assert [one.message for one in await document.diagnostics()] == ["found"]
