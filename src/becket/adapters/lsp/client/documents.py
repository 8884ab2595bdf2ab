"""Tracks a text document that is open at a language server: text, version, diagnostics.

Changes are sent to the server in the form that it has requested. Nothing here writes a file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
from lsprotocol import types

from becket.adapters.lsp import methods
from becket.adapters.lsp.client.subscriptions import PeerCondition
from becket.adapters.lsp.positions import LineIndex, apply_edits, compute_change
from becket.contract.json_narrowing import is_object
from becket.errors import CallTimeout, RemoteError
from becket.methods.descriptors import Notification

if TYPE_CHECKING:
    from becket.peer.peer import Peer

__all__ = ["TextDocument", "find_language", "path_of", "uri_of"]

P = TypeVar("P")

RETRY_DELAY = 0.1  # seconds until a request that the server has cancelled is repeated

LANGUAGE_BY_SUFFIX = {
    ".c": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".css": "css",
    ".go": "go",
    ".h": "c",
    ".hpp": "cpp",
    ".html": "html",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".jsx": "javascriptreact",
    ".lua": "lua",
    ".md": "markdown",
    ".php": "php",
    ".pl": "perl",
    ".py": "python",
    ".pyi": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".sh": "shellscript",
    ".sql": "sql",
    ".swift": "swift",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
}


def find_language(uri: str) -> str:
    """Returns LSP's language id for the suffix of a file."""
    return LANGUAGE_BY_SUFFIX.get(Path(urlsplit(uri).path).suffix.lower(), "plaintext")


def uri_of(path: str | Path) -> str:
    """Returns a path as a URI; returns a URI unchanged."""
    return path if isinstance(path, str) and "://" in path else Path(path).absolute().as_uri()


def path_of(uri: str) -> Path:
    """Returns the path of a `file:` URI.

    Raises:
        ValueError: it has another scheme.
    """
    parts = urlsplit(uri)
    if parts.scheme != "file":
        raise ValueError(f"not a file: URI: {uri}")
    return Path(unquote(parts.path))


class DocumentClient(Protocol):
    """What a document uses of its `LanguageClient`."""

    server_capabilities: types.ServerCapabilities

    @property
    def peer(self) -> Peer: ...
    @property
    def encoding(self) -> str: ...
    @property
    def is_restarting(self) -> bool: ...
    async def ready(self) -> None: ...
    def call(self, method: Any, params: Any, *, timeout: float) -> Awaitable[Any]: ...
    def notify(self, method: Notification[P], params: P) -> Awaitable[None]: ...
    def remove_document(self, document: TextDocument) -> None: ...


