"""Dispatches inbound requests and notifications to handlers and sends the responses.

Plain functions run where they arrive. A request with an `async def` handler gets a task of its own; notifications are
handled one at a time, in arrival order, by one task that exists while any are queued.

A handler may respond before it returns. Its request is over then: the id may be reused and cancels nothing, and no
deadline applies. The handler still counts as a running request, and ends with the link.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Callable, Coroutine
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct, field

from becket.dialects.dialect import TAKES_META, MetaReader, begin_params, can_take_meta, encode_parent
from becket.errors import (
    JSON_ERRORS,
    Busy,
    ConnectionLost,
    DisconnectReason,
    LocalProtocolError,
    Meaning,
    NotSupported,
    PermissionDenied,
    RequestCancelled,
    RpcError,
)
from becket.jsonrpc.calls import CLOSED, OPEN, RESPONDED, InboundRequest
from becket.jsonrpc.codec import END, normalize_id
from becket.jsonrpc.json_values import encode_json
from becket.jsonrpc.messages import NotificationMessage
from becket.methods.error_mapping import (
    HANDLER_ERRORS,
    call_sync,
    find_handler,
    interruption,
    is_caused_by_disconnect,
    is_handler_error,
    log_late_error,
    to_rpc_error,
)
from becket.methods.registry import Handler, Registry
from becket.peer.context import Context
from becket.peer.deferred import Deferred
from becket.peer.nested_calls import CURRENT_REQUEST, CurrentRequest
from becket.peer.outbound import READY, Outbound, wait_drained

if TYPE_CHECKING:
    from _thread import LockType

    from becket.peer.link import Link
    from becket.peer.permission_check import AskCallback, DecisionWait, PermissionChecker
    from becket.peer.protocols import LoopFuture, TaskHandle
    from becket.permissions.gate import Gate

__all__ = ["Inbound"]


class RequestTask(Struct, eq=False):
    """A request whose handler does not run inline."""

    is_thread: bool
    start_lock: LockType = field(default_factory=allocate_lock)
    has_started: bool = False
    has_finished: bool = False
    rejection: RpcError | None = None
    task: Any = None  # the loop's handle
    thread_id: int = 0  # the thread that runs it, while it runs; its task may be gone by then

    @property
    def is_running(self) -> bool:
        """Whether its function has begun and has not returned."""
        return bool(self.thread_id) or (self.has_started and not self.has_finished)

    def acquire_start(self) -> bool:
        """Returns True to the first caller: the task or worker that may now run the function, or who prevents that."""
        return self.start_lock.acquire(False)


class CreditGrant(Struct):
    id: Raw
    n: int


class Inbound:
    """The serving half of one link."""

    __slots__ = (
        "_context",
        "_credit_waiters",
        "_drain_task",
        "_has_meta",
        "_is_draining",
        "_is_reentrant",
        "_notification_bytes",
        "_notifications",
        "_registry",
        "_requests",
        "_spawn_owned",
        "_split_meta",
        "_transport",
        "_unfinished",
        "_unsubscribe",
        "link",
        "outbound",
        "peer",
        "permissions",
    )

    def __init__(
        self,
        link: Link,
        outbound: Outbound,
        registry: Registry,
        peer: Any,
        context: Callable[..., Any] = Context,
        *,
        gate: Gate | None = None,
        ask: AskCallback | None = None,
    ) -> None:
        self.link = link
        self.outbound = outbound  # for the calls that handlers make to their caller
        link.gate = gate
        self._unsubscribe: Callable[[], None] | None = None
        self.permissions: PermissionChecker | None = None
        if gate is not None:
            from becket.peer.permission_check import PermissionChecker  # links without a gate start without it

            self._unsubscribe = gate.subscribe(self._on_revoked_from_thread)
            self.permissions = PermissionChecker(link, gate, ask)
        self.peer = peer
        self._context = context
        self._is_reentrant = link.loop.is_reentrant
        self._registry = registry
        registry.on_change = link.event_router.reconsider
        link.event_router.share_with(self._receives)
        self._requests = link.connection.requests
        self._has_meta = bool(link.dialect.features)
        self._split_meta = MetaReader().split
        self._transport = link.transport
        self._spawn_owned = link.loop.spawn_owned
        self._notifications: deque[tuple[Handler, Raw | None, object, tuple[Any, ...] | None]] = deque()
        self._notification_bytes = 0
        self._is_draining = False
        self._drain_task: TaskHandle | None = None
        self._credit_waiters: dict[bytes | int, list[LoopFuture]] = {}
        self._unfinished: list[Any] = []  # handlers whose request the link left open when it ended

    def running(self) -> list[object]:
        """Returns an object for each handler that has begun and has not returned, also after the end of the link."""
        open_requests = tuple(self._requests.values())
        found = [
            request.driver_state if isinstance(request.driver_state, RequestTask) else request
            for request in open_requests
        ]
        running = [one for one in (*found, *self._unfinished) if not isinstance(one, RequestTask) or one.is_running]
        return [*running, self._drain_task] if self._is_draining else [*running]

    # -- requests

    def on_request(self, request: InboundRequest) -> None:
        """Serves a request: checks its permission, decodes its params, runs its handler and responds."""
        link = self.link
        try:
            if self._has_meta:
                self._read_meta(request)
            get_handler = self._registry.get  # functions: called as methods they would cost more
            handler = get_handler(request.method)
            if handler is None or handler.is_for_notifications:
                handler = find_handler(self._registry.get, request.method, self._registry.fallback)
            if self._transport.queued:
                self._check_backpressure()
            context = self._context(self, request.method, request) if handler.arity == 2 else None
            if self.permissions is not None:
                wait_for_decision = self.permissions.check(request, handler)
                if wait_for_decision is not None:
                    self._start(request, handler, context, wait_for_decision)
                    return
            elif handler.requires is not None:  # a link without a gate has granted nothing
                raise PermissionDenied(handler.requires, method=request.method)
            if not handler.is_inline or (self._is_reentrant and link.loop.is_at_nesting_limit):
                self._start(request, handler, context, None)
                return
            if self._is_reentrant:
                result = self._run_reentrant(request, handler, context)
            else:
                invoke = handler.invoke
                result = invoke(request.params, context)
            if result.__class__ is Deferred:  # it has begun: too late to reject it for a budget
                self._drop_params(request)
                self._defer(request, result)
                return
            frame = link.connection.respond(request, encode_json(result))
        except BaseException as error:
            frame = self._reject(request, error)
            if not is_handler_error(error):
                link.send(frame)
                raise
        link.send(frame)

    def _run_reentrant(self, request: InboundRequest, handler: Handler, context: object) -> Any:
        """Runs a plain function that may wait for the link: its calls belong to the request."""
        self.link.connection.hold(request)
        before = CURRENT_REQUEST.set(CurrentRequest(request, self.link))
        try:
            return handler.invoke(request.params, context)
        finally:
            CURRENT_REQUEST.reset(before)

    def _start(
        self, request: InboundRequest, handler: Handler, context: object, wait_for_decision: DecisionWait | None
    ) -> None:
        """Serves a request in a task or a worker. A policy or a person decides before its params are decoded."""
        self.link.connection.hold(request)
        arguments = None if wait_for_decision is not None else self._build_arguments(request, handler, context)
        runner = RequestTask(handler.is_threaded or (handler.is_inline and self._is_reentrant))
        request.driver_state = runner
        running = self._spawn_owned(self._run(request, runner, handler, context, arguments, wait_for_decision))
        if not runner.has_finished:  # where tasks start eagerly, it may be over
            runner.task = running
            if self.link.close_reason is not None:  # its first step has ended the link, before the task was recorded
                self.link.loop.cancel(running)

    def _build_arguments(self, request: InboundRequest, handler: Handler, context: object) -> tuple[Any, ...]:
        arguments = handler.build_arguments(request.params, context)
        self._drop_params(request)
        return arguments

    async def _run(
        self,
        request: InboundRequest,
        runner: RequestTask,
        handler: Handler,
        context: object,
        arguments: tuple[Any, ...] | None,
        wait_for_decision: DecisionWait | None,
    ) -> None:
        link = self.link
        try:
            if wait_for_decision is not None:
                await wait_for_decision()
            if arguments is None:
                arguments = self._build_arguments(request, handler, context)
            if not runner.is_thread and not runner.acquire_start():
                return  # cancelled before it began; the response was sent then
            CURRENT_REQUEST.set(CurrentRequest(request, link))
            if runner.is_thread:
                work = run_in_worker if handler.is_threaded else link.loop.wrap_locked(run_in_worker)
                result = await link.loop.run_in_thread(work, runner, handler, arguments)
            elif handler.is_async:
                runner.has_started = True
                result = await handler.function(*arguments)
            else:  # without the permission check it would have run inline
                result = call_sync(handler.function, *arguments)
                if type(result) is Deferred:
                    self._defer(request, result)
                    return
            frame = link.connection.respond(request, encode_json(result))
        except BaseException as error:
            frame = self._reject(request, error)
            if not isinstance(error, HANDLER_ERRORS):  # cancelled by the loop
                link.send(frame)
                raise
        finally:
            runner.has_finished = True
            runner.task = None  # a cycle that the collector cannot see: it does not traverse requests
        link.send(frame)

    def _reject(self, request: InboundRequest, error: BaseException) -> bytes:
        """Returns the frame that responds to a request whose handler raised this error, b"" for no response.

        The only place that sends exceptions as responses, besides `dialect_handlers`; what the caller must not see is
        logged."""
        connection, runner = self.link.connection, request.driver_state
        refusal = None
        if isinstance(runner, RequestTask):
            is_cancelled = isinstance(error, RequestCancelled) or not isinstance(error, HANDLER_ERRORS)
            # a task that the handler awaits may have been cancelled by its own code
            if is_cancelled and not self.link.loop.is_foreign_cancellation(error):
                return connection.reject(request, runner.rejection or RequestCancelled())
            refusal = runner.rejection
        elif not is_handler_error(error):
            return connection.reject(request, interruption())
        if is_caused_by_disconnect(self.link.close_reason, error):
            return b""
        if refusal is None and request.state is RESPONDED:
            log_late_error(error, request.method)
            return connection.drop_request(request)
        return connection.reject(request, refusal or to_rpc_error(error, request.method))

    def _defer(self, request: InboundRequest, result: Deferred) -> None:
        request.driver_state = result
        result.attach(request, self._respond_deferred)

    def _respond_deferred(self, request: InboundRequest, outcome: Any) -> None:
        """Sends the response of a deferred result."""
        if request.state is not OPEN:
            return
        if isinstance(outcome, BaseException):
            frame = self._reject(request, outcome)
        else:
            try:
                frame = self.link.connection.respond(request, encode_json(outcome))
            except HANDLER_ERRORS as error:
                frame = self._reject(request, error)
        self.link.send(frame)

    def _drop_params(self, request: InboundRequest) -> None:
        """Drops decoded params, unless they hold the token under which progress is sent."""
        form = self.link.progress
        if form is None or form.token_codec is None:
            request.params = None

    # -- a response before the handler has ended

    def respond(self, method: str, request: InboundRequest | None, result: object) -> None:
        """Sends the response to a request while its handler goes on.

        Raises:
            LocalProtocolError: a response was sent already; it is a notification; or the result cannot be encoded.
            ConnectionLost: the link has ended.
        """
        if request is None:
            raise LocalProtocolError(f"{method} was received as a notification: it has no response")
        if getattr(request.driver_state, "thread_id", None) == get_ident() and not self._is_reentrant:
            from anyio import from_thread

            from_thread.run_sync(self._respond_now, request, result)
        else:
            self._respond_now(request, result)

    def _respond_now(self, request: InboundRequest, result: object) -> None:
        link = self.link
        if link.close_reason is not None:
            raise link.close_reason.copy()
        if request.state is not OPEN:
            raise LocalProtocolError(f"the response to {request.method} was sent already")
        encoded = encode_json(result)
        self._wake_credit_waiters(request)
        link.send(link.connection.respond_early(request, encoded))
        link.flush()  # the handler may go on for long before anything else is sent

    def _check_backpressure(self) -> None:
        limits = self.link.limits
        if self.link.transport.queued > limits.send_queue:
            raise Busy("unread bytes", limits.send_queue)

    # -- cancellation

    def on_cancel(self, request: InboundRequest) -> None:
        cancelling = self.link.connection.cancellation
        if cancelling is not None and cancelling.response == "sent by the handler":
            return  # the handler sees it in its context and responds in its own time
        self._interrupt(request, None)

    def on_deadline(self, request: InboundRequest) -> None:
        self._interrupt(request, RpcError(Meaning.TIMEOUT, "the caller's deadline has passed"))

    def _interrupt(self, request: InboundRequest, refusal: RpcError | None) -> None:
        request.is_cancelled = True
        self._wake_credit_waiters(request)
        runner = request.driver_state
        if isinstance(runner, Deferred):  # what has begun goes on, and its outcome is dropped
            runner.forget()
            self.link.send(self.link.connection.reject(request, refusal or RequestCancelled()))
            return
        if not isinstance(runner, RequestTask):
            return  # it responded where it arrived; or its function nests and cannot be stopped
        if runner.acquire_start():  # queued for its task or worker: it never runs
            runner.rejection = refusal or RequestCancelled()
            self.link.send(self.link.connection.reject(request, runner.rejection))
        elif runner.is_thread:
            return  # a thread cannot be stopped: it sees `ctx.is_cancelled`, and its result is sent
        runner.rejection = runner.rejection or refusal
        if runner.task is not None:
            self.link.loop.cancel(runner.task)

    def _read_meta(self, request: InboundRequest) -> None:
        """Takes `_meta` out of the params of a request."""
        if request.params is None:
            return
        link = self.link
        split = self._split_meta
        meta, request.params = split(request.params, link.features)
        if meta is None:
            return
        request.credit = meta.credit
        if meta.timeout_ms is not None:
            request.deadline = link.connection.last_received + meta.timeout_ms / 1000
        if meta.parent is not None:
            self._bind_to_parent(request, meta.parent)
        if meta.depth:
            request.depth = meta.depth
            if meta.depth > link.limits.call_depth:
                raise Busy("calls within calls", link.limits.call_depth)
        if request.deadline < link.wakes_at:
            link.wake_at(request.deadline)

    def _bind_to_parent(self, request: InboundRequest, parent: object) -> None:
        """Binds a request to the outbound call that it belongs to: it may do no more and last no longer than that."""
        id = encode_json(parent)
        call = self.link.connection.find_call(id)
        request.has_parent = True
        if call is None:  # after a cancellation the other peer may still clean up
            chain = self.link.connection.find_abandoned(id)
            request.has_unknown_parent = chain is None
            request.chain = chain or ()
        else:
            request.chain = call.chain
            if call.stream is None and call.deadline < request.deadline:
                request.deadline = call.deadline

    def _on_revoked_from_thread(self, permission: str) -> None:
        self.link.loop.call_from_thread(lambda: self.on_revoked(permission))  # revocations come from any thread

    def on_revoked(self, permission: str) -> None:
        """Ends the requests that run under a revoked permission."""
        for request in list(self._requests.values()):
            handler = self._registry.get(request.method)
            if handler is not None and handler.requires == permission:
                self._interrupt(request, PermissionDenied(permission))

    # -- events of a request

    def send_event(
        self, request: InboundRequest | None, method: str, params: bytes | None, kind: type = bytes
    ) -> Coroutine[Any, Any, None]:
        """Sends a notification that belongs to a request, at once if the caller's credit allows it. `kind` is the type
        that the params were encoded from.

        The returned awaitable waits for credit, and while the caller does not read."""
        link = self.link
        if request is None or not link.features:
            frame = link.connection.encode_notification(method, params)
        else:
            if request.credit is not None:
                if request.credit <= 0 or not self._is_active(request):
                    return self._send_event_with_credit(request, method, params)
                request.credit -= 1
            prefixes = request.event_prefixes.get(method)
            if (
                prefixes is not None
                and params is not None
                and (params != b"{}" if TAKES_META[kind] else can_take_meta(params))
                and link.close_reason is None
            ):
                frame = prefixes[len(params)] + params[1:] + END
            else:
                frame = self._encode_event(request, method, params)
        return wait_drained(link) if link.send_event(frame) else READY

    def _encode_event(self, request: InboundRequest, method: str, params: bytes | None) -> bytes:
        """Returns the frame of an event that names its request, and caches the prefix of the next ones."""
        link = self.link
        connection = link.connection
        if link.progress is not None and method == link.progress.method:  # its params name the request
            return connection.encode_notification(method, params)
        meta = encode_parent(request.id)
        frame = connection.encode_notification(method, link.dialect.insert_meta(params, meta, link.features))
        connection.cache_event_prefixes(request, method, begin_params(meta))
        return frame

    async def _send_event_with_credit(self, request: InboundRequest, method: str, params: bytes | None) -> None:
        while request.credit is not None and request.credit <= 0 and self._is_active(request):
            await self._wait_for_credit(request)
        if self.link.close_reason is None and not self._is_active(request):
            raise RequestCancelled  # the caller has left: without this error the handler would never notice
        await self.send_event(None if self.link.close_reason is not None else request, method, params)

    def _is_active(self, request: InboundRequest) -> bool:
        return not request.is_cancelled and request.state is not CLOSED

    def _wake_credit_waiters(self, request: InboundRequest) -> None:
        for waiter in self._credit_waiters.pop(request.key, ()):
            self.link.wake(waiter)

    async def _wait_for_credit(self, request: InboundRequest) -> None:
        """Waits for credit from the caller. Several tasks of one handler may wait; each checks again when woken."""
        waiter = self.link.loop.create_future()
        waiters = self._credit_waiters.setdefault(request.key, [])
        waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters and self._credit_waiters.get(request.key) is waiters:
                del self._credit_waiters[request.key]
            raise

    def send_progress(self, method: str, request: InboundRequest | None, value: object) -> Coroutine[Any, Any, None]:
        """Sends progress of a request."""
        form = self.link.progress
        if form is None:
            raise NotSupported("progress", f"the dialect {self.link.dialect.name} does not define it")
        if request is None:
            raise LocalProtocolError(f"{method} was received as a notification: it has no progress")
        if form.token_codec is not None:
            token = form.token_codec.extract_token(request.params)
            return (
                READY
                if token is None
                else self.send_event(request, form.method, form.token_codec.encode_params(token, value))
            )
        members = (encode_json(form.token), request.id, encode_json(form.value), encode_json(value))
        return self.send_event(request, form.method, b"{%b:%b,%b:%b}" % members)

    def _on_credit(self, notification: NotificationMessage) -> None:
        try:
            grant = msgspec.json.decode(notification.params or b"", type=CreditGrant)
            request = self.link.connection.requests.get(normalize_id(bytes(grant.id)))
        except JSON_ERRORS:
            return
        if request is not None and request.credit is not None and grant.n > 0:
            request.credit += grant.n
            self._wake_credit_waiters(request)

    # -- notifications

    def on_notification(self, notification: NotificationMessage) -> None:
        link = self.link
        method, params, owner = notification.method, notification.params, None
        if self._has_meta and params is not None:
            split = self._split_meta
            meta, rest = split(params, link.features)
            if meta is not None:
                params = rest
                if meta.parent is not None:
                    owner = encode_json(meta.parent)
        is_streamed = link.event_router.route(method, params, owner)
        if owner is not None and not is_streamed:
            self._return_credit(owner)
        handler = self._registry.get(method)
        if handler is None:
            if method == link.dialect.credit:
                self._on_credit(notification)
            return
        if is_streamed and handler.unless_streamed:
            return
        try:
            context = self._context(self, method, None, is_streamed=is_streamed) if handler.arity == 2 else None
            is_decided = self._find_policy_checker(handler) is None
            if is_decided and handler.requires is not None:
                self._check_notification(method, handler.requires)
            # where a plain function may wait, the next notification must not overtake it
            if handler.is_inline and is_decided and not self._is_draining and not self._is_reentrant:
                handler.invoke(params, context)
            else:
                self._enqueue_notification(handler, params, context)
        except BaseException as error:
            if not is_handler_error(error):
                raise
            self._log_failure(error, method)

    def _receives(self, method: str) -> bool:
        """Returns whether a notification goes to a handler as well as to a call."""
        handler = self._registry.get(method)
        return handler is not None and not handler.unless_streamed

    def _return_credit(self, owner: bytes) -> None:
        """Returns the credit of an event that its own call did not subscribe to."""
        call = self.link.connection.find_call(owner)
        if call is not None and call.stream is not None:
            call.stream.return_credit()

    def _check_notification(self, method: str, requires: str) -> None:
        """Raises PermissionDenied if a notification may not be handled. It never prompts: no caller waits for it."""
        if self.permissions is None or self.permissions.decide(method, requires) is not None:
            raise PermissionDenied(requires, method=method)

    def _find_policy_checker(self, handler: Handler) -> PermissionChecker | None:
        """Returns the checker if policies decide about a notification: they do in its turn, so that later ones do not
        overtake it."""
        checker = self.permissions
        return None if checker is None or handler.requires is None or not checker.consults() else checker

    def _enqueue_notification(self, handler: Handler, params: Raw | None, context: object) -> None:
        limits = self.link.limits
        # Decoded in its turn: until then it takes no more memory than its bytes, which are counted.
        # A custom type decodes on arrival: an adapter may pass the message on, and no later request may overtake it.
        arguments = handler.build_arguments(params, context) if handler.has_custom_params else None
        self._notifications.append((handler, params, context, arguments))
        self._notification_bytes += 0 if params is None else len(params)
        if len(self._notifications) > limits.notifications or self._notification_bytes > limits.notification_bytes:
            excess = f"{len(self._notifications)} notifications wait for their handlers"
            self.link.disconnect(ConnectionLost(DisconnectReason.REMOTE_VIOLATION, excess))
        elif not self._is_draining:
            self._is_draining = True
            self._drain_task = self.link.loop.spawn(self._drain_notifications())

    async def _drain_notifications(self) -> None:
        CURRENT_REQUEST.set(None)  # a notification belongs to no request, whatever was running when it arrived
        link = self.link
        until = thread_time() + link.limits.turn_seconds
        try:
            while self._notifications:
                if not self._is_reentrant and thread_time() > until:  # thousands may be queued behind one
                    await link.next_iteration()
                    until = thread_time() + link.limits.turn_seconds
                handler, params, context, arguments = self._notifications.popleft()
                self._notification_bytes -= 0 if params is None else len(params)
                try:
                    checker = self._find_policy_checker(handler)
                    if checker is not None and await checker.admit(handler.name, handler.requires) is not None:
                        raise PermissionDenied(handler.requires or handler.name, method=handler.name)
                    if arguments is None:
                        arguments = handler.build_arguments(params, context)
                    if handler.is_async:
                        await handler.function(*arguments)
                    elif handler.is_threaded:
                        await self.link.loop.run_in_thread(call_sync, handler.function, *arguments)
                    else:
                        began, used = monotonic(), thread_time()
                        call_sync(handler.function, *arguments)
                        link.loop.charge(thread_time() - used, monotonic() - began)
                except HANDLER_ERRORS as error:
                    self._log_failure(error, handler.name)
                except BaseException as error:
                    if not self.link.loop.is_foreign_cancellation(error):
                        raise
                    self._log_failure(error, handler.name)
        finally:
            self._is_draining = False

    def _log_failure(self, error: BaseException, method: str) -> None:
        if not is_caused_by_disconnect(self.link.close_reason, error):
            to_rpc_error(error, method)  # for the log: a notification has no response

    def close(self, requests: list[InboundRequest]) -> None:
        """Ends with the link: cancels what runs for these requests and drops what is queued."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self.permissions is not None:
            self.permissions.close()
        cancel = self.link.loop.cancel
        runners = [request.driver_state for request in requests]
        self._unfinished = [runner for runner in runners if isinstance(runner, RequestTask)]
        for runner in runners:
            if isinstance(runner, Deferred):
                runner.forget()  # its outcome may come long after the link, or never
        for runner in self._unfinished:
            if runner.is_thread:
                runner.acquire_start()  # a thread that has begun cannot be stopped; one that has not never begins
            elif runner.task is not None:
                cancel(runner.task)
        if self._drain_task is not None:
            cancel(self._drain_task)
        self._notifications.clear()
        for waiter in [waiter for waiters in self._credit_waiters.values() for waiter in waiters]:
            self.link.wake(waiter)
        self._credit_waiters.clear()


def run_in_worker(runner: RequestTask, handler: Handler, arguments: tuple[Any, ...]) -> Any:
    """Runs the function of a request, unless it was cancelled or its link has ended: then nothing is sent for it."""
    if not runner.acquire_start():
        return None
    runner.has_started = True
    runner.thread_id = get_ident()
    try:
        return call_sync(handler.function, *arguments)
    finally:
        runner.thread_id = 0
