"""`ContractClient`: calls an extension in the contract's methods, mapped to its dialect.

Methods that the dialect does not define are refused before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, Unpack

from msgspec import Struct

from becket.contract.handshake import SHUTDOWN
from becket.contract.tools import ToolCall
from becket.dialects.link_state import LinkState, WireRequest
from becket.dialects.mapping import ContractMapping, identity
from becket.errors import BecketError, NotSupported
from becket.methods.descriptors import Method
from becket.methods.streams import Stream
from becket.peer.outbound import UNSET, Unset
from becket.peer.peer import Peer
from becket.peer.streams import Gap

if TYPE_CHECKING:
    from becket.peer.options import StreamOptions

__all__ = ["ContractClient", "EventStream", "MappedStream"]

E = TypeVar("E")
P = TypeVar("P")
R = TypeVar("R")


class EventStream(Protocol[E]):
    """Events that end with a result: those of a call (`CallStream`), or of a task of this program (`LocalStream`)."""

    @property
    def dropped(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def __anext__(self) -> E | Gap: ...
    def batch_nowait(self) -> list[E | Gap]: ...
    def done(self) -> bool: ...
    async def result(self) -> Any: ...


class MappedStream(Struct, Generic[E, R], frozen=True, eq=False):
    """A stream that is to be opened, its method and params on the wire, and the decoder of its result."""

    stream: EventStream[E]
    method: Stream[Any, Any, E]
    params: Any
    read: Callable[[Any], R]


class ContractClient:
    """Calls one extension in the contract's methods. `mapping` is None if those are its own.

    With `kills_at_once` no shutdown is requested."""

    def __init__(
        self, peer: Peer, mapping: ContractMapping | None, link_state: LinkState, *, kills_at_once: bool = False
    ) -> None:
        self._skips_shutdown = kills_at_once
        self.peer = peer
        self.mapping = mapping
        self.link_state = link_state

    def supports(self, method: Method[Any, Any]) -> bool:
        """Returns whether the extension's dialect defines the method."""
        return self.mapping is None or method.name in self.mapping.methods

    def check_supported(self, method: Method[Any, Any]) -> None:
        """Raises NotSupported for a method that the dialect does not define."""
        if self.mapping is not None:
            self.mapping.get_method(method.name)

    def call(
        self,
        method: Method[P, R],
        params: P,
        *,
        returns: Any = None,
        timeout: float | Unset | None = UNSET,
        group: str = "",
    ) -> Coroutine[Any, Any, R]:
        """Makes a call and returns its result; `returns` is the type of the contract's result, if that differs.

        `Peer.end_calls` can end it with the others of its `group`.

        Raises:
            NotSupported: the dialect does not define it. Nothing was sent.
            RemoteError, CallTimeout, ConnectionLost, Busy, BadReply: as for any call.
        """
        if self.mapping is not None:
            return self._call_mapped(self.mapping, method, params, timeout, group)
        wanted = method.result if returns is None else returns
        return self.peer.call_in_group(group, method.name, params, wanted, timeout)

    async def _call_mapped(
        self, mapping: ContractMapping, method: Method[P, R], params: P, timeout: float | Unset | None, group: str
    ) -> R:
        method_mapping = mapping.get_method(method.name)
        request = method_mapping.encode_request(params, self.link_state)
        response = await self.send_request(request, timeout, group)
        read: R = method_mapping.decode_result(response, request, self.link_state)
        return read

    def attach_meta(self, call: ToolCall, meta: Mapping[str, Any] | None) -> ToolCall:
        """Returns the call of a tool with the host's `meta`, if the dialect has a field for it.

        Raises:
            NotSupported: it has none, and `meta` is not empty.
        """
        if self.mapping is not None and self.mapping.add_call_metadata is not None:
            return self.mapping.add_call_metadata(call, meta, self.link_state)
        if meta:
            name = "native" if self.mapping is None else self.mapping.dialect
            raise NotSupported("`meta` of a tool's call", f"the dialect `{name}` has no field for it")
        return call

    def send_request(
        self, request: WireRequest, timeout: float | Unset | None = UNSET, group: str = ""
    ) -> Coroutine[Any, Any, Any]:
        """Sends a request in the dialect's messages; of a stream, only the result matters."""
        if isinstance(request.method, Stream):
            return self._run_stream(request, timeout, group)
        return self.peer.call_in_group(group, request.method, request.params, Any, timeout)

    async def _run_stream(self, request: WireRequest, timeout: float | Unset | None, group: str) -> Any:
        method: Any = request.method
        options: StreamOptions = {} if isinstance(timeout, Unset) else {"timeout": timeout}
        opened = self.peer.stream(method, request.params, **options)
        opened.group = group
        async with opened as stream:
            return await stream.result()

    def stream(self, method: Stream[P, R, E], params: P, **options: Unpack[StreamOptions]) -> MappedStream[E, R]:
        """Returns a call with events, to be opened.

        Raises:
            NotSupported: the dialect does not define it.
        """
        if self.mapping is None:
            return MappedStream(self.peer.stream(method, params, **options), method, params, identity)
        method_mapping = self.mapping.get_method(method.name)
        request = method_mapping.encode_request(params, self.link_state)
        own: Any = request.method
        return MappedStream(
            self.peer.stream(own, request.params, **options),
            own,
            request.params,
            lambda response: method_mapping.decode_result(response, request, self.link_state),
        )

    async def request_shutdown(self, timeout: float | None) -> None:
        """Requests the extension to end, and waits a moment for its response; many end without one."""
        if self.peer.is_closed or self._skips_shutdown:
            return
        request = self._build_shutdown()
        if request is None:
            return
        try:
            await self.peer.call(request.method.name, request.params, timeout=timeout)
            if self.mapping is not None and self.mapping.encode_exit is not None:
                word = self.mapping.encode_exit(self.link_state)
                await self.peer.notify(word.method, word.params)
        except BecketError:
            pass

    def _build_shutdown(self) -> WireRequest | None:
        if self.mapping is None:
            return WireRequest(SHUTDOWN)
        return None if self.mapping.encode_shutdown is None else self.mapping.encode_shutdown(self.link_state)
