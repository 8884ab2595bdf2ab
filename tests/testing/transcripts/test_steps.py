"""Recorded conversations: calls with their responses, notifications, and other frames."""

from __future__ import annotations

from becket.testing.transcripts.file_format import (
    ChildExited,
    EndClosed,
    FrameSent,
    LinkEnd,
    StrayBytes,
    TranscriptEntry,
)
from becket.testing.transcripts.steps import StepKind, TranscriptStep, read_steps

HOST, CHILD = LinkEnd.HOST, LinkEnd.CHILD


def steps(*entries: TranscriptEntry) -> list[TranscriptStep]:
    return [*read_steps(entries)]


def call(at: float, to: LinkEnd, id: str, method: str = "add") -> FrameSent:
    return FrameSent(at, to, f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":[1]}}'.encode())


def response(at: float, to: LinkEnd, id: str) -> FrameSent:
    return FrameSent(at, to, f'{{"jsonrpc":"2.0","id":{id},"result":{{"a": 1}}}}'.encode())


def test_a_response_is_put_beside_its_call() -> None:
    prompt = call(1.0, CHILD, "7")
    requested, responded = steps(prompt, response(1.5, HOST, "7"))

    assert requested == TranscriptStep(1, 1.0, StepKind.CALL, CHILD, "add", "7", None, len(prompt.body), "[1]")
    assert (responded.kind, responded.method, responded.id, responded.seconds) == (StepKind.RESPONSE, "add", "7", 0.5)
    assert responded.content == '{"a": 1}'


def test_both_peers_may_use_the_same_id_at_the_same_time() -> None:
    found = steps(
        call(0.0, CHILD, "1", "outer"),
        call(1.0, HOST, "1", "inner"),
        response(2.0, CHILD, "1"),
        response(4.0, HOST, "1"),
    )

    assert [(step.method, step.seconds) for step in found[2:]] == [("inner", 1.0), ("outer", 4.0)]


def test_an_id_is_the_same_however_it_is_escaped() -> None:
    assert steps(call(0.0, CHILD, '"a"'), response(1.0, HOST, '"\\u0061"'))[1].method == "add"


def test_a_response_to_no_call_stands_alone() -> None:
    (found,) = steps(response(0.0, HOST, "9"))

    assert (found.method, found.seconds) == ("", None)


def test_an_error_is_shown_with_its_code_and_data() -> None:
    failed = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}}'
    plain = b'{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"no"}}'
    first, second = steps(FrameSent(0.0, HOST, failed), FrameSent(0.0, HOST, plain))

    assert (first.kind, first.content) == (StepKind.ERROR, '{"code":-32601,"message":"no","data":[1]}')
    assert second.content == '{"code":1,"message":"no"}'


def test_a_batch_is_several_steps_of_one_entry() -> None:
    batch = b'[{"jsonrpc":"2.0","method":"tell"},{"jsonrpc":"2.0","id":1,"method":"ask"},1]'

    found = steps(FrameSent(0.0, CHILD, batch))

    assert [(step.number, step.kind, step.method) for step in found] == [
        (1, StepKind.NOTIFICATION, "tell"),
        (1, StepKind.CALL, "ask"),
        (1, StepKind.INVALID, ""),
    ]


def test_an_invalid_message_has_a_reason() -> None:
    broken, malformed = steps(FrameSent(0.0, HOST, b"{"), FrameSent(0.0, HOST, b'{"id":1,"result":1}'))

    assert broken.kind is malformed.kind is StepKind.INVALID
    assert "JSON" in broken.content
    assert malformed.id == "1"


def test_invalid_frames_and_the_exit_are_steps_too() -> None:
    found = steps(StrayBytes(0.0, HOST, b"hi\xff"), EndClosed(1.0, CHILD), ChildExited(2.0, -15))

    assert found == [
        TranscriptStep(1, 0.0, StepKind.STRAY, HOST, size=3, content="hi�"),
        TranscriptStep(2, 1.0, StepKind.CLOSED, CHILD),
        TranscriptStep(3, 2.0, StepKind.EXIT, content="-15"),
    ]
