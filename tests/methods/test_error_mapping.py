"""The result or exception of a handler becomes a response, and nothing else of it is sent."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from typing import Any

import pytest
from msgspec import Struct

from becket import Context, Peer
from becket.errors import (
    Busy,
    CallTimeout,
    ConnectionLost,
    DisconnectReason,
    InvalidParams,
    InvalidRequest,
    LocalProtocolError,
    Meaning,
    MethodNotFound,
    NotSent,
    NotSupported,
    PeerCrashed,
    PermissionDenied,
    RemoteError,
    RequestCancelled,
    RpcError,
)
from becket.limits import Limits
from becket.methods.error_mapping import find_handler, is_caused_by_disconnect, to_rpc_error
from becket.methods.registry import Registry
from becket.testing import MemoryTransport

CANARY = "s3cret-canary"


# -- which handler


def registry() -> Registry:
    methods = Registry()
    methods.handle("echo")(lambda params: params)
    methods.on("tick")(lambda params: None)
    return methods


def test_a_request_finds_its_handler() -> None:
    assert find_handler(registry().get, "echo").name == "echo"


@pytest.mark.parametrize("method", ["Echo", "echo ", "ech", "rpc.discover", "$/unknown", "x" * 1024, "é"])
def test_an_unknown_method_is_not_found(method: str) -> None:
    with pytest.raises(MethodNotFound) as caught:
        find_handler(registry().get, method)
    assert caught.value.method == method


@pytest.mark.parametrize("method", ["ec\x00ho", "echo\n", "\x1b[2J", "ec\u202eho", "\u2066echo", "\ud800", "a\u2028b"])
def test_a_name_of_characters_that_no_name_has_is_refused_without_repeating_it(method: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        find_handler(registry().get, method)
    assert caught.value.message.isprintable()
    assert method not in caught.value.message


def test_a_notification_that_comes_as_a_request_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        find_handler(registry().get, "tick")
    assert "tick" in caught.value.message


# -- what an exception becomes


@pytest.mark.parametrize(
    "error",
    [
        RpcError(5, "five", {"a": 1}),
        RpcError(Meaning.QUOTA),
        InvalidParams([("/a", "is missing")]),
        PermissionDenied("memory.read"),
        MethodNotFound("m"),
        Busy("calls", 5),
        RequestCancelled(),
    ],
)
def test_an_error_that_was_raised_to_be_the_response_is_the_response(
    error: RpcError, caplog: pytest.LogCaptureFixture
) -> None:
    assert to_rpc_error(error, "m") is error
    assert caplog.records == []


@pytest.mark.parametrize(
    "error",
    [
        ValueError(CANARY),
        KeyError(CANARY),
        OSError(2, CANARY),
        NotSent(CANARY, 5),
        RemoteError(method=CANARY, code=-32001, message=CANARY, data={"secret": CANARY}, meaning=Meaning.BUSY),
        CallTimeout(CANARY, 1.0),
        ConnectionLost(DisconnectReason.PROCESS_EXIT, CANARY),
        LocalProtocolError(CANARY),
        ExceptionGroup(CANARY, [RpcError(5, CANARY)]),
        AssertionError(CANARY),
        RecursionError(CANARY),
    ],
)
def test_any_other_exception_is_an_internal_error_with_an_incident_that_the_log_has_too(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    response = to_rpc_error(error, "notes/add")
    assert response.meaning is Meaning.INTERNAL
    assert CANARY not in f"{response.message} {response.data}"
    assert isinstance(response.data, dict)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("becket.peer", logging.ERROR)
    assert response.data["incident"] in record.getMessage()
    assert "notes/add" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_a_handler_that_needs_what_its_link_does_not_have_responds_not_supported() -> None:
    response = to_rpc_error(NotSupported("`memory.query`", CANARY), "notes/add")

    assert (response.meaning, response.message) == (Meaning.NOT_SUPPORTED, "not supported here: `memory.query`")
    assert CANARY not in str(response.data)


def test_no_two_incidents_are_the_same() -> None:
    incidents = {str(to_rpc_error(ValueError(), "m").data) for _ in range(50)}
    assert len(incidents) == 50


def test_the_log_line_cannot_be_forged_by_the_name_of_a_method(caplog: pytest.LogCaptureFixture) -> None:
    to_rpc_error(ValueError(), "m\nERROR forged \x1b[31m")
    assert caplog.records[0].getMessage().isprintable()


# -- on the wire


class Tap(MemoryTransport):
    """A transport that records what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = b""

    def accept(self, data: bytes) -> None:
        self.seen += data
        super().accept(data)


