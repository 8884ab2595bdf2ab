"""A replay waits for earlier messages, tolerates irrelevant differences, and reports the others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from becket.testing.transcripts.file_format import (
    ChildExited,
    EndClosed,
    FrameSent,
    LinkEnd,
    StrayBytes,
    TranscriptEntry,
)
from becket.testing.transcripts.replay import Difference, Replay, find_differences

HOST, CHILD = LinkEnd.HOST, LinkEnd.CHILD


def body(**members: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **members})


def to_child(**members: Any) -> FrameSent:
    return FrameSent(0.0, CHILD, body(**members))


def to_host(**members: Any) -> FrameSent:
    return FrameSent(0.0, HOST, body(**members))


def play(replay: Replay, *came: bytes) -> list[bytes]:
    """Returns the messages that are sent after this one."""
    for one in came:
        replay.receive(one)
    return replay.advance()


# A tool call within which the child calls its host.
MILK = {"content": "milk"}
NESTED: list[TranscriptEntry] = [
    to_child(id=1, method="tool.call", params={"name": "keep"}),
    to_host(id=7, method="memory.append", params=MILK),
    to_child(id=7, result={"ok": True}),
    to_host(id=1, result="kept"),
    EndClosed(1.0, CHILD),
    ChildExited(1.1, 0),
]


def test_nothing_is_sent_before_what_came_before_it_in_the_recording() -> None:
    replay = Replay(NESTED)

    assert play(replay) == [body(id=1, method="tool.call", params={"name": "keep"})]
    assert replay.expected == "the call memory.append"
    assert play(replay) == []
    assert play(replay, body(id=7, method="memory.append", params=MILK)) == [body(id=7, result={"ok": True})]
    assert not replay.is_closed
    assert play(replay, body(id=1, result="kept")) == []
    assert (replay.is_done, replay.is_closed, replay.expected) == (True, True, None)
    replay.finish()
    assert (replay.differences, replay.compared) == ([], 2)


@pytest.mark.parametrize("id", [99, "x", 7.5])
def test_calls_of_the_other_peer_may_have_other_ids_and_get_responses_under_them(id: Any) -> None:
    replay = Replay(NESTED)
    play(replay)

    assert play(replay, body(id=id, method="memory.append", params=MILK)) == [body(id=id, result={"ok": True})]
    assert replay.differences == []


def test_a_recorded_error_is_sent_under_the_current_id() -> None:
    error = {"code": 1003, "message": "denied", "data": {"permission": "memory.write"}}
    replay = Replay([to_host(id=7, method="memory.append"), to_child(id=7, error=error)])

    assert play(replay, body(id=8, method="memory.append")) == [body(id=8, error=error)]


def test_concurrent_messages_may_come_in_another_order() -> None:
    calls = [to_child(id=1, method="a"), to_child(id=2, method="b")]
    replay = Replay([*calls, to_host(id=1, result=1), to_host(id=2, result=2)])

    play(replay, body(id=2, result=2), body(id=1, result=1))
    replay.finish()

    assert replay.differences == []


def test_a_different_response_is_reported_with_both_values() -> None:
    replay = Replay(NESTED)
    play(replay, body(id=7, method="memory.append", params=MILK), body(id=1, result="lost"))
    replay.finish()

    assert replay.differences == [Difference(4, "the response to 1", "it is another", "/result", '"kept"', '"lost"')]


def test_an_error_instead_of_a_result_is_a_difference_of_two_members() -> None:
    replay = Replay([to_host(id=1, result=1)])
    play(replay, body(id=1, error={"code": 1, "message": "no"}))

    assert [(one.pointer, one.expected, one.found) for one in replay.differences] == [
        ("/result", "1", None),
        ("/error", None, '{"code":1,"message":"no"}'),
    ]


def test_a_missing_message_is_reported_and_its_response_is_not_sent() -> None:
    replay = Replay(NESTED)
    play(replay)

    replay.skip_expected("it did not come within 5 s")

    assert play(replay) == []  # there is no request for this response
    assert replay.expected == "the response to 1"
    assert replay.differences == [
        Difference(2, "the call memory.append", "it did not come within 5 s", expected=NESTED[1].body.decode())  # type: ignore[union-attr]
    ]


def test_a_message_that_is_not_in_the_recording_is_reported() -> None:
    replay = Replay([to_host(method="ready")])
    play(replay, body(method="ready"), body(method="ready"), b"junk")
    replay.finish()

    assert [(one.number, one.message, one.found) for one in replay.differences] == [
        (None, "the notification ready", '{"jsonrpc":"2.0","method":"ready"}'),
        (None, "something that is no message", "junk"),
    ]


def test_messages_that_are_missing_when_a_program_ends_are_reported() -> None:
    replay = Replay(NESTED)
    play(replay)
    replay.finish("the program has ended")

    assert [one.message for one in replay.differences] == ["the call memory.append", "the response to 1"]
    assert replay.is_done


def test_abandoning_a_wait_that_is_not_awaited_changes_nothing() -> None:
    replay = Replay([])
    replay.skip_expected("why not")

    assert replay.differences == []


def test_implementation_specific_text_and_stray_bytes_are_ignored() -> None:
    replay = Replay([StrayBytes(0.0, HOST, b"hi"), to_host(method="$/log", params={"a": 1}), EndClosed(0.0, HOST)])
    play(replay, body(method="$/credit"))
    replay.finish()

    assert (replay.is_done, replay.differences) == (True, [])


def test_a_response_to_no_recorded_call_is_sent_as_it_was() -> None:
    assert play(Replay([to_child(id=5, result=1)])) == [body(id=5, result=1)]


def test_the_time_that_is_left_for_a_call_is_not_compared() -> None:
    replay = Replay([to_host(id=1, method="a", params={"_meta": {"becket": {"timeout_ms": 5}}, "x": 1})])
    play(replay, body(id=1, method="a", params={"_meta": {"becket": {"timeout_ms": 4}}, "x": 1}))

    assert replay.differences == []


@pytest.mark.parametrize(
    ("ignore", "differs"),
    [
        ("/result/thrown", True),
        ("/result/*/thrown", False),
        ("/result/0", False),
        ("/result/0/thrown", False),
        ("/result/1", True),
        ("/nothing/there", True),
        ("/jsonrpc/deeper", True),
    ],
)
def test_ignored_members_are_named_by_pointers(ignore: str, differs: bool) -> None:
    replay = Replay([to_host(id=1, result=[{"thrown": 5}, 2])], ignore=[ignore])
    play(replay, body(id=1, result=[{"thrown": 6}, 2]))

    assert bool(replay.differences) is differs


def test_batches_and_junk_are_compared_as_a_whole() -> None:
    replay = Replay([FrameSent(0.0, HOST, b"[1,2]"), FrameSent(0.0, HOST, b"junk")])

    assert replay.expected == "a batch of 2"
    play(replay, b"[1,3]", b"trash")

    assert [(one.pointer, one.expected, one.found) for one in replay.differences] == [
        ("/1", "2", "3"),
        ("", '"junk"', '"trash"'),
    ]


def test_the_child_can_be_replayed_as_well() -> None:
    replay = Replay(NESTED, speaks_for=CHILD)

    assert replay.expected == "the call tool.call"
    sent = play(replay, body(id=1, method="tool.call", params={"name": "keep"}))
    assert sent == [body(id=7, method="memory.append", params=MILK)]
    assert play(replay, body(id=7, result={"ok": True})) == [body(id=1, result="kept")]


@pytest.mark.parametrize(
    ("expected", "found", "differences"),
    [
        ({"a": 1}, {"a": 1}, []),
        (1, 1.0, []),
        (1, True, [("", "1", "true")]),
        ([1], [1, 2], [("", "[1]", "[1,2]")]),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, [("/a~1b/~0", "1", "2")]),
        ({"a": 1}, {"b": 1}, [("/a", "1", None), ("/b", None, "1")]),
        ({"a": None}, {}, [("/a", "null", None)]),
        ([1, [2]], [1, [3]], [("/1/0", "2", "3")]),
    ],
)
def test_differences_have_the_pointer_and_both_values(
    expected: Any, found: Any, differences: list[tuple[str, str, str]]
) -> None:
    assert find_differences(expected, found) == differences


def test_only_the_first_of_many_differences_are_reported() -> None:
    assert len(find_differences([0] * 100, [1] * 100)) == 20
