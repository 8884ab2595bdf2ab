"""Tracks one extension session with its host from initialize to shutdown.

Requests before `initialize` and during shutdown get the error "not ready". `on_start` and `on_stop` run once each. The
session does no I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from becket._loggers import extension_logger
from becket.contract.handshake import (
    FEATURES,
    INITIALIZE,
    PROTOCOL_VERSION,
    SHUTDOWN,
    DeclaredCapability,
    Initialize,
    Initialized,
)
from becket.contract.json_narrowing import is_object
from becket.errors import InvalidParams, Meaning, RpcError
from becket.extension.decorators import Declaration, is_async_def
from becket.extension.handlers import ExtensionHandlers, register_handler
from becket.extension.runtime_blocking import UserFunction
from becket.methods.descriptors import Method
from becket.methods.error_mapping import HANDLER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable

    from becket.contract.handshake import Capabilities, HostInfo
    from becket.dialects.dialect import Dialect
    from becket.dialects.mapping import ContractMapping
    from becket.extension.handlers import AsyncHandler
    from becket.extension.host_client import HostClient
    from becket.extension.mapping import SessionMapping
    from becket.extension.runtime import Runtime

__all__ = ["ExtensionDefinition", "ExtensionSession"]


class ExtensionDefinition(Struct, frozen=True, eq=False):
    """The declarations of an extension class."""

    declared: tuple[Declaration, ...]
    overridden: frozenset[str]
    is_blocking: bool
    """Whether it has no `async def`, and so needs no event loop."""


# States, each the text for a request at the wrong time.
NEW: Final = "the host has not sent `initialize` yet"
STARTING: Final = "it is starting"
READY: Final = "it has been initialized already"
STOPPING: Final = "it is ending"


class ExtensionSession:
    """The state of one link. The runtime gets its peer before the first byte is read."""

    def __init__(
        self,
        extension: Any,
        definition: ExtensionDefinition,
        runtime: Runtime,
        dialect: Dialect,
        on_stopping: Callable[[], None],
    ) -> None:
        self.runtime = runtime
        self.params: Initialize | None = None
        self.refusal_reason: str | None = None  # why this host cannot be served
        self._host: HostClient | None = None
        self._extension = extension
        self._definition = definition
        self._on_stopping = on_stopping
        self._state: str = NEW
        self._has_started = False
        self._handlers = ExtensionHandlers(
            extension, definition.declared, definition.overridden, runtime, self.check_ready
        )
        self._mapping = None if dialect.load_mapping is None else self._build_mapping(dialect.load_mapping())
        self.registry = self._handlers.registry if self._mapping is None else self._mapping.registry
        """The methods that the host may call."""
        self._register_lifecycle("on_start" in definition.overridden)
        self._shutdown = runtime.create_shutdown(self._run_on_stop) if "on_stop" in definition.overridden else None

    def _build_mapping(self, mapping: ContractMapping) -> SessionMapping:
        from becket.extension.mapping import SessionMapping

        state = self._handlers.build_link_state(self._capabilities())
        session_mapping = SessionMapping(mapping, state, self._handlers.registry)
        self.runtime.client_mapping = session_mapping.client
        return session_mapping

    def _register_lifecycle(self, has_on_start: bool) -> None:
        """Registers the handlers of `initialize`, `shutdown` and of queries that only the dialect has."""
        mapping = self._mapping
        # The params stay undecoded: the version is checked first, since another version may have other params.
        initialize: Method[Any, Any] = Method(
            INITIALIZE.name if mapping is None else mapping.initialize_method, Any, Any
        )
        register_handler(self.registry, self.runtime, initialize, self._initialize, thread=has_on_start)
        shutdown = SHUTDOWN if mapping is None else mapping.shutdown_method
        if shutdown is not None:
            register_handler(self.registry, self.runtime, shutdown, self._shut_down, thread=False)
        if mapping is None:
            return
        for name, query in mapping.queries():
            if name in self.registry:  # the author handles it
                continue
            is_early = name in mapping.early_queries
            register_handler(
                self.registry,
                self.runtime,
                Method(name, Any, Any),
                self._build_query_handler(query, is_early),
                thread=False,
            )

    def _build_query_handler(self, query: Callable[[Any], Any], is_early: bool) -> AsyncHandler:
        async def serve(params: Any, ctx: Any) -> Any:
            if not is_early:
                self.check_ready()
            return query(params)

        return serve

    def _capabilities(self) -> Capabilities:
        return self._handlers.capabilities(tuple[DeclaredCapability, ...](self._extension.capabilities))

    @property
    def host(self) -> HostClient:
        """The client of the host's methods."""
        if self._host is None:
            # At first use: many extensions call nothing of their host.
            from becket.extension.host_client import HostClient

            self._host = HostClient(self.runtime, self)
        return self._host

    @property
    def extension_id(self) -> str:
        """The id that the host uses for this extension; before `initialize`, the extension's own."""
        own: str = self._extension.id
        return own if self.params is None else self.params.plugin_id

    @property
    def host_info(self) -> HostInfo | None:
        """Name and version of the host, if it sent them."""
        return None if self.params is None else self.params.host

    def check_ready(self) -> None:
        """Raises the error for a request before `initialize` or during shutdown."""
        if self._state is not READY:
            raise self._build_not_ready_error()

    def _build_not_ready_error(self) -> RpcError:
        return RpcError(Meaning.NOT_READY, f"{self.extension_id} is not ready: {self._state}")

    # -- start

    async def _initialize(self, wire_params: Any, ctx: Any) -> Any:
        if self._state is not NEW:
            raise self._build_not_ready_error()
        params = (
            self._decode_initialize(wire_params)
            if self._mapping is None
            else self._decode_mapped_initialize(self._mapping, wire_params)
        )
        self._state = STARTING
        self.params = params
        self.runtime.peer.limit_features(params.features)
        try:
            await self._run_on_start()
        except BaseException:
            if self._state is STARTING:
                self._state = NEW  # the host may try again
            raise
        if self._state is not STARTING:
            raise self._build_not_ready_error()
        self._state = READY
        initialized = self._build_initialized(params)
        return initialized if self._mapping is None else self._mapping.encode_initialized(initialized)

    def _build_initialized(self, params: Initialize) -> Initialized:
        if not params.features:
            return Initialized(PROTOCOL_VERSION, self._capabilities())
        # An overridden `info` may take long or fail: the host calls `info.get` for it.
        info = None if "info" in self._definition.overridden else self._extension.info()
        declared = replace(self._capabilities(), hooks=self._handlers.subscriptions())
        own_id = "" if self._extension.id == params.plugin_id else self._extension.id
        return Initialized(PROTOCOL_VERSION, declared, FEATURES, info, own_id)

    def _decode_initialize(self, params: Any) -> Initialize:
        version = params.get("extension_protocol_version") if is_object(params) else None
        if isinstance(version, int) and version != PROTOCOL_VERSION:
            text = f"{self.extension_id} speaks version {PROTOCOL_VERSION} of the extension protocol, not {version}"
            raise RpcError(Meaning.INCOMPATIBLE, text, {"supported": [PROTOCOL_VERSION]})
        try:
            return msgspec.convert(params, Initialize)
        except msgspec.ValidationError as error:
            from becket.conversion.problems import find_problems

            raise InvalidParams(find_problems(params, Initialize)) from error

    def _decode_mapped_initialize(self, foreign: SessionMapping, params: Any) -> Initialize:
        """Decodes the handshake of another dialect. After an incompatible one, the link closes."""
        try:
            return foreign.decode_initialize(params)
        except RpcError as error:
            if error.meaning is Meaning.INCOMPATIBLE:  # after any other error the host may try again
                self.refusal_reason = error.message
                self.runtime.close_soon()
            raise

    async def _run_on_start(self) -> None:
        if "on_start" in self._definition.overridden:
            function = self._extension.on_start
            await self.runtime.run_function(UserFunction(function, is_async_def(function)))
        self._has_started = True

    # -- shutdown

    async def _shut_down(self, params: Any, ctx: Any) -> Any:
        if self._begin_stopping() and self._shutdown is not None:
            await self._shutdown.run_once_in_handler()
        self.runtime.close_soon()
        return None if self._mapping is None else self._mapping.shutdown_result

    async def stop(self) -> None:
        """Runs `on_stop` once; a second caller waits for the first."""
        if self._begin_stopping() and self._shutdown is not None:
            await self._shutdown.run_once()

    def _begin_stopping(self) -> bool:
        """Rejects further requests, and returns whether `on_start` has run."""
        if self._state is not STOPPING:
            self._state = STOPPING
            self._on_stopping()
        return self._has_started

    async def _run_on_stop(self) -> None:
        function = self._extension.on_stop
        try:
            await self.runtime.run_function(UserFunction(function, is_async_def(function)))
        except HANDLER_ERRORS as error:
            extension_logger(self.extension_id).error("on_stop failed", exc_info=error)
