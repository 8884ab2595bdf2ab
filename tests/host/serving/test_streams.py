"""Running commands and responses: their events, their end, and their order."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from tests.host.stand_ins import hosted, played
from tests.peer.scripted import Message, notification, refusal, response, settled

from becket import BecketError, Context, Gap, Limits, Overflow, RemoteError, StreamOverrun
from becket.contract.commands import CommandDone, CommandEvent, ErrorText, SystemText, Table, Text
from becket.contract.providers import (
    ProviderDone,
    ProviderFailed,
    ProviderResult,
    TextDelta,
    ThinkingDelta,
    ToolUse,
    Usage,
    user,
)
from becket.contract.tasks import TaskEnded, TaskKind, TaskLogged, TaskStarted, TaskUpdated
from becket.errors import LocalProtocolError, NotSent
from becket.host.serving import streams
from becket.host.serving.streams import MAX_TRAILING
from becket.host.timeouts import Timeouts

pytestmark = pytest.mark.loops

EVENT = "provider.stream.event"
EMPTY: dict[str, Any] = {"content": []}


def output(called: Message, **event: Any) -> Message:
    """Returns an output event of the invoked command."""
    return notification("command.output", {"request_id": called["params"]["request_id"], "event": event})


def text(content: str) -> Message:
    return notification(EVENT, {"type": "text", "delta": content})


# -- commands


async def test_a_command_is_invoked_with_its_arguments_and_an_id_of_its_own() -> None:
    async with played() as (notes, script):
        ids = set[str]()
        for _ in range(2):
            async with notes.invoke_command("reindex", ["--all", "x"]) as run:
                called = await script.receive()
                assert called["method"] == "command.invoke"
                assert called["params"]["command"] == "reindex"
                assert called["params"]["args"] == ["--all", "x"]
                ids.add(called["params"]["request_id"])
                script.send(output(called, kind="done"), response(called, {"any": 1}))
                assert await run.result() == {"any": 1}
        assert len(ids) == 2
        assert all(ids)


async def test_the_output_and_the_tasks_of_a_command_come_as_classes() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        flat = {"request_id": called["params"]["request_id"], "kind": "system", "content": "flat"}
        script.send(
            output(called, kind="text", content="a"),
            notification("command.output", flat),
            output(called, kind="error", content="no"),
            output(called, kind="table", headers=["file"], rows=[["todo.md"]]),
            notification("task.start", {"id": "1", "label": "Indexing", "kind": "rebuild"}),
            notification("task.update", {"id": "1", "current": 5, "total": 10}),
            notification("task.log", {"id": "1", "line": "reading"}),
            notification("task.done", {"id": "1"}),
            output(called, kind="done"),
            response(called),
        )
        events: list[CommandEvent | Gap] = [event async for event in run]
    assert events == [
        Text("a"),
        SystemText("flat"),
        ErrorText("no"),
        Table(("file",), (("todo.md",),)),
        TaskStarted("1", "Indexing", TaskKind.REBUILD),
        TaskUpdated("1", 5, 10),
        TaskLogged("1", "reading"),
        TaskEnded("1"),
        CommandDone(),
    ]


async def test_done_does_not_end_a_command_but_its_response_does() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        script.send(output(called, kind="done"), output(called, kind="text", content="after all"))
        assert await anext(run) == CommandDone()
        assert await anext(run) == Text("after all")
        script.send(response(called, 5))
        assert [event async for event in run] == []
        assert await run.result() == 5


async def test_malformed_output_is_skipped_and_counted() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        script.send(
            output(called, kind="text"),
            output(called, kind="dance"),
            output(called, kind="table", headers=["a"], rows=[[1]]),
            notification("command.output", {}),
            notification("task.update", {}),
            output(called, kind="text", content="good"),
            response(called),
            output(called, kind="nothing"),
        )
        assert [event async for event in run] == [Text("good")]
        assert run.skipped == 6


async def test_output_of_another_run_is_separate_and_task_events_reach_every_subscriber() -> None:
    async with played() as (notes, script), notes.invoke_command("a") as a, notes.invoke_command("b") as b:
        first, second = await script.receive(), await script.receive()
        script.send(
            output(second, kind="text", content="of b"),
            output(first, kind="text", content="of a"),
            notification("command.output", {"request_id": "nobody", "kind": "text", "content": "lost"}),
            notification("task.start", {"id": "1", "label": "of whom?"}),
            output(first, kind="done"),
            output(second, kind="done"),
            response(first),
            response(second),
        )
        assert [event async for event in a] == [Text("of a"), TaskStarted("1", "of whom?"), CommandDone()]
        assert [event async for event in b] == [Text("of b"), TaskStarted("1", "of whom?"), CommandDone()]


async def test_the_error_of_a_command_comes_after_its_output() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        script.send(output(called, kind="text", content="a"), refusal(called, 7, "no"))
        assert await anext(run) == Text("a")
        with pytest.raises(RemoteError):
            await anext(run)
        with pytest.raises(RemoteError):
            await run.result()


async def test_leaving_a_command_sends_a_cancellation() -> None:
    ended = anyio.Event()
    async with hosted() as (notes, child):

        @child.handle("command.invoke")
        async def invoke(params: Any, ctx: Context) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        async with notes.invoke_command("x") as run:
            await settled()
        with anyio.fail_after(60):
            await ended.wait()
        with pytest.raises(LocalProtocolError):
            await run.result()


# -- output before and after the response


async def test_output_may_come_before_anything_was_awaited() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        script.send(output(called, kind="text", content="early"))
        script.send(response(called))
        assert [event async for event in run] == [Text("early")]


async def test_output_after_the_response_in_the_same_chunk_still_belongs_to_the_run() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        script.send(
            output(called, kind="text", content="before"),
            response(called, 1),
            output(called, kind="text", content="after"),
            notification("task.done", {"id": "1"}),
            notification("command.output", {"request_id": "nobody", "kind": "text", "content": "lost"}),
            output(called, kind="done"),
        )
        assert [event async for event in run] == [Text("before"), Text("after"), TaskEnded("1"), CommandDone()]
        assert await run.result() == 1


async def test_output_after_the_response_of_an_old_extension_is_waited_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "TRAIL_GRACE", 60.0)  # a moment that does not end under load
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        script.send(response(called, 1))
        events: list[Any] = []

        async def take() -> None:
            events.extend([event async for event in run])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            await settled()
            script.send(output(called, kind="text", content="late"))
            await settled()
            script.send(output(called, kind="done"))
        script.send(output(called, kind="text", content="too late"))
        assert [event async for event in run] == []
        assert events == [Text("late"), CommandDone()]


async def test_a_function_for_events_that_never_come_is_refused() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        with pytest.raises(TypeError, match=r"a run of command\.invoke has no `TextDelta`; it has: CommandDone, "):
            run.on(TextDelta)
        run.on(Text, Gap)
        run.on(object)
        script.send(response(called, 1))
        assert await run.result() == 1


async def test_output_after_the_response_reaches_the_functions_of_a_class_and_comes_in_batches() -> None:
    async with played() as (notes, script):
        async with notes.invoke_command("x") as run:
            called = await script.receive()
            seen: list[Text] = []
            run.on(Text)(seen.append)
            script.send(response(called, 1), output(called, kind="text", content="a"), output(called, kind="done"))
            assert await run.result() == 1
            assert seen == [Text("a")]
        async with notes.invoke_command("y") as run:
            called = await script.receive()
            script.send(
                output(called, kind="text", content="a"), response(called, 1), output(called, kind="text", content="b")
            )
            assert [batch async for batch in run.batches()] == [[Text("a"), Text("b")]]


async def test_trailing_output_is_not_collected_unless_requested() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        script.send(response(called))
        await settled()
        script.send(*[output(called, kind="text", content="x") for _ in range(MAX_TRAILING + 5)])
        await settled()
        assert run.dropped == 5
        assert len(run.batch_nowait()) == MAX_TRAILING


async def test_a_run_that_was_left_receives_nothing() -> None:
    async with played() as (notes, script):
        async with notes.invoke_command("x") as run:
            called = await script.receive()
            script.send(response(called))
            assert [event async for event in run] == []
        script.send(output(called, kind="text", content="x"))
        assert run.batch_nowait() == []


# -- responses of models


async def test_the_deltas_of_a_response_come_as_classes_in_all_their_forms() -> None:
    async with played() as (notes, script), notes.stream("local", "small", messages=[user("hi")]) as answering:
        called = await script.receive()
        assert called["method"] == "provider.stream"
        assert called["params"]["model"] == "notes:local:small"
        script.send(
            notification(EVENT, {"type": "text", "delta": "a"}),
            notification(EVENT, {"type": "text", "text": "b"}),
            notification(EVENT, {"event": {"type": "thinking", "delta": "c"}}),
            notification(EVENT, {"event": {"type": "tool_use", "id": "1", "name": "bash"}}),
            notification(EVENT, {"type": "usage", "tokens": 5}),
            notification(EVENT, {"type": "error", "message": "hm", "code": 5}),
            notification(EVENT, {"type": "dance"}),
            notification(EVENT, {"type": "done"}),
            response(called, {"content": [{"type": "text", "text": "ab"}]}),
        )
        assert [event async for event in answering] == [
            TextDelta("a"),
            TextDelta("b"),
            ThinkingDelta("c"),
            ToolUse("1", "bash", {}),
            Usage({"tokens": 5}),
            ProviderFailed("hm", 5),
            ProviderDone(),
        ]
        assert answering.skipped == 1
    assert await answering.result() == ProviderResult.of_text("ab")  # also after the block


async def test_a_streamed_response_may_have_no_content() -> None:
    async with played() as (notes, script), notes.stream("local", "small", messages=[]) as answering:
        script.send(response(await script.receive(), EMPTY))
        assert await answering.result() == ProviderResult(())


async def test_each_delta_goes_to_the_function_of_its_class() -> None:
    async with played() as (notes, script), notes.stream("local", "small", messages=[]) as answering:
        called = await script.receive()
        printed: list[str] = []

        @answering.on(TextDelta)
        async def send(event: TextDelta) -> None:
            await settled()
            printed.append(event.text)

        @answering.on(ProviderDone)
        def end() -> None:
            printed.append("end")

        script.send(text("a"), notification(EVENT, {"type": "usage"}), text("b"))
        script.send(notification(EVENT, {"type": "done"}), response(called, EMPTY))
        assert await answering.result() == ProviderResult(())
        assert printed == ["a", "b", "end"]


async def test_events_after_a_response_belong_to_it_where_there_is_no_other() -> None:
    async with played() as (notes, script), notes.stream("local", "small", messages=[]) as answering:
        called = await script.receive()
        script.send(response(called, EMPTY), text("late"), notification(EVENT, {"type": "done"}))
        assert [event async for event in answering] == [TextDelta("late"), ProviderDone()]


# -- several at once


async def test_two_concurrent_responses_have_separate_events() -> None:
    async with hosted() as (notes, child):

        @child.handle("provider.stream")
        async def stream(params: Any, ctx: Context) -> Any:
            for _ in range(3):
                await ctx.notify(EVENT, {"type": "text", "delta": params["messages"][0]["content"]})
                await settled()
            return EMPTY

        async with (
            notes.stream("local", "small", messages=[user("a")]) as a,
            notes.stream("local", "small", messages=[user("b")]) as b,
        ):
            assert [event async for event in a] == [TextDelta("a")] * 3
            assert [event async for event in b] == [TextDelta("b")] * 3


async def test_where_events_cannot_be_distinguished_one_response_waits_for_the_other() -> None:
    events: dict[str, list[Any]] = {"a": [], "b": []}

    async with played() as (notes, script), anyio.create_task_group() as tasks:

        async def take(name: str) -> None:
            async with notes.stream("local", "small", messages=[user(name)]) as answering:
                events[name] += [event async for event in answering]

        tasks.start_soon(take, "a")
        first = await script.receive()
        tasks.start_soon(take, "b")
        await settled()
        assert script.unread() == []
        script.send(text("a"), response(first, EMPTY), text("a too"), notification(EVENT, {"type": "done"}))
        second = await script.receive()
        assert second["params"]["messages"] == [{"role": "user", "content": "b"}]
        script.send(text("b"), notification(EVENT, {"type": "done"}), response(second, EMPTY))
    assert events == {
        "a": [TextDelta("a"), TextDelta("a too"), ProviderDone()],
        "b": [TextDelta("b"), ProviderDone()],
    }


async def test_an_abandoned_response_is_waited_for_so_that_its_events_are_not_mixed_with_the_next() -> None:
    async with played() as (notes, script), anyio.create_task_group() as tasks:
        async with notes.stream("local", "small", messages=[user("a")]) as left:
            first = await script.receive()
            script.send(text("a"))
            assert await anext(left) == TextDelta("a")
        with pytest.raises(LocalProtocolError):
            await left.result()
        assert script.unread() == []  # no cancellation: the extension does not support it
        events: list[Any] = []

        async def take() -> None:
            async with notes.stream("local", "small", messages=[user("b")]) as answering:
                events.extend([event async for event in answering])

        tasks.start_soon(take)
        await settled()
        assert script.unread() == []
        script.send(*[text("a")] * 3, response(first, EMPTY))
        second = await script.receive()
        script.send(text("b"), notification(EVENT, {"type": "done"}), response(second, EMPTY))
    assert events == [TextDelta("b"), ProviderDone()]


@pytest.mark.parametrize("ends", ["with an error", "with the link"])
async def test_a_response_that_was_left_may_end_in_any_way(ends: str) -> None:
    async with played() as (notes, script):
        async with notes.stream("local", "small", messages=[]):
            called = await script.receive()
        if ends == "with an error":
            script.send(refusal(called, 7))
            async with notes.stream("local", "small", messages=[]) as answering:
                script.send(response(await script.receive(), EMPTY))
                assert await answering.result() == ProviderResult(())
        else:
            script.leave()
            await settled()


async def test_a_response_does_not_wait_for_ever_for_another() -> None:
    async with (
        played(timeouts=Timeouts(idle=0.02, shutdown=0.02)) as (notes, script),
        notes.stream("local", "small", messages=[], idle_timeout=60) as answering,
    ):
        called = await script.receive()
        with pytest.raises(NotSent):
            async with notes.stream("local", "small", messages=[]):
                pass
        script.send(response(called, EMPTY))
        assert await answering.result() == ProviderResult(())


async def test_a_stream_that_could_not_be_opened_blocks_no_other() -> None:
    async with played() as (notes, script):
        unspeakable = notes.stream("local", "small", messages=[], tools=[{"a": object()}])
        with pytest.raises(BecketError):
            await unspeakable.__aenter__()
        async with notes.stream("local", "small", messages=[]) as answering:
            script.send(response(await script.receive(), EMPTY))
            assert await answering.result() == ProviderResult(())


async def test_commands_do_not_wait_for_each_other_nor_for_responses() -> None:
    async with (
        played() as (notes, script),
        notes.stream("local", "small", messages=[]),
        notes.invoke_command("a"),
        notes.invoke_command("b"),
    ):
        called = [await script.receive() for _ in range(3)]
        assert [one["method"] for one in called] == ["provider.stream", "command.invoke", "command.invoke"]
        for one in called:
            script.send(response(one, EMPTY))


# -- slow readers


async def test_a_reader_that_stalls_holds_back_its_own_stream_and_nothing_else() -> None:
    sent = {"slow": 0, "fast": 0}
    async with hosted() as (notes, child):

        @child.handle("provider.stream")
        async def stream(params: Any, ctx: Context) -> Any:
            name = params["messages"][0]["content"]
            for _ in range(5_000):
                await ctx.notify(EVENT, {"type": "text", "delta": "x"})
                sent[name] += 1
            return EMPTY

        child.handle("tool.call")(lambda params: "quick")
        with anyio.fail_after(60):
            async with notes.stream("local", "small", messages=[user("slow")]) as slow:
                await settled()
                held = sent["slow"]
                async with notes.stream("local", "small", messages=[user("fast")]) as fast:
                    count = 0
                    async for _ in fast:
                        count += 1
                        if count % 100 == 0:
                            assert await notes.call_tool("echo") == "quick"
                assert count == 5_000
                assert 0 < held == sent["slow"] < 1_000  # it may be a little ahead, and not more
                assert len([event async for event in slow]) == 5_000


async def test_without_credit_the_bounds_of_the_stream_decide() -> None:
    limits = Limits(stream_events=100)
    async with (
        played(limits=limits) as (notes, script),
        notes.stream("local", "small", messages=[]) as slow,
        notes.invoke_command("x", overflow=Overflow.DROP_OLDEST) as dropping,
    ):
        first, second = await script.receive(), await script.receive()
        script.send(*[text("x")] * 200)
        script.send(*[output(second, kind="text", content=str(number)) for number in range(200)])
        script.send(output(second, kind="done"), response(first, EMPTY), response(second))
        await settled()
        with pytest.raises(StreamOverrun):
            await slow.result()
        events = [event async for event in dropping]
        assert events[0] == Gap(101)
        assert events[1] == Text("101")
        assert dropping.dropped == 101


async def test_a_flood_comes_in_batches() -> None:
    async with hosted() as (notes, child):

        @child.handle("provider.stream")
        async def stream(params: Any, ctx: Context) -> Any:
            for _ in range(3_000):
                await ctx.notify(EVENT, {"type": "text", "delta": "x"})
            await ctx.notify(EVENT, {"type": "done"})
            return EMPTY

        async with notes.stream("local", "small", messages=[]) as answering:
            sizes = [len(batch) async for batch in answering.batches()]
        assert sum(sizes) == 3_001
        assert len(sizes) < 1_000


# -- how it is used


async def test_a_run_is_opened_once() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        with pytest.raises(LocalProtocolError):
            await run.__aenter__()
        script.send(response(await script.receive()))
        await run.result()


async def test_a_run_ends_with_its_link() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        await script.receive()
        script.leave()
        with pytest.raises(ConnectionError):
            await anext(run)
        with pytest.raises(ConnectionError):
            await run.result()


# -- who else receives the events


async def test_task_events_of_a_running_command_reach_every_subscriber() -> None:
    async with played() as (notes, script):
        first: list[object] = []
        second: list[object] = []
        notes.on(TaskStarted, TaskEnded)(first.append)
        notes.on(TaskStarted)(second.append)
        async with notes.invoke_command("x") as run:
            called = await script.receive()
            script.send(
                notification("task.start", {"id": "1", "label": "Indexing"}),
                output(called, kind="done"),
                response(called),
                notification("task.done", {"id": "1"}),
            )
            assert [event async for event in run] == [TaskStarted("1", "Indexing"), CommandDone(), TaskEnded("1")]

        assert first == [TaskStarted("1", "Indexing"), TaskEnded("1")]
        assert second == [TaskStarted("1", "Indexing")]


async def test_marked_task_events_of_a_running_command_reach_its_run_and_every_subscriber() -> None:
    started: list[TaskStarted] = []
    async with hosted() as (notes, child):

        @child.handle("command.invoke")
        async def invoke(params: Any, ctx: Context) -> None:
            await ctx.notify("task.start", {"id": params["command"], "label": "Indexing"})

        notes.on(TaskStarted)(started.append)
        async with notes.invoke_command("a") as a, notes.invoke_command("b") as b:
            assert [event async for event in a] == [TaskStarted("a", "Indexing")]
            assert [event async for event in b] == [TaskStarted("b", "Indexing")]

    assert sorted(event.id for event in started) == ["a", "b"]


async def test_a_subscriber_that_fails_takes_nothing_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    started: list[object] = []
    async with played() as (notes, script):

        @notes.on(TaskStarted)
        def fail(_: TaskStarted) -> None:
            raise RuntimeError("a bug")

        notes.on(TaskStarted)(started.append)
        script.send(notification("task.start", {"id": "1", "label": "Indexing"}))
        await settled()
    assert started == [TaskStarted("1", "Indexing")]
    assert "a bug" in caplog.text


async def test_all_functions_of_a_run_receive_the_events_of_their_class() -> None:
    async with played() as (notes, script), notes.invoke_command("x") as run:
        called = await script.receive()
        texts: list[object] = []
        all_of_them: list[object] = []
        run.on(Text)(texts.append)
        run.on(object)(all_of_them.append)
        script.send(output(called, kind="text", content="a"), output(called, kind="done"), response(called))
        await run.result()
    assert texts == [Text("a")]
    assert all_of_them == [Text("a"), CommandDone()]
