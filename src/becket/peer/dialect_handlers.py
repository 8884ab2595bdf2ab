"""Wraps contract handlers so that they serve and send in a foreign dialect's messages.

Handlers and events are registered and sent under the contract's names; here they get the dialect's names, and the
dialect's mapping translates params, results and events. Native links do not use this module.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import anyio
from msgspec import Struct

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.commands import CommandOutputParams
from becket.contract.json_narrowing import is_object
from becket.contract.providers import Usage
from becket.dialects.mapping import (
    ContractMapping,
    LinkState,
    MethodMapping,
    NotificationMapping,
    WireNotification,
    WireRequest,
)
from becket.errors import RequestCancelled, RpcError
from becket.methods.descriptors import Method, Notification
from becket.methods.dispatch import is_caused_by_disconnect, to_rpc_error
from becket.methods.registry import Handler, Registry
from becket.peer.deferred import Deferred
from becket.peer.outbound import READY

__all__ = ["MappedContext", "map_handlers"]

CONTRACT_NOTIFICATIONS = frozenset(notification.name for notification in NOTIFICATIONS)
CONTRACT_NAMES = CONTRACT_NOTIFICATIONS | {method.name for method in METHODS}


def map_handlers(methods: Registry, speech: ContractMapping, scene: LinkState) -> Registry:
    """Returns the contract's handlers under a dialect's names.

    Handlers of other methods keep their names, unless the dialect maps a method of that name. Handlers of methods that
    the dialect does not define are left out."""
    spoken = Registry()
    runs = AcknowledgedCalls()
    for handler in sorted(
        methods.handlers(), key=lambda each: each.name in CONTRACT_NAMES
    ):  # an author's own handlers take precedence
        if handler.is_for_notifications:
            tale = speech.notifications.get(handler.name)
            if tale is not None:
                register_notification(spoken, handler, tale, scene)
        elif handler.name in speech.methods:
            phrase = speech.methods[handler.name]
            for own in phrase.wire_methods(scene):
                if own.name not in spoken:
                    register_method(spoken, handler, MethodBinding(phrase, own, scene, speech.check_call), runs)
    return spoken.including(methods.without(CONTRACT_NAMES | speech.methods.keys()))


def register_notification(spoken: Registry, handler: Handler, tale: NotificationMapping, scene: LinkState) -> None:
    def take(params: Any, ctx: Any) -> Any:
        return handler.function(*(tale.decode(params, scene), ctx)[: handler.arity])

    async def take_on_loop(params: Any, ctx: Any) -> None:
        await take(params, ctx)

    told: Notification[Any] = Notification(tale.wire_name, Any, requires=handler.requires)
    spoken.on(told, thread=handler.is_threaded, unless_streamed=handler.unless_streamed)(
        take_on_loop if handler.is_async else take
    )


class MethodBinding(Struct, frozen=True, eq=False):
    """One method of the contract under one name of a dialect, on one link."""

    mapping: MethodMapping
    wire_method: Method[Any, Any]
    link_state: LinkState
    check_call: Callable[[str, LinkState], None] | None

    def decode_params(self, params: Any) -> tuple[WireRequest, Any]:
        """Returns the request as received, and its params in the contract's types."""
        saying = WireRequest(self.wire_method, params)
        return saying, self.mapping.decode_request(saying, self.link_state)

    def encode_result(self, result: Any, saying: WireRequest) -> Any:
        return self.mapping.encode_result(result, saying, self.link_state)

    def respond(self, outcome: Any, saying: WireRequest) -> Any:
        """Returns the response for an outcome that came later: a result, or the exception of a failure."""
        return (
            self.encode_failure(outcome, saying)
            if isinstance(outcome, Exception)
            else self.encode_result(outcome, saying)
        )

    def context(self, context: Any, saying: WireRequest, run: AcknowledgedCall | None = None) -> MappedContext:
        return MappedContext(context, self, saying, run)

    def encode_notification(self, notification: str, params: Any, saying: WireRequest) -> WireNotification | None:
        """Returns the wire form of a notification that belongs to the request; None if the dialect has none."""
        if notification not in CONTRACT_NOTIFICATIONS:
            return WireNotification(notification, params)
        return (
            None
            if self.mapping.encode_event is None
            else self.mapping.encode_event(extract_event(params), saying, self.link_state)
        )

    def encode_failure(self, failure: Exception, saying: WireRequest) -> Any:
        """Returns the response that reports a failure, or raises the failure."""
        if self.mapping.encode_failure is None or isinstance(failure, RequestCancelled):
            raise failure
        return self.mapping.encode_failure(to_rpc_error(failure, self.wire_method.name), saying, self.link_state)

    def encode_end_events(self, result: Any, error: RpcError | None, saying: WireRequest) -> Iterable[WireNotification]:
        assert self.mapping.encode_end_events is not None  # only an acknowledged request has end events
        return self.mapping.encode_end_events(result, error, saying, self.link_state)


