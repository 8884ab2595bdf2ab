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
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import ContractMapping, MethodMapping, NotificationMapping
from becket.errors import RequestCancelled, RpcError
from becket.methods.descriptors import Method, Notification
from becket.methods.error_mapping import is_caused_by_disconnect, to_rpc_error
from becket.methods.registry import Handler, Registry
from becket.peer.deferred import Deferred
from becket.peer.outbound import READY

__all__ = ["MappedContext", "map_handlers"]

CONTRACT_NOTIFICATIONS = frozenset(notification.name for notification in NOTIFICATIONS)
CONTRACT_NAMES = CONTRACT_NOTIFICATIONS | {method.name for method in METHODS}


def map_handlers(methods: Registry, contract_mapping: ContractMapping, link_state: LinkState) -> Registry:
    """Returns the contract's handlers under a dialect's names.

    Handlers of other methods keep their names, unless the dialect maps a method of that name. Handlers of methods that
    the dialect does not define are left out."""
    mapped = Registry()
    runs = AcknowledgedCalls()
    for handler in sorted(
        methods.handlers(), key=lambda each: each.name in CONTRACT_NAMES
    ):  # an author's own handlers take precedence
        if handler.is_for_notifications:
            notification = contract_mapping.notifications.get(handler.name)
            if notification is not None:
                register_notification(mapped, handler, notification, link_state)
        elif handler.name in contract_mapping.methods:
            mapping = contract_mapping.methods[handler.name]
            for own in mapping.wire_methods(link_state):
                if own.name not in mapped:
                    register_method(
                        mapped, handler, MethodBinding(mapping, own, link_state, contract_mapping.check_call), runs
                    )
    return mapped.including(methods.without(CONTRACT_NAMES | contract_mapping.methods.keys()))


