"""Defines how contract methods and notifications are mapped to a foreign protocol.

A host calls `tool.call` and an extension serves it in every dialect: a `MethodMapping` converts the request and its
result. Pure: a mapping has no state; that of a link is its `LinkState`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from becket.contract.tools import ToolCall
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.errors import NotSupported, RpcError
from becket.methods.descriptors import Method

if TYPE_CHECKING:
    from becket.dialects.handshake import ClientHandshake, HandshakeContext, ServerHandshake
    from becket.methods.registry import Registry

__all__ = [
    "ContractMapping",
    "LinkState",
    "MethodMapping",
    "NotificationMapping",
    "WireNotification",
    "WireRequest",
    "identity",
]


def identity(value: Any, *_: object) -> Any:
    """Returns the value unchanged."""
    return value


class MethodMapping(Struct, frozen=True, kw_only=True, eq=False):
    """Maps one method of the contract to a dialect.

    The caller uses `encode_request` (the contract's params to a request) and `decode_result` (the result, decoded to
    the type of its method, to the contract's result). The called peer registers `wire_methods`, and uses
    `decode_request` (the request to the contract's params) and `encode_result` (the contract's result to the response).
    `encode_failure` converts an error to a result, in dialects that have such results; it may raise the error instead.
    `encode_event` converts an event of the contract to a notification, or to None if the dialect has none for it;
    `encode_progress` does so for `ctx.progress`. All of them get the same `WireRequest`.

    For a request that is acknowledged at once and ends with an event, `encode_ack` returns the acknowledgement, and
    `encode_end_events` the last events for the contract's result or the error; `encode_result` is not used then.
    `cancel_method` cancels it, and `correlation_key` returns what the params of both requests have in common."""

    encode_request: Callable[[Any, LinkState], WireRequest]
    decode_result: Callable[[Any, WireRequest, LinkState], Any] = identity
    wire_methods: Callable[[LinkState], Iterable[Method[Any, Any]]]
    decode_request: Callable[[WireRequest, LinkState], Any]
    encode_result: Callable[[Any, WireRequest, LinkState], Any] = identity
    encode_failure: Callable[[RpcError, WireRequest, LinkState], Any] | None = None
    encode_event: Callable[[Any, WireRequest, LinkState], WireNotification | None] | None = None
    encode_progress: Callable[[Any, WireRequest, LinkState], WireNotification | None] | None = None
    encode_ack: Callable[[WireRequest, LinkState], Any] | None = None
    encode_end_events: Callable[[Any, RpcError | None, WireRequest, LinkState], Iterable[WireNotification]] | None = (
        None
    )
    cancel_method: Method[Any, Any] | None = None
    correlation_key: Callable[[Any], object] = identity


class NotificationMapping(Struct, frozen=True, kw_only=True, eq=False):
    """Maps one notification of the contract to the notification `wire_name` of a dialect.

    `encode` converts the contract's params to the notification, or to None if it is not to be sent; `decode` converts
    received params to those of the contract."""

    wire_name: str
    encode: Callable[[Any, LinkState], WireNotification | None]
    decode: Callable[[Any, LinkState], Any]


class ContractMapping(Struct, frozen=True, kw_only=True, eq=False):
    """Maps the contract to one dialect. Built when a link needs it.

    `methods` and `notifications` are by their names in the contract, in both directions; others are not supported.
    `encode_shutdown` returns the request that stops an extension (None: its stdin is closed), and `encode_exit` the
    notification after its response. `add_call_metadata` adds metadata of the host to a tool call whose input was
    validated. With `requests_info` a host calls `info.get` after the handshake. `check_call` raises NotSupported for a
    method of the dialect that the host has not announced. `build_host_methods` returns handlers of the dialect's own
    methods that every host has."""

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
    build_host_methods: Callable[[], Registry] | None = None

    def get_method(self, method: str) -> MethodMapping:
        """Returns the mapping of a method of the contract.

        Raises:
            NotSupported: the dialect has no such method.
        """
        mapping = self.methods.get(method)
        if mapping is None:
            raise NotSupported(f"`{method}`", f"the dialect `{self.dialect}` does not define it")
        return mapping
