"""What was said: calls, answers beside their calls, notifications, and whatever else came over the link."""

from __future__ import annotations

from becket.testing.conversations import Kind, Step, read_steps
from becket.testing.transcripts import Closed, Ended, Entry, Frame, Side, Stray

HOST, CHILD = Side.HOST, Side.CHILD


def steps(*entries: Entry) -> list[Step]:
    return [*read_steps(entries)]


def call(at: float, to: Side, id: str, method: str = "add") -> Frame:
    return Frame(at, to, f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":[1]}}'.encode())


def answer(at: float, to: Side, id: str) -> Frame:
    return Frame(at, to, f'{{"jsonrpc":"2.0","id":{id},"result":{{"a": 1}}}}'.encode())


def test_an_answer_is_put_beside_its_call() -> None:
    question = call(1.0, CHILD, "7")
    asked, answered = steps(question, answer(1.5, HOST, "7"))

    assert asked == Step(1, 1.0, Kind.CALL, CHILD, "add", "7", None, len(question.body), "[1]")
    assert (answered.kind, answered.method, answered.id, answered.seconds) == (Kind.ANSWER, "add", "7", 0.5)
    assert answered.content == '{"a": 1}'


def test_the_two_sides_may_use_the_same_id_at_the_same_time() -> None:
    found = steps(
        call(0.0, CHILD, "1", "outer"),
        call(1.0, HOST, "1", "inner"),
        answer(2.0, CHILD, "1"),
        answer(4.0, HOST, "1"),
    )

    assert [(step.method, step.seconds) for step in found[2:]] == [("inner", 1.0), ("outer", 4.0)]


def test_an_id_is_the_same_however_it_is_escaped() -> None:
    assert steps(call(0.0, CHILD, '"a"'), answer(1.0, HOST, '"\\u0061"'))[1].method == "add"


def test_an_answer_to_no_call_stands_alone() -> None:
    (found,) = steps(answer(0.0, HOST, "9"))

    assert (found.method, found.seconds) == ("", None)


def test_an_error_is_shown_with_its_code_and_data() -> None:
    failed = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}}'
    plain = b'{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"no"}}'
    first, second = steps(Frame(0.0, HOST, failed), Frame(0.0, HOST, plain))

    assert (first.kind, first.content) == (Kind.ERROR, '{"code":-32601,"message":"no","data":[1]}')
    assert second.content == '{"code":1,"message":"no"}'


def test_a_batch_is_several_steps_of_one_entry() -> None:
    batch = b'[{"jsonrpc":"2.0","method":"tell"},{"jsonrpc":"2.0","id":1,"method":"ask"},1]'

    found = steps(Frame(0.0, CHILD, batch))

    assert [(step.number, step.kind, step.method) for step in found] == [
        (1, Kind.NOTIFICATION, "tell"),
        (1, Kind.CALL, "ask"),
        (1, Kind.INVALID, ""),
    ]


def test_what_is_no_message_says_why() -> None:
    broken, malformed = steps(Frame(0.0, HOST, b"{"), Frame(0.0, HOST, b'{"id":1,"result":1}'))

    assert broken.kind is malformed.kind is Kind.INVALID
    assert "JSON" in broken.content
    assert malformed.id == "1"


def test_what_is_no_frame_and_how_it_ended_are_steps_too() -> None:
    found = steps(Stray(0.0, HOST, b"hi\xff"), Closed(1.0, CHILD), Ended(2.0, -15))

    assert found == [
        Step(1, 0.0, Kind.STRAY, HOST, size=3, content="hi�"),
        Step(2, 1.0, Kind.CLOSED, CHILD),
        Step(3, 2.0, Kind.EXIT, content="-15"),
    ]
