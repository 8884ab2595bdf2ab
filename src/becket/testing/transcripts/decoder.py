"""Decodes recorded frames into messages and maps them back to the contract. Pure.

A dialect maps the contract to the wire; here its mapping is used in reverse, to find what the recorded peers meant.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.handshake import INITIALIZE, SHUTDOWN, Initialize, Initialized
from becket.contract.json_narrowing import is_array, is_object
from becket.conversion.decode import decode_json, get_params_decoder, get_result_decoder
from becket.dialects.dialect import Dialect
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import MethodMapping
from becket.errors import BecketError, RemoteError, RpcError
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.messages import Failure, Message, Request, Success
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import EventReader, ResultCollector, Stream
from becket.testing.transcripts.file_format import LinkEnd

if TYPE_CHECKING:
    from becket.jsonrpc.protocols import Codec

__all__ = ["DecodedRequest", "ReverseMapping", "TranscriptDecoder"]

CONTRACT_METHODS = {method.name: method for method in METHODS}
CONTRACT_NOTIFICATIONS = {notification.name: notification for notification in NOTIFICATIONS}


class TranscriptDecoder:
    """Decodes the frames of both directions, in order, as the two peers do."""

    def __init__(self, dialect: Dialect) -> None:
        self._codecs = {LinkEnd.HOST: open_codec(dialect), LinkEnd.CHILD: open_codec(dialect.for_extension())}

    def codec_for(self, end: LinkEnd) -> Codec:
        """Returns the codec of this end."""
        return self._codecs[end]

    def decode(self, to: LinkEnd, body: bytes) -> Message:
        """Returns the message in a frame."""
        message: Message = decode(self._codecs[to], body)
        writer = self._codecs[to.other]
        if not isinstance(writer, JsonCodec):  # a positional codec must know what was written
            track_message(writer, message)
        return message


def open_codec(dialect: Dialect) -> Codec:
    limits = dialect.limits
    return dialect.build_connection(limits).codec


def decode(codec: Any, body: bytes) -> Message:
    message: Message = codec.decode(body)
    return message


def track_message(codec: Codec, message: Message) -> None:
    match message:
        case Request(id, method, params):
            codec.encode_request(id, method, None if params is None else bytes(params))
        case Success(id, result):
            codec.encode_success(id, bytes(result))
        case Failure(id, code, text, data):
            codec.encode_failure(id, code, text, data)
        case _:
            pass


class DecodedRequest(Struct, frozen=True, eq=False):
    """A request of the contract, or one that only the dialect has: then `contract` is the dialect's own method.
    `wire_request` is the dialect's form of it, with the types of its response; `gathering` is set where events make
    up the result."""

    contract: Method[Any, Any]
    params: Any
    wire_request: WireRequest
    mapping: MethodMapping | None
    gathering: ResultCollector[Any, Any] | None = None

    @property
    def is_dialect_only(self) -> bool:
        """Whether only the dialect has it."""
        return self.contract.name not in CONTRACT_METHODS

    def decode_result(self, raw: Raw, state: LinkState) -> Any:
        """Returns the contract's result from a response."""
        method = self.contract if self.mapping is None else self.wire_request.method
        return self.map_result(get_result_decoder(method.result)(raw), state)

    def map_result(self, value: Any, state: LinkState) -> Any:
        """Converts the dialect's result to the contract's."""
        return value if self.mapping is None else self.mapping.decode_result(value, self.wire_request, state)

    def event_reader_for(self, notification: str, params: Raw) -> EventReader[Any] | None:
        """Returns the reader of this notification as an event of this request; None if it is not one."""
        readers: Mapping[str, EventReader[Any]] = getattr(
            self.wire_request.method, "events", {}
        )  # only a stream has events
        reader = readers.get(notification)
        if reader is None or (reader.belongs is not None and not reader.belongs(params, self.wire_request.params)):
            return None
        return reader

    def find_failure(self, params: Raw, state: LinkState) -> str | None:
        """Returns the text of the error that these params end the call with; None if they do not."""
        assert self.mapping is not None
        assert self.mapping.encode_end_events is not None
        found = decode_json(params)
        for text in find_texts(found):
            *_, last = self.mapping.encode_end_events(None, RpcError(0, text), self.wire_request, state)
            if msgspec.to_builtins(last.params) == found:
                return text
        return None


def find_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_object(value) or is_array(value):
        for part in value.values() if is_object(value) else value:
            yield from find_texts(part)


class MappingMatch(Struct, frozen=True, eq=False):
    """A mapping under one of its names."""

    contract: Method[Any, Any]
    mapping: MethodMapping
    dialect_method: Method[Any, Any]
    is_dialect_only: bool


