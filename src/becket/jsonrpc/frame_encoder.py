"""From a message to its frame: the codec writes the body, the framing adds the header.

A request, a result or a notification in the wire format of the specification is joined in one step, after a cached
prefix (`frame_cache`): the header and the first bytes of the body. `Connection` joins requests and results itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from becket.errors import ConnectionLost, LocalProtocolError, Meaning, RpcError
from becket.jsonrpc.codec import END, END_BYTES, ENVELOPE_WITH_ID, PARAMS_OPENERS, JsonCodec
from becket.jsonrpc.frame_cache import NO_PREFIXES, FramePrefixes, NotificationPrefixes
from becket.jsonrpc.messages import NULL_ID

if TYPE_CHECKING:
    from becket.framing.framing import Framing
    from becket.jsonrpc.calls import InboundRequest
    from becket.jsonrpc.protocols import Codec

__all__ = ["FrameEncoder"]


class FrameEncoder:
    """Encodes the messages of one connection. What is not in a cache is encoded by the codec, and then framed."""

    __slots__ = (
        "_codec",
        "_error_codes",
        "_framing",
        "_largest",
        "_lost",
        "_map_error",
        "_notification_prefixes",
        "method_fragments",
        "prefixes_with_id",
    )

    def __init__(
        self,
        framing: Framing,
        codec: Codec,
        *,
        largest: int,
        error_codes: Mapping[Meaning, int],
        map_error: Callable[[RpcError], RpcError] | None,
    ) -> None:
        self._framing = framing
        self._codec = codec
        self._largest = largest
        self._error_codes = error_codes
        self._map_error = map_error
        self._lost: ConnectionLost | None = None
        self.prefixes_with_id: Mapping[int, bytes] = {}
        self.method_fragments: Mapping[str, bytes] = {}
        self._notification_prefixes = NO_PREFIXES
        if type(codec) is JsonCodec:
            self._notification_prefixes = NotificationPrefixes(framing.prefix, codec.notification_prefixes)
            self.prefixes_with_id = FramePrefixes(framing.prefix, ENVELOPE_WITH_ID)
            self.method_fragments = codec.method_fragments

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        """Returns the frame of a request.

        Raises:
            ConnectionLost: the link has ended.
            LocalProtocolError: it cannot be framed.
        """
        if self._lost is not None:
            raise self._lost.copy()
        return self._framing.encode(self._codec.encode_request(id, method, params))

    def encode_notification(self, method: str, params: bytes | None) -> bytes:
        """Returns the frame of a notification.

        Raises:
            ConnectionLost: the link has ended.
            LocalProtocolError: it cannot be framed.
        """
        if params and params[0] in PARAMS_OPENERS:
            try:
                return self._notification_prefixes[method][len(params) + END_BYTES] + params + END
            except (KeyError, LocalProtocolError):
                pass
        if self._lost is not None:
            raise self._lost.copy()
        return self._framing.encode(self._codec.encode_notification(method, params))

    def frame_response(self, id: bytes, body: bytes) -> bytes:
        """Returns the frame around a response, or around the error that it is too large."""
        try:
            return self._framing.encode(body)
        except LocalProtocolError:
            return self._framing.encode(self.encode_error(id, self._build_too_large_error(len(body))))

    def frame_batch(self, responses: list[tuple[bytes, bytes]], size: int) -> bytes:
        """Returns the frame of the responses to a batch, each with its id, or of errors that they are too large."""
        if size <= self._largest:
            try:
                return self._framing.encode(self._codec.encode_batch(body for _, body in responses))
            except LocalProtocolError:
                pass  # with the separators it is too large
        excess = self._build_too_large_error(size)
        try:
            return self._framing.encode(self._codec.encode_batch(self.encode_error(id, excess) for id, _ in responses))
        except LocalProtocolError:
            return self._framing.encode(self.encode_error(NULL_ID, excess))

    def encode_error(self, id: bytes, error: RpcError) -> bytes:
        """Returns the body of an error response."""
        if self._map_error is not None:
            error = self._map_error(error)
        code = self._error_codes[error.meaning] if error.meaning is not None else error.code
        assert code is not None  # RpcError has a meaning or a number
        try:
            return self._codec.encode_failure(id, code, error.message, error.data)
        except LocalProtocolError:  # the handler's data cannot be encoded; the error's number is the most useful part
            return self._codec.encode_failure(id, code, "the details of this error could not be encoded", None)

    def _build_too_large_error(self, size: int) -> RpcError:
        return RpcError(Meaning.TOO_LARGE, f"the response has {size} bytes, the limit is {self._largest}")

    def cache_event_prefixes(self, request: InboundRequest, method: str, mark: bytes) -> None:
        """Caches the prefixes of a request's events of a method that was sent before; their params begin with
        `mark`."""
        codec, framing = self._codec, self._framing
        if type(codec) is not JsonCodec or framing.prefix(0) is None:
            return
        if request.event_prefixes is NO_PREFIXES:
            request.event_prefixes = NotificationPrefixes(framing.prefix, codec.notification_prefixes, mark)
        if method in codec.notification_prefixes:
            request.event_prefixes.add(method)

    def close(self, lost: ConnectionLost) -> None:
        """Refuses requests and notifications from now on."""
        self._lost = lost
        self._notification_prefixes = NO_PREFIXES
        self.prefixes_with_id = {}
