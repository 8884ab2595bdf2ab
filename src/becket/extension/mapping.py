"""Maps an extension's session and its calls to the host onto a foreign dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.handshake import Initialize, Initialized
from becket.dialects.mapping import ContractMapping, LinkState, WireNotification, identity
from becket.errors import NotSupported
from becket.methods.descriptors import Method, Notification
from becket.methods.registry import Registry
from becket.peer.dialect_handlers import map_handlers

__all__ = ["HostCallMapping", "MappedRequest", "SessionMapping"]

CONTRACT_METHODS = frozenset(method.name for method in METHODS)
CONTRACT_NOTIFICATIONS = frozenset(notification.name for notification in NOTIFICATIONS)


class SessionMapping:
    """All that a session needs to know of a dialect with words of its own for the contract."""

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
        """The request that ends the extension, whatever its params."""
        if self._mapping.encode_shutdown is None:
            return None
        return Method(self._mapping.encode_shutdown(self._link_state).method.name, Any, Any)

    def queries(self) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """Yields further questions about what the extension offers, each with what answers it."""
        for name, answer in self._mapping.server_handshake.handlers.items():
            yield name, partial(self._run_query, answer)

    def _run_query(self, answer: Callable[[Any, LinkState], Any], params: Any) -> Any:
        return answer(params, self._link_state)

    def decode_initialize(self, given: Any) -> Initialize:
        """Returns what the host said as the contract would have it, without features that nobody agreed on."""
        return self._mapping.server_handshake.decode_params(given, self._link_state)

    def encode_initialized(self, initialized: Initialized) -> Any:
        """Returns the answer to that."""
        self._link_state.capabilities = initialized.capabilities
        return self._mapping.server_handshake.encode_result(initialized, self._link_state)


class MappedRequest(Struct, frozen=True, eq=False):
    """A request as it travels, and how its answer is read."""

    method: Any
    params: Any
    decode_result: Callable[[Any], Any]


class HostCallMapping:
    """One link's own. What is not of the contract goes as it is; what the dialect has no word for is refused."""

    def __init__(self, mapping: ContractMapping, state: LinkState) -> None:
        self._mapping = mapping
        self._link_state = state

    def map_request(self, method: str | Method[Any, Any], params: Any) -> MappedRequest:
        """Returns a request of the contract as this dialect has it.

        Raises:
            NotSupported: it cannot be said.
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
        """Returns whether there is a word for it."""
        return notification.name in self._mapping.notifications

    def map_notification(self, method: str | Notification[Any], params: Any) -> WireNotification | None:
        """Returns a notification of the contract as this dialect has it; None where it is better not told.

        Raises:
            NotSupported: it cannot be said.
        """
        name = method if isinstance(method, str) else method.name
        if name not in CONTRACT_NOTIFICATIONS:
            return WireNotification(name, params)
        notification = self._mapping.notifications.get(name)
        if notification is None:
            raise NotSupported(f"`{name}`", f"the dialect `{self._mapping.dialect}` has no word for it")
        return notification.encode(params, self._link_state)
