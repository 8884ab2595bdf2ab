"""Connects one Peer to one pygls server: messages in, responses and server calls out.

pygls finds the function for a message, calls it and converts params to objects. The peer owns the connection: frames
and limits, ids, cancellation, exactly one response to each request, calls to the client, closing. Messages enter pygls
through `structure_message` and `handle_message`, and leave it where it would write them to a stream. All use of pygls's
private API is in this file.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum
from functools import partial
from itertools import count
from threading import get_ident
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from msgspec import Raw
from pygls.exceptions import JsonRpcException

from becket._loggers import adapter_logger
from becket.conversion.custom_type import CustomType
from becket.conversion.problems import is_object
from becket.errors import (
    BecketError,
    InvalidParams,
    InvalidRequest,
    LocalProtocolError,
    Meaning,
    RemoteError,
    RpcError,
    Unencodable,
)
from becket.jsonrpc.json_values import encode_json
from becket.methods.descriptors import Method
from becket.peer.context import Context
from becket.peer.peer import Peer

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

__all__ = ["EXIT_NOT_SHUT_DOWN", "EXIT_SHUT_DOWN", "STOP_GRACE", "PyglsBridge"]

EXIT_SHUT_DOWN = 0
EXIT_NOT_SHUT_DOWN = 1  # the connection ended, or `exit` was received, without `shutdown`
STOP_GRACE = 5.0  # seconds for functions in threads after the connection has ended; a host kills after four
CLIENT_METHODS = {name for name in types.METHOD_TO_TYPES if types.message_direction(name) != "serverToClient"} - {
    types.CANCEL_REQUEST  # handled by the peer
}
METHODS_WITHOUT_PARAMS = {types.SHUTDOWN, types.EXIT}  # some clients send an empty object

logger = adapter_logger("lsp")


class LanguageServerState(Enum):
    """State of a language server; decides which messages it accepts."""

    NEW = "the client has not sent `initialize` yet"
    STARTING = "`initialize` has no response yet"
    READY = "it is at work"
    SHUT_DOWN = "the client has sent `shutdown`"


class PyglsBridge:
    """Connects one peer and one pygls server.

    Messages are passed to pygls on arrival and in order, so that a request never overtakes an earlier change of its
    document. This happens while the params of a request are decoded; its handler task only waits for the result."""

    def __init__(self, server: LanguageServer, peer: Peer) -> None:
        self.exit_code = EXIT_NOT_SHUT_DOWN
        self._server = server
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._state = LanguageServerState.NEW
        self._numbers = count(1)
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._queued_sends = 0  # calls and notifications of the server to be sent in the next loop iteration
        self._tasks: set[asyncio.Task[Any]] = set()
        self._client_pidfd = -1
        self._exit_timer: asyncio.TimerHandle | None = None
        protocol: Any = server.protocol  # its private members have no types
        protocol.set_writer(ClosingWriter(self.close_soon))
        protocol._send_data = self.send
        protocol._request_futures = FutureTable()
        self._protocol = protocol
        table: dict[str, Any] = dict(types.METHOD_TO_TYPES)
        for name in sorted(CLIENT_METHODS):
            if table[name][1] is None:
                peer.methods.on(name)(self._on_notification)
            else:
                peer.methods.handle(self._build_descriptor(name))(self._respond)
        self._add_features()

    def _build_descriptor(self, name: str) -> Method[Any, Any]:
        return Method(
            name, CustomType(Any, from_json=partial(self._on_request, name), to_json=lambda value: value), Any
        )

    def _add_features(self) -> None:
        """Registers custom methods of the server. It may add some at any time, usually in `initialize`."""
        for name in self._protocol.fm.features:
            if name not in self._peer.methods and name not in types.METHOD_TO_TYPES:
                self._peer.methods.handle(self._build_descriptor(name))(self._respond)

    # -- in

    def _on_request(self, method: str, params: Any) -> PyglsRequest:
        """Passes a request to pygls and returns the pending request."""
        self._check_state(method)
        id = f"becket-{next(self._numbers)}"
        message = self._structure(method, params, {"id": id})
        if method == types.INITIALIZE:
            self._state = LanguageServerState.STARTING
            self._watch_client(params)
        response = self._pending[id] = self._loop.create_future()
        pending = PyglsRequest(response, partial(self._cancel, id))
        self._protocol.handle_message(message)
        response.add_done_callback(partial(self._on_request_done, method, params))
        return pending

    async def _respond(self, pending: Any, ctx: Context) -> Any:
        """Responds with the result that pygls would have written; for a notification, does not wait for it."""
        if ctx.id is None:
            pending.is_awaited = True
            return None
        return await pending.wait()

    def _on_notification(self, params: Any, ctx: Context) -> None:
        """Passes a notification to pygls. Before `initialize` and after `shutdown` only `exit` is accepted."""
        is_exit = ctx.method == types.EXIT
        if is_exit:
            self._exit_timer = self._loop.call_later(STOP_GRACE, self.close_soon)  # even if its functions block
        if self._state is LanguageServerState.READY or is_exit:
            self._protocol.handle_message(self._structure(ctx.method, params, {}))
            self._add_features()

    def _structure(self, method: str, params: Any, id: dict[str, Any]) -> Any:
        """Returns a message as pygls expects it, with params converted by the server's own converter."""
        message = {
            "jsonrpc": "2.0",
            **id,
            "method": method,
            "params": None if method in METHODS_WITHOUT_PARAMS else params,
        }
        try:
            return self._protocol.structure_message(message)
        except JsonRpcException as error:
            from becket.adapters.lsp.conversion import find_problems, params_type

            found = find_problems(params, params_type(method)) if method in types.METHOD_TO_TYPES else []
            raise InvalidParams(found or [("", str(error.__cause__ or error))]) from error

    def _check_state(self, method: str) -> None:
        if method == types.INITIALIZE:
            if self._state is not LanguageServerState.NEW:
                raise InvalidRequest("`initialize` was sent already")
        elif self._state in (LanguageServerState.NEW, LanguageServerState.STARTING):
            raise RpcError(Meaning.NOT_READY, f"not ready: {self._state.value}")
        elif self._state is LanguageServerState.SHUT_DOWN:
            raise InvalidRequest(f"{LanguageServerState.SHUT_DOWN.value}: only `exit` may follow")

    def _on_request_done(self, method: str, params: Any, response: asyncio.Future[Any]) -> None:
        """Updates the state when a request is done."""
        has_succeeded = not response.cancelled() and response.exception() is None
        if method == types.INITIALIZE:
            self._state = LanguageServerState.READY if has_succeeded else LanguageServerState.NEW
            if not has_succeeded:
                self._unwatch_client()
        elif method == types.SHUTDOWN and has_succeeded:
            self._state = LanguageServerState.SHUT_DOWN
            self.exit_code = EXIT_SHUT_DOWN
        self._add_features()

    def _cancel(self, id: str) -> None:
        """Cancels the function of a request whose result is no longer needed."""
        if self._pending.pop(id, None) is not None and id in self._protocol._request_futures:
            self._protocol.handle_message(types.CancelNotification(types.CancelParams(id)))

    # -- out

    def send(self, message: Any) -> None:
        """Sends a message that pygls would have written to its stream. Called from any thread."""
        if get_ident() == self._thread:
            self._send(message)
            return
        try:
            self._loop.call_soon_threadsafe(self._send, message)
        except RuntimeError:
            pass  # the loop is closed, and so is the connection

    def _send(self, message: Any) -> None:
        if not hasattr(message, "method"):
            self._resolve_request(message)
        elif self._peer.is_closed:
            self._fail_call(getattr(message, "id", None))
        elif hasattr(message, "id"):
            self._queued_sends += 1
            self._spawn(self._call(message))
        elif self._queued_sends:  # must not overtake an earlier call
            self._queued_sends += 1
            self._loop.call_soon(self._notify_in_order, message)
        else:
            self._notify(message)

    def _notify_in_order(self, message: Any) -> None:
        self._queued_sends -= 1
        self._notify(message)

    def _notify(self, message: Any) -> None:
        try:
            self._peer.notify_nowait(message.method, self._encode(message, "params"))
        except BecketError as error:
            logger.warning("%s: `%s` was not sent: %s", self._server.name, message.method, error)

    def _resolve_request(self, message: Any) -> None:
        """Resolves a pending request with pygls's response; ignores a second response, or one after cancellation."""
        response = self._pending.pop(message.id, None)
        if response is None or response.done():
            return
        error = getattr(message, "error", None)
        if error is not None:
            response.set_exception(RpcError(error.code, error.message, strip_traceback(error.data)))
            return
        try:
            response.set_result(self._encode(message, "result"))
        except Exception as failure:
            response.set_exception(failure)

    def _encode(self, message: Any, member: str) -> Raw | None:
        """Returns a member of a message as JSON, encoded with the server's own converter; None if it is absent.

        Raises:
            Unencodable: it cannot be encoded.
        """
        value = self._protocol._converter.unstructure(message).get(member)
        if value is None:
            return None
        try:
            return Raw(encode_json(value))
        except Unencodable:  # pygls encodes any object with attributes
            try:
                return Raw(json.dumps(value, default=self._protocol._serialize_message, allow_nan=False).encode())
            except (AttributeError, TypeError, ValueError, RecursionError) as error:
                raise Unencodable(f"no JSON for this {type(value).__name__}: {error}") from error

    async def _call(self, message: Any) -> None:
        """Sends a call of the server to the client; its outcome goes to the future that pygls has returned."""
        self._queued_sends -= 1
        id, method = message.id, message.method
        future: Future[Any] | None = self._protocol._request_futures.get(id)
        if future is None:
            return  # already cancelled
        task = asyncio.current_task()

        def give_up(done: Future[Any]) -> None:
            if done.cancelled() and task is not None:
                self._loop.call_soon_threadsafe(task.cancel)

        future.add_done_callback(give_up)
        try:
            # No timeout, because the client may prompt its user; the end of the connection or the server ends the call.
            result = await self._peer.call(method, self._encode(message, "params"), timeout=None)
            message = self._protocol.structure_message({"jsonrpc": "2.0", "id": id, "result": result})
        except RemoteError as error:
            response_error = types.ResponseError(error.code, error.message, error.data)
            message = types.ResponseErrorMessage(error=response_error, id=id)
        except Exception as error:
            self._fail_call(id, error)
            return
        finally:
            self._protocol._result_types.pop(id, None)
        self._protocol.handle_message(message)

    def _fail_call(self, id: Any, error: Exception | None = None) -> None:
        """Fails a call of the server that will get no response."""
        future: Future[Any] | None = self._protocol._request_futures.pop(id, None)
        if future is not None and not future.done():
            future.set_exception(error or self._peer.close_reason or LocalProtocolError("the call was not sent"))

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- closing

    def close_soon(self) -> None:
        """Closes the connection; callable from a function of the server or a loop callback."""
        if not self._peer.is_closed:
            self._spawn(self._peer.aclose())

    def _watch_client(self, params: Any) -> None:
        """Closes the connection when the client's process exits, even if another process holds its pipe open.

        Called before `initialize` is handled: later, an exited process looks like one on another machine."""
        pid: Any = params.get("processId")
        if not isinstance(pid, int) or pid <= 1 or pid == os.getpid() or not hasattr(os, "pidfd_open"):
            return
        try:
            self._client_pidfd = os.pidfd_open(pid)
        except (OSError, OverflowError):  # not on this machine or in this container: only the pipe shows its end
            return
        self._loop.add_reader(self._client_pidfd, self._on_client_exit)

    def _on_client_exit(self) -> None:
        self._unwatch_client()
        self.close_soon()

    def _unwatch_client(self) -> None:
        if self._client_pidfd >= 0:
            self._loop.remove_reader(self._client_pidfd)
            os.close(self._client_pidfd)
            self._client_pidfd = -1

    async def aclose(self) -> None:
        """Cancels everything that runs for the client, and waits up to `STOP_GRACE` for functions in threads."""
        self._unwatch_client()
        if self._exit_timer is not None:
            self._exit_timer.cancel()
        futures: list[Future[Any]] = list(self._protocol._request_futures.values())
        for future in futures:
            future.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *filter(asyncio.isfuture, futures), return_exceptions=True)
        try:
            await asyncio.wait_for(asyncio.to_thread(self._server.shutdown), STOP_GRACE)
        except TimeoutError:
            logger.warning("%s: a function in a thread did not return within %g s", self._server.name, STOP_GRACE)