@asynccontextmanager
async def tapped_pair(**limits: int) -> AsyncIterator[tuple[Peer, Peer, Tap]]:
    """Yields a caller, a server, and the wire of the responses."""
    left, right = Tap(), Tap()
    left.other, right.other = right, left
    chosen = Limits().but(**limits)
    async with Peer.over(left, limits=chosen) as caller, Peer.over(right, limits=chosen) as server:
        yield caller, server, left


class Nested(Struct):
    items: list[int]


async def failure_of(caller: Peer, method: str = "m", params: object = None) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        await caller.call(method, params, timeout=5)
    return caught.value


@pytest.mark.parametrize("kind", ["plain", "async", "thread"])
async def test_nothing_of_an_unknown_exception_reaches_the_wire(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async with tapped_pair() as (caller, server, wire):

        def fail(params: Any) -> None:
            secret = CANARY
            raise ValueError(f"about {secret}")

        async def fail_later(params: Any) -> None:
            fail(params)

        server.handle("m", thread=kind == "thread")(fail_later if kind == "async" else fail)
        error = await failure_of(caller, "m", {"a": 1})

    assert (error.code, error.message) == (-32603, "internal error")
    assert CANARY.encode() not in wire.seen
    assert b"ValueError" not in wire.seen
    assert b"Traceback" not in wire.seen
    assert error.data["incident"] in caplog.text  # type: ignore[index]
    assert CANARY in caplog.text


async def test_a_failure_further_in_does_not_look_like_the_handlers_own(caplog: pytest.LogCaptureFixture) -> None:
    async with tapped_pair() as (caller, server, wire):

        @server.handle("outer")
        async def outer(params: Any) -> Any:
            return await server.call("inner", timeout=5)

        @caller.handle("inner")
        def inner(params: Any) -> None:
            raise RpcError(-32001, CANARY, {"secret": CANARY})

        error = await failure_of(caller, "outer")

    assert (error.code, error.message) == (-32603, "internal error")
    assert CANARY.encode() not in wire.seen
    assert "RemoteError" in caplog.text


async def test_an_error_that_a_handler_raises_is_its_response() -> None:
    async with tapped_pair() as (caller, server, _):

        @server.handle("m")
        def refuse(params: Any) -> None:
            raise RpcError(0, "zero", [1])

        error = await failure_of(caller)
    assert (error.code, error.message, error.data) == (0, "zero", [1])


async def test_wrong_params_get_responses_with_every_problem() -> None:
    async with tapped_pair() as (caller, server, _):

        @server.handle("m")
        def take(params: Nested) -> None:
            raise AssertionError

        error = await failure_of(caller, "m", {"items": [1, "a", None]})
    assert error.meaning is Meaning.INVALID_PARAMS
    assert [problem["pointer"] for problem in error.data["problems"]] == ["/items/1", "/items/2"]  # type: ignore[index]


@pytest.mark.parametrize("result", [object(), {"a": float("nan")}, "\ud800", {1: object()}, [float("inf")]])
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_result_without_json_is_an_internal_error(
    result: object, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with tapped_pair() as (caller, server, _):

        def give(params: Any) -> object:
            return result

        async def give_later(params: Any) -> object:
            return result

        server.handle("m")(give_later if kind == "async" else give)
        error = await failure_of(caller)
        assert error.meaning is Meaning.INTERNAL
        assert error.data["incident"] in caplog.text  # type: ignore[index]


async def test_a_circle_is_an_internal_error_too() -> None:
    circle: list[Any] = []
    circle.append(circle)
    async with tapped_pair() as (caller, server, _):
        server.handle("m")(lambda params: circle)
        assert (await failure_of(caller)).meaning is Meaning.INTERNAL


async def test_a_result_that_is_too_large_becomes_an_error_and_the_link_lives() -> None:
    async with tapped_pair(frame=1_000) as (caller, server, wire):
        server.handle("huge")(lambda params: "x" * 2_000)
        server.handle("small")(lambda params: 1)
        assert (await failure_of(caller, "huge")).meaning is Meaning.TOO_LARGE
        assert await caller.call("small", timeout=5) == 1
        assert len(wire.seen) < 1_000


async def test_a_result_that_is_changed_later_was_sent_as_it_was() -> None:
    kept = {"n": [1]}
    async with tapped_pair() as (caller, server, _):

        @server.handle("m")
        def give(params: Any) -> Any:
            return kept

        @server.on("change")
        def change(params: Any) -> None:
            kept["n"].append(2)

        caller.notify_nowait("m")  # nothing is sent back, and nothing breaks
        first = caller.call("m", timeout=5)
        result = await first
        await caller.notify("change")
        assert result == {"n": [1]}
        assert await caller.call("m", timeout=5) == {"n": [1, 2]}


async def test_details_that_have_no_json_do_not_hide_the_number() -> None:
    async with tapped_pair() as (caller, server, _):

        @server.handle("m")
        def refuse(params: Any) -> None:
            raise RpcError(42, "text", object())

        assert (await failure_of(caller)).code == 42


async def test_a_notification_handler_that_fails_is_logged_and_gets_no_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with tapped_pair() as (caller, server, wire):

        @server.on("tick")
        def fail(params: Any) -> None:
            raise ValueError(CANARY)

        server.handle("echo")(lambda params: params)
        await caller.notify("tick", {})
        await caller.call("echo", timeout=5)
        assert wire.seen.count(b"Content-Length") == 1
    assert CANARY in caplog.text


async def test_a_handler_that_fails_after_its_response_is_logged_and_sends_no_second_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with tapped_pair() as (caller, server, wire):

        @server.handle("m")
        async def fail(params: Any, ctx: Context) -> None:
            ctx.respond("accepted")
            raise RpcError(42, CANARY)

        server.handle("echo")(lambda params: params)
        assert await caller.call("m", timeout=5) == "accepted"
        await caller.call("echo", timeout=5)
        assert wire.seen.count(b"Content-Length") == 2
    assert CANARY.encode() not in wire.seen
    assert CANARY in caplog.text


# -- failures that are the end of the link


def caused(cause: BaseException) -> RuntimeError:
    error = RuntimeError("it did not work")
    error.__cause__ = cause
    return error


LOST = ConnectionLost(DisconnectReason.REMOTE_CLOSE, "good bye")


@pytest.mark.parametrize(
    "error",
    [
        LOST,
        copy(LOST),
        caused(LOST),
        caused(caused(copy(LOST))),
        ExceptionGroup("tasks", [LOST]),
        ExceptionGroup("tasks", [copy(LOST), ExceptionGroup("more", [caused(LOST), copy(LOST)])]),
    ],
)
def test_a_failure_caused_by_the_end_of_the_link_is_recognised(error: BaseException) -> None:
    assert is_caused_by_disconnect(LOST, error)
    assert not is_caused_by_disconnect(None, error)  # the link lives: it is the end of another one


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("own"),
        ConnectionLost(DisconnectReason.REMOTE_CLOSE),
        ConnectionLost(DisconnectReason.LOCAL_CLOSE, "good bye"),
        PeerCrashed(exit_code=1),
        ExceptionGroup("tasks", [LOST, RuntimeError("own")]),
        caused(RuntimeError("own")),
    ],
)
def test_any_other_exception_does_not_reach_the_link(error: BaseException) -> None:
    assert not is_caused_by_disconnect(LOST, error)


def test_a_failure_while_the_end_is_handled_is_its_own_failure() -> None:
    error = KeyError("name")
    error.__context__ = copy(LOST)
    assert not is_caused_by_disconnect(LOST, error)
