"""Maps an extension's session and its calls to the host onto a foreign dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.handshake import Initialize, Initialized
from becket.dialects.link_state import LinkState, WireNotification
from becket.dialects.mapping import ContractMapping, identity
from becket.errors import NotSupported
from becket.methods.descriptors import Method, Notification
from becket.methods.registry import Registry
from becket.peer.dialect_handlers import map_handlers

__all__ = ["HostCallMapping", "MappedRequest", "SessionMapping"]

CONTRACT_METHODS = frozenset(method.name for method in METHODS)
CONTRACT_NOTIFICATIONS = frozenset(notification.name for notification in NOTIFICATIONS)


class SessionMapping:
    """The mapping of a dialect, bound to one session."""

    def __init__(self, mapping: ContractMapping, state: LinkState, methods: Registry) -> None:
        self._mapping = mapping
        self._link_state = state
        self.client = HostCallMapping(mapping, state)
        self.registry = map_handlers(methods, mapping, state)
        self.early_queries = mapping.server_handshake.allowed_before_initialize
        self.initialize_method = mapping.server_handshake.initialize_method.name
        self.shutdown_result = mapping.server_handshake.shutdown_result

    @property
    def shutdown_method(self) -> Method[Any, Any] | None:
        """The request that ends the extension, with any params."""
        if self._mapping.encode_shutdown is None:
            return None
        return Method(self._mapping.encode_shutdown(self._link_state).method.name, Any, Any)

    def queries(self) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """Yields the dialect's further queries about the extension, each with its handler."""
        for name, handler in self._mapping.server_handshake.handlers.items():
            yield name, partial(self._run_query, handler)

    def _run_query(self, handler: Callable[[Any, LinkState], Any], params: Any) -> Any:
        return handler(params, self._link_state)

    def decode_initialize(self, params: Any) -> Initialize:
        """Returns the host's handshake as the contract's `Initialize`, without features."""
        return self._mapping.server_handshake.decode_params(params, self._link_state)

    def encode_initialized(self, initialized: Initialized) -> Any:
        """Returns the response to the handshake."""
        self._link_state.capabilities = initialized.capabilities
        return self._mapping.server_handshake.encode_result(initialized, self._link_state)


class MappedRequest(Struct, frozen=True, eq=False):
    """A request in the dialect, and the decoder of its result."""

    method: Any
    params: Any
    decode_result: Callable[[Any], Any]


class HostCallMapping:
    """Maps calls to the host. Methods outside of the contract are sent unchanged."""

    def __init__(self, mapping: ContractMapping, state: LinkState) -> None:
        self._mapping = mapping
        self._link_state = state

    def map_request(self, method: str | Method[Any, Any], params: Any) -> MappedRequest:
        """Returns a request of the contract in this dialect.

        Raises:
            NotSupported: the dialect has no such request.
        """
        name = method if isinstance(method, str) else method.name
        if name not in CONTRACT_METHODS:
            if self._mapping.check_call is not None:
                self._mapping.check_call(name, self._link_state)
            return MappedRequest(method, params, identity)
        mapping, state = self._mapping.get_method(name), self._link_state
        request = mapping.encode_request(params, state)
        return MappedRequest(
            request.method, request.params, lambda result: mapping.decode_result(result, request, state)
        )

    def can_notify(self, notification: Notification[Any]) -> bool:
        """Returns whether the dialect has this notification."""
        return notification.name in self._mapping.notifications

    def map_notification(self, method: str | Notification[Any], params: Any) -> WireNotification | None:
        """Returns a notification of the contract in this dialect, or None if it is not to be sent.

        Raises:
            NotSupported: the dialect has no such notification.
        """
        name = method if isinstance(method, str) else method.name
        if name not in CONTRACT_NOTIFICATIONS:
            return WireNotification(name, params)
        notification = self._mapping.notifications.get(name)
        if notification is None:
            raise NotSupported(f"`{name}`", f"the dialect `{self._mapping.dialect}` does not define it")
        return notification.encode(params, self._link_state)
