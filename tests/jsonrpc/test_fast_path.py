"""The fast path and the parser give the same result; a space, which selects the parser, changes nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings, strategies as st
from msgspec import Raw
from tests.jsonrpc.links import append_json, call, link

from becket.framing import ContentLength
from becket.jsonrpc.calls import InboundRequest, OutboundCall
from becket.jsonrpc.codec import JsonCodec, MessageCollector
from becket.jsonrpc.limit_checks import LimitChecker
from becket.jsonrpc.messages import Failure, Message, NotificationMessage
from becket.jsonrpc.parser import MessageParser
from becket.limits import Limits

NUMBERS = ["0", "1", "2", "9", "12", "-1", "123", "1234", "12345", "1e0", "1.0"]
IDS = [*NUMBERS, "null", "true", '"1"', '""', '"a"', "[]", "{}"]
METHODS = ['"tick"', '"m"', '"$/ping"', '"$/cancelRequest"', '""', '"é"', '"\\u006d"']
VALUES = [*IDS, "[1]", '{"a":1}', "[[]]", '"\\u0031"', '{"code":1,"message":"m"}', '"tick"', '"m"', '"2.0"']
MEMBERS = ["id", "method", "params", "result", "error", "x", "extra", "trace", "jsonrpc", "data", ""]


@st.composite
def texts(draw: Any) -> str:
    pairs = ['"jsonrpc":"2.0"']
    if draw(st.booleans()):
        pairs.append('"id":' + draw(st.sampled_from(IDS)))
    if draw(st.booleans()):
        pairs.append('"method":' + draw(st.sampled_from(METHODS)))
    for name in draw(st.lists(st.sampled_from(MEMBERS), max_size=3)):
        pairs.append(f'"{name}":' + draw(st.sampled_from(VALUES)))
    ordered = draw(st.permutations(pairs))
    if draw(st.booleans()):  # as `json.dumps` writes it
        return "{" + ", ".join(pair.replace('":', '": ', 1) for pair in ordered) + "}"
    if draw(st.booleans()):  # here and there
        spaces = st.sampled_from(["", "", " ", "  "])
        spread = (draw(spaces) + pair.replace('":', '":' + draw(spaces), 1) for pair in ordered)
        return "{" + ",".join(spread) + draw(spaces) + "}"
    return "{" + ",".join(ordered) + "}"


def outcome(text: str) -> tuple[object, ...]:
    connection = link(ping="$/ping")
    claimed: list[bytes] = []
    connection.direct_handlers.add("tick", b"", append_json(claimed))
    for _ in range(12):
        call(connection)
    shown: list[object] = []
    for event in connection.receive(ContentLength().encode(text.encode()), 0.0):
        match event:
            case OutboundCall():
                shown.append(
                    ("call", event.id, None if event.result is None else bytes(event.result), type(event.error))
                )
            case InboundRequest():
                shown.append(("request", event.id, event.method, None if event.params is None else bytes(event.params)))
            case NotificationMessage() if event.method == "tick":
                claimed.append(bytes(event.params or b""))  # the same function receives the events
            case NotificationMessage():
                shown.append(("told", event.method, None if event.params is None else bytes(event.params)))
            case Failure():
                shown.append(("failure", event.code))
            case _:
                shown.append(type(event))
    return (
        shown,
        claimed,
        connection.data_to_send().partition(b"\r\n\r\n")[2],
        connection.stray_responses,
        sorted(connection.calls),
        len(connection.requests),
    )


@settings(max_examples=500)
@given(text=texts())
def test_white_space_does_not_change_the_outcome(text: str) -> None:
    assert outcome(text) == outcome("{ " + text[1:])


@settings(max_examples=500)
@given(text=texts())
def test_a_member_of_a_batch_has_the_effect_that_it_has_alone(text: str) -> None:
    shown, claimed, sent, *rest = outcome(text)

    assert outcome(f"[{text}]") == (shown, claimed, sent and b"[" + sent + b"]", *rest)


@settings(max_examples=500)
@given(text=texts())
def test_the_fast_path_decodes_as_the_parser_does(text: str) -> None:
    """The fast path takes a frame whose members and punctuation have the length of the frame; the parser looks at each
    member. What one member hides from the other is a difference between the two."""
    limits = Limits()
    parser, codec = MessageParser(limits, LimitChecker(limits)), JsonCodec(limits)

    assert codec.decode(text.encode()) == parser.parse(text.encode())


MARK = '{"_meta":{"becket":{"parent":7}},'
PIECES = ['"n":1', '"n":', '"', "}", "}}", ",", "]", '"_meta":{}', '"id":1', '"params":{"n":2}', " ", "\\", "null"]


@settings(max_examples=500)
@example(mark="{", pieces=['"n":1', "}", " "])
@example(mark="{", pieces=['"n":1', "}", ",", '"id":1', "}"])
@example(mark=MARK, pieces=["}", "}"])
@example(mark=MARK, pieces=['"n":1', "}", " ", "}"])
@given(mark=st.sampled_from([MARK, "{"]), pieces=st.lists(st.sampled_from(PIECES), max_size=6))
def test_a_direct_handler_gets_what_the_parser_reads(mark: str, pieces: list[str]) -> None:
    """The codec takes all between a known beginning and the last brace for the params, if it is one JSON value."""
    limits = Limits()
    text = '{"jsonrpc":"2.0","method":"tick","params":' + mark + "".join(pieces)
    seen: list[bytes] = []
    inbox = MessageCollector()
    inbox.direct_handlers.add("tick", MARK.encode() if mark == MARK else b"", append_json(seen))

    JsonCodec(limits).decode_frames(iter([text.encode()]), inbox)

    messages: list[Message] = [*inbox.messages]
    messages += [NotificationMessage("tick", Raw(mark.encode() + params[1:])) for params in seen]
    assert messages == [MessageParser(limits, LimitChecker(limits)).parse(text.encode())]
