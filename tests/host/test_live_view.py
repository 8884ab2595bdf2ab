"""The live view of a command or a response: text, tables and bars, all escaped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from tests.host.stand_ins import hosted

from becket import Context, RemoteError, RpcError
from becket.contract.commands import CommandDone, ErrorText, PlainText, SystemText, Table, Text
from becket.contract.providers import (
    ProviderDone,
    ProviderFailed,
    TextDelta,
    ThinkingDelta,
    ToolUse,
    Usage,
    user,
)
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.host.live_view import LiveView, live
from becket.peer.streams import Gap

pytestmark = pytest.mark.loops


def on_paper() -> Console:
    """Returns a console whose output is no terminal."""
    return Console(file=StringIO(), width=60, force_terminal=False)


def on_screen() -> Console:
    """Returns a console that takes its output for a terminal."""
    return Console(file=StringIO(), width=60, force_terminal=True, color_system=None, legacy_windows=False)


def text_of(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def shown(console: Console, *events: Any) -> str:
    with LiveView(console) as view:
        for event in events:
            view.show(event)
    return text_of(console)


# -- without a terminal


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Text("two\nlines"), "two\nlines\n"),
        (SystemText("by the way"), "by the way\n"),
        (ErrorText("no"), "error: no\n"),
        (ProviderFailed("overloaded"), "error: overloaded\n"),
        (ToolUse("1", "bash"), "calls the tool bash\n"),
        (Gap(3), "(3 events were dropped)\n"),
        (Usage({"tokens": 5}), ""),
        (CommandDone(), ""),
        (ProviderDone(), ""),
        (TaskStarted("1", "Indexing"), "Indexing: started\n"),
        (TaskLogged("1", "reading"), "1: reading\n"),
        (TaskUpdated("1", 1, 2), ""),
        (TaskEnded("1"), ""),
    ],
)
def test_each_event_is_a_line_of_plain_text(event: Any, text: str) -> None:
    assert shown(on_paper(), event) == text


def test_a_table_is_aligned_columns() -> None:
    lines = shown(on_paper(), Table(("file", "lines"), (("todo.md", "12"), ("a", "3")))).splitlines()
    assert [line.split() for line in lines] == [["file", "lines"], ["todo.md", "12"], ["a", "3"]]
    assert lines[0].index("lines") == lines[1].index("12") == lines[2].index("3")


def test_rows_may_be_shorter_and_longer_than_the_headers() -> None:
    lines = shown(on_paper(), Table(("file",), ((), ("a", "b", "c")))).splitlines()
    assert [line.split() for line in lines] == [["file"], [], ["a", "b", "c"]]


def test_the_start_the_output_and_the_end_of_a_task_are_shown() -> None:
    text = shown(
        on_paper(),
        TaskStarted("1", "Indexing"),
        *[TaskUpdated("1", number, 300) for number in range(300)],
        TaskLogged("1", "half of it"),
        TaskEnded("1"),
        TaskStarted("2", "Fetching"),
        TaskEnded("2", "no network"),
    )
    assert text.splitlines() == [
        "Indexing: started",
        "Indexing: half of it",
        "Indexing: done",
        "Fetching: started",
        "Fetching: failed: no network",
    ]


def test_text_deltas_are_joined_in_one_line_and_thoughts_in_another() -> None:
    text = shown(
        on_paper(), ThinkingDelta("hm"), ThinkingDelta("..."), TextDelta("good "), TextDelta("day"), SystemText("end")
    )
    assert text == "hm...\ngood day\nend\n"


def test_an_open_line_is_ended() -> None:
    assert shown(on_paper(), TextDelta("hello")) == "hello\n"


def test_a_long_line_is_not_broken() -> None:
    assert shown(on_paper(), Text("word " * 40)) == "word " * 40 + "\n"


# -- what must not come through

HOSTILE = "\x1b[2J\x1b]0;title\x07\u202e\r[bold]x[/bold]"


@pytest.mark.parametrize(
    "event",
    [
        Text(HOSTILE),
        SystemText(HOSTILE),
        ErrorText(HOSTILE),
        TextDelta(HOSTILE),
        ThinkingDelta(HOSTILE),
        ProviderFailed(HOSTILE),
        ToolUse("1", HOSTILE),
        Table((HOSTILE,), ((HOSTILE,),)),
        TaskStarted("1", HOSTILE),
        TaskLogged("1", HOSTILE),
    ],
)
@pytest.mark.parametrize("console", [on_paper, on_screen])
def test_no_event_moves_the_cursor_or_hides(event: Any, console: Any) -> None:
    quiet = shown(console(), TaskStarted("1", "x")) if isinstance(event, TaskStarted) else ""
    text = shown(console(), event)
    assert text.count("\x1b[2J") == 0
    assert text.count("\x1b]") == quiet.count("\x1b]")
    assert "\u202e" not in text
    assert "\x07" not in text


def test_markup_of_an_extension_stays_text() -> None:
    assert "[bold]x[/bold]" in shown(on_paper(), SystemText("[bold]x[/bold]"))
    assert "[red]" in shown(on_screen(), TaskStarted("1", "[red]"))


# -- on a terminal


def test_text_for_a_person_is_markdown_on_a_terminal() -> None:
    text = shown(on_screen(), Text("# Title\n\n* one\n* two"))
    assert "Title" in text
    assert "# Title" not in text
    assert "• one" in text


def test_output_of_a_program_is_not_markdown() -> None:
    assert shown(on_screen(), PlainText("# Title\n* one\n* two")).split() == ["#", "Title", "*", "one", "*", "two"]


def test_a_link_in_markdown_is_not_an_escape_sequence() -> None:
    assert "\x1b]8" not in shown(on_screen(), Text("[click](http://example.org)"))


def test_a_task_is_a_bar_that_is_full_in_the_end() -> None:
    text = shown(
        on_screen(),
        TaskStarted("1", "Indexing"),
        TaskUpdated("1", 10, 300, "todo.md"),
        TaskEnded("1"),
    )
    last = text[text.rindex("Indexing") :]
    assert "300/300" in last
    assert "todo.md" in last


def test_a_task_without_a_total_is_full_in_the_end_too() -> None:
    assert "1/1" in shown(on_screen(), TaskStarted("1", "Waiting"), TaskEnded("1"))


def test_a_failed_task_stays_at_its_progress_and_shows_the_reason() -> None:
    text = shown(on_screen(), TaskStarted("1", "Fetching"), TaskUpdated("1", 3, 10), TaskEnded("1", "no network"))
    assert "Fetching: failed: no network" in text
    assert "3/10" in text
    assert "10/10" not in text


def test_a_task_that_begins_anew_has_one_bar() -> None:
    text = shown(
        on_screen(),
        TaskStarted("1", "First"),
        TaskUpdated("1", 5, 10),
        TaskStarted("1", "Second"),
        TaskUpdated("1", 1, 4),
        TaskEnded("1"),
    )
    assert "4/4" in text
    assert text.rindex("First") < text.index("Second")


def test_updates_of_a_task_that_never_began_are_ignored() -> None:
    assert shown(on_screen(), TaskUpdated("1", 5, 10), TaskEnded("1", "no")) == ""


def test_finished_bars_stay_above_running_ones() -> None:
    text = shown(on_screen(), TaskStarted("1", "First"), TaskStarted("2", "Second"), TaskEnded("1"))
    assert text.rindex("First") < text.rindex("Second")
    assert "1/1" in text[text.rindex("First") :]


def test_the_number_of_drawn_tasks_and_of_redraws_is_bounded() -> None:
    ids = [str(number) for number in range(2_000)]
    one_by_one = [
        event for id in ids for event in (TaskStarted(id, f"task {id}"), TaskUpdated(id, 1, 2), TaskEnded(id))
    ]
    console = on_screen()
    text = shown(console, *one_by_one)
    assert text.count("task ") < len(ids)
    assert "other tasks have ended)" in text
    assert "task 1999" in text[text.rindex("other tasks") :]

    at_once = shown(
        on_screen(), *(TaskStarted(id, f"task {id}") for id in ids), *(TaskEnded(id) for id in reversed(ids))
    )
    assert "task 5 " in at_once
    assert "task 1000" not in at_once


def test_tasks_that_never_end_are_dropped_eventually() -> None:
    with LiveView(on_paper()) as view:
        for number in range(3_000):
            view.show(TaskStarted(str(number), f"task {number}"))
        view.show(TaskLogged("7", "old"))
        view.show(TaskLogged("2999", "new"))
        text = text_of(view._console)  # pyright: ignore[reportPrivateUsage]
    assert "\n7: old\ntask 2999: new\n" in text


def test_text_is_shown_above_the_bars() -> None:
    text = shown(on_screen(), TaskStarted("1", "Indexing"), SystemText("a remark"), TaskEnded("1"))
    assert text.index("a remark") < text.rindex("Indexing")


def test_a_table_on_a_terminal_has_a_line_below_its_headers() -> None:
    assert "──" in shown(on_screen(), Table(("file",), (("a",),)))


# -- a whole run


async def test_a_command_is_shown_until_its_response() -> None:
    console = on_paper()
    async with hosted() as (notes, child):

        @child.handle("command.invoke")
        async def invoke(params: Any, ctx: Context) -> str:
            await ctx.notify("task.start", {"id": "1", "label": "Indexing"})
            await ctx.notify(
                "command.output", {"request_id": params["request_id"], "event": {"kind": "text", "content": "hello"}}
            )
            await ctx.notify("task.done", {"id": "1"})
            return "the end"

        async with notes.invoke_command("reindex") as run:
            assert await live(run, console) == "the end"
    assert text_of(console) == "Indexing: started\nhello\nIndexing: done\n"


async def test_a_response_that_fails_shows_what_came_before() -> None:
    console = on_paper()
    async with hosted() as (notes, child):

        @child.handle("provider.stream")
        async def stream(params: Any, ctx: Context) -> None:
            await ctx.notify("provider.stream.event", {"type": "text", "delta": "good"})
            raise RpcError(7, "out of paper")

        async with notes.stream("local", "small", messages=[user("hi")]) as response:
            with pytest.raises(RemoteError):
                await live(response, console)
    assert text_of(console) == "good\n"


class Recorded:
    """A stream of events that came long ago."""

    def __init__(self, events: Sequence[Any]) -> None:
        self._events = list(events)

    async def batches(self) -> AsyncIterator[list[Any]]:
        yield self._events

    async def result(self) -> int:
        return 5


async def test_any_stream_of_such_events_can_be_shown() -> None:
    console = on_paper()
    assert await live(Recorded([Text("a"), Gap(1)]), console) == 5
    assert text_of(console) == "a\n(1 events were dropped)\n"
