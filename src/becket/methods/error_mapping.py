"""Finds handlers, and maps exceptions to error responses: `to_rpc_error` is the one place that does.

An `RpcError` is sent as it is. Of any other exception only a fixed sentence and an incident id are sent; the log has
the exception under that id.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

from becket._loggers import log_incident, peer_logger
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
"""Exceptions that fail a handler. SystemExit is one: a handler must not end the program, which serves others too."""

LOCAL_CALL_ERRORS = (NotPermitted, NotSent)  # errors of calls that the handler itself made


def find_handler(get: Callable[[str], Handler | None], method: str, fallback: Handler | None = None) -> Handler:
    """Returns the handler of a request, `fallback` if the method has none.

    Raises:
        MethodNotFound: there is none.
        InvalidRequest: the method is a notification, or its name is not printable.
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
    """Returns the error response to a request whose handler raised this."""
    if isinstance(error, RpcError) and not isinstance(error, LOCAL_CALL_ERRORS):
        return error
    incident = log_incident(peer_logger(), f"the handler of {method!r} failed", error)
    if isinstance(error, Unencodable):
        return RpcError(Meaning.INTERNAL, "internal error: the result has no JSON", {"incident": incident})
    if isinstance(error, NotSupported):  # such as memory on a link whose dialect has none: not a bug of the handler
        return RpcError(Meaning.NOT_SUPPORTED, f"not supported here: {error.what}", {"incident": incident})
    return RpcError(Meaning.INTERNAL, "internal error", {"incident": incident})


def interruption() -> RpcError:
    """Returns the response to a request whose handler was ended by an interruption of the program, such as Ctrl-C."""
    return RpcError(Meaning.INTERNAL, "internal error: the program was interrupted")


def is_handler_error(error: BaseException) -> bool:
    """Returns whether a plain function has failed with this; only an interruption of the program is none.

    A plain function cannot be cancelled, so a cancellation from it belongs to something that it ran itself."""
    if isinstance(error, (*HANDLER_ERRORS, GeneratorExit)):
        return True
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def call_sync(function: Callable[..., Any], *arguments: object, **keywords: object) -> Any:
    """Calls a plain function from a coroutine, whose cancellation its exceptions must not be taken for."""
    try:
        return function(*arguments, **keywords)
    except BaseException as error:
        if isinstance(error, HANDLER_ERRORS) or not is_handler_error(error):
            raise
        raise RuntimeError(f"a plain function ended with a {type(error).__name__}") from error


def is_caused_by_disconnect(lost: ConnectionLost | None, error: BaseException | None) -> bool:
    """Returns whether a function has failed only because its own link has ended."""
    if lost is None or error is None:
        return False
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(is_caused_by_disconnect(lost, each) for each in group.exceptions)
    return (type(error) is type(lost) and error.args == lost.args) or is_caused_by_disconnect(lost, error.__cause__)


def log_late_error(error: BaseException, method: str) -> None:
    """Logs an exception of a handler that has responded already."""
    peer_logger().error("the handler of %r failed after its response", method, exc_info=error)


def log_internal_error(error: BaseException) -> None:
    """Logs an error of becket itself."""
    peer_logger().error("unexpected error on a link", exc_info=error)
