"""Provides LanguageClient: connects to a language server, initializes it and shuts it down.

`server_requests` handles requests of the server, `documents` owns open documents, `progress` decodes progress reports.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, Unpack, overload
from urllib.parse import unquote

import anyio
from lsprotocol import types

from becket._text import truncate
from becket.adapters.lsp import methods
from becket.adapters.lsp.client.documents import TextDocument, find_language, path_of, uri_of
from becket.adapters.lsp.client.server_requests import ServerRequestHandlers
from becket.adapters.lsp.client.subscriptions import AsyncOpener, Subscription
from becket.adapters.lsp.conversion import convert
from becket.adapters.lsp.dialect import LSP, LSP_LIMITS
from becket.adapters.lsp.progress import WorkProgress, add_tokens, create_token_counter, decode_work_done
from becket.errors import BadValue, BecketError, HandshakeFailed, LocalProtocolError
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import Stream
from becket.peer.context import Context
from becket.peer.peer import Peer, PeerConnector
from becket.peer.streams import CallStream

if TYPE_CHECKING:
    from becket.peer.options import CallOptions, PeerOptions, StreamOptions
    from becket.peer.protocols import ByteStream, Transport

__all__ = ["LanguageClient", "SupervisedServer"]

E = TypeVar("E")
P = TypeVar("P")
R = TypeVar("R")

SHUTDOWN_GRACE = 5.0  # seconds for the response to `shutdown`; some servers exit without one
MAX_DIAGNOSTIC_DOCUMENTS = 10_000  # documents whose diagnostics are kept; beyond this the oldest are removed


class ServerSupervisor(Protocol):
    """Starts and stops the processes of an extension; see `becket.host.supervisor`."""

    def add_initializer(self, arrangement: Callable[[Any], object]) -> None: ...

    def ready(self) -> Coroutine[Any, Any, Any]: ...

    def call(self, action: Callable[[Any], Awaitable[Any]]) -> Coroutine[Any, Any, Any]: ...


class SupervisedServer(Protocol):
    """An extension of a host across restarts, as returned by `await host.ready(id)`."""

    @property
    def supervisor(self) -> ServerSupervisor: ...


class LanguageClient(ServerRequestHandlers):
    """A client of one language server: `async with LanguageClient(root=".").connect_process(["pylsp"]) as client: ...`.

    `root` is the folder of the project. `settings` are the results of `workspace/configuration`, by section; `options`
    are sent with `initialize`. Requests of the server are handled by the methods of `ServerRequestHandlers`, which a
    subclass can override with plain functions or `async def`.

    `diagnostics` has the last published diagnostics by URI; `registrations` has the server's registrations by id."""

    def __init__(
        self,
        *,
        root: str | os.PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        options: Any = None,
        capabilities: types.ClientCapabilities | None = None,
        name: str = "becket",
        version: str | None = None,
    ) -> None:
        super().__init__(None if root is None else Path(root).absolute(), settings or {})
        self.options = options
        self.info = types.ClientInfo(name, version)
        self.capabilities = self.build_capabilities() if capabilities is None else capabilities
        self.server_capabilities = types.ServerCapabilities()
        self.diagnostics: dict[str, types.PublishDiagnosticsParams] = {}
        self._peer: Peer | None = None
        self._extension: SupervisedServer | None = None
        self._documents: dict[str, TextDocument] = {}
        self._tokens = create_token_counter()
        self._progress_subscriptions: set[Subscription[WorkProgress]] = set()
        self._diagnostics_subscriptions: set[Subscription[types.PublishDiagnosticsParams]] = set()
        self.methods.on(methods.PROGRESS, unless_streamed=True)(self._on_progress)  # a call's stream has its progress
        self.methods.on(methods.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(self._on_publish_diagnostics)

    # -- connecting

    def connect_process(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        **options: Unpack[PeerOptions],
    ) -> AsyncOpener[Self]:
        """Starts and initializes a server; leaving the block sends `shutdown` and `exit`, and ends its process.

        `cwd` defaults to the folder of the project; the other parameters are those of `Peer.connect_process`.

        Raises, when entered or awaited:
            StartFailed: the program cannot be started.
            RemoteError, CallTimeout, PeerCrashed, BadReply, HandshakeFailed: the handshake failed.
        """
        where = self.root if cwd is None else cwd

        def connect(peer_options: PeerOptions) -> PeerConnector:
            return Peer.connect_process(
                command, env=env, inherit_env=inherit_env, cwd=where, on_stderr=on_stderr, **peer_options
            )

        return self._build_opener(connect, options)

    def connect_tcp(self, host: str, port: int, **options: Unpack[PeerOptions]) -> AsyncOpener[Self]:
        """Connects to a server on a TCP port and initializes it."""
        return self._build_opener(lambda peer_options: Peer.connect_tcp(host, port, **peer_options), options)

    def connect_unix(self, path: str | os.PathLike[str], **options: Unpack[PeerOptions]) -> AsyncOpener[Self]:
        """Connects to a server on a unix socket and initializes it."""
        return self._build_opener(lambda peer_options: Peer.connect_unix(path, **peer_options), options)

    def over(self, transport: Transport | ByteStream, **options: Unpack[PeerOptions]) -> AsyncOpener[Self]:
        """Initializes a server at the other end of a transport or byte stream."""
        return self._build_opener(lambda peer_options: Peer.over(transport, **peer_options), options)

    def _build_opener(self, connect: Callable[[PeerOptions], PeerConnector], options: PeerOptions) -> AsyncOpener[Self]:
        handlers, registry = options.get("methods"), self.fallback_handlers().including(self.methods)
        complete: PeerOptions = {
            "dialect": LSP,
            **options,
            "methods": registry if handlers is None else registry.including(handlers),
        }

        async def open() -> Self:
            if self._peer is not None and not self._peer.is_closed:
                raise LocalProtocolError("this client is already connected: create another one")
            self._peer = peer = await connect(complete)
            try:
                await self.initialize(timeout=(options.get("limits") or LSP_LIMITS).handshake)
            except BaseException:
                await peer.aclose()
                raise
            return self

        return AsyncOpener(open, close_client)

    def follow(self, extension: SupervisedServer) -> None:
        """Uses the connection of a language server that is an extension of a host, across its restarts.

        Pass `methods=client.methods` to the host, so that the server's first request is handled. Open documents are
        opened again after a restart, and calls wait for it. The host stops the server.

        Raises:
            NotSupported: no host runs the extension, as after `connect_extension`. The client is unchanged.
        """
        supervisor = extension.supervisor
        self._extension = extension
        supervisor.add_initializer(self._on_restarted)

    def _on_restarted(self, copy: Any) -> None:
        """Switches to a new process. Errors are logged, because they must not fail the supervisor."""
        self._peer = copy.peer
        self.reset_for_peer(copy.peer)
        try:
            self.apply_initialize_result(convert(copy.extra, types.InitializeResult))
            self._send_settings()
            for document in self._documents.values():
                document.reopen()
        except BecketError as error:
            self.log(types.MessageType.Error, f"the client cannot follow the restarted server: {error}")

    async def initialize(self, *, timeout: float = LSP_LIMITS.handshake) -> types.InitializeResult:
        """Sends `initialize`, `initialized` and the settings. The `connect_*` methods do this already.

        Raises:
            HandshakeFailed: the server chose an unknown position encoding.
        """
        self.reset_for_peer(self.peer)
        for document in [*self._documents.values()]:
            document.mark_closed()
        result = await self.call(methods.INITIALIZE, self.build_initialize(), timeout=timeout)
        self.apply_initialize_result(result)
        await self.notify(methods.INITIALIZED, types.InitializedParams())
        self._send_settings()
        return result

    def reset_for_peer(self, peer: Peer) -> bool:
        """Clears the state of the previous server if this peer is a new one; returns whether it is."""
        is_another = super().reset_for_peer(peer)
        if is_another:
            self.diagnostics.clear()
        return is_another

    def apply_initialize_result(self, result: types.InitializeResult) -> None:
        """Stores the capabilities of a server."""
        chosen = result.capabilities.position_encoding
        if chosen is not None and chosen not in [*types.PositionEncodingKind]:
            raise HandshakeFailed(
                self.peer.name, f"it chose the position encoding {truncate(chosen)}, which was not offered"
            )
        self.server_capabilities = result.capabilities
        self.server_info = result.server_info

    def _send_settings(self) -> None:
        if self.settings:
            changed = types.DidChangeConfigurationParams(self.settings)
            self.peer.notify_nowait(methods.WORKSPACE_DID_CHANGE_CONFIGURATION, changed)

    async def aclose(self) -> None:
        """Sends `shutdown` and `exit`, then ends the server's process. May be called from any task, and repeatedly."""
        peer = self._peer
        if peer is None or self._extension is not None:
            return
        try:
            with anyio.move_on_after(SHUTDOWN_GRACE, shield=True):
                await self.shutdown()
        finally:
            await peer.aclose()

    async def shutdown(self) -> None:
        """Sends `shutdown` and `exit`; ignores errors, and waits at most `SHUTDOWN_GRACE`."""
        try:
            if not self.peer.is_closed:
                await self.call(methods.SHUTDOWN, timeout=SHUTDOWN_GRACE)
                await self.notify(methods.EXIT)
        except BecketError:
            pass

    # -- calls

    @property
    def peer(self) -> Peer:
        """The connection to the server.

        Raises:
            LocalProtocolError: the client is not connected yet.
        """
        if self._peer is None:
            raise LocalProtocolError("this client is not connected")
        return self._peer

    @property
    def is_restarting(self) -> bool:
        """Whether the followed extension is being restarted."""
        return self._extension is not None and self.peer.is_closed

    async def ready(self) -> None:
        """Waits until the followed extension is ready."""
        if self._extension is not None:
            await self._extension.supervisor.ready()

    @property
    def encoding(self) -> str:
        """The position encoding: `utf-16` unless the server chose another."""
        return self.server_capabilities.position_encoding or types.PositionEncodingKind.Utf16

    @overload
    def call(
        self, method: Method[None, R], params: None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, R]: ...

    @overload
    def call(self, method: Method[P, R], params: P, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, R]: ...

    def call(self, method: Any, params: Any = None, **options: Any) -> Coroutine[Any, Any, Any]:
        """Calls a method of the server and returns its result. The same as `client.peer.call`."""
        if self._extension is None:
            return self.peer.call(method, params, **options)
        return self._extension.supervisor.call(lambda copy: copy.peer.call(method, params, **options))

    def stream(self, method: Stream[P, R, E], params: P, **options: Unpack[StreamOptions]) -> CallStream[E, R]:
        """Opens a call with its progress and partial results as events.

        The tokens that request them are added to the params if they are missing."""
        return self.peer.stream(method, add_tokens(params, self._tokens), **options)

    @overload
    def notify(self, method: Notification[None], params: None = None) -> Coroutine[Any, Any, None]: ...

    @overload
    def notify(self, method: Notification[P], params: P) -> Coroutine[Any, Any, None]: ...

    def notify(self, method: Any, params: Any = None) -> Coroutine[Any, Any, None]:
        """Sends a notification to the server. The same as `client.peer.notify`."""
        return self.peer.notify(method, params)

    def open_document(
        self, path: str | Path, text: str | None = None, *, language: str | None = None
    ) -> AsyncOpener[TextDocument]:
        """Opens a document, given as a path (relative to the root) or a URI; `text` defaults to the file's content.

        `async with client.open_document("a.py") as document: ...` closes it again; so does `await document.close()`.

        Raises, when entered or awaited:
            OSError, UnicodeDecodeError: the file cannot be read.
            LocalProtocolError: the document is already open.
        """
        is_uri = isinstance(path, str) and "://" in path
        uri = str(path) if is_uri else uri_of((self.root or Path()) / path)

        async def open() -> TextDocument:
            content = await read_document(uri) if text is None else text
            document = TextDocument(self, uri, language or find_language(uri), content)
            if self._documents.setdefault(normalize_uri(uri), document) is not document:
                raise LocalProtocolError(f"document is already open: {uri}")
            await document.open()
            return document

        return AsyncOpener(open, TextDocument.close)

    def remove_document(self, document: TextDocument) -> None:
        """Removes a closed document."""
        if self._documents.get(normalize_uri(document.uri)) is document:
            del self._documents[normalize_uri(document.uri)]

    # -- events

    def progress(self) -> Subscription[WorkProgress]:
        """Returns progress of work that the server starts itself: `async with client.progress() as feed: ...`."""
        return Subscription(self._progress_subscriptions, lambda: self.peer)

    def published_diagnostics(self) -> Subscription[types.PublishDiagnosticsParams]:
        """Returns published diagnostics, for open and other documents."""
        return Subscription(self._diagnostics_subscriptions, lambda: self.peer)

    async def cancel_progress(self, token: int | str) -> None:
        """Cancels work that the server has started itself and reported as cancellable."""
        await self.notify(methods.WINDOW_WORK_DONE_PROGRESS_CANCEL, types.WorkDoneProgressCancelParams(token))

    # -- handshake

    def build_initialize(self) -> types.InitializeParams:
        """Returns the params of `initialize`."""
        root = None if self.root is None else uri_of(self.root)
        return types.InitializeParams(
            process_id=os.getpid(),
            client_info=self.info,
            root_uri=root,
            root_path=None if self.root is None else str(self.root),
            workspace_folders=None if self.root is None else [types.WorkspaceFolder(uri_of(self.root), self.root.name)],
            capabilities=self.capabilities,
            initialization_options=self.options,
        )

    # -- handlers

    def _on_progress(self, params: types.ProgressParams) -> None:
        try:
            value = decode_work_done(params.value)
        except BadValue:
            return
        if value is not None:  # else a partial result of a finished call
            for feed in self._progress_subscriptions:
                feed.put(WorkProgress(params.token, value))

    def _on_publish_diagnostics(self, params: types.PublishDiagnosticsParams, ctx: Context) -> None:
        self.reset_for_peer(ctx.peer)
        self.diagnostics.pop(params.uri, None)  # keeps the newest at the end
        self.diagnostics[params.uri] = params
        if len(self.diagnostics) > MAX_DIAGNOSTIC_DOCUMENTS:
            del self.diagnostics[next(iter(self.diagnostics))]
        document = self._documents.get(normalize_uri(params.uri))
        if document is not None:
            document.on_published(params)
        for feed in self._diagnostics_subscriptions:
            feed.put(params)


async def close_client(client: LanguageClient) -> None:
    await client.aclose()


async def read_document(uri: str) -> str:
    content = await anyio.Path(path_of(uri)).read_bytes()
    return content.decode()


def normalize_uri(uri: str) -> str:
    """Returns a URI without percent escapes, for comparison: servers escape different characters."""
    return unquote(uri)
