"""Defines how contract methods and notifications are mapped to a foreign protocol, and per-link state.

A host calls `tool.call` and an extension serves it, whatever the wire has: a `MethodMapping` translates what goes and
what comes back. Pure: no mapping keeps anything; what is known of a link is its `LinkState`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from becket.contract.handshake import Capabilities
from becket.contract.hooks import HookKind
from becket.contract.tools import ToolCall
from becket.errors import NotSupported, RpcError
from becket.methods.descriptors import Method

if TYPE_CHECKING:
    from becket.dialects.handshake import ClientHandshake, HandshakeContext, ServerHandshake

__all__ = [
    "ContractMapping",
    "LinkState",
    "MethodMapping",
    "NotificationMapping",
    "WireNotification",
    "WireRequest",
    "identity",
]


class LinkState(Struct, eq=False):
    """What both sides know of a link when something is said on it.

    `capabilities` is what the extension offers, in the contract's classes; `extra` what the dialect's own handshake and
    manifest have told besides, in a class of the dialect's. `sequence` gives names to what needs one; `shutdown_reason`
    is why the host ends the extension, once it does.

    On the extension's side stand besides its `version`, its `commands` (name and description), the `hooks` that it
    takes part in, and its `own_methods` methods, by name."""

    extension: str
    capabilities: Capabilities = Capabilities()
    extra: Any = None
    sequence: count[int] = field(default_factory=lambda: count(1))
    shutdown_reason: str = ""
    version: str = ""
    commands: tuple[tuple[str, str], ...] = ()
    hooks: tuple[HookKind, ...] = ()
    own_methods: frozenset[str] = frozenset()


class WireRequest(Struct, frozen=True, eq=False):
    """A request in a dialect's own words. `method` may be a `Stream`, whose readers give events of the contract."""

    method: Method[Any, Any]
    params: Any = None


class WireNotification(Struct, frozen=True):
    """A notification in a dialect's own words."""

    method: str
    params: Any = None


def identity(value: Any, *_: object) -> Any:
    """Translates nothing."""
    return value


class MethodMapping(Struct, frozen=True, kw_only=True, eq=False):
    """How one method of the contract is said in a dialect.

    The side that asks has `encode_request`, which makes the request of the contract's params, and `decode_result`,
    which makes the contract's result of the answer (of what its method's type is). The side that is asked has
    `wire_methods`, the methods under which it is asked; `decode_request`, which makes the contract's params of the
    request; and `encode_result`, which makes the answer of the contract's result. `encode_failure` makes an answer of
    what the function failed with, where a dialect has such; it may raise the error instead. `encode_event` makes a
    notification of an event of the contract, None for one that this dialect has no word for; `encode_progress` likewise
    of what `ctx.progress` reports. All of them get the same `WireRequest`.

    Where a request is acknowledged at once and ends with an event, `encode_ack` makes the acknowledgement and
    `encode_end_events` the last events, of the contract's result or of the error; `encode_result` is not asked then.
    `cancel_method` is the request that ends it before, and `correlation_key` what the params of both have in common."""

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
        mapping = self.methods.get(method)
        if mapping is None:
            raise NotSupported(f"`{method}`", f"the dialect `{self.dialect}` has no word for it")
        return mapping
