"""Finds handlers and maps exceptions to error responses: the one exception-to-wire boundary.

The one boundary between exceptions and the wire. An error that was raised to be an answer is the answer; any other
exception is answered with a fixed sentence and an incident id that the log also bears, and nothing else of it leaves.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, cast

from becket._loggers import peer_logger
from becket.errors import (
    ConnectionLost,
    InvalidRequest,
    Meaning,
    MethodNotFound,
    NotPermitted,
    NotSent,
    NotSupported,
    RpcError,
    Unencodable,
)
from becket.methods.registry import Handler

__all__ = [
    "HANDLER_ERRORS",
    "call_sync",
    "find_handler",
    "interruption",
    "is_caused_by_disconnect",
    "is_handler_error",
    "log_internal_error",
    "log_late_error",
    "to_rpc_error",
]

HANDLER_ERRORS = (Exception, SystemExit)
"""What a function fails with. To leave the program is not for a function that serves somebody else: others wait too."""

LOCAL_CALL_ERRORS = (NotPermitted, NotSent)  # what a call of the handler's own can end with


def find_handler(get: Callable[[str], Handler | None], method: str, fallback: Handler | None = None) -> Handler:
    """Returns the handler of a request: `fallback` where the method has none of its own.

    Raises:
        MethodNotFound: there is none.
        InvalidRequest: the method is a notification, or its name cannot be one.
    """
    handler = get(method)
    if handler is None:
        # Checked only here: a name with a handler was chosen by the program.
        if not method.isprintable():
            raise InvalidRequest("the method's name holds characters that no name has")
        if fallback is not None:
            return fallback
        raise MethodNotFound(method)
    if handler.is_for_notifications:
        raise InvalidRequest(f"{method} is a notification: send it without an id")
    return handler


def to_rpc_error(error: BaseException, method: str) -> RpcError:
    """Returns the answer to a request whose handler ended with this error."""
    if isinstance(error, RpcError) and not isinstance(error, LOCAL_CALL_ERRORS):
        return error
    incident = os.urandom(6).hex()
    log_incident(error, method, incident)
    if isinstance(error, Unencodable):
        return RpcError(Meaning.INTERNAL, "internal error: the result has no JSON", {"incident": incident})
    if isinstance(error, NotSupported):  # such as memory on a link whose dialect has none: not a bug of the handler
        return RpcError(Meaning.NOT_SUPPORTED, f"not supported here: {error.what}", {"incident": incident})
    return RpcError(Meaning.INTERNAL, "internal error", {"incident": incident})


def interruption() -> RpcError:
    """Returns the response to a request whose handler was ended by an interruption of the program, such as Ctrl-C."""
    return RpcError(Meaning.INTERNAL, "internal error: the program was interrupted")


def is_handler_error(error: BaseException) -> bool:
    """Returns whether a plain function has failed with this. All but an interruption of the program itself is: nobody
    can cancel a plain function, so the cancellation that comes out of one is of something that it has run itself."""
    if isinstance(error, (*HANDLER_ERRORS, GeneratorExit)):
        return True
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def call_sync(function: Callable[..., Any], *arguments: object, **keywords: object) -> Any:
    """Calls a plain function for a coroutine: what comes out of it must not be taken for a cancellation of that one."""
    try:
        return function(*arguments, **keywords)
    except BaseException as error:
        if isinstance(error, HANDLER_ERRORS) or not is_handler_error(error):
            raise
        raise RuntimeError(f"a plain function ended with a {type(error).__name__}") from error


def is_caused_by_disconnect(lost: ConnectionLost | None, error: BaseException | None) -> bool:
    """Returns whether a function has failed only because its own link has ended: then nobody is left to be told."""
    if lost is None or error is None:
        return False
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(is_caused_by_disconnect(lost, each) for each in group.exceptions)
    return (type(error) is type(lost) and error.args == lost.args) or is_caused_by_disconnect(lost, error.__cause__)


def log_incident(error: BaseException, method: str, incident: str) -> None:
    """Writes down what the other side does not get to see."""
    peer_logger().error("incident %s: the handler of %r failed", incident, method, exc_info=error)


def log_late_error(error: BaseException, method: str) -> None:
    """Writes down how a function failed that had answered already."""
    peer_logger().error("the handler of %r failed after its answer", method, exc_info=error)


def log_internal_error(error: BaseException) -> None:
    """Writes down an error of becket itself: what runs on a link catches what users' code raises."""
    peer_logger().error("unexpected error on a link", exc_info=error)
