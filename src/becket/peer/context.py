"""Provides the Context that a handler gets: its request, deadline, progress and caller."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from becket._deprecated import RenamedMember
from becket.jsonrpc.calls import InboundRequest
from becket.jsonrpc.json_values import decode_json, encode_json
from becket.methods.descriptors import Method, Notification
from becket.peer.outbound import READY, UNSET, Unset, wait_drained

if TYPE_CHECKING:
    from typing import Protocol

    from becket.peer.link import Link
    from becket.peer.options import CallOptions
    from becket.peer.outbound import Outbound
    from becket.peer.peer import Peer

    class RequestServer(Protocol):
        """What a context needs of the `Inbound` that creates it for a handler."""

        link: Link
        outbound: Outbound
        peer: Any

        def respond(self, method: str, request: InboundRequest | None, result: object) -> None: ...

        def send_progress(
            self, method: str, request: InboundRequest | None, value: object
        ) -> Coroutine[Any, Any, None]: ...

        def send_event(
            self, request: InboundRequest | None, method: str, params: bytes | None, kind: type = bytes
        ) -> Coroutine[Any, Any, None]: ...


__all__ = ["BaseContext", "Context"]

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


class BaseContext:
    """The context of a handler, in either runtime. That of a notification has no id, deadline or progress, and it
    `is_streamed` if a pending call has received it too."""

    __slots__ = ("_inbound", "_request", "is_streamed", "method")

    def __init__(
        self, inbound: RequestServer, method: str, request: InboundRequest | None, *, is_streamed: bool = False
    ) -> None:
        self._inbound = inbound
        self._request = request
        self.method = method
        self.is_streamed = is_streamed

    @property
    def caller(self) -> str | None:
        """The id of the extension at the other end, as recorded for its connection; None on a link without a gate."""
        gate = self._inbound.link.gate
        return None if gate is None else gate.extension

    @property
    def wire_request(self) -> object:
        """The request as a foreign dialect sent it; None for a request of becket's own dialects."""
        return None

    @property
    def id(self) -> int | float | str | None:
        """The id of the request, None for a notification."""
        return None if self._request is None else decode_json(self._request.id)

    @property
    def deadline(self) -> float:
        """When the caller stops waiting, on the link's clock; infinity without a limit."""
        return inf if self._request is None else self._request.deadline

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller has cancelled. For functions in a thread, which cannot be interrupted."""
        return self._request is not None and (self._request.is_cancelled or self._inbound.link.close_reason is not None)

    def remaining(self) -> float:
        """Returns the seconds left until the deadline; infinity if the caller set no limit."""
        return self.deadline - self._inbound.link.loop.time()


class Context(BaseContext):
    """The second argument of a handler."""

    __slots__ = ()

    @property
    def peer(self) -> Peer:
        """The peer that sent the request, for calls back."""
        peer: Peer = self._inbound.peer
        return peer

    def respond(self, result: object = None) -> None:
        """Sends the response now, while the handler goes on; also from a function in a worker thread.

        The handler's return value is dropped, and an error that it raises is logged. It still counts as a running
        request and ends with the link, but its caller can no longer cancel it.

        Raises:
            LocalProtocolError: a response was sent already; it is a notification; or the result cannot be encoded.
            ConnectionLost: the link has ended.
        """
        self._inbound.respond(self.method, self._request, result)

    async def progress(self, value: object) -> None:
        """Sends progress of this call; waits while the send queue is full.

        Raises:
            NotSupported: the dialect does not define progress.
            LocalProtocolError: a notification has no progress.
        """
        await self._inbound.send_progress(self.method, self._request, value)

    @overload
    def notify(self, method: Notification[None], params: None = None) -> Coroutine[Any, Any, None]: ...

    @overload
    def notify(self, method: Notification[P], params: P) -> Coroutine[Any, Any, None]: ...

    @overload
    def notify(self, method: str, params: object = None) -> Coroutine[Any, Any, None]: ...

    def notify(self, method: Any, params: object = None) -> Coroutine[Any, Any, None]:
        """Sends a notification that belongs to this call and, if credit was negotiated, uses the caller's credit."""
        if not isinstance(method, str):  # as in `encode_notification`, without a call: the hottest path of a stream
            if method.params_to_json is not None:
                params = method.params_to_json(params)
            method = method.name
        encoded = None if params is None else encode_json(params)
        link = self._inbound.link
        if link.features:
            return self._inbound.send_event(self._request, method, encoded, type(params))
        return wait_drained(link) if link.send_event(link.connection.encode_notification(method, encoded)) else READY

    @overload
    def call(
        self, method: Method[None, R], params: None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, R]: ...

    @overload
    def call(self, method: Method[P, R], params: P, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, R]: ...

    @overload
    def call(
        self, method: str, params: object = None, *, returns: type[T], **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def call(
        self, method: str, params: object = None, *, returns: Any = Any, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, Any]: ...

    def call(
        self,
        method: Any,
        params: Any = None,
        *,
        timeout: float | Unset | None = UNSET,
        returns: Any = Any,
        on: Mapping[str, Callable[..., Any]] | None = None,
        on_progress: Callable[..., Any] | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Calls the caller back as part of this request. Same as `ctx.peer.call`."""
        return self._inbound.outbound.call(method, params, timeout, returns, on, on_progress)

    answer = RenamedMember("respond")