class PyglsRequest:
    """A request that pygls is handling."""

    __slots__ = ("_cancel", "_response", "is_awaited")

    def __init__(self, response: asyncio.Future[Any], cancel: Callable[[], None]) -> None:
        self._response = response
        self._cancel = cancel
        self.is_awaited = False

    async def wait(self) -> Any:
        """Returns the result."""
        self.is_awaited = True
        try:
            return await self._response
        except asyncio.CancelledError:
            self._cancel()
            raise

    def __del__(self) -> None:
        if not self.is_awaited:  # cancelled before its handler ran
            self._cancel()


class ClosingWriter:
    """Replaces the stream that pygls writes to. A server closes it to end the connection."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._close = end

    def write(self, data: bytes) -> None:
        raise LocalProtocolError("messages of this server are sent by its peer, not written")

    def close(self) -> asyncio.Future[None]:
        """Closes the connection. Returns a future that is never done, because pygls exits the program when it is."""
        self._close()
        return asyncio.get_running_loop().create_future()


class FutureTable(dict[Any, Any]):
    """Pending futures of pygls by id. pygls leaks some of them; here each is removed when it is done."""

    def __setitem__(self, id: Any, future: Any) -> None:
        super().__setitem__(id, future)

        def forget(_: object) -> None:
            if self.get(id) is future:
                del self[id]

        future.add_done_callback(forget)

    def items(self) -> Any:
        """Returns a copy: pygls cancels futures while it iterates, which removes them."""
        return list(super().items())


def strip_traceback(data: Any) -> Any:
    """Returns the data of an error, or None if it is a traceback of pygls, which is in the log."""
    return None if is_object(data) and "traceback" in data else data
