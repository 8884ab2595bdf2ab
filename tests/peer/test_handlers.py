"""The forms of a handler, its arguments, and its results and exceptions."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from msgspec import Struct
from tests.peer.scripted import frame, notification, request, scripted, settled

from becket import ConnectionLost, Context, InvalidParams, Meaning, Peer, Registry, RemoteError, RpcError
from becket.errors import LocalProtocolError
from becket.testing import memory_pair, memory_transports

pytestmark = pytest.mark.loops


class Point(Struct):
    x: int
    y: int = 0


class Exact(Struct, forbid_unknown_fields=True):
    x: int


@dataclass
class Line:
    start: int
    end: int


class Named(TypedDict):
    name: str


# -- shapes


def add(params: dict[str, int]) -> int:
    return params["a"] + params["b"]


async def add_async(params: dict[str, int]) -> int:
    await anyio.lowlevel.checkpoint()
    return params["a"] + params["b"]


async def add_without_waiting(params: dict[str, int]) -> int:
    return params["a"] + params["b"]


@pytest.mark.parametrize(
    ("function", "thread"),
    [(add, False), (add, True), (add_async, False), (add_without_waiting, False)],
    ids=["plain", "in a thread", "async", "async that never waits"],
)
async def test_a_handler_may_be_plain_in_a_thread_or_async(function: Callable[..., Any], thread: bool) -> None:
    async with memory_pair() as (left, right):
        right.handle("add", thread=thread)(function)

        with anyio.fail_after(60):
            assert await left.call("add", {"a": 2, "b": 3}) == 5


@pytest.mark.parametrize("kind", ["plain", "async", "thread"])
@pytest.mark.parametrize("arity", [0, 1, 2])
async def test_a_handler_takes_nothing_the_params_or_the_params_and_the_context(kind: str, arity: int) -> None:
    seen: list[tuple[Any, ...]] = []

    def build() -> Callable[..., Any]:
        if kind == "async":

            async def none_async() -> None:
                seen.append(())

            async def one_async(params: Any) -> None:
                seen.append((params,))

            async def two_async(params: Any, ctx: Context) -> None:
                seen.append((params, ctx.method))

            return (none_async, one_async, two_async)[arity]

        def none() -> None:
            seen.append(())

        def one(params: Any) -> None:
            seen.append((params,))

        def two(params: Any, ctx: Context) -> None:
            seen.append((params, ctx.method))

        return (none, one, two)[arity]

    async with memory_pair() as (left, right):
        right.handle("x", thread=kind == "thread")(build())
        with anyio.fail_after(60):
            assert await left.call("x", None if arity == 0 else [1]) is None

    assert seen == [((), ([1],), ([1], "x"))[arity]]


@pytest.mark.parametrize("dialect", ["plain", "native"])
async def test_a_handler_without_params_takes_an_empty_object_and_refuses_any_other(dialect: str) -> None:
    async with memory_pair(dialect=dialect) as (left, right):
        right.handle("x")(lambda: "fine")

        assert await left.call("x") == "fine"
        assert await left.call("x", {}) == "fine"
        assert await left.call("x", []) == "fine"
        for params in ({"a": 1}, [1]):
            with pytest.raises(RemoteError) as caught:
                await left.call("x", params)
            assert caught.value.meaning is Meaning.INVALID_PARAMS


@pytest.mark.parametrize("dialect", ["plain", "native"])
async def test_params_arrive_unchanged(dialect: str) -> None:
    given: list[Any] = [{"a": 1}, {}, [1, 2], [], {"_meta": {"mine": 1}, "a": 2}, {"_meta": 3}]
    async with memory_pair(dialect=dialect) as (left, right):
        right.handle("echo")(lambda params: params)
        right.handle("exact")(exact)

        assert [await left.call("echo", params) for params in given if params] == [params for params in given if params]
        assert await left.call("exact", {"x": 3}) == 3


def exact(params: Exact) -> int:
    return params.x


@pytest.mark.parametrize("kind", ["plain", "async", "thread"])
async def test_the_annotation_of_params_is_decoded_strictly_and_all_problems_are_reported(kind: str) -> None:
    async with memory_pair() as (left, right):

        def norm(params: Point) -> int:
            return params.x + params.y

        async def norm_async(params: Point) -> int:
            return params.x + params.y

        right.handle("norm", thread=kind == "thread")(norm_async if kind == "async" else norm)
        with anyio.fail_after(60):
            assert await left.call("norm", {"x": 3}) == 3
            assert await left.call("norm", {"x": 3, "y": 4, "more": True}) == 7
            with pytest.raises(RemoteError) as caught:
                await left.call("norm", {"x": "3", "y": None})

    assert caught.value.meaning is Meaning.INVALID_PARAMS
    assert sorted(problem["pointer"] for problem in caught.value.data["problems"]) == ["/x", "/y"]  # type: ignore[call-overload]


async def test_params_may_be_a_dataclass_a_typed_dict_or_a_list() -> None:
    async with memory_pair() as (left, right):

        @right.handle("line")
        def line(params: Line) -> int:
            assert isinstance(params, Line)
            return params.end - params.start

        @right.handle("named")
        def named(params: Named) -> str:
            return params["name"]

        @right.handle("all")
        def total(params: list[int]) -> int:
            return sum(params)

        assert await left.call("line", Line(2, 5)) == 3
        assert await left.call("named", {"name": "n"}) == "n"
        assert await left.call("all", [1, 2, 3]) == 6
        for method, params in (("line", {"start": 1}), ("named", {"name": 1}), ("all", ["1"])):
            with pytest.raises(RemoteError) as caught:
                await left.call(method, params)
            assert caught.value.meaning is Meaning.INVALID_PARAMS


async def test_a_method_of_an_object_and_an_object_that_can_be_called_are_handlers_too() -> None:
    class Counter:
        count = 0

        def increase(self, params: dict[str, int]) -> int:
            self.count += params["by"]
            return self.count

        async def __call__(self) -> int:
            return self.count

    counter = Counter()
    async with memory_pair() as (left, right):
        right.handle("increase")(counter.increase)
        right.handle("count")(Counter.__call__.__get__(counter))

        assert await left.call("increase", {"by": 2}) == 2
        assert await left.call("count") == 2


# -- in time


async def test_handlers_registered_before_the_first_await_of_the_block_get_the_first_byte() -> None:
    one, _ = memory_transports()
    one.accept(frame(request(1, "early")))
    served = anyio.Event()
    async with Peer.over(one) as peer:

        @peer.handle("early")
        def early() -> None:
            served.set()

        with anyio.fail_after(60):
            await served.wait()


async def test_a_handler_may_be_registered_later_and_removed_again() -> None:
    async with memory_pair() as (left, right):
        with pytest.raises(RemoteError):
            await left.call("x")
        right.handle("x")(lambda: 1)
        assert await left.call("x") == 1
        right.methods.remove("x")
        with pytest.raises(RemoteError) as caught:
            await left.call("x")

    assert caught.value.meaning is Meaning.UNKNOWN_METHOD


async def test_one_registry_serves_many_peers_at_once_and_the_context_has_the_peer() -> None:
    methods = Registry()
    everybody = anyio.Event()
    requested: set[Peer] = set()

    @methods.handle("meet")
    async def meet(_: Any, ctx: Context) -> str:
        requested.add(ctx.peer)
        if len(requested) == 6:
            everybody.set()
        await everybody.wait()
        return ctx.peer.name

    async with (
        memory_pair(methods=methods, name="a") as (a, b),
        memory_pair(methods=methods, name="b") as (c, d),
        memory_pair(methods=methods, name="c") as (e, f),
        anyio.create_task_group() as tasks,
    ):
        with anyio.fail_after(60):
            for peer in (a, b, c, d, e, f):
                tasks.start_soon(peer.call, "meet")
            await everybody.wait()

    assert requested == {a, b, c, d, e, f}


# -- errors


@pytest.mark.parametrize("kind", ["plain", "async", "thread"])
async def test_an_unknown_exception_leaks_nothing_but_an_incident_id_that_the_log_has_too(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise KeyError("the password is swordfish")

    async def fail_async() -> None:
        fail()

    async with memory_pair() as (left, right):
        right.handle("fail", thread=kind == "thread")(fail_async if kind == "async" else fail)
        with caplog.at_level(logging.ERROR, "becket.peer"), anyio.fail_after(60), pytest.raises(RemoteError) as caught:
            await left.call("fail")

    error = caught.value
    assert (error.code, error.message) == (-32603, "internal error")
    assert set(error.data) == {"incident"}  # type: ignore[call-overload]
    [record] = [record for record in caplog.records if record.name == "becket.peer"]
    assert error.data["incident"] in record.getMessage()  # type: ignore[index]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)


@pytest.mark.parametrize("kind", ["plain", "async", "thread"])
@pytest.mark.parametrize("result", [object(), {1, object()}, float("nan"), [float("-inf")], {"a": {"b": object()}}])
async def test_a_result_that_json_cannot_encode_is_an_internal_error(kind: str, result: object) -> None:
    async def get_async() -> object:
        return result

    async with memory_pair() as (left, right):
        right.handle("get", thread=kind == "thread")(get_async if kind == "async" else lambda: result)
        right.handle("next")(lambda: "fine")
        with anyio.fail_after(60), pytest.raises(RemoteError) as caught:
            await left.call("get")
        assert caught.value.meaning is Meaning.INTERNAL
        assert await left.call("next") == "fine"


async def test_error_data_that_json_cannot_encode_does_not_hide_the_number() -> None:
    async with memory_pair() as (left, right):

        @right.handle("fail")
        def fail() -> None:
            raise RpcError(7, "message", object())

        with pytest.raises(RemoteError) as caught:
            await left.call("fail")

    assert (caught.value.code, caught.value.data) == (7, None)


async def test_a_handler_may_refuse_its_params_itself() -> None:
    async with memory_pair() as (left, right):

        @right.handle("even")
        async def even(params: list[int]) -> int:
            if params[0] % 2:
                raise InvalidParams([("/0", "must be even")])
            return params[0]

        assert await left.call("even", [2]) == 2
        with pytest.raises(RemoteError) as caught:
            await left.call("even", [3])

    assert caught.value.data == {"problems": [{"pointer": "/0", "message": "must be even"}]}


async def test_a_result_that_is_changed_after_it_was_returned_was_sent_as_it_was() -> None:
    state = [1]
    async with memory_pair() as (left, right):

        @right.handle("get")
        def get() -> list[int]:
            return state

        results: list[object] = []

        async def call() -> None:
            results.append(await left.call("get"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            tasks.start_soon(call)
        state.append(2)

    assert results == [[1], [1]]


# -- requests and notifications


async def test_a_notification_never_gets_a_response_whatever_its_outcome(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted() as (peer, script):
        received: list[Any] = []

        @peer.handle("request")
        def serve(params: Any) -> str:
            received.append(params)
            return "an answer to nobody"

        @peer.on("fails")
        def fail() -> None:
            received.append("failed")
            raise RpcError(Meaning.BUSY)

        @peer.on("typed")
        def typed(params: Point) -> None:
            received.append("unreachable")

        with caplog.at_level(logging.CRITICAL, "becket.peer"):
            script.send(
                notification("request", [1]),
                notification("missing"),
                notification("fails"),
                notification("typed", {"x": "1"}),
                notification("request", {"a": 2}),
            )
        await settled()

        assert received == [[1], "failed", {"a": 2}]
        assert script.unread() == []


async def test_a_request_to_a_notification_handler_is_refused() -> None:
    async with scripted() as (peer, script):
        peer.on("told")(lambda: pytest.fail("it was run"))
        script.send(request(1, "told"))

        assert (await script.receive())["error"]["code"] == -32600


async def test_the_context_of_a_notification_cannot_report() -> None:
    seen: list[Any] = []
    done = anyio.Event()
    async with memory_pair() as (left, right):

        @right.on("told")
        async def on_notification(params: Any, ctx: Context) -> None:
            seen.extend((ctx.id, ctx.deadline, ctx.is_cancelled, ctx.peer, ctx.method))
            try:
                await ctx.progress(1)
            except LocalProtocolError:
                seen.append("refused")
            done.set()

        with anyio.fail_after(60):
            await left.notify("told", [])
            await done.wait()

    assert seen == [None, float("inf"), False, right, "told", "refused"]


@pytest.mark.parametrize("id", [0, -1, 7.5, "a", "", 2**60])
async def test_the_context_has_the_id_of_the_request(id: object) -> None:
    async with scripted() as (peer, script):

        @peer.handle("id")
        def on_notification(_: Any, ctx: Context) -> object:
            return ctx.id

        script.send(request(id, "id"))

        assert await script.receive() == {"jsonrpc": "2.0", "id": id, "result": id}


# -- threads


async def test_a_function_in_a_thread_does_not_hold_up_the_link() -> None:
    release = threading.Event()
    async with memory_pair() as (left, right):

        @right.handle("block", thread=True)
        def block() -> str:
            assert threading.current_thread() is not threading.main_thread()
            assert release.wait(60)
            return "released"

        @right.handle("release")
        def let_go() -> None:
            release.set()

        results: list[str] = []

        async def call() -> None:
            results.append(await left.call("block"))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await left.call("release")

    assert results == ["released"]


async def test_a_function_in_a_thread_may_call_back_and_report_through_the_loop() -> None:
    reported: list[object] = []
    async with memory_pair() as (left, right):
        left.handle("double")(lambda params: params[0] * 2)

        @right.handle("work", thread=True)
        def work(params: list[int], ctx: Context) -> int:
            anyio.from_thread.run(ctx.progress, "half")
            result: int = anyio.from_thread.run(ctx.call, "double", params)
            return result

        with anyio.fail_after(60):
            assert await left.call("work", [21], on_progress=reported.append) == 42

    assert reported == ["half"]


def leave(error: BaseException) -> dict[str, Callable[[], Any]]:
    """Returns handlers of each kind that raise this."""

    def plain() -> None:
        raise error

    async def later() -> None:
        await anyio.lowlevel.checkpoint()
        raise error

    return {"inline": plain, "thread": plain, "async": later}


# What else comes out of a coroutine is how that one is cancelled.
LEAVING = [
    ("async", SystemExit),
    *((kind, error) for kind in ("inline", "thread") for error in (SystemExit, asyncio.CancelledError, GeneratorExit)),
]


@pytest.mark.parametrize(("kind", "error"), LEAVING)
async def test_a_handler_that_would_exit_the_program_fails_only_its_call(
    error: type[BaseException], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with memory_pair() as (host, child):
        child.handle("leave", thread=kind == "thread")(leave(error())[kind])
        child.handle("echo")(lambda params: params)
        with caplog.at_level(logging.ERROR, "becket.peer"), anyio.fail_after(60), pytest.raises(RemoteError) as caught:
            await host.call("leave")
        assert caught.value.meaning is Meaning.INTERNAL
        assert await host.call("echo", [1]) == [1]
    assert [error.__name__ in record.exc_text for record in caplog.records if record.exc_text] == [True]
    caplog.clear()


@pytest.mark.parametrize(("kind", "error"), LEAVING)
async def test_a_notification_handler_that_would_exit_the_program_fails_alone(
    kind: str, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async with memory_pair() as (host, child):
        child.on("leave", thread=kind == "thread")(leave(error())[kind])
        child.handle("echo")(lambda params: params)
        await host.notify("leave")
        with anyio.fail_after(60):
            assert await host.call("echo", [1]) == [1]
            while not caplog.records:
                await anyio.lowlevel.checkpoint()
    assert "the handler of 'leave' failed" in caplog.text
    caplog.clear()


@pytest.mark.parametrize("way", ["as it is", "as the cause", "in a group", "in a worker", "of what was told"])
async def test_a_handler_that_fails_because_its_caller_is_gone_is_not_an_incident(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    calling, ended = anyio.Event(), anyio.Event()
    async with memory_pair() as (left, right):

        async def ask(ctx: Context) -> None:
            calling.set()
            with anyio.CancelScope(shield=True):
                await ctx.call("never")

        @right.handle("as it is")
        @right.on("of what was told")
        async def as_it_is(_: Any, ctx: Context) -> None:
            try:
                await ask(ctx)
            finally:
                ended.set()

        @right.handle("as the cause")
        async def as_the_cause(_: Any, ctx: Context) -> None:
            try:
                await ask(ctx)
            except ConnectionLost as lost:
                raise ValueError("it did not work") from lost
            finally:
                ended.set()

        @right.handle("in a group")
        async def in_a_group(_: Any, ctx: Context) -> None:
            try:
                with anyio.CancelScope(shield=True):
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(ask, ctx)
            finally:
                ended.set()

        @right.handle("in a worker", thread=True)
        def in_a_worker(_: Any, ctx: Context) -> None:
            try:
                anyio.from_thread.run(ask, ctx)
            finally:
                anyio.from_thread.run_sync(ended.set)

        @left.handle("never")
        async def never() -> None:
            await anyio.sleep_forever()

        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                if way == "of what was told":
                    await left.notify(way, {})
                    return
                with pytest.raises(ConnectionLost):
                    await left.call(way, {})

            tasks.start_soon(call)
            with anyio.fail_after(60):
                await calling.wait()
                await right.aclose()
                await ended.wait()
                await settled()
    assert [record.getMessage() for record in caplog.records] == []


async def test_a_handler_that_fails_because_another_link_has_ended_is_an_incident(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with memory_pair() as (left, right), memory_pair() as (further, _):
        await further.aclose()

        @right.handle("outer")
        async def outer() -> None:
            await further.call("x")

        with anyio.fail_after(60), pytest.raises(RemoteError):
            await left.call("outer")
    assert ["incident" in record.getMessage() for record in caplog.records] == [True]


# -- methods without a handler


async def test_requests_of_unknown_methods_reach_the_handler_of_unknown_methods() -> None:
    async with memory_pair() as (left, right):
        right.handle("known")(lambda: "known")

        @right.handle_unknown()
        async def proxy(params: Any, ctx: Context) -> object:
            return [ctx.method, params]

        assert await left.call("known") == "known"
        assert await left.call("a/b", {"x": 1}) == ["a/b", {"x": 1}]
        assert await left.call("without params") == ["without params", None]
        with pytest.raises(ValueError, match="already"):
            right.handle_unknown()(lambda: None)


async def test_a_registry_brings_its_handler_of_unknown_methods_along() -> None:
    methods = Registry()

    @methods.handle_unknown()
    def proxy(params: Any, ctx: Context) -> str:
        if ctx.method == "no":
            raise RpcError(7, "not that one")
        return ctx.method

    ours, theirs = memory_transports()
    async with Peer.over(theirs, methods=methods), Peer.over(ours) as left:
        assert await left.call("a") == "a"
        with pytest.raises(RemoteError, match="not that one"):
            await left.call("no")


async def test_an_unknown_notification_does_not_reach_the_handler_of_unknown_methods() -> None:
    async with memory_pair() as (left, right):
        called: list[str] = []

        @right.handle_unknown()
        def proxy(params: Any, ctx: Context) -> None:
            called.append(ctx.method)

        await left.notify("told")
        await left.call("asked")
        assert called == ["asked"]