class ReverseMapping:
    """The mapping of a dialect, looked up by wire names."""

    def __init__(self, dialect: Dialect) -> None:
        self.mapping = None if dialect.load_mapping is None else dialect.load_mapping()

    @property
    def handshake_method(self) -> str:
        """The first request of a host."""
        return INITIALIZE.name if self.mapping is None else self.mapping.server_handshake.initialize_method.name

    def shutdown_method(self, state: LinkState) -> str | None:
        """The request that ends an extension, or None."""
        if self.mapping is None:
            return SHUTDOWN.name
        return None if self.mapping.encode_shutdown is None else self.mapping.encode_shutdown(state).method.name

    @property
    def builtin_methods(self) -> frozenset[str]:
        """The methods that an extension handles by itself."""
        return frozenset() if self.mapping is None else frozenset(self.mapping.server_handshake.handlers)

    def decode_handshake_request(self, params: Raw | None, state: LinkState) -> Initialize | None:
        """Returns what a host sends about itself and the extension; None if an extension would reject it."""
        try:
            if self.mapping is None:
                opened: Initialize = get_params_decoder(Initialize)(params)
                return opened
            return self.mapping.server_handshake.decode_params(None if params is None else decode_json(params), state)
        except (BecketError, TypeError, ValueError):
            return None

    @property
    def cancel_methods(self) -> frozenset[str]:
        """The requests that cancel others."""
        mappings = () if self.mapping is None else self.mapping.methods.values()
        return frozenset(mapping.cancel_method.name for mapping in mappings if mapping.cancel_method is not None)

    def decode_handshake_result(
        self, context: HandshakeContext, responses: Iterator[Success | Failure]
    ) -> HandshakeResult | None:
        """Returns what an extension declared with these responses; None if a host would reject them."""
        try:
            if self.mapping is None:
                return decode_native_handshake(next(responses))
            steps = self.mapping.client_handshake(context)
            step = next(steps)
            while True:
                step = (
                    advance_handshake(steps, step, next(responses))
                    if isinstance(step, WireRequest)
                    else steps.send(NOTHING)
                )
        except StopIteration as stop:  # the handshake is complete, or the recording ends before it
            return stop.value if isinstance(stop.value, HandshakeResult) else None
        except (BecketError, ValueError):
            return None

    def decode_request(
        self, method: str, params: Raw | None, state: LinkState, handled: Container[str] = ()
    ) -> DecodedRequest | None:
        """Returns the contract's view of a request; None if there is no mapping for it. `state` is that of the caller.

        What both the contract and the dialect have is the contract's, unless it is `handled` in the dialect's form.

        Raises:
            BecketError, ValueError: its params cannot be decoded.
        """
        if self.mapping is None:
            contract = CONTRACT_METHODS.get(method)
            if contract is None:
                return None
            value = decode_params(contract, params)
            return DecodedRequest(contract, value, WireRequest(contract, value), None)
        found = sorted(
            self._find(method, state),
            key=lambda one: (one.is_dialect_only is not (method in handled), not isinstance(one.contract, Stream)),
        )
        if not found:
            return None
        mapping, own = found[0].mapping, found[0].dialect_method
        meant = mapping.decode_request(WireRequest(own, decode_params(own, params)), state)
        wire = WireRequest(mapping.encode_request(meant, state).method, decode_params(own, params))
        stream: Any = wire.method
        gather = stream.gather if isinstance(stream, Stream) else None
        return DecodedRequest(found[0].contract, meant, wire, mapping, None if gather is None else gather(wire.params))

    def has_mapping(self, method: str, state: LinkState) -> bool:
        """Returns whether there is a mapping for a request of this name, whatever its params."""
        return method in CONTRACT_METHODS if self.mapping is None else any(self._find(method, state))

    def contract_methods(self, method: str, state: LinkState) -> frozenset[str]:
        """Returns the contract's methods with this wire name."""
        if self.mapping is None:
            return frozenset()
        return frozenset(found.contract.name for found in self._find(method, state) if not found.is_dialect_only)

    def _find(self, method: str, state: LinkState) -> Iterator[MappingMatch]:
        assert self.mapping is not None
        for name, mapping in self.mapping.methods.items():
            for own in mapping.wire_methods(state):
                if own.name == method and (name in CONTRACT_METHODS or name == method):
                    yield MappingMatch(CONTRACT_METHODS.get(name, own), mapping, own, name not in CONTRACT_METHODS)

    def decode_notification(
        self, method: str, params: Raw | None, state: LinkState
    ) -> tuple[Notification[Any], Any] | None:
        """Returns the contract's notification and its params, for one that belongs to no request; None if there is
        none."""
        if self.mapping is None:
            found = CONTRACT_NOTIFICATIONS.get(method)
            return None if found is None else (found, decode_params(found, params))
        for name, mapped in self.mapping.notifications.items():
            if mapped.wire_name == method and name in CONTRACT_NOTIFICATIONS:
                value = None if params is None else decode_json(params)
                return CONTRACT_NOTIFICATIONS[name], mapped.decode(value, state)
        return None


NOTHING = Raw(b"null")


def decode_native_handshake(response: Success | Failure) -> HandshakeResult | None:
    if isinstance(response, Failure):
        return None
    initialized: Initialized = get_result_decoder(Initialized)(response.result)
    return HandshakeResult(capabilities=initialized.capabilities, info=initialized.info)


def advance_handshake(
    steps: ClientHandshake, step: WireRequest, response: Success | Failure
) -> WireRequest | WireNotification:
    if isinstance(response, Success):
        return steps.send(response.result)
    error = RemoteError(method=step.method.name, code=response.code, message=response.message, data=response.data)
    return steps.throw(error)


def decode_params(method: Method[Any, Any] | Notification[Any], params: Raw | None) -> Any:
    return None if method.params is None else get_params_decoder(method.params)(params)
