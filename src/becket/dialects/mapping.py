"""Defines how contract methods and notifications are mapped to a foreign protocol, and per-link state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from becket.contract.tools import ToolCall
from becket.dialects.handshake import ClientHandshake, HandshakeContext, ServerHandshake
from becket.dialects.phrases import LinkState, MethodMapping, WireNotification, WireRequest
from becket.errors import NotSupported

__all__ = ["ContractMapping", "NotificationMapping"]


class NotificationMapping(Struct, frozen=True, kw_only=True, eq=False):
    """How one notification of the contract is told: to the other side, and by it under the name `wire_name`.

    `encode` makes the notification of the contract's params, None where it is better not told; `decode` makes those of
    the params that came."""

    wire_name: str
    encode: Callable[[Any, LinkState], WireNotification | None]
    decode: Callable[[Any, LinkState], Any]


class ContractMapping(Struct, frozen=True, kw_only=True, eq=False):
    """The words of one dialect for the contract. It is made when a link needs it: most programs speak one dialect.

    `methods` are by the name of the contract's method, those in which the extension asks (`memory.append`) too;
    `notifications` by that of its notification. What stands in neither cannot be said. `encode_shutdown` ends a
    program, where there is a word for that; otherwise the end of its input tells it. `encode_exit` is told once the
    goodbye was answered. `add_call_metadata` adds to the call of a tool what the host says about it, beside an input
    that was checked. With `requests_info` a host asks `info.get` right after the handshake. `check_call` raises
    NotSupported for a request of the dialect's own that the host has not announced to serve."""

    dialect: str
    client_handshake: Callable[[HandshakeContext], ClientHandshake]
    server_handshake: ServerHandshake
    methods: Mapping[str, MethodMapping] = {}
    notifications: Mapping[str, NotificationMapping] = {}
    encode_shutdown: Callable[[LinkState], WireRequest] | None = None
    encode_exit: Callable[[LinkState], WireNotification] | None = None
    requests_info: bool = False
    add_call_metadata: Callable[[ToolCall, Mapping[str, Any] | None, LinkState], ToolCall] | None = None
    check_call: Callable[[str, LinkState], None] | None = None

    def get_method(self, method: str) -> MethodMapping:
        """Returns how this method of the contract is said.

        Raises:
            NotSupported: it cannot be said in this dialect.
        """
        phrase = self.methods.get(method)
        if phrase is None:
            raise NotSupported(f"`{method}`", f"the dialect `{self.dialect}` has no word for it")
        return phrase