def register_notification(
    mapped: Registry, handler: Handler, notification: NotificationMapping, link_state: LinkState
) -> None:
    def take(params: Any, ctx: Any) -> Any:
        return call_handler(handler, notification.decode(params, link_state), ctx)

    async def take_on_loop(params: Any, ctx: Any) -> None:
        await take(params, ctx)

    descriptor: Notification[Any] = Notification(notification.wire_name, Any, requires=handler.requires)
    mapped.on(descriptor, thread=handler.is_threaded, unless_streamed=handler.unless_streamed)(
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
        request = WireRequest(self.wire_method, params)
        return request, self.mapping.decode_request(request, self.link_state)

    def encode_result(self, result: Any, request: WireRequest) -> Any:
        return self.mapping.encode_result(result, request, self.link_state)

    def respond(self, outcome: Any, request: WireRequest) -> Any:
        """Returns the response for an outcome that came later: a result, or the exception of a failure."""
        return (
            self.encode_failure(outcome, request)
            if isinstance(outcome, Exception)
            else self.encode_result(outcome, request)
        )

    def context(self, context: Any, request: WireRequest, run: AcknowledgedCall | None = None) -> MappedContext:
        return MappedContext(context, self, request, run)

    def encode_notification(self, notification: str, params: Any, request: WireRequest) -> WireNotification | None:
        """Returns the wire form of a notification that belongs to the request; None if the dialect has none."""
        if notification not in CONTRACT_NOTIFICATIONS:
            return WireNotification(notification, params)
        return (
            None
            if self.mapping.encode_event is None
            else self.mapping.encode_event(extract_event(params), request, self.link_state)
        )

    def encode_failure(self, failure: Exception, request: WireRequest) -> Any:
        """Returns the response that reports a failure, or raises the failure."""
        if self.mapping.encode_failure is None or isinstance(failure, RequestCancelled):
            raise failure
        return self.mapping.encode_failure(to_rpc_error(failure, self.wire_method.name), request, self.link_state)

    def encode_end_events(
        self, result: Any, error: RpcError | None, request: WireRequest
    ) -> Iterable[WireNotification]:
        assert self.mapping.encode_end_events is not None  # only an acknowledged request has end events
        return self.mapping.encode_end_events(result, error, request, self.link_state)


def extract_event(params: Any) -> Any:
    """Returns the event in the params of a notification of the contract."""
    if isinstance(params, CommandOutputParams):
        return params.event
    if is_object(params):  # usage has members of any name, and is sent flat
        return Usage({name: value for name, value in params.items() if name != "type"})
    return params


def register_method(mapped: Registry, handler: Handler, binding: MethodBinding, runs: AcknowledgedCalls) -> None:
    """Registers the handler under the dialect's name of its method."""
    mapping, own = binding.mapping, binding.wire_method
    if mapping.encode_ack is None:
        function = build_response_handler(handler, binding)
    else:
        function = build_acknowledging_handler(handler, binding, runs, mapping.encode_ack)
    descriptor: Method[Any, Any] = Method(own.name, own.params, Any, requires=handler.requires)
    mapped.handle(descriptor, thread=handler.is_threaded)(function)
    if mapping.cancel_method is not None and mapping.cancel_method.name not in mapped:
        mapped.handle(mapping.cancel_method)(runs.canceller(mapping))


def build_response_handler(handler: Handler, binding: MethodBinding) -> Callable[[Any, Any], Any]:
    """Returns a handler that decodes a request of the dialect and encodes its result."""

    def fail(failure: Exception, request: WireRequest, ctx: Any) -> Any:
        if is_caused_by_disconnect(ctx.peer.close_reason, failure):
            raise failure
        return binding.encode_failure(failure, request)

    def respond(params: Any, ctx: Any) -> Any:
        request, decoded = binding.decode_params(params)
        try:
            result = call_handler(handler, decoded, binding.context(ctx, request))
        except Exception as failure:
            return fail(failure, request, ctx)
        if isinstance(result, Deferred):
            return result.translated(lambda outcome: binding.respond(outcome, request))
        return binding.encode_result(result, request)

    async def respond_on_loop(params: Any, ctx: Any) -> Any:
        request, decoded = binding.decode_params(params)
        try:
            result = await call_handler(handler, decoded, binding.context(ctx, request))
        except Exception as failure:
            return fail(failure, request, ctx)
        return binding.encode_result(result, request)

    return respond_on_loop if handler.is_async else respond


def build_acknowledging_handler(
    handler: Handler,
    binding: MethodBinding,
    runs: AcknowledgedCalls,
    encode_ack: Callable[[WireRequest, LinkState], Any],
) -> Callable[[Any, Any], Any]:
    """Returns a handler that acknowledges a request of the dialect at once, and reports its end with events."""
    mapping, method = binding.mapping, binding.wire_method.name

    def fail(failure: Exception, ctx: Any) -> RpcError:
        if is_caused_by_disconnect(ctx.peer.close_reason, failure):
            raise failure
        return to_rpc_error(failure, method)

    def acknowledge(params: Any, ctx: Any) -> None:
        request, decoded = binding.decode_params(params)
        ctx.respond(encode_ack(request, binding.link_state))
        result, error = None, None
        with runs.open(mapping, params) as run:
            try:
                result = call_handler(handler, decoded, binding.context(ctx, request, run))
            except Exception as failure:
                error = fail(failure, ctx)
        for notification in binding.encode_end_events(result, error, request):
            ctx.peer.notify(notification.method, notification.params)

    async def acknowledge_on_loop(params: Any, ctx: Any) -> None:
        request, decoded = binding.decode_params(params)
        ctx.respond(encode_ack(request, binding.link_state))
        result, error = None, None
        with runs.open(mapping, params) as run, anyio.CancelScope() as scope:
            run.scope = scope
            try:
                result = await call_handler(handler, decoded, binding.context(ctx, request, run))
            except Exception as failure:
                error = fail(failure, ctx)
        if scope.cancelled_caught:
            error = RequestCancelled()
        for notification in binding.encode_end_events(result, error, request):
            await ctx.peer.notify(notification.method, notification.params)

    return acknowledge_on_loop if handler.is_async else acknowledge


def call_handler(handler: Handler, params: Any, ctx: Any) -> Any:
    """Calls a handler with as many arguments as it takes."""
    return handler.function(*(params, ctx)[: handler.arity])


class AcknowledgedCalls:
    """Work that goes on after its acknowledgement, and can be cancelled by a request of its own."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, object], AcknowledgedCall] = {}

    def open(self, mapping: MethodMapping, params: Any) -> AcknowledgedCall:
        key = None if mapping.cancel_method is None else mapping.correlation_key(params)  # else no request can name it
        return AcknowledgedCall(self._open, (id(mapping), key))

    def canceller(self, mapping: MethodMapping) -> Callable[[Any], Any]:
        def cancel(params: Any) -> dict[str, Any]:
            run = self._open.get((id(mapping), mapping.correlation_key(params)))
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

    def __init__(
        self, context: Any, binding: MethodBinding, request: WireRequest, run: AcknowledgedCall | None
    ) -> None:
        self._context = context
        self._binding = binding
        self._call = run
        self.wire_request = request
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

    def _send(self, notification: WireNotification | None) -> Coroutine[Any, Any, None]:
        if notification is None:
            return READY
        sender = self._context.peer if self._binding.mapping.encode_ack is not None else self._context
        sent: Coroutine[Any, Any, None] = sender.notify(notification.method, notification.params)
        return sent

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
        notification = self._map_notification(method, params)
        return READY if notification is None else self._peer.notify(notification.method, notification.params)

    def notify_nowait(self, method: str | Notification[Any], params: Any = None) -> None:
        notification = self._map_notification(method, params)
        if notification is not None:
            self._peer.notify_nowait(notification.method, notification.params)