class TextDocument:
    """One open document. Created by `LanguageClient.open_document`."""

    def __init__(self, client: DocumentClient, uri: str, language: str, text: str) -> None:
        self.uri = uri
        self.language = language
        self.version = 1
        self.is_open = False
        self._client = client
        self._text = LineIndex(text, client.encoding)
        self._published: types.PublishDiagnosticsParams | None = None
        self._published_condition = PeerCondition()
        self._pulled_report: tuple[str | None, Sequence[types.Diagnostic]] = (None, ())

    # -- text

    @property
    def text(self) -> str:
        """The text that was last sent to the server."""
        return self._text.content

    @property
    def identifier(self) -> types.TextDocumentIdentifier:
        """The identifier of this document for requests."""
        return types.TextDocumentIdentifier(self.uri)

    def position(self, offset: int) -> types.Position:
        """Returns the position of an index in the text, in the server's encoding."""
        return self._text.position(offset)

    def offset(self, position: types.Position) -> int:
        """Returns the index in the text of a position."""
        return self._text.offset(position)

    def range(self, start: int = 0, end: int | None = None) -> types.Range:
        """Returns the range between two indexes, by default of the whole text."""
        return self._text.range(start, len(self.text) if end is None else end)

    def slice(self, range: types.Range) -> str:
        """Returns the text in a range."""
        return self._text.slice(range)

    # -- lifecycle

    async def open(self) -> None:
        """Opens the document at the server."""
        self.is_open = True
        try:
            self.reopen()
        except BaseException:
            self.mark_closed()
            raise
        await self._client.peer.drain()

    def reopen(self) -> None:
        """Opens the document at a restarted server with its current text."""
        self._text = LineIndex(self.text, self._client.encoding)
        self._pulled_report = (None, ())
        self._published = None
        if self._sync().open_close:
            item = types.TextDocumentItem(self.uri, self.language, self.version, self.text)
            self._client.peer.notify_nowait(methods.TEXT_DOCUMENT_DID_OPEN, types.DidOpenTextDocumentParams(item))

    async def change(self, text: str) -> None:
        """Replaces the text; sends the difference, or the whole text if the server does not support differences."""
        before, self._text = self.text, LineIndex(text, self._client.encoding)
        self.version += 1
        self._published = None
        match self._sync().change:
            case types.TextDocumentSyncKind.Incremental:
                change: types.TextDocumentContentChangeEvent = compute_change(before, text, self._client.encoding)
            case types.TextDocumentSyncKind.Full:
                change = types.TextDocumentContentChangeWholeDocument(text)
            case _:
                return
        known = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        await self._notify(methods.TEXT_DOCUMENT_DID_CHANGE, types.DidChangeTextDocumentParams(known, [change]))

    async def apply(self, edits: Iterable[Any]) -> None:
        """Applies edits, such as a server returns for formatting or a code action.

        Raises:
            ValueError: edits overlap.
        """
        await self.change(apply_edits(self.text, edits, self._client.encoding))

    async def save(self) -> None:
        """Notifies the server that the document was saved, if it has requested that."""
        save = self._sync().save
        if not save:
            return
        with_text = isinstance(save, types.SaveOptions) and bool(save.include_text)
        params = types.DidSaveTextDocumentParams(self.identifier, self.text if with_text else None)
        await self._notify(methods.TEXT_DOCUMENT_DID_SAVE, params)

    async def close(self) -> None:
        """Closes the document at the server. May be called repeatedly."""
        if not self.is_open:
            return
        self.mark_closed()
        if self._sync().open_close and not self._client.peer.is_closed:
            await self._client.notify(
                methods.TEXT_DOCUMENT_DID_CLOSE, types.DidCloseTextDocumentParams(self.identifier)
            )

    def mark_closed(self) -> None:
        """Marks the document as closed without notifying the server."""
        self.is_open = False
        self._client.remove_document(self)

    async def _notify(self, notification: Notification[P], params: P) -> None:
        """Notifies the server, unless it is being restarted: then `reopen` sends the whole document."""
        if not self._client.is_restarting:
            await self._client.notify(notification, params)

    def _sync(self) -> types.TextDocumentSyncOptions:
        sync = self._client.server_capabilities.text_document_sync
        if isinstance(sync, types.TextDocumentSyncOptions):
            return sync
        kind = types.TextDocumentSyncKind.None_ if sync is None else read_sync_kind(sync)
        is_synced = kind is not types.TextDocumentSyncKind.None_
        return types.TextDocumentSyncOptions(open_close=is_synced, change=kind, save=is_synced)

    # -- diagnostics

    async def diagnostics(self, *, quiet: float = 0.0, timeout: float = 60.0) -> Sequence[types.Diagnostic]:
        """Returns the diagnostics of the current text.

        They are requested if the server supports that. Otherwise they are the first that it publishes after the last
        change; for servers that publish in parts, the last before `quiet` seconds without another.

        Raises:
            CallTimeout: nothing was published in time; some servers publish nothing if they find nothing.
            RemoteError, ConnectionLost: as for any call.
        """
        await self._client.ready()
        if self._client.server_capabilities.diagnostic_provider is not None:
            return await self._pull(timeout)
        with anyio.move_on_after(timeout):
            return (await self._wait_for_published(quiet)).diagnostics
        raise CallTimeout(methods.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS.name, timeout)

    async def _wait_for_published(self, quiet: float) -> types.PublishDiagnosticsParams:
        """Returns the last published diagnostics of the text, which may change meanwhile."""
        while True:
            while (found := self._published) is None:
                await self._published_condition.wait(self._client.peer)
            with anyio.move_on_after(quiet):
                await self._published_condition.wait(self._client.peer)
            if self._published is found:
                return found

    def on_published(self, published: types.PublishDiagnosticsParams) -> None:
        """Stores published diagnostics; ignores those of an older version."""
        if published.version is None or published.version >= self.version:
            self._published = published
            self._published_condition.notify_all()

    async def _pull(self, timeout: float) -> Sequence[types.Diagnostic]:
        provider: Any = self._client.server_capabilities.diagnostic_provider
        known, found = self._pulled_report
        params = types.DocumentDiagnosticParams(
            self.identifier, identifier=provider.identifier, previous_result_id=known
        )
        deadline = anyio.current_time() + timeout
        while True:
            left = max(0.0, deadline - anyio.current_time())
            try:
                report = await self._client.call(methods.TEXT_DOCUMENT_DIAGNOSTIC, params, timeout=left)
                break
            except RemoteError as error:
                if not should_retry(error):
                    raise
            await anyio.sleep(RETRY_DELAY)
        if isinstance(report, types.RelatedFullDocumentDiagnosticReport):
            found = report.items
        self._pulled_report = (report.result_id, found)
        return found


def should_retry(error: RemoteError) -> bool:
    """Returns whether the server has cancelled a request for diagnostics and requests a retry."""
    data = error.data
    is_cancelled = error.code == types.LSPErrorCodes.ServerCancelled
    return is_cancelled and is_object(data) and data.get("retriggerRequest") is True


def read_sync_kind(number: int) -> types.TextDocumentSyncKind:
    """Returns the sync kind of a server; `Full` for an unknown number, because every server can handle that."""
    try:
        return types.TextDocumentSyncKind(number)
    except ValueError:
        return types.TextDocumentSyncKind.Full
