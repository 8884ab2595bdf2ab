"""Routes notifications to the pending calls that subscribed to them.

A call subscribes before its request is sent, so that it misses none. A notification goes to all subscribed calls and
to its handler. Once an event had a single receiver, its codec delivers the next ones like it directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from becket.conversion.decode import get_result_decoder
from becket.dialects import ProgressFormat
from becket.dialects.dialect import begin_params, encode_parent
from becket.errors import JSON_ERRORS, BadReply
from becket.jsonrpc.calls import OutboundCall
from becket.jsonrpc.codec import DirectHandlers
from becket.methods.registry import describe_function, read_signature, unwrap_callable

if TYPE_CHECKING:
    from becket.jsonrpc.protocols import DirectHandler

__all__ = ["JSON_NULL", "CallSubscription", "EventHandler", "EventRouter", "PutEvent"]

FIRST_TOKEN = 2**30  # callers that choose their own progress tokens begin at 1

JSON_NULL = Raw(b"null")

PutEvent = Callable[[Raw | None], None]
"""Receives the params of a notification."""

decode_raw = msgspec.json.Decoder(Raw).decode


class CallSubscription:
    """The notifications of one method that belong to one call.

    `matches` decides which of them do; without it, all but those that carry the id of another call. `put_credited`
    receives those that carry this call's id: they have used its credit. `put_direct` receives either kind from the
    codec."""

    __slots__ = ("call", "matches", "put", "put_credited", "put_direct")

    def __init__(
        self,
        put: PutEvent,
        *,
        put_own: PutEvent | None = None,
        put_direct: DirectHandler | None = None,
        accept: Callable[[Raw], bool] | None = None,
        call: OutboundCall | None = None,
    ) -> None:
        self.put = put
        self.put_credited = put_own or put
        self.put_direct = put_direct
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
        "_direct",
        "_direct_handlers",
        "_has_handler",
        "_last_token",
        "_progress",
        "_tokens",
        "is_tagged",
    )

    def __init__(self, progress: ProgressFormat | None, direct_handlers: DirectHandlers, *, is_marked: bool) -> None:
        self._progress = progress
        self._direct_handlers = direct_handlers
        self._direct: dict[str, dict[bytes | None, DirectHandler]] = {}  # by method and the call that events name
        self._by_method: dict[str, list[CallSubscription]] = {}
        self._by_token: dict[bytes, CallSubscription] = {}
        self._tokens: dict[bytes, bytes] = {}  # for the calls whose token is not their id
        self._last_token = FIRST_TOKEN
        self._has_handler: Callable[[str], bool] | None = None
        self.is_tagged = is_marked  # notifications may carry the id of their call

    def add(self, method: str, subscription: CallSubscription) -> None:
        self._by_method.setdefault(method, []).append(subscription)
        self.reconsider(method)

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
            if not subscriptions:
                del self._by_method[method]
            self.reconsider(method)

    def remove_progress(self, id: bytes) -> None:
        self._by_token.pop(self._tokens.pop(id, id), None)

    def share_with(self, has_handler: Callable[[str], bool]) -> None:
        """Takes a function that returns whether a notification has a handler beside the calls."""
        self._has_handler = has_handler

    def reconsider(self, method: str) -> None:
        """Ends the direct delivery of a method's events: a receiver was added or removed."""
        handlers = self._direct.pop(method, None)
        if handlers is not None:
            self._direct_handlers.remove(handlers.values())

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
        if len(receivers) == 1 and owner not in self._direct.get(method, ()):
            self._deliver_directly(method, receivers[0], owner)
        return bool(receivers)

    def _deliver_directly(self, method: str, receiver: CallSubscription, owner: bytes | None) -> None:
        """Lets the codec deliver the next events like this one, if they have no other receiver."""
        subscriptions = self._by_method.get(method, ())
        if (
            receiver not in subscriptions  # the event was its last
            or (owner is None and (self.is_tagged or len(subscriptions) > 1))
            or any(subscription.matches is not None for subscription in subscriptions)
            or (self._progress is not None and method == self._progress.method)
            or (self._has_handler is not None and self._has_handler(method))
        ):
            return
        mark = b"" if owner is None else begin_params(encode_parent(owner))
        handler = receiver.put_direct or validating(receiver.put if owner is None else receiver.put_credited)
        self._direct.setdefault(method, {})[owner] = handler
        self._direct_handlers.add(method, mark, handler)

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

    __slots__ = ("arity", "decode", "function", "is_async")

    def __init__(self, function: Callable[..., Any]) -> None:
        annotation: Any = Any
        self.arity, self.is_async = 1, False
        if hasattr(unwrap_callable(function)[0], "__code__"):  # else a builtin, such as the `append` of a list
            self.arity, annotation, self.is_async = read_signature(function)
        if self.arity > 1:
            raise TypeError(f"{describe_function(function)} must take `()` or `(event)`")
        self.function = function
        self.decode = get_result_decoder(annotation)

    def decode_with_handler(self, raw: Raw) -> tuple[EventHandler, Any]:
        """Returns the handler of the event, and the decoded event."""
        return self, self.decode(raw)

    def build_subscription(self, call: OutboundCall, fail: Callable[[Exception], None]) -> CallSubscription:
        """Returns a subscription that calls the function at once; its errors, and those of decoding, go to `fail`."""
        function = self.function
        decode: Callable[[Any], Any] = self.decode
        take: Callable[[Any], Any] = function if self.arity else ignore_argument(function)

        def put(raw: Raw | None) -> None:
            try:
                event = decode(JSON_NULL if raw is None else raw)
            except JSON_ERRORS as problem:
                fail(BadReply(method=call.method, problem=f"an event: {problem}"))
                return
            try:
                take(event)
            except Exception as error:
                fail(error)

        def put_direct(params: bytes) -> bool:
            try:
                event = decode(params)
            except Exception:
                return False  # it is reported where all notifications are routed
            try:
                take(event)
            except Exception as error:
                fail(error)
            return True

        return CallSubscription(put, put_direct=put_direct, call=call)


def validating(put: PutEvent) -> DirectHandler:
    """Returns a direct handler for a function that takes undecoded params."""

    def put_direct(params: bytes) -> bool:
        try:
            raw = decode_raw(params)
        except JSON_ERRORS:
            return False
        put(raw)
        return True

    return put_direct


def ignore_argument(function: Callable[[], Any]) -> Callable[[Any], Any]:
    def call(_: object) -> Any:
        return function()

    return call
