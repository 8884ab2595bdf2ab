"""Routes notifications to the pending calls that subscribed to them.

A call subscribes before its request is sent, so that it misses none. A notification goes to all subscribed calls and
to its handler. With a single receiver, that one is called directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Raw, Struct

from becket.conversion.decode import get_result_decoder
from becket.dialects import ProgressFormat
from becket.dialects.dialect import META_PREFIX
from becket.errors import JSON_ERRORS, BadReply
from becket.jsonrpc.codec import ENVELOPE_WITHOUT_ID, PARAMS_KEY
from becket.jsonrpc.connection import CancellationFormat, OutboundCall
from becket.jsonrpc.json_values import encode_json
from becket.jsonrpc.messages import NotificationMessage
from becket.methods.registry import describe_function, read_signature, unwrap_callable

if TYPE_CHECKING:
    from becket.framing.framing import Frame
    from becket.jsonrpc.protocols import DirectHandler

    class PutEvent(Protocol):
        """Receives the params of a notification; a `DirectHandler` too, which does not need the frame."""

        def __call__(self, params: Raw | None, frame: object = None, /) -> None: ...


__all__ = ["JSON_NULL", "CallSubscription", "EventHandler", "EventRouter"]

FIRST_TOKEN = 2**30  # callers that choose their own progress tokens begin at 1

JSON_NULL = Raw(b"null")


class CallSubscription:
    """The notifications of one method that belong to one call.

    `matches` decides which of them do; without it, all but those that carry the id of another call. `put_credited`
    receives those that carry this call's id: they have used its credit. With `skips_meta`, both also accept params
    with the metadata in them."""

    __slots__ = ("call", "matches", "put", "put_credited", "skips_meta")

    def __init__(
        self,
        put: PutEvent,
        *,
        put_own: PutEvent | None = None,
        accept: Callable[[Raw], bool] | None = None,
        call: OutboundCall | None = None,
        skips_meta: bool = False,
    ) -> None:
        self.put = put
        self.skips_meta = skips_meta
        self.put_credited = put_own or put
        self.matches = accept
        self.call = call

    def deliver(self, params: Raw | None, owner: bytes | None) -> bool:
        """Delivers a notification that carries the id of the call `owner`, or none, if it is for this call."""
        is_own = owner is not None and self.call is not None and self.call.id == owner
        if self.matches is not None:
            if not self.matches(JSON_NULL if params is None else params):
                return False
        elif owner is not None and not is_own:
            return False
        (self.put_credited if is_own else self.put)(params)
        return True


class EventRouter:
    """The subscriptions to notifications on one link."""

    __slots__ = (
        "_by_method",
        "_by_token",
        "_cancel_method",
        "_fallback",
        "_has_handler",
        "_last_token",
        "_progress",
        "_tokens",
        "exclusive",
        "is_tagged",
    )

    def __init__(
        self, progress: ProgressFormat | None, cancelling: CancellationFormat | None, *, is_marked: bool
    ) -> None:
        self._progress = progress
        self._cancel_method = (
            None if cancelling is None else cancelling.method
        )  # the connection's own table: progress subscriptions
        self._by_method: dict[str, list[CallSubscription]] = {}
        self._by_token: dict[bytes, CallSubscription] = {}
        self._tokens: dict[bytes, bytes] = {}  # for the calls whose token is not their id
        self._last_token = FIRST_TOKEN
        self._has_handler: Callable[[str], bool] | None = None
        self._fallback: Callable[[NotificationMessage], None] | None = None
        self.is_tagged = is_marked  # notifications may carry the id of their call
        self.exclusive: dict[str, DirectHandler] = {}  # by method, where there is one receiver

    def add(self, method: str, subscription: CallSubscription) -> None:
        self._by_method.setdefault(method, []).append(subscription)
        self._update_exclusive(method)

    def next_token(self) -> bytes:
        """Returns a token that no call of this link has."""
        self._last_token += 1
        return b"%d" % self._last_token

    def add_progress(self, id: bytes, subscription: CallSubscription, token: bytes | None = None) -> None:
        """Subscribes the call with this id to its progress, which carries the id or the token."""
        if token is not None:
            self._tokens[id] = token
        self._by_token[token or id] = subscription

    def remove(self, method: str, subscription: CallSubscription) -> None:
        subscriptions = self._by_method.get(method)
        if subscriptions is not None and subscription in subscriptions:
            subscriptions.remove(subscription)
            self._update_exclusive(method)

    def remove_progress(self, id: bytes) -> None:
        self._by_token.pop(self._tokens.pop(id, id), None)

    def _put_marked(self, subscription: CallSubscription, method: str) -> DirectHandler:
        """Returns a function for events that carry this call's id as becket encodes it; other events are routed."""
        call, fallback, put_credited = subscription.call, self._fallback, subscription.put_credited
        assert fallback is not None
        beginning, size = b"nothing begins so", 0  # of the frame; and how much of that is in the params
        skips_meta = subscription.skips_meta

        def put(params: Raw, frame: Frame) -> None:
            if frame.startswith(beginning):
                put_credited(params if skips_meta else Raw(b"{" + bytes(params)[size:]))
            elif size or call is None or not call.id:  # it has no id before it is sent
                fallback(NotificationMessage(method, params))
            else:
                learn_mark(call.id)
                put(params, frame)

        def learn_mark(id: bytes) -> None:
            nonlocal beginning, size
            mark = b'%b{"parent":%b}},' % (META_PREFIX, id)
            beginning = b'%b,"method":%b%b%b' % (ENVELOPE_WITHOUT_ID, encode_json(method), PARAMS_KEY, mark)
            size = len(mark)

        return put

    def share_with(
        self, has_handler: Callable[[str], bool], on_notification: Callable[[NotificationMessage], None]
    ) -> None:
        """Takes a function that returns whether a notification has a handler beside the calls, and the handler of all
        notifications."""
        self._has_handler = has_handler
        self._fallback = on_notification

    def reconsider(self, method: str) -> None:
        """Updates the direct route of a method: a handler was added or removed."""
        if method in self._by_method:
            self._update_exclusive(method)

    def _update_exclusive(self, method: str) -> None:
        subscriptions = self._by_method[method]
        self.exclusive.pop(method, None)
        if not subscriptions:
            del self._by_method[method]
        elif len(subscriptions) == 1 and self._is_alone(subscriptions[0], method):
            self.exclusive[method] = (
                self._put_marked(subscriptions[0], method) if self.is_tagged else subscriptions[0].put
            )

    def _is_alone(self, subscription: CallSubscription, method: str) -> bool:
        """Returns whether this subscription is the only receiver of a method's notifications."""
        if (
            subscription.matches is not None
            or method == self._cancel_method
            or (self.is_tagged and self._fallback is None)
        ):
            return False
        return self._has_handler is None or not self._has_handler(method)

    def route(self, method: str, params: Raw | None, owner: bytes | None) -> bool:
        """Delivers a notification to the subscribed calls and returns whether there was one."""
        form = self._progress
        if form is not None and self._by_token and method == form.method and self._route_progress(params, form):
            return True
        receivers = [
            subscription
            for subscription in tuple(self._by_method.get(method, ()))
            if subscription.deliver(params, owner)
        ]
        return bool(receivers)

    def _route_progress(self, params: Raw | None, form: ProgressFormat) -> bool:
        if params is None:
            return False
        try:
            members = msgspec.json.decode(params, type=dict[str, Raw])
            subscription = self._by_token.get(bytes(members[form.token]))
        except (*JSON_ERRORS, KeyError):
            return False
        if subscription is not None:
            subscription.put_credited(members.get(form.value) if form.token_codec is None else params)
        return subscription is not None


