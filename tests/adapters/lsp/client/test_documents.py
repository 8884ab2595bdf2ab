"""Documents are synchronised in the way that the server has announced."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from lsprotocol import types
from tests.adapters.lsp.pairs import linked

from becket.adapters import lsp
from becket.adapters.lsp.client.documents import find_language
from becket.errors import LocalProtocolError, Unencodable
from becket.limits import DEFAULT_LIMITS

pytestmark = pytest.mark.loops


def sync_capabilities(
    kind: types.TextDocumentSyncKind, save: bool | types.SaveOptions = False
) -> types.ServerCapabilities:
    return types.ServerCapabilities(
        text_document_sync=types.TextDocumentSyncOptions(open_close=True, change=kind, save=save)
    )


async def test_a_file_is_read_opened_and_closed(tmp_path: Path) -> None:
    (tmp_path / "a b.py").write_bytes("x = 'ä'\r\n".encode())
    client = lsp.LanguageClient(root=tmp_path)
    async with linked(client, sync_capabilities(types.TextDocumentSyncKind.Full)) as (_, _, received):
        async with client.open_document("a b.py") as document:
            assert (document.text, document.language, document.version) == ("x = 'ä'\r\n", "python", 1)
        await client.call(lsp.SHUTDOWN)
    (opened,) = received.opened
    assert opened.text_document.text == "x = 'ä'\r\n"
    assert lsp.path_of(opened.text_document.uri) == tmp_path / "a b.py"
    assert f"closed {document.uri}" in received.words


async def test_a_document_may_be_larger_than_the_default_queue_limit() -> None:
    text = "x" * (DEFAULT_LIMITS.send_queue + 1)
    async with linked(lsp.LanguageClient(), sync_capabilities(types.TextDocumentSyncKind.Full)) as (
        client,
        _,
        received,
    ):
        async with client.open_document("file:///a.py", text):
            await client.call(lsp.SHUTDOWN)
        assert received.opened[0].text_document.text == text


async def test_a_server_that_names_an_unknown_kind_of_changes_gets_the_whole_text() -> None:
    unknown = types.ServerCapabilities(text_document_sync=cast("Any", 9))
    async with linked(lsp.LanguageClient(), unknown) as (client, _, received):
        async with client.open_document("file:///a.py", "one") as document:
            await document.change("two")
            await client.call(lsp.SHUTDOWN)
        assert received.opened[0].text_document.text == "one"
        assert [*received.changes[0].content_changes] == [types.TextDocumentContentChangeWholeDocument("two")]


async def test_a_document_is_open_once() -> None:
    async with linked(lsp.LanguageClient(), sync_capabilities(types.TextDocumentSyncKind.Full)) as (
        client,
        _,
        received,
    ):
        async with client.open_document("file:///a%20b.py", "one"):
            with pytest.raises(LocalProtocolError, match="already open"):
                await client.open_document("file:///a b.py", "two")
        async with client.open_document("file:///a b.py", "three"):
            await client.call(lsp.SHUTDOWN)
        assert [opened.text_document.text for opened in received.opened] == ["one", "three"]


async def test_a_document_that_could_not_be_opened_can_be_opened_again() -> None:
    async with linked(lsp.LanguageClient(), sync_capabilities(types.TextDocumentSyncKind.Full)) as (
        client,
        _,
        received,
    ):
        with pytest.raises(Unencodable):
            await client.open_document("file:///a.py", "\ud800")
        async with client.open_document("file:///a.py", "one"):
            await client.call(lsp.SHUTDOWN)
        assert len(received.opened) == 1


async def test_the_open_documents_are_not_carried_over_to_the_next_server() -> None:
    client = lsp.LanguageClient()
    async with linked(client, sync_capabilities(types.TextDocumentSyncKind.Full)):
        left_open = await client.open_document("file:///a.py", "one")
    async with linked(client, sync_capabilities(types.TextDocumentSyncKind.Full)) as (_, _, received):
        assert not left_open.is_open
        async with client.open_document("file:///a.py", "two"):
            await left_open.close()
            await client.call(lsp.SHUTDOWN)
            assert received.words == ["initialize", "initialized", "shutdown"]


async def test_a_file_that_is_not_there_is_not_opened(tmp_path: Path) -> None:
    async with linked(lsp.LanguageClient(root=tmp_path)) as (client, _, received):
        with pytest.raises(FileNotFoundError):
            await client.open_document("none.py")
        assert received.opened == []


async def test_a_server_with_incremental_sync_gets_the_differences() -> None:
    async with linked(lsp.LanguageClient(), sync_capabilities(types.TextDocumentSyncKind.Incremental)) as (
        client,
        _,
        received,
    ):
        async with client.open_document("file:///a.py", "one\ntwo", language="other") as document:
            await document.change("one\n2")
            await client.call(lsp.SHUTDOWN)
        (change,) = received.changes
        assert change.text_document == types.VersionedTextDocumentIdentifier(2, "file:///a.py")
        place = types.Range(types.Position(1, 0), types.Position(1, 3))
        assert change.content_changes == (types.TextDocumentContentChangePartial(place, "2"),)
        assert received.opened[0].text_document.language_id == "other"


async def test_a_server_with_full_sync_gets_the_whole_text() -> None:
    async with linked(lsp.LanguageClient(), sync_capabilities(types.TextDocumentSyncKind.Full)) as (
        client,
        _,
        received,
    ):
        async with client.open_document("file:///a.py", "one") as document:
            await document.change("two")
            await client.call(lsp.SHUTDOWN)
        assert received.changes[0].content_changes == (types.TextDocumentContentChangeWholeDocument("two"),)


@pytest.mark.parametrize("kind", [None, types.TextDocumentSyncKind.None_])
async def test_a_server_without_document_sync_gets_no_notifications(kind: types.TextDocumentSyncKind | None) -> None:
    async with linked(lsp.LanguageClient(), types.ServerCapabilities(text_document_sync=kind)) as (client, _, received):
        async with client.open_document("file:///a.py", "one") as document:
            await document.change("two")
            await document.save()
        await client.call(lsp.SHUTDOWN)
        assert (received.opened, received.changes, received.saved) == ([], [], [])
        assert not any(word.startswith("closed") for word in received.words)


async def test_a_sync_kind_alone_enables_open_save_and_change() -> None:
    capabilities = types.ServerCapabilities(text_document_sync=types.TextDocumentSyncKind.Full)
    async with linked(lsp.LanguageClient(), capabilities) as (client, _, received):
        async with client.open_document("file:///a.py", "one") as document:
            await document.save()
            await client.call(lsp.SHUTDOWN)
        assert [saved.text for saved in received.saved] == [None]
        assert len(received.opened) == 1


async def test_a_server_may_request_the_text_with_every_save() -> None:
    intent = sync_capabilities(types.TextDocumentSyncKind.Full, types.SaveOptions(include_text=True))
    async with linked(lsp.LanguageClient(), intent) as (client, _, received):
        async with client.open_document("file:///a.py", "one") as document:
            await document.save()
            await client.call(lsp.SHUTDOWN)
        assert [saved.text for saved in received.saved] == ["one"]


async def test_edits_of_a_server_are_made_in_the_text() -> None:
    async with linked(lsp.LanguageClient()) as (client, _, _):
        document = await client.open_document("file:///a.py", "a\U0001d4b3c")
        await document.apply([types.TextEdit(document.range(2, 3), "!")])
        assert document.text == "a\U0001d4b3!"
        await document.close()
        await document.close()


async def test_positions_are_counted_as_the_server_chose() -> None:
    for encoding, character in ((types.PositionEncodingKind.Utf32, 2), (None, 3)):
        capabilities = types.ServerCapabilities(position_encoding=encoding)
        async with (
            linked(lsp.LanguageClient(), capabilities) as (client, _, _),
            client.open_document("file:///a.py", "a\U0001d4b3c") as document,
        ):
            assert document.position(2) == types.Position(0, character)
            assert document.offset(types.Position(0, character)) == 2
            assert document.slice(document.range()) == document.text
            assert document.identifier.uri == "file:///a.py"


def test_the_language_is_derived_from_the_end_of_the_file_name() -> None:
    assert [find_language(uri) for uri in ("file:///A.PY", "file:///b.tsx?x=.py", "untitled:x")] == [
        "python",
        "typescriptreact",
        "plaintext",
    ]


def test_paths_and_uris_are_equivalent(tmp_path: Path) -> None:
    assert lsp.path_of(lsp.uri_of(tmp_path / "ä b")) == tmp_path / "ä b"
    assert lsp.uri_of("untitled://x") == "untitled://x"
    with pytest.raises(ValueError, match="not a file"):
        lsp.path_of("http://x/y")
