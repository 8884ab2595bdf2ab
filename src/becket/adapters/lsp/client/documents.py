"""Tracks a text document that is open at a language server: text, version, diagnostics.

Whatever is done here is told to the server in the way that it has asked for; nothing here writes a file.
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

RETRY_DELAY = 0.1  # seconds until a server that has put off a question is asked it again

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
    """Returns LSP's name of the language that a file is written in, by the end of its name."""
    return LANGUAGE_BY_SUFFIX.get(Path(urlsplit(uri).path).suffix.lower(), "plaintext")


def uri_of(path: str | Path) -> str:
    """Returns a path as a URI; what is a URI already stays as it is."""
    return path if isinstance(path, str) and "://" in path else Path(path).absolute().as_uri()


def path_of(uri: str) -> Path:
    """Returns the path that a URI of a file stands for.

    Raises:
        ValueError: it is the URI of something else.
    """
    parts = urlsplit(uri)
    if parts.scheme != "file":
        raise ValueError(f"no file: {uri}")
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
    """One open document. Made by `LanguageClient.open_document`."""

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

    # -- its text

    @property
    def text(self) -> str:
        """The text as the server knows it."""
        return self._text.content

    @property
    def identifier(self) -> types.TextDocumentIdentifier:
        """What a request about this document names it by."""
        return types.TextDocumentIdentifier(self.uri)

    def position(self, offset: int) -> types.Position:
        """Returns the position of an index in the text, counted as the server counts."""
        return self._text.position(offset)

    def offset(self, position: types.Position) -> int:
        """Returns the index in the text of a position."""
        return self._text.offset(position)

    def range(self, start: int = 0, end: int | None = None) -> types.Range:
        """Returns the range between two indexes; of the whole text, if none are given."""
        return self._text.range(start, len(self.text) if end is None else end)

    def slice(self, range: types.Range) -> str:
        """Returns the text in a range."""
        return self._text.slice(range)

    # -- its life

    async def open(self) -> None:
        """Tells the server of the document."""
        self.is_open = True
        try:
            self.reopen()
        except BaseException:
            self.mark_closed()
            raise
        await self._client.peer.drain()

    def reopen(self) -> None:
        """Tells another server of the document, as it is now."""
        self._text = LineIndex(self.text, self._client.encoding)
        self._pulled_report = (None, ())
        self._published = None
        if self._sync().open_close:
            item = types.TextDocumentItem(self.uri, self.language, self.version, self.text)
            self._client.peer.notify_nowait(methods.TEXT_DOCUMENT_DID_OPEN, types.DidOpenTextDocumentParams(item))

    async def change(self, text: str) -> None:
        """Replaces the text; the server gets what is different, or all of it where it cannot do with less."""
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
        """Makes edits in the text, as a server returns them for formatting or a code action.

        Raises:
            ValueError: two of them overlap.
        """
        await self.change(apply_edits(self.text, edits, self._client.encoding))

    async def save(self) -> None:
        """Tells the server that the document was written to its file, if it wants to know that."""
        save = self._sync().save
        if not save:
            return
        wants_text = isinstance(save, types.SaveOptions) and bool(save.include_text)
        params = types.DidSaveTextDocumentParams(self.identifier, self.text if wants_text else None)
        await self._notify(methods.TEXT_DOCUMENT_DID_SAVE, params)

    async def close(self) -> None:
        """Tells the server that the document is no longer open. Twice is once."""
        if not self.is_open:
            return
        self.mark_closed()
        if self._sync().open_close and not self._client.peer.is_closed:
            await self._client.notify(
                methods.TEXT_DOCUMENT_DID_CLOSE, types.DidCloseTextDocumentParams(self.identifier)
            )

    def mark_closed(self) -> None:
        """Takes note that no server has it open, without telling one."""
        self.is_open = False
        self._client.remove_document(self)

    async def _notify(self, notification: Notification[P], params: P) -> None:
        """Tells the server. Where a copy of it is gone, the next one gets the document as it is then."""
        if not self._client.is_restarting:
            await self._client.notify(notification, params)

    def _sync(self) -> types.TextDocumentSyncOptions:
        wish = self._client.server_capabilities.text_document_sync
        if isinstance(wish, types.TextDocumentSyncOptions):
            return wish
        kind = types.TextDocumentSyncKind.None_ if wish is None else read_sync_kind(wish)
        is_told = kind is not types.TextDocumentSyncKind.None_
        return types.TextDocumentSyncOptions(open_close=is_told, change=kind, save=is_told)

    # -- what is wrong with it

    async def diagnostics(self, *, quiet: float = 0.0, timeout: float = 60.0) -> Sequence[types.Diagnostic]:
        """Returns what the server finds in the text as it is now.

        A server that can be asked is asked. Of any other it is the first that it publishes after the last change; some
        publish piece by piece, and then it is the last before it was `quiet` for so many seconds.

        Raises:
            CallTimeout: nothing came in so many seconds: some servers publish nothing where they find nothing.
            RemoteError, ConnectionLost: as for any call.
        """
        await self._client.ready()
        if self._client.server_capabilities.diagnostic_provider is not None:
            return await self._pull(timeout)
        with anyio.move_on_after(timeout):
            return (await self._wait_for_published(quiet)).diagnostics
        raise CallTimeout(methods.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS.name, timeout)

    async def _wait_for_published(self, quiet: float) -> types.PublishDiagnosticsParams:
        """Returns what was published last about the text; it may be changed again meanwhile."""
        while True:
            while (found := self._published) is None:
                await self._published_condition.wait(self._client.peer)
            with anyio.move_on_after(quiet):
                await self._published_condition.wait(self._client.peer)
            if self._published is found:
                return found

    def on_published(self, published: types.PublishDiagnosticsParams) -> None:
        """Takes what the server has published; what it found in an older text is of no use any more."""
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
    """Returns whether a server that was asked for diagnostics has only put it off: it wants to be asked again."""
    data = error.data
    is_put_off = error.code == types.LSPErrorCodes.ServerCancelled
    return is_put_off and is_object(data) and data.get("retriggerRequest") is True


def read_sync_kind(number: int) -> types.TextDocumentSyncKind:
    """Returns how the server wants changes; one that names an unknown kind gets the whole text, which any can read."""
    try:
        return types.TextDocumentSyncKind(number)
    except ValueError:
        return types.TextDocumentSyncKind.Full