class EventHandler:
    """A function that handles the events of a call, and the type of its parameter."""

    __slots__ = ("_skips_meta", "arity", "decode", "function", "is_async")

    def __init__(self, function: Callable[..., Any]) -> None:
        annotation: Any = Any
        self.arity, self.is_async = 1, False
        if hasattr(unwrap_callable(function)[0], "__code__"):  # else a builtin, such as the `append` of a list
            self.arity, annotation, self.is_async = read_signature(function)
        if self.arity > 1:
            raise TypeError(f"{describe_function(function)} must take `()` or `(event)`")
        self.function = function
        self.decode = get_result_decoder(annotation)
        self._skips_meta = ignores_member(annotation, "_meta")

    def decode_with_handler(self, raw: Raw) -> tuple[EventHandler, Any]:
        """Returns the handler of the event, and the decoded event."""
        return self, self.decode(raw)

    def build_subscription(self, call: OutboundCall, fail: Callable[[Exception], None]) -> CallSubscription:
        """Returns a subscription that calls the function at once; its errors, and those of decoding, go to `fail`."""
        function = self.function
        decode: Callable[[Any], Any] = self.decode
        take: Callable[[Any], Any] = function if self.arity else ignore_argument(function)

        def put(raw: Raw | None, _: object = None) -> None:
            try:
                take(decode(raw))  # fails for the few without params
            except Exception as error:
                find_out(raw, error)

        def find_out(raw: Raw | None, error: Exception) -> None:
            """Reports the error of the function, unless the event did not match it."""
            if raw is None:
                put(JSON_NULL)
                return
            try:
                decode(raw)
            except JSON_ERRORS as problem:
                error = BadReply(method=call.method, problem=f"an event: {problem}")
            fail(error)

        return CallSubscription(put, call=call, skips_meta=self._skips_meta)


def ignores_member(kind: Any, name: str) -> bool:
    """Returns whether msgspec ignores an additional member of this name in objects of this type."""
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return False
    config = kind.__struct_config__
    return not config.forbid_unknown_fields and not config.array_like and name not in kind.__struct_encode_fields__


def ignore_argument(function: Callable[[], Any]) -> Callable[[Any], Any]:
    def call(_: object) -> Any:
        return function()

    return call