def extract_event(params: Any) -> Any:
    """Returns the event in the params of a notification of the contract."""
    if isinstance(params, CommandOutputParams):
        return params.event
    if is_object(params):  # usage has members of any name, and is sent flat
        return Usage({name: value for name, value in params.items() if name != "type"})
    return params


def register_method(spoken: Registry, handler: Handler, words: MethodBinding, runs: AcknowledgedCalls) -> None:
    """Registers the handler under the dialect's name of its method."""
    phrase, own = words.mapping, words.wire_method
    is_acknowledged = phrase.encode_ack is not None

    def call(params: Any, ctx: Any) -> Any:
        return handler.function(*(params, ctx)[: handler.arity])

    def respond(params: Any, ctx: Any) -> Any:
        saying, heard = words.decode_params(params)
        try:
            result = call(heard, words.context(ctx, saying))
        except Exception as failure:
            if is_caused_by_disconnect(ctx.peer.close_reason, failure):
                raise
            return words.encode_failure(failure, saying)
        if isinstance(result, Deferred):
            return result.translated(lambda outcome: words.respond(outcome, saying))
        return words.encode_result(result, saying)

    async def respond_on_loop(params: Any, ctx: Any) -> Any:
        saying, heard = words.decode_params(params)
        try:
            result = await call(heard, words.context(ctx, saying))
        except Exception as failure:
            if is_caused_by_disconnect(ctx.peer.close_reason, failure):
                raise
            return words.encode_failure(failure, saying)
        return words.encode_result(result, saying)

    def acknowledge(params: Any, ctx: Any) -> None:
        saying, heard = words.decode_params(params)
        ctx.respond(phrase.encode_ack(saying, words.link_state))  # type: ignore[misc]
        result, error = None, None
        with runs.open(phrase, params) as run:
            try:
                result = call(heard, words.context(ctx, saying, run))
            except Exception as failure:
                if is_caused_by_disconnect(ctx.peer.close_reason, failure):
                    raise
                error = to_rpc_error(failure, own.name)
        for tale in words.encode_end_events(result, error, saying):
            ctx.peer.notify(tale.method, tale.params)

    async def acknowledge_on_loop(params: Any, ctx: Any) -> None:
        saying, heard = words.decode_params(params)
        ctx.respond(phrase.encode_ack(saying, words.link_state))  # type: ignore[misc]
        result, error = None, None
        with runs.open(phrase, params) as run, anyio.CancelScope() as scope:
            run.scope = scope
            try:
                result = await call(heard, words.context(ctx, saying, run))
            except Exception as failure:
                if is_caused_by_disconnect(ctx.peer.close_reason, failure):
                    raise
                error = to_rpc_error(failure, own.name)
        if scope.cancelled_caught:
            error = RequestCancelled()
        for tale in words.encode_end_events(result, error, saying):
            await ctx.peer.notify(tale.method, tale.params)

    plain, on_loop = (acknowledge, acknowledge_on_loop) if is_acknowledged else (respond, respond_on_loop)
    asked: Method[Any, Any] = Method(own.name, own.params, Any, requires=handler.requires)
    spoken.handle(asked, thread=handler.is_threaded)(on_loop if handler.is_async else plain)
    if phrase.cancel_method is not None and phrase.cancel_method.name not in spoken:
        spoken.handle(phrase.cancel_method)(runs.canceller(phrase))


