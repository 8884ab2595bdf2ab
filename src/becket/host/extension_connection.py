"""`ExtensionConnection`: one connected process of an extension, with its declarations and its shutdown.

`extension` calls it, `starting.connect` starts it, and the supervisor replaces it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from msgspec.structs import replace

from becket.contract.handshake import Capabilities
from becket.contract.hooks import HookSubscription
from becket.contract.names import strip_whitespace
from becket.contract.tools import Tool
from becket.dialects.handshake import HandshakeResult
from becket.errors import BecketError, NotDeclared, NotRunning, NotSupported
from becket.host.lifecycle import ExtensionState, Health
from becket.host.serving.audited_gate import AuditSink
from becket.host.serving.client import ContractClient
from becket.host.serving.revocation import RevocableCalls
from becket.host.serving.streams import ExtensionNotifications, ExtensionStreams
from becket.host.serving.tool_inputs import ToolInputSchemas
from becket.host.timeouts import Timeouts
from becket.limits import Limits
from becket.permissions.gate import Gate

if TYPE_CHECKING:
    from becket.peer.peer import Peer

__all__ = ["ExtensionConnection", "SingleConnection"]

T = TypeVar("T")


class ExtensionConnection:
    """A process of an extension after its handshake. `peer` is the link to it."""

    def __init__(
        self,
        client: ContractClient,
        gate: Gate,
        handshake: HandshakeResult,
        *,
        revocable_calls: RevocableCalls,
        streams: ExtensionStreams,
        notifications: ExtensionNotifications,
        tool_inputs: ToolInputSchemas,
        timeouts: Timeouts,
        limits: Limits,
        audit: AuditSink | None,
        root: str | None = None,
        environment: Mapping[str, str] | None = None,
        cleanups: tuple[Callable[[], object], ...] = (),
        on_end: Callable[[], object] | None = None,
    ) -> None:
        self.id = gate.extension
        self.peer: Peer = client.peer
        self.client = client
        self.gate = gate
        self.handshake = handshake
        self.revocable_calls = revocable_calls
        self.streams = streams
        self.notifications = notifications
        self.tool_inputs = tool_inputs
        self.timeouts = timeouts
        self.limits = limits
        self.audit = audit
        self.root = root
        self.environment = environment or {}
        self._cleanups = cleanups
        self._on_end = on_end
        self._index_tools()

    def _index_tools(self) -> None:
        self._tools = {strip_whitespace(tool.name): tool for tool in self.tools}

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self.handshake.capabilities.tools

    @property
    def features(self) -> frozenset[str]:
        return self.peer.features

    @property
    def extra(self) -> Any:
        return self.client.link_state.extra

    @property
    def subscriptions(self) -> tuple[HookSubscription, ...]:
        """The hooks that it has announced, with their matches."""
        announced = self.handshake.capabilities.hooks
        return announced or tuple(HookSubscription(kind) for kind in self.handshake.hooks)

    def find_tool(self, name: str) -> Tool:
        """Returns the tool of this name. Raises NotDeclared if there is none."""
        tool = self._tools.get(name)
        if tool is None:
            raise NotDeclared(self.id, "tool", name, [*self._tools])
        return tool

    def replace_tools(self, declared: Capabilities, inputs: ToolInputSchemas) -> None:
        """Replaces its tools: it has reported a change."""
        self.handshake = replace(self.handshake, capabilities=declared)
        self.tool_inputs = inputs
        self._index_tools()
        self.client.link_state.capabilities = declared

    async def shutdown(self, reason: str = "") -> None:
        """Requests the extension to end, waits a moment, and ends its process. From any task, and twice.

        The reason is sent if the dialect has a field for it."""
        self.client.link_state.shutdown_reason = reason
        try:
            await self.client.request_shutdown(self.timeouts.shutdown)
        finally:
            await self.aclose()

    async def aclose(self, because: str = "") -> None:
        """Ends the link and its process, without a request. Pending calls fail with the reason."""
        for cleanup in self._cleanups:
            cleanup()
        try:
            await self.peer.aclose(because)
        finally:
            if self._on_end is not None:
                self._on_end()


class SingleConnection:
    """The only connection of an unsupervised handle, opened by `connect_extension`."""

    restarts_on_errors = False
    resends_hooks = False
    restarts = 0

    def __init__(self, connection: ExtensionConnection) -> None:
        self.id = connection.id
        self._connection = connection

    @property
    def supervisor(self) -> NoReturn:
        raise NotSupported("a supervisor", f"{self.id} was connected without a host, which would restart it")

    @property
    def state(self) -> ExtensionState:
        return ExtensionState.STOPPED if self._connection.peer.is_closed else ExtensionState.READY

    def health(self) -> Health:
        return Health.LOADED if self._connection.peer.is_closed else Health.RUNNING

    def current(self) -> ExtensionConnection:
        return self._connection

    async def call(self, action: Callable[[ExtensionConnection], Awaitable[T]], *, repeat: bool = False) -> T:
        return await action(self._connection)

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[ExtensionConnection, None]:
        yield self._connection

    async def replace_failed(self, connection: ExtensionConnection | None, error: BecketError) -> bool:
        return False

    def add_initializer(self, initialize: Callable[[ExtensionConnection], object]) -> None:
        initialize(self._connection)

    async def start(self) -> ExtensionConnection:
        if self._connection.peer.is_closed:
            raise NotRunning(self.id, self.state, "connect it again")
        return self._connection

    async def reload(self) -> None:
        raise NotSupported("a reload", f"{self.id} was connected without a host: connect it again")

    async def stop(self, reason: str = "") -> None:
        await self._connection.shutdown(reason)

    async def aclose(self, because: str = "") -> None:
        await self._connection.aclose(because)
