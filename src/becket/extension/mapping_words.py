"""Maps an extension's session and its calls to the host onto a foreign dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.dialects.mapping import ContractMapping
from becket.dialects.phrases import LinkState, WireNotification, identity
from becket.errors import NotSupported
from becket.methods.descriptors import Method, Notification

__all__ = ["HostCallMapping", "MappedRequest"]

CONTRACT_METHODS = frozenset(method.name for method in METHODS)
CONTRACT_NOTIFICATIONS = frozenset(notification.name for notification in NOTIFICATIONS)


class MappedRequest(Struct, frozen=True, eq=False):
    """A request as it travels, and how its answer is read."""

    method: Any
    params: Any
    decode_result: Callable[[Any], Any]


class HostCallMapping:
    """One link's own. What is not of the contract goes as it is; what the dialect has no word for is refused."""

    def __init__(self, speech: ContractMapping, scene: LinkState) -> None:
        self._mapping = speech
        self._link_state = scene

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
        phrase, scene = self._mapping.get_method(name), self._link_state
        saying = phrase.encode_request(params, scene)
        return MappedRequest(saying.method, saying.params, lambda answer: phrase.decode_result(answer, saying, scene))

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
        tale = self._mapping.notifications.get(name)
        if tale is None:
            raise NotSupported(f"`{name}`", f"the dialect `{self._mapping.dialect}` has no word for it")
        return tale.encode(params, self._link_state)