class AcknowledgedCalls:
    """Work that goes on after its acknowledgement, and can be cancelled by a request of its own."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, object], AcknowledgedCall] = {}

    def open(self, phrase: MethodMapping, params: Any) -> AcknowledgedCall:
        key = None if phrase.cancel_method is None else phrase.correlation_key(params)  # else no request can name it
        return AcknowledgedCall(self._open, (id(phrase), key))

    def canceller(self, phrase: MethodMapping) -> Callable[[Any], Any]:
        def cancel(params: Any) -> dict[str, Any]:
            run = self._open.get((id(phrase), phrase.correlation_key(params)))
            if run is not None:
                run.cancel()
            return {}

        return cancel


class AcknowledgedCall:
    """One acknowledged call, for the duration of the block. A coroutine ends with its `scope`; a thread sees
    `ctx.is_cancelled`."""

    def __init__(self, open_runs: dict[tuple[int, object], AcknowledgedCall], key: tuple[int, object]) -> None:
        self.is_cancelled = False
        self.scope: anyio.CancelScope | None = None
        self._open = open_runs
        self._key = key

    def cancel(self) -> None:
        self.is_cancelled = True
        if self.scope is not None:
            self.scope.cancel()

    def __enter__(self) -> AcknowledgedCall:
        self._open[self._key] = self
        return self

    def __exit__(self, *_: object) -> None:
        if self._open.get(self._key) is self:
            del self._open[self._key]


# -- events


class MappedContext:
    """The context of a request whose events are sent in its dialect's messages; everything else is delegated."""

    __slots__ = ("_binding", "_call", "_context", "wire_request")

    def __init__(self, context: Any, words: MethodBinding, saying: WireRequest, run: AcknowledgedCall | None) -> None:
        self._context = context
        self._binding = words
        self._call = run
        self.wire_request = saying
        """The request as received."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller has cancelled the request, or after its acknowledgement the events that follow."""
        return (self._call is not None and self._call.is_cancelled) or self._context.is_cancelled

    @property
    def peer(self) -> MappedPeer:
        """The peer that sent the request."""
        return MappedPeer(self._context.peer, self.map_notification)

    def call(self, method: str | Method[Any, Any], params: Any = None, **options: Any) -> Any:
        """Calls the host from within the request.

        Raises:
            NotSupported: the host has not announced this method; nothing was sent.
        """
        if self._binding.check_call is not None:
            self._binding.check_call(method if isinstance(method, str) else method.name, self._binding.link_state)
        return self._context.call(method, params, **options)

    def progress(self, value: object) -> Coroutine[Any, Any, None]:
        """Sends progress of the call, if the dialect defines it."""
        report = self._binding.mapping.encode_progress
        return self._send(None if report is None else report(value, self.wire_request, self._binding.link_state))

    def notify(self, method: str | Notification[Any], params: Any = None) -> Coroutine[Any, Any, None]:
        """Sends a notification that belongs to the request, if the dialect defines it."""
        return self._send(self.map_notification(method, params))

    def _send(self, tale: WireNotification | None) -> Coroutine[Any, Any, None]:
        if tale is None:
            return READY
        tellers = self._context.peer if self._binding.mapping.encode_ack is not None else self._context
        told: Coroutine[Any, Any, None] = tellers.notify(tale.method, tale.params)
        return told

    def map_notification(self, method: str | Notification[Any], params: Any) -> WireNotification | None:
        name = method if isinstance(method, str) else method.name
        return self._binding.encode_notification(name, params, self.wire_request)


class MappedPeer:
    """A peer as contract handlers see it: its notifications are sent in the dialect's messages."""

    __slots__ = ("_map_notification", "_peer")

    def __init__(self, peer: Any, translate: Callable[[str | Notification[Any], Any], WireNotification | None]) -> None:
        self._peer = peer
        self._map_notification = translate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)

    def notify(self, method: str | Notification[Any], params: Any = None) -> Any:
        tale = self._map_notification(method, params)
        return READY if tale is None else self._peer.notify(tale.method, tale.params)

    def notify_nowait(self, method: str | Notification[Any], params: Any = None) -> None:
        tale = self._map_notification(method, params)
        if tale is not None:
            self._peer.notify_nowait(tale.method, tale.params)
